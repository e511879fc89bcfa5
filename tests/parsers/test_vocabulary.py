"""Words with counts, characters, and labels of collapsed unary chains."""

from __future__ import annotations

import json
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spmrl_bench.errors import TreeError
from spmrl_bench.parsers.chart_parser import ChartParser
from spmrl_bench.parsers.vocabulary import EMPTY, FIRST_CHAR, FIRST_WORD, Vocabulary, label_rows
from spmrl_bench.readers.brackets import parse_brackets
from spmrl_bench.trees import Parse, Tree
from tests.parsers.examples import TREES, config


def vocabulary_of(trees: Iterable[Tree]) -> Vocabulary:
    return Vocabulary.of(map(Parse.of, trees))


def rows(text: str) -> list[tuple[int, int, tuple[str, ...]]]:
    return list(label_rows(parse_brackets(text)))


def test_unary_chain_is_one_label_from_top_to_bottom() -> None:
    assert rows("(A (B (C (t x) (D (E (u y))))))") == [
        (0, 2, ("A", "B", "C")),
        (1, 2, ("D", "E")),
    ]


def test_equal_labels_in_a_chain_stay_two() -> None:
    assert rows("(A (A (t x)) (A (t y)))") == [
        (0, 2, ("A",)),
        (0, 1, ("A",)),
        (1, 2, ("A",)),
    ]
    assert rows("(A (A (t x)))") == [(0, 1, ("A", "A"))]


def test_tags_are_no_part_of_a_label() -> None:
    assert rows("(A (t x) (u y))") == [(0, 2, ("A",))]
    assert not list(label_rows(Tree.build(["x"], ["t"], [])))


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(1, 6), st.sampled_from("ABC"))))
def test_rows_written_out_are_the_constituents(drawn: list[tuple[int, int, str]]) -> None:
    spans: list[tuple[int, int, str]] = []
    for i, j, label in drawn:
        crosses = any(a < i < b < j or i < a < j < b for a, b, _ in spans)
        if i < j and not crosses:
            spans.append((i, j, label))
    spans.sort(key=lambda row: (row[0], -row[1]))
    tree = Tree.build("abcdef", "tttttt", spans)
    found = list(label_rows(tree))
    assert [(i, j, name) for i, j, label in found for name in label] == spans
    assert len({row[:2] for row in found}) == len(found)


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
