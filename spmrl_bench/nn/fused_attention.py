"""The attention of the fused encoder: each head over each sentence, forwards and back.

Attention compares the tokens of one sentence, so its products are many and small: a call of a
library for each would take longer than the product, and one call for sentences of different
lengths would need them in a rectangle. The kernel ``_attention`` works on the packed tokens.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from spmrl_bench.nn import kernels
from spmrl_bench.nn.ragged import Ragged


class Attention:
    """Between the products that make queries, keys and values and the one that joins the heads.

    Args:
        layout: of the sentences.
        tokens: rows of the packed arrays, of which the first belong to the sentences.
        dtype: of the packed arrays.
        training: whether weights are dropped.
    """

    def __init__(self, layout: Ragged, tokens: int, dtype: torch.dtype, *, training: bool) -> None:
        self.kernel = kernels.load("_attention")
        self.real = len(layout.sentence)
        self.tokens = tokens
        self.dtype = dtype
        self.training = training
        self.lengths = layout.lengths
        self.starts = layout.lengths.cumsum(0) - layout.lengths
        lanes = self.kernel.lanes()
        self.longest = -(-layout.longest // lanes) * lanes

    def forward(self, module: Any, packed: Tensor, seed: int) -> Tensor:
        """Averages of values, low ``[2, tokens, heads d_kv / 2]``.

        Args:
            module: a :class:`SelfAttention`, for its sizes and its dropout.
            packed: low queries, keys and values ``[2, tokens, 3 heads d_kv / 2]``.
            seed: of the dropout.
        """
        context = self._packed(module.heads * module.d_kv // 2)
        self.kernel.forward(packed, *self._about(module, seed), context, self._threads)
        return context

    def backward(self, module: Any, packed: Tensor, seed: int, d_context: Tensor) -> Tensor:
        """Gradient of the packed queries, keys and values, from that of :meth:`forward`."""
        gradient = self._packed(packed.shape[2])
        self.kernel.backward(packed, d_context, *self._about(module, seed), gradient, self._threads)
        return gradient

    @property
    def _threads(self) -> int:
        return torch.get_num_threads()

    def _about(self, module: Any, seed: int) -> tuple[Any, ...]:
        """The arguments that both ways have in common."""
        return (
            self.starts, self.lengths, self.tokens, module.heads,
            module.d_kv // 2, self.longest, self.dtype != torch.float32, module.factor, seed,
            module.dropout if self.training else 0.0,
        )  # fmt: skip

    def _packed(self, width: int) -> Tensor:
        """What the kernel writes into; low ``[2, tokens, width]``, zero beyond the sentences."""
        packed = torch.empty(2, self.tokens, width, dtype=self.dtype)
        packed[:, self.real :] = 0
        return packed
