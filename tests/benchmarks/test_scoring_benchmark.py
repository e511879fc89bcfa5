"""How fast bracketed files are scored.

Run with ``make bench``; elsewhere each of these runs once, on little text. Where the
environment variable ``EVALB`` names the C program, it scores the same files.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from spmrl_bench.data import data_dir
from spmrl_bench.readers.brackets import read_brackets_file
from spmrl_bench.scoring import count_brackets, load_prm, score_files, score_trees
from spmrl_bench.trees import Tree
from spmrl_bench.trees.brackets import write_brackets
from tests.benchmarks.corpora import random_corpus

COLLINS = load_prm("COLLINS")
SENTENCES = 24_000  # tens of times the test section of the Wall Street Journal treebank


class Corpus(NamedTuple):
    gold: list[Tree]
    test: list[Tree]
    gold_path: Path
    test_path: Path


@pytest.fixture(scope="module")
def corpus(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    sentences = SENTENCES if request.config.getoption("benchmark_enable") else 50
    sides = random_corpus(sentences)
    folder = tmp_path_factory.mktemp("corpus")
    paths = [folder / "gold.mrg", folder / "test.mrg"]
    for path, trees in zip(paths, sides, strict=True):
        path.write_text("".join(f"{write_brackets(tree)}\n" for tree in trees), encoding="utf-8")
    return Corpus(*(list(read_brackets_file(path)) for path in paths), *paths)


def measure(benchmark: Any, sentences: int, function: Any, *arguments: Any) -> Any:
    """The result of a call that is measured, with sentences per second beside the times."""
    result = benchmark.pedantic(function, arguments, rounds=5, warmup_rounds=1)
    if benchmark.stats:
        benchmark.extra_info["sentences_per_second"] = round(sentences / benchmark.stats["median"])
    return result


def test_scoring_trees(benchmark: Any, corpus: Corpus) -> None:
    counts = measure(benchmark, len(corpus.gold), score_trees, corpus.gold, corpus.test, COLLINS)
    assert counts.skipped == 0


def test_scoring_trees_in_plain_python(benchmark: Any, corpus: Corpus) -> None:
    pairs = list(zip(corpus.gold, corpus.test, strict=True))[:2400]
    rows = measure(
        benchmark, len(pairs), lambda: [count_brackets(*pair, COLLINS) for pair in pairs]
    )
    assert len(rows) == len(pairs)


def test_scoring_files(benchmark: Any, corpus: Corpus) -> None:
    counts = measure(
        benchmark, len(corpus.gold), score_files, corpus.gold_path, corpus.test_path, COLLINS
    )
    assert counts.rows.tolist() == score_trees(corpus.gold, corpus.test, COLLINS).rows.tolist()


def test_scoring_files_with_the_c_program(benchmark: Any, corpus: Corpus) -> None:
    binary = os.environ.get("EVALB")
    if not binary:
        pytest.skip("no C program to compare with (set the environment variable EVALB)")
    command = [binary, "-p", data_dir("evalb") / "COLLINS.prm", corpus.gold_path, corpus.test_path]
    done = measure(
        benchmark,
        len(corpus.gold),
        lambda: subprocess.run(command, capture_output=True, text=True, check=True),
    )
    own = score_files(corpus.gold_path, corpus.test_path, COLLINS)
    assert f"Bracketing FMeasure       = {own.f1:6.2f}" in done.stdout
