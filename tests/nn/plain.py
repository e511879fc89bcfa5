"""The layers once more, written down as in the paper: plain loops in double precision.

Nothing here is shared with the product but the weights. Each function takes a module for its
weights and NumPy rows for its input, and works through sentences, heads and tokens one by one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from spmrl_bench.nn.encoders.attention import AttentionEncoder, EncoderLayer, SelfAttention
from spmrl_bench.nn.inputs import Codes
from spmrl_bench.nn.inputs.charlstm import CharLSTM
from spmrl_bench.nn.layers import ReleasedLayerNorm
from spmrl_bench.nn.ragged import Ragged
from spmrl_bench.nn.scorers.spans import SpanScorer
from spmrl_bench.nn.settings import Precision
from spmrl_bench.nn.vocabulary import FIRST_CHAR, Vocabulary

Rows = NDArray[np.float64]


def layout_of(lengths: list[int]) -> Ragged:
    """The layout of sentences of these many tokens, on the CPU."""
    return Ragged.of(np.array(lengths, dtype=np.int64), torch.device("cpu"))


def all_scores(scorer: SpanScorer, projected: Tensor, start: Tensor, end: Tensor) -> Tensor:
    """The product's own scores of all spans, ``[spans, labels - 1]``, in one array."""
    return torch.cat([block.clone() for block in scorer.blocks(projected, start, end)])


def char_lstm_of(
    characters: int, d_char: int, width: int, precision: Precision = "float32", **changes: Any
) -> CharLSTM:
    """A CharLSTM over so many characters, marks included, without dropout."""
    config = CharLSTM.Config(d_char=d_char, **{"char_dropout": 0.0, "dropout": 0.0, **changes})
    letters = tuple(chr(ord("a") + k) for k in range(characters - FIRST_CHAR))
    return CharLSTM(config, Vocabulary({}, letters, ((),)), width, precision=precision)


def codes_of(forms: Sequence[Sequence[int]], fill: int = 0) -> Codes:
    """The codes of distinct forms, each a token; ``fill`` stands where there is none."""
    values = torch.full((len(forms), max(map(len, forms))), fill)
    for row, form in zip(values, forms, strict=True):
        row[: len(form)] = torch.tensor(form)
    return Codes(values, torch.tensor([*map(len, forms)]), torch.arange(len(forms)))


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


def layer_norm(vector: Rows, norm: nn.LayerNorm) -> Rows:
    """One vector, normalised over all its coordinates."""
    mean = sum(vector) / len(vector)
    if isinstance(norm, ReleasedLayerNorm):
        unbiased = sum((value - mean) ** 2 for value in vector) / (len(vector) - 1)
        scaled = (vector - mean) / (math.sqrt(unbiased) + 0.001)
        return scaled * array(norm.weight) + array(norm.bias)
    variance = sum((value - mean) ** 2 for value in vector) / len(vector)
    scaled = (vector - mean) / math.sqrt(variance + norm.eps)
    return scaled * array(norm.weight) + array(norm.bias)


def attention(
    module: SelfAttention,
    rows: Rows,
    lengths: list[int],
    queries: Rows | None = None,
    divisor: float | None = None,
) -> Rows:
    """Multi-head attention: heads are added up, each with its own projections, of each half or all.

    Queries and keys are computed from ``queries``, values from ``rows``; ``divisor`` is what the
    products of queries and keys are divided by.
    """
    queries, divisor = rows if queries is None else queries, divisor or math.sqrt(module.d_kv)
    into, back = maps(module.project), maps(module.output)
    width, size = rows.shape[1] // len(into), module.d_kv // len(into)

    def of_head(part: int, head: int, row: Rows) -> list[Rows]:
        own = slice((part * module.heads + head) * size, (part * module.heads + head + 1) * size)
        return [m[own] @ half for m, half in zip(into, row.reshape(-1, width), strict=True)]

    result = np.zeros_like(rows)
    for begin, length in zip(np.cumsum([0, *lengths]), lengths, strict=False):
        tokens = range(begin, begin + length)
        for head in range(module.heads):
            columns = np.stack(back)[:, :, head * size : (head + 1) * size]
            wanted, keys = ([of_head(part, head, queries[i]) for i in tokens] for part in (0, 1))
            values = [of_head(2, head, rows[j]) for j in tokens]
            for i, query in zip(tokens, wanted, strict=True):
                logits = [np.vdot(query, key) / divisor for key in keys]
                powers = [math.exp(logit - max(logits)) for logit in logits]
                for power, value in zip(powers, values, strict=True):
                    mixed = np.einsum("phk,pk->ph", columns, np.stack(value))
                    result[i] += power / sum(powers) * mixed.ravel()
    return result


def maps(linear: Any, name: str = "weight") -> list[Rows]:
    """The matrices or biases of a map: of content and position, or of both together."""
    parts = [linear.content, linear.position] if linear.parts == 2 else [linear]
    return [array(getattr(part, name)) for part in parts]


def linear(module: Any, row: Rows) -> Rows:
    matrices, biases = maps(module), maps(module, "bias")
    halves = zip(matrices, np.split(row, len(matrices)), biases, strict=True)
    return np.concatenate([matrix @ half + bias for matrix, half, bias in halves])


def layer(
    module: EncoderLayer, rows: Rows, lengths: list[int], queries: Rows | None = None
) -> Rows:
    """``LayerNorm(x + attention(x))``, then ``LayerNorm(x + feed-forward(x))``, no dropout."""
    attended = attention(module.attention, rows, lengths, queries)
    result = []
    for row, change in zip(rows, attended, strict=True):
        middle = layer_norm(row + change, module.attention_norm)
        contracted = linear(module.contract, np.maximum(linear(module.expand, middle), 0))
        result.append(layer_norm(middle + contracted, module.feed_forward_norm))
    return np.array(result)


def encoder(module: AttentionEncoder, content: Rows, lengths: list[int]) -> Rows:
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


def fenceposts(encoded: Rows, lengths: list[int], block: int = 2) -> Rows:
    """First halves of the blocks of token k, then second ones of token k + 1, of every sentence."""
    first = [column % block < block // 2 for column in range(encoded.shape[1])]
    rows, ends = range(len(encoded)), np.cumsum(lengths).tolist()
    parts = [
        (encoded[k, first], encoded[k + 1, np.invert(first)]) for k in rows if k + 1 not in ends
    ]
    return np.array([np.concatenate(part) for part in parts])


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
