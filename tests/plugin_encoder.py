"""An encoder of a package of somebody else: gated convolutions (Dauphin et al. 2017)."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field
from torch import Tensor, nn

from spmrl_bench.nn.encoders import Encoder
from spmrl_bench.nn.kernels import autocast
from spmrl_bench.nn.ragged import Ragged, SentenceDropout
from spmrl_bench.nn.settings import Precision, Rate, Settings


class Convolutions(Encoder):
    """Each layer adds to a token what a gated filter over it and its neighbours finds."""

    any_width = True

    class Config(Settings):
        """Settings of the encoder ``convolutions``."""

        layers: Annotated[int, Field(ge=1, le=100)] = 1
        """How many."""
        neighbours: Annotated[int, Field(ge=1, le=10)] = 1
        """Tokens on either side that a filter reads."""
        dropout: Rate = 0.0
        """Dropout of what a layer adds."""

    def __init__(self, config: Config, d_model: int, d_content: int, precision: Precision) -> None:
        super().__init__(config, d_model, d_content, precision)
        width = 2 * config.neighbours + 1
        self.first = nn.Linear(d_content, d_model)
        self.layers = nn.ModuleList(
            nn.Conv1d(d_model, 2 * d_model, kernel_size=width, padding=config.neighbours)
            for _ in range(config.layers)
        )
        self.dropout = SentenceDropout(config.dropout)

    def stack(self, content: Tensor, layout: Ragged) -> Tensor:
        """Content ``[tokens, d_content]`` to ``[tokens, d_model]``."""
        with autocast(self.precision, content.device):
            rows = self.first(content)
            for layer in self.layers:
                filtered = nn.functional.glu(layer(layout.pad(rows).transpose(1, 2)), dim=1)
                rows = rows + self.dropout(layout.unpad(filtered.transpose(1, 2)), layout)
        return rows.to(content.dtype)
