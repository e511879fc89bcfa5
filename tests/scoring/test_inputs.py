"""Every form of a sentence gives the same counts."""

from __future__ import annotations

import pytest

from spmrl_bench.errors import ScoreError
from spmrl_bench.readers.brackets import parse_brackets
from spmrl_bench.scoring import load_prm, score_trees
from spmrl_bench.scoring.breakdown import tabulate_brackets
from spmrl_bench.scoring.inputs import as_trees

nltk = pytest.importorskip("nltk")

GOLD = ["(S (NP (DT the) (NN dog)) (VP (VBZ barks)))", "(NP (NN -LRB-))", "(S (NN a))"]
TEST = ["(S (NP (DT the)) (VP (NN dog) (VBZ barks)))", "(X (NN -LRB-))", "(())"]


def in_every_form(texts: list[str]) -> list[list[object]]:
    return [
        [parse_brackets(text, blank="tree", escapes="brackets") for text in texts],
        list(texts),
        [nltk.Tree.fromstring(text.replace("-LRB-", "(")) if "-LRB-" not in text else
         nltk.Tree(text[1:].split()[0], [nltk.Tree("NN", ["("])]) for text in texts],
    ]  # fmt: skip


def test_every_form_gives_the_same_counts() -> None:
    prm = load_prm("spmrl")
    gold, test = in_every_form(GOLD), in_every_form(TEST)
    expected = score_trees(gold[0], test[0], prm).rows.tolist()  # type: ignore[arg-type]
    assert [row[2:5] for row in expected] == [[1, 3, 3], [0, 1, 1], [0, 0, 0]]
    for one in gold:
        for other in (*test, [*TEST[:2], None]):
            assert score_trees(one, other, prm).rows.tolist() == expected  # type: ignore[arg-type]
            table = tabulate_brackets(one, other, prm)  # type: ignore[arg-type]
            assert table.by_sentence().tolist() == [row[2:5] for row in expected]


def test_trees_are_taken_as_they_are() -> None:
    trees = [parse_brackets(GOLD[0]), None]
    assert as_trees(trees, "gold") is trees


@pytest.mark.parametrize(
    ("sentence", "message"),
    [
        (7, "test sentence 2: expected a tree, an nltk tree or bracketed text, found int"),
        (["S"], "test sentence 2: expected a tree, .* found list"),
        ("(S (NN dog)", "test sentence 2: <string>:1:1: .*not closed"),
        (nltk.Tree("S", ["a", nltk.Tree("NN", ["b"])]), "test sentence 2: the leaf 'a' below 'S'"),
    ],
)
def test_what_is_no_sentence_is_named(sentence: object, message: str) -> None:
    with pytest.raises(ScoreError, match=message):
        score_trees(GOLD[:2], [TEST[0], sentence], load_prm("spmrl"))  # type: ignore[list-item]
