"""A bidirectional LSTM over the tokens of a sentence: the encoder that attention replaced.

It is that of Stern et al. 2017 and Gaddy et al. 2018, with which Kitaev & Klein 2018 compare
theirs. Everything else of the parser stays, so that the difference is the encoder's.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from spmrl_bench.nn.precision import FLOAT32, Precision, products
from spmrl_bench.nn.ragged import Ragged, SentenceDropout


class LSTMEncoder(nn.Module):
    """A stack of bidirectional layers, with dropout on what goes into each but the first.

    The states of the forward LSTM are the even features of a token vector and those of the
    backward LSTM the odd ones, which is how fenceposts take them apart: the vector of span
    ``(i, j)`` is then ``[f_j - f_i ; b_j - b_i]``, where ``f_k`` has read the tokens up to
    fencepost ``k`` and ``b_k`` those after it.
    """

    def __init__(
        self, d_model: int, layers: int, *, dropout: float, precision: Precision = FLOAT32
    ) -> None:
        super().__init__()
        self.precision = precision
        self.layers = nn.ModuleList(
            nn.LSTM(d_model, d_model // 2, bidirectional=True, batch_first=True)
            for _ in range(layers)
        )
        self.dropout = SentenceDropout(dropout)

    @contextmanager
    def steady_weights(self) -> Iterator[None]:
        """As of the self-attentive encoder; here nothing is gained by it."""
        yield

    def forward(self, content: Tensor, layout: Ragged) -> Tensor:
        """Content ``[tokens, d_model]`` to encoded tokens ``[tokens, d_model]``."""
        lengths = layout.lengths.cpu()
        rows = content
        with products(self.precision, content.device):
            for number, layer in enumerate(self.layers):
                given = self.dropout(rows, layout) if number else rows
                packed = pack_padded_sequence(
                    layout.spread(given), lengths, batch_first=True, enforce_sorted=False
                )
                states, _ = pad_packed_sequence(
                    layer(packed)[0], batch_first=True, total_length=layout.longest
                )
                forward, backward = layout.gather(states).to(content.dtype).chunk(2, dim=1)
                rows = torch.stack((forward, backward), dim=2).flatten(1)
        return rows
