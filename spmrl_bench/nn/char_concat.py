"""CharConcat: a word as the embeddings of its first and its last characters, side by side.

The cheapest of the character inputs of Kitaev & Klein 2018 (section 5.2): no recurrence, eight
characters from either end, which is where most languages keep their morphology. The embeddings
share one table. A word shorter than that is filled up with the mark of the other end of a word.
START and STOP, of which the paper does not say what stands in these places, are sixteen copies of a
mark of their own, as in its code.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from spmrl_bench.nn.choices import CharBoundaries
from spmrl_bench.nn.inputs import Boundary, CodedInput, Codes
from spmrl_bench.nn.ragged import Ragged, SentenceDropout

#: Characters taken from either end.
SIDE = 8


@dataclass(frozen=True, slots=True)
class Alphabet:
    """Numbers of characters, the same as the CharLSTM's.

    Attributes:
        ids: by character.
        size: numbers in use, those of the marks included.
        unknown: stands for a character without a number.
        word_start, word_stop: the marks of the ends of a word.
        start, stop: spellings of the tokens START and STOP.
    """

    ids: Mapping[str, int]
    size: int
    unknown: int
    word_start: int
    word_stop: int
    start: tuple[int, ...]
    stop: tuple[int, ...]

    def spelling(self, form: str | Boundary) -> list[int]:
        """Numbers of the characters of a form, without marks."""
        if isinstance(form, Boundary):
            return list(self.start if form is Boundary.START else self.stop)
        return [self.ids.get(character, self.unknown) for character in form]


class CharConcat(CodedInput):
    """Sixteen character embeddings side by side, ``d_content`` wide together."""

    def __init__(
        self,
        alphabet: Alphabet,
        d_content: int,
        dropout: float,
        boundaries: CharBoundaries = "copies",
    ) -> None:
        """Random weights.

        Args:
            alphabet: numbers of the characters.
            d_content: width of the result.
            dropout: on it, with a mask for each sentence.
            boundaries: what START and STOP are: copies of their mark, or ``spelt`` as for the
                CharLSTM, and filled up as a word is, which earlier versions of the program did.

        Raises:
            ValueError: the width cannot be divided by sixteen.
        """
        super().__init__()
        if d_content % (2 * SIDE):
            raise ValueError(f"a width of {d_content} cannot be divided by {2 * SIDE}")
        self.alphabet = alphabet
        self.boundaries = boundaries
        self.embedding = nn.Embedding(alphabet.size, d_content // (2 * SIDE))
        with torch.no_grad():
            # Never seen in training: no direction is better than a random one.
            self.embedding.weight[alphabet.unknown].zero_()
        self.dropout = SentenceDropout(dropout)

    def codes(self, form: str | Boundary) -> NDArray[np.int64]:
        """The first eight characters, then the last eight, of which the last comes first."""
        spelling = self.alphabet.spelling(form)
        if isinstance(form, Boundary) and self.boundaries == "copies":
            return np.full(2 * SIDE, spelling[0], dtype=np.int64)
        first = (spelling + [self.alphabet.word_stop] * SIDE)[:SIDE]
        last = (spelling[::-1] + [self.alphabet.word_start] * SIDE)[:SIDE]
        return np.array(first + last, dtype=np.int64)

    def forward(self, codes: Codes, layout: Ragged) -> Tensor:
        """``[tokens, d_content]``; see :class:`CodedInput`."""
        vectors = self.embedding(codes.values).flatten(start_dim=1)
        return self.dropout(vectors.index_select(0, codes.rows), layout)
