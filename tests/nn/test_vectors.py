"""Static word vectors: what files of them say, which row a form has, and what of it is learned."""

from __future__ import annotations

import gzip
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from spmrl_bench.errors import PretrainedError
from spmrl_bench.nn.inputs import Boundary
from spmrl_bench.nn.inputs.vectors import StaticVectors, read_word_vectors
from tests.nn.built import apply

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


# Files ----------------------------------------------------------------------------------


def test_formats(tmp_path: Path) -> None:
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


BROKEN: dict[str, list[tuple[bytes | str, str]]] = {
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


def test_what_is_wrong_with_files(tmp_path: Path) -> None:
    for name, files in BROKEN.items():
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


@given(files())
def test_what_is_written_is_read(
    tmp_path_factory: pytest.TempPathFactory, file: tuple[str, bytes, list[str], Any]
) -> None:
    name, data, words, rows = file
    found, matrix = read(tmp_path_factory.mktemp("vectors"), data, name)
    assert found == words
    np.testing.assert_array_equal(matrix, np.array(rows, dtype=np.float32))


@given(files(), st.data())
def test_damage_gives_vectors_or_an_error_with_its_place(
    tmp_path_factory: pytest.TempPathFactory,
    file: tuple[str, bytes, list[str], Any],
    draws: st.DataObject,
) -> None:
    name, data, *_ = file
    start = draws.draw(st.integers(0, len(data)))
    end = draws.draw(st.integers(start, min(len(data), start + 5)))
    damaged = data[:start] + draws.draw(st.binary(max_size=5)) + data[end:]
    if draws.draw(st.booleans()):
        damaged = gzipped(damaged)
        place = draws.draw(st.integers(0, len(damaged)))
        damaged = damaged[:place] + draws.draw(st.binary(max_size=1)) + damaged[place + 1 :]
    folder = tmp_path_factory.mktemp("vectors")
    try:
        words, matrix = read(folder, damaged, name)
    except PretrainedError as error:
        assert str(error).startswith(f"{folder / name}:")  # noqa: PT017
    else:
        assert matrix.shape[0] == len(words) == len(set(words)) > 0
        assert np.isfinite(matrix).all()


# The input ------------------------------------------------------------------------------

TABLE = "haus 1 2 3\nHaus 4 5 6\nim 7 8 9\nhaus 0 0 0\nstrasse -1 0 1\n"
FORMS = ["Haus", "IM", "nirgends", "HAUS"]


def built(folder: Path) -> StaticVectors:
    torch.manual_seed(0)
    path = folder / "table.txt"
    path.write_text(TABLE, encoding="utf-8")
    return StaticVectors(StaticVectors.Config(file=str(path), dropout=0.2), None, 8)


def test_a_form_has_its_row_or_that_of_its_lower_case(tmp_path: Path) -> None:
    module = built(tmp_path).eval()
    assert module.table.tolist() == [[1, 2, 3], [4, 5, 6], [7, 8, 9], [-1, 0, 1]]
    forms = ("haus", *FORMS[:3], "strasse", *Boundary)
    assert len({int(module.codes(form)[0]) for form in forms}) == 7
    found = apply(module, [FORMS, FORMS[:1]]).detach()
    mapped = module.table @ module.linear.weight.detach().T
    torch.testing.assert_close(found[[1, 2, 4]], mapped[[1, 2, 0]])
    assert torch.equal(found[3], torch.zeros(8))
    assert torch.equal(found[[0, 5]], module.boundaries.weight)
    assert torch.equal(found[6:], found[[0, 1, 5]])


def test_the_table_is_neither_trained_nor_saved(tmp_path: Path) -> None:
    module = built(tmp_path).train()
    names = ["boundaries.weight", "linear.weight"]
    assert sorted(name for name, _ in module.named_parameters()) == names
    assert sorted(module.state_dict()) == names
    apply(module, [FORMS]).square().sum().backward()
    for parameter in module.parameters():
        assert parameter.grad is not None
        assert bool((parameter.grad != 0).any())
    assert module.table.grad is None
    assert module.double().table.dtype == torch.float64
    assert module.to("meta").table.device.type == "meta"
