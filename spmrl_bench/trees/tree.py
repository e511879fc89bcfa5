"""A constituency tree as read-only span arrays.

Linked node objects are slow to build, recurse when compared or copied, and invite edits
that other holders of the tree do not expect. A :class:`Tree` is instead the words, the tags
and one row ``(start, end, label)`` per constituent, in pre-order.

Spans are half-open ``[start, end)`` over fenceposts ``0..n``, of at least one word. Preterminals
are not constituents: the tag of word ``i`` is ``tags[i]`` and stands below every constituent that
covers the word. Of constituents of equal span the earlier row is the higher node.

A chart has one cell for a span, so it takes a unary chain for one decision: its label is the
tuple of nonterminals, top to bottom (:func:`collapsed_spans`).

The methods of NLTK's trees recurse and fail at a depth of some hundred nodes. Here they are read
and made without recursion, and read without NLTK.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spmrl_bench.errors import SpmrlError, TreeError
from spmrl_bench.trees.escapes import decode_label, escapes_named, write_brackets

if TYPE_CHECKING:
    from nltk.tree import Tree as NltkTree

#: Tag of a word in a parse of bare tokens; the Penn Treebank's "unknown" tag.
NO_TAG = "XX"

Constituent = tuple[int, int, str]
#: The nonterminals of a unary chain, top to bottom.
Label = tuple[str, ...]
#: ``(start, end, label)`` of a labelled span.
LabeledSpan = tuple[int, int, Label]

_END = object()  # of the children of a node


def readonly_int32(values: ArrayLike, *shape: int) -> NDArray[np.int32]:
    """Return a copy as a read-only array of int32, in another shape if one is given."""
    array = np.array(values, dtype=np.int32)
    array = array.reshape(shape) if shape else array
    array.flags.writeable = False
    return array


class ByContent:
    """What is equal, and hashed, by all its fields; of arrays the numbers count."""

    __slots__: tuple[str, ...] = ()

    def _content(self) -> tuple[object, ...]:
        values = [getattr(self, name) for name in self.__slots__]
        return tuple(one.tobytes() if isinstance(one, np.ndarray) else one for one in values)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, type(self)):
            return NotImplemented
        return self._content() == other._content()

    def __hash__(self) -> int:
        return hash(self._content())


@dataclass(frozen=True, slots=True, eq=False)
class Tree(ByContent):
    """Words, tags and constituents of one sentence; build with :meth:`build`.

    Attributes:
        words: the ``n`` words, unescaped.
        tags: the ``n`` part-of-speech tags.
        labels: one label per constituent, in pre-order; ``""`` is the unlabelled bracket.
        spans: int32 array ``[constituents, 2]`` of half-open spans in pre-order, read-only.
    """

    words: tuple[str, ...]
    tags: tuple[str, ...]
    labels: tuple[str, ...]
    spans: NDArray[np.int32]

    @classmethod
    def build(
        cls, words: Sequence[str], tags: Sequence[str], constituents: Iterable[Constituent]
    ) -> Tree:
        """Return a checked tree of ``(start, end, label)`` rows in pre-order. Raise a TreeError if
        counts differ, or a span is empty, out of range or order, or crosses another."""
        rows = list(constituents)
        n = len(words)
        if len(tags) != n:
            raise TreeError(f"{n} words but {len(tags)} tags")
        open_ends: list[int] = []
        previous = 0
        for start, end, label in rows:
            if not 0 <= start < end <= n:
                raise TreeError(f"span [{start}, {end}) of '{label}' is not inside 0..{n}")
            while open_ends and open_ends[-1] <= start:
                open_ends.pop()
            if start < previous or (open_ends and end > open_ends[-1]):
                raise TreeError(
                    f"span [{start}, {end}) of '{label}' crosses another or is out of order"
                )
            open_ends.append(end)
            previous = start
        spans = readonly_int32([row[:2] for row in rows], -1, 2)
        return cls(tuple(words), tuple(tags), tuple(row[2] for row in rows), spans)

    @classmethod
    def from_nltk(cls, tree: NltkTree, escapes: str | None = None) -> Tree:
        """Return a tree of NLTK as one of ours.

        A node whose only child is a leaf is the tag of a word, every other node a constituent.
        A tree without leaves, as ``nltk.Tree("", [])``, is the tree without words. ``escapes``
        names the policy (see :mod:`spmrl_bench.trees.escapes`) of a tree that
        ``nltk.Tree.fromstring`` read from a treebank's file; without it leaves are the words
        themselves. Raise a TreeError if a leaf has no tag of its own, a constituent no word, or a
        name is no string, a SpmrlError if the escape policy is unknown.
        """
        policy = None if escapes is None else escapes_named(escapes)
        words: list[str] = []
        tags: list[str] = []
        labels: list[str] = []
        bounds: list[list[int]] = []  # start and end of each row of labels
        if not is_nltk(tree):
            raise TreeError(f"expected an nltk tree, found {type(tree).__name__}")
        # The row above, and a node; the next one last.
        pending: list[tuple[int, Any]] = [(-1, tree)]
        while pending:
            above, node = pending.pop()
            if node is _END:
                bounds[above][1] = len(words)
                continue
            if not is_nltk(node):
                raise TreeError(
                    f"the leaf {_nltk_text(node, 'leaf')!r} below '{labels[above]}' of an "
                    "nltk tree has no tag: expected a node of its own around each word"
                )
            label = _nltk_text(node.label(), "label")
            label = decode_label(label) if policy else label
            if len(node) == 1 and not is_nltk(node[0]):
                word = _nltk_text(node[0], "leaf")
                tags.append(label)
                words.append(policy.decode_word(word) if policy else word)
            else:
                row = len(labels)
                pending += [(row, _END), *((row, child) for child in reversed(node))]
                labels.append(label)
                bounds.append([len(words), 0])
        if not words:
            return cls.build([], [], [])
        for (start, end), label in zip(bounds, labels, strict=True):
            if start == end:
                raise TreeError(f"the constituent '{label}' of an nltk tree holds no word")
        return cls(tuple(words), tuple(tags), tuple(labels), readonly_int32(bounds, -1, 2))

    def to_nltk(self) -> NltkTree:
        """Return the tree as one of NLTK, whose leaves are the words as they are.

        Several constituents or words side by side get a root without a label, and so does a tree
        without words. A SpmrlError says that NLTK is not installed.
        """
        try:
            from nltk.tree import Tree as NltkTree
        except ImportError:
            raise SpmrlError(
                "trees of NLTK need it: pip install nltk, or pip install 'spmrl-bench[nltk]'"
            ) from None
        top = NltkTree("", [])
        opened: list[tuple[int, NltkTree]] = [(len(self) + 1, top)]
        leaves = zip(range(len(self)), self.tags, self.words, strict=True)
        rows: list[Any] = [(start, 0, end, label, []) for start, end, label in self.constituents()]
        rows += [(place, 1, place, tag, [word]) for place, tag, word in leaves]
        for place, _, end, label, children in sorted(rows, key=itemgetter(0, 1)):
            while opened[-1][0] <= place:
                opened.pop()
            node = NltkTree(label, children)
            opened[-1][1].append(node)
            opened.append((end, node))
        return top[0] if len(top) == 1 else top

    def __len__(self) -> int:
        """Number of words."""
        return len(self.words)

    def constituents(self) -> Iterator[Constituent]:
        """Yield ``(start, end, label)`` of every constituent in pre-order."""
        for (start, end), label in zip(self.spans.tolist(), self.labels, strict=True):
            yield start, end, label

    def pretty_print(self) -> None:
        """Print the tree as NLTK draws it, with lines of text; needs NLTK."""
        print(self._drawing().text())

    def _repr_svg_(self) -> str:
        """Return the picture that a notebook shows."""
        return str(self._drawing().svg())

    def _drawing(self) -> Any:
        drawn = self.to_nltk()
        from nltk.tree.prettyprinter import TreePrettyPrinter

        return TreePrettyPrinter(drawn)

    def __str__(self) -> str:
        return write_brackets(self)


def collapsed_spans(tree: Tree) -> Iterator[LabeledSpan]:
    """Yield ``(start, end, label)`` of every labelled span, unary chains as one, in pre-order."""
    for (start, end), chain in groupby(tree.constituents(), key=itemgetter(0, 1)):
        yield start, end, tuple(name for _, _, name in chain)


def expand_chains(spans: Iterable[LabeledSpan]) -> Iterator[Constituent]:
    """Yield the constituents of labelled spans; the inverse of :func:`collapsed_spans`."""
    for start, end, label in spans:
        for name in label:
            yield start, end, name


def is_nltk(value: object) -> TypeGuard[NltkTree]:
    """Return whether a value is a tree of NLTK: a list of children with a ``label()``."""
    return isinstance(value, list) and callable(getattr(value, "label", None))


def _nltk_text(value: object, what: str) -> str:
    if not isinstance(value, str):
        raise TreeError(f"a {what} of an nltk tree must be a string, found {value!r}")
    return value
