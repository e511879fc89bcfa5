"""A bidirectional LSTM or GRU over the tokens of a sentence: the encoder that attention replaced.

The LSTM is that of Stern et al. 2017 and Gaddy et al. 2018, with which Kitaev & Klein 2018
compare theirs; the GRU (Cho et al. 2014) has three quarters of its weights.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from spmrl_bench.errors import RecipeError
from spmrl_bench.nn import kernels
from spmrl_bench.nn.encoders import Encoder
from spmrl_bench.nn.kernels import autocast, matmul_dtype
from spmrl_bench.nn.kernels.recurrence import RecurrentLayer, Steps, states
from spmrl_bench.nn.ragged import Ragged, SentenceDropout
from spmrl_bench.nn.settings import Layers, Precision, Rate, Settings


class RecurrentEncoder(Encoder):
    """A stack of bidirectional layers with dropout on what goes from one to the next.

    No mask is on what a layer hands from one token to the next. Those of sentences are on what goes
    into each layer but the first; those of tokens on what goes into each layer, and on what the
    last one gives (Zaremba, Sutskever & Vinyals 2014, section 3.2). Forward states are the even
    features of a token vector and backward ones the odd ones: the vector of span ``(i, j)`` is
    ``[f_j - f_i ; b_j - b_i]``, where ``f_k`` has read the tokens up to fencepost ``k``.
    """

    any_width = True
    cell: ClassVar[type[RecurrentLayer]]

    class Config(Settings):
        """Settings of the encoders ``lstm`` and ``gru``."""

        layers: Layers
        """How many."""
        dropout: Rate
        """Dropout between the layers, or before and behind each (``masks``)."""
        masks: Literal["sentence", "token"] = "sentence"
        """Masks of sentences between the layers, or of single tokens before and behind each."""

    def __init__(self, config: Config, d_model: int, d_content: int, precision: Precision) -> None:
        super().__init__(config, d_model, d_content, precision)
        if not config.layers and d_content != d_model:
            raise RecipeError(f"no layer makes tokens of width {d_model} of content of {d_content}")
        widths = [d_content, *[d_model] * config.layers][: config.layers]
        self.layers = nn.ModuleList(
            self.cell(width, d_model // 2, bidirectional=True, batch_first=True) for width in widths
        )
        self.dropout = SentenceDropout(config.dropout)
        self.masks = config.masks

    def stack(self, content: Tensor, layout: Ragged) -> Tensor:
        steps = Steps(layout.lengths) if kernels.usable(content, "recurrent") else None
        rows, each = content, self.masks == "token" and len(self.layers) > 0
        for number, layer in enumerate(self.layers):
            given = self._dropped(rows, layout) if number or each else rows
            states = self._states(layer, given, layout, steps)
            rows = torch.stack(states.chunk(2, dim=1), dim=2).flatten(1)
        return self._dropped(rows, layout) if each else rows

    def _dropped(self, rows: Tensor, layout: Ragged) -> Tensor:
        if self.masks == "token":
            return nn.functional.dropout(rows, self.dropout.p, self.training)
        return self.dropout(rows, layout)

    def _states(self, layer: Any, rows: Tensor, layout: Ragged, steps: Steps | None) -> Tensor:
        """Of both directions, ``[tokens, d_model]``; by the kernels where there are steps."""
        if steps is not None:
            starts = layout.lengths.cumsum(0) - layout.lengths
            tokens = starts[steps.sequence] + steps.step
            given, dtype = rows.index_select(0, tokens), matmul_dtype(self.precision)
            found = states(layer, given, steps, dtype, every=True)
            return found.new_empty(found.shape).index_copy(0, tokens, found)
        padded, lengths = layout.pad(rows), layout.lengths.cpu()
        with autocast(self.precision, rows.device):
            packed = pack_padded_sequence(padded, lengths, batch_first=True, enforce_sorted=False)
            found, _ = pad_packed_sequence(layer(packed)[0], batch_first=True)
            return layout.unpad(found).to(rows.dtype)


class LSTMEncoder(RecurrentEncoder):
    cell = nn.LSTM


class GRUEncoder(RecurrentEncoder):
    cell = nn.GRU
