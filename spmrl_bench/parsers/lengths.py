"""How long a sentence a parser searches, and how long a word it reads.

The best tree of a sentence is found exactly, in time that grows with the cube of its length or
faster. A file of prose has no sentence for which that matters; a table in one line, or a file
without line ends, would take hours and all the memory there is. So each kind of search has a
length beyond which a sentence is refused before anything is computed, with what it would have
taken. A position table (``max_positions``) mostly refuses it much earlier.

A word is refused by nobody. What models read of it is bounded: beyond :data:`LONGEST_WORD`
characters they read its beginning and its end, in training as in parsing. It is written as it came.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

#: Characters of a word that are read, half of them at either end.
LONGEST_WORD = 512
#: Words of a sentence that a message shows, and characters of each.
_SHOWN_WORDS, _SHOWN_CHARACTERS = 8, 40


def read_part(word: str) -> str:
    """What models read of a word: all of it, or the ends of one that is too long."""
    half = LONGEST_WORD // 2
    return word if len(word) <= LONGEST_WORD else word[:half] + word[-half:]


def beginning(words: Sequence[str]) -> str:
    """The first words of a sentence, for a message."""
    return " ".join(
        word if len(word) <= _SHOWN_CHARACTERS else f"{word[:_SHOWN_CHARACTERS]}..."
        for word in words[:_SHOWN_WORDS]
    )


@dataclass(frozen=True, slots=True)
class Search:
    """A search for the best structure of a sentence of ``n`` words.

    Attributes:
        what: is searched, in words.
        longest: sentence that is searched; it takes some minutes.
        per_cube, per_square, per_word: bytes that it takes for ``n^3``, ``n^2`` and ``n``, with
            what lies between the encoder and the search; measured.
    """

    what: str
    longest: int
    per_cube: float
    per_square: float
    per_word: float

    def memory(self, n: int, encoder: int = 0) -> int:
        """Bytes that a sentence takes beyond those of the parser, about.

        Args:
            n: words of it.
            encoder: bytes that the encoder takes for a word.
        """
        square = self.per_cube * n + self.per_square
        return int((square * n + self.per_word + encoder) * n)

    def problem(self, words: Sequence[str], encoder: int = 0) -> str:
        """What to tell the user of a sentence that is too long; empty if it is not."""
        n = len(words)
        if n <= self.longest:
            return ""
        return (
            f"a sentence of {n} words, but {self.what} are searched in sentences of up to "
            f"{self.longest}; this one would take about {self.memory(n, encoder) / 1e9:,.1f} GB of "
            f"memory, and hours (it begins: {beginning(words)} ...). Split the sentence"
        )


#: Packed cells, each with its place, its fenceposts, its best label and score, and the best sum.
SPANS = Search("labelled spans", 5000, 0, 28, 3_000)
#: Scores of all arcs, and the charts of Eisner's algorithm or the rows of a spanning tree.
ARCS = Search("dependency trees", 5000, 0, 68, 55_000)
#: A chart of each head of each span, beside what the other two have.
SPANS_AND_ARCS = Search("spans and heads in one structure", 700, 3.3, 100, 64_000)
#: The same without it: heads are read off the labels of spans.
MARKED_SPANS = Search("spans that say where their heads are", 5000, 0, 70, 64_000)
#: Hypotheses of a beam, each of which looks at all words before each action.
ACTIONS = Search("actions", 5000, 0, 0, 30_000)
