"""Word vectors and ELMo: what is read of their files, what of it is learned, and the language
model against plain loops."""

from __future__ import annotations

import copy
import gzip
import json
import struct
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
from numpy.typing import NDArray
from torch import Tensor, nn

from spmrl_bench.errors import PretrainedError
from spmrl_bench.nn.inputs import Boundary, elmo
from spmrl_bench.nn.inputs.elmo import Elmo, read_elmo
from spmrl_bench.nn.inputs.vectors import StaticVectors, read_word_vectors
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

# ---- Word vectors -----------------------------------------------------------------------

PLAIN = "Haus 0.5 -1.25 3\nschön 1e-3 .5 +2.\n中 0 -0.0 1E2\n"
WORDS = ["Haus", "schön", "中"]
ROWS = [[0.5, -1.25, 3], [0.001, 0.5, 2], [0, 0, 100]]


def read(
    folder: Path, data: bytes | str, name: str = "vectors.txt"
) -> tuple[list[str], NDArray[np.float32]]:
    path = folder / name
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return read_word_vectors(path)


def binary(words: list[str], rows: list[list[float]], line_feed: bool = True) -> bytes:
    entries = [
        word.encode() + b" " + struct.pack(f"<{len(row)}f", *row) + b"\n" * line_feed
        for word, row in zip(words, rows, strict=True)
    ]
    return f"{len(words)} {len(rows[0])}\n".encode() + b"".join(entries)


def gzipped(data: bytes) -> bytes:
    return gzip.compress(data, mtime=0)


def test_formats_of_vectors(tmp_path: Path) -> None:
    texts = [
        PLAIN,
        "3 3\n" + PLAIN,
        PLAIN.rstrip("\n"),
        PLAIN.replace("\n", "\r\n"),
        "3 3\r\n" + PLAIN.replace("\n", " \r\n"),
        PLAIN.replace(" ", "\t"),
        PLAIN.replace(" ", "  "),
        PLAIN.replace("\n", "\n \r\n\n"),
        "\ufeff" + PLAIN,
        "\ufeff3 3\n" + PLAIN,
    ]
    of_text = [*(text.encode() for text in texts), gzipped(PLAIN.encode())]
    packed = [binary(WORDS, ROWS, line_feed) for line_feed in (True, False)]
    files = [
        *(("x.txt", data) for data in of_text),
        ("x.txt.gz", of_text[-1]),
        *(("x.bin", data) for data in packed),
        ("x.bin.gz", gzipped(packed[0])),
    ]
    for name, data in files:
        words, matrix = read(tmp_path, data, name)
        assert words == WORDS, data
        assert matrix.dtype == np.float32
        np.testing.assert_array_equal(matrix, np.array(ROWS, dtype=np.float32))


def test_words_with_spaces_and_those_that_look_like_numbers(tmp_path: Path) -> None:
    text = "the 0.1 0.2\n. . . 0.3 0.4\nat a@b.example 0.5 0.6\npage 1 0.7 0.8\n"
    words, matrix = read(tmp_path, text)
    assert words == ["the", ". . .", "at a@b.example", "page 1"]
    np.testing.assert_allclose(matrix, [[0.1, 0.2], [0.3, 0.4], [0.5, 0.6], [0.7, 0.8]])
    assert read(tmp_path, ". . 0.3 0.4\nthe 0.1 0.2\n")[0] == [". .", "the"]
    text = "1998 0.1 0.2\n\u00a0 0.3 0.4\n\u0085 0.5 0.6\n3.5 0.7 0.8\na_b 1 2\n"
    assert read(tmp_path, text)[0] == ["1998", "\u00a0", "\u0085", "3.5", "a_b"]


def test_the_first_of_several_lines_of_a_word_counts(tmp_path: Path) -> None:
    words, matrix = read(tmp_path, "4 1\na 1\nb 2\na 3\na 4\n")
    assert words == ["a", "b"]
    assert matrix.tolist() == [[1], [2]]


BROKEN_VECTORS: dict[str, list[tuple[bytes | str, str]]] = {
    "x.txt": [
        ("a 1 2 3\nb 1 2\n", "2: found 2 numbers, expected 3"),
        ("a 1 2\nb 1. 2. 3.\n", "2: found 3 numbers, expected 2"),
        ("2 3\na 1 2 3\nb 1\n", "3: found 1 numbers, expected 3"),
        ("a 1 2\n 3 4\n", "2: found 1 numbers"),
        ("a 1 2\nb 3 x\n", "2: number 2 is 'x', expected"),
        ("a 1 2\nb 3 4\nc nan 6\n", "3: number 1 is nan"),
        ("a 1 2\nb 3 inf\n", "2: number 2 is inf"),
        ("a 1 2\nb 3 1e39\n", "2: number 2 is inf"),
        ("a 1 2\nb 3 1-2\n", "2: number 2 is '1-2'"),
        ("a 1 2\nb 3 0x1\n", "2: number 2 is '0x1'"),
        ("a 1 2\nb 3 1_0\n", "2: number 2 is '1_0'"),
        ("3 1\na 1\nb 2\n", " found 2 words of 3"),
        ("1 1\na 1\nb 2\n", "3: found more than the 1 words"),
        ("0 5\n", "1: found '0 5', expected how many words"),
        ("5 0\n", "1: found '5 0', expected how many words"),
        ("just words\n", "1: found 'just words', expected a word and its numbers"),
        ("", "1: found ''"),
        (b"a 1 2\nb\xff 3 4\n", "2: the word 'b\\xff' is not UTF-8"),
        (b"a 1\n" + b"b" * (5 << 20), "2: found 'bbb"),
        (b"PK\x03\x04....", " cannot be read: found a zip archive; unpack it"),
        (gzipped(PLAIN.encode())[:-12], " cannot be read: Compressed file ended"),
        (b"\x1f\x8b" + b"x" * 50, " cannot be read: Unknown compression method"),
    ],
    "x.bin": [
        (binary(WORDS, ROWS)[:-2], " word 3: the file ends within it"),
        (b"9" + binary(WORDS, ROWS), "1: found '93 3', expected how many words"),
        (binary(WORDS, ROWS) + b"x", " word 4: the file ends within it"),
        (b"1" + binary(WORDS, ROWS)[1:], " word 2: found more than the 1 words"),
        (binary(["a", "b"], [[1], [float("nan")]]), " word 2: number 1 is nan"),
        (binary(["a", ""], [[1], [2]]), " word 2: it has no bytes"),
        (binary(["a", "b"], [[1], [2]]).replace(b"b ", b"\xe4 "), " word 2: the word '\\xe4' is"),
        (PLAIN, "1: found 'Haus 0.5 -1.25 3', expected how many words of how many"),
        (b"2 1\n" + b"a" * 70000, " word 1: it has no end within 65536 bytes"),
    ],
}


def test_what_is_wrong_with_files_of_vectors(tmp_path: Path) -> None:
    for name, files in BROKEN_VECTORS.items():
        for data, message in files:
            with pytest.raises(PretrainedError) as caught:
                read(tmp_path, data, name)
            assert str(caught.value).startswith(f"{tmp_path / name}:{message}")
    with pytest.raises(PretrainedError, match=r"absent\.txt: cannot be read: No such file"):
        read_word_vectors(tmp_path / "absent.txt")


NUMBERS = st.floats(width=32, allow_nan=False, allow_infinity=False)
TOKENS = st.text(
    st.characters(blacklist_categories=("Cs",), blacklist_characters=" \t\n\r\x0b\x0c\ufeff"),
    min_size=1,
    max_size=6,
)


@st.composite
def files(draw: st.DrawFn) -> tuple[str, bytes, list[str], list[list[float]]]:
    """Name and content of a good file, and the words and rows that are in it."""
    width = draw(st.integers(1, 4))
    words = draw(st.lists(TOKENS, min_size=1, max_size=8, unique=True))
    rows = [draw(st.lists(NUMBERS, min_size=width, max_size=width)) for _ in words]
    kind = draw(st.sampled_from(["plain", "header", "binary"]))
    if kind == "binary":
        return "v.bin", binary(words, rows, draw(st.booleans())), words, rows
    lines = [f"{word} {' '.join(map(repr, row))}\n" for word, row in zip(words, rows, strict=True)]
    # Without a header the first line must not look like one.
    head = f"{len(words)} {width}\n" if kind == "header" or width == 1 else ""
    return "v.txt", (head + "".join(lines)).encode(), words, rows


@given(files(), st.data())
def test_what_is_written_is_read_and_damage_is_read_or_named(
    tmp_path_factory: pytest.TempPathFactory,
    file: tuple[str, bytes, list[str], Any],
    draws: st.DataObject,
) -> None:
    (name, data, words, rows), folder = file, tmp_path_factory.mktemp("vectors")
    found, matrix = read(folder, data, name)
    assert found == words
    np.testing.assert_array_equal(matrix, np.array(rows, dtype=np.float32))

    start = draws.draw(st.integers(0, len(data)))
    end = draws.draw(st.integers(start, min(len(data), start + 5)))
    damaged = data[:start] + draws.draw(st.binary(max_size=5)) + data[end:]
    if draws.draw(st.booleans()):
        damaged = gzipped(damaged)
        place = draws.draw(st.integers(0, len(damaged)))
        damaged = damaged[:place] + draws.draw(st.binary(max_size=1)) + damaged[place + 1 :]
    try:
        words, matrix = read(folder, damaged, name)
    except PretrainedError as error:
        assert str(error).startswith(f"{folder / name}:")  # noqa: PT017
    else:
        assert matrix.shape[0] == len(words) == len(set(words)) > 0
        assert np.isfinite(matrix).all()


TABLE = "haus 1 2 3\nHaus 4 5 6\nim 7 8 9\nhaus 0 0 0\nstrasse -1 0 1\n"
FORMS = ["Haus", "IM", "nirgends", "HAUS"]


def static_vectors(folder: Path) -> StaticVectors:
    torch.manual_seed(0)
    path = folder / "table.txt"
    path.write_text(TABLE, encoding="utf-8")
    return StaticVectors(StaticVectors.Config(file=str(path), dropout=0.2), None, 8)


def test_a_form_has_its_row_or_that_of_its_lower_case(tmp_path: Path) -> None:
    module = static_vectors(tmp_path).eval()
    assert module.table.tolist() == [[1, 2, 3], [4, 5, 6], [7, 8, 9], [-1, 0, 1]]
    forms = ("haus", *FORMS[:3], "strasse", *Boundary)
    assert len({int(module.codes(form)[0]) for form in forms}) == 7
    found = apply(module, [FORMS, FORMS[:1]]).detach()
    mapped = module.table @ module.linear.weight.detach().T
    torch.testing.assert_close(found[[1, 2, 4]], mapped[[1, 2, 0]])
    assert torch.equal(found[3], torch.zeros(8))
    assert torch.equal(found[[0, 5]], module.boundaries.weight)
    assert torch.equal(found[6:], found[[0, 1, 5]])
    assert module.double().table.dtype == torch.float64
    assert module.to("meta").table.device.type == "meta"


# ---- ELMo -------------------------------------------------------------------------------


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


def failure(paths: Paths) -> str:
    with pytest.raises(PretrainedError) as caught:
        read_elmo(*paths)
    return str(caught.value)


def test_settings_of_its_training_are_not_read(paths: Paths) -> None:
    options = {**changed(n_characters=261), "n_epochs": 10, "dropout": 0.1}
    options["lstm"]["note"] = "any"
    paths[0].write_text(json.dumps(options), encoding="utf-8")
    assert read_elmo(*paths)[0].lstm.dim == 7


def test_what_is_said_of_its_options(paths: Paths) -> None:
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


def test_what_is_said_of_its_weights(paths: Paths) -> None:
    whole = paths[1].read_bytes()
    for change, message in BROKEN:
        paths[1].write_bytes(whole)
        with h5py.File(paths[1], "a") as file:
            change(file)
        assert failure(paths).startswith(f"{paths[1]}: {message}")


def test_what_is_said_of_its_files(paths: Paths, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "h5py", None)
        assert "pip install 'spmrl-bench[pretrained]'" in failure(paths)
    paths[1].write_text("no weights", encoding="utf-8")
    assert failure(paths).startswith(f"{paths[1]}: cannot be read: not an HDF5 file (")
    for path in paths[::-1]:
        path.unlink()
        assert failure(paths) == f"{path}: cannot be read: No such file or directory"


@given(st.data())
def test_damaged_files_of_elmo_give_weights_or_an_error(
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


def elmo_of(paths: Paths, width: int = 6, mix_dropout: float = 0.5, dropout: float = 0.2) -> Elmo:
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
    for words, found in zip(SENTENCES, layers(elmo_of(paths), SENTENCES), strict=True):
        expected = plain_elmo.layers(paths, words)
        assert found.shape == expected.shape
        for number, layer in enumerate(expected):
            np.testing.assert_allclose(found[number].numpy(), layer, rtol=0, atol=2e-6)


def test_a_sentence_does_not_depend_on_its_batch(
    paths: Paths, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = elmo_of(paths)
    together = layers(module, SENTENCES)
    backwards = layers(module, SENTENCES[::-1])[::-1]
    alone = [layers(module, [words])[0] for words in SENTENCES]
    monkeypatch.setattr(elmo, "FILTERED", 100)
    monkeypatch.setattr(elmo, "GATES", 3)
    in_parts = layers(module, SENTENCES)
    for number, expected in enumerate(together):
        for found in (backwards, alone, in_parts):
            torch.testing.assert_close(found[number], expected, rtol=1e-6, atol=1e-6)


def test_characters_of_odd_forms(paths: Paths) -> None:
    module = elmo_of(paths)
    assert module.codes("").tolist() == [258, 259]
    assert module.codes("\ud800a").tolist() == [258, 97, 259]


def test_the_result_is_a_map_of_a_mix(paths: Paths) -> None:
    module = elmo_of(paths).eval()
    assert torch.equal(module.mix.softmax(0), torch.full((3,), 1 / 3))
    with torch.no_grad():
        module.mix.copy_(torch.tensor([0.3, -1.0, 2.0]))
    shares = np.exp([0.3, -1.0, 2.0]) / np.exp([0.3, -1.0, 2.0]).sum()
    found = apply(module, SENTENCES).split([len(words) + 2 for words in SENTENCES])
    matrix = module.linear.weight.detach().numpy().astype(np.float64)
    for words, rows in zip(SENTENCES, found, strict=True):
        mixed = np.tensordot(shares, plain_elmo.layers(paths, words), axes=1)
        np.testing.assert_allclose(rows.detach().numpy(), mixed @ matrix.T, rtol=0, atol=1e-5)


@pytest.mark.parametrize("name", ["elmo", "vectors"])
def test_what_is_of_a_file_is_neither_trained_nor_saved(name: str, tmp_path: Path) -> None:
    module: nn.Module
    if name == "elmo":
        module, names = elmo_of(plain_elmo.write_model(tmp_path)), ["linear.weight", "mix"]
    else:
        module, names = static_vectors(tmp_path), ["boundaries.weight", "linear.weight"]
    assert sorted(name for name, _ in module.named_parameters()) == names
    assert sorted(module.state_dict()) == names
    apply(module.train(), [FORMS, *SENTENCES]).square().sum().backward()
    assert all(weight.grad.any() for weight in module.parameters())


def test_dropout_of_the_mix_and_of_the_vectors(paths: Paths) -> None:
    sentences = [["so", "la"]] * 2
    mixed = elmo_of(paths, 4, 0.5, 0.0).train()
    assert not torch.equal(apply(mixed, sentences), apply(mixed, sentences))
    assert torch.equal(apply(mixed.eval(), sentences), apply(mixed, sentences))
    absent = apply(elmo_of(paths, 400, 0.0, 0.2).train(), sentences) == 0
    for sentence in absent.split(4):  # a feature is absent from all tokens of a sentence
        assert torch.equal(sentence, sentence[:1].expand_as(sentence))
    assert 0.1 < absent.float().mean().item() < 0.3
