"""Lifting and the way back, over all small trees: against definitions and a search written anew."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import product
from random import Random
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spmrl_bench.errors import TreeError
from spmrl_bench.trees.dependencies import DependencyTree, head_fault
from spmrl_bench.trees.projective import (
    EncodingName,
    decode_projective,
    encode_projective,
    is_projective,
    nonprojective_words,
    projectivize,
    pseudo_projective_lift,
)
from tests.trees.head_driven_oracle import head_lists
from tests.trees.strategies import head_lists as drawn_heads

encode = partial(encode_projective, encoding="head+path")
decode = partial(decode_projective, encoding="head+path")

#: The heads of all trees of up to five words, with any number of roots.
SMALL = [heads for n in range(1, 6) for heads in head_lists(n, "several")]


def dominated(word: int, head: int, heads: Sequence[int]) -> bool:
    while word != head and word:
        word = heads[word - 1]
    return word == head


def crossing(heads: Sequence[int]) -> list[int]:
    """The words whose arc spans one that the head does not dominate."""
    return [
        word
        for word, head in enumerate(heads, start=1)
        if head
        and not all(
            dominated(between, head, heads)
            for between in range(min(word, head) + 1, max(word, head))
        )
    ]


def lowest(heads: Sequence[int]) -> list[int]:
    """The projective lifting in which every word is as low as in any; fails if there is none."""
    above: list[list[int]] = []
    for head in heads:
        path = [head]
        while path[-1] and heads[path[-1] - 1]:
            path.append(heads[path[-1] - 1])
        above.append(path)
    liftings = [
        [path.index(head) for path, head in zip(above, found, strict=True)]
        for found in product(*above)
        if not crossing(found)
    ]
    least = [min(column) for column in zip(*liftings, strict=True)]
    assert least in liftings
    return [path[steps] for path, steps in zip(above, least, strict=True)]


def shortest_first(heads: Sequence[int]) -> list[int]:
    """Lifting by the algorithm of Nivre & Nilsson (2005), as it is written."""
    heads = list(heads)
    while found := crossing(heads):
        word = min(
            found, key=lambda word: (abs(word - heads[word - 1]), min(word, heads[word - 1]))
        )
        heads[word - 1] = heads[heads[word - 1] - 1]
    return heads


def test_all_trees_of_up_to_five_words() -> None:
    changed = 0
    for n in range(1, 6):
        for heads in head_lists(n):
            found = projectivize(heads)
            assert is_projective(heads) == (not crossing(heads)) == (found == heads)
            if found != heads:
                assert found == lowest(heads)
                changed += 1
    # 1 + 2 + 7 + 30 + 143 of the 1 + 2 + 9 + 64 + 625 trees are projective.
    assert changed == 2 + 34 + 482


def test_shortest_first_of_all_trees_of_up_to_five_words_with_any_roots() -> None:
    further = 0
    for heads in SMALL:
        found = pseudo_projective_lift(heads)
        assert nonprojective_words(heads) == crossing(heads)
        assert found == shortest_first(heads)
        assert not crossing(found)
        further += found != projectivize(heads)
    assert further == 126


@given(heads=st.integers(1, 12).flatmap(lambda n: drawn_heads(n, "several")))
def test_lifted_trees_are_projective_trees_of_words_that_were_above_before(
    heads: list[int],
) -> None:
    least, shortest = projectivize(heads), pseudo_projective_lift(heads)
    assert shortest == shortest_first(heads)
    for found in (least, shortest):
        assert not crossing(found)
        assert head_fault(found, "several") is None
        assert all(dominated(word, head, heads) for word, head in enumerate(found, start=1))
        assert (found == heads) == is_projective(heads) == (not crossing(heads))
        assert projectivize(found) == pseudo_projective_lift(found) == found
    assert all(
        dominated(low, high, heads) for low, high in zip(least, shortest, strict=True) if low
    )


def test_long_sentences_take_no_recursion() -> None:
    chain = list(range(5_000))
    assert projectivize(chain) == pseudo_projective_lift(chain) == chain
    chain[2:4] = [1, 2]  # the arcs from 1 to 3 and from 2 to 4 cross
    assert nonprojective_words(chain) == [4]
    assert pseudo_projective_lift(chain)[:6] == [0, 1, 1, 1, 4, 5]


def test_heads_that_form_no_tree() -> None:
    for function in (projectivize, pseudo_projective_lift, nonprojective_words):
        with pytest.raises(TreeError, match="cycle"):
            function([2, 1, 0])


def tree_of(heads: Sequence[int], relations: Sequence[str] | None = None) -> DependencyTree:
    """A tree, with relations that differ if none are given."""
    n = len(heads)
    relations = [f"r{word}" for word in range(1, n + 1)] if relations is None else relations
    return DependencyTree.build(["w"] * n, ["T"] * n, heads, relations, roots="several")


def lost(tree: DependencyTree) -> int:
    """How many heads do not come back; all relations do, and heads of words that stay."""
    encoded = encode(tree)
    back = decode(encoded)
    assert is_projective(encoded.heads.tolist())
    assert (back.words, back.tags, back.relations) == (tree.words, tree.tags, tree.relations)
    assert head_fault(back.heads.tolist(), "several") is None
    same = back.heads == tree.heads
    assert (same | (encoded.heads != tree.heads)).all()
    return int((~same).sum())


def test_only_one_of_them_concerns_quality() -> None:
    # "Z nich je jen jedna na kvalitu .", the example of Nivre & Nilsson (2005), figures 1 and 2.
    czech = ["AuxP", "Atr", "Pred", "AuxZ", "Sb", "AuxP", "Adv", "AuxK"]
    tree = tree_of([5, 1, 0, 5, 3, 3, 6, 0], czech)
    plain, encoded = encode_projective(tree, "projectivise"), encode(tree)
    assert plain.heads.tolist() == encoded.heads.tolist() == [3, 1, 0, 5, 3, 3, 6, 0]
    assert list(plain.relations) == czech
    assert list(encoded.relations) == ["AuxP↑Sb", *czech[1:4], "Sb↓", *czech[5:]]
    assert decode_projective(plain, "projectivise") is plain
    assert decode(encoded) == tree


def test_all_trees_of_up_to_five_words_come_back_if_relations_differ() -> None:
    moved = 0
    for heads in SMALL:
        assert not lost(tree_of(heads))
        moved += sum(a != b for a, b in zip(heads, pseudo_projective_lift(heads), strict=True))
    assert moved == 1722


@pytest.mark.parametrize(("names", "expected"), [("a", 129), ("ab", 64), ("abc", 35)])
def test_most_arcs_come_back_whatever_the_relations(names: str, expected: int) -> None:
    random = Random(1)
    found = 0
    for heads in SMALL:
        missing = lost(tree_of(heads, random.choices(names, k=len(heads))))
        moved = sum(a != b for a, b in zip(heads, pseudo_projective_lift(heads), strict=True))
        assert not missing or moved > 1  # the path of one word is no other's
        found += missing
    assert found == expected


@given(data=st.data())
def test_any_marks_on_any_tree(data: st.DataObject) -> None:
    n = data.draw(st.integers(1, 9))
    heads = data.draw(drawn_heads(n, data.draw(st.sampled_from(["one", "several"]))))
    texts = st.tuples(*map(st.sampled_from, ["ab", ["", "↑a", "↑b"], ["", "↓"]])).map("".join)
    relations = data.draw(st.lists(texts, min_size=n, max_size=n))
    found = decode(tree_of(heads, relations))
    assert list(found.relations) == [relation[0] for relation in relations]
    after = found.heads.tolist()
    assert head_fault(after, "several") is None
    assert 1 <= after.count(0) <= heads.count(0)


def test_marks_that_fit_nothing() -> None:
    found = decode(tree_of([0, 1, 1], ["root↑b↓", "b↓", "c↑d"]))
    assert (found.heads.tolist(), found.relations) == ([0, 1, 1], ("root", "b", "c"))
    # No path leads to the relation of the head, but it is there.
    found = decode(tree_of([0, 1, 1, 3], ["root", "a↑c", "b↓", "c"]))
    assert found.heads.tolist() == [0, 4, 1, 3]


@given(data=st.data())
def test_relations_with_marks_in_their_names(data: st.DataObject) -> None:
    heads = data.draw(st.integers(1, 7).flatmap(lambda n: drawn_heads(n, "several")))
    n = len(heads)
    names = st.lists(st.text("↑↓\\ab:|%", max_size=4), min_size=n, max_size=n, unique=True)
    tree = tree_of(heads, data.draw(names))
    assert not lost(tree)
    encoded = encode(tree).relations
    assert len(set(encoded)) == len(encoded)


def test_common_relations_stay_as_they_are_and_projective_trees_too() -> None:
    tree = tree_of([2, 0, 2, 3], ["nmod:poss", "a|b", "%", "x||y#"])
    for encoding in get_args(EncodingName):
        assert encode_projective(tree, encoding) is tree
        assert decode_projective(tree, encoding) is tree
    assert encode(tree_of([0], ["a↑b\\↓"])).relations == ("a\\↑b\\\\\\↓",)


def test_what_is_no_encoded_relation() -> None:
    for relation in ("a↓b", "a\\", "a↑b↑c"):
        with pytest.raises(TreeError) as caught:
            decode(tree_of([0, 1], ["root", relation]))
        assert str(caught.value).startswith(f"word 2: '{relation}' is no relation of the encoding")
