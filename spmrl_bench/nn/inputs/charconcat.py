"""CharConcat: a word as the embeddings of its first and its last characters, side by side.

The cheapest of the character inputs of Kitaev & Klein 2018 (section 5.2): no recurrence, eight
characters from either end, which is where most languages keep their morphology. The embeddings
share one table. A word shorter than that is filled up with the mark of the other end of a word.
START and STOP, of which the paper does not say what stands in these places, are sixteen copies of a
mark of their own, as in its code.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor

from spmrl_bench.nn.inputs import Boundary, Codes
from spmrl_bench.nn.inputs.charlstm import CharacterInput
from spmrl_bench.nn.ragged import SentenceDropout
from spmrl_bench.nn.settings import InputSettings, Rate
from spmrl_bench.nn.vocabulary import CHAR_WORD_START, CHAR_WORD_STOP, Vocabulary

#: Characters taken from either end.
SIDE = 8


class CharConcat(CharacterInput):
    """Sixteen character embeddings side by side, as wide as the input together."""

    class Config(InputSettings):
        """Settings of the input ``charconcat``."""

        width: Annotated[int, Field(ge=16, multiple_of=16)] | None = None
        dropout: Rate
        """Dropout of the vector of a form."""
        boundaries: Literal["copies", "spelt"] = "copies"
        """What START and STOP are: copies of a mark (the released code), or ``spelt`` as for the
        CharLSTM and filled up as a word, as parsers had it before there was this setting."""

    def __init__(self, config: Config, vocabulary: Vocabulary, width: int, **options: Any) -> None:
        super().__init__(config, vocabulary, width, width // (2 * SIDE), **options)
        self.dropout = SentenceDropout(config.dropout)

    def codes(self, form: str | Boundary) -> NDArray[np.int64]:
        """The first eight characters, then the last eight, of which the last comes first."""
        spelt = self.spelling(form, 2 * SIDE if self.config.boundaries == "copies" else 3)
        first = (spelt + [CHAR_WORD_STOP] * SIDE)[:SIDE]
        last = (spelt[::-1] + [CHAR_WORD_START] * SIDE)[:SIDE]
        return np.array(first + last, dtype=np.int64)

    def forms(self, codes: Codes) -> Tensor:
        return self.embedding(codes.values).flatten(start_dim=1)
