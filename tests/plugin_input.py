"""A lexical input of a package of somebody else: the last letters of a word."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor, nn

from spmrl_bench.nn.inputs import Boundary, Codes, FormInput
from spmrl_bench.nn.ragged import SentenceDropout
from spmrl_bench.nn.settings import InputSettings, Precision, Rate
from spmrl_bench.nn.vocabulary import Vocabulary


class Suffix(FormInput):
    """The sum of the embeddings of a word's last letters, each at its place from the end."""

    class Config(InputSettings):
        """Settings of the input ``suffix``."""

        letters: Annotated[int, Field(ge=1, le=10)] = 3
        """How many are read."""
        dropout: Rate = 0.0
        """Dropout of the sum."""

    def __init__(
        self,
        config: Config,
        vocabulary: Vocabulary,
        width: int,
        *,
        precision: Precision,
        assets: Path | None,
    ) -> None:
        super().__init__(config, vocabulary, width, precision=precision, assets=assets)
        self.letters = config.letters
        self.known = {letter: 2 + k for k, letter in enumerate(vocabulary.characters)}
        rows = config.letters * (2 + len(self.known))
        self.embedding = nn.EmbeddingBag(rows, width, mode="sum")
        self.dropout = SentenceDropout(config.dropout)

    def codes(self, form: str | Boundary) -> NDArray[np.int64]:
        """The last letters, from the end; 0 for a boundary, 1 for an unknown letter."""
        ids = [0] if isinstance(form, Boundary) else [self.known.get(each, 1) for each in form]
        last = ids[::-1][: self.letters]
        last += [0] * (self.letters - len(last))
        return np.array([k * (2 + len(self.known)) + code for k, code in enumerate(last)])

    def forms(self, codes: Codes) -> Tensor:
        """``[forms, width]``."""
        rows: Tensor = self.embedding(codes.values)
        return rows
