"""Inputs that read the characters of a form: CharLSTM and CharConcat."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence

from spmrl_bench.nn import kernels
from spmrl_bench.nn.inputs import Boundary, Codes, FormInput
from spmrl_bench.nn.kernels.recurrence import Steps, states
from spmrl_bench.nn.settings import Even, InputSettings, Rate, Width
from spmrl_bench.nn.vocabulary import (
    CHAR_START,
    CHAR_STOP,
    CHAR_UNK,
    CHAR_WORD_START,
    CHAR_WORD_STOP,
    FIRST_CHAR,
    Vocabulary,
)

#: Characters that CharConcat takes from either end.
SIDE = 8


class CharacterInput(FormInput):
    """An input with a vector for each character of the vocabulary, ``d_char`` wide."""

    def __init__(
        self, config: Any, vocabulary: Vocabulary, width: int, d_char: int, **options: Any
    ) -> None:
        super().__init__(config, vocabulary, width, **options)
        self._ids = vocabulary.character_ids
        self.embedding = nn.Embedding(FIRST_CHAR + len(self._ids), d_char)
        with torch.no_grad():
            # Never seen in training: no direction is better than a random one.
            self.embedding.weight[CHAR_UNK].zero_()

    def spelling(self, form: str | Boundary, copies: int = 3) -> list[int]:
        """Return the index of each character; START and STOP are copies of a mark of their own."""
        if isinstance(form, Boundary):
            return [CHAR_START if form is Boundary.START else CHAR_STOP] * copies
        return [self._ids.get(character, CHAR_UNK) for character in form]


class CharLSTM(CharacterInput):
    """The last states of a bidirectional LSTM over a form's characters, or a map of them. Input
    dropout is drawn for each character of a form, so all its tokens in a batch share a mask; the
    dropout of the result is drawn for each sentence."""

    class Config(InputSettings):
        """Settings of the input ``charlstm``."""

        width: Even | None = None
        d_char: Width
        """Width of a character embedding."""
        d_states: Even | None = None
        """Width of the last states, both directions together; without it, that of the input.
        States of another width are mapped to that."""
        char_dropout: Rate
        """Dropout of character embeddings."""
        dropout: Rate
        """Dropout of the vector of a form (``morpho_emb_dropout`` of the released code)."""

    shared: ClassVar[bool] = True

    def __init__(self, config: Config, vocabulary: Vocabulary, width: int, **options: Any) -> None:
        super().__init__(config, vocabulary, width, config.d_char, **options)
        self.char_dropout = nn.Dropout(config.char_dropout)
        states = config.d_states
        self.lstm = nn.LSTM(config.d_char, (states or width) // 2, bidirectional=True)
        self.map = nn.Identity() if states is None else nn.Linear(states, width, bias=False)

    def codes(self, form: str | Boundary) -> NDArray[np.int64]:
        return np.array([CHAR_WORD_START, *self.spelling(form), CHAR_WORD_STOP], dtype=np.int64)

    def forms(self, codes: Codes) -> Tensor:
        lengths = codes.lengths.cpu()
        if kernels.usable(self.embedding.weight, "recurrent"):
            steps = Steps(lengths)
            embedded = self.embedding(codes.values[steps.sequence, steps.step])
            if self.training and (rate := self.char_dropout.p):
                embedded = embedded * kernels.dropout_factors(embedded.shape, rate)
            dtype = kernels.matmul_dtype(self.precision)
            last = states(self.lstm, embedded, steps, dtype, every=False)
        else:
            embedded = self.char_dropout(self.embedding(codes.values.transpose(0, 1)))
            packed: Any = pack_padded_sequence(embedded, lengths, enforce_sorted=False)
            with kernels.autocast(self.precision, embedded.device):
                _, (ends, _) = self.lstm(packed)
            last = torch.cat((ends[0], ends[1]), dim=1).to(embedded.dtype)
        return self.map(last)


class CharConcat(CharacterInput):
    """The embeddings of the first eight characters and of the last eight, side by side, as wide as
    the input together.

    The cheapest of the character inputs of Kitaev & Klein 2018 (section 5.2); most languages keep
    their morphology at the ends of words. A shorter word is filled up with the mark of its other
    end. START and STOP, of which the paper does not say what stands in these places, are sixteen
    copies of a mark of their own, as in its code.
    """

    class Config(InputSettings):
        """Settings of the input ``charconcat``."""

        width: Annotated[int, Field(ge=16, le=65_536, multiple_of=16)] | None = None
        dropout: Rate
        """Dropout of the vector of a form."""
        boundaries: Literal["copies", "spelt"] = "copies"
        """What START and STOP are: copies of a mark (the released code), or ``spelt`` as for the
        CharLSTM and filled up as a word, as parsers had it before there was this setting."""

    def __init__(self, config: Config, vocabulary: Vocabulary, width: int, **options: Any) -> None:
        super().__init__(config, vocabulary, width, width // (2 * SIDE), **options)

    def codes(self, form: str | Boundary) -> NDArray[np.int64]:
        """The first eight characters, then the last eight, of which the last comes first."""
        spelt = self.spelling(form, 2 * SIDE if self.config.boundaries == "copies" else 3)
        first = (spelt + [CHAR_WORD_STOP] * SIDE)[:SIDE]
        last = (spelt[::-1] + [CHAR_WORD_START] * SIDE)[:SIDE]
        return np.array(first + last, dtype=np.int64)

    def forms(self, codes: Codes) -> Tensor:
        return self.embedding(codes.values).flatten(start_dim=1)
