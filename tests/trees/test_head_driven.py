"""Head-driven structures: against what a chart can find, over all small pairs of trees."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spmrl_bench.errors import TreeError
from spmrl_bench.readers.brackets import parse_brackets
from spmrl_bench.trees import Parse, Tree
from spmrl_bench.trees.dependencies import DependencyTree, head_fault
from spmrl_bench.trees.head_driven import (
    SUB_HEAD,
    Change,
    HeadDriven,
    attach_within_constituents,
    from_division_span,
    head_driven,
    several_headed,
    to_division_span,
    to_parse,
)
from spmrl_bench.trees.tree import LabeledSpan, collapsed_spans
from tests.trees.dependency_strategies import head_lists as drawn_heads
from tests.trees.head_driven_oracle import (
    bracketings,
    dependencies_of,
    fewest_sub_heads,
    head_lists,
    tree_of,
)
from tests.trees.strategies import trees


def structure_of(text: str, heads: Sequence[int]) -> HeadDriven:
    """That of a tree in brackets."""
    tree = parse_brackets(text)
    relations = ["r"] * len(heads)
    dependencies = DependencyTree.build(tree.words, tree.tags, heads, relations, roots="several")
    return head_driven(tree, dependencies)


def groups(found: HeadDriven) -> list[tuple[int, int, int]]:
    """Start, end and head word of its sub-heads."""
    rows = zip(found.rows, found.row_heads.tolist(), strict=True)
    return [(start, end, head) for (start, end, label), head in rows if label == (SUB_HEAD,)]


def depth(word: int, heads: Sequence[int]) -> int:
    return 1 + depth(heads[word - 1], heads) if word else 0


def check(tree: Tree, dependencies: DependencyTree) -> HeadDriven:
    """All that holds of any structure."""
    gold = dependencies.heads.tolist()
    n = len(gold)
    found = head_driven(tree, dependencies)
    heads = found.heads.tolist()

    # A chart can find it, and finds exactly these heads.
    assert head_fault(heads) is None
    assert fewest_sub_heads([row[:2] for row in found.rows], heads) == 0
    assert HeadDriven.build(found.rows, heads).row_heads.tolist() == found.row_heads.tolist()
    assert all(label != (SUB_HEAD,) or 1 < end - start < n for start, end, label in found.rows)

    # Heads change only where no labels whatever would save them, and no label is too many.
    needed = fewest_sub_heads([row[:2] for row in collapsed_spans(tree)], gold)
    changed = [word for word in range(1, n + 1) if heads[word - 1] != gold[word - 1]]
    assert (needed is None) == bool(changed)
    assert needed is None or found.sub_heads == needed
    assert np.flatnonzero(found.changes).tolist() == [word - 1 for word in changed]
    assert found.changed().total() == len(changed)

    # A head word is nearest to the root, and no word hangs from one that was below it.
    depths = [depth(word, gold) for word in range(n + 1)]
    for (start, end, _), head in zip(found.rows, found.row_heads.tolist(), strict=True):
        assert start < head <= end
        nearest = min(depths[start + 1 : end + 1])
        assert head == max(word for word in range(start + 1, end + 1) if depths[word] == nearest)
    assert all(depths[head] <= depths[word] for word, head in enumerate(heads, start=1))

    # Back again.
    back = to_parse(tree.words, tree.tags, found.rows, heads, dependencies.relations)
    assert back.tree == tree
    assert back.dependencies is not None
    assert back.dependencies == attach_within_constituents(tree, dependencies)
    assert back.dependencies.relations == dependencies.relations
    again = head_driven(tree, back.dependencies)
    assert (again.rows, again.heads.tolist()) == (found.rows, heads)
    assert not again.changes.any()

    # The same through marks on labels.
    rows, heads_of_marks = from_division_span(to_division_span(found), n)
    assert (tuple(rows), heads_of_marks) == (found.rows, heads)
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
                seen["changed"] += bool(found.changes.any())
                seen.update(change.name for change in found.changed().elements())
                seen["sub-heads"] += found.sub_heads
    return seen


def test_all_pairs_of_trees_of_up_to_four_words() -> None:
    assert [exhaust(n)["pairs"] for n in (2, 3)] == [2, 9 * 3]
    assert exhaust(4) == {
        "pairs": 64 * 11,
        "changed": 564,
        "sub-heads": 174,
        "SHARED_GOVERNOR": 108,
        "OTHER_GOVERNOR": 308,
        "LOST_HEAD": 30,
        "INSIDE": 236,
        "CROSSING": 94,
    }


def test_some_pairs_of_trees_of_five_words() -> None:
    assert exhaust(5, every=23)["pairs"] == 625 * 45 // 23


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
        [3, 3, 4, 0, 8, 5, 8, 4, 4],
    )
    assert found.rows == (
        (0, 9, ("S",)),
        (0, 3, ("NP",)),
        (3, 8, ("VP",)),
        (4, 8, ("NP",)),
        (4, 6, (SUB_HEAD,)),
    )
    assert found.row_heads.tolist() == [4, 3, 4, 8, 5]
    assert found.sub_heads == 1
    assert not found.changed()


def test_sub_heads_within_sub_heads_on_both_sides() -> None:
    flat = "(S (T a) (T b) (T c) (T d) (T e) (T f) (T g))"
    found = structure_of(flat, [2, 3, 4, 0, 7, 5, 4])
    assert groups(found) == [(0, 3, 3), (0, 2, 2), (4, 7, 7), (4, 6, 5)]
    assert not found.changed()
    # What is governed from both sides is one group.
    assert groups(structure_of(flat, [4, 3, 4, 6, 4, 0, 6])) == [(0, 5, 4), (1, 3, 3)]


def test_children_of_a_group_may_be_constituents() -> None:
    found = structure_of("(S (T a) (X (T b) (T c)) (Y (T d)) (T e))", [0, 4, 2, 1, 1])
    assert groups(found) == [(1, 4, 4)]
    assert found.rows[1:] == ((1, 4, (SUB_HEAD,)), (1, 3, ("X",)), (3, 4, ("Y",)))


X_AND_TWO = "(S (X (T a) (T b)) (T c) (T d))"


@pytest.mark.parametrize(
    ("text", "heads", "expected", "changes", "sub_heads"),
    [
        # Two heads of X below the same word, and below different ones; c below the one that lost.
        (X_AND_TWO, [4, 4, 4, 0], [2, 4, 4, 0], {Change.SHARED_GOVERNOR: 1}, []),
        (X_AND_TWO, [4, 3, 0, 3], [2, 3, 0, 3], {Change.OTHER_GOVERNOR: 1}, []),
        (
            X_AND_TWO,
            [4, 4, 1, 0],
            [2, 4, 2, 0],
            {Change.SHARED_GOVERNOR: 1, Change.LOST_HEAD: 1},
            [(0, 3, 2)],
        ),
        # c below a, where b is the head word of X.
        (X_AND_TWO, [2, 4, 1, 0], [2, 4, 2, 0], {Change.INSIDE: 1}, [(0, 3, 2)]),
        # c below a, over b.
        ("(S (T a) (T b) (T c) (T d))", [4, 4, 1, 0], [4, 4, 4, 0], {Change.CROSSING: 1}, []),
        # Two heads, the first of which governs the other from outside.
        ("(S (T c) (X (T a) (T b)))", [2, 0, 1], [2, 0, 2], {Change.OTHER_GOVERNOR: 1}, []),
        # Two roots.
        ("(S (T a) (T b))", [0, 0], [2, 0], {Change.SHARED_GOVERNOR: 1}, []),
    ],
)
def test_what_changes_and_why(
    text: str,
    heads: list[int],
    expected: list[int],
    changes: dict[Change, int],
    sub_heads: list[tuple[int, int, int]],
) -> None:
    found = structure_of(text, heads)
    assert found.heads.tolist() == expected
    assert found.changed() == changes
    assert groups(found) == sub_heads


def test_constituents_with_several_heads() -> None:
    tree = parse_brackets("(S (X (Y (Z (T a) (T b)))) (T c))")
    dependencies = DependencyTree.build("abc", "TTT", [3, 3, 0], "rrr")
    assert several_headed(tree, dependencies) == [(0, 2, ("X", "Y", "Z"))]
    assert not several_headed(tree, DependencyTree.build("abc", "TTT", [2, 3, 0], "rrr"))


@pytest.mark.parametrize("text", ["(A (T x))", "(A (B (C (T x))))"])
def test_a_sentence_of_one_word(text: str) -> None:
    found = structure_of(text, [0])
    assert found.rows == tuple(collapsed_spans(parse_brackets(text)))
    assert (found.heads.tolist(), found.row_heads.tolist()) == ([0], [1])
    assert from_division_span(to_division_span(found), 1) == (list(found.rows), [0])


def test_a_sentence_of_thousands_of_words() -> None:
    n = 3000
    right = [(i, n) for i in range(n - 1)]
    chain = list(range(n))
    found = head_driven(tree_of(right, n), dependencies_of(chain))
    assert not found.changed()
    assert found.sub_heads == 0
    flat = head_driven(tree_of([(0, n)], n), dependencies_of(chain))
    assert groups(flat) == [(i, n, i + 1) for i in range(1, n - 1)]


def test_dependencies_that_agree_stay_the_same_object() -> None:
    tree = parse_brackets("(S (T a) (T b))")
    dependencies = DependencyTree.build("ab", "TT", [2, 0], "rr")
    assert attach_within_constituents(tree, dependencies) is dependencies


def test_a_structure_is_a_frozen_value() -> None:
    found, other = (structure_of("(S (T a) (T b))", heads) for heads in ([2, 0], [0, 1]))
    assert found == structure_of("(S (T a) (T b))", [2, 0])
    assert hash(found) == hash(structure_of("(S (T a) (T b))", [2, 0]))
    assert found != other
    assert found != "a b"
    # The same heads, but one of them is not as given.
    assert found != structure_of("(S (T a) (T b))", [0, 0])
    assert len(found) == 2
    assert (found.heads.dtype, found.row_heads.dtype, found.changes.dtype) == ("i4", "i4", "i1")
    for array in (found.heads, found.row_heads, found.changes):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


def test_what_has_no_structure() -> None:
    tree = parse_brackets("(S (T a) (T b))")
    with pytest.raises(TreeError, match="over different words: 'a b' and 'a c'"):
        head_driven(tree, DependencyTree.build("ac", "TT", [2, 0], "rr"))
    with pytest.raises(TreeError, match="over different words"):
        head_driven(Tree.build([], [], []), DependencyTree.build("a", "T", [0], "r"))
    for text in ("( (S (T a)) (T b))", "(T a)"):
        tree = parse_brackets(text)
        bare = Tree.build(tree.words, tree.tags, [row for row in tree.constituents() if row[2]])
        n = len(bare)
        dependencies = DependencyTree.build(bare.words, bare.tags, range(n), ["r"] * n)
        with pytest.raises(TreeError, match=r"whole sentence.*begins: a.*root transform"):
            head_driven(bare, dependencies)
    with pytest.raises(TreeError, match=f"label '{SUB_HEAD}', which is reserved.*rename"):
        structure_of(f"(S ({SUB_HEAD} (T a)) (T b))", [2, 0])


S = (0, 3, ("S",))


@pytest.mark.parametrize(
    ("rows", "heads", "problem"),
    [
        ([], [2, 0, 2], "over all 3 words, found none"),
        ([(0, 2, ("S",))], [2, 0, 2], r"over all 3 words, found \[0, 2\) of 'S'"),
        ([S, (0, 3, ("T",))], [2, 0, 2], "labelled spans that differ"),
        ([S, (0, 2, ())], [2, 0, 2], r"found \[0, 3\) of 'S', \[0, 2\) of ''"),
        ([S, (1, 3, ("A",)), (0, 2, ("B",))], [2, 0, 2], "crosses another or is out of order"),
        ([S, (0, 1, (SUB_HEAD,))], [2, 0, 2], "neither over one word nor over all 3"),
        ([(0, 3, (SUB_HEAD,))], [2, 0, 2], "neither over one word nor over all 3"),
        ([S, (0, 2, ("A", SUB_HEAD))], [2, 0, 2], f"'{SUB_HEAD}' stands alone"),
        ([S], [2, 1, 0], "word 1: the heads form a cycle"),
        ([S], [0, 1, 0], "word 3: a second root"),
        ([S, (0, 2, ("A",))], [3, 3, 0], r"\[0, 2\) of 'A' has several head words: 1, 2"),
        ([S], [2, 3, 0], "head word 3, but its child with the head word 1 is governed by 2"),
        ([S, (0, 2, ("A", "B"))], [2, 0, 1], r"'S' has the head word 2, but .* 3 is governed by 1"),
    ],
)
def test_structures_that_no_chart_finds(
    rows: list[LabeledSpan], heads: list[int], problem: str
) -> None:
    with pytest.raises(TreeError, match=problem):
        HeadDriven.build(rows, heads)


def test_a_structure_may_be_built_with_more_sub_heads_than_are_needed() -> None:
    rows = [S, (0, 2, (SUB_HEAD,))]
    found = HeadDriven.build(rows, [2, 0, 2])
    assert found.row_heads.tolist() == [2, 2]
    assert to_parse("abc", "TTT", found.rows, [2, 0, 2], "rrr") == Parse.of(
        Tree.build("abc", "TTT", [(0, 3, "S")]),
        DependencyTree.build("abc", "TTT", [2, 0, 2], "rrr"),
    )
