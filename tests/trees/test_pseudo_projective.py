"""Encodings of crossing arcs: worked examples, small trees, and a search written another way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import product
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spmrl_bench.errors import SpmrlError, TreeError
from spmrl_bench.trees.dependencies import DependencyTree, head_fault
from spmrl_bench.trees.projective import (
    ENCODINGS,
    ProjectiveEncoding,
    encoding_named,
    is_projective,
    nonprojective_words,
    pseudo_projective_lift,
)
from tests.trees.dependency_strategies import head_lists

MARKING = [encoding for encoding in ENCODINGS.values() if encoding.marks]


def tree_of(heads: Sequence[int], relations: Sequence[str] | None = None) -> DependencyTree:
    """A tree, with relations that differ if none are given."""
    n = len(heads)
    relations = [f"r{word}" for word in range(1, n + 1)] if relations is None else relations
    return DependencyTree.build(["w"] * n, ["T"] * n, heads, relations, roots="several")


def small_trees() -> Iterator[list[int]]:
    """The heads of all trees of up to five words, with any number of roots."""
    for n in range(1, 6):
        for heads in product(range(n + 1), repeat=n):
            if head_fault(heads, "several") is None:
                yield list(heads)


def random_heads(n: int, random: Random) -> list[int]:
    """Those of a tree with one root, in which each word hangs from any that is there already."""
    words = random.sample(range(1, n + 1), n)
    heads = [0] * n
    for place, word in enumerate(words[1:], start=1):
        heads[word - 1] = words[random.randrange(place)]
    return heads


def recovered(encoding: ProjectiveEncoding, tree: DependencyTree) -> int:
    """How many heads come back; all relations do, and the heads of words that were not lifted."""
    encoded = encoding.encode(tree)
    back = encoding.decode(encoded)
    assert is_projective(encoded.heads.tolist())
    assert (back.words, back.tags, back.relations) == (tree.words, tree.tags, tree.relations)
    assert head_fault(back.heads.tolist(), "several") is None
    same = back.heads == tree.heads
    assert (same | (encoded.heads != tree.heads)).all()
    return int(same.sum())


# "Z nich je jen jedna na kvalitu .", the example of Nivre & Nilsson (2005), figures 1 and 2.
CZECH_HEADS = [5, 1, 0, 5, 3, 3, 6, 0]
CZECH = ["AuxP", "Atr", "Pred", "AuxZ", "Sb", "AuxP", "Adv", "AuxK"]


@pytest.mark.parametrize(
    ("name", "changed"),
    [
        ("projectivise", {}),
        ("head", {1: "AuxP↑Sb"}),
        ("path", {1: "AuxP↑", 5: "Sb↓"}),
        ("head+path", {1: "AuxP↑Sb", 5: "Sb↓"}),
    ],
)
def test_only_one_of_them_concerns_quality(name: str, changed: dict[int, str]) -> None:
    tree = tree_of(CZECH_HEADS, CZECH)
    encoding = encoding_named(name)
    encoded = encoding.encode(tree)
    assert encoded.heads.tolist() == [3, 1, 0, 5, 3, 3, 6, 0]
    relations = [changed.get(word, relation) for word, relation in enumerate(CZECH, start=1)]
    assert list(encoded.relations) == relations
    assert encoding.decode(encoded) == (tree if encoding.marks else encoded)


@pytest.mark.parametrize(
    ("name", "relations"),
    [
        ("head", ["a", "b↑d", "c", "d", "e↑b"]),
        ("path", ["a", "b↑↓", "c", "d↓", "e↑"]),
        ("head+path", ["a", "b↑d↓", "c", "d↓", "e↑b"]),
    ],
)
def test_a_lifted_word_from_which_another_was_lifted(name: str, relations: list[str]) -> None:
    # Word 2 rises from 4 to 3, and then 5 from 2 to 3. Back, 2 goes first, and 5 finds it below 4.
    tree = tree_of([0, 4, 1, 3, 2], "abcde")
    encoding = encoding_named(name)
    encoded = encoding.encode(tree)
    assert encoded.heads.tolist() == [0, 3, 1, 3, 3]
    assert list(encoded.relations) == relations
    assert encoding.decode(encoded) == tree


def test_all_trees_of_up_to_five_words_with_relations_that_differ() -> None:
    lost: Counter[str] = Counter()
    for heads in small_trees():
        tree = tree_of(heads)
        moved = sum(a != b for a, b in zip(heads, pseudo_projective_lift(heads), strict=True))
        for name, encoding in ENCODINGS.items():
            missing = len(heads) - recovered(encoding, tree)
            if encoding.head or (encoding.path and moved == 1):
                assert not missing
            lost[name] += missing
            assert name != "projectivise" or missing == moved
    assert +lost == {"projectivise": 1722, "path": 129}


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ("a", {"head": 583, "path": 129, "head+path": 129}),
        ("ab", {"head": 326, "path": 129, "head+path": 64}),
        ("abc", {"head": 231, "path": 129, "head+path": 35}),
    ],
)
def test_all_trees_of_up_to_five_words_with_random_relations(
    names: str, expected: dict[str, int]
) -> None:
    random = Random(1)
    lost: Counter[str] = Counter()
    for heads in small_trees():
        tree = tree_of(heads, random.choices(names, k=len(heads)))
        moved = sum(a != b for a, b in zip(heads, pseudo_projective_lift(heads), strict=True))
        for name, encoding in ENCODINGS.items():
            missing = len(heads) - recovered(encoding, tree)
            assert not missing or moved > encoding.path  # the path of one word is no other's
            lost[name] += missing
    assert lost == {"projectivise": 1722, **expected}


def test_marks_of_both_kinds_bring_back_most_arcs_of_random_trees() -> None:
    random = Random(2)
    found: Counter[str] = Counter()
    for _ in range(500):
        n = random.randint(6, 14)
        tree = tree_of(random_heads(n, random), random.choices("abcd", k=n))
        for name, encoding in ENCODINGS.items():
            found[name] += recovered(encoding, tree)
    best, *others = sorted(found, key=lambda name: -found[name])
    assert best == "head+path"
    assert others[-1] == "projectivise"


def test_a_tree_of_which_marks_of_both_kinds_bring_back_less_than_one() -> None:
    tree = tree_of([2, 4, 1, 0, 2], "aaaaa")
    found = {name: recovered(encoding, tree) for name, encoding in ENCODINGS.items()}
    assert found == {"projectivise": 3, "head": 5, "path": 4, "head+path": 4}


class Search:
    """The way back by the rules, every word looked at and everything computed anew."""

    def __init__(
        self, encoding: ProjectiveEncoding, heads: Sequence[int], relations: Sequence[str]
    ) -> None:
        self.encoding = encoding
        self.heads = [0, *heads]
        self.words = range(1, len(self.heads))
        self.plain, self.lifted, self.head, self.on_path = [""], [False], [""], [False]
        for relation in relations:
            text = relation.removesuffix("↓")
            plain, arrow, head = text.partition("↑")
            self.plain.append(plain)
            self.lifted.append(arrow != "")
            self.head.append(head)
            self.on_path.append(text != relation)
        self.down(0)

    def down(self, head: int) -> None:
        for word in self.below(head):
            if self.lifted[word]:
                self.lifted[word] = False
                self.lower(word)
        for word in self.below(head):
            self.down(word)

    def below(self, head: int) -> list[int]:
        return [word for word in self.words if self.heads[word] == head]

    def way(self, word: int, end: int) -> list[int] | None:
        """The words from one up to the end, without it; None if it is not above."""
        found = []
        while word != end and word:
            found.append(word)
            word = self.heads[word]
        return found if word == end else None

    def lower(self, word: int) -> None:
        start, wanted = self.heads[word], self.head[word]
        ways = {other: self.way(other, start) for other in self.words}
        free = {other: way for other, way in ways.items() if way and word not in way}
        marked = {o: way for o, way in free.items() if all(self.on_path[step] for step in way)}
        inner = {self.heads[other] for other in marked}
        if self.encoding.path and self.encoding.head:
            fit = [other for other in marked if self.plain[other] == wanted]
        elif self.encoding.path:
            fit = [other for other in marked if other not in inner]
        else:
            fit = []
        if not fit and self.encoding.head:
            inner = set()
            fit = [other for other in free if self.plain[other] == wanted]
        if fit:
            self.heads[word] = min(
                fit,
                key=lambda other: (
                    other in inner,
                    not self.would_cross(word, other),
                    len(free[other]),
                    abs(other - word),
                    other,
                ),
            )

    def would_cross(self, word: int, head: int) -> bool:
        heads = self.heads[1:]
        heads[word - 1] = head
        return word in nonprojective_words(heads)


@pytest.mark.parametrize("encoding", MARKING, ids=lambda encoding: encoding.name)
@given(data=st.data())
def test_any_marks_on_any_tree(encoding: ProjectiveEncoding, data: st.DataObject) -> None:
    n = data.draw(st.integers(1, 9))
    heads = data.draw(head_lists(n, data.draw(st.sampled_from(["one", "several"]))))
    marks = ["", "↑a" if encoding.head else "↑", "↑b" if encoding.head else "↑"]
    texts = st.builds(
        lambda plain, mark, path: plain + mark + path,
        st.sampled_from("ab"),
        st.sampled_from(marks),
        st.sampled_from(["", "↓"] if encoding.path else [""]),
    )
    relations = data.draw(st.lists(texts, min_size=n, max_size=n))
    found = encoding.decode(tree_of(heads, relations))
    assert list(found.relations) == [relation[0] for relation in relations]
    after = found.heads.tolist()
    assert head_fault(after, "several") is None
    assert 1 <= after.count(0) <= heads.count(0)
    assert after == Search(encoding, heads, relations).heads[1:]


def test_a_mark_that_leads_nowhere_goes_and_the_arc_stays() -> None:
    for name, relations in [
        ("head", ["root↑b", "b", "c↑d"]),
        ("path", ["root↑↓", "b", "c↑"]),
        ("head+path", ["root↑b↓", "b↓", "c↑d"]),
    ]:
        found = encoding_named(name).decode(tree_of([0, 1, 1], relations))
        assert found.heads.tolist() == [0, 1, 1]
        assert found.relations == ("root", "b", "c")


def test_path_falls_back_on_the_relation_of_the_head() -> None:
    relations = ["root", "a↑c", "b↓", "c"]
    found = encoding_named("head+path").decode(tree_of([0, 1, 1, 3], relations))
    assert found.heads.tolist() == [0, 4, 1, 3]


def test_a_word_that_became_a_root_is_none_again() -> None:
    tree = tree_of([0, 0, 1], ["a", "b", "c"])
    for encoding in MARKING:
        encoded = encoding.encode(tree)
        assert encoded.heads.tolist() == [0, 0, 0]
        assert encoding.decode(encoded) == tree


NAMES = st.text("↑↓\\ab:|%", max_size=4)


@pytest.mark.parametrize("encoding", ENCODINGS.values(), ids=list(ENCODINGS))
@given(data=st.data())
def test_relations_with_marks_in_their_names(
    encoding: ProjectiveEncoding, data: st.DataObject
) -> None:
    heads = data.draw(st.integers(1, 7).flatmap(lambda n: head_lists(n, "several")))
    relations = data.draw(st.lists(NAMES, min_size=len(heads), max_size=len(heads), unique=True))
    tree = tree_of(heads, relations)
    assert recovered(encoding, tree) == len(tree) or not encoding.head
    encoded = encoding.encode(tree).relations
    assert len(set(encoded)) == len(encoded)


def test_common_relations_stay_as_they_are_and_projective_trees_too() -> None:
    tree = tree_of([2, 0, 2, 3], ["nmod:poss", "a|b", "%", "x||y#"])
    for encoding in ENCODINGS.values():
        assert encoding.encode(tree) is tree
        assert encoding.decode(tree) is tree
    assert encoding_named("head").encode(tree_of([0], ["a↑b\\↓"])).relations == ("a\\↑b\\\\\\↓",)


@pytest.mark.parametrize(
    ("name", "relation", "expected"),
    [
        ("head", "a↓", "d, d↑h, with"),
        ("head", "a↑b↓", "d, d↑h, with"),
        ("head", "a↑b↑c", "d, d↑h, with"),
        ("path", "a↑b", "d, d↑, d↓, d↑↓, with"),
        ("head+path", "a↓b", "d, d↑h, d↓, d↑h↓, with"),
        ("head+path", "a\\", "d, d↑h, d↓, d↑h↓, with"),
    ],
)
def test_relations_of_another_encoding(name: str, relation: str, expected: str) -> None:
    with pytest.raises(TreeError) as caught:
        encoding_named(name).decode(tree_of([0, 1], ["root", relation]))
    start = f"word 2: '{relation}' is no relation of the encoding '{name}'; expected {expected}"
    assert str(caught.value).startswith(start)


def test_unknown_encoding() -> None:
    with pytest.raises(SpmrlError, match=r"unknown encoding of crossing arcs 'heads'.*head\+path"):
        encoding_named("heads")
