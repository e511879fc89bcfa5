"""The encoder on the CPU with as few passes over memory as its arithmetic allows.

The same function as ``Encoder`` in ``encoder.py``, forwards and backwards, with the
gradient written by hand. Matrix products go to torch, each half into its place of an array
``[2, tokens, width]``; what lies between two products is one call of the kernel ``_factored``.
With bfloat16 products the residual stream, norms and attention stay in float32.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from spmrl_bench.errors import ArrayError
from spmrl_bench.nn import kernels
from spmrl_bench.nn.fused_attention import Attention
from spmrl_bench.nn.kernels import ByHand, keep_scale, product_rows
from spmrl_bench.nn.precision import product_dtype
from spmrl_bench.nn.ragged import Ragged

if TYPE_CHECKING:
    from spmrl_bench.nn.encoder import Encoder
    from spmrl_bench.nn.maps import FactoredLinear


def encode(module: Encoder, content: Tensor, layout: Ragged) -> Tensor:
    """What ``module.stack(content, layout)`` computes, from ``[tokens, half]``.

    Raises:
        ArrayError: the content, the layout or a parameter is of a type or shape that does not fit.
    """
    tensors, places = kernels.load("_tensors"), module.positions.weight
    kernels.check_layout(layout, len(content))
    tensors.check(
        content.contiguous(), "content", torch.float32, len(content), module.content_width
    )
    kernels.check_types(module)
    kernels.check_weight(module, places, len(places), module.content_width)
    if layout.longest > len(places):
        raise ArrayError(
            f"a sentence has {layout.longest} tokens; the encoder has {len(places)} positions."
        )
    needed = torch.is_grad_enabled() and (
        content.requires_grad or any(weight.requires_grad for weight in module.parameters())
    )
    if needed:
        norm: Any = module.input_norm
        parameters = (module.positions.weight, *norm.parameters(), *module.layers.parameters())
        halves = ByHand.apply(_Pass(module, layout, keep=True), content, *parameters)
    else:
        halves = _Pass(module, layout, keep=False).forward(content)
    return torch.cat((halves[0], halves[1]), dim=1)


@dataclass(slots=True)
class _Normed:
    """A residual branch and its layer norm, as the way back needs them."""

    z: Tensor
    stats: Tensor
    masks: Tensor | None


@dataclass(slots=True)
class _Kept:
    """What a layer leaves for the way back."""

    rows: Tensor
    """Input of the layer, low."""
    qkv: Tensor
    context: Tensor
    attended: _Normed
    middle: Tensor
    """Input of the feed-forward part, low."""
    hidden: Tensor
    contracted: _Normed
    seed: int
    """Of the dropout of the attention weights."""


class _Pass:
    """One way through the encoder, forwards and perhaps back."""

    def __init__(self, module: Encoder, layout: Ragged, *, keep: bool) -> None:
        self.kernel = kernels.load("_factored")
        self.module = module
        self.input_norm: Any = module.input_norm
        self.layout = layout
        self.keep = keep
        self.training = module.training
        self.dtype = product_dtype(module.precision)
        self.low = self.dtype != torch.float32
        self.threads = torch.get_num_threads()
        self.real = len(layout.sentence)
        # Rows beyond the real ones stay finite, belong to no rectangle, and have gradient zero.
        self.tokens = product_rows(self.real, self.dtype)
        beyond = self.tokens - self.real
        self.sentence = functional.pad(layout.sentence, (0, beyond))
        self.position = functional.pad(layout.position, (0, beyond))
        self.sentences = len(layout.lengths)
        self.attention = Attention(layout, self.tokens, self.dtype, training=self.training)
        self.kept: list[_Kept] = []
        # Those of earlier passes, where the weights are known to be the same.
        self.low_weights = {} if module.low_weights is None else module.low_weights
        self.seeds: list[list[int]] = [[0] * 4] * len(module.layers)
        if self.training:
            self.seeds = torch.randint(2**62, (len(module.layers), 4)).tolist()

    # Forwards -------------------------------------------------------------------------

    @torch.autocast("cpu", enabled=False)  # it would round what is to stay in float32
    def forward(self, content: Tensor, *parameters: Tensor) -> Tensor:
        """``[tokens, half]`` to ``[2, tokens, half]``; the parameters are the module's."""
        module = self.module
        joined = torch.empty(2, self.tokens, content.shape[1])
        joined[0, : self.real] = content
        joined[0, self.real :] = 0
        torch.index_select(module.positions.weight, 0, self.position, out=joined[1])
        rows, low, self.joined = self._norm(joined, self.input_norm)
        for layer, seeds in zip(module.layers, self.seeds, strict=True):
            rows, low = self._layer(layer, rows, low, seeds)
        return rows[:, : self.real]

    def _layer(self, layer: Any, rows: Tensor, low: Tensor, seeds: list[int]) -> tuple[Tensor, ...]:
        attention = layer.attention
        packed = self._linear(attention.project, low)
        context = self.attention.forward(attention, packed, seeds[0])
        branch = self._linear(attention.output, context)
        masks = self._masks(layer.residual_dropout.p, seeds[1], rows.shape[2])
        middle, middle_low, attended = self._norm(rows, layer.attention_norm, branch, None, masks)

        hidden, bias = self._linear(layer.expand, middle_low), _bias(layer.expand)
        relu_masks = self._masks(layer.relu_dropout.p, seeds[2], hidden.shape[2])
        self.kernel.relu_drop(
            hidden, self.low, bias, relu_masks, self.sentence, self.tokens, hidden.shape[2],
            self.threads,
        )  # fmt: skip
        branch = self._linear(layer.contract, hidden)
        masks = self._masks(layer.residual_dropout.p, seeds[3], rows.shape[2])
        result, result_low, contracted = self._norm(
            middle, layer.feed_forward_norm, branch, _bias(layer.contract), masks
        )
        if self.keep:
            self.kept.append(
                _Kept(low, packed, context, attended, middle_low, hidden, contracted, seeds[0])
            )
        return result, result_low

    def _weight(self, linear: FactoredLinear, side: int) -> Tensor:
        """One half's matrix, low; rounded on the way forwards and used backwards."""
        half = linear.content if side == 0 else linear.position
        weight = half.weight
        # A product into a place of another shape would go elsewhere.
        kernels.check_weight(self.module, weight, half.out_features, half.in_features)
        if not self.low:
            return weight.detach()
        found = self.low_weights.get(weight)
        if found is None:
            found = self.low_weights[weight] = weight.detach().to(self.dtype)
        return found

    def _linear(self, linear: FactoredLinear, rows: Tensor) -> Tensor:
        """Both halves' products without bias, low ``[2, tokens, outputs / 2]``."""
        result = torch.empty(2, self.tokens, linear.content.out_features, dtype=self.dtype)
        for side in range(2):
            torch.mm(rows[side], self._weight(linear, side).t(), out=result[side])
        return result

    def _masks(self, p: float, seed: int, width: int) -> Tensor | None:
        """Dropout factors ``[sentences, 2 width]``; None where nothing is dropped."""
        if not self.training or p == 0:
            return None
        masks = torch.empty(self.sentences, 2 * width)
        self.kernel.masks(seed, p, masks.view(-1))
        return masks

    def _norm(
        self,
        rows: Tensor,
        norm: nn.LayerNorm,
        branch: Tensor | None = None,
        bias: Tensor | None = None,
        masks: Tensor | None = None,
    ) -> tuple[Tensor, Tensor, _Normed]:
        """Layer norm of ``rows``, with a branch added first: in float32, low, and for later."""
        width = rows.shape[2]
        if branch is None or not self.keep:
            z = rows  # nobody needs them any more
        else:
            z = torch.empty_like(rows) if self.low else branch
        if branch is not None and bias is None:
            bias = torch.zeros(2 * width)
        result = torch.empty_like(rows) if self.keep or branch is None else z
        low = torch.empty_like(result, dtype=self.dtype) if self.low else result
        stats = torch.empty(self.tokens, 2)
        self.kernel.residual_norm(
            rows, branch, self.low, bias, masks, self.sentence, self.tokens, width, norm.weight,
            norm.bias, norm.eps, z, stats, result, low, self.threads,
        )  # fmt: skip
        return result, low, _Normed(z, stats, masks)

    # Backwards ------------------------------------------------------------------------

    @torch.autocast("cpu", enabled=False)
    def backward(self, gradient: Tensor) -> list[Tensor | None]:
        """Gradients of the content and of the parameters, from that of the result.

        A fixed table of positions has none.
        """
        module = self.module
        # The kernels work in place, and the gradient may belong to others too.
        rows = torch.zeros(2, self.tokens, gradient.shape[2])
        rows[:, : self.real] = gradient
        more = None
        found: list[Tensor] = []
        for layer in reversed(module.layers):
            rows, more, parameters = self._layer_back(layer, self.kept.pop(), rows, more)
            found = parameters + found
        rows, _, sums = self._norm_back(rows, more, self.joined, self.input_norm, branch=False)
        positions, table = module.positions.weight, None
        if positions.requires_grad:
            table = torch.ops.aten.embedding_dense_backward(
                rows[1, : self.real], self.layout.position, len(positions), -1, False
            )
        return [rows[0, : self.real], table, sums[0], sums[1], *found]

    def _layer_back(
        self, layer: Any, kept: _Kept, rows: Tensor, more: Tensor | None
    ) -> tuple[Tensor, Tensor, list[Tensor]]:
        """Gradient of the layer's input (as a sum of two) and of its parameters."""
        rows, branch, second = self._norm_back(rows, more, kept.contracted, layer.feed_forward_norm)
        contract = self._weight_gradients(branch, kept.hidden)
        hidden = self._back(layer.contract, branch)
        p = layer.relu_dropout.p if self.training else 0.0
        sums = torch.zeros(self.threads, 2 * hidden.shape[2])
        self.kernel.relu_drop_back(
            hidden, kept.hidden, self.low, keep_scale(p), self.tokens, hidden.shape[2], sums,
            self.threads,
        )  # fmt: skip
        expand = self._weight_gradients(hidden, kept.middle)
        more = self._back(layer.expand, hidden)

        rows, branch, first = self._norm_back(rows, more, kept.attended, layer.attention_norm)
        output = self._weight_gradients(branch, kept.context)
        context = self._back(layer.attention.output, branch)
        qkv = self.attention.backward(layer.attention, kept.qkv, kept.seed, context)
        project = self._weight_gradients(qkv, kept.rows)
        more = self._back(layer.attention.project, qkv)
        expand = _with_biases(expand, sums.sum(0))
        contract = _with_biases(contract, second[2])
        return rows, more, [*project, *output, *expand, *contract, *first[:2], *second[:2]]

    def _back(self, linear: FactoredLinear, gradient: Tensor) -> Tensor:
        """Gradient of a linear map's input."""
        result = torch.empty(2, self.tokens, linear.content.in_features, dtype=self.dtype)
        for side in range(2):
            torch.mm(gradient[side], self._weight(linear, side), out=result[side])
        return result

    def _weight_gradients(self, gradient: Tensor, rows: Tensor) -> list[Tensor]:
        """Gradients of the content and the position matrix of a linear map."""
        return [torch.mm(gradient[side].t(), rows[side]).float() for side in range(2)]

    def _norm_back(
        self,
        rows: Tensor,
        more: Tensor | None,
        normed: _Normed,
        norm: nn.LayerNorm,
        *,
        branch: bool = True,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Gradients of the residual rows (in place), of the branch, and of gain, shift, bias."""
        width = rows.shape[2]
        below = torch.empty_like(rows, dtype=self.dtype) if branch else None
        sums = torch.zeros(self.threads, 3, 2 * width)
        self.kernel.residual_norm_back(
            rows, more, self.low, normed.z, normed.stats, normed.masks, self.sentence, self.tokens,
            width, norm.weight, rows, below, sums, self.threads,
        )  # fmt: skip
        return rows, below if below is not None else rows, sums.sum(0)


def _with_biases(weights: list[Tensor], biases: Tensor) -> list[Tensor]:
    """Of a linear map, in the order of its parameters: matrix and bias of each half."""
    content, position = biases.chunk(2)
    return [weights[0], content, weights[1], position]


def _bias(linear: FactoredLinear) -> Tensor:
    for half in (linear.content, linear.position):
        kernels.check_weight(half, half.bias, half.out_features)
    return torch.cat((linear.content.bias, linear.position.bias)).detach()
