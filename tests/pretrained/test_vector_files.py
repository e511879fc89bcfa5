"""Files of word vectors: what each format says, and what is said of files that break it."""

from __future__ import annotations

import gzip
import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spmrl_bench.errors import PretrainedError
from spmrl_bench.pretrained import vector_files
from spmrl_bench.pretrained.vector_files import WordVectors, read_word_vectors

PLAIN = "Haus 0.5 -1.25 3\nschön 1e-3 .5 +2.\n中 0 -0.0 1E2\n"
WORDS = ["Haus", "schön", "中"]
ROWS = [[0.5, -1.25, 3], [0.001, 0.5, 2], [0, 0, 100]]


def read(tmp_path: Path, data: bytes | str, name: str = "vectors.txt") -> WordVectors:
    path = tmp_path / name
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return read_word_vectors(path)


def failure(tmp_path: Path, data: bytes | str, name: str = "vectors.txt") -> str:
    """What is said of a file, after its path."""
    with pytest.raises(PretrainedError) as caught:
        read(tmp_path, data, name)
    assert str(caught.value).startswith(f"{tmp_path / name}:")
    return str(caught.value).removeprefix(f"{tmp_path / name}:")


def binary(words: list[str], rows: list[list[float]], line_feed: bool = True) -> bytes:
    entries = [
        word.encode() + b" " + struct.pack(f"<{len(row)}f", *row) + b"\n" * line_feed
        for word, row in zip(words, rows, strict=True)
    ]
    return f"{len(words)} {len(rows[0])}\n".encode() + b"".join(entries)


def check(found: WordVectors) -> None:
    assert found.words == WORDS
    assert found.matrix.dtype == np.float32
    np.testing.assert_array_equal(found.matrix, np.array(ROWS, dtype=np.float32))


@pytest.mark.parametrize(
    "text",
    [
        PLAIN,
        "3 3\n" + PLAIN,
        PLAIN.rstrip("\n"),
        PLAIN.replace("\n", "\r\n"),
        "3 3\r\n" + PLAIN.replace("\n", " \r\n"),
        PLAIN.replace("\n", " \n"),
        PLAIN.replace(" ", "\t"),
        PLAIN.replace(" ", "  "),
        PLAIN + "\n\n",
        PLAIN + " \r\n\r\n",
        "\ufeff" + PLAIN,
    ],
    ids=[
        "glove",
        "word2vec",
        "no end of line",
        "crlf",
        "header and crlf",
        "space at the end",
        "tabs",
        "two spaces",
        "empty lines at the end",
        "blank lines at the end",
        "byte order mark",
    ],
)
def test_text(tmp_path: Path, text: str) -> None:
    check(read(tmp_path, text))


@pytest.mark.parametrize("line_feed", [True, False])
def test_binary(tmp_path: Path, line_feed: bool) -> None:
    check(read(tmp_path, binary(WORDS, ROWS, line_feed), "vectors.bin"))


def gzipped(data: bytes) -> bytes:
    return gzip.compress(data, mtime=0)


def test_gzipped(tmp_path: Path) -> None:
    check(read(tmp_path, gzipped(PLAIN.encode()), "vectors.txt.gz"))
    check(read(tmp_path, gzipped(PLAIN.encode()), "vectors.txt"))
    check(read(tmp_path, gzipped(binary(WORDS, ROWS)), "vectors.bin.gz"))


def test_words_with_spaces(tmp_path: Path) -> None:
    found = read(tmp_path, "the 0.1 0.2\n. . . 0.3 0.4\nat a@b.example 0.5 0.6\npage 1 0.7 0.8\n")
    assert found.words == ["the", ". . .", "at a@b.example", "page 1"]
    np.testing.assert_allclose(found.matrix, [[0.1, 0.2], [0.3, 0.4], [0.5, 0.6], [0.7, 0.8]])


def test_spaces_in_the_first_word(tmp_path: Path) -> None:
    found = read(tmp_path, ". . 0.3 0.4\nthe 0.1 0.2\n")
    assert (found.words, found.matrix.shape) == ([". .", "the"], (2, 2))


def test_words_that_look_like_spaces_or_numbers(tmp_path: Path) -> None:
    found = read(tmp_path, "1998 0.1 0.2\n\u00a0 0.3 0.4\n\u0085 0.5 0.6\n3.5 0.7 0.8\n")
    assert found.words == ["1998", "\u00a0", "\u0085", "3.5"]


def test_the_first_of_several_lines_of_a_word_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "4 1\na 1\nb 2\na 3\na 4\n"
    for block in (3, 100):
        monkeypatch.setattr(vector_files, "BLOCK", block)
        found = read(tmp_path, text)
        assert found.words == ["a", "b"]
        assert found.matrix.tolist() == [[1], [2]]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("a 1 2 3\nb 1 2\n", "2: found 2 numbers, expected 3, as in the first line ('b 1 2')"),
        ("a 1 2\nb 1. 2. 3.\n", "2: found 3 numbers, expected 2, as in the first line ('b 1. 2"),
        ("2 3\na 1 2 3\nb 1\n", "3: found 1 number, expected 3, as the first line says ('b 1')"),
        ("a 1 2 3\nb 1  2\n", "2: found 2 numbers, expected 3, as in the first line"),
        ("a 1 2\n 3 4\n", "2: found no word before the numbers"),
        ("a 1 2\nb 3 x\n", "2: number 2 is 'x', expected a finite decimal number"),
        ("a 1 2\nb 3 4\nc nan 6\n", "3: number 1 is 'nan'"),
        ("a 1 2\nb 3 inf\n", "2: number 2 is 'inf'"),
        ("a 1 2\nb 3 1e39\n", "2: number 2 is '1e39'"),
        ("a 1 2\nb 3 1-2\n", "2: number 2 is '1-2'"),
        ("a 1 2\nb 3 0x1\n", "2: number 2 is '0x1'"),
        ("a 1 2\nb 3 1_0\n", "2: number 2 is '1_0'"),
        ("a 1 2\n\nb 3 4\n", "2: found an empty line"),
        ("3 1\na 1\nb 2\n", " the first line promises 3 words, but the file ends after 2"),
        ("1 1\na 1\nb 2\n", "3: found more than the 1 words that the first line promises"),
        ("0 5\n", "1: found a header of 0 words of 5 numbers"),
        ("5 0\n", "1: found a header of 5 words of 0 numbers"),
        ("just words\n", "1: found 'just words', expected a word and its numbers, or how many"),
        ("", " found no word vectors; is it the right file?"),
        (b"a 1 2\nb\xff 3 4\n", "2: byte 0xff of the word 'b\\xff' is not UTF-8"),
        (b"PK\x03\x04....", " found a zip archive; unpack it"),
        (gzipped(PLAIN.encode())[:-12], " cannot be read: Compressed file ended"),
        (b"\x1f\x8b" + b"x" * 50, " cannot be read: Unknown compression method"),
    ],
)
def test_what_is_said_of_text(tmp_path: Path, data: bytes | str, message: str) -> None:
    assert failure(tmp_path, data).startswith(message)


def test_places_do_not_depend_on_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for block in (16, 17, 18, 19, 50, 1000):
        monkeypatch.setattr(vector_files, "BLOCK", block)
        assert failure(tmp_path, "4 2\na 1 2\nb 3 4\nc 5\n").startswith("4: found 1 number")
        assert failure(tmp_path, "2 2\na 1 2\nb 3 4\nc 5 6\n").startswith("4: found more")
        assert failure(tmp_path, "a 1 2\n\n\nb 3 4\n").startswith("2: found an empty line")


def test_a_line_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vector_files, "BLOCK", 100)
    assert failure(tmp_path, "a 1\n" + "b" * 300).startswith("2: found a line of more than 100")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (binary(WORDS, ROWS)[:-2], " the first line promises 3 words, but the file ends after 2"),
        (b"9" + binary(WORDS, ROWS), "1: the first line promises 93 words of 3 numbers, which the"),
        (binary(WORDS, ROWS) + b"x", " found more bytes after the 3 words of 3 numbers"),
        (binary(["a", "b"], [[1], [float("nan")]]), " word 2, 'b': number 1 is nan"),
        (binary(["a", ""], [[1], [2]]), " word 2: has no bytes"),
        (binary(["a", "b"], [[1], [2]]).replace(b"b ", b"\xe4 "), " word 2: byte 0xe4 of the"),
        (PLAIN, "1: found 'Haus 0.5 -1.25 3', expected the first line of a word2vec file"),
        (b"\xba\x16\x4f\x2f\x0c\x00", "1: found a model of fastText"),
        (b"2 1\n" + b"a" * 70000, " word 1 has no end within 65536 bytes"),
    ],
)
def test_what_is_said_of_binary_files(tmp_path: Path, data: bytes | str, message: str) -> None:
    assert failure(tmp_path, data, "vectors.bin").startswith(message)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(PretrainedError, match=r"absent\.txt: cannot be read: No such file"):
        read_word_vectors(tmp_path / "absent.txt")


NUMBERS = st.floats(width=32, allow_nan=False, allow_infinity=False)
TOKENS = st.text(
    st.characters(blacklist_categories=("Cs",), blacklist_characters=" \t\n\r\x0b\x0c\ufeff"),
    min_size=1,
    max_size=6,
)
FORMATS = ["plain", "header", "binary"]


@st.composite
def files(draw: st.DrawFn) -> tuple[str, bytes, list[str], list[list[float]]]:
    """Name and content of a good file, and the words and rows that are in it."""
    width = draw(st.integers(1, 4))
    words = draw(st.lists(TOKENS, min_size=1, max_size=8, unique=True))
    rows = [draw(st.lists(NUMBERS, min_size=width, max_size=width)) for _ in words]
    kind = draw(st.sampled_from(FORMATS))
    if kind == "binary":
        return "v.bin", binary(words, rows, draw(st.booleans())), words, rows
    lines = [f"{word} {' '.join(map(repr, row))}\n" for word, row in zip(words, rows, strict=True)]
    # Without a header the first line must not look like one.
    head = f"{len(words)} {width}\n" if kind == "header" or width == 1 else ""
    return "v.txt", (head + "".join(lines)).encode(), words, rows


@given(files(), st.integers(2, 60))
@settings(max_examples=150)
def test_what_is_written_is_read(
    tmp_path_factory: pytest.TempPathFactory,
    file: tuple[str, bytes, list[str], list[list[float]]],
    block: int,
) -> None:
    name, data, words, rows = file
    longest = max(map(len, data.split(b"\n")))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vector_files, "BLOCK", max(block, longest + 1))
        found = read(tmp_path_factory.mktemp("vectors"), data, name)
    assert found.words == words
    np.testing.assert_array_equal(found.matrix, np.array(rows, dtype=np.float32))


@given(files(), st.data())
@settings(max_examples=300)
def test_damage_gives_vectors_or_an_error_with_its_place(
    tmp_path_factory: pytest.TempPathFactory,
    file: tuple[str, bytes, list[str], list[list[float]]],
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
    message = ""
    try:
        found = read(folder, damaged, name)
    except PretrainedError as error:
        message = str(error)
    if message:
        assert message.startswith(f"{folder / name}:")
    else:
        assert found.matrix.shape[0] == len(found.words) == len(set(found.words)) > 0
        assert np.isfinite(found.matrix).all()
