"""Sentences out of files and pipes, each with its place, and nothing lost before a mistake."""

from __future__ import annotations

import io
import itertools
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TypeVar

import pytest

from spmrl_bench.errors import ReadError
from spmrl_bench.parsers.streams import Form, Given, check_readable, read_given, windows

T = TypeVar("T")


def read(data: bytes, form: Form) -> list[Given]:
    return list(read_given([], form, io.BytesIO(data)))


def words(data: bytes, form: Form = "tokens") -> list[list[str]]:
    return [list(given.words) for given in read(data, form)]


def until_error(source: Iterator[T]) -> tuple[list[T], str]:
    """What is yielded in front of an error, and its message."""
    found: list[T] = []
    try:
        for one in source:
            found.append(one)
    except ReadError as error:
        return found, str(error)
    pytest.fail("no error")


def test_a_line_is_a_sentence_even_without_words() -> None:
    assert read(b"\nHello world\n  \nBye", "tokens") == [
        Given([], None, "<standard input>:1"),
        Given(["Hello", "world"], None, "<standard input>:2"),
        Given([], None, "<standard input>:3"),
        Given(["Bye"], None, "<standard input>:4"),
    ]


def test_words_end_at_ascii_white_space_only() -> None:
    data = "10\u00a0000 \t Euro\u2028\r\n".encode()
    assert words(data) == [["10\u00a0000", "Euro\u2028"]]


def test_byte_order_mark_is_no_word() -> None:
    assert words(b"\xef\xbb\xbfa\n") == [["a"]]
    assert words(b"\xef\xbb\xbf(X (T a))", "brackets") == [["a"]]


def test_brackets_give_words_and_tags() -> None:
    found = read(b"( (S (NP (DT the)\n (NN -LRB-))))\n(X (T a))\n", "brackets")
    assert found == [
        Given(("the", "("), ("DT", "NN"), "<standard input>: sentence 1", spelt=["the", "-LRB-"]),
        Given(("a",), ("T",), "<standard input>: sentence 2", spelt=["a"]),
    ]


CONLLU = b"""# sent_id = first
1-2\tau\t_\t_\t_\t_\t_\t_\t_\t_
1\ta\t_\tADP\tP\t_\t_\t_\t_\t_
2\tle\t_\t_\tD\t_\tx\t_\t_\t_

1\tb\t_\tNOUN\t_\t_\t0\tr\t_\t_
"""


def test_conllu_gives_words_and_the_tags_of_a_column() -> None:
    first, second = read(CONLLU, "conllu")
    assert first[:3] == (["a", "le"], ["P", "D"], "<standard input>:3: sentence first")
    assert second[:3] == (["b"], None, "<standard input>:6: sentence 2")
    universal = list(read_given([], "conllu", io.BytesIO(CONLLU), "upos"))
    assert [given.tags for given in universal] == [["ADP", "_"], ["NOUN"]]


def test_files_and_standard_input_follow_each_other(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.write_text("one two\nthree")  # the last line need not end
    second.write_text("")
    names = [str(first), "-", str(second), str(first)]
    given = list(read_given(names, "tokens", io.BytesIO(b"four\n")))
    assert [sentence.words for sentence in given] == [
        ["one", "two"],
        ["three"],
        ["four"],
        ["one", "two"],
        ["three"],
    ]
    assert given[4].place == f"{first}:2"


def test_empty_input_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ReadError, match=r"^<standard input>: empty; expected one sentence per"):
        read(b"", "tokens")
    with pytest.raises(ReadError, match=r"^<standard input>: empty; expected bracketed trees"):
        read(b" \n", "brackets")
    with pytest.raises(ReadError, match=r"^<standard input>: empty; expected sentences in CoNLL"):
        read(b"\n\n", "conllu")
    path = tmp_path / "empty"
    path.touch()
    with pytest.raises(ReadError, match=r"empty: empty \(and 1 more\); expected one sentence"):
        list(read_given([str(path), str(path)], "tokens", io.BytesIO()))


def test_wrong_encoding_names_the_line_and_loses_nothing_before_it() -> None:
    for form in ("tokens", "brackets"):
        data = io.BytesIO(b"(X (T a))\n(X (T \xe9))\n")
        found, message = until_error(read_given([], form, data))
        assert len(found) == 1
        assert message.startswith("<standard input>:2: not UTF-8 text")


def test_malformed_tree_names_the_place() -> None:
    found, message = until_error(read_given([], "brackets", io.BytesIO(b"(X (T a))\n(X (T b)\n")))
    assert len(found) == 1
    assert message.startswith("<standard input>:2:1: sentence 2: the tree that starts here")


def test_missing_files_are_found_before_anything_is_read(tmp_path: Path) -> None:
    with pytest.raises(ReadError, match="gone: cannot be read: No such file"):
        check_readable(["-", str(tmp_path / "gone")])
    with pytest.raises(ReadError, match="is a folder; expected a file of sentences"):
        check_readable([str(tmp_path)])
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    check_readable([str(pipe)])  # opening it would wait for a writer
    (tmp_path / "shut").touch(mode=0)
    if not os.access(tmp_path / "shut", os.R_OK):  # the superuser may read everything
        with pytest.raises(ReadError, match="shut: cannot be read: Permission denied"):
            check_readable([str(tmp_path / "shut")])


def test_a_file_that_vanishes_or_breaks_is_named(tmp_path: Path) -> None:
    with pytest.raises(ReadError, match="gone: cannot be read: No such file"):
        list(read_given([str(tmp_path / "gone")], "tokens", io.BytesIO()))

    class Broken(io.BytesIO):
        def readline(self, size: int | None = -1, /) -> bytes:
            if line := super().readline(size):
                return line
            raise OSError(5, "Input/output error")

    found, message = until_error(read_given([], "tokens", Broken(b"a\nb\n")))
    assert len(found) == 2
    assert message == "<standard input>:3: cannot be read on: Input/output error"


def sentences(*lengths: int) -> Iterator[Given]:
    for place, length in enumerate(lengths):
        yield Given(["w"] * length, None, str(place))


def words_of(given: Given) -> int:
    return len(given.words)


def sizes(found: Iterable[list[Given]]) -> list[list[int]]:
    return [[len(given.words) for given in window] for window in found]


def test_windows_are_bounded_by_sentences_and_by_words() -> None:
    assert sizes(windows(sentences(1, 2, 3, 4, 5), words_of, 2, 100)) == [[1, 2], [3, 4], [5]]
    assert sizes(windows(sentences(1, 2, 3, 4, 50, 1, 0), words_of, 9, 6)) == [
        [1, 2, 3],
        [4, 50],
        [1, 0],
    ]
    assert sizes(windows(sentences(0, 0), words_of, 9, 1)) == [[0, 0]]
    assert sizes(windows(sentences(), words_of, 9, 9)) == []


def test_windows_of_endless_input_read_no_further() -> None:
    count = itertools.count()
    endless = (Given(["w"], None, str(next(count))) for _ in itertools.repeat(None))
    found = windows(endless, words_of, 3, 100)
    next(found)
    next(found)
    assert next(count) == 6


def test_a_window_is_not_lost_by_a_mistake_behind_it() -> None:
    def broken() -> Iterator[Given]:
        yield from sentences(1, 2, 3)
        raise ReadError("bad", path="x")

    for most, expected in ((2, [[1, 2], [3]]), (3, [[1, 2, 3]]), (9, [[1, 2, 3]])):
        found, message = until_error(windows(broken(), words_of, most, 100))
        assert sizes(found) == expected
        assert message == "x: bad"
