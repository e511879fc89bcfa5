"""ELMo (Peters et al. 2018): words as the layers of a language model that reads characters.

The language model is used as it was published. Learned are the weights with which its layers are
mixed and the map to the width of the parser, as in Kitaev & Klein 2018.

A model is two files, as ``bilm-tf`` writes and AllenNLP reads them: its sizes in JSON, and its
weights in HDF5 (:func:`_shapes`). Every matrix is applied to a row at its left. The gate of a
highway (``carry``) is open, 1, for the transformed and shut for the input. The rows of ``W_0`` are
of input, then state, its columns of input gate, new cell, forget gate and output gate; its bias
``B`` is without the 1 that the forget gate gets on top. A character is a byte or a mark.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping
from os import PathLike
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import BaseModel, Field, model_validator
from torch import Tensor, nn
from torch.nn import functional

from spmrl_bench.errors import PretrainedError
from spmrl_bench.nn.inputs import Boundary, Codes, Frozen, LexicalInput, Tokens
from spmrl_bench.nn.ragged import Ragged
from spmrl_bench.nn.settings import InputSettings, Positive, Rate
from spmrl_bench.nn.vocabulary import Vocabulary
from spmrl_bench.storage.files import open_regular_file
from spmrl_bench.storage.json import read_json
from spmrl_bench.storage.toml import validated

Array = NDArray[np.float32]

#: Characters above the 256 bytes. A word is its bytes between two marks, then padding.
SENTENCE_START, SENTENCE_STOP, WORD_START, WORD_STOP, PADDING = range(256, 261)
CHARACTERS = 261

#: Bound on the numbers that one kind of filter gives for the forms worked on at once.
FILTERED = 1 << 24
#: Tokens whose gates are computed at once from the input of a layer.
GATES = 1 << 10
#: Bytes of tensors for each byte of a file, which may be packed.
MOST_PACKED = 64


# Files ----------------------------------------------------------------------------------


class CharacterOptions(BaseModel):
    dim: Positive


class CNNOptions(BaseModel):
    """How the characters of a word become a vector."""

    activation: Literal["relu", "tanh"]
    """After the largest value of each filter is taken; highways always have ``relu``."""
    embedding: CharacterOptions
    filters: Annotated[tuple[tuple[Positive, Positive], ...], Field(min_length=1)]
    """Width and number of the filters of each kind."""
    n_highway: Annotated[int, Field(ge=0)] = 0
    n_characters: Literal[261, 262]
    """Of which the 262nd is the padding of sentences."""
    max_characters_per_token: Annotated[int, Field(ge=3, le=10_000)]
    """Marks included; longer words are cut."""

    @model_validator(mode="after")
    def _filters_fit(self) -> CNNOptions:
        widest, longest = max(self.filters)[0], self.max_characters_per_token
        if widest > longest:
            raise ValueError(
                f"filters has one of width {widest}, but max_characters_per_token is {longest}"
            )
        return self


_Clip = Annotated[float, Field(gt=0, allow_inf_nan=False)] | None


class LSTMOptions(BaseModel):
    """How the vectors of words become states."""

    dim: Positive
    """Cells of a layer and direction; a state and the vector of a word are projections of them."""
    projection_dim: Positive
    n_layers: Positive
    use_skip_connections: bool
    """Whether the input of each layer but the first is added to its output."""
    cell_clip: _Clip = None
    """Largest absolute value of a cell; without it any."""
    proj_clip: _Clip = None
    """Of a coordinate of a state."""


class ElmoOptions(BaseModel):
    """The sizes of a model; a file also says what it was trained with."""

    char_cnn: CNNOptions
    lstm: LSTMOptions


def read_elmo(
    options_path: str | PathLike[str], weights_path: str | PathLike[str]
) -> tuple[ElmoOptions, dict[str, Array]]:
    """Return the sizes of a model, and its tensors by key; raise a PretrainedError where a file
    cannot be read, or tensors are not those that the options describe."""
    place, path = Path(options_path), Path(weights_path)
    options = validated(ElmoOptions, read_json(place, PretrainedError), place, PretrainedError)
    try:
        import h5py
    except ImportError:
        raise PretrainedError(
            f"{path}: needs the package h5py; pip install 'spmrl-bench[pretrained]'"
        ) from None
    try:
        with open_regular_file(path) as opened:  # whose errors say what is wrong, as h5py's do not
            room = MOST_PACKED * os.fstat(opened.fileno()).st_size
        with h5py.File(path, "r") as file:
            return options, _tensors(path, file, room, options)
    except OSError as error:
        reason = error.strerror if type(error) is not OSError else f"not an HDF5 file ({error})"
        raise PretrainedError(f"{path}: cannot be read: {reason}") from None


def _tensors(path: Path, file: Any, room: int, options: ElmoOptions) -> dict[str, Array]:
    """All tensors, which may take ``room`` bytes."""
    found: dict[str, Array] = {}
    members: dict[str, Any] = {}
    key = "its tensors"
    try:
        file.visititems(members.__setitem__)  # what is a link to elsewhere is no member
        for key, shape in _shapes(options):
            data = members.pop(key, None)
            if getattr(data, "shape", None) != shape:
                what = "nothing" if data is None else getattr(data, "shape", None) or "no tensor"
                raise ValueError(f"found {what}, expected a tensor of shape {shape}")
            if data.external or data.is_virtual:
                raise ValueError("lies in another file, expected in this one")
            room -= data.nbytes
            if room < 0:
                raise ValueError(f"{data.nbytes} bytes, too many for a file of this size")
            if data.dtype.kind != "f":
                raise ValueError(f"found numbers of type {data.dtype}, expected float32")
            with np.errstate(over="ignore"):  # what is too large is not finite afterwards
                found[key] = np.ascontiguousarray(data[...], dtype=np.float32)
            if not np.isfinite(found[key]).all():
                raise ValueError("found numbers that are not finite")
        if more := [key for key, member in members.items() if hasattr(member, "shape")]:
            key = more[0]
            raise ValueError("found more than the options say. Do the files belong together?")
    except (OSError, RuntimeError, KeyError, ValueError, TypeError, MemoryError) as error:
        raise PretrainedError(f"{path}: {key}: {error}") from None
    return found


def _shapes(options: ElmoOptions) -> Iterator[tuple[str, tuple[int, ...]]]:
    """The shape of every tensor, one by one: options may say that there are billions."""
    cnn, lstm = options.char_cnn, options.lstm
    d, p, c = cnn.embedding.dim, lstm.projection_dim, lstm.dim
    n = sum(number for _, number in cnn.filters)
    yield "char_embed", (CHARACTERS, d)
    for i, (width, number) in enumerate(cnn.filters):
        yield f"CNN/W_cnn_{i}", (1, width, d, number)
        yield f"CNN/b_cnn_{i}", (number,)
    for i in range(cnn.n_highway):
        for name in ("transform", "carry"):
            yield f"CNN_high_{i}/W_{name}", (n, n)
            yield f"CNN_high_{i}/b_{name}", (n,)
    yield "CNN_proj/W_proj", (n, p)
    yield "CNN_proj/b_proj", (p,)
    for direction in (0, 1):
        for i in range(lstm.n_layers):
            cell = _cell(direction, i)
            yield f"{cell}/W_0", (2 * p, 4 * c)
            yield f"{cell}/B", (4 * c,)
            yield f"{cell}/W_P_0", (c, p)


def _cell(direction: int, layer: int) -> str:
    # Direction 0 is forward, 1 backward.
    return f"RNN_{direction}/RNN/MultiRNNCell/Cell{layer}/LSTMCell"


# Layers ---------------------------------------------------------------------------------


class BiLM(nn.Module):
    """All layers of the language model: the vectors of forms, and the states of both directions.

    Every sentence begins without a state (AllenNLP and ``bilm-tf`` hand the last states of a batch
    on to the next one).
    """

    def __init__(self, options: ElmoOptions, tensors: Mapping[str, Array]) -> None:
        super().__init__()
        self.options = options
        self.layers = 1 + options.lstm.n_layers
        self.width = 2 * options.lstm.projection_dim
        self.weights = nn.ParameterDict()
        forget = slice(2 * options.lstm.dim, 3 * options.lstm.dim)
        for key, array in tensors.items():
            if key.startswith("CNN/W"):
                array = np.ascontiguousarray(array[0].transpose(2, 1, 0))
            elif key.endswith("/B"):
                array = array.copy()
                array[forget] += 1
            self.weights[key] = nn.Parameter(torch.from_numpy(array), requires_grad=False)

    def forward(self, codes: Codes, layout: Ragged) -> Tensor:
        """Return ``[layers, tokens, width]``: both directions; first the form's vector, twice."""
        rows = self.forms(codes.values, codes.lengths).index_select(0, codes.rows)
        counts = torch.bincount(layout.position).tolist()  # the same from either end
        behind = layout.lengths.index_select(0, layout.sentence) - 1 - layout.position
        # Long sentences first.
        ranks = layout.lengths.argsort(descending=True).argsort()[layout.sentence]
        lstm = self.options.lstm
        found: list[list[Tensor]] = [[rows, rows], *([] for _ in range(lstm.n_layers))]
        for direction, steps in enumerate((layout.position, behind)):
            order = (steps * len(layout.lengths) + ranks).argsort()
            given = rows.index_select(0, order)
            for layer in range(lstm.n_layers):
                states = self._layer(_cell(direction, layer), given, counts)
                given = given + states if layer and lstm.use_skip_connections else states
                found[1 + layer].append(torch.empty_like(given).index_copy_(0, order, given))
        return torch.stack([torch.cat(pair, dim=1) for pair in found])

    def forms(self, characters: Tensor, lengths: Tensor) -> Tensor:
        """Return ``[forms, projection_dim]``; padding up to a fixed number of characters takes part
        in the largest value of a filter."""
        cnn, weights = self.options.char_cnn, self.weights
        widest, most = (max(sizes) for sizes in zip(*cnn.filters, strict=True))
        # As wide as the longest needs: windows that lie wholly in padding are all alike, so that
        # one of them is enough.
        columns = min(cnn.max_characters_per_token, int(lengths.max()) + widest)
        ids = functional.pad(characters, (0, columns), value=PADDING)[:, :columns]
        beyond = torch.arange(columns, device=ids.device) >= lengths[:, None]
        parts = []
        for some in ids.masked_fill(beyond, PADDING).split(max(1, FILTERED // (columns * most))):
            embedded = functional.embedding(some, weights["char_embed"]).transpose(1, 2)
            largest = [
                functional.conv1d(
                    embedded, weights[f"CNN/W_cnn_{i}"], weights[f"CNN/b_cnn_{i}"]
                ).amax(dim=2)
                for i in range(len(cnn.filters))
            ]
            parts.append(torch.cat(largest, dim=1))
        rows = getattr(torch, cnn.activation)(torch.cat(parts))
        for i in range(cnn.n_highway):
            gate = torch.sigmoid(self._affine(f"CNN_high_{i}/{{}}_carry", rows))
            new = torch.relu(self._affine(f"CNN_high_{i}/{{}}_transform", rows))
            rows = gate * new + (1 - gate) * rows
        return self._affine("CNN_proj/{}_proj", rows)

    def _affine(self, name: str, rows: Tensor) -> Tensor:
        return torch.addmm(self.weights[name.format("b")], rows, self.weights[name.format("W")])

    def _layer(self, cell: str, rows: Tensor, counts: list[int]) -> Tensor:
        """States of one layer, ``[tokens, projection_dim]``; ``rows``, its input, are the first
        tokens of all sentences, then the second of those that have one, and so on, ``counts``."""
        options = self.options.lstm
        kernel, bias, projection = (self.weights[f"{cell}/{key}"] for key in ("W_0", "B", "W_P_0"))
        from_input, from_state = kernel.split(options.projection_dim)
        state = rows.new_zeros(counts[0], options.projection_dim)
        memory = rows.new_zeros(counts[0], options.dim)
        cell_clip, clip = options.cell_clip or math.inf, options.proj_clip or math.inf
        states = []
        while counts:  # which never grow
            steps = counts[: max(1, GATES // counts[0])]
            counts = counts[len(steps) :]
            tokens, rows = rows.split((sum(steps), len(rows) - sum(steps)))
            for given in torch.addmm(bias, tokens, from_input).split(steps):
                gates = torch.addmm(given, state[: len(given)], from_state)
                take, new, keep, show = gates.chunk(4, dim=1)
                memory = take.sigmoid() * new.tanh() + keep.sigmoid() * memory[: len(given)]
                memory = memory.clamp(-cell_clip, cell_clip)
                state = ((show.sigmoid() * memory.tanh()) @ projection).clamp(-clip, clip)
                states.append(state)
        return torch.cat(states)


class Elmo(LexicalInput):
    """The layers of a language model, mixed and mapped to the content. The mix is ``sum_k s_k
    layer_k`` where ``s`` is the softmax of learned weights, at first all equal, without the factor
    of Peters et al. before the sum, as a map follows."""

    class Config(InputSettings):
        """Settings of the input ``elmo``."""

        weights: str
        """HDF5 file with the weights of the language model."""
        options: str
        """JSON file with its options."""
        mix_dropout: Rate = 0.5
        """Dropout of the mix of the language model's layers, for each of its numbers."""
        dropout: Rate
        """Dropout of the mapped mix, for each sentence and feature."""

        def files(self) -> dict[str, str]:
            return {"weights": self.weights, "options": self.options}

    def __init__(self, config: Config, vocabulary: Vocabulary, width: int, **options: Any) -> None:
        super().__init__(config, vocabulary, width, **options)
        model = BiLM(*read_elmo(config.options, config.weights))
        self.longest = model.options.char_cnn.max_characters_per_token
        self.model = Frozen(model)
        self.mix = nn.Parameter(torch.zeros(model.layers))
        self.mix_dropout = nn.Dropout(config.mix_dropout)
        self.linear = nn.Linear(model.width, width, bias=False)

    def codes(self, form: str | Boundary) -> NDArray[np.int64]:
        # Too many bytes are cut off, even within a character in UTF-8, as in training.
        if isinstance(form, Boundary):
            inner = [SENTENCE_START if form is Boundary.START else SENTENCE_STOP]
        else:
            inner = list(form.encode("utf-8", "ignore")[: self.longest - 2])
        return np.array([WORD_START, *inner, WORD_STOP], dtype=np.int64)

    def forward(self, tokens: Tokens, codes: Codes | None) -> Tensor:
        layers = self.model(codes, tokens.layout)
        mixed = torch.tensordot(self.mix.softmax(0), layers, dims=1)
        return self.dropout(self.linear(self.mix_dropout(mixed)), tokens.layout)
