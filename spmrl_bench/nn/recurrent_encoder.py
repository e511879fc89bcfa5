"""A bidirectional LSTM or GRU over the tokens of a sentence: the encoder that attention replaced.

The LSTM is that of Stern et al. 2017 and Gaddy et al. 2018, with which Kitaev & Klein 2018
compare theirs; the GRU (Cho et al. 2014) has three quarters of its weights. Everything else of
the parser stays, so that the difference is the encoder's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from spmrl_bench.nn import kernels
from spmrl_bench.nn.choices import Cell, RecurrentDropout
from spmrl_bench.nn.fused_recurrent import RecurrentLayer, Steps, all_states
from spmrl_bench.nn.precision import FLOAT32, Precision, product_dtype, products
from spmrl_bench.nn.ragged import Ragged, SentenceDropout, TokenDropout
from spmrl_bench.nn.token_encoder import TokenEncoder

CELLS: Mapping[Cell, type[RecurrentLayer]] = {"lstm": nn.LSTM, "gru": nn.GRU}


class RecurrentEncoder(TokenEncoder):
    """A stack of bidirectional layers with dropout on what goes from one to the next.

    No mask is ever on what a layer hands from one token to the next. There are two kinds:

    - ``sentence``: a mask for each sentence and layer, the same for all its tokens, on what goes
      into each layer but the first. The content comes with masks of its own inputs, and what the
      last layer gives has none.
    - ``token``: a fresh mask for each token and layer, on what goes into each layer, the first
      too, and on what the last one gives (Zaremba, Sutskever & Vinyals 2014, section 3.2). Each
      arrow has one mask: both directions of a layer read the same content.

    The states of the forward direction are the even features of a token vector and those of the
    backward one the odd ones, which is how fenceposts take them apart: the vector of span
    ``(i, j)`` is then ``[f_j - f_i ; b_j - b_i]``, where ``f_k`` has read the tokens up to
    fencepost ``k`` and ``b_k`` those after it.
    """

    def __init__(
        self,
        cell: Cell,
        d_model: int,
        layers: int,
        *,
        d_content: int | None = None,
        dropout: float,
        masks: RecurrentDropout = "sentence",
        precision: Precision = FLOAT32,
    ) -> None:
        """Random weights.

        Args:
            cell: of all layers.
            d_model: width of a token vector, both directions together.
            layers: how many there are.
            d_content: width of the content that the first layer reads, if not ``d_model``.
            dropout: its rate.
            masks: whose they are.
            precision: of the products.

        Raises:
            ValueError: the content is of another width, and there is no layer to read it.
        """
        super().__init__(d_model, precision)
        width = d_model if d_content is None else d_content
        if not layers and width != d_model:
            raise ValueError(f"no layer makes tokens of width {d_model} of content of {width}")
        self.layers = nn.ModuleList(
            CELLS[cell](
                d_model if number else width, d_model // 2, bidirectional=True, batch_first=True
            )
            for number in range(layers)
        )
        self.masks = masks
        self.dropout = TokenDropout(dropout) if masks == "token" else SentenceDropout(dropout)

    def stack(self, content: Tensor, layout: Ragged) -> Tensor:
        """Content ``[tokens, d_content]`` to ``[tokens, d_model]``.

        Raises:
            ArrayError: on the CPU, a weight, the content or the layout does not fit.
        """
        if kernels.usable(content):
            kernels.check_layout(layout, len(content))
            states = _fused(layout)
        else:
            states = _packed(layout)
        rows = content
        each = self.masks == "token" and len(self.layers) > 0
        for number, layer in enumerate(self.layers):
            given = self.dropout(rows, layout) if number or each else rows
            found = states(cast("RecurrentLayer", layer), given, self.precision)
            forward, backward = found.chunk(2, dim=1)
            rows = torch.stack((forward, backward), dim=2).flatten(1)
        return self.dropout(rows, layout) if each else rows


States = Callable[[RecurrentLayer, Tensor, Precision], Tensor]
"""The states of both directions of a layer, ``[tokens, d_model]``, one behind the other."""


def _fused(layout: Ragged) -> States:
    """By the kernels."""
    steps = Steps(layout.lengths)
    starts = layout.lengths.cumsum(0) - layout.lengths
    tokens = starts[steps.sequence] + steps.step

    def states(layer: RecurrentLayer, rows: Tensor, precision: Precision) -> Tensor:
        found = all_states(layer, rows.index_select(0, tokens), steps, product_dtype(precision))
        return found.new_empty(found.shape).index_copy(0, tokens, found)

    return states


def _packed(layout: Ragged) -> States:
    """By operations of torch."""
    lengths = layout.lengths.cpu()

    def states(layer: RecurrentLayer, rows: Tensor, precision: Precision) -> Tensor:
        with products(precision, rows.device):
            packed = pack_padded_sequence(
                layout.spread(rows), lengths, batch_first=True, enforce_sorted=False
            )
            found, _ = pad_packed_sequence(
                layer(packed)[0], batch_first=True, total_length=layout.longest
            )
            return layout.gather(found).to(rows.dtype)

    return states
