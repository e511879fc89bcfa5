"""The speed of reading, scoring, decoding, training and parsing, by pytest-benchmark.

Run with ``make bench``, on a graphics card where there is one; elsewhere each of these runs once,
on few sentences. Sentences are as long as those of the Penn Treebank, whose 950,000 words make an
epoch. Where the environment variable ``EVALB`` names the C program, it scores the same files.
"""

from __future__ import annotations

import os
import random
import subprocess
from collections.abc import Callable, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
import torch

from spmrl_bench.chart import kernels
from spmrl_bench.chart.arrays import arc_offsets
from spmrl_bench.chart.dependency_trees import decode_dependencies
from spmrl_bench.chart.joint_trees import decode_joint
from spmrl_bench.chart.span_trees import best_labels, decode_spans
from spmrl_bench.experiments.recipe import load_recipe
from spmrl_bench.nn.device import prepare_process
from spmrl_bench.nn.settings import Precision
from spmrl_bench.parsers.kinds import kind_named
from spmrl_bench.readers.brackets import read_brackets_file
from spmrl_bench.scoring import load_prm, score_files, score_trees
from spmrl_bench.storage.paths import data_dir
from spmrl_bench.treebanks.manifest import SPLITS
from spmrl_bench.treebanks.treebank import open_treebank
from spmrl_bench.trees import Tree
from spmrl_bench.trees.escapes import write_brackets
from spmrl_bench.trees.parse import Parse
from tests.laboratory import MANIFEST, table

COLLINS = load_prm("COLLINS")
TINY = {"model.d_model": "32", "model.layers": "1", "train.batch_size": "4"}
LABELS = 112  # of the Penn Treebank, unary chains collapsed


@pytest.fixture(scope="module")
def measuring(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("benchmark_enable"))


@pytest.fixture(scope="module")
def trees(measuring: bool) -> list[Tree]:
    pieces = open_treebank("english-mini").split("dev")
    return shaped_corpus(pieces, 24_000 if measuring else 20, seed=1)


@pytest.fixture(scope="module")
def parses(trees: list[Tree]) -> list[Tree]:
    """Neither good nor hopeless."""
    baseline = kind_named("right-branching").parser_class.build(None, list(map(Parse.of, trees)))
    found = baseline.parse([tree.words for tree in trees], [tree.tags for tree in trees])
    return [parse.tree for parse in found]


def shaped_corpus(pieces: Sequence[Tree], sentences: int, seed: int) -> list[Tree]:
    """So many trees, strung together of pieces, as long as those of the Penn Treebank."""
    rng = random.Random(seed)
    by_length: dict[int, list[Tree]] = {}
    for tree in pieces:
        by_length.setdefault(len(tree), []).append(tree)
    shortest, longest = min(by_length), max(by_length)
    fitting = list(accumulate((by_length.get(n, []) for n in range(longest + 1)), list.__add__))
    # Lengths of the treebank are gamma distributed, with these mean and deviation.
    mean, deviation = 23.75, 11
    shape = (mean / deviation) ** 2
    corpus = []
    for _ in range(sentences):
        left = min(140, max(shortest, round(rng.gammavariate(shape, mean / shape))))
        parts: list[Tree] = []
        while left >= shortest:
            parts.append(rng.choice(fitting[min(left, longest)]))
            left -= len(parts[-1])
        rows, words, tags = [], [], []
        for tree in parts:
            at = len(words)
            rows += [(at + i, at + j, label) for i, j, label in tree.constituents()]
            words += tree.words
            tags += tree.tags
        corpus.append(Tree.build(words, tags, [(0, len(words), "S"), *rows]))
    return corpus


def write(trees: Sequence[Tree], path: Path) -> Path:
    path.write_text("".join(f"{write_brackets(tree)}\n" for tree in trees), encoding="utf-8")
    return path


def timed(benchmark: Any, run: Callable[[], Any], amount: int, unit: str) -> Any:
    """The result of a run that is timed, with its units per second beside the times."""
    result = benchmark.pedantic(run, rounds=5, warmup_rounds=1)
    if benchmark.stats:
        speed = round(amount / benchmark.stats["median"])
        benchmark.extra_info[f"{unit}_per_second"] = speed
    return result


@pytest.mark.parametrize("program", ["own", "NLTK"])
def test_reading(benchmark: Any, trees: list[Tree], tmp_path: Path, program: str) -> None:
    path = write(trees, tmp_path / "trees.mrg")
    if program == "own":
        found = timed(benchmark, lambda: list(read_brackets_file(path)), len(trees), "trees")
        assert found == trees
        return
    nltk = pytest.importorskip("nltk")

    def read() -> list[Any]:
        with path.open(encoding="utf-8") as file:
            return [nltk.Tree.fromstring(line) for line in file]

    assert len(timed(benchmark, read, len(trees), "trees")) == len(trees)


@pytest.mark.parametrize("cached", [False, True])
def test_opening_a_treebank(
    benchmark: Any, trees: list[Tree], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cached: bool
) -> None:
    (tmp_path / "lines").mkdir()
    for place, split in enumerate(SPLITS):
        write([*trees[place:], *trees[:place]], tmp_path / "lines" / f"{split}.mrg")
    own = {
        "name": "lines",
        "path": "lines",
        "transforms": ["drop-traces", "strip-functions", "strip-root"],
        "splits": {split: {"files": [f"{split}.mrg"], "sentences": len(trees)} for split in SPLITS},
    }
    (tmp_path / "lines.toml").write_text(table(MANIFEST | own), encoding="utf-8")
    monkeypatch.setattr("spmrl_bench.treebanks.catalogue.data_dirs", lambda _: [tmp_path])
    monkeypatch.setenv("SPMRL_BENCH_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("SPMRL_BENCH_CACHE", str(int(cached)))

    def read() -> list[Tree]:
        return open_treebank("lines", tmp_path).split("train")

    found = timed(benchmark, read, len(trees), "trees")
    assert [tree.words for tree in found] == [tree.words for tree in trees]


def test_scoring(benchmark: Any, trees: list[Tree], parses: list[Tree]) -> None:
    scored = timed(benchmark, lambda: score_trees(trees, parses, COLLINS), len(trees), "sentences")
    assert scored.skipped == 0


@pytest.mark.parametrize("program", ["own", "EVALB"])
def test_scoring_files(
    benchmark: Any, trees: list[Tree], parses: list[Tree], tmp_path: Path, program: str
) -> None:
    paths = [write(trees, tmp_path / "gold.mrg"), write(parses, tmp_path / "test.mrg")]
    f1 = score_files(*paths, COLLINS).f1
    if program == "own":
        own = timed(benchmark, lambda: score_files(*paths, COLLINS), len(trees), "sentences")
        assert own.f1 == f1
        return
    binary = os.environ.get("EVALB")
    if not binary:
        pytest.skip("no C program to compare with (set the environment variable EVALB)")
    command = [binary, "-p", data_dir("evalb") / "COLLINS.prm", *paths]

    def run() -> str:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    printed = timed(benchmark, run, len(trees), "sentences")
    assert f"Bracketing FMeasure       = {f1:6.2f}" in printed


def batch(n: int, measuring: bool) -> Any:
    """Lengths of the sentences of a batch of charts of ``n`` words."""
    return np.full((32 if n <= 80 else 8) if measuring else 2, n, dtype=np.int32)


@pytest.mark.parametrize("augmented", [False, True], ids=["plain", "augmented"])
@pytest.mark.parametrize("n", [10, 20, 40, 80, 160, 300])
def test_decoding(benchmark: Any, measuring: bool, n: int, augmented: bool) -> None:
    lengths = batch(n, measuring)
    cells = len(lengths) * n * (n + 1) // 2
    # Random, so that no branch can be foretold.
    scores = np.random.default_rng(1).standard_normal((cells, LABELS - 1), dtype=np.float32)
    gold = np.zeros(cells, dtype=np.int32) if augmented else None
    if gold is not None:
        gold[:: max(1, n // 2)] = 1

    def decode() -> Any:
        return decode_spans(*best_labels(scores, gold), lengths, gold)

    found = timed(benchmark, decode, len(lengths), "sentences")
    assert len(found.cells) == len(lengths) * (2 * n - 1)


@pytest.mark.parametrize("projective", [False, True], ids=["any", "projective"])
@pytest.mark.parametrize("n", [20, 40, 80, 160])
def test_decoding_dependencies(benchmark: Any, measuring: bool, n: int, projective: bool) -> None:
    lengths = batch(n, measuring)
    arcs = np.random.default_rng(1).standard_normal(arc_offsets(lengths)[-1])

    def decode() -> Any:
        return decode_dependencies(arcs, lengths, projective=projective)

    assert len(timed(benchmark, decode, len(lengths), "sentences")) == len(lengths) * n


@pytest.mark.parametrize("n", [20, 160])
def test_decoding_dependencies_in_plain_python(
    benchmark: Any, measuring: bool, monkeypatch: pytest.MonkeyPatch, n: int
) -> None:
    monkeypatch.setattr(kernels, "load", lambda name: None)
    test_decoding_dependencies(benchmark, measuring, n, True)


@pytest.mark.parametrize("n", [20, 40, 80, 160])
def test_joint_decoding(benchmark: Any, measuring: bool, n: int) -> None:
    lengths = batch(n, measuring)
    rng = np.random.default_rng(1)
    values = rng.standard_normal(len(lengths) * n * (n + 1) // 2) - 1
    arcs = rng.standard_normal(int(arc_offsets(lengths)[-1]))
    found = timed(benchmark, lambda: decode_joint(values, arcs, lengths), len(lengths), "sentences")
    assert len(found.heads) == len(lengths) * n


@pytest.mark.parametrize("size", ["small", "published"])
@pytest.mark.parametrize("precision", get_args(Precision))
@pytest.mark.parametrize("variant", ["charlstm", "stack-attention"])
@pytest.mark.parametrize("work", ["training", "parsing"])
def test_parser(
    benchmark: Any,
    measuring: bool,
    trees: list[Tree],
    size: str,
    precision: Precision,
    variant: str,
    work: str,
) -> None:
    device = torch.device("cpu")
    if measuring:
        device = prepare_process("auto", training=work == "training")
    most = 500 if measuring else 8
    if variant == "stack-attention":
        variant += "-published" if size == "published" else ""
        examples = open_treebank("english-mini").examples("dev", ["dependencies"])[:most]
    else:
        examples = list(map(Parse.of, trees[:most]))
    config: Any = load_recipe("english").resolve(
        treebank="x",
        track="mini",
        fingerprints={"constituents": "x", "dependencies": "x"},
        variant=variant,
        size=size,
        settings={"model.precision": precision, **({} if measuring else TINY)},
    )
    torch.manual_seed(1)
    made: Any = kind_named(config.kind).parser_class.build(config.model, examples).to(device)
    if work == "parsing":
        words, tags = [each.words for each in examples], [each.tags for each in examples]
        found = timed(benchmark, lambda: list(made.parse(words, tags)), len(words), "sentences")
        assert [parse.words for parse in found] == words
        return
    some = examples[: config.train.batch_size]
    indexed = list(made.index(some))
    optimiser = torch.optim.Adam(made.parameters(), lr=1e-4, fused=True)
    made.train()

    def step() -> float:
        optimiser.zero_grad()
        loss = made.gradients(indexed, np.random.default_rng(1), config.train.sub_batch_tokens)
        optimiser.step()
        return float(loss)

    assert timed(benchmark, step, sum(map(len, some)), "tokens") > 0
