"""Unary chains as single labels, and written out again."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from spmrl_bench.readers.brackets import parse_brackets
from spmrl_bench.trees import Tree
from spmrl_bench.trees.tree import LabeledSpan, collapsed_spans, expand_chains


def rows(text: str) -> list[LabeledSpan]:
    return list(collapsed_spans(parse_brackets(text)))


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
    assert not list(collapsed_spans(Tree.build(["x"], ["t"], [])))


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(1, 6), st.sampled_from("ABC"))))
def test_rows_written_out_are_the_constituents(drawn: list[tuple[int, int, str]]) -> None:
    spans: list[tuple[int, int, str]] = []
    for i, j, label in drawn:
        crosses = any(a < i < b < j or i < a < j < b for a, b, _ in spans)
        if i < j and not crosses:
            spans.append((i, j, label))
    spans.sort(key=lambda row: (row[0], -row[1]))
    tree = Tree.build("abcdef", "tttttt", spans)
    found = list(collapsed_spans(tree))
    assert list(expand_chains(found)) == spans
    assert len({row[:2] for row in found}) == len(found)
