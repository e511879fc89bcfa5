"""ELMo once more, from the description of its files: plain loops in double precision.

Nothing here is shared with the product. The files are read with h5py and json directly; each
sentence goes through the language model by itself, one token, filter and gate at a time.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
Weights = dict[str, NDArray[np.float64]]

START, STOP = object(), object()
OPTIONS: dict[str, Any] = {
    "lstm": {
        "use_skip_connections": True, "projection_dim": 5, "cell_clip": 0.5, "proj_clip": 0.2,
        "dim": 7, "n_layers": 2,
    },
    "char_cnn": {
        "activation": "relu", "filters": [[1, 3], [2, 4], [4, 5]], "n_highway": 2,
        "embedding": {"dim": 4}, "n_characters": 262, "max_characters_per_token": 50,
    },
}  # fmt: skip


def shapes(options: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    """Every tensor of a model with its shape."""
    cnn, lstm = options["char_cnn"], options["lstm"]
    d, p, c = cnn["embedding"]["dim"], lstm["projection_dim"], lstm["dim"]
    n = sum(number for _, number in cnn["filters"])
    found: dict[str, tuple[int, ...]] = {"char_embed": (261, d)}
    for i, (width, number) in enumerate(cnn["filters"]):
        found[f"CNN/W_cnn_{i}"] = (1, width, d, number)
        found[f"CNN/b_cnn_{i}"] = (number,)
    for i in range(cnn["n_highway"]):
        for name in ("transform", "carry"):
            found[f"CNN_high_{i}/W_{name}"] = (n, n)
            found[f"CNN_high_{i}/b_{name}"] = (n,)
    found["CNN_proj/W_proj"], found["CNN_proj/b_proj"] = (n, p), (p,)
    for direction in (0, 1):
        for i in range(lstm["n_layers"]):
            cell = f"RNN_{direction}/RNN/MultiRNNCell/Cell{i}/LSTMCell"
            found[f"{cell}/W_0"], found[f"{cell}/B"] = (2 * p, 4 * c), (4 * c,)
            found[f"{cell}/W_P_0"] = (c, p)
    return found


def write_model(
    folder: Path, options: dict[str, Any] = OPTIONS, *, seed: int = 0
) -> tuple[Path, Path]:
    """The two files of a model, options and weights; these are random, and keep gates half open."""
    random = np.random.default_rng(seed)
    paths = folder / "options.json", folder / "weights.hdf5"
    paths[0].write_text(json.dumps(options), encoding="utf-8")
    with h5py.File(paths[1], "w") as file:
        for key, shape in shapes(options).items():
            inputs = math.prod(shape[:-1]) if len(shape) > 1 and key != "char_embed" else 4
            file[key] = random.normal(0, inputs**-0.5, shape).astype(np.float32)
    return paths


def characters(token: str | object, longest: int) -> list[int]:
    """The characters of a word, filled up to the fixed number."""
    if token is START or token is STOP:
        inner = [256 if token is START else 257]
    else:
        assert isinstance(token, str)
        inner = list(token.encode("utf-8"))[: longest - 2]
    found = [258, *inner, 259]
    return found + [260] * (longest - len(found))


def layers(paths: tuple[Path, Path], words: Sequence[str]) -> NDArray[np.float64]:
    """All layers of one sentence, ``[layers + 1, words + 2, 2 * projection]``."""
    options = json.loads(paths[0].read_text(encoding="utf-8"))
    with h5py.File(paths[1], "r") as file:
        weights = {key: file[key][...].astype(np.float64) for key in shapes(options)}
    vectors = [form_vector(token, options, weights) for token in (START, *words, STOP)]
    found = [[np.concatenate([vector, vector]) for vector in vectors]]
    forward, backward = list(vectors), list(vectors)
    for number in range(options["lstm"]["n_layers"]):
        forward = one_direction(forward, 0, number, options, weights)
        backward = one_direction(backward[::-1], 1, number, options, weights)[::-1]
        found.append([np.concatenate(pair) for pair in zip(forward, backward, strict=True)])
    return np.array(found)


def form_vector(token: str | object, options: dict[str, Any], weights: Weights) -> Vector:
    """The vector of one token: filters, highways, projection."""
    cnn = options["char_cnn"]
    longest = cnn["max_characters_per_token"]
    embedded = [weights["char_embed"][number] for number in characters(token, longest)]
    values = []
    for i, (width, number) in enumerate(cnn["filters"]):
        for k in range(number):
            best = -math.inf
            for start in range(longest - width + 1):
                total = float(weights[f"CNN/b_cnn_{i}"][k])
                for offset in range(width):
                    column = weights[f"CNN/W_cnn_{i}"][0, offset, :, k]
                    total += float(embedded[start + offset] @ column)
                best = max(best, total)
            values.append(max(best, 0.0) if cnn["activation"] == "relu" else math.tanh(best))
    vector = np.array(values)
    for i in range(cnn["n_highway"]):
        high = f"CNN_high_{i}"
        transformed = vector @ weights[f"{high}/W_transform"] + weights[f"{high}/b_transform"]
        transformed = np.maximum(transformed, 0)
        gate = sigmoid(vector @ weights[f"{high}/W_carry"] + weights[f"{high}/b_carry"])
        vector = gate * transformed + (1 - gate) * vector
    return vector @ weights["CNN_proj/W_proj"] + weights["CNN_proj/b_proj"]


def one_direction(
    given: list[Vector], direction: int, number: int, options: dict[str, Any], weights: Weights
) -> list[Vector]:
    """What a layer gives for tokens in the order in which it reads them."""
    lstm = options["lstm"]
    root = f"RNN_{direction}/RNN/MultiRNNCell/Cell{number}/LSTMCell"
    kernel, bias, projection = (weights[f"{root}/{name}"] for name in ("W_0", "B", "W_P_0"))
    cells = lstm["dim"]
    state, memory = np.zeros(lstm["projection_dim"]), np.zeros(cells)
    found = []
    for vector in given:
        gates = np.concatenate([vector, state]) @ kernel + bias
        fresh = np.zeros(cells)
        shown = np.zeros(cells)
        for k in range(cells):
            take, new, keep, show = gates[k::cells]
            fresh[k] = sigmoid(take) * math.tanh(new) + sigmoid(keep + 1) * memory[k]
            fresh[k] = clipped(fresh[k], lstm.get("cell_clip"))
            shown[k] = sigmoid(show) * math.tanh(fresh[k])
        memory = fresh
        state = np.array([clipped(x, lstm.get("proj_clip")) for x in shown @ projection])
        skip = number > 0 and lstm["use_skip_connections"]
        found.append(state + vector if skip else state)
    return found


def clipped(value: float, bound: float | None) -> float:
    """A number within ``-bound..bound``."""
    return value if bound is None else min(max(value, -bound), bound)


def sigmoid(value: Any) -> Any:
    """The logistic function of a number or of each of an array."""
    return 1 / (1 + np.exp(-value))
