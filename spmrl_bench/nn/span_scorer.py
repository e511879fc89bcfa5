"""Label scores of spans from fencepost vectors.

A span ``[i, j)`` is the difference of its two fenceposts, scored by a small network
``W2 relu(LayerNorm(W1 (f_j - f_i) + b1)) + b2`` (Kitaev & Klein 2018, section 2, after
Stern et al. 2017). Since ``W1`` is linear it is applied once per fencepost and the results
are subtracted: ``n + 1`` products for a sentence instead of ``n (n + 1) / 2``.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from spmrl_bench.nn import kernels
from spmrl_bench.nn.choices import LayerNormForm
from spmrl_bench.nn.kernels import product_rows, with_product_rows
from spmrl_bench.nn.norms import layer_norm as norm_of

# Cells scored at once without a gradient: on the CPU their hidden layer and their scores stay in
# its cache; a GPU needs enough of them to be busy.
BLOCK = 1024
GPU_BLOCK = 1 << 16


def fenceposts(encoded: Tensor, left: Tensor, block: int = 2) -> Tensor:
    """Fencepost vectors from encoded tokens.

    In every block of coordinates the first half is the forward part and the second half the
    backward part. Blocks of two make the even coordinates the forward part and the odd ones the
    backward part, so both hold equal shares of content and position; an encoder's ``d_block``
    says its own. Fencepost ``k`` of a sentence joins the forward part of token ``k`` and the
    backward part of token ``k + 1``, START being token 0.

    Args:
        encoded: ``[tokens, d_out]``, every sentence with START and STOP.
        left: int64 ``[fenceposts]``, row of the token left of each fencepost.
        block: width of a block, an even number that divides ``d_out``.

    Returns:
        ``[fenceposts, d_out]``: the forward parts of all blocks, then the backward parts. A
        sentence of ``n`` words has ``n + 1`` fenceposts.
    """
    forward, backward = encoded.unflatten(1, (-1, 2, block // 2)).unbind(2)
    parts = (forward.index_select(0, left), backward.index_select(0, left + 1))
    return torch.cat(parts, dim=1).flatten(1)


class SpanScorer(nn.Module):
    """Scores of all labels but the empty one, whose score is fixed at zero."""

    def __init__(
        self, d_model: int, d_hidden: int, labels: int, layer_norm: LayerNormForm = "usual"
    ) -> None:
        """Random weights.

        Args:
            d_model: width of a fencepost vector, which is that of an encoded token.
            d_hidden: width of the hidden layer.
            labels: how many labels there are, the empty one among them.
            layer_norm: form of the norm of the hidden layer.
        """
        super().__init__()
        self.first = nn.Linear(d_model, d_hidden)
        self.norm = norm_of(d_hidden, layer_norm)
        self.second = nn.Linear(d_hidden, labels - 1)

    def project(self, posts: Tensor) -> Tensor:
        """The linear part of the first layer, ``[fenceposts, d_hidden]``, without bias."""
        return nn.functional.linear(with_product_rows(posts), self.first.weight)[: len(posts)]

    def hidden(self, projected: Tensor, start: Tensor, end: Tensor) -> Tensor:
        """Hidden layer ``[spans, d_hidden]`` of the spans between rows of ``projected``."""
        difference = projected.index_select(0, end) - projected.index_select(0, start)
        return self.norm(difference + self.first.bias).relu_()

    @torch.no_grad()
    def blocks(self, projected: Tensor, start: Tensor, end: Tensor) -> Iterator[Tensor]:
        """Scores ``[some spans, labels - 1]`` of many spans, without a gradient, in order.

        A block is to be used up before the next one is asked for, which takes its place.

        Raises:
            ArrayError: on the CPU, a row does not exist, or something is of another type or shape.
        """
        if kernels.usable(projected):
            # A product into a place of another shape would go elsewhere.
            weight, width = self.second.weight, self.second.in_features
            kernels.check_weight(self, weight, self.second.out_features, width)
            kernels.check_weight(self, self.second.bias, self.second.out_features)
        size = BLOCK if projected.device.type == "cpu" else GPU_BLOCK
        rows = product_rows(min(size, len(start)), projected.dtype)
        scores = projected.new_empty(rows, self.second.out_features)
        for low in range(0, len(start), size):
            of_start, of_end = start[low : low + size], end[low : low + size]
            hidden = self._block(projected, of_start, of_end)
            out = scores[: len(hidden)]
            torch.addmm(self.second.bias, hidden, self.second.weight.t(), out=out)
            yield out[: len(of_start)]

    def _block(self, projected: Tensor, start: Tensor, end: Tensor) -> Tensor:
        """:meth:`hidden` without a gradient, and perhaps some rows of zeros."""
        if not (kernels.usable(projected) and isinstance(self.norm, nn.LayerNorm)):
            return self.hidden(projected, start, end)
        kernel, width = kernels.load("_span_scorer"), projected.shape[1]
        result = projected.new_empty(product_rows(len(start), projected.dtype), width)
        result[len(start) :] = 0
        kernel.hidden(
            projected, start, end, len(start), width, self.first.bias, self.norm.weight,
            self.norm.bias, self.norm.eps, result, torch.get_num_threads(),
        )  # fmt: skip
        return result

    def chosen_scores(
        self, projected: Tensor, start: Tensor, end: Tensor, labels: Tensor
    ) -> Tensor:
        """Score ``[spans]`` of one label (1 or higher) for each span, with a gradient."""
        hidden = self.hidden(projected, start, end)
        weights = self.second.weight.index_select(0, labels - 1)
        return (hidden * weights).sum(dim=1) + self.second.bias.index_select(0, labels - 1)
