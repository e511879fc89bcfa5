"""Word vectors, language models, encoders and checkpoints of others: bounded by their own files."""

from __future__ import annotations

import gzip
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from spmrl_bench.errors import CheckpointError, PretrainedError
from spmrl_bench.nn.inputs.elmo import read_elmo
from spmrl_bench.nn.inputs.vectors import read_word_vectors
from tests.damage import DEEP, Damage, edited, nested, raw, sparse, special, tensors
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
    "a million million words": ("x.txt", b"999999999999 300\na 1 2\n", ":1: "),
    "a width of a million": ("x.bin", b"1 999999\na ", ":1: "),
    "a width of 10**9": ("x.txt", b"2 1000000000\na 1 2\n", ":1: "),
    "ten million million words": ("x.bin", b"10000000000000 3\na 1 2\n", ":1: "),
    "a line of 20 MB": ("x.txt", b"a" * (20 << 20), ":1: "),
    "a word of 20 MB": ("x.bin", b"999999 1\n" + b"a" * (20 << 20), "no end within"),
    "a bomb": ("x.txt", gzip.compress(ZEROS), "unpacked it has more than"),
}


def test_word_vectors(tmp_path: Path, tally: Tally) -> None:
    for name, (file, data, message) in VECTORS.items():
        tally("R17", "hostile pre-trained files").add()
        (tmp_path / file).write_bytes(data)
        found = quickly(lambda file=file: read_word_vectors(tmp_path / file), PretrainedError)
        assert message in found, name


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.symlink_to("/dev/zero")])
def test_what_is_no_file(make: Callable[[Path], Any], tmp_path: Path) -> None:
    make(tmp_path / "x")
    assert "expected a file" in quickly(lambda: read_word_vectors(tmp_path / "x"), PretrainedError)
    options, weights = plain_elmo.write_model(tmp_path)
    for pair in ((options, tmp_path / "x"), (tmp_path / "x", weights)):
        assert "expected a file" in quickly(lambda p=pair: read_elmo(*p), PretrainedError)


def _options(part: str, **changes: Any) -> Damage:
    return edited("options.json", lambda content: content[part].update(changes))


def _replaced(key: str, make: Callable[[Any, str], object]) -> Damage:
    def do(folder: Path) -> None:
        with h5py.File(next(folder.glob("*.hdf5")), "r+") as file:
            del file[key]
            make(file, key)

    return do


def _not_stored(folder: Path) -> None:
    _options("char_cnn", embedding={"dim": 10**8})(folder)
    size = {"shape": (261, 10**8), "dtype": "f4", "chunks": (1, 1000)}
    _replaced("char_embed", lambda f, k: f.create_dataset(k, **size))(folder)


def _elsewhere(file: Any, key: str) -> None:
    file.create_dataset(key, (261, 4), "f4", external=[("/dev/zero", 0, 4176)])


ELMO: dict[str, tuple[Damage, str]] = {
    "10**9 layers": (_options("lstm", n_layers=10**9), "found nothing"),
    "10**9 highways": (_options("char_cnn", n_highway=10**9), "found nothing"),
    "a state of 10**9": (_options("lstm", projection_dim=10**9), "found (12, 5)"),
    "100,000 brackets": (raw("options.json", DEEP), "recursion limit exceeded"),
    "a tensor that is not stored": (_not_stored, "too many for a file of this size"),
    "a link to another file": (
        _replaced("char_embed", lambda f, k: f.__setitem__(k, h5py.ExternalLink("/dev/zero", "a"))),
        "char_embed: found nothing",
    ),
    "numbers of another file": (_replaced("char_embed", _elsewhere), "lies in another file"),
}


def test_language_models(tmp_path: Path, tally: Tally) -> None:
    for number, (name, (do, message)) in enumerate(ELMO.items()):
        tally("R17", "hostile pre-trained files").add()
        (tmp_path / str(number)).mkdir()
        paths = plain_elmo.write_model(tmp_path / str(number))
        do(tmp_path / str(number))
        assert message in quickly(lambda paths=paths: read_elmo(*paths), PretrainedError), name


def _config(**changes: Any) -> Damage:
    return edited("config.json", lambda content: content.update(changes, content=None))


def _poison(found: dict[str, torch.Tensor]) -> None:
    found[next(name for name in found if "word_embeddings" in name)][0, 0] = float("nan")


OBJECTS = nested(b'{"a": ', b"}").replace(b"}", b"1}", 1)
LARGE = "too large for the weights"
ENCODERS: dict[str, tuple[Damage, str]] = {
    "10**9 layers": (_config(num_hidden_layers=10**9), LARGE),
    "10**9 words": (_config(vocab_size=10**9), LARGE),
    "10**10 positions": (_config(max_position_embeddings=10**10), LARGE),
    "a weight that is no number": (tensors(_poison, "model.safetensors", format="pt"), "finite"),
    "deep settings": (raw("config.json", OBJECTS), "recursion limit exceeded"),
    "a deep tokenizer": (raw("tokenizer_config.json", OBJECTS), "tokenizer"),
    "a pipe as tokenizer": (special("special_tokens_map.json", "pipe"), "a named pipe"),
    "a device as weights": (special("model.safetensors", "device"), "a device"),
    "a vocabulary of 1 TB": (sparse("vocab.txt"), "are read"),
}


def test_encoders(tmp_path: Path, tally: Tally) -> None:
    pytest.importorskip("transformers", reason="the package transformers is not installed")
    from spmrl_bench.nn.inputs.transformer import Transformer

    held = tally("R17", "hostile pre-trained files")

    def read(folder: Path) -> object:
        return Transformer(Transformer.Config(name=str(folder), dropout=0.0), None, 8)

    for number, (name, (do, message)) in enumerate(ENCODERS.items()):
        folder = tiny_transformers.make("bert", tmp_path / str(number))
        if not number:
            read(folder)
        do(folder)
        held.add()
        found = quickly(lambda folder=folder: read(folder), PretrainedError)
        assert message in found, f"{name}: {found}"


def _optimiser(edit: Callable[[dict[str, torch.Tensor]], Any]) -> Damage:
    return tensors(edit, "optimiser.safetensors")


def _progress(**changes: Any) -> Damage:
    return edited("progress.json", lambda content: content.update(changes))


CHECKPOINTS: dict[str, Damage] = {
    "a moment missing": _optimiser(lambda x: x.pop(max(x))),
    "a moment too many": _optimiser(lambda x: x.update(more=torch.zeros(3))),
    "a moment of float16": _optimiser(lambda x: x.update({max(x): x[max(x)].half()})),
    "a moment that is no number": _optimiser(lambda x: x[max(x)].fill_(float("nan"))),
    "a moment of another shape": _optimiser(lambda x: x.update({max(x): torch.zeros(9, 9, 9)})),
    "moments in a pipe": special("optimiser.safetensors", "pipe"),
    "moments of 1 TB": sparse("optimiser.safetensors"),
    "progress in a pipe": special("progress.json", "pipe"),
    "progress of 1 TB": sparse("progress.json"),
    "deep progress": raw("progress.json", OBJECTS),
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
