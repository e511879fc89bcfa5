"""A constituency tree as frozen span arrays.

Linked node objects are slow to build, recurse when compared or copied, and invite edits
that other holders of the tree do not expect. A :class:`Tree` is instead the words, the tags
and one row ``(start, end, label)`` per constituent, in top-down left-to-right order, which
is all that parsers, scorers and writers read.

Spans are half-open ``[start, end)`` over fenceposts ``0..n``. Every constituent covers at
least one word. Preterminals are not constituents: the tag of word ``i`` is ``tags[i]`` and
stands below every constituent that covers the word. Between constituents of equal span the
earlier row is the higher node, so rows and words determine the tree.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spmrl_bench.errors import TreeError

#: Tag of a word in a parse of bare tokens; the Penn Treebank's "unknown" tag.
NO_TAG = "XX"

Constituent = tuple[int, int, str]


def frozen(values: ArrayLike, *shape: int) -> NDArray[np.int32]:
    """A copy as a read-only array of int32, in another shape if one is given."""
    array = np.array(values, dtype=np.int32)
    array = array.reshape(shape) if shape else array
    array.flags.writeable = False
    return array


@dataclass(frozen=True, slots=True, eq=False)
class Tree:
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
        """A checked tree from ``(start, end, label)`` rows in pre-order.

        Raises:
            TreeError: counts differ, a span is empty or out of range, rows are not in
                pre-order, or two spans cross.
        """
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
        spans = frozen([row[:2] for row in rows], -1, 2)
        return cls(tuple(words), tuple(tags), tuple(row[2] for row in rows), spans)

    def __len__(self) -> int:
        """Number of words."""
        return len(self.words)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Tree):
            return NotImplemented
        return (
            self.words == other.words
            and self.tags == other.tags
            and self.labels == other.labels
            and np.array_equal(self.spans, other.spans)
        )

    def __hash__(self) -> int:
        return hash((self.words, self.tags, self.labels, self.spans.tobytes()))

    def constituents(self) -> Iterator[Constituent]:
        """``(start, end, label)`` of every constituent in pre-order."""
        for (start, end), label in zip(self.spans.tolist(), self.labels, strict=True):
            yield start, end, label

    def pretty_print(self) -> None:
        """Print the tree as NLTK draws it, with lines of text; needs NLTK."""
        print(self._drawing().text())

    def _repr_svg_(self) -> str:
        """The picture that a notebook shows."""
        return str(self._drawing().svg())

    def _drawing(self) -> Any:
        from spmrl_bench.trees.nltk_bridge import to_nltk

        drawn = to_nltk(self)
        from nltk.tree.prettyprinter import TreePrettyPrinter

        return TreePrettyPrinter(drawn)

    def __str__(self) -> str:
        from spmrl_bench.trees.brackets import write_brackets

        return write_brackets(self)
