"""ELMo: what is read of its files, against plain loops over them, and what of it is learned."""

from __future__ import annotations

import copy
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from spmrl_bench.errors import PretrainedError
from spmrl_bench.nn.inputs import Boundary, elmo
from spmrl_bench.nn.inputs.elmo import Elmo, read_elmo
from tests.nn import plain_elmo
from tests.nn.built import apply, batch

Paths = tuple[Path, Path]
SENTENCES = [
    ["der", "Hund", "schläft", "."],
    ["Donaudampfschifffahrtsgesellschaftskapitänsmützenabzeichen"],
    ["a", "der", "中文字", "x" * 47, "y" * 48, "z" * 49, "ä" * 30, "der"],
    ["Hund", "."],
    [],
    ["<S>", "</S>", "\U0001f600"],
]


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    return plain_elmo.write_model(tmp_path)


def changed(**values: Any) -> dict[str, Any]:
    """Options of a model with other values, by their own names."""
    options = copy.deepcopy(plain_elmo.OPTIONS)
    for name, value in values.items():
        part = next(part for part in options.values() if name in part)
        part[name] = value
    return options


# Files ----------------------------------------------------------------------------------


def failure(paths: Paths) -> str:
    with pytest.raises(PretrainedError) as caught:
        read_elmo(*paths)
    return str(caught.value)


def test_all_tensors_are_read(paths: Paths) -> None:
    """Of the settings of the training nothing is."""
    options = {**changed(n_characters=261), "n_epochs": 10, "dropout": 0.1}
    options["lstm"]["note"] = "any"
    paths[0].write_text(json.dumps(options), encoding="utf-8")
    sizes, found = read_elmo(*paths)
    assert sizes.lstm.dim == 7
    with h5py.File(paths[1], "r") as file:
        expected = {key: file[key][...] for key in plain_elmo.shapes(plain_elmo.OPTIONS)}
    assert found.keys() == expected.keys()
    for key, array in expected.items():
        assert found[key].dtype == np.float32
        np.testing.assert_array_equal(found[key], array.astype(np.float32), err_msg=key)


def test_what_is_said_of_options(paths: Paths) -> None:
    for part, key, value, place in [
        ("lstm", "dim", None, "lstm.dim: missing"),
        ("lstm", "use_skip_connections", None, "lstm.use_skip_connections: missing"),
        ("lstm", "projection_dim", 0, "lstm.projection_dim: "),
        ("lstm", "cell_clip", 0, "lstm.cell_clip: "),
        ("char_cnn", "activation", "gelu", "char_cnn.activation: "),
        ("char_cnn", "filters", [], "char_cnn.filters: "),
        ("char_cnn", "filters", [[1, 2, 3]], "char_cnn.filters.0: "),
        ("char_cnn", "filters", [[51, 2]], "char_cnn: filters has one of width 51"),
        ("char_cnn", "n_characters", 60, "char_cnn.n_characters: "),
        ("char_cnn", "embedding", {}, "char_cnn.embedding.dim: missing"),
    ]:
        options = copy.deepcopy(plain_elmo.OPTIONS)
        options[part] |= {key: value}
        if value is None:
            del options[part][key]
        paths[0].write_text(json.dumps(options), encoding="utf-8")
        assert failure(paths).startswith(f"{paths[0]}: {place}")
    for text, message in [
        (b'{"lstm": {},\n "char_cnn"}', ": not valid JSON: expected `:` at line 2 column 12"),
        (b"[1]", ": (the whole file): input should be a valid dictionary"),
        (b"[" * 100_000, ": not valid JSON: "),
    ]:
        paths[0].write_bytes(text)
        assert failure(paths).startswith(f"{paths[0]}{message}")


def without(key: str) -> Callable[[h5py.File], None]:
    return lambda file: file.__delitem__(key)


def instead(key: str, value: Any) -> Callable[[h5py.File], None]:
    def change(file: h5py.File) -> None:
        for old in {key, key.partition("/")[0]} & {"char_embed", BIAS}:
            del file[old]
        file[key] = value

    return change


def of_odd_numbers(file: h5py.File) -> None:
    """A tensor of a type that HDF5 can describe and NumPy cannot hold."""
    kind = h5py.h5t.IEEE_F64LE.copy()
    kind.set_ebias(99_999)
    del file["CNN/b_cnn_1"]
    h5py.h5d.create(file.id, b"CNN/b_cnn_1", kind, h5py.h5s.create_simple((4,)))


CELL = "RNN_1/RNN/MultiRNNCell/Cell0/LSTMCell"
NEXT_CELL = "RNN_0/RNN/MultiRNNCell/Cell2"
BIAS = "CNN/b_cnn_1"
BROKEN: list[tuple[Callable[[h5py.File], None], str]] = [
    (of_odd_numbers, f"{BIAS}: Insufficient precision"),
    (instead(BIAS, np.full(4, 1e300)), f"{BIAS}: found numbers that are not finite"),
    (instead(BIAS, np.array([1, np.nan, 1, 1])), f"{BIAS}: found numbers that are not finite"),
    (instead(BIAS, np.zeros(4, dtype=np.int64)), f"{BIAS}: found numbers of type int64"),
    (instead(BIAS, 1.0), f"{BIAS}: found no tensor"),
    (instead(BIAS, h5py.Empty("f")), f"{BIAS}: found no tensor"),
    (instead("char_embed/x", 1.0), "char_embed: found no tensor"),
    (
        instead("char_embed", np.zeros((262, 4))),
        "char_embed: found (262, 4), expected a tensor of shape (261, 4)",
    ),
    (without("char_embed"), "char_embed: found nothing, expected a tensor of shape (261, 4)"),
    (without("CNN_proj"), "CNN_proj/W_proj: found nothing"),
    (without(f"{CELL}/B"), f"{CELL}/B: found nothing"),
    (instead("CNN/W_cnn_3", 1.0), "CNN/W_cnn_3: found more than the options say"),
    (instead("CNN_high_2/x", 1.0), "CNN_high_2/x: found more than the options say"),
    (instead(f"{NEXT_CELL}/LSTMCell/B", 1.0), f"{NEXT_CELL}/LSTMCell/B: found more"),
]


def test_what_is_said_of_weights(paths: Paths) -> None:
    whole = paths[1].read_bytes()
    for change, message in BROKEN:
        paths[1].write_bytes(whole)
        with h5py.File(paths[1], "a") as file:
            change(file)
        assert failure(paths).startswith(f"{paths[1]}: {message}")


def test_what_is_said_of_files(paths: Paths, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "h5py", None)
        assert "pip install 'spmrl-bench[pretrained]'" in failure(paths)
    paths[1].write_text("no weights", encoding="utf-8")
    assert failure(paths).startswith(f"{paths[1]}: cannot be read: not an HDF5 file (")
    for path in paths[::-1]:
        path.unlink()
        assert failure(paths) == f"{path}: cannot be read: No such file or directory"


@given(st.data())
def test_damaged_files_give_weights_or_an_error(
    tmp_path_factory: pytest.TempPathFactory, draws: st.DataObject
) -> None:
    paths = plain_elmo.write_model(tmp_path_factory.mktemp("elmo"))
    damaged = draws.draw(st.sampled_from(paths))
    data = damaged.read_bytes()
    start = draws.draw(st.integers(0, len(data)))
    cut = draws.draw(st.booleans())
    fresh = draws.draw(st.binary(max_size=8))
    damaged.write_bytes(data[:start] + fresh + (b"" if cut else data[start + len(fresh) :]))
    try:
        read_elmo(*paths)
    except PretrainedError as error:
        assert str(error).startswith((f"{damaged}:", f"{paths[1]}:"))  # noqa: PT017


# The language model ---------------------------------------------------------------------

MODELS = {
    "as published": plain_elmo.OPTIONS,
    "tanh": changed(activation="tanh"),
    "no skip connections": changed(use_skip_connections=False),
    "no clipping": changed(cell_clip=None, proj_clip=None),
    "three layers, no highway": changed(n_layers=3, n_highway=0),
    "short words, wide filters": changed(
        max_characters_per_token=9, filters=[[9, 2], [8, 3], [3, 2]]
    ),
}


def built(paths: Paths, width: int = 6, mix_dropout: float = 0.5, dropout: float = 0.2) -> Elmo:
    options, weights = map(str, paths)
    return Elmo(
        Elmo.Config(options=options, weights=weights, mix_dropout=mix_dropout, dropout=dropout),
        None,
        width,
    )


def layers(module: Elmo, sentences: Sequence[Sequence[str]]) -> list[Tensor]:
    """``[layers, tokens, width]`` of each sentence."""
    tokens, codes = batch(module, sentences)
    found: Tensor = module.model(codes, tokens.layout)
    return list(found.split([len(words) + 2 for words in sentences], dim=1))


@pytest.mark.parametrize("name", MODELS)
def test_layers_are_those_of_the_plain_model(tmp_path: Path, name: str) -> None:
    paths = plain_elmo.write_model(tmp_path, MODELS[name], seed=3)
    for words, found in zip(SENTENCES, layers(built(paths), SENTENCES), strict=True):
        expected = plain_elmo.layers(paths, words)
        assert found.shape == expected.shape
        for number, layer in enumerate(expected):
            np.testing.assert_allclose(found[number].numpy(), layer, rtol=0, atol=2e-6)


def test_a_sentence_does_not_depend_on_its_batch(
    paths: Paths, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = built(paths)
    together = layers(module, SENTENCES)
    backwards = layers(module, SENTENCES[::-1])[::-1]
    alone = [layers(module, [words])[0] for words in SENTENCES]
    monkeypatch.setattr(elmo, "FILTERED", 100)
    monkeypatch.setattr(elmo, "GATES", 3)
    in_parts = layers(module, SENTENCES)
    for number, expected in enumerate(together):
        for found in (backwards, alone, in_parts):
            torch.testing.assert_close(found[number], expected, rtol=1e-6, atol=1e-6)


def test_characters_of_forms(paths: Paths) -> None:
    module = built(paths)
    for form, inner in {
        "aé": [97, 0xC3, 0xA9],
        "": [],
        "\ud800a": [97],
        "x" * 48: [120] * 48,
        "x" * 49: [120] * 48,
        Boundary.START: [256],
        Boundary.STOP: [257],
        "<S>": [*b"<S>"],
    }.items():
        assert module.codes(form).tolist() == [258, *inner, 259]


# What is learned ------------------------------------------------------------------------


def test_the_result_is_a_map_of_a_mix(paths: Paths) -> None:
    module = built(paths).eval()
    assert torch.equal(module.mix.softmax(0), torch.full((3,), 1 / 3))
    with torch.no_grad():
        module.mix.copy_(torch.tensor([0.3, -1.0, 2.0]))
    shares = np.exp([0.3, -1.0, 2.0]) / np.exp([0.3, -1.0, 2.0]).sum()
    found = apply(module, SENTENCES).split([len(words) + 2 for words in SENTENCES])
    matrix = module.linear.weight.detach().numpy().astype(np.float64)
    for words, rows in zip(SENTENCES, found, strict=True):
        mixed = np.tensordot(shares, plain_elmo.layers(paths, words), axes=1)
        np.testing.assert_allclose(rows.detach().numpy(), mixed @ matrix.T, rtol=0, atol=1e-5)


def test_only_mix_and_map_are_learned_and_saved(paths: Paths) -> None:
    module = built(paths).train()
    assert sorted(name for name, _ in module.named_parameters()) == ["linear.weight", "mix"]
    assert sorted(module.state_dict()) == ["linear.weight", "mix"]
    apply(module, SENTENCES).square().sum().backward()
    assert bool((module.mix.grad != 0).all())
    assert bool((module.linear.weight.grad != 0).any())


def test_dropout_of_the_mix_and_of_the_vectors(paths: Paths) -> None:
    sentences = [["so", "la"]] * 2
    mixed = built(paths, 4, 0.5, 0.0).train()
    assert not torch.equal(apply(mixed, sentences), apply(mixed, sentences))
    assert torch.equal(apply(mixed.eval(), sentences), apply(mixed, sentences))
    absent = apply(built(paths, 400, 0.0, 0.2).train(), sentences) == 0
    for sentence in absent.split(4):  # a feature is absent from all tokens of a sentence
        assert torch.equal(sentence, sentence[:1].expand_as(sentence))
    assert 0.1 < absent.float().mean().item() < 0.3
