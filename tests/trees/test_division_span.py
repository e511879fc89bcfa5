"""Division span: marks on labels, and heads from them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spmrl_bench.errors import TreeError
from spmrl_bench.readers.brackets import parse_brackets
from spmrl_bench.trees import Tree
from spmrl_bench.trees.dependencies import DependencyTree, head_fault
from spmrl_bench.trees.head_driven import (
    SUB_HEAD,
    TO_HEAD,
    from_division_span,
    head_driven,
    to_division_span,
    to_parse,
)
from spmrl_bench.trees.tree import LabeledSpan, collapsed_spans
from tests.trees.strategies import trees

# That structures go there and back is part of what test_head_driven.py checks of every one.


def rows_of(text: str, heads: list[int]) -> tuple[LabeledSpan, ...]:
    tree = parse_brackets(text)
    relations = ["r"] * len(heads)
    return to_division_span(
        head_driven(tree, DependencyTree.build(tree.words, tree.tags, heads, relations))
    )


def test_the_example_of_the_paper() -> None:
    rows = rows_of(
        "(S (NP (T Federal) (T Paper) (T Board))"
        " (VP (T sells) (NP (T paper) (T and) (T wood) (T products))) (T .))",
        [3, 3, 4, 0, 8, 5, 8, 4, 4],
    )
    assert rows == (
        (0, 9, (TO_HEAD, "S")),
        (0, 3, (TO_HEAD, "NP")),
        (0, 1, (TO_HEAD,)),
        (1, 2, (TO_HEAD,)),
        (2, 3, (TO_HEAD,)),
        (3, 8, (TO_HEAD, "VP")),
        (3, 4, (TO_HEAD,)),
        (4, 8, ("NP",)),
        (4, 6, (TO_HEAD, SUB_HEAD)),
        (4, 5, (TO_HEAD,)),
        (6, 7, (TO_HEAD,)),
        (7, 8, (TO_HEAD,)),
    )
    assert from_division_span(rows, 9)[1] == [3, 3, 4, 0, 8, 5, 8, 4, 4]


def test_the_only_word_of_a_constituent_has_no_mark_of_its_own() -> None:
    rows = rows_of("(S (A (B (T a))) (C (T b)) (D (T c)))", [2, 0, 2])
    assert rows == (
        (0, 3, (TO_HEAD, "S")),
        (0, 1, (TO_HEAD, "A", "B")),
        (1, 2, (TO_HEAD, "C")),
        (2, 3, ("D",)),
    )


@given(tree=trees(max_words=8), data=st.data())
def test_any_marks_give_a_tree(tree: Tree, data: st.DataObject) -> None:
    n = len(tree)
    spans = list(collapsed_spans(tree))
    named = {row[:2] for row in spans}
    spans += [(i, i + 1, ()) for i in range(n) if (i, i + 1) not in named]
    marks = data.draw(st.lists(st.booleans(), min_size=len(spans), max_size=len(spans)))
    rows = [
        (start, end, (TO_HEAD, *label) if mark else label)
        for (start, end, label), mark in zip(spans, marks, strict=True)
        if mark or label
    ]
    rows.sort(key=lambda row: (row[0], -row[1]))
    plain, heads = from_division_span(rows, n)
    assert plain == list(collapsed_spans(tree))
    assert head_fault(heads) is None
    parse = to_parse(tree.words, tree.tags, plain, heads, ["r"] * n)
    assert parse.tree == tree
    assert parse.dependencies is not None
    # The head word of each constituent is that of its last child with a mark, else of its first.
    found = head_driven(tree, parse.dependencies) if tree.labels else None
    assert found is None or not found.changes.any()


def test_what_a_chart_may_find_and_no_structure_has() -> None:
    # No mark: the first child. A mark alone over two words: none. No span over all: one is meant.
    assert from_division_span([(0, 3, ("S",))], 3) == ([(0, 3, ("S",))], [0, 1, 1])
    rows: list[LabeledSpan] = [(0, 3, ("S",)), (0, 2, (TO_HEAD,)), (1, 2, (TO_HEAD,))]
    assert from_division_span(rows, 3) == ([(0, 3, ("S",))], [2, 0, 2])
    rows = [(0, 2, ("A",)), (1, 2, (TO_HEAD,)), (2, 3, (TO_HEAD, "B"))]
    assert from_division_span(rows, 3) == ([(0, 2, ("A",)), (2, 3, ("B",))], [2, 3, 0])
    assert from_division_span([], 2) == ([], [0, 1])
    # The last of several marks, and marks on a sub-head over all words.
    rows = [(0, 3, (TO_HEAD, SUB_HEAD)), (0, 1, (TO_HEAD,)), (1, 2, (TO_HEAD,))]
    plain, heads = from_division_span(rows, 3)
    assert heads == [2, 0, 2]
    tree = to_parse("abc", "TTT", plain, heads, "rrr").tree
    assert tree is not None
    assert not tree.labels


def test_a_label_with_the_name_of_the_mark() -> None:
    with pytest.raises(TreeError, match=f"label '{TO_HEAD}', which is reserved .* rename"):
        rows_of(f"(S ({TO_HEAD} (T a)) (T b))", [2, 0])
