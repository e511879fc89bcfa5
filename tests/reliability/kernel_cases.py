"""Good arguments of every function of the compiled kernels of layers, and what spoils a tensor.

The arguments are made by name, so that a test can spoil each of them in turn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

Arguments = dict[str, Any]

TOKENS, WIDTH, SENTENCES, THREADS = 7, 9, 3, 2
LENGTHS = (2, 4, 1)


def random(*shape: int, low: bool = False) -> Tensor:
    """The same numbers in every run, as tests begin with the same seed."""
    return torch.rand(*shape).to(torch.bfloat16 if low else torch.float32)


def _masks(low: bool) -> Arguments:
    return {"seed": 5, "p": 0.3, "out": random(11)}


def _rows(low: bool) -> Arguments:
    return {
        "low": low,
        "masks": random(SENTENCES, 2 * WIDTH),
        "sentence": torch.repeat_interleave(torch.arange(SENTENCES), torch.tensor(LENGTHS)),
        "tokens": TOKENS,
        "width": WIDTH,
        "threads": THREADS,
    }


def _residual_norm(low: bool) -> Arguments:
    return _rows(low) | {
        "x": random(2, TOKENS, WIDTH),
        "branch": random(2, TOKENS, WIDTH, low=low),
        "bias": random(2 * WIDTH),
        "gain": random(2 * WIDTH),
        "shift": random(2 * WIDTH),
        "eps": 1e-5,
        "z": random(2, TOKENS, WIDTH),
        "stats": random(TOKENS, 2),
        "y": random(2, TOKENS, WIDTH),
        "y_low": random(2, TOKENS, WIDTH, low=low),
    }


def _residual_norm_back(low: bool) -> Arguments:
    return _rows(low) | {
        "dy": random(2, TOKENS, WIDTH),
        "more": random(2, TOKENS, WIDTH, low=low),
        "z": random(2, TOKENS, WIDTH),
        "stats": random(TOKENS, 2),
        "gain": random(2 * WIDTH),
        "dz": random(2, TOKENS, WIDTH),
        "d_branch": random(2, TOKENS, WIDTH, low=low),
        "sums": torch.zeros(THREADS, 3, 2 * WIDTH),
    }


def _relu_drop(low: bool) -> Arguments:
    return _rows(low) | {"hidden": random(2, TOKENS, WIDTH, low=low), "bias": random(2 * WIDTH)}


def _relu_drop_back(low: bool) -> Arguments:
    return {
        "d_hidden": random(2, TOKENS, WIDTH, low=low),
        "hidden": random(2, TOKENS, WIDTH, low=low),
        "low": low,
        "scale": 1.5,
        "tokens": TOKENS,
        "width": WIDTH,
        "sums": torch.zeros(THREADS, 2 * WIDTH),
        "threads": THREADS,
    }


def _attention(low: bool) -> Arguments:
    heads, half = 2, 3
    lengths = torch.tensor(LENGTHS)
    return {
        "packed": random(2, TOKENS, 3 * heads * half, low=low),
        "starts": lengths.cumsum(0) - lengths,
        "lengths": lengths,
        "tokens": TOKENS,
        "heads": heads,
        "half": half,
        "longest": 16,
        "low": low,
        "scale": 0.4,
        "seed": 3,
        "p": 0.25,
        "threads": THREADS,
    }


def _attention_forward(low: bool) -> Arguments:
    return _attention(low) | {"context": random(2, TOKENS, 6, low=low)}


def _attention_backward(low: bool) -> Arguments:
    return _attention(low) | {
        "d_context": random(2, TOKENS, 6, low=low),
        "d_packed": random(2, TOKENS, 18, low=low),
    }


def _step(low: bool) -> Arguments:
    rows, sequences, size = 8, 4, 5
    return {
        "gru": False,
        "gates": random(2, rows, 4 * size, low=low),
        "low": low,
        "cells": random(2, rows, size),
        "last_cells": random(2, sequences, size),
        "rows": rows,
        "sequences": sequences,
        "size": size,
        "at": 1,
        "count": 4,
        "going_on": 3,
        "threads": THREADS,
    }


def _step_forward(low: bool) -> Arguments:
    return _step(low) | {
        "more": random(2, 4, 20, low=low),
        "more_rows": 4,
        "states": random(2, 8, 5, low=low),
        "last": random(2, 4, 5),
    }


def _step_backward(low: bool) -> Arguments:
    return _step(low) | {"d_states": random(2, 4, 5), "d_cells": random(2, 4, 5)}


def _hidden(low: bool) -> Arguments:
    return {
        "projected": random(6, WIDTH),
        "start": torch.tensor([0, 1, 2, 0, 5]),
        "end": torch.tensor([1, 3, 5, 5, 0]),
        "spans": 5,
        "width": WIDTH,
        "bias": random(WIDTH),
        "gain": random(WIDTH),
        "shift": random(WIDTH),
        "eps": 1e-5,
        "out": random(5, WIDTH),
        "threads": THREADS,
    }


ROWS, WORDS, LAYERS, OF_VALUES = 5, 4, 2, 6
"""Of the decoder: rows of all steps, words, layers of attention, width of what they average."""


def _attend(low: bool) -> Arguments:
    asking, wide = LAYERS * WIDTH, LAYERS * OF_VALUES
    removed = torch.zeros(ROWS, WORDS, dtype=torch.bool)
    removed[1, 2] = removed[3, 0] = True
    return {
        "low": low,
        "keys": random(3, WORDS, asking),
        "values": random(3, WORDS, OF_VALUES),
        "pushed": random(ROWS, WORDS),
        "removed": removed,
        "score": random(WIDTH),
        "stacked": random(WIDTH),
        "factors": random(ROWS, wide),
        "asks": random(ROWS, asking),
        "alphas": random(ROWS, LAYERS, WORDS),
        "at": 2,
        "count": 3,
        "words": WORDS,
        "layers": LAYERS,
        "width": WIDTH,
        "value_width": OF_VALUES,
        "threads": THREADS,
    }


def _attend_forward(low: bool) -> Arguments:
    wide = LAYERS * OF_VALUES
    return _attend(low) | {
        "asked": random(3, LAYERS * WIDTH + 2, low=low),
        "asked_step": LAYERS * WIDTH + 2,
        "summed": False,
        "contexts": random(ROWS, wide + 1),
        "context_step": wide + 1,
        "context_start": 1,
        "dropped": random(ROWS, wide, low=low),
        "each": 1,
    }


def _attend_back(low: bool) -> Arguments:
    asking, wide = LAYERS * WIDTH, LAYERS * OF_VALUES
    return _attend(low) | {
        "d_dropped": random(3, wide, low=low),
        "gradient": random(ROWS, wide + 1),
        "gradient_step": wide + 1,
        "gradient_start": 1,
        "d_contexts": random(ROWS, wide),
        "d_asks": random(ROWS, asking),
        "d_sums": random(ROWS, asking + 3, low=low),
        "d_sums_step": asking + 3,
        "d_keys": random(3, WORDS, asking),
        "d_score": random(3, WIDTH),
        "d_stacked": random(3, WIDTH),
    }


def _spread(low: bool) -> Arguments:
    attend = _attend(low)
    return {
        name: attend[name]
        for name in ("removed", "alphas", "words", "layers", "width", "value_width", "threads")
    } | {
        "d_contexts": random(ROWS, LAYERS * OF_VALUES),
        "d_asks": random(ROWS, LAYERS * WIDTH),
        "starts": torch.tensor([0, 3, 5]),
        "steps": torch.tensor([2, 2, 1]),
        "d_values": random(3, WORDS, OF_VALUES),
        "d_keys": random(3, WORDS, LAYERS * WIDTH),
        "sentences": 3,
    }


def _cell(low: bool) -> Arguments:
    size = 5
    return {
        "kept": random(3, 3 * size + 2, low=low),
        "kept_step": 3 * size + 2,
        "kept_start": 2,
        "kept_bias": random(3 * size),
        "read": random(3, 3 * size, low=low),
        "read_step": 3 * size,
        "read_low": low,
        "base": random(4, 3 * size),
        "base_step": 3 * size,
        "which": torch.tensor([3, 0, 2]),
        "low": low,
        "gates": random(8, 4 * size),
        "before": random(8, size),
        "after": random(8, size),
        "after_low": random(8, size, low=low),
        "result": random(8, size + 1),
        "result_step": size + 1,
        "factors": random(8, size),
        "inputs": random(8, size, low=low),
        "size": size,
        "at": 2,
        "following": 5,
        "count": 3,
        "going_on": 2,
        "threads": THREADS,
    }


def _cell_back(low: bool) -> Arguments:
    size = 5
    return {
        "later": random(2, size, low=low),
        "above": random(8, size + 1),
        "above_step": size + 1,
        "below": random(3, size, low=low),
        "factors": random(8, size),
        "low": low,
        "gates": random(8, 4 * size),
        "before": random(8, size),
        "carried": random(3, size),
        "d_sums": random(8, 4 * size + 2, low=low),
        "d_sums_step": 4 * size + 2,
        "d_sums_start": 2,
        "size": size,
        "at": 2,
        "count": 3,
        "going_on": 2,
        "threads": THREADS,
    }


CASES: dict[str, Callable[[bool], Arguments]] = {
    "_attention.forward": _attention_forward,
    "_attention.backward": _attention_backward,
    "_decoder.attend": _attend_forward,
    "_decoder.attend_back": _attend_back,
    "_decoder.spread": _spread,
    "_decoder.cell": _cell,
    "_decoder.cell_back": _cell_back,
    "_factored.masks": _masks,
    "_factored.residual_norm": _residual_norm,
    "_factored.residual_norm_back": _residual_norm_back,
    "_factored.relu_drop": _relu_drop,
    "_factored.relu_drop_back": _relu_drop_back,
    "_recurrent.step_forward": _step_forward,
    "_recurrent.step_backward": _step_backward,
    "_span_scorer.hidden": _hidden,
}
"""Of each function of the kernels of layers, by module: good arguments, in bfloat16 or not."""


#: Ways to spoil a tensor that leave it to say which of two does not fit the other.
OTHER_SIZES = (
    "transposed",
    "turned",
    "flat",
    "one more dimension",
    "one row short",
    "one column short",
    "one row more",
    "one column more",
    "empty",
)


def spoilt(tensor: Tensor) -> Iterator[tuple[str, Any]]:
    """What a kernel might be given in place of a tensor, each with a name."""
    for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.float8_e5m2):
        if dtype != tensor.dtype:
            yield str(dtype), tensor.to(dtype)
    for dtype in (torch.int32, torch.int64, torch.uint8, torch.bool):
        if dtype != tensor.dtype:
            yield str(dtype), tensor.to(dtype)
    yield "strided", torch.stack((tensor, tensor), dim=-1)[..., 0]
    if tensor.dim() > 1:
        yield "transposed", tensor.transpose(0, -1)
        yield "turned", tensor.transpose(0, -1).contiguous()
        yield "flat", tensor.flatten()
    yield "one more dimension", tensor.unsqueeze(0)
    yield "one row short", tensor[:-1]
    yield "one column short", tensor[..., :-1].contiguous()
    yield "one row more", torch.cat((tensor, tensor[-1:]))
    yield "one column more", torch.cat((tensor, tensor[..., -1:]), dim=-1)
    yield "empty", tensor[:0]
    yield "elsewhere", tensor.to("meta")
    yield "an array of numpy", tensor.float().numpy()
    yield "a list", tensor.tolist()
    yield "sparse", tensor.to_sparse()


def misleading(tensor: Tensor) -> Iterator[tuple[str, Tensor]]:
    """Indices that lead out of anything, each in turn in every place."""
    for place in range(tensor.numel()):
        for number in (-1, -(2**62), 1_000, 2**62):
            wrong = tensor.clone()
            wrong.view(-1)[place] = number
            yield f"{number} at {place}", wrong


def not_numbers(tensor: Tensor) -> Iterator[tuple[str, Tensor]]:
    """NaN in some places."""
    for place in {0, tensor.numel() // 2, tensor.numel() - 1}:
        wrong = tensor.clone()
        wrong.view(-1)[place] = torch.nan
        yield f"NaN at {place}", wrong
