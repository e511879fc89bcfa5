"""The self-attentive encoder on the CPU with as few passes over memory as its arithmetic allows.

Matrix products go to torch, each half into its place of an array ``[2, tokens, width]``; what lies
between two products is one call of the kernel ``_encoder``. *bf16* arrays have the type of the
factors of products; the residual stream, norms and attention stay in float32.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from spmrl_bench.errors import ArrayError
from spmrl_bench.nn import kernels
from spmrl_bench.nn.kernels import Backward, check, check_weight, rounded_rows
from spmrl_bench.nn.ragged import Ragged

#: From the gradient of a layer's result, whose second part is a branch's or absent.
LayerBack = Callable[[Tensor, Tensor | None], tuple[Tensor, list[Tensor]]]


def encode(module: Any, content: Tensor, layout: Ragged) -> Tensor:
    """Return what ``module.stack(content, layout)`` computes, from ``[tokens, half]``, of an
    ``AttentionEncoder`` with factored layers and norms of torch; raise an ArrayError where
    something does not fit. Weights that stay as they are (``bf16_weights``) are rounded once."""
    places = module.positions.weight
    check(content, "content", len(layout.position), module.content_width)
    check(places, "the table of positions", len(places), module.content_width)
    if (total := int(layout.lengths.sum())) != len(content):
        raise ArrayError(f"the layout has {total} tokens; the content has {len(content)}.")
    if (longest := int(layout.lengths.max())) > len(places):
        raise ArrayError(
            f"a sentence has {longest} tokens; the encoder has {len(places)} positions."
        )
    needed = torch.is_grad_enabled() and (
        content.requires_grad or any(weight.requires_grad for weight in module.parameters())
    )
    work = EncoderPass(module, layout, keep=needed)
    parameters = (places, *module.input_norm.parameters(), *module.layers.parameters())
    halves = kernels.CustomGradient.apply(work.run, content, *parameters)
    return torch.cat((halves[0], halves[1]), dim=1)


class EncoderPass:
    """One way through the encoder, whose parts leave behind what leads back through them."""

    def __init__(self, module: Any, layout: Ragged, *, keep: bool) -> None:
        self.module, self.keep = module, keep
        self.dtype = kernels.matmul_dtype(module.precision)
        self.real = len(layout.position)
        # Rows beyond the real ones stay finite, belong to no sentence, and have gradient zero.
        self.tokens = rounded_rows(self.real, self.dtype)
        self.position = functional.pad(layout.position, (0, self.tokens - self.real))
        self.sentences = len(layout.lengths)
        self.kernel, bf16 = kernels.load("encoder"), self.dtype != torch.float32
        threads = torch.get_num_threads()
        self.batch = self.kernel.Batch(layout.lengths, self.tokens, bf16, keep, threads)
        self.bf16_weights = {} if module.bf16_weights is None else module.bf16_weights
        self.seeds: list[list[int]] = [[0] * 4] * len(module.layers)
        if module.training:
            self.seeds = torch.randint(2**62, (len(module.layers), 4)).tolist()

    @torch.autocast("cpu", enabled=False)  # it would round what is to stay in float32
    def run(self, content: Tensor, *parameters: Tensor) -> tuple[Tensor, Backward]:
        """``[tokens, half]`` to ``[2, tokens, half]``; the parameters are the module's."""
        module, positions = self.module, self.module.positions.weight
        joined = torch.empty(2, self.tokens, content.shape[1])
        joined[0, : self.real] = content
        joined[0, self.real :] = 0
        torch.index_select(positions, 0, self.position, out=joined[1])
        rows, rounded, norm_back = self._norm(joined, module.input_norm)
        backs: list[LayerBack] = []
        for layer, seeds in zip(module.layers, self.seeds, strict=True):
            rows, rounded = self._layer(layer, rows, rounded, seeds, backs)

        @torch.autocast("cpu", enabled=False)
        def back(gradient: Tensor) -> list[Tensor | None]:
            """Gradients of the content and of the parameters; fixed positions have none."""
            # The kernel works in place, and the gradient may belong to others too.
            d_rows = torch.zeros(2, self.tokens, gradient.shape[2])
            d_rows[:, : self.real] = gradient
            more = table = None
            found: list[Tensor] = []
            while backs:
                more, of_layer = backs.pop()(d_rows, more)
                found = of_layer + found
            sums, _ = norm_back(d_rows, more)
            if positions.requires_grad:
                table = torch.ops.aten.embedding_dense_backward(
                    d_rows[1, : self.real], self.position[: self.real], len(positions), -1, False
                )
            return [d_rows[0, : self.real], table, sums[0], sums[1], *found]

        return rows[:, : self.real], back

    def _layer(
        self, layer: Any, rows: Tensor, rounded: Tensor, seeds: list[int], backs: list[LayerBack]
    ) -> tuple[Tensor, Tensor]:
        attention, width = layer.attention, rows.shape[2]
        heads = attention.heads, attention.factor, seeds[0], self._rate(attention.dropout)
        qkv = self._products(attention.project, rounded)
        context = self.batch.attend(qkv, *heads)
        branch = self._products(attention.output, context)
        masks = self._masks(layer.residual_dropout.p, seeds[1], width)
        middle, low, first_norm_back = self._norm(
            rows, layer.attention_norm, branch, torch.zeros(2 * width), masks
        )
        hidden, p = self._products(layer.expand, low), layer.relu_dropout.p
        relu_masks = self._masks(p, seeds[2], hidden.shape[2])
        self.batch.relu_drop(hidden, _bias(layer.expand), relu_masks)
        branch = self._products(layer.contract, hidden)
        masks = self._masks(layer.residual_dropout.p, seeds[3], width)
        result, result_low, second_norm_back = self._norm(
            middle, layer.feed_forward_norm, branch, _bias(layer.contract), masks
        )

        def back(d_rows: Tensor, more: Tensor | None) -> tuple[Tensor, list[Tensor]]:
            """Make ``d_rows`` and the result the gradient of the layer's input."""
            second, d_branch = second_norm_back(d_rows, more)
            contract = _weight_gradients(d_branch, hidden)
            d_hidden = self._products(layer.contract, d_branch, back=True)
            biases = self.batch.relu_drop_back(d_hidden, hidden, self._rate(p))
            expand = _weight_gradients(d_hidden, low)
            more = self._products(layer.expand, d_hidden, back=True)
            first, d_branch = first_norm_back(d_rows, more)
            output = _weight_gradients(d_branch, context)
            d_context = self._products(attention.output, d_branch, back=True)
            d_qkv = self.batch.attend(qkv, *heads, d_context)
            project = _weight_gradients(d_qkv, rounded)
            more = self._products(attention.project, d_qkv, back=True)
            expand = _with_biases(expand, biases)
            contract = _with_biases(contract, second[2])
            return more, [*project, *output, *expand, *contract, *first[:2], *second[:2]]

        if self.keep:
            backs.append(back)
        return result, result_low

    def _rate(self, p: float) -> float:
        return p if self.module.training else 0.0

    def _weight(self, half: Any) -> Tensor:
        """A matrix, bf16; rounded on the way forwards and used backwards."""
        weight: Tensor = half.weight
        # A product into a place of another shape would go elsewhere.
        check_weight(half, weight, half.out_features, half.in_features)
        if self.dtype == torch.float32:
            return weight.detach()
        if weight not in self.bf16_weights:
            self.bf16_weights[weight] = weight.detach().to(self.dtype)
        return self.bf16_weights[weight]

    def _products(self, linear: Any, rows: Tensor, *, back: bool = False) -> Tensor:
        """Both halves' products without bias, or the gradients of their inputs; bf16."""
        weights = [self._weight(half) for half in (linear.content, linear.position)]
        if not back:
            weights = [weight.t() for weight in weights]
        result = torch.empty(2, self.tokens, weights[0].shape[1], dtype=self.dtype)
        for side in range(2):
            torch.mm(rows[side], weights[side], out=result[side])
        return result

    def _masks(self, p: float, seed: int, width: int) -> Tensor:
        """Dropout factors ``[sentences, 2 width]``; ones for all where nothing is dropped."""
        if self._rate(p) == 0:
            return torch.ones(2 * width)
        masks: Tensor = self.kernel.masks(seed, p, self.sentences, 2 * width)
        return masks

    def _norm(
        self, rows: Tensor, norm: nn.LayerNorm, *added: Tensor
    ) -> tuple[Tensor, Tensor, Callable[..., Any]]:
        """Layer norm of ``rows``, with a branch, its bias and masks added first, float32 and bf16;
        and the kernel's way back."""
        weight, (branch, bias, masks) = norm.weight, added or (None, None, None)
        for each in norm.parameters():
            check_weight(self.module, each, 2 * rows.shape[2])
        result, low, z, stats = self.batch.norm(
            rows, branch, bias, masks, weight, norm.bias, norm.eps
        )
        back = partial(self.batch.norm_back, z=z, stats=stats, masks=masks, gain=weight)
        return result, low, back


def _weight_gradients(gradient: Tensor, rows: Tensor) -> list[Tensor]:
    """Gradients of the content and the position matrix of a linear map."""
    return [torch.mm(gradient[side].t(), rows[side]).float() for side in range(2)]


def _with_biases(weights: list[Tensor], biases: Tensor) -> list[Tensor]:
    """Of a linear map, in the order of its parameters: matrix and bias of each half."""
    content, position = biases.chunk(2)
    return [weights[0], content, weights[1], position]


def _bias(linear: Any) -> Tensor:
    for half in (linear.content, linear.position):
        check_weight(half, half.bias, half.out_features)
    return torch.cat((linear.content.bias, linear.position.bias)).detach()
