"""What the tests expect of the mini treebank of a language, and the treebank itself.

Each ``test_<language>.py`` describes its grammar in ``LANGUAGE``. ``test_every_language.py`` asks
all grammars the same questions; what only one language can be asked stays in its own module.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass
from functools import cache

from spmrl_bench.treebanks.mini.generate import generate
from spmrl_bench.trees.dependencies import DependencyTree
from spmrl_bench.trees.parse import Parse
from spmrl_bench.trees.tree import Tree

SIZES = {"train": 2000, "dev": 300, "test": 300}
SEED = 1


@dataclass(frozen=True, kw_only=True)
class Language:
    """A grammar, and what is expected of its sentences.

    Attributes:
        name: the name of the grammar.
        root: the label over every sentence.
        labels: every label that occurs.
        tags: every tag that occurs; with ``joint``, every part of a tag.
        joint: what joins the parts of a tag; tags are whole where it is empty.
        shortest: bounds of the number of words of the shortest sentence.
        longest: the same for the longest one.
        mean: bounds of the mean number of words.
        known: least number of different words in train.
        unseen: bounds of the share of words of dev, and of test, that train does not have.
        capitals: whether sentences begin with a capital letter or a number.
        lower: whether the tests of the language see its nodes in lower case.
    """

    name: str
    root: str
    labels: Set[str]
    tags: Set[str]
    joint: str = ""
    shortest: tuple[int, int]
    longest: tuple[int, int] = (36, 40)
    mean: tuple[float, float]
    known: int
    unseen: tuple[float, float]
    capitals: bool = True
    lower: bool = False


@cache
def parses_of(name: str) -> dict[str, list[Parse]]:
    """The mini treebank of a language by splits; every test sees the same one."""
    return generate(name, SIZES, SEED)


@cache
def splits_of(name: str) -> dict[str, list[Tree]]:
    """Its constituents."""
    return {
        split: [constituents(parse) for parse in parses]
        for split, parses in parses_of(name).items()
    }


def trees_of(name: str) -> list[Tree]:
    """The constituents of all splits."""
    return [tree for part in splits_of(name).values() for tree in part]


def constituents(parse: Parse) -> Tree:
    assert parse.tree is not None
    return parse.tree


def dependencies(parse: Parse) -> DependencyTree:
    assert parse.dependencies is not None
    return parse.dependencies
