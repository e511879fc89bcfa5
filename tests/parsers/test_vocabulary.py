"""Words with counts, characters, and labels of collapsed unary chains."""

from __future__ import annotations

import json
from collections.abc import Iterable

import pytest

from spmrl_bench.errors import TreeError
from spmrl_bench.parsers.chart_parser import ChartParser
from spmrl_bench.parsers.vocabulary import EMPTY, FIRST_CHAR, FIRST_WORD, Vocabulary
from spmrl_bench.readers.brackets import parse_brackets
from spmrl_bench.trees import Parse, Tree
from tests.parsers.examples import TREES, config


def vocabulary_of(trees: Iterable[Tree]) -> Vocabulary:
    return Vocabulary.of(map(Parse.of, trees))


def test_inventories_are_in_order_of_appearance() -> None:
    vocabulary = vocabulary_of(
        [parse_brackets("(S (NP (D ba)) (V ab))"), parse_brackets("(S (S (D ba) (D cé)))")]
    )
    assert vocabulary.words == {"ba": 2, "ab": 1, "cé": 1}
    assert vocabulary.characters == ("b", "a", "c", "é")
    assert vocabulary.labels == ((), ("S",), ("NP",), ("S", "S"))
    assert vocabulary.word_ids == {"ba": FIRST_WORD, "ab": FIRST_WORD + 1, "cé": FIRST_WORD + 2}
    assert vocabulary.character_ids["a"] == FIRST_CHAR + 1
    assert vocabulary.label_ids[()] == EMPTY


def test_json_keeps_everything() -> None:
    vocabulary = vocabulary_of([*TREES, parse_brackets('(X (Y (t "é\u00a0\U0001f600")))')])
    text = json.dumps(vocabulary.to_json(), ensure_ascii=True)
    again = Vocabulary.from_json(json.loads(text))
    assert again == vocabulary
    assert list(again.words) == list(vocabulary.words)
    assert again.label_ids == vocabulary.label_ids


def test_root_is_the_most_frequent_highest_nonterminal() -> None:
    texts = ["(S (NP (t a)) (t b))", "(X (S (t a) (t b)))", "(X (t a))", "( (S (t a)))", "( (t a))"]
    given_trees = [parse_brackets(text) for text in texts]
    assert vocabulary_of(given_trees).root == "X"
    assert vocabulary_of([*given_trees, given_trees[0], given_trees[0]]).root == "S"
    # A bracket without a label has no name, and one over a part of the words is no root.
    part = Tree.build(["a", "b"], ["t", "t"], [(0, 1, "Y")])
    assert vocabulary_of([part, parse_brackets("( (t a))")]).root == "TOP"


def test_parsers_saved_without_a_root_have_one() -> None:
    value = vocabulary_of(TREES).to_json()
    assert Vocabulary.from_json(value).root == value.pop("root") == "S"
    assert Vocabulary.from_json(value).root == "TOP"
    assert Vocabulary.from_json(value) == vocabulary_of(TREES)


def test_nothing_to_learn_is_an_error() -> None:
    with pytest.raises(TreeError, match="the 0 training trees have no constituent"):
        ChartParser.build(config(), [])
    with pytest.raises(TreeError, match="the 1 training trees have no constituent"):
        ChartParser.build(config(), [Parse.of(Tree.build(["x"], ["t"], []))])
