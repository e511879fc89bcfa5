"""A parse has one layer or both over the same words."""

from __future__ import annotations

import pytest

from spmrl_bench.errors import TreeError
from spmrl_bench.readers.brackets import parse_brackets
from spmrl_bench.trees.dependencies import DependencyTree
from spmrl_bench.trees.parse import Parse

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
    assert changed.tree is not None
    assert changed.dependencies is not None
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
