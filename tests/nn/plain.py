"""The layers once more, written down as in the paper, in double precision and with gradients.

Nothing here is shared with the product but the weights. Each function takes a module for its
weights and rows, and works through sentences and heads one by one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from spmrl_bench.nn.encoders.label_attention import LabelAttention, LabelHeads
from spmrl_bench.nn.encoders.recurrent import RecurrentEncoder
from spmrl_bench.nn.encoders.self_attention import (
    AttentionEncoder,
    AttentionMask,
    EncoderLayer,
    SelfAttention,
)
from spmrl_bench.nn.inputs import Codes
from spmrl_bench.nn.inputs.characters import CharLSTM
from spmrl_bench.nn.layers import ReleasedLayerNorm
from spmrl_bench.nn.ragged import Ragged
from spmrl_bench.nn.scorers.pair_scores import BiaffineScorer
from spmrl_bench.nn.scorers.span_scores import SpanScorer
from spmrl_bench.nn.settings import Precision
from spmrl_bench.nn.vocabulary import FIRST_CHAR, Vocabulary


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


def codes_of(forms: Sequence[Sequence[int]]) -> Codes:
    """The codes of distinct forms, each a token."""
    values = torch.zeros(len(forms), max(map(len, forms)), dtype=torch.int64)
    for row, form in zip(values, forms, strict=True):
        row[: len(form)] = torch.tensor(form)
    return Codes(values, torch.tensor([*map(len, forms)]), torch.arange(len(forms)))


def random_rows(lengths: Sequence[int], width: int, seed: int = 0) -> Tensor:
    """A row for each token of sentences of these lengths."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(sum(lengths), width, generator=generator, dtype=torch.float64)


def randomise(module: nn.Module, seed: int) -> None:
    """Give every parameter random values, also those that start as zeros or ones."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in module.parameters():
            values = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
            parameter.copy_(0.5 * values)


def layer_norm(rows: Tensor, norm: nn.LayerNorm) -> Tensor:
    """Each row normalised over all its coordinates."""
    centred = rows - rows.mean(-1, keepdim=True)
    squares = centred.square().sum(-1, keepdim=True)
    if isinstance(norm, ReleasedLayerNorm):
        scaled = centred / ((squares / (rows.shape[-1] - 1)).sqrt() + 0.001)
    else:
        scaled = centred / (squares / rows.shape[-1] + norm.eps).sqrt()
    return scaled * norm.weight.double() + norm.bias.double()


def linear(module: Any, rows: Tensor) -> Tensor:
    """Rows through a map of all features, or through one for each half or part of them."""
    names = [name for name, _ in module.named_children()]
    parts = [getattr(module, name) for name in names] or [module]
    pieces = rows.split([part.weight.shape[1] for part in parts], dim=-1)
    found = []
    for part, piece in zip(parts, pieces, strict=True):
        mapped = piece @ part.weight.double().T
        found.append(mapped if part.bias is None else mapped + part.bias.double())
    return torch.cat(found, dim=-1)


def attention(
    module: SelfAttention,
    rows: Tensor,
    lengths: Sequence[int],
    queries: Tensor | None = None,
    divisor: float | None = None,
    limit: AttentionMask | None = None,
) -> Tensor:
    """Multi-head attention; the products of both halves, if there are two, are added up.

    Queries and keys are computed from ``queries``, values from ``rows``; ``divisor`` is what the
    products of queries and keys are divided by.
    """
    limit = limit or AttentionMask()
    halves, heads = module.project.parts, module.heads
    size, divisor = module.d_kv // halves, divisor or math.sqrt(module.d_kv)
    asked = rows if queries is None else queries
    found = []
    for own, other in zip(rows.split(list(lengths)), asked.split(list(lengths)), strict=True):
        mapped = [linear(module.project, each).chunk(halves, dim=1) for each in (other, other, own)]
        # Queries, keys and values ``[halves, n, heads, features]``.
        query, key, value = (
            torch.stack([side.unflatten(1, (3, heads, size))[:, part] for side in sides])
            for part, sides in enumerate(mapped)
        )
        mixed: list[list[Tensor]] = [[] for _ in range(halves)]
        for head in range(heads):
            logits = torch.zeros(len(own), len(own), dtype=torch.float64)
            for half, counts in zip(range(halves), (limit.content, limit.position), strict=False):
                if counts:
                    logits = logits + query[half, :, head] @ key[half, :, head].T
            powers = (logits / divisor).exp() * seen(limit, len(own))
            weights = powers / powers.sum(dim=1, keepdim=True)
            for half in range(halves):
                mixed[half].append(weights @ value[half, :, head])
        joined = torch.cat([torch.cat(half, dim=1) for half in mixed], dim=1)
        found.append(linear(module.output, joined))
    return torch.cat(found)


def seen(limit: AttentionMask, n: int) -> Tensor:
    """Which tokens see which others; ends are START, the first word, the last one and STOP."""
    place = torch.arange(n)
    if limit.window is None:
        return torch.ones(n, n, dtype=torch.bool)
    near = (place[:, None] - place).abs() <= limit.window
    ends = (place < 2) | (place >= n - 2)
    return near | (ends[:, None] | ends) & limit.relaxed


def layer(
    module: EncoderLayer,
    rows: Tensor,
    lengths: Sequence[int],
    queries: Tensor | None = None,
    divisor: float | None = None,
) -> Tensor:
    """``LayerNorm(x + attention(x))``, then ``LayerNorm(x + feed-forward(x))``, no dropout."""
    attended = attention(module.attention, rows, lengths, queries, divisor)
    middle = layer_norm(rows + attended, module.attention_norm)
    contracted = linear(module.contract, linear(module.expand, middle).clamp(min=0))
    return layer_norm(middle + contracted, module.feed_forward_norm)


def encoder(
    module: AttentionEncoder, content: Tensor, lengths: Sequence[int], divisor: float | None = None
) -> Tensor:
    """The whole stack over ``[content ; position row]`` or their sum, position 0 for the first."""
    places = [place for length in lengths for place in range(length)]
    position = module.positions.weight.double()[places]
    added = module.content_width == module.d_out
    rows = content + position if added else torch.cat((content, position), dim=1)
    if isinstance(module.input_norm, nn.LayerNorm):
        rows = layer_norm(rows, module.input_norm)
    for each in module.layers:
        assert isinstance(each, EncoderLayer)
        rows = layer(each, rows, lengths, divisor=divisor)
    return rows


def fenceposts(encoded: Tensor, lengths: Sequence[int], block: int = 2) -> Tensor:
    """First halves of the blocks of token k, then second ones of token k + 1, of every sentence."""
    first = torch.arange(encoded.shape[1]) % block < block // 2
    return torch.cat(
        [
            torch.cat((rows[:-1, first], rows[1:, ~first]), dim=1)
            for rows in encoded.split(list(lengths))
        ]
    )


def span_scores(module: SpanScorer, start: Tensor, end: Tensor) -> Tensor:
    """``W2 relu(LayerNorm(W1 (f_j - f_i) + b1)) + b2`` of one span, [labels - 1]."""
    return linear(
        module.second, layer_norm(linear(module.first, end - start), module.norm).clamp(min=0)
    )


def states(layer: nn.LSTM | nn.GRU, suffix: str, rows: Sequence[Tensor]) -> list[Tensor]:
    """States after each row of one direction of a layer, in reading order."""
    w_in, w_state, b_in, b_state = (
        getattr(layer, f"{name}_l0{suffix}").double()
        for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    )
    found = []
    state = memory = torch.zeros(layer.hidden_size, dtype=torch.float64)
    for row in rows:
        given, carried = w_in @ row + b_in, w_state @ state + b_state
        if isinstance(layer, nn.LSTM):
            enter, keep, new, leave = (given + carried).chunk(4)
            memory = keep.sigmoid() * memory + enter.sigmoid() * new.tanh()
            state = leave.sigmoid() * memory.tanh()
        else:
            (reset, update, new), (of_reset, of_update, of_new) = given.chunk(3), carried.chunk(3)
            update = (update + of_update).sigmoid()
            new = (new + (reset + of_reset).sigmoid() * of_new).tanh()
            state = (1 - update) * new + update * state
        found.append(state)
    return found


def recurrent(module: RecurrentEncoder, content: Tensor, lengths: Sequence[int]) -> Tensor:
    """Layer upon layer; even features are those of the forward states, odd ones of the others."""
    found = []
    for rows in content.split(list(lengths)):
        for cell in module.layers:
            given = list(rows)
            forward = torch.stack(states(cell, "", given))
            backward = torch.stack(states(cell, "_reverse", given[::-1])[::-1])
            rows = torch.stack((forward, backward), dim=2).flatten(1)
        found.append(rows)
    return torch.cat(found)


def char_lstm(module: CharLSTM, form: Sequence[int]) -> Tensor:
    """Last states of a forward and a backward LSTM over the characters of one form."""
    rows = list(module.embedding.weight.double()[list(form)])
    forward = states(module.lstm, "", rows)[-1]
    return torch.cat((forward, states(module.lstm, "_reverse", rows[::-1])[-1]))


# ---- Label attention ---------------------------------------------------------------------
# Keys and values are made for every token, the context of a head is added to every token, and each
# head projects what comes out.


def label_layer(
    module: LabelAttention, rows: Tensor, lengths: Sequence[int], *, divisor: float
) -> Tensor:
    """``[tokens, d_model]`` to ``[tokens, d_out]``; logits are divided by ``divisor``."""
    halves, names = module.output.parts, {name for name, _ in module.named_children()}
    found = []
    for sentence in rows.split(list(lengths)):
        own = [
            contexts(module.heads, sentence, head, halves, divisor)
            for head in range(module.heads.heads)
        ]
        if "reduce" in names:
            added = [sentence + linear(module.output, each) for each in own]
            outputs = [layer_norm(linear(module.reduce, each), module.norm) for each in added]
            found.append(torch.cat(outputs, dim=1))
        else:
            sides = zip(*(each.chunk(halves, dim=1) for each in own), strict=True)
            joined = torch.cat([torch.cat(side, dim=1) for side in sides], dim=1)
            found.append(layer_norm(sentence + linear(module.output, joined), module.norm))
    result = torch.cat(found)
    if "feed_forward" not in names:
        return result
    block = module.feed_forward
    contracted = linear(block.contract, linear(block.expand, result).clamp(min=0))
    return layer_norm(result + contracted, block.norm)


def contexts(heads: Any, sentence: Tensor, head: int, halves: int, divisor: float) -> Tensor:
    """What a head finds for each token of a sentence, or for all of them."""

    def of_head(module: Any, part: int = 0, parts: int = 1) -> Tensor:
        """Its features among those of all heads, of each half."""
        sides = linear(module, sentence).chunk(halves, dim=1)
        rows = [side.unflatten(1, (parts, heads.heads, -1))[:, part, head] for side in sides]
        return torch.cat(rows, dim=1)

    if isinstance(heads, LabelHeads):
        queries = heads.query[head].expand(len(sentence), -1)
        keys, values = of_head(heads.key), of_head(heads.value)
    else:
        queries, keys, values = (of_head(heads.project, part, 3) for part in range(3))
    powers = (queries @ keys.T / divisor).exp()
    return powers / powers.sum(dim=1, keepdim=True) @ values


# ---- Biaffine scores ---------------------------------------------------------------------
# One word at a time.


def biaffine_vectors(module: BiaffineScorer, tokens: Tensor) -> tuple[Tensor, ...]:
    """Of tokens ``[n, d_model]``: as dependents and heads of arcs, then of relations."""
    hidden = tokens @ module.hidden.weight.T + module.hidden.bias
    return torch.where(hidden > 0, hidden, 0.1 * hidden).split(list(module.widths), dim=1)


def arc_scores(module: BiaffineScorer, word: Tensor, heads: Tensor) -> Tensor:
    """``h_dep^T U h_head + u^T h_head`` of a word and each of some heads."""
    dependent, above = (
        biaffine_vectors(module, word[None])[0][0],
        biaffine_vectors(module, heads)[1],
    )
    return above @ (module.arc.weight @ dependent) + above @ module.arc.bias


def relation_scores(module: BiaffineScorer, word: Tensor, head: Tensor) -> Tensor:
    """``h_dep^T U_r h_head + w_r^T [h_dep ; h_head] + b_r`` of an arc, for each relation."""
    dependent, above = (
        biaffine_vectors(module, word[None])[2][0],
        biaffine_vectors(module, head[None])[3][0],
    )
    matrices = module.relation.weight.unflatten(0, (-1, len(above)))
    of_head = module.relation.bias.unflatten(0, (-1, len(above))) @ above
    of_dependent = module.relation_dependent.weight @ dependent + module.relation_dependent.bias
    return (
        torch.stack([(matrix @ dependent) @ above for matrix in matrices]) + of_head + of_dependent
    )


def words_of(lengths: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    """Row of START, number and words of the sentence, of each word of a batch of tokens."""
    begin = 0
    for length in lengths:
        for word in range(1, length - 1):
            yield begin, word, length - 2
        begin += length


def biaffine_losses(
    module: BiaffineScorer,
    tokens: Tensor,
    lengths: Sequence[int],
    heads: Sequence[int],
    relations: Sequence[int],
) -> tuple[Tensor, Tensor]:
    """Minus the log-probability of each word's head among 0..n, added up, and of its relation among
    those legal for its arc."""
    of_arcs, of_relations = torch.zeros(2, dtype=tokens.dtype)
    for (begin, word, n), head, right in zip(words_of(lengths), heads, relations, strict=True):
        row = tokens[begin + word]
        scores = arc_scores(module, row, tokens[begin : begin + n + 1])
        of_arcs = of_arcs + scores.logsumexp(0) - scores[head]
        scores = relation_scores(module, row, tokens[begin + head])
        legal = module.legal[1 if head == 0 else 0]
        of_relations = of_relations + scores[legal].logsumexp(0) - scores[right]
    return of_arcs, of_relations
