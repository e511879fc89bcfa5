"""Static word vectors as an input: published vectors of words, and a learned map of them.

The vectors stay as they were published, so that words that the training trees lack keep their
place beside those that they have; what is learned is the map to the width of the parser. A form
without a vector of its own has that of its lower-cased form, since many vectors are of text
without capitals; one without either has the zero vector, so that the other inputs speak for it.
START and STOP are no words of a text, and have learned vectors of the full width instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from spmrl_bench.nn.inputs import Boundary, CodedInput, Codes
from spmrl_bench.nn.ragged import Ragged, SentenceDropout
from spmrl_bench.pretrained.vector_files import read_word_vectors

# Codes; a word's is its row of the matrix and what follows.
UNKNOWN, START, STOP, FIRST_ROW = range(4)


class StaticVectors(CodedInput):
    """A table that is not trained, a map that is, and dropout on the result for each sentence."""

    table: Tensor

    def __init__(
        self, words: Sequence[str], matrix: NDArray[np.float32], d_content: int, dropout: float
    ) -> None:
        """An input with a map still to be learned.

        Args:
            words: without repetition.
            matrix: float32 ``[words, width]``; shared, not copied, on the CPU.
            d_content: width of the result.
            dropout: on the result.
        """
        super().__init__()
        self._codes = {word: code for code, word in enumerate(words, FIRST_ROW)}
        if len(self._codes) != len(matrix):
            raise ValueError(f"{len(self._codes)} different words, but {len(matrix)} rows")
        self.register_buffer("table", torch.from_numpy(matrix), persistent=False)
        self.linear = nn.Linear(matrix.shape[1], d_content, bias=False)
        self.boundaries = nn.Embedding(2, d_content)
        self.dropout = SentenceDropout(dropout)

    @classmethod
    def read(cls, path: str | PathLike[str], d_content: int, dropout: float) -> StaticVectors:
        """The input with the vectors of a file, see :func:`read_word_vectors` for its errors."""
        vectors = read_word_vectors(path)
        return cls(vectors.words, vectors.matrix, d_content, dropout)

    def codes(self, form: str | Boundary) -> NDArray[np.int64]:
        """One code, int64 ``[1]``."""
        if isinstance(form, Boundary):
            code = START if form is Boundary.START else STOP
        else:
            code = self._codes.get(form) or self._codes.get(form.lower(), UNKNOWN)
        return np.array([code], dtype=np.int64)

    def forward(self, codes: Codes, layout: Ragged) -> Tensor:
        """``[tokens, d_content]``."""
        code = codes.values[:, 0]
        vectors = self.table.index_select(0, (code - FIRST_ROW).clamp(min=0))
        mapped = self.linear(vectors * (code >= FIRST_ROW)[:, None])
        at_end = (code == START) | (code == STOP)
        boundary = self.boundaries((code == STOP).long())
        forms = torch.where(at_end[:, None], boundary, mapped)
        return self.dropout(forms.index_select(0, codes.rows), layout)
