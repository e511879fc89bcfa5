"""What is scored of encoded tokens: spans, arcs, actions, and the tags of words."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field
from torch import Tensor, nn

from spmrl_bench.nn.kernels import by_rounded_rows
from spmrl_bench.nn.settings import Settings, Width


class Tagger(nn.Module):
    """Scores of all tags of each token, so that a parser needs none (Kitaev, Cao & Klein 2019);
    ``d_model`` is the width of an encoded token."""

    class Config(Settings):
        """Settings of the tagger."""

        d_hidden: Width = 250
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
        return by_rounded_rows(
            lambda rows: self.second(self.norm(self.first(rows)).relu()), encoded
        )
