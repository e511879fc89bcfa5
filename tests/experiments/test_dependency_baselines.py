"""Attachment scores of the baselines on real treebanks, counted once more from the bare files."""

from __future__ import annotations

from pathlib import Path

import pytest

from spmrl_bench.experiments.evaluation import baseline_results
from spmrl_bench.parsers.base import ParserConfig
from spmrl_bench.parsers.baselines import AttachNeighbour
from spmrl_bench.treebanks.treebank import Treebank, open_treebank
from tests.conftest import shared_data

TREEBANKS = ("basque-ud-bdt", "french-ud-sequoia", "hungarian-ud-szeged", "korean-ud-gsd")


@pytest.fixture(params=TREEBANKS)
def bank(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Treebank:
    monkeypatch.setenv("TREEBANKS", str(shared_data("treebanks")))
    return open_treebank(request.param)


def gold_rows(path: Path) -> list[list[list[str]]]:
    """The columns of the words of each sentence of a file."""
    sentences: list[list[list[str]]] = [[]]
    for line in path.read_text(encoding="utf-8").split("\n"):
        if not line:
            sentences.append([])
        elif line[0] != "#" and line.split("\t")[0].isdigit():
            sentences[-1].append(line.split("\t"))
    return [sentence for sentence in sentences if sentence]


def test_scores_are_those_of_an_independent_count(bank: Treebank) -> None:
    results = baseline_results(bank, "test", ["attachment"])
    assert list(results) == ["attach-neighbour"]
    counts = results["attach-neighbour"].metrics["attachment"].counts
    (path,) = (shared_data("treebanks") / bank.manifest.path).glob("*test.conllu")
    gold = gold_rows(path)

    baseline = AttachNeighbour.build(ParserConfig(), bank.examples("train", ["dependencies"]))
    words = [[row[1] for row in sentence] for sentence in gold]
    tags = [list(example.tags) for example in bank.examples("test", ["dependencies"])]
    expected = []
    for sentence, parse in zip(gold, baseline.parse(words, tags), strict=True):
        found = parse.dependencies
        heads = [int(row[6]) == head for row, head in zip(sentence, found.heads, strict=True)]
        labels = [row[7] == name for row, name in zip(sentence, found.relations, strict=True)]
        both = sum(head and label for head, label in zip(heads, labels, strict=True))
        expected.append((len(sentence), sum(heads), sum(labels), both))
    columns = ("words", "heads", "labels", "both")
    assert list(zip(*(counts[name] for name in columns), strict=True)) == expected
    las = results["attach-neighbour"].figure("attachment", "las")
    words_in_all = sum(row[0] for row in expected)
    assert las == pytest.approx(100 * sum(row[3] for row in expected) / words_in_all)
    assert 5 < (las or 0) < 40
