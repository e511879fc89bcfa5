"""Trees as arrays: what is one, unary chains as single labels, trees of NLTK, and parses."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spmrl_bench.errors import SpmrlError, TreeError
from spmrl_bench.readers.brackets import parse_brackets
from spmrl_bench.trees import Tree
from spmrl_bench.trees.dependencies import DependencyTree
from spmrl_bench.trees.escapes import write_brackets
from spmrl_bench.trees.parse import Parse
from spmrl_bench.trees.tree import Constituent, LabeledSpan, collapsed_spans, expand_chains
from tests.trees.strategies import trees

nltk = pytest.importorskip("nltk")
N = nltk.Tree


def test_what_is_no_tree() -> None:
    for tags, rows, problem in [
        ("t", [], "2 words but 1 tags"),
        ("tt", [(0, 3, "A")], r"\[0, 3\) of 'A' is not inside 0..2"),
        ("tt", [(1, 1, "A")], r"\[1, 1\)"),
        ("tt", [(-1, 1, "A")], r"\[-1, 1\)"),
        ("tt", [(1, 2, "A"), (0, 1, "B")], "'B' crosses another or is out of order"),
        ("tt", [(0, 1, "A"), (0, 2, "B")], "'B' crosses"),
    ]:
        with pytest.raises(TreeError, match=problem):
            Tree.build("ab", tags, rows)


def chains(text: str) -> list[LabeledSpan]:
    return list(collapsed_spans(parse_brackets(text)))


def test_a_unary_chain_is_one_label_from_top_to_bottom_without_tags() -> None:
    assert chains("(A (B (C (t x) (D (E (u y))))))") == [
        (0, 2, ("A", "B", "C")),
        (1, 2, ("D", "E")),
    ]
    assert chains("(A (A (t x)) (A (t y)))") == [(0, 2, ("A",)), (0, 1, ("A",)), (1, 2, ("A",))]
    assert chains("(A (A (t x)))") == [(0, 1, ("A", "A"))]
    assert not list(collapsed_spans(Tree.build(["x"], ["t"], [])))


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(1, 6), st.sampled_from("ABC"))))
def test_chains_written_out_are_the_constituents(drawn: list[Constituent]) -> None:
    spans: list[Constituent] = []
    for i, j, label in drawn:
        crosses = any(a < i < b < j or i < a < j < b for a, b, _ in spans)
        if i < j and not crosses:
            spans.append((i, j, label))
    spans.sort(key=lambda row: (row[0], -row[1]))
    found = list(collapsed_spans(Tree.build("abcdef", "tttttt", spans)))
    assert list(expand_chains(found)) == spans
    assert len({row[:2] for row in found}) == len(found)


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
    assert tree.to_nltk() == as_nltk(tree)
    assert Tree.from_nltk(as_nltk(tree)) == tree


@given(tree=trees())
def test_what_nltk_reads_from_our_text_is_the_same_tree(tree: Tree) -> None:
    text = write_brackets(tree, "ptb")
    # NLTK takes every Unicode white space for a separator (ours is ASCII), and the bracket after
    # a word that ends in a backslash for a part of the word.
    if text.split() == text.split(" ") and "\\)" not in text:
        assert Tree.from_nltk(N.fromstring(text), "ptb") == tree


def test_what_nltk_reads_is_what_we_read() -> None:
    for text in [
        "( (S (NP-SBJ (DT the)) (VP (VBD ran))) )",
        "(NN dog)",
        "(X (X (X (NN dog))))",
        "(S (NP (-LRB- -LRB-) (NN 1\\/2)) (VP (VB go)))",
    ]:
        assert Tree.from_nltk(N.fromstring(text), "ptb") == parse_brackets(text)


def test_words_are_taken_as_they_are_unless_escapes_are_named() -> None:
    tree = N("NP", [N("-LRB-", ["-LRB-"]), N("NN", ["a b"])])
    assert Tree.from_nltk(tree).words == ("-LRB-", "a b")
    assert Tree.from_nltk(tree, "brackets").words == ("(", "a b")
    with pytest.raises(SpmrlError, match="escape policy 'ptp'"):
        Tree.from_nltk(tree, "ptp")


def test_depth_is_unlimited() -> None:
    depth = 5_000
    assert depth > sys.getrecursionlimit()
    labels = [f"L{level}" for level in range(depth)]
    tree = N("T", ["w"])
    for label in reversed(labels):
        tree = N(label, [tree])
    deep = Tree.build(["w"], ["T"], [(0, 1, label) for label in labels])
    assert Tree.from_nltk(tree) == Tree.from_nltk(deep.to_nltk()) == deep


def test_a_tree_without_leaves_has_no_words() -> None:
    for tree in (N("", []), N("", [N("", [])]), N("S", [N("NP", [])])):
        assert len(Tree.from_nltk(tree)) == 0


def test_what_is_no_tree_of_words_is_refused() -> None:
    for tree, message in [
        (N("NP", ["the", N("NN", ["dog"])]), "leaf 'the' below 'NP' of an nltk tree has no tag"),
        (N("NP", [N("DT", ["the"]), "dog"]), "leaf 'dog' below 'NP'"),
        (N("NN", ["two", "words"]), "leaf 'two' below 'NN'"),
        (N("S", [N("NP", []), N("NN", ["dog"])]), "constituent 'NP' .* holds no word"),
        (N("NN", [7]), "leaf .* string, found 7"),
        (N("NP", [N("DT", ["the"]), None]), "leaf .* string, found None"),
        (N(None, [N("NN", ["dog"])]), "label .* string, found None"),
        ("(NN dog)", "expected an nltk tree, found str"),
        (["dog"], "expected an nltk tree, found list"),
    ]:
        with pytest.raises(TreeError, match=message):
            Tree.from_nltk(tree)


TREE = parse_brackets("(S (NP (N dogs)) (VP (V bark)))")
ARCS = DependencyTree.build(["dogs", "bark"], ["NOUN", "VERB"], [2, 0], ["nsubj", "root"])


def test_layers() -> None:
    assert Parse.of(TREE).layers == ("constituents",)
    assert Parse.of(None, ARCS).layers == ("dependencies",)
    assert Parse.of(TREE, ARCS).layers == ("constituents", "dependencies")
    both = Parse.of(TREE, ARCS)
    assert (both.layer("constituents"), both.layer("dependencies")) == (TREE, ARCS)
    assert Parse.of(TREE).layer("dependencies") is None


def test_words_and_tags_are_those_of_the_tree_where_there_is_one() -> None:
    assert (Parse.of(TREE, ARCS).words, Parse.of(TREE, ARCS).tags) == (TREE.words, ("N", "V"))
    assert Parse.of(None, ARCS).tags == ("NOUN", "VERB")
    assert len(Parse.of(None, ARCS)) == 2


def test_other_tags_stand_in_every_layer() -> None:
    changed = Parse.of(TREE, ARCS).with_tags(["X", "Y"])
    assert changed.tags == changed.tree.tags == changed.dependencies.tags == ("X", "Y")
    assert list(changed.tree.constituents()) == list(TREE.constituents())
    assert changed.with_tags(TREE.tags) != Parse.of(TREE, ARCS)  # the arcs had other tags
    assert Parse.of(TREE).with_tags(["X", "Y"]).dependencies is None


def test_what_it_shows() -> None:
    assert str(Parse.of(TREE, ARCS)) == "(S (NP (N dogs)) (VP (V bark)))"
    assert str(Parse.of(None, ARCS)) == "dogs/nsubj/2 bark/root/0"


def test_what_is_no_parse() -> None:
    with pytest.raises(TreeError, match="needs constituents or dependencies, and has neither"):
        Parse.of()
    other = DependencyTree.build(["cats", "bark"], ["N", "V"], [2, 0], ["nsubj", "root"])
    with pytest.raises(TreeError, match="over different words: 'dogs bark' and 'cats bark'"):
        Parse.of(TREE, other)
