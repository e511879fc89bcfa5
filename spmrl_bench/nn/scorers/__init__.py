"""What is scored of encoded tokens: spans, arcs, actions, and the tags of words.

Kitaev, Cao & Klein 2019 let the parser predict tags of its own, so that it needs none at test
time: one hidden layer over the encoder's output, and a cross-entropy beside the parser's loss.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field
from torch import Tensor, nn

from spmrl_bench.nn.kernels import with_rounded_rows
from spmrl_bench.nn.settings import Positive, Settings


class Tagger(nn.Module):
    """Scores of all tags of each token; ``d_model`` is the width of an encoded token."""

    class Config(Settings):
        """Settings of the tagger."""

        d_hidden: Positive = 250
        """Width of the hidden layer."""
        loss_weight: Annotated[float, Field(gt=0)] = 5.0
        """Weight of the loss of a word beside the parser's of a sentence (as in their code)."""

    def __init__(self, config: Config, d_model: int, tags: int) -> None:
        super().__init__()
        self.first = nn.Linear(d_model, config.d_hidden)
        self.norm = nn.LayerNorm(config.d_hidden)
        self.second = nn.Linear(config.d_hidden, tags)

    def forward(self, encoded: Tensor) -> Tensor:
        """Encoded tokens ``[tokens, d_model]`` to scores ``[tokens, tags]``."""
        hidden = self.norm(self.first(with_rounded_rows(encoded))).relu()
        return self.second(hidden)[: len(encoded)]
