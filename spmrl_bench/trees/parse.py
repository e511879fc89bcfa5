"""A parse: what a treebank gives for a sentence, and what a parser answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

from spmrl_bench.errors import TreeError
from spmrl_bench.trees.dependencies import DependencyTree
from spmrl_bench.trees.escapes import write_brackets
from spmrl_bench.trees.tree import Tree

#: A layer of annotation.
Layer = Literal["constituents", "dependencies"]
LAYERS: tuple[Layer, ...] = get_args(Layer)

#: What is less likely is left out of :class:`Probabilities`.
LEAST: Mapping[Layer, float] = {"constituents": 1e-3, "dependencies": 1e-5}


@dataclass(frozen=True, slots=True)
class Probabilities:
    """How likely a parser finds what could be a part of a sentence's annotation.

    Attributes:
        log_tree: natural logarithm of the probability of the parse itself, without its relations
            and tags; NaN where it cannot be told.
        constituents: of each ``(start, end, label)``, by fenceposts, that has :data:`LEAST` at
            least. Of the labels of a unary chain each has the probability of all chains with it.
        arcs: likewise of each ``(word, head)``, counted from 1, with 0 for the root.
        relations: likewise of each ``(word, head, relation)``.
        tags: of the tag that the parser predicts for each word.
    """

    log_tree: float
    constituents: Mapping[tuple[int, int, str], float] | None = None
    arcs: Mapping[tuple[int, int], float] | None = None
    relations: Mapping[tuple[int, int, str], float] | None = None
    tags: Sequence[float] | None = None


@dataclass(frozen=True, slots=True)
class Parse:
    """A sentence of ``n`` words with one layer of annotation or both; build with :meth:`of`.

    Attributes:
        words: the ``n`` words; a sentence without any has a tree without words.
        tags: the ``n`` part-of-speech tags; those of the tree where there is one.
        tree: its constituents, or None.
        dependencies: its heads and relations, or None.
        probabilities: of a parser that was asked for them.
        best: the best parses with their scores, this one first, if they were asked for.
    """

    words: tuple[str, ...]
    tags: tuple[str, ...]
    tree: Tree | None = None
    dependencies: DependencyTree | None = None
    probabilities: Probabilities | None = None
    best: tuple[tuple[float, Parse], ...] = ()

    @classmethod
    def of(cls, tree: Tree | None = None, dependencies: DependencyTree | None = None) -> Parse:
        """Return the parse with these layers. Raise a TreeError if there is none, or their words
        differ."""
        first = tree if tree is not None else dependencies
        if first is None:
            raise TreeError("a parse needs constituents or dependencies, and has neither")
        if tree is not None and dependencies is not None and tree.words != dependencies.words:
            raise TreeError(
                "the constituents and the dependencies of a parse are over different words: "
                f"'{' '.join(tree.words[:8])}' and '{' '.join(dependencies.words[:8])}'"
            )
        return cls(first.words, first.tags, tree, dependencies)

    @property
    def layers(self) -> tuple[Layer, ...]:
        return tuple(layer for layer in LAYERS if self.layer(layer) is not None)

    def layer(self, layer: Layer) -> Tree | DependencyTree | None:
        """Return one layer; None if it is not there."""
        return self.tree if layer == "constituents" else self.dependencies

    def with_tags(self, tags: Sequence[str]) -> Parse:
        """Return the same parse with other tags in every layer."""
        row = tuple(tags)
        return Parse(
            self.words,
            row,
            None if self.tree is None else replace(self.tree, tags=row),
            None if self.dependencies is None else replace(self.dependencies, tags=row),
            self.probabilities,
        )

    def probability(self, start: int, end: int, label: str) -> float:
        """Return how likely a constituent over the words ``start`` (from 0) to ``end``, without it,
        is: 0 below :data:`LEAST`. A TreeError says that the parser was not asked."""
        if self.probabilities is None or self.probabilities.constituents is None:
            raise TreeError(
                "no probabilities of constituents: parse with parser.parse(..., scored=True), of a "
                "parser that finds constituents"
            )
        return self.probabilities.constituents.get((start, end, label), 0.0)

    def _repr_svg_(self) -> str | None:
        """The picture of its tree that a notebook shows, if it has one."""
        return None if self.tree is None else self.tree._repr_svg_()

    def __len__(self) -> int:
        """Number of words."""
        return len(self.words)

    def __str__(self) -> str:
        """The tree in brackets, on one line; without one, ``word/relation/head`` of each word."""
        if self.tree is not None:
            return write_brackets(self.tree)
        arcs = self.dependencies
        if arcs is None:
            return ""
        rows = zip(arcs.words, arcs.relations, arcs.heads.tolist(), strict=True)
        return " ".join(f"{word}/{relation}/{head}" for word, relation, head in rows)
