"""From a parser to its figures by the command line, beside a count that shares no code with it."""

from __future__ import annotations

import json
import unicodedata
from itertools import islice
from pathlib import Path

import pytest

from spmrl_bench.treebanks.treebank import open_treebank
from tests.builders import works
from tests.parsers.test_transition_parser import parser_of

Rows = list[list[list[str]]]


def rows_of(path: Path) -> Rows:
    """The words of each sentence as the ten columns of CoNLL-U, by splitting lines alone."""
    sentences: Rows = [[]]
    for line in path.read_text(encoding="utf-8").split("\n"):
        if not line:
            sentences.append([])
        elif not line.startswith("#"):
            sentences[-1].append(line.split("\t"))
    return [sentence for sentence in sentences if sentence]


def counted(gold: Rows, test: Rows, *, punctuation: bool) -> dict[str, float]:
    """UAS, LAS, and the share of complete sentences without and with relations, in per cent."""
    words = heads = labelled = whole = whole_labelled = sentences = 0
    for gold_rows, test_rows in zip(gold, test, strict=True):
        right, both = [], []
        for one, other in zip(gold_rows, test_rows, strict=True):
            assert one[1] == other[1]
            if punctuation or not all(unicodedata.category(c)[0] == "P" for c in one[1]):
                right.append(one[6] == other[6])
                both.append(one[6:8] == other[6:8])
        words += len(right)
        heads += sum(right)
        labelled += sum(both)
        sentences += bool(right)
        whole += bool(right) and all(right)
        whole_labelled += bool(right) and all(both)
    figures = (heads / words, labelled / words, whole / sentences, whole_labelled / sentences)
    return dict(
        zip(
            ("uas", "las", "unlabelled_match", "labelled_match"),
            (100 * figure for figure in figures),
            strict=True,
        )
    )


@pytest.mark.parametrize("beam", [1, 4])
def test_scores_of_parses_are_those_of_a_plain_count(beam: int, tmp_path: Path) -> None:
    trees = [
        parse.dependencies
        for parse in islice(open_treebank("german-mini").examples("dev", ["dependencies"]), 40)
    ]
    examples = open_treebank("german-mini").examples("train", ["dependencies"])[:60]
    (tmp_path / "parser").mkdir()
    parser_of(examples, system="arc-hybrid", beam=beam).save(tmp_path / "parser")
    gold, words, test = (tmp_path / name for name in ("gold.conllu", "words.txt", "test.conllu"))
    with gold.open("w", encoding="utf-8") as file:
        for tree in trees:
            columns = zip(tree.words, tree.tags, tree.heads, tree.relations, strict=True)
            for place, (word, tag, head, relation) in enumerate(columns, 1):
                row = [place, word, "_", tag, tag, "_", head, relation, "_", "_"]
                file.write("\t".join(map(str, row)) + "\n")
            file.write("\n")
    words.write_text("".join(" ".join(tree.words) + "\n" for tree in trees), encoding="utf-8")

    model = ["--model", tmp_path / "parser", "--device", "cpu"]
    test.write_text(works("parse", *model, "--output", "conllu", words).stdout, encoding="utf-8")
    score = ["score-dependencies", gold, test, "--format", "json", "--punctuation", "unicode"]
    report = json.loads(works(*score).stdout)
    for part, punctuation in (("all_words", True), ("without_punctuation", False)):
        figures = counted(rows_of(gold), rows_of(test), punctuation=punctuation)
        assert 0 < figures["las"] < figures["uas"] < 100  # a parser that errs, but not always
        assert {name: report[part][name] for name in figures} == pytest.approx(figures), part
