"""Head-driven structures and division spans: against what a chart can find, over small trees."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spmrl_bench.errors import TreeError
from spmrl_bench.readers.brackets import parse_brackets
from spmrl_bench.treebanks.treebank import open_treebank
from spmrl_bench.trees import DependencyTree, Parse, Tree
from spmrl_bench.trees.dependencies import depths, head_fault
from spmrl_bench.trees.head_driven import (
    SUB_HEAD,
    TO_HEAD,
    HeadDriven,
    from_division_span,
    head_driven,
    to_division_span,
    to_parse,
)
from spmrl_bench.trees.tree import LabeledSpan, collapsed_spans
from tests.conftest import shared_data
from tests.trees.head_driven_oracle import (
    bracketings,
    dependencies_of,
    fewest_sub_heads,
    head_lists,
    tree_of,
)
from tests.trees.strategies import head_lists as drawn_heads
from tests.trees.strategies import trees


def structure_of(text: str, heads: Sequence[int]) -> HeadDriven:
    """That of a tree in brackets."""
    tree = parse_brackets(text)
    relations = ["r"] * len(heads)
    dependencies = DependencyTree.build(tree.words, tree.tags, heads, relations, roots="several")
    return head_driven(tree, dependencies)


def groups(found: HeadDriven) -> list[tuple[int, int, int]]:
    """Start, end and head word of its sub-heads."""
    rows = zip(found.rows, found.row_heads, strict=True)
    return [(start, end, head) for (start, end, label), head in rows if label == (SUB_HEAD,)]


def there_and_back(tree: Tree, dependencies: DependencyTree) -> HeadDriven:
    """A structure with these constituents, also after division spans."""
    found = head_driven(tree, dependencies)
    rows, heads = from_division_span(to_division_span(found), len(tree))
    assert (tuple(rows), heads) == (found.rows, found.heads.tolist())
    back = to_parse(tree.words, tree.tags, rows, heads, dependencies.relations)
    assert back == Parse.of(tree, replace(dependencies, tags=tree.tags, heads=found.heads))
    return found


def check(tree: Tree, dependencies: DependencyTree) -> HeadDriven:
    """All that holds of any structure."""
    gold = dependencies.heads.tolist()
    n = len(gold)
    found = there_and_back(tree, dependencies)
    heads = found.heads.tolist()

    # A chart can find it, and finds exactly these heads.
    assert head_fault(heads) is None
    assert fewest_sub_heads([row[:2] for row in found.rows], heads) == 0
    assert all(label != (SUB_HEAD,) or 1 < end - start < n for start, end, label in found.rows)

    # Heads change only where no labels whatever would save them, and no label is too many.
    needed = fewest_sub_heads([row[:2] for row in collapsed_spans(tree)], gold)
    assert (needed is None) == (heads != gold)
    assert needed is None or len(groups(found)) == needed

    # A head word is nearest to the root, and no word hangs from one that was below it.
    above = [0, *depths(gold)]
    for (start, end, _), head in zip(found.rows, found.row_heads, strict=True):
        words = range(start + 1, end + 1)
        assert [word for word in words if heads[word - 1] not in words] == [head]
        assert head == min(words, key=lambda word: (above[word], -word))
    assert all(above[head] <= above[word] for word, head in enumerate(heads, start=1))

    # Once its heads are those of a structure, nothing changes.
    again = head_driven(tree, replace(dependencies, heads=found.heads))
    assert (again.rows, again.heads.tolist()) == (found.rows, heads)
    return found


def exhaust(n: int, every: int = 1) -> Counter[str]:
    """Check pairs of all trees and all dependency trees of ``n`` words, and count."""
    seen: Counter[str] = Counter()
    number = 0
    for heads in head_lists(n):
        dependencies = dependencies_of(heads)
        for spans in bracketings(n):
            number += 1
            if number % every == 0:
                found = check(tree_of(spans, n), dependencies)
                seen["pairs"] += 1
                seen["changed"] += found.heads.tolist() != heads
                seen["moved"] += int((found.heads != dependencies.heads).sum())
                seen["sub-heads"] += len(groups(found))
    return seen


def test_all_pairs_of_trees_of_up_to_four_words() -> None:
    assert [exhaust(n)["pairs"] for n in (2, 3)] == [2, 9 * 3]
    moved = 108 + 308 + 30 + 236 + 94
    assert exhaust(4) == {"pairs": 64 * 11, "changed": 564, "moved": moved, "sub-heads": 174}


def test_some_pairs_of_trees_of_five_words() -> None:
    assert exhaust(5, every=61)["pairs"] == 625 * 45 // 61


@pytest.mark.campaign
def test_all_pairs_of_trees_of_five_words_and_some_of_six() -> None:
    assert exhaust(5)["pairs"] == 625 * 45
    assert exhaust(6, every=101)["pairs"] == 7776 * 197 // 101


@given(data=st.data(), tree=trees(max_words=9))
def test_any_tree_with_any_dependencies(data: st.DataObject, tree: Tree) -> None:
    heads = data.draw(drawn_heads(len(tree), "several"))
    relations = [f"r{i}" for i in range(len(tree))]
    dependencies = DependencyTree.build(tree.words, tree.tags, heads, relations, roots="several")
    if not tree.labels:
        with pytest.raises(TreeError, match="no constituent covers the whole sentence"):
            head_driven(tree, dependencies)
        return
    check(tree, dependencies)


def test_the_example_of_the_paper() -> None:
    found = structure_of(
        "(S (NP (T Federal) (T Paper) (T Board))"
        " (VP (T sells) (NP (T paper) (T and) (T wood) (T products))) (T .))",
        heads := [3, 3, 4, 0, 8, 5, 8, 4, 4],
    )
    labels = ("S",), ("NP",), ("VP",), ("NP",), (SUB_HEAD,)
    spans = (0, 9), (0, 3), (3, 8), (4, 8), (4, 6)
    assert found.rows == tuple((*span, label) for span, label in zip(spans, labels, strict=True))
    assert found.row_heads == (4, 3, 4, 8, 5)
    assert found.heads.tolist() == heads
    assert not found.heads.flags.writeable
    assert to_division_span(found) == (
        (0, 9, (TO_HEAD, "S")),
        (0, 3, (TO_HEAD, "NP")),
        *((i, i + 1, (TO_HEAD,)) for i in range(3)),
        (3, 8, (TO_HEAD, "VP")),
        (3, 4, (TO_HEAD,)),
        (4, 8, ("NP",)),
        (4, 6, (TO_HEAD, SUB_HEAD)),
        (4, 5, (TO_HEAD,)),
        (6, 7, (TO_HEAD,)),
        (7, 8, (TO_HEAD,)),
    )


def test_sub_heads_within_sub_heads_on_both_sides() -> None:
    flat = "(S (T a) (T b) (T c) (T d) (T e) (T f) (T g))"
    found = structure_of(flat, heads := [2, 3, 4, 0, 7, 5, 4])
    assert groups(found) == [(0, 3, 3), (0, 2, 2), (4, 7, 7), (4, 6, 5)]
    assert found.heads.tolist() == heads
    # What hangs from one word on both sides is one group.
    assert groups(structure_of(flat, [4, 3, 4, 6, 4, 0, 6])) == [(0, 5, 4), (1, 3, 3)]


def test_which_heads_change() -> None:
    two = "(S (X (T a) (T b)) (T c) (T d))"
    for text, heads, expected, sub_heads in [
        # Two heads of X below the same word, and below different ones; c below the one that lost.
        (two, [4, 4, 4, 0], [2, 4, 4, 0], []),
        (two, [4, 3, 0, 3], [2, 3, 0, 3], []),
        (two, [4, 4, 1, 0], [2, 4, 2, 0], [(0, 3, 2)]),
        # c below a, where b is the head word of X.
        (two, [2, 4, 1, 0], [2, 4, 2, 0], [(0, 3, 2)]),
        # c below a, over b.
        ("(S (T a) (T b) (T c) (T d))", [4, 4, 1, 0], [4, 4, 4, 0], []),
        # Two heads, the first of which hangs from outside and is above the other.
        ("(S (T c) (X (T a) (T b)))", [2, 0, 1], [2, 0, 2], []),
        # Two roots.
        ("(S (T a) (T b))", [0, 0], [2, 0], []),
    ]:
        found = structure_of(text, heads)
        assert (found.heads.tolist(), groups(found)) == (expected, sub_heads), (text, heads)


def test_a_sentence_of_one_word() -> None:
    for text in ("(A (T x))", "(A (B (C (T x))))"):
        found = structure_of(text, [0])
        assert found.rows == tuple(collapsed_spans(parse_brackets(text)))
        assert (found.heads.tolist(), found.row_heads) == ([0], (1,))
        assert from_division_span(to_division_span(found), 1) == (list(found.rows), [0])


def test_a_sentence_of_thousands_of_words() -> None:
    n = 3000
    chain = dependencies_of(list(range(n)))
    found = head_driven(tree_of([(i, n) for i in range(n - 1)], n), chain)
    assert (found.heads == chain.heads).all()
    assert not groups(found)
    flat = head_driven(tree_of([(0, n)], n), chain)
    assert groups(flat) == [(i, n, i + 1) for i in range(1, n - 1)]


def test_what_has_no_structure() -> None:
    tree = parse_brackets("(S (T a) (T b))")
    with pytest.raises(TreeError, match="over different words: 'a b' and 'a c'"):
        head_driven(tree, DependencyTree.build("ac", "TT", [2, 0], "rr"))
    with pytest.raises(TreeError, match="over different words"):
        head_driven(Tree.build([], [], []), DependencyTree.build("a", "T", [0], "r"))
    for bare in (Tree.build("ab", "TT", [(0, 1, "S")]), Tree.build("a", "T", [])):
        n = len(bare)
        dependencies = DependencyTree.build(bare.words, bare.tags, range(n), ["r"] * n)
        with pytest.raises(TreeError, match=r"whole sentence.*begins: a"):
            head_driven(bare, dependencies)
    with pytest.raises(TreeError, match=f"label '{SUB_HEAD}', which is reserved"):
        structure_of(f"(S ({SUB_HEAD} (T a)) (T b))", [2, 0])
    with pytest.raises(TreeError, match=f"label '{TO_HEAD}', which is reserved"):
        to_division_span(structure_of(f"(S ({TO_HEAD} (T a)) (T b))", [2, 0]))


def test_the_only_word_of_a_constituent_has_no_mark_of_its_own() -> None:
    found = structure_of("(S (A (B (T a))) (C (T b)) (D (T c)))", [2, 0, 2])
    assert to_division_span(found) == (
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
    # The head word of each constituent is that of its last child with a mark, else of its first.
    if tree.labels:
        assert np.array_equal(head_driven(tree, parse.dependencies).heads, heads)


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
    assert not tree.labels


#: Sub-heads in as many sentences of the mini treebanks, whose heads all stay.
SENTENCES = 100
MINI = {
    "arabic": 67, "basque": 70, "chinese": 82, "english": 45, "french": 34, "german": 84,
    "hebrew": 75, "hungarian": 66, "korean": 12, "polish": 51, "swedish": 75,
}  # fmt: skip


def counted(parses: Sequence[Parse]) -> tuple[int, int]:
    """The sub-heads of sentences, and how many heads move."""
    sub_heads = moved = 0
    for parse in parses:
        found = there_and_back(parse.tree, parse.dependencies)
        sub_heads += len(groups(found))
        moved += int((found.heads != parse.dependencies.heads).sum())
    return sub_heads, moved


@pytest.mark.parametrize(
    "language",
    [pytest.param(name, marks=[pytest.mark.campaign] * (name != "chinese")) for name in MINI],
)
def test_mini_treebanks(language: str) -> None:
    parses = open_treebank(f"{language}-mini").examples("dev")
    assert counted(parses[:SENTENCES]) == (MINI[language], 0)


def test_heads_of_constituents_by_rule() -> None:
    bank = open_treebank("english-wsj-sample", shared_data("treebanks"))
    assert counted(bank.examples("dev")[:SENTENCES]) == (0, 0)


@pytest.mark.campaign
def test_constituents_and_dependencies_of_two_schemes() -> None:
    bank = open_treebank("french-sequoia", shared_data("treebanks"))
    assert counted(bank.examples("dev")) == (522, 47 + 24 + 2 + 7 + 7)
