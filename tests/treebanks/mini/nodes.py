"""Trees as linked nodes, so that a test can say what stands below and beside what."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from spmrl_bench.trees.tree import Tree


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """A constituent or, with nothing below it, a token, whose label is its tag.

    Attributes:
        tree: the whole sentence.
        label: label or tag.
        start: its first word.
        end: the word behind its last one.
        below: its daughters from left to right.
    """

    tree: Tree = field(repr=False)
    label: str
    start: int
    end: int
    below: tuple[Node, ...] = ()

    @property
    def labels(self) -> list[str]:
        """Labels and tags of the daughters."""
        return [daughter.label for daughter in self.below]

    @property
    def words(self) -> tuple[str, ...]:
        return self.tree.words[self.start : self.end]

    @property
    def tags(self) -> tuple[str, ...]:
        return self.tree.tags[self.start : self.end]

    @property
    def word(self) -> str:
        """The first word, which is the only one of a token."""
        return self.tree.words[self.start]

    def walk(self) -> Iterator[Node]:
        """The node and all below it, top-down and from left to right."""
        yield self
        for daughter in self.below:
            yield from daughter.walk()

    def __str__(self) -> str:
        inside = " ".join(map(str, self.below)) if self.below else self.word
        return f"({self.label} {inside})"


def nested(tree: Tree) -> Node:
    """The root of a tree whose first constituent covers all words."""
    spans = tree.spans.tolist()
    row = 0

    def build() -> Node:
        nonlocal row
        label, (start, end) = tree.labels[row], spans[row]
        row += 1
        below = []
        position = start
        while position < end:
            if row < len(spans) and spans[row][0] == position:
                below.append(build())
            else:
                below.append(Node(tree, tree.tags[position], position, position + 1))
            position = below[-1].end
        return Node(tree, label, start, end, tuple(below))

    assert spans[0] == [0, len(tree)]
    return build()


def labelled(nodes: Iterable[Node], *labels: str) -> Iterator[Node]:
    """The constituents with one of the labels."""
    return (node for node in nodes if node.below and node.label in labels)


def neighbours(trees: Iterable[Tree]) -> Iterator[tuple[str, str, str, str]]:
    """Each word with its tag, and the word behind it with its tag."""
    for tree in trees:
        yield from zip(tree.words, tree.tags, tree.words[1:], tree.tags[1:], strict=False)


def lowered(tree: Tree) -> Tree:
    """The tree with its words in lower case."""
    words = [word.lower() for word in tree.words]
    return Tree.build(words, tree.tags, tree.constituents())
