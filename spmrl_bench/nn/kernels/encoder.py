"""The self-attentive encoder on the CPU with as few passes over memory as its arithmetic allows.

The same function as the encoder of torch operations, forwards and backwards, with the gradient
written by hand. Matrix products go to torch, each half into its place of an array ``[2, tokens,
width]``; what lies between two products is one call of the kernel ``_encoder``. With bfloat16
products the residual stream, norms and attention stay in float32; *bf16* arrays have the type of
the factors of products.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from spmrl_bench.errors import ArrayError
from spmrl_bench.nn.kernels import (
    CustomGradient,
    check,
    check_weight,
    load,
    matmul_dtype,
    rounded_rows,
)
from spmrl_bench.nn.ragged import Ragged


def encode(module: Any, content: Tensor, layout: Ragged) -> Tensor:
    """Return what ``module.stack(content, layout)`` computes, from ``[tokens, half]``.

    The module is an ``AttentionEncoder`` with factored layers and norms of torch. Weights that it
    says stay as they are (``bf16_weights``) are rounded once.

    Raises:
        ArrayError: the content, the layout or a parameter is of a type or shape that does not fit.
    """
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
    if needed:
        parameters = (places, *module.input_norm.parameters(), *module.layers.parameters())
        halves = CustomGradient.apply(work, content, *parameters)
    else:
        halves = work.forward(content)
    return torch.cat((halves[0], halves[1]), dim=1)


class SavedNorm(NamedTuple):
    """A residual branch and its layer norm, as the way back needs them."""

    z: Tensor
    stats: Tensor
    masks: Tensor | None


class SavedLayer(NamedTuple):
    """What a layer leaves for the way back."""

    rows: Tensor  # the input of the layer, bf16
    qkv: Tensor
    context: Tensor
    attended: SavedNorm
    middle: Tensor  # the input of the feed-forward part, bf16
    hidden: Tensor
    contracted: SavedNorm
    seed: int  # of the dropout of the attention weights


class EncoderPass:
    """One way through the encoder, forwards and perhaps back."""

    def __init__(self, module: Any, layout: Ragged, *, keep: bool) -> None:
        self.module = module
        self.keep = keep
        self.dtype = matmul_dtype(module.precision)
        self.bf16 = self.dtype != torch.float32
        threads = torch.get_num_threads()
        self.real = len(layout.position)
        # Rows beyond the real ones stay finite, belong to no sentence, and have gradient zero.
        self.tokens = rounded_rows(self.real, self.dtype)
        self.position = functional.pad(layout.position, (0, self.tokens - self.real))
        self.sentences = len(layout.lengths)
        self.kernel = load("encoder")
        self.batch = self.kernel.Batch(layout.lengths, self.tokens, self.bf16, keep, threads)
        self.saved: list[SavedLayer] = []
        self.bf16_weights = {} if module.bf16_weights is None else module.bf16_weights
        self.seeds: list[list[int]] = [[0] * 4] * len(module.layers)
        if module.training:
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
        rows, rounded, self.joined = self._norm(joined, module.input_norm)
        for layer, seeds in zip(module.layers, self.seeds, strict=True):
            rows, rounded = self._layer(layer, rows, rounded, seeds)
        return rows[:, : self.real]

    def _layer(
        self, layer: Any, rows: Tensor, rounded: Tensor, seeds: list[int]
    ) -> tuple[Tensor, Tensor]:
        attention, width = layer.attention, rows.shape[2]
        qkv = self._products(attention.project, rounded)
        context = self.batch.attend(qkv, *self._heads(attention, seeds[0]))
        branch = self._products(attention.output, context)
        masks = self._masks(layer.residual_dropout.p, seeds[1], width)
        middle, middle_rounded, attended = self._norm(
            rows, layer.attention_norm, branch, torch.zeros(2 * width), masks
        )
        hidden = self._products(layer.expand, middle_rounded)
        relu_masks = self._masks(layer.relu_dropout.p, seeds[2], hidden.shape[2])
        self.batch.relu_drop(hidden, _bias(layer.expand), relu_masks)
        branch = self._products(layer.contract, hidden)
        masks = self._masks(layer.residual_dropout.p, seeds[3], width)
        result, result_rounded, contracted = self._norm(
            middle, layer.feed_forward_norm, branch, _bias(layer.contract), masks
        )
        if self.keep:
            self.saved.append(
                SavedLayer(
                    rounded, qkv, context, attended, middle_rounded, hidden, contracted, seeds[0]
                )
            )
        return result, result_rounded

    def _heads(self, attention: Any, seed: int) -> tuple[Any, ...]:
        """What both ways of the kernel are told of the heads."""
        p = attention.dropout if self.module.training else 0.0
        return attention.heads, attention.factor, seed, p

    def _weight(self, half: Any) -> Tensor:
        """A matrix, bf16; rounded on the way forwards and used backwards."""
        weight: Tensor = half.weight
        # A product into a place of another shape would go elsewhere.
        check_weight(half, weight, half.out_features, half.in_features)
        if not self.bf16:
            return weight.detach()
        found = self.bf16_weights.get(weight)
        if found is None:
            found = self.bf16_weights[weight] = weight.detach().to(self.dtype)
        return found

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
        if not self.module.training or p == 0:
            return torch.ones(2 * width)
        masks: Tensor = self.kernel.masks(seed, p, self.sentences, 2 * width)
        return masks

    def _norm(
        self,
        rows: Tensor,
        norm: nn.LayerNorm,
        branch: Tensor | None = None,
        bias: Tensor | None = None,
        masks: Tensor | None = None,
    ) -> tuple[Tensor, Tensor, SavedNorm]:
        """Layer norm of ``rows``, with a branch added first: in float32, bf16, and for later."""
        for weight in norm.parameters():
            check_weight(self.module, weight, 2 * rows.shape[2])
        result, rounded, z, stats = self.batch.norm(
            rows, branch, bias, masks, norm.weight, norm.bias, norm.eps
        )
        return result, rounded, SavedNorm(z, stats, masks)

    # Backwards ------------------------------------------------------------------------

    @torch.autocast("cpu", enabled=False)
    def backward(self, gradient: Tensor) -> list[Tensor | None]:
        """Gradients of the content and of the parameters; a fixed table of positions has none."""
        module = self.module
        # The kernel works in place, and the gradient may belong to others too.
        rows = torch.zeros(2, self.tokens, gradient.shape[2])
        rows[:, : self.real] = gradient
        more = None
        found: list[Tensor] = []
        for layer in reversed(module.layers):
            more, parameters = self._layer_back(layer, self.saved.pop(), rows, more)
            found = parameters + found
        sums, _ = self._norm_back(rows, more, self.joined, module.input_norm)
        positions, table = module.positions.weight, None
        if positions.requires_grad:
            table = torch.ops.aten.embedding_dense_backward(
                rows[1, : self.real], self.position[: self.real], len(positions), -1, False
            )
        return [rows[0, : self.real], table, sums[0], sums[1], *found]

    def _layer_back(
        self, layer: Any, saved: SavedLayer, rows: Tensor, more: Tensor | None
    ) -> tuple[Tensor, list[Tensor]]:
        """Make ``rows`` and the result the gradient of the layer's input, with its parameters'."""
        attention = layer.attention
        second, branch = self._norm_back(rows, more, saved.contracted, layer.feed_forward_norm)
        contract = _weight_gradients(branch, saved.hidden)
        hidden = self._products(layer.contract, branch, back=True)
        p = layer.relu_dropout.p if self.module.training else 0.0
        biases = self.batch.relu_drop_back(hidden, saved.hidden, p)
        expand = _weight_gradients(hidden, saved.middle)
        more = self._products(layer.expand, hidden, back=True)

        first, branch = self._norm_back(rows, more, saved.attended, layer.attention_norm)
        output = _weight_gradients(branch, saved.context)
        context = self._products(attention.output, branch, back=True)
        qkv = self.batch.attend_back(saved.qkv, context, *self._heads(attention, saved.seed))
        project = _weight_gradients(qkv, saved.rows)
        more = self._products(attention.project, qkv, back=True)
        expand = _with_biases(expand, biases)
        contract = _with_biases(contract, second[2])
        return more, [*project, *output, *expand, *contract, *first[:2], *second[:2]]

    def _norm_back(
        self, rows: Tensor, more: Tensor | None, saved: SavedNorm, norm: nn.LayerNorm
    ) -> tuple[Tensor, Tensor]:
        """Turn the gradients of the rows into those before; return others, as the kernel does."""
        found: tuple[Tensor, Tensor] = self.batch.norm_back(rows, more, *saved, norm.weight)
        return found


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
