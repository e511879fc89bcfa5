"""Streams of sentences: one answer per line, in order, whatever the parser does with batches."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, cast

import pytest

from spmrl_bench.errors import ReadError
from spmrl_bench.parsers.streams import parse_brackets, parse_tokens
from spmrl_bench.trees.tree import Tree


class FlatParser:
    """Puts one S over the words; reads ``window`` sentences ahead, as real parsers do."""

    def __init__(self, window: int = 1) -> None:
        self.window = window

    def parse(
        self, sentences: Iterable[Sequence[str]], tags: Iterable[Sequence[str]] | None = None
    ) -> Iterator[Tree]:
        given_tags = iter(tags) if tags is not None else None
        held: list[Sequence[str]] = []
        for words in sentences:
            held.append(words)
            if len(held) == self.window:
                yield from (self.tree(words, given_tags) for words in held)
                held = []
        yield from (self.tree(words, given_tags) for words in held)

    @staticmethod
    def tree(words: Sequence[str], tags: Iterator[Sequence[str]] | None) -> Tree:
        row = next(tags) if tags is not None else ["XX"] * len(words)
        return Tree.build(words, row, [(0, len(words), "S")] if words else [])


def tokens(data: bytes, window: int = 1) -> list[str]:
    return list(parse_tokens(io.BytesIO(data), cast(Any, FlatParser(window))))


def brackets(data: bytes) -> list[str]:
    return list(parse_brackets(io.BytesIO(data), cast(Any, FlatParser())))


def test_empty_lines_stay_empty_lines() -> None:
    assert tokens(b"\nHello world\n  \nBye", window=9) == [
        "",
        "(S (XX Hello) (XX world))",
        "",
        "(S (XX Bye))",
    ]


def test_words_end_at_ascii_white_space_only() -> None:
    data = "10\u00a0000 \t Euro\r\n".encode()
    assert tokens(data) == ["(S (XX 10\u00a0000) (XX Euro))"]


def test_byte_order_mark_is_no_word() -> None:
    assert tokens(b"\xef\xbb\xbfa\n") == ["(S (XX a))"]
    assert brackets(b"\xef\xbb\xbf(X (T a))") == ["(S (T a))"]


def test_brackets_in_words_are_escaped() -> None:
    assert tokens(b"( a )") == ["(S (XX -LRB-) (XX a) (XX -RRB-))"]


def test_bracketed_input_keeps_words_and_tags() -> None:
    assert brackets(b"( (S (NP (DT the)\n (NN dog))))\n(X (T a))\n") == [
        "(S (DT the) (NN dog))",
        "(S (T a))",
    ]


def test_empty_input_is_an_error() -> None:
    with pytest.raises(ReadError, match="<standard input>: empty; expected one sentence per line"):
        tokens(b"")
    with pytest.raises(ReadError, match="<standard input>: empty; expected bracketed trees"):
        brackets(b" \n")


def test_wrong_encoding_names_the_line() -> None:
    for read in (tokens, brackets):
        with pytest.raises(ReadError, match="<standard input>:2: not UTF-8 text"):
            read(b"(X (T a))\n(X (T \xe9))\n")


def test_malformed_tree_names_the_place() -> None:
    with pytest.raises(ReadError, match="<standard input>:1"):
        brackets(b"(X (T a)\n")
