"""How fast treebanks are read: the first time, from the cache, and by NLTK.

Run with ``make bench``; elsewhere each of these runs once, on little text. All read the same
file of one-line brackets, except the last ones, which open it as a treebank.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from spmrl_bench.readers import brackets
from spmrl_bench.readers.brackets import read_brackets_file
from spmrl_bench.treebanks.treebank import open_treebank
from spmrl_bench.trees import Tree
from spmrl_bench.trees.brackets import write_brackets
from tests.benchmarks.corpora import random_corpus

SENTENCES = 40_000  # the training section of the Wall Street Journal treebank

MANIFEST = """\
name = "english-lines"
title = "Lines"
language = "english"
track = "open"
format = "brackets"
path = "lines"
escapes = "ptb"
transforms = ["drop-traces", "strip-functions", "strip-root"]
tags = "gold"
prm = "COLLINS"
licence = "MIT"
citation = "none"
source = "none"
obtain = "none"
"""


@pytest.fixture(scope="module")
def lines(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file, in a folder that can be opened as the treebank ``english-lines``."""
    number = SENTENCES if request.config.getoption("benchmark_enable") else 50
    root = tmp_path_factory.mktemp("root")
    path = root / "lines" / "train.mrg"
    path.parent.mkdir()
    gold, _ = random_corpus(number)
    path.write_text("".join(f"{write_brackets(tree)}\n" for tree in gold), encoding="utf-8")
    path.with_name("other.mrg").write_text("(S (N a) (N b))\n", encoding="utf-8")
    manifests = root / "manifests"
    manifests.mkdir()
    text = MANIFEST + f'[splits.train]\nfiles = ["train.mrg"]\nsentences = {number}\n'
    for split in ("dev", "test"):
        text += f'[splits.{split}]\nfiles = ["other.mrg"]\nsentences = 1\n'
    (manifests / "english-lines.toml").write_text(text, encoding="utf-8")
    return path


def measure(benchmark: Any, function: Any, *, setup: Any = None) -> list[Any]:
    """The result of a call that is measured, with trees per second beside the times."""
    result: list[Any] = benchmark.pedantic(function, setup=setup, rounds=5)
    if benchmark.stats:
        benchmark.extra_info["trees_per_second"] = round(len(result) / benchmark.stats["median"])
    return result


def test_reading_lines(benchmark: Any, lines: Path) -> None:
    assert measure(benchmark, lambda: list(read_brackets_file(lines)))


def test_reading_lines_in_python(
    benchmark: Any, lines: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(brackets, "scan", None)
    assert measure(benchmark, lambda: list(read_brackets_file(lines)))


def test_reading_lines_by_nltk(benchmark: Any, lines: Path) -> None:
    nltk = pytest.importorskip("nltk")

    def read() -> list[Any]:
        with lines.open(encoding="utf-8") as file:
            return [nltk.Tree.fromstring(line) for line in file]

    assert measure(benchmark, read)


@pytest.fixture
def opened(lines: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Opens the treebank and gives its training trees; the cache is empty at first."""
    manifests = lines.parents[1] / "manifests"
    monkeypatch.setattr("spmrl_bench.treebanks.catalogue.data_dirs", lambda _: [manifests])
    monkeypatch.setenv("SPMRL_BENCH_HOME", str(tmp_path / "home"))

    def read() -> list[Tree]:
        return open_treebank("english-lines", lines.parents[1]).split("train")

    return read


def test_opening_a_treebank_first(
    benchmark: Any, opened: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPMRL_BENCH_CACHE", "0")
    assert measure(benchmark, opened)


def test_opening_a_treebank_from_the_cache(benchmark: Any, opened: Any) -> None:
    first = opened()
    assert measure(benchmark, opened) == first
