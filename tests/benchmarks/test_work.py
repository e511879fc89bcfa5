"""The work that ``make bench`` reports, and what it is held against, by pytest-benchmark.

Run with ``make bench``; elsewhere each of these runs once, on few sentences. The sentences are as
long as those of the Penn Treebank. Where the environment variable ``EVALB`` names the C program,
it scores the same files.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any, get_args

import pytest
import torch

from spmrl_bench.chart import kernels
from spmrl_bench.experiments.recipe import load_recipe
from spmrl_bench.nn.device import prepare_process
from spmrl_bench.nn.settings import Precision
from spmrl_bench.scoring import load_prm, score_files
from spmrl_bench.speed import work
from spmrl_bench.speed.epoch import shaped_corpus
from spmrl_bench.speed.work import Work
from spmrl_bench.storage.paths import data_dir
from spmrl_bench.treebanks.treebank import open_treebank
from spmrl_bench.trees import Tree
from spmrl_bench.trees.parse import Parse
from tests.laboratory import MANIFEST

COLLINS = load_prm("COLLINS")
TINY = {"model.d_model": "32", "model.layers": "1", "model.d_ff": "32", "train.batch_size": "4"}
CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def measuring(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("benchmark_enable"))


@pytest.fixture(scope="module")
def trees(measuring: bool) -> list[Tree]:
    pieces = open_treebank("english-mini").split("dev")
    return shaped_corpus(pieces, 24_000 if measuring else 20, seed=1)


@pytest.fixture(scope="module")
def parses(trees: list[Tree]) -> list[Tree]:
    return work.baseline_parses(trees)


def timed(benchmark: Any, piece: Work) -> Any:
    """The result of a run that is timed, with its units per second beside the times."""
    result = benchmark.pedantic(piece.run, rounds=5, warmup_rounds=1)
    if benchmark.stats:
        speed = round(piece.amount / benchmark.stats["median"])
        benchmark.extra_info[f"{piece.unit}_per_second"] = speed
    return result


def test_reading(benchmark: Any, trees: list[Tree], tmp_path: Path) -> None:
    assert timed(benchmark, work.reading(trees, tmp_path / "trees.mrg")) == trees


def test_reading_by_nltk(benchmark: Any, trees: list[Tree], tmp_path: Path) -> None:
    nltk = pytest.importorskip("nltk")
    path = tmp_path / "trees.mrg"
    work.reading(trees, path)

    def read() -> list[Any]:
        with path.open(encoding="utf-8") as file:
            return [nltk.Tree.fromstring(line) for line in file]

    assert len(timed(benchmark, Work("NLTK", read, len(trees), "trees"))) == len(trees)


@pytest.mark.parametrize("cached", [False, True])
def test_opening_a_treebank(
    benchmark: Any,
    trees: list[Tree],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    cached: bool,
) -> None:
    (tmp_path / "lines").mkdir()
    for split in ("train", "dev", "test"):
        work.reading(trees, tmp_path / "lines" / f"{split}.mrg")
    splits = [
        f'[splits.{split}]\nfiles = ["{split}.mrg"]\nsentences = {len(trees)}\n'
        for split in ("train", "dev", "test")
    ]
    transforms = 'transforms = ["drop-traces", "strip-functions", "strip-root"]'
    manifest = MANIFEST.format(name="lines", track="open", path="lines") + "".join(splits)
    manifest = manifest.replace("transforms = []", transforms)
    (tmp_path / "lines.toml").write_text(manifest, encoding="utf-8")
    monkeypatch.setattr("spmrl_bench.treebanks.catalogue.data_dirs", lambda _: [tmp_path])
    monkeypatch.setenv("SPMRL_BENCH_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("SPMRL_BENCH_CACHE", str(int(cached)))

    def read() -> list[Tree]:
        return open_treebank("lines", tmp_path).split("train")

    found = timed(benchmark, Work("opening", read, len(trees), "trees"))
    assert [tree.words for tree in found] == [tree.words for tree in trees]


def test_scoring(benchmark: Any, trees: list[Tree], parses: list[Tree]) -> None:
    assert timed(benchmark, work.scoring(trees, parses, COLLINS)).skipped == 0


@pytest.mark.parametrize("program", ["own", "EVALB"])
def test_scoring_files(
    benchmark: Any, trees: list[Tree], parses: list[Tree], tmp_path: Path, program: str
) -> None:
    paths = [tmp_path / "gold.mrg", tmp_path / "test.mrg"]
    work.reading(trees, paths[0])
    work.reading(parses, paths[1])
    f1 = score_files(*paths, COLLINS).f1
    if program == "own":
        own = Work("scoring", lambda: score_files(*paths, COLLINS), len(trees), "sentences")
        assert timed(benchmark, own).f1 == f1
        return
    binary = os.environ.get("EVALB")
    if not binary:
        pytest.skip("no C program to compare with (set the environment variable EVALB)")
    command = [binary, "-p", data_dir("evalb") / "COLLINS.prm", *paths]

    def run() -> str:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    printed = timed(benchmark, Work("EVALB", run, len(trees), "sentences"))
    assert f"Bracketing FMeasure       = {f1:6.2f}" in printed


@pytest.mark.parametrize("augmented", [False, True], ids=["plain", "augmented"])
@pytest.mark.parametrize("n", work.CHART_LENGTHS)
def test_decoding(benchmark: Any, measuring: bool, n: int, augmented: bool) -> None:
    piece = work.decoding(n, augmented, None if measuring else 2)
    assert len(timed(benchmark, piece).cells) == piece.amount * (2 * n - 1)


@pytest.mark.parametrize("projective", [False, True], ids=["any", "projective"])
@pytest.mark.parametrize("n", [20, 40, 80, 160])
def test_decoding_dependencies(benchmark: Any, measuring: bool, n: int, projective: bool) -> None:
    piece = work.decoding_dependencies(n, projective, None if measuring else 2)
    assert len(timed(benchmark, piece)) == piece.amount * n


@pytest.mark.parametrize("n", [20, 160])
def test_decoding_dependencies_in_plain_python(
    benchmark: Any, measuring: bool, monkeypatch: pytest.MonkeyPatch, n: int
) -> None:
    monkeypatch.setattr(kernels, "load", lambda name: None)
    piece = work.decoding_dependencies(n, True, None if measuring else 2)
    assert len(timed(benchmark, piece)) == piece.amount * n


@pytest.mark.parametrize("n", work.JOINT_LENGTHS)
def test_joint_decoding(benchmark: Any, measuring: bool, n: int) -> None:
    piece = work.joint_decoding(n, None if measuring else 2)
    assert len(timed(benchmark, piece).heads) == piece.amount * n


@pytest.mark.parametrize("size", ["small", "published"])
@pytest.mark.parametrize("precision", get_args(Precision))
@pytest.mark.parametrize("piece", ["training", "parsing"])
def test_parser(
    benchmark: Any,
    measuring: bool,
    trees: list[Tree],
    size: str,
    precision: Precision,
    piece: str,
) -> None:
    if measuring:
        prepare_process("cpu", training=piece == "training")
    config: Any = load_recipe("english").resolve(
        treebank="x",
        track="mini",
        fingerprints={"constituents": "x"},
        variant="charlstm",
        size=size,
        settings={"model.precision": precision, **({} if measuring else TINY)},
    )
    some = list(map(Parse.of, trees[:500]))
    if piece == "training":
        assert timed(benchmark, work.training("chart", config.model, config.train, some, CPU)) > 0
    else:
        found = timed(benchmark, work.parsing("chart", config.model, some, CPU))
        assert [parse.words for parse in found] == [tree.words for tree in some]
