"""ELMo: the options and the weights of a bidirectional language model over characters.

A model is two files, as ``bilm-tf`` writes and AllenNLP reads them: its sizes in JSON, and its
weights in HDF5. With ``d`` the width of a character, ``n`` the sum of all filters, ``c`` cells
and ``p`` the width of a state the tensors are

==========================================  ===============  ====================================
key                                         shape            what it is
==========================================  ===============  ====================================
``char_embed``                              261, d           see below
``CNN/W_cnn_i``, ``CNN/b_cnn_i``            1, width, d, k   the ``i``-th of ``filters``; bias: k
``CNN_high_i/W_transform``, ``b_transform``  n, n            highway ``i``; bias: n
``CNN_high_i/W_carry``, ``b_carry``         n, n             its gate, which is open (1) for the
                                                             transformed and shut for the input
``CNN_proj/W_proj``, ``b_proj``             n, p             bias: p
``RNN_k/RNN/MultiRNNCell/Celli/LSTMCell/``                   layer ``i``, ``k`` = 0 forward and 1
                                                             backward; of it
``W_0``                                     2p, 4c           rows: input, then state; columns:
                                                             input gate, new cell, forget gate,
                                                             output gate
``B``                                       4c               without the 1 that the forget gate
                                                             gets on top
``W_P_0``                                   c, p             from cells to the state
==========================================  ===============  ====================================

and every matrix is applied to a row at its left. A character is a byte of a word in UTF-8, or
one of the five marks above them. (Programs that pad sentences give each character a number one
higher and keep 0 for padding; here no token is padding.)
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, model_validator

from spmrl_bench.bounded_files import open_regular
from spmrl_bench.errors import PretrainedError
from spmrl_bench.json_files import read_json
from spmrl_bench.storage.toml import validated

Array = NDArray[np.float32]

#: Characters above the 256 bytes. A word is its bytes between two marks, filled up with padding;
#: START and STOP of a sentence are words of one character of their own.
SENTENCE_START, SENTENCE_STOP, WORD_START, WORD_STOP, PADDING = range(256, 261)
CHARACTERS = 261

Size = Annotated[int, Field(ge=1)]
#: Bytes of tensors for each byte of a file, which may be packed.
MOST_PACKED = 64

Clip = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class _Options(BaseModel):
    # The files also hold what the language model was trained with.
    model_config = ConfigDict(extra="ignore", frozen=True)


class CharacterOptions(_Options):
    """Of the embedding of characters."""

    dim: Size
    """Width of a character."""


class CNNOptions(_Options):
    """How the characters of a word become a vector."""

    activation: Literal["relu", "tanh"]
    """After the largest value of each filter is taken; highways always have ``relu``."""
    embedding: CharacterOptions
    filters: Annotated[tuple[tuple[Size, Size], ...], Field(min_length=1)]
    """Width and number of the filters of each kind."""
    n_highway: Annotated[int, Field(ge=0)] = 0
    n_characters: Literal[261, 262]
    """Of which the 262nd is the padding of sentences."""
    max_characters_per_token: Annotated[int, Field(ge=3, le=10_000)]
    """Marks included; longer words are cut."""

    @model_validator(mode="after")
    def _filters_fit(self) -> CNNOptions:
        widest = max(width for width, _ in self.filters)
        if widest > self.max_characters_per_token:
            raise ValueError(
                f"filters has one of width {widest}, but max_characters_per_token is "
                f"{self.max_characters_per_token}"
            )
        return self


class LSTMOptions(_Options):
    """How the vectors of words become states."""

    dim: Size
    """Cells of a layer and direction."""
    projection_dim: Size
    """Width of a state and of the vector of a word."""
    n_layers: Size
    use_skip_connections: bool
    """Whether the input of each layer but the first is added to its output."""
    cell_clip: Clip | None = None
    """Largest absolute value of a cell; without it any."""
    proj_clip: Clip | None = None
    """Of a coordinate of a state."""


class ElmoOptions(_Options):
    """The sizes of a model."""

    char_cnn: CNNOptions
    lstm: LSTMOptions


@dataclass(frozen=True, slots=True)
class ElmoWeights:
    """A whole model: its sizes, and float32 tensors by their keys in the table above."""

    options: ElmoOptions
    tensors: dict[str, Array]


_CELL = "RNN_{}/RNN/MultiRNNCell/Cell{}"


def read_elmo(options_path: str | PathLike[str], weights_path: str | PathLike[str]) -> ElmoWeights:
    """Read a model, and check every tensor against the options.

    Raises:
        PretrainedError: a file cannot be read or is of another format, an option is missing or
            out of range, or a tensor is missing or of another shape than the options say; or
            the package h5py is not installed.
    """
    options = _read_options(Path(options_path))
    ends = {
        "CNN/W_cnn_{}": (len(options.char_cnn.filters), "char_cnn.filters"),
        "CNN_high_{}": (options.char_cnn.n_highway, "char_cnn.n_highway"),
        _CELL.format(0, "{}"): (options.lstm.n_layers, "lstm.n_layers"),
        _CELL.format(1, "{}"): (options.lstm.n_layers, "lstm.n_layers"),
    }
    with _opened(Path(weights_path)) as file:
        for key, (count, option) in ends.items():
            file.check_absent(key.format(count), option)
        tensors = {key: file.tensor(key, shape) for key, shape in _shapes(options)}
    return ElmoWeights(options, tensors)


def _shapes(options: ElmoOptions) -> Iterator[tuple[str, tuple[int, ...]]]:
    """The shape of every tensor of a model, one by one: who asks stops at the first that lacks."""
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
            cell = cell_group(direction, i)
            yield f"{cell}/W_0", (2 * p, 4 * c)
            yield f"{cell}/B", (4 * c,)
            yield f"{cell}/W_P_0", (c, p)


def cell_group(direction: int, layer: int) -> str:
    """Where the tensors of a layer are; direction 0 is forward, 1 backward."""
    return _CELL.format(direction, layer) + "/LSTMCell"


def _read_options(path: Path) -> ElmoOptions:
    """Read the JSON file of a model's options."""
    content = read_json(path, PretrainedError)
    if not isinstance(content, dict):
        raise PretrainedError(
            f"{path}: found a JSON {type(content).__name__}, expected an object of options"
        )
    return validated(ElmoOptions, content, path, PretrainedError)


@contextmanager
def _opened(path: Path) -> Iterator[_File]:
    try:
        import h5py
    except ImportError:
        raise PretrainedError(
            f"{path}: reading HDF5 files needs the package h5py, which is not installed; "
            "pip install 'spmrl-bench[pretrained]'"
        ) from None
    try:
        with open_regular(path) as opened:  # whose errors say what is wrong, as h5py's do not
            size = os.fstat(opened.fileno()).st_size
        file = h5py.File(path, "r")
    except OSError as error:
        reason = error.strerror if type(error) is not OSError else f"not an HDF5 file ({error})"
        raise PretrainedError(f"{path}: cannot be read: {reason}") from None
    with file:
        yield _File(path, file, h5py.Dataset, h5py.HardLink, size)


class _File:
    """An HDF5 file, read with errors that name the file and the key."""

    def __init__(
        self, path: Path, file: Any, dataset: type[Any], inside: type[Any], size: int
    ) -> None:
        """A file of ``size`` bytes; the types are those of h5py: of tensors, and of own members."""
        self._path = path
        self._file = file
        self._dataset = dataset
        self._inside = inside
        self._room = MOST_PACKED * size

    def tensor(self, key: str, shape: tuple[int, ...]) -> Array:
        """One tensor, float32 of this shape."""
        found = self._get(key)
        if not isinstance(found, self._dataset):
            what = "a group" if found is not None else "nothing"
            raise self._error(key, f"found {what}, expected a tensor of shape {_shown(shape)}")
        if found.shape != shape:
            raise self._error(
                key,
                f"found shape {_shown(found.shape)}, expected {_shown(shape)} as the options say. "
                "Do the two files belong together?",
            )
        if found.external or found.is_virtual:
            raise self._error(key, "lies in another file, expected in this one")
        try:
            self._room -= found.nbytes
            if self._room < 0:
                raise ValueError(f"{found.nbytes} bytes, too many for a file of this size")
            kind, array = found.dtype, found[...]
        except (OSError, RuntimeError, ValueError, TypeError, MemoryError) as error:
            raise self._error(key, f"cannot be read: {error}") from None
        if kind.kind != "f":
            raise self._error(key, f"found numbers of type {kind}, expected float32")
        with np.errstate(over="ignore"):  # what is too large is not finite afterwards
            array = np.ascontiguousarray(array, dtype=np.float32)
        if not np.isfinite(array).all():
            raise self._error(key, "found numbers that are not finite")
        return array

    def check_absent(self, key: str, option: str) -> None:
        """Make sure that what is numbered does not go on further than an option says."""
        if self._get(key) is not None:
            raise self._error(
                key, f"not expected, as {option} stops before it. Do the two files belong together?"
            )

    def _get(self, key: str) -> Any:
        """A tensor, a group, or None."""
        try:
            parts = key.split("/")
            for end in range(1, len(parts) + 1):
                link = self._file.get("/".join(parts[:end]), getlink=True)
                if link is None:
                    return None
                if not isinstance(link, self._inside):
                    raise self._error(key, "is a link to elsewhere, expected in this file itself")
            return self._file.get(key)
        except (OSError, RuntimeError, KeyError, ValueError) as error:
            raise self._error(key, f"cannot be read: {error}") from None

    def _error(self, key: str, problem: str) -> PretrainedError:
        return PretrainedError(f"{self._path}: {key}: {problem}")


def _shown(shape: tuple[int, ...] | None) -> str:
    """A shape in words; a dataset can be without one."""
    return " x ".join(map(str, shape)) if shape else "of no dimension"
