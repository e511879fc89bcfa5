"""Word vectors, language models, encoders and checkpoints of others: bounded by their own files."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from spmrl_bench.errors import CheckpointError, PretrainedError
from spmrl_bench.pretrained.elmo_files import read_elmo
from spmrl_bench.pretrained.vector_files import read_word_vectors
from tests.nn import plain_elmo, tiny_transformers
from tests.reliability.tally import Tally
from tests.training.trainers import make_trainer

h5py = pytest.importorskip("h5py", reason="the package h5py is not installed")


def quickly(call: Callable[[], object], error: type[Exception]) -> str:
    """The message of the error of a call, which comes within two seconds."""
    begun = time.process_time()
    with pytest.raises(error) as caught:
        call()
    assert time.process_time() - begun < 2
    assert len(str(caught.value)) < 3000
    return str(caught.value)


ZEROS = b"w 0.0\n" + b"\n" * (8 << 20)

VECTORS: dict[str, tuple[str, bytes, str]] = {
    "a million million words": ("x.txt", b"999999999999 300\na 1 2\n", "too small for"),
    "a width of a million": ("x.bin", b"1 999999\na ", "too small for"),
    "a width of 10**9": ("x.txt", b"2 1000000000\na 1 2\n", "too small for"),
    "ten million million words": ("x.bin", b"10000000000000 3\na 1 2\n", "too small for"),
    "a line of 20 MB": ("x.txt", b"a" * (20 << 20), "a line of more than"),
    "a word of 20 MB": ("x.bin", b"5 1\n" + b"a" * (20 << 20), "has no end within"),
    "nan": ("x.txt", b"a 1 2\nb 1 nan\n", ":2: "),
    "inf": ("x.txt", b"a 1 2\nb inf 2\n", ":2: "),
    "too large": ("x.txt", b"a 1 2\nb 1e39 2\n", ":2: number 1 is '1e39'"),
    "a bomb": ("x.txt", gzip.compress(ZEROS), "unpacked it has more than"),
    "a binary inf": (
        "x.bin",
        b"1 2\na " + np.array([1, np.inf], "<f4").tobytes(),
        "word 1, 'a': number 2 is inf",
    ),
}


@pytest.mark.parametrize("name", VECTORS)
def test_word_vectors(name: str, tmp_path: Path, tally: Tally) -> None:
    tally("R17", "hostile pre-trained files").add()
    file, data, message = VECTORS[name]
    (tmp_path / file).write_bytes(data)
    assert message in quickly(lambda: read_word_vectors(tmp_path / file), PretrainedError)


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.symlink_to("/dev/zero")])
def test_what_is_no_file(make: Callable[[Path], Any], tmp_path: Path) -> None:
    make(tmp_path / "x")
    assert "expected a file" in quickly(lambda: read_word_vectors(tmp_path / "x"), PretrainedError)
    options, weights = plain_elmo.write_model(tmp_path)
    for pair in ((options, tmp_path / "x"), (tmp_path / "x", weights)):
        assert "expected a file" in quickly(lambda p=pair: read_elmo(*p), PretrainedError)  # type: ignore[misc]


def _options(folder: Path, part: str, **changes: Any) -> None:
    path = folder / "options.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    content[part].update(changes)
    path.write_text(json.dumps(content), encoding="utf-8")


def _replaced(folder: Path, key: str, make: Callable[[Any, str], object]) -> None:
    with h5py.File(next(folder.glob("*.hdf5")), "r+") as file:
        del file[key]
        make(file, key)


ELMO: dict[str, tuple[Callable[[Path], object], str]] = {
    "10**9 layers": (lambda x: _options(x, "lstm", n_layers=10**9), "found nothing"),
    "10**9 highways": (lambda x: _options(x, "char_cnn", n_highway=10**9), "found nothing"),
    "a state of 10**9": (lambda x: _options(x, "lstm", projection_dim=10**9), "found shape"),
    "100,000 brackets": (
        lambda x: (x / "options.json").write_bytes(b"[" * 100_000 + b"]" * 100_000),
        "deep inside each other",
    ),
    "a tensor that is not stored": (
        lambda x: (
            _options(x, "char_cnn", embedding={"dim": 10**8}),
            _replaced(
                x,
                "char_embed",
                lambda f, k: f.create_dataset(k, (261, 10**8), "f4", chunks=(1, 1000)),
            ),
        ),
        "too many for a file of this size",
    ),
    "a link to another file": (
        lambda x: _replaced(
            x, "char_embed", lambda f, k: f.__setitem__(k, h5py.ExternalLink("/dev/zero", "a"))
        ),
        "is a link to elsewhere",
    ),
    "numbers of another file": (
        lambda x: _replaced(
            x,
            "char_embed",
            lambda f, k: f.create_dataset(k, (261, 4), "f4", external=[("/dev/zero", 0, 4176)]),
        ),
        "lies in another file",
    ),
}


@pytest.mark.parametrize("name", ELMO)
def test_language_models(name: str, tmp_path: Path, tally: Tally) -> None:
    tally("R17", "hostile pre-trained files").add()
    options, weights = plain_elmo.write_model(tmp_path)
    read_elmo(options, weights)
    do, message = ELMO[name]
    do(tmp_path)
    assert message in quickly(lambda: read_elmo(options, weights), PretrainedError)


def _config(folder: Path, **changes: Any) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes), encoding="utf-8")


def _poison(folder: Path) -> None:
    path = folder / "model.safetensors"
    found = {name: tensor.clone() for name, tensor in load_file(path).items()}
    found[next(name for name in found if "word_embeddings" in name)][0, 0] = float("nan")
    save_file(found, path, {"format": "pt"})


def _in_place(name: str, make: Callable[[Path], Any]) -> Callable[[Path], None]:
    def do(folder: Path) -> None:
        (folder / name).unlink(missing_ok=True)
        make(folder / name)

    return do


DEEP = b'{"a": ' * 100_000 + b"1" + b"}" * 100_000
ENCODERS: dict[str, tuple[Callable[[Path], object], str]] = {
    "10**9 layers": (lambda x: _config(x, num_hidden_layers=10**9), "too large for the weights"),
    "10**9 words": (lambda x: _config(x, vocab_size=10**9), "too large for the weights"),
    "10**10 positions": (
        lambda x: _config(x, max_position_embeddings=10**10),
        "too large for the weights",
    ),
    "a weight that is no number": (_poison, "finite"),
    "deep settings": (lambda x: (x / "config.json").write_bytes(DEEP), "deep inside each other"),
    "a deep tokenizer": (lambda x: (x / "tokenizer_config.json").write_bytes(DEEP), "tokenizer"),
    "a pipe as tokenizer": (_in_place("special_tokens_map.json", os.mkfifo), "a named pipe"),
    "a device as weights": (
        _in_place("model.safetensors", lambda path: path.symlink_to("/dev/zero")),
        "a device",
    ),
    "a vocabulary of 1 TB": (lambda x: os.truncate(x / "vocab.txt", 1 << 40), "are read"),
}


def test_encoders(tmp_path: Path, tally: Tally) -> None:
    pytest.importorskip("transformers", reason="the package transformers is not installed")
    from spmrl_bench.nn.transformer import Transformer

    held = tally("R17", "hostile pre-trained files")

    def read(folder: Path) -> object:
        return Transformer.read(str(folder), None, 8, "last", False, 0.0)

    for number, (name, (do, message)) in enumerate(ENCODERS.items()):
        folder = tiny_transformers.make("bert", tmp_path / str(number))
        if not number:
            read(folder)
        do(folder)
        held.add()
        found = quickly(lambda folder=folder: read(folder), PretrainedError)  # type: ignore[misc]
        assert message in found, f"{name}: {found}"


def _optimiser(edit: Callable[[dict[str, torch.Tensor]], Any]) -> Callable[[Path], None]:
    def do(folder: Path) -> None:
        path = folder / "optimiser.safetensors"
        found = {name: tensor.clone() for name, tensor in load_file(path).items()}
        edit(found)
        save_file(found, path)

    return do


def _progress(**changes: Any) -> Callable[[Path], None]:
    def do(folder: Path) -> None:
        path = folder / "progress.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | changes), encoding="utf-8")

    return do


CHECKPOINTS: dict[str, Callable[[Path], object]] = {
    "a moment missing": _optimiser(lambda x: x.pop(max(x))),
    "a moment too many": _optimiser(lambda x: x.update(more=torch.zeros(3))),
    "a moment of float16": _optimiser(lambda x: x.update({max(x): x[max(x)].half()})),
    "a moment that is no number": _optimiser(lambda x: x[max(x)].fill_(float("nan"))),
    "a moment of another shape": _optimiser(lambda x: x.update({max(x): torch.zeros(9, 9, 9)})),
    "moments in a pipe": _in_place("optimiser.safetensors", os.mkfifo),
    "moments of 1 TB": lambda x: os.truncate(x / "optimiser.safetensors", 1 << 40),
    "progress in a pipe": _in_place("progress.json", os.mkfifo),
    "progress of 1 TB": lambda x: os.truncate(x / "progress.json", 1 << 40),
    "deep progress": lambda x: (x / "progress.json").write_bytes(DEEP),
    "a batch behind the last": _progress(next_batch=10**9, stopped_by=None),
    "a batch before the first": _progress(next_batch=-1),
    "an epoch of 41 digits": _progress(epoch=10**40),
    "an infinite rate": _progress(rate_factor=float("inf")),
    "a rate of -1": _progress(rate_factor=-1),
}


def test_checkpoints(tmp_path: Path, tally: Tally) -> None:

    held = tally("R17", "hostile checkpoints")
    make_trainer(tmp_path / "good", max_epochs=1).fit()
    for number, (name, do) in enumerate(CHECKPOINTS.items()):
        folder = tmp_path / str(number)
        shutil.copytree(tmp_path / "good", folder)
        do(folder / "last")
        held.add()
        trainer = make_trainer(folder, max_epochs=2)
        message = quickly(trainer.fit, CheckpointError)
        assert str(folder) in message, f"{name}: {message}"
        assert "--fresh" in message, f"{name}: {message}"
