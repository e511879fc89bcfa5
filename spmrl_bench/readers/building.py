"""Putting a tree together from the left to the right, as readers meet its pieces.

A reader opens and closes constituents and adds words; what comes out is a :class:`Tree`. An
empty element is a word with the tag ``-NONE-`` below the node that the release writes it in, so
that one transform removes the empty elements of every format. Nodes of a release that are
no part of its sentences (numbers, comments) may leave constituents without words, which vanish.
"""

from __future__ import annotations

import re
from itertools import compress

import numpy as np

from spmrl_bench.trees.tree import Tree, readonly_int32

#: The tag of every empty element, in every format.
EMPTY = "-NONE-"

_MARKER = re.compile(r"\*(?:[^*]+\*)?(?:[-=](?:\d+|[A-Z]+))*")
_NUMERALS = ("NUM", "CD")


def is_empty_element(text: str, parent: str = "") -> bool:
    """Whether the text in a node marks that nothing is said there, as in Penn-style treebanks.

    Markers are ``*``, ``*pro*`` or ``*を*``, each perhaps with an index or a case (``*T*-1``,
    ``*con*-D``), and ``0`` unless the node above is a numeral (NUM, CD). ``**`` is a word.
    """
    if text == "0":
        return not parent.startswith(_NUMERALS)
    return text.startswith("*") and _MARKER.fullmatch(text) is not None


class TreeBuilder:
    """The words and the rows of the tree that is being read."""

    __slots__ = ("_bounds", "_hollow", "_labels", "_open", "_skipped", "_tags", "_words")

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Forget everything that came since the last tree."""
        self._words: list[str] = []
        self._tags: list[str] = []
        self._labels: list[str] = []
        self._bounds: list[int] = []  # start, end of each row of labels
        self._open: list[int] = []  # rows of the open constituents; -1 for one that became a tag
        self._hollow = False
        self._skipped = 0  # number of rows when something was skipped

    def open(self, label: str) -> None:
        """Begin a constituent."""
        self._open.append(len(self._labels))
        self._labels.append(label)
        self._bounds += (len(self._words), -1)

    def close(self) -> bool:
        """End the innermost open constituent; False if nothing was in it.

        One that holds skipped nodes only will vanish.
        """
        row = self._open.pop()
        if row < 0:
            return True
        end = len(self._words)
        self._bounds[2 * row + 1] = end
        if self._bounds[2 * row] < end:
            return True
        self._hollow = True
        return self._skipped > row

    def skip(self) -> None:
        """Take note of a node that is no part of the sentence."""
        self._skipped = len(self._labels)

    def word(self, tag: str, word: str) -> None:
        """Add a word, or with the tag :data:`EMPTY` an empty element."""
        self._tags.append(tag)
        self._words.append(word)

    def empty(self, label: str, marker: str) -> None:
        """Add a constituent that holds nothing but an empty element."""
        n = len(self._words)
        self._labels.append(label)
        self._bounds += (n, n + 1)
        self._tags.append(EMPTY)
        self._words.append(marker)

    @property
    def label(self) -> str | None:
        """The label of the innermost open constituent; None where there is none or it is a tag."""
        return self._labels[self._open[-1]] if self._open and self._open[-1] >= 0 else None

    @property
    def in_tag(self) -> bool:
        """Whether the innermost open constituent has become a tag."""
        return bool(self._open) and self._open[-1] < 0

    def turn_to_tag(self, word: str, tag: str | None = None) -> bool:
        """Make the innermost open constituent the tag of a word; False if it has other parts.

        With ``tag``, that is the word's tag instead of the constituent's label.
        """
        if not self._open or self.in_tag or self._open[-1] != len(self._labels) - 1:
            return False
        if self._bounds[-2] < len(self._words):
            return False
        self._open[-1] = -1
        del self._bounds[-2:]
        label = self._labels.pop()
        self.word(label if tag is None else tag, word)
        return True

    def finish(self) -> Tree | None:
        """The tree, with all its constituents closed, or None if no word came; then start anew."""
        words, tags, labels = self._words, self._tags, self._labels
        spans = np.array(self._bounds, dtype=np.int32).reshape(-1, 2)
        if self._hollow:
            kept = spans[:, 0] < spans[:, 1]
            spans = spans[kept]
            labels = list(compress(labels, kept.tolist()))
        self.clear()
        if not words:
            return None
        return Tree(tuple(words), tuple(tags), tuple(labels), readonly_int32(spans))
