"""Trees from NLTK: any words, any depth, and messages for what is no tree of words."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from hypothesis import given

from spmrl_bench.errors import SpmrlError, TreeError
from spmrl_bench.readers.brackets import parse_brackets
from spmrl_bench.trees import Tree
from spmrl_bench.trees.escapes import write_brackets
from spmrl_bench.trees.tree import from_nltk
from tests.trees.strategies import trees

nltk = pytest.importorskip("nltk")
N = nltk.Tree


def as_nltk(tree: Tree) -> Any:
    """A tree as NLTK's, whose constituents are put around lists of what is inside them."""
    parts = [
        (i, i + 1, N(tag, [word]))
        for i, (word, tag) in enumerate(zip(tree.words, tree.tags, strict=True))
    ]
    for start, end, label in reversed(list(tree.constituents())):
        inside = [part for first, last, part in parts if start <= first and last <= end]
        parts = [part for part in parts if not start <= part[0] < end]
        parts = sorted([*parts, (start, end, N(label, inside))], key=lambda part: part[0])
    return parts[0][2] if parts else N("", [])


@given(tree=trees())
def test_a_tree_comes_across_as_it_is(tree: Tree) -> None:
    assert from_nltk(as_nltk(tree)) == tree


@given(tree=trees())
def test_what_nltk_reads_from_our_text_is_the_same_tree(tree: Tree) -> None:
    text = write_brackets(tree, "ptb")
    # NLTK takes every Unicode white space for a separator (ours is ASCII), and the bracket after
    # a word that ends in a backslash for a part of the word.
    if text.split() == text.split(" ") and "\\)" not in text:
        assert from_nltk(N.fromstring(text), "ptb") == tree


@pytest.mark.parametrize(
    "text",
    [
        "(S (NP (DT the) (NN dog)) (VP (VBZ barks)))",
        "( (S (NP-SBJ (DT the)) (VP (VBD ran))) )",
        "(NN dog)",
        "(X (X (X (NN dog))))",
        "(S (NP (-LRB- -LRB-) (NN 1\\/2)) (VP (VB go)))",
    ],
)
def test_what_nltk_reads_is_what_we_read(text: str) -> None:
    assert from_nltk(N.fromstring(text), "ptb") == parse_brackets(text)


def test_words_are_taken_as_they_are_unless_escapes_are_named() -> None:
    tree = N("NP", [N("-LRB-", ["-LRB-"]), N("NN", ["a b"])])
    assert from_nltk(tree).words == ("-LRB-", "a b")
    assert from_nltk(tree, "brackets").words == ("(", "a b")


def test_depth_is_unlimited() -> None:
    depth = 5_000
    assert depth > sys.getrecursionlimit()
    labels = [f"L{level}" for level in range(depth)]
    tree = N("T", ["w"])
    for label in reversed(labels):
        tree = N(label, [tree])
    assert from_nltk(tree) == Tree.build(["w"], ["T"], [(0, 1, label) for label in labels])


@pytest.mark.parametrize("tree", [N("", []), N("", [N("", [])]), N("S", [N("NP", [])])])
def test_tree_without_leaves_has_no_words(tree: object) -> None:
    assert len(from_nltk(tree)) == 0


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        (N("NP", ["the", N("NN", ["dog"])]), "leaf 'the' below 'NP' of an nltk tree has no tag"),
        (N("NP", [N("DT", ["the"]), "dog"]), "leaf 'dog' below 'NP'"),
        (N("NN", ["two", "words"]), "leaf 'two' below 'NN'"),
        (N("S", [N("NP", []), N("NN", ["dog"])]), "constituent 'NP' of an nltk tree holds no word"),
        (N("NN", [7]), "leaf of an nltk tree must be a string, found 7"),
        (N("NP", [N("DT", ["the"]), 7]), "leaf of an nltk tree must be a string, found 7"),
        (N("NP", [N("DT", ["the"]), None]), "leaf of an nltk tree must be a string, found None"),
        (N(None, [N("NN", ["dog"])]), "label of an nltk tree must be a string, found None"),
        ("(NN dog)", "expected an nltk tree, found str"),
        (["dog"], "expected an nltk tree, found list"),
    ],
)
def test_what_is_no_tree_of_words_is_refused(tree: object, message: str) -> None:
    with pytest.raises(TreeError, match=message):
        from_nltk(tree)  # type: ignore[arg-type]


def test_unknown_escapes_are_named() -> None:
    with pytest.raises(SpmrlError, match=r"unknown escape policy 'ptp'. Did you mean ptb\?"):
        from_nltk(N("NN", ["dog"]), "ptp")
