"""All stretches of words that occur more than once in a corpus, a length at a time.

Variation is looked for among equal stretches of words. There are as many stretches as a sentence
has words squared, but few of the long ones occur twice, and none of which a shorter part does not.
So the stretches of m + 1 words are found among those of m words that are left, each as the pair of
its first and its last m words; a corpus of a million words has some hundred thousand of three
words, and some thousand of ten. The work is that of the stretches that occur twice.

Sentences stand one behind the other with a mark between two of them, which counts as a word of
context at the beginning and at the end of a sentence; no stretch has it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

#: The token between two sentences.
BOUNDARY = 0


class Corpus(NamedTuple):
    """Sentences as one row of numbers.

    Attributes:
        tokens: int64 ``[words + sentences + 1]``, the number of each word from 1, and
            :data:`BOUNDARY` before, between and behind the sentences.
        starts: int64 ``[sentences]``, where the first word of each is.
        ends: likewise the boundary behind its last word.
    """

    tokens: NDArray[np.int64]
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]

    @classmethod
    def of(cls, sentences: Sequence[Sequence[str]]) -> Corpus:
        """The corpus of some sentences."""
        numbers: dict[str, int] = {}
        row = [BOUNDARY]
        for words in sentences:
            row += [numbers.setdefault(word, len(numbers) + 1) for word in words]
            row.append(BOUNDARY)
        lengths = np.array([len(words) for words in sentences], dtype=np.int64)
        ends = np.cumsum(lengths + 1)
        return cls(np.array(row, dtype=np.int64), ends - lengths, ends)

    def sentence_of(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        """The sentence, from 0, of each place of a word."""
        return np.searchsorted(self.ends, places, side="right")


class Repeated(NamedTuple):
    """The stretches of a length that occur twice or more.

    Attributes:
        length: in words.
        places: int64 ``[occurrences]``, where each begins; equal ones follow each other, each of
            them in ascending order.
        stretch: int64 ``[occurrences]``, the number of the stretch at each, in ascending order.
    """

    length: int
    places: NDArray[np.int64]
    stretch: NDArray[np.int64]


def repeated(tokens: NDArray[np.int64]) -> Iterator[Repeated]:
    """The repeated stretches of each length from 1 on, as long as there are any.

    Args:
        tokens: of a :class:`Corpus`.
    """
    # The number of the stretch at each place; -1 where it occurs once, or has a boundary.
    numbers = np.full(len(tokens), -1)
    places, keys = np.flatnonzero(tokens != BOUNDARY), tokens[tokens != BOUNDARY]
    length = 1
    while len(places):
        order = np.argsort(keys, kind="stable")
        keys, places = keys[order], places[order]
        stretch = np.cumsum(np.append(0, keys[1:] != keys[:-1]))
        kept = np.bincount(stretch)[stretch] > 1
        places, stretch = places[kept], stretch[kept]
        yield Repeated(length, places, stretch)
        numbers.fill(-1)
        numbers[places] = stretch
        # The next longer ones are two of these, one word apart; the last place is a boundary.
        places = np.flatnonzero((numbers[:-1] >= 0) & (numbers[1:] >= 0))
        keys = numbers[places] * len(tokens) + numbers[places + 1]
        length += 1
