"""The layers once more, written down as in the paper: plain loops in double precision.

Nothing here is shared with the product but the weights. Each function takes a module for its
weights and NumPy rows for its input, and works through sentences, heads and tokens one by one.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from spmrl_bench.nn.encoder import Encoder, EncoderLayer, SelfAttention
from spmrl_bench.nn.lexical import CharLSTM
from spmrl_bench.nn.norms import ReleasedLayerNorm
from spmrl_bench.nn.ragged import Ragged
from spmrl_bench.nn.span_scorer import SpanScorer

Rows = NDArray[np.float64]


def layout_of(lengths: list[int]) -> Ragged:
    """The layout of sentences of these many tokens, on the CPU."""
    return Ragged.of(np.array(lengths, dtype=np.int64), torch.device("cpu"))


def all_scores(scorer: SpanScorer, projected: Tensor, start: Tensor, end: Tensor) -> Tensor:
    """The product's own scores of all spans, ``[spans, labels - 1]``, in one array."""
    return torch.cat([block.clone() for block in scorer.blocks(projected, start, end)])


def array(tensor: Tensor) -> Rows:
    """A tensor as a float64 array."""
    return tensor.detach().numpy().astype(np.float64)


def randomise(module: nn.Module, seed: int, scale: float = 0.5) -> None:
    """Give every parameter random values, also those that start as zeros or ones."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(
                scale * torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
            )


def layer_norm(vector: Rows, norm: nn.LayerNorm | ReleasedLayerNorm) -> Rows:
    """One vector, normalised over all its coordinates."""
    mean = sum(vector) / len(vector)
    if isinstance(norm, ReleasedLayerNorm):
        unbiased = sum((value - mean) ** 2 for value in vector) / (len(vector) - 1)
        scaled = (vector - mean) / (math.sqrt(unbiased) + 0.001)
        return scaled * array(norm.weight) + array(norm.bias)
    variance = sum((value - mean) ** 2 for value in vector) / len(vector)
    scaled = (vector - mean) / math.sqrt(variance + norm.eps)
    return scaled * array(norm.weight) + array(norm.bias)


def attention(module: SelfAttention, rows: Rows, lengths: list[int]) -> Rows:
    """Factored multi-head attention: heads are added up, each with its own projections."""
    heads, half = module.heads, module.d_kv // 2
    width = rows.shape[1] // 2
    result = np.zeros_like(rows)
    begin = 0
    for length in lengths:
        tokens = range(begin, begin + length)
        for head in range(heads):
            query, key, value = (
                {
                    (side, token): array(linear.weight)[
                        (part * heads + head) * half : (part * heads + head + 1) * half
                    ]
                    @ rows[token, side * width : (side + 1) * width]
                    for side, linear in enumerate((module.project.content, module.project.position))
                    for token in tokens
                }
                for part in range(3)
            )
            for i in tokens:
                logits = [
                    (query[0, i] @ key[0, j] + query[1, i] @ key[1, j]) / math.sqrt(module.d_kv)
                    for j in tokens
                ]
                powers = [math.exp(logit - max(logits)) for logit in logits]
                weights = [power / sum(powers) for power in powers]
                for side, linear in enumerate((module.output.content, module.output.position)):
                    mixed = sum(w * value[side, j] for w, j in zip(weights, tokens, strict=True))
                    columns = array(linear.weight)[:, head * half : (head + 1) * half]
                    result[i, side * width : (side + 1) * width] += columns @ mixed
        begin += length
    return result


def full_attention(
    module: SelfAttention, rows: Rows, asking: Rows, lengths: list[int], divisor: float
) -> Rows:
    """Attention with one matrix each for the queries, keys and values of a head.

    Queries and keys are computed from ``asking``, values from ``rows``; ``divisor`` is what the
    products of queries and keys are divided by.
    """
    result = np.zeros_like(rows)
    begin = 0
    for length in lengths:
        tokens = range(begin, begin + length)
        for head in range(module.heads):
            w_query, w_key, w_value = (
                array(module.project.weight)[
                    (part * module.heads + head) * module.d_kv : (part * module.heads + head + 1)
                    * module.d_kv
                ]
                for part in range(3)
            )
            columns = array(module.output.weight)[:, head * module.d_kv : (head + 1) * module.d_kv]
            for i in tokens:
                powers = [
                    math.exp((w_query @ asking[i]) @ (w_key @ asking[j]) / divisor) for j in tokens
                ]
                for power, j in zip(powers, tokens, strict=True):
                    result[i] += columns @ (power / sum(powers) * (w_value @ rows[j]))
        begin += length
    return result


def layer(module: EncoderLayer, rows: Rows, lengths: list[int]) -> Rows:
    """``LayerNorm(x + attention(x))``, then ``LayerNorm(x + feed-forward(x))``, no dropout."""
    width = rows.shape[1] // 2
    attended = attention(module.attention, rows, lengths)
    result = []
    for row, change in zip(rows, attended, strict=True):
        middle = layer_norm(row + change, module.attention_norm)
        halves = []
        for part, expand, contract in (
            (middle[:width], module.expand.content, module.contract.content),
            (middle[width:], module.expand.position, module.contract.position),
        ):
            hidden = array(expand.weight) @ part + array(expand.bias)
            hidden = np.array([max(value, 0.0) for value in hidden])
            halves.append(array(contract.weight) @ hidden + array(contract.bias))
        result.append(layer_norm(middle + np.concatenate(halves), module.feed_forward_norm))
    return np.array(result)


def encoder(module: Encoder, content: Rows, lengths: list[int]) -> Rows:
    """The whole stack over ``[content ; position row]``, position 0 for the first token."""
    table = array(module.positions.weight)
    places = [place for length in lengths for place in range(length)]
    rows = np.array(
        [
            layer_norm(np.concatenate((row, table[place])), module.input_norm)
            for row, place in zip(content, places, strict=True)
        ]
    )
    for each in module.layers:
        assert isinstance(each, EncoderLayer)
        rows = layer(each, rows, lengths)
    return rows


def fenceposts(encoded: Rows, lengths: list[int]) -> Rows:
    """Even coordinates of token k, then odd coordinates of token k + 1, for every sentence."""
    posts = []
    begin = 0
    for length in lengths:
        for k in range(length - 1):
            forward = [encoded[begin + k, c] for c in range(0, encoded.shape[1], 2)]
            backward = [encoded[begin + k + 1, c] for c in range(1, encoded.shape[1], 2)]
            posts.append(forward + backward)
        begin += length
    return np.array(posts)


def span_scores(module: SpanScorer, start: Rows, end: Rows) -> Rows:
    """``W2 relu(LayerNorm(W1 (f_j - f_i) + b1)) + b2`` of one span, [labels - 1]."""
    hidden = array(module.first.weight) @ (end - start) + array(module.first.bias)
    hidden = np.maximum(layer_norm(hidden, module.norm), 0.0)
    return array(module.second.weight) @ hidden + array(module.second.bias)


def char_lstm(module: CharLSTM, form: list[int]) -> Rows:
    """Last states of a forward and a backward LSTM over the characters of one form."""
    states = []
    for suffix, characters in (("", form), ("_reverse", form[::-1])):
        w_in, w_state, b_in, b_state = (
            array(getattr(module.lstm, f"{name}_l0{suffix}"))
            for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        )
        size = w_state.shape[1]
        state, memory = np.zeros(size), np.zeros(size)
        for character in characters:
            gates = w_in @ array(module.embedding.weight)[character] + b_in
            gates += w_state @ state + b_state
            keep_in, keep_old, new, out = (gates[k * size : (k + 1) * size] for k in range(4))
            memory = _sigmoid(keep_old) * memory + _sigmoid(keep_in) * np.tanh(new)
            state = _sigmoid(out) * np.tanh(memory)
        states.append(state)
    return np.concatenate(states)


def _sigmoid(values: Rows) -> Rows:
    return 1 / (1 + np.exp(-values))
