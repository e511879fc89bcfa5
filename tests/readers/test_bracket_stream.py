"""Brackets off a stream: the same trees and errors as from the whole text, wherever it is cut."""

from __future__ import annotations

import io
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spmrl_bench.errors import ReadError
from spmrl_bench.readers import bracket_stream
from spmrl_bench.readers.brackets import read_bracket_stream, read_brackets
from spmrl_bench.trees import Tree
from spmrl_bench.trees.brackets import write_brackets
from tests.readers.cases import damaged
from tests.trees.strategies import trees

TEXT = """\
( (S (NP (DT the)
         (NN straße))
     (VP (VBZ is) (ADJP (JJ -LRB-)))) )

(X (T a)) (X (T b)) (U c)
((FRAG (UH 雨)))"""


class Dribble(io.RawIOBase):
    """A stream that gives a few bytes at a time and counts how far it was read."""

    def __init__(self, data: bytes, step: int) -> None:
        self._rest = data
        self._step = step
        self.given = 0

    def read1(self, most: int) -> bytes:
        part, self._rest = self._rest[: self._step], self._rest[self._step :]
        assert len(part) <= most
        self.given += len(part)
        return part


def outcome(source: Iterable[Tree]) -> tuple[list[Tree], str]:
    """The trees, and the message of the error behind them."""
    found: list[Tree] = []
    try:
        for tree in source:
            found.append(tree)
    except ReadError as error:
        return found, str(error)
    return found, ""


def streamed(data: bytes, step: int) -> tuple[list[Tree], str]:
    return outcome(read_bracket_stream(Dribble(data, step), path="x"))  # type: ignore[arg-type]


def whole(data: bytes) -> tuple[list[Tree], str]:
    text = data.decode().removeprefix("\ufeff")
    return outcome(read_brackets(text, path="x", margin=False))


@pytest.mark.parametrize("step", [1, 2, 3, 7, 1000])
def test_the_same_trees_however_the_bytes_arrive(step: int) -> None:
    expected = whole(TEXT.encode())
    assert len(expected[0]) == 5
    assert streamed(TEXT.encode(), step) == expected
    assert streamed(b"\xef\xbb\xbf" + TEXT.encode(), step) == expected


@given(st.lists(trees(), max_size=5), st.sampled_from(["", " ", "\n", "\r\n\n"]), st.data())
def test_written_trees_come_back(given_trees: list[Tree], gap: str, data: st.DataObject) -> None:
    text = gap.join(map(write_brackets, given_trees)).encode()
    step = data.draw(st.integers(1, len(text) + 1))
    assert streamed(text, step) == (given_trees, "")


@given(damaged(TEXT.encode()), st.integers(1, 200))
def test_damage_gives_the_same_trees_and_the_same_message(data: bytes, step: int) -> None:
    found, message = streamed(data, step)
    try:
        expected = whole(data)
    except UnicodeDecodeError as error:
        before, problem = whole(data[: error.start])
        if "UTF-8" in message:
            line = data.count(b"\n", 0, error.start) + 1
            assert message.startswith(f"x:{line}: not UTF-8 text")
            assert found == before
        else:  # there was another mistake in front of it
            assert (found, message) == (before, problem)
    else:
        assert (found, message) == expected


def test_a_tree_is_given_before_the_next_is_read() -> None:
    stream = Dribble(b"(X (T a))\n" * 1000, 10)
    source = read_bracket_stream(stream, path="x")  # type: ignore[arg-type]
    for k in range(1, 10):
        assert next(source).words == ("a",)
        assert stream.given == 10 * k


def test_places_count_from_the_beginning_of_the_stream() -> None:
    good = "(X (T é)) (X (T b))\n"
    for text, message in (
        (good * 3 + "(X (T a)", "x:4:1: sentence 7: the tree that starts here is not closed"),
        (good + "(X (T é)) )", "x:2:11: sentence 4: found ')' but no bracket is open"),
        ("(X (T é)) (X (T é)) oh", "x:1:21: sentence 3: found 'oh' outside brackets"),
    ):
        for step in (1, 9, 500):
            assert streamed(text.encode(), step)[1].startswith(message)


def test_text_that_is_no_brackets_fails_at_its_first_line() -> None:
    stream = Dribble(b"the dog barks\n" * 1000, 100)
    message = outcome(read_bracket_stream(stream, path="x"))[1]  # type: ignore[arg-type]
    assert message == "x:1:1: sentence 1: found 'the' outside brackets, expected '('"
    assert stream.given == 100


def test_a_tree_without_end_is_not_read_to_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bracket_stream, "LONGEST", 1 << 20)
    data = b"(X (T a))\n  (X (T \xc3\xa9))\n (X\n" + b"(T b)\n" * 1_000_000
    stream = Dribble(data, 1000)
    found, message = outcome(read_bracket_stream(stream, path="x"))  # type: ignore[arg-type]
    assert len(found) == 2
    expected = "x:3:2: sentence 3: the bracket that opens here is not closed within 1 MiB"
    assert message == expected
    assert stream.given < (1 << 20) + 2000


def test_a_stream_that_breaks_is_named() -> None:
    class Broken(Dribble):
        def read1(self, most: int) -> bytes:
            if not self._rest:
                raise OSError(5, "Input/output error")
            return super().read1(most)

    found, message = outcome(
        read_bracket_stream(Broken(b"(X (T a))\n(X", 100), path="x")  # type: ignore[arg-type]
    )
    assert (len(found), message) == (1, "x: cannot be read on: Input/output error")
