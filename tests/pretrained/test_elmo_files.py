"""Files of ELMo: what is read of them, and what is said where they do not fit."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spmrl_bench.errors import PretrainedError
from spmrl_bench.pretrained.elmo_files import read_elmo
from tests.nn import plain_elmo

Paths = tuple[Path, Path]
CELL = "RNN_1/RNN/MultiRNNCell/Cell0/LSTMCell"


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    return plain_elmo.write_model(tmp_path)


def failure(paths: Paths) -> str:
    with pytest.raises(PretrainedError) as caught:
        read_elmo(*paths)
    return str(caught.value)


def test_all_tensors_are_read(paths: Paths) -> None:
    found = read_elmo(*paths).tensors
    with h5py.File(paths[1], "r") as file:
        expected = {key: file[key][...] for key in plain_elmo.shapes(plain_elmo.OPTIONS)}
    assert found.keys() == expected.keys()
    for key, array in expected.items():
        assert found[key].dtype == np.float32
        np.testing.assert_array_equal(found[key], array.astype(np.float32), err_msg=key)


def test_settings_of_the_training_are_not_read(paths: Paths) -> None:
    options = {**copy.deepcopy(plain_elmo.OPTIONS), "n_epochs": 10, "dropout": 0.1}
    options["char_cnn"]["n_characters"] = 261
    options["lstm"]["note"] = "any"
    paths[0].write_text(json.dumps(options), encoding="utf-8")
    assert read_elmo(*paths).options.lstm.dim == 7


@pytest.mark.parametrize(
    ("part", "key", "value", "message"),
    [
        ("lstm", "dim", None, "lstm.dim: missing"),
        ("lstm", "n_layers", None, "lstm.n_layers: missing"),
        ("lstm", "use_skip_connections", None, "lstm.use_skip_connections: missing"),
        ("lstm", "projection_dim", 0, "lstm.projection_dim: input should be greater than or"),
        ("lstm", "cell_clip", 0, "lstm.cell_clip: input should be greater than 0; found 0"),
        ("char_cnn", "activation", "gelu", "char_cnn.activation: input should be 'relu' or"),
        ("char_cnn", "filters", [], "char_cnn.filters: "),
        ("char_cnn", "filters", [[1, 2, 3]], "char_cnn.filters.0: "),
        ("char_cnn", "filters", [[51, 2]], "char_cnn: filters has one of width 51, but max_char"),
        ("char_cnn", "n_characters", 60, "char_cnn.n_characters: input should be 261 or 262"),
        ("char_cnn", "embedding", {}, "char_cnn.embedding.dim: missing"),
    ],
)
def test_what_is_said_of_options(
    paths: Paths, part: str, key: str, value: Any, message: str
) -> None:
    options = copy.deepcopy(plain_elmo.OPTIONS)
    del options[part][key]
    if value is not None:
        options[part][key] = value
    paths[0].write_text(json.dumps(options), encoding="utf-8")
    assert failure(paths).startswith(f"{paths[0]}: {message}")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b'{"lstm": {},\n "char_cnn"}', ":2:12: not valid JSON: Expecting ':' delimiter"),
        (b"[1]", ": found a JSON list, expected an object of options"),
        (b"\xff\xfe{", ": not valid JSON: "),
        (b"[" * 100_000, ": not valid JSON: "),
        (b"{}", ": char_cnn: missing"),
    ],
)
def test_what_is_said_of_other_json(paths: Paths, text: bytes, message: str) -> None:
    paths[0].write_bytes(text)
    assert failure(paths).startswith(f"{paths[0]}{message}")


def without(key: str) -> Callable[[h5py.File], None]:
    def change(file: h5py.File) -> None:
        del file[key]

    return change


def instead(key: str, value: Any) -> Callable[[h5py.File], None]:
    def change(file: h5py.File) -> None:
        if key in file:
            del file[key]
        file[key] = value

    return change


def of_odd_numbers(file: h5py.File) -> None:
    """A tensor of a type that HDF5 can describe and NumPy cannot hold."""
    kind = h5py.h5t.IEEE_F64LE.copy()
    kind.set_ebias(99_999)
    del file["CNN/b_cnn_1"]
    h5py.h5d.create(file.id, b"CNN/b_cnn_1", kind, h5py.h5s.create_simple((4,)))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (of_odd_numbers, "CNN/b_cnn_1: cannot be read: Insufficient precision"),
        (
            instead("CNN/b_cnn_1", np.full(4, 1e300)),
            "CNN/b_cnn_1: found numbers that are not finite",
        ),
        (without("char_embed"), "char_embed: found nothing, expected a tensor of shape 261 x 4"),
        (without("CNN_proj"), "CNN_proj/W_proj: found nothing, expected a tensor of shape 12 x 5"),
        (without("RNN_1"), f"{CELL}/W_0: found nothing, expected a tensor of shape 10 x 28"),
        (without(f"{CELL}/B"), f"{CELL}/B: found nothing, expected a tensor of shape 28"),
        (
            instead("char_embed", np.zeros((262, 4))),
            "char_embed: found shape 262 x 4, expected 261 x 4 as the options say. Do the two",
        ),
        (instead("CNN/b_cnn_1", 1.0), "CNN/b_cnn_1: found shape of no dimension, expected 4"),
        (instead("CNN/b_cnn_1", h5py.Empty("f")), "CNN/b_cnn_1: found shape of no dimension"),
        (instead("char_embed/x", 1.0), "char_embed: found a group, expected a tensor"),
        (
            instead("CNN/b_cnn_1", np.zeros(4, dtype=np.int64)),
            "CNN/b_cnn_1: found numbers of type int64, expected float32",
        ),
        (
            instead("CNN/b_cnn_1", np.array([1, np.nan, 1, 1])),
            "CNN/b_cnn_1: found numbers that are not finite",
        ),
        (instead("CNN/W_cnn_3", 1.0), "CNN/W_cnn_3: not expected, as char_cnn.filters stops"),
        (instead("CNN_high_2/x", 1.0), "CNN_high_2: not expected, as char_cnn.n_highway stops"),
        (
            instead("RNN_0/RNN/MultiRNNCell/Cell2/LSTMCell/B", 1.0),
            "RNN_0/RNN/MultiRNNCell/Cell2: not expected, as lstm.n_layers stops",
        ),
    ],
)
def test_what_is_said_of_weights(
    paths: Paths, change: Callable[[h5py.File], None], message: str
) -> None:
    with h5py.File(paths[1], "a") as file:
        if message.startswith("char_embed: found a group"):
            del file["char_embed"]
        change(file)
    assert failure(paths).startswith(f"{paths[1]}: {message}")


def test_what_is_said_of_files_that_are_not_there(paths: Paths) -> None:
    for path in paths[::-1]:
        path.unlink()
        assert failure(paths) == f"{path}: cannot be read: No such file or directory"
    paths[0].mkdir()
    assert failure(paths) == f"{paths[0]}: cannot be read: Is a directory"


def test_what_is_said_of_another_format(paths: Paths) -> None:
    paths[1].write_text("no weights", encoding="utf-8")
    assert failure(paths).startswith(f"{paths[1]}: cannot be read: not an HDF5 file (")


def test_h5py_is_only_needed_here(paths: Paths, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "h5py", None)
    message = failure(paths)
    assert message.startswith(f"{paths[1]}: reading HDF5 files needs the package h5py")
    assert "pip install 'spmrl-bench[pretrained]'" in message


def test_h5py_is_imported_late() -> None:
    code = "import sys, spmrl_bench.nn.elmo; sys.exit('h5py' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


@given(st.data())
@settings(max_examples=150)
def test_damaged_files_give_weights_or_an_error(
    tmp_path_factory: pytest.TempPathFactory, draws: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("elmo")
    paths = plain_elmo.write_model(folder)
    damaged = draws.draw(st.sampled_from(paths))
    data = damaged.read_bytes()
    start = draws.draw(st.integers(0, len(data)))
    cut = draws.draw(st.booleans())
    fresh = draws.draw(st.binary(max_size=8))
    damaged.write_bytes(data[:start] + fresh + (b"" if cut else data[start + len(fresh) :]))
    message = ""
    try:
        read_elmo(*paths)
    except PretrainedError as error:
        message = str(error)
    assert not message or message.startswith(f"{damaged}:") or message.startswith(f"{paths[1]}:")
