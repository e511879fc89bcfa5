"""Plain brackets: one tree a line, trees that took in others, streams."""

from __future__ import annotations

import io
import random
import re
from collections.abc import Iterable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spmrl_bench.errors import ReadError
from spmrl_bench.readers import brackets
from spmrl_bench.readers.brackets import (
    parse_brackets,
    read_bracket_stream,
    read_brackets,
    trees_begin_at_margin,
)
from spmrl_bench.trees import Tree
from spmrl_bench.trees.escapes import write_brackets
from tests.conftest import shared_data
from tests.readers.test_fuzz import damaged
from tests.trees.strategies import trees


def read(text: str, **options: Any) -> tuple[list[Tree], list[str]]:
    """Trees and errors of a text that is read to its end."""
    errors: list[ReadError] = []
    found = list(read_brackets(text, path="f", on_error=errors.append, **options))
    return found, list(map(str, errors))


def outcome(source: Iterable[Tree]) -> tuple[list[Tree], str]:
    """The trees, and the message of the error behind them."""
    found: list[Tree] = []
    try:
        for tree in source:
            found.append(tree)
    except ReadError as error:
        return found, str(error)
    return found, ""


def test_malformed_lines_of_one_tree_each() -> None:
    for text, place, word in [
        ("\n(S (B b)\n)", "2:1: sentence 2", "not closed before the line ends"),
        ("\n(S (B b)))", "2:10: sentence 2", "no bracket is open"),
        ("(S ())\n(S (B b) c)", "2:10: sentence 2", "'c' beside brackets"),
    ]:
        message = outcome(read_brackets(text, path="f", blank="tree"))[1]
        assert message.startswith(f"f:{place}: ")
        assert word in message


def test_blank_parses_hold_their_line() -> None:
    text = "(A a)\n\n()\n(())\n(TOP)\n ( )\r\n(S (B b) (C c))"
    found, _ = read(text, blank="tree")
    assert [len(tree) for tree in found] == [1, 0, 0, 0, 0, 0, 2]
    assert len(parse_brackets("", blank="tree")) == 0


def test_a_line_may_hold_several_roots_and_brackets_without_words() -> None:
    text = "(S (X) (A a) (NP ()) (B b)) (C c) (T (D d))\n() (A a)"
    (two_roots, leaf), _ = read(text, blank="tree")
    assert two_roots.words == ("a", "b", "c", "d")
    assert list(two_roots.constituents()) == [(0, 2, "S"), (3, 4, "T")]
    assert leaf == parse_brackets("(A a)")


def test_a_malformed_line_is_left_out_where_the_caller_wishes() -> None:
    found, errors = read("(A a)\n(B\n\n(C c))\n(D d)", blank="tree")
    assert [tree.words for tree in found] == [("a",), (), ("d",)]
    places = [error.split(": ")[:2] for error in errors]
    assert places == [["f:2:1", "sentence 2"], ["f:4:6", "sentence 4"]]


PIECES = st.lists(st.sampled_from(["(", ")", "(N a)", "b", " ", "\n", "(S "]), max_size=12)


@given(PIECES.map("".join))
def test_any_text_is_trees_or_one_clear_error(text: str) -> None:
    """What is accepted is exactly the grammar tree = (TAG word) | (label? tree+)."""
    accepted = re.sub(r"\(\s*([a-zA-Z]+)\s+([a-zA-Z]+)\s*\)", "T", text)
    while (
        shorter := re.sub(r"\(\s*(?:[abNS]+(?=[\s(T]))?[\sT]*T[\sT]*\)", "T", accepted)
    ) != accepted:
        accepted = shorter
    found, message = outcome(read_brackets(text, path="f", margin=False))
    assert (message == "") == bool(re.fullmatch(r"[\sT]*", accepted))
    if not message:
        assert len(found) == accepted.count("T")
    else:
        assert re.match(r"f:\d+:\d+: sentence \d+: ", message)


@given(PIECES.map("".join))
def test_any_lines_are_one_tree_each_or_an_error(text: str) -> None:
    found, message = outcome(read_brackets(text, path="f", blank="tree"))
    if not message:
        assert len(found) == len(text.removesuffix("\n").split("\n")) - (text == "")
    else:
        line, sentence = re.match(r"f:(\d+):\d+: sentence (\d+): ", message).groups()  # type: ignore[union-attr]
        assert line == sentence == str(len(found) + 1)


def test_one_string_is_one_tree() -> None:
    for text, number in (("(A a) (B b)", 2), (" ", 0)):
        with pytest.raises(ReadError, match=f"found {number} trees, expected one"):
            parse_brackets(text)


# ---- Trees that took in others: found by the layout; no sound layout is taken for a mistake ----

FLAT = "(S (NP (D the) (N dog{})) (VP (V barks)))"
INDENTED = "(S\n  (NP (D the)\n      (N dog{}))\n  (VP (V barks)))"
WRAPPED = "( (S (NP (D the) (N dog{}))\n     (VP (V barks))) )"


def many(tree: str, number: int) -> list[str]:
    return [tree.format(k) for k in range(1, number + 1)]


def unclosed(trees: list[str], less: int, more: int | None) -> str:
    """The trees, one less and one with a bracket more at its end (numbers from 1)."""
    trees = list(trees)
    trees[less - 1] = trees[less - 1][:-1]
    if more is not None:
        trees[more - 1] += ")"
    return "\n".join(trees) + "\n"


def test_an_unclosed_tree_costs_itself_only() -> None:
    for more in [13, 40, None]:
        for tree in [FLAT, INDENTED, WRAPPED]:
            height = tree.count("\n") + 1
            text = unclosed(many(tree, 50), 11, more)
            found, errors = read(text)
            assert [one.words[1] for one in found] == [f"dog{k}" for k in range(1, 51) if k != 11]
            assert errors[0].startswith(f"f:{10 * height + 1}:1: sentence 11: ")
            assert "not closed before the next bracket that begins a line" in errors[0]
            assert [error.split(":")[1] for error in errors[1:]] == (
                [str(more * height)] if more else []
            )
            before, message = outcome(read_brackets(text, path="f"))
            assert (len(before), message) == (10, errors[0])


def test_an_outer_bracket_is_evidence_enough() -> None:
    """Even in a file of three trees, which its first one takes in; without one it is one tree."""
    for outer in ["", "TOP", "ROOT"]:
        given_trees = [f"({outer} {tree})" for tree in many(FLAT, 3)]
        assert len(read("\n".join(given_trees))[0]) == 3
        found, errors = read(unclosed(given_trees, 1, 3))
        assert [tree.words[1] for tree in found] == ["dog2", "dog3"]
        assert [error.split(":")[1] for error in errors] == ["1", "3"]
        (tree,), errors = read(unclosed(many("(S (N a{}))", 3), 1, 3))
        assert (tree.words, errors) == (("a1", "a2", "a3"), [])


@pytest.mark.parametrize("others", [(), many(FLAT, 100), many(INDENTED, 100), many(WRAPPED, 100)])
def test_constituents_may_stand_at_the_margin(others: Sequence[str]) -> None:
    """In a whole file and in one tree of it, wherever that stands."""
    half = len(others) // 2
    for tree in (
        "(S\n(NP (D the)\n(N dog))\n(VP (V barks))\n)",
        "(S (NP (D the) (N dog))\n(VP (V barks)))",
        "(S (NP (D the) (N dog)) (CC and)\n(S (VP (V barks)))\n(VP (V eats)))",
        "(S (NP (D\nthe) (N\ndog))\n(VP (V barks)))",
        "(\n(S (NP (D the) (N dog))\n(VP (V barks))))",
        "(DOC\n(S (N a))\n(S (N b))\n(S (N c))\n)",
    ):
        for number in (1, 3, 40):
            text = "\n".join([*others[:half], *[tree] * number, *others[half:]])
            assert not trees_begin_at_margin(text)
            found, errors = read(text)
            assert (len(found), errors) == (number + len(others), [])


@given(st.data())
def test_what_is_left_out_are_the_unclosed_trees(data: st.DataObject) -> None:
    """Of a hundred trees, a few lack brackets; all others are read."""
    given_trees = many(FLAT, 100)
    chosen = data.draw(st.lists(st.integers(0, 98), max_size=5, unique=True))
    for k in chosen:
        given_trees[k] = given_trees[k][: -data.draw(st.integers(1, 2))]
    found, errors = read("\n".join(given_trees))
    left = sorted(set(range(1, 101)) - {k + 1 for k in chosen})
    assert [int(tree.words[1][3:]) for tree in found] == left
    assert [error.split(":")[1] for error in errors] == [str(k + 1) for k in sorted(chosen)]


@pytest.mark.parametrize(
    ("folder", "pattern"),
    [
        ("wsj_sample_en", "combined/*.mrg"),
        ("gum_en", "const/*.ptb"),
        ("sequoia_fr", "*.mrg_strict"),
        ("icepahc_is", "finished/*.psd"),
        ("keyaki_ja", "treebank/*.psd"),
        ("cess_es", "cess_esp/*.tbf"),
        ("idn_id", "Indonesian_Treebank.bracket"),
    ],
)
def test_released_treebanks_begin_trees_at_the_margin(folder: str, pattern: str) -> None:
    for path in sorted(shared_data(f"treebanks/{folder}").glob(pattern)):
        assert trees_begin_at_margin(path.read_text(encoding="latin-1"))


# ---- Streams: the same trees and errors as from the whole text ---------------------------------

STREAM = """\
( (S (NP (DT the)
         (NN straße))
     (VP (VBZ is) (ADJP (JJ -LRB-)))) )

(X (T a)) (X (T b)) (U c)
((FRAG (UH 雨)))"""


def streamed(data: bytes) -> tuple[list[Tree], str]:
    return outcome(read_bracket_stream(io.BytesIO(data), path="x"))


def whole(data: bytes) -> tuple[list[Tree], str]:
    text = data.decode().removeprefix("\ufeff")
    return outcome(read_brackets(text, path="x", margin=False))


@given(st.lists(trees(), max_size=5), st.sampled_from(["", " ", "\n", "\r\n\n"]))
def test_written_trees_come_back_off_a_stream(given_trees: list[Tree], gap: str) -> None:
    text = gap.join(map(write_brackets, given_trees)).encode()
    assert streamed(text) == streamed(b"\xef\xbb\xbf" + text) == (given_trees, "")
    assert whole(text)[0] == [tree for tree in given_trees if len(tree)]


def test_a_stream_gives_the_trees_and_the_message_of_the_whole_text() -> None:
    for seed in range(150):
        data = damaged(STREAM.encode(), random.Random(seed))
        found, message = streamed(data)
        try:
            expected = whole(data)
        except UnicodeDecodeError as error:
            line = data.count(b"\n", 0, error.start) + 1
            before, problem = whole(data[: data.rfind(b"\n", 0, error.start) + 1])
            if "UTF-8" in message:
                assert message.startswith(f"x:{line}: not UTF-8 text")
                assert found == before[: len(found)]
            else:  # there was another mistake in front of it
                assert (found, message) == (before, problem)
        else:
            assert (found, message) == expected


def test_a_tree_is_given_before_the_next_line_is_read() -> None:
    stream = io.BytesIO(b"(X (T a))\n" * 1000)
    source = read_bracket_stream(stream, path="x")
    for k in range(1, 10):
        assert next(source).words == ("a",)
        assert stream.tell() == 10 * k


def test_places_count_from_the_beginning_of_the_stream() -> None:
    good = "(X (T é)) (X (T b))\n"
    for text, message in (
        (good * 3 + "(X (T a)", "x:4:1: sentence 7: the tree that starts here is not closed"),
        (good + "(X (T é)) )", "x:2:11: sentence 4: found ')' but no bracket is open"),
        ("(X (T é)) (X (T é)) oh", "x:1:21: sentence 3: found text outside brackets"),
        ("the dog barks\n" * 10, "x:1:1: sentence 1: found text outside brackets"),
    ):
        assert streamed(text.encode())[1].startswith(message)


def test_a_tree_without_end_is_not_read_to_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(brackets, "LONGEST", 1 << 20)
    data = b"(X (T a))\n  (X (T \xc3\xa9))\n (X\n" + b"(T b)\n" * 1_000_000
    stream = io.BytesIO(data)
    found, message = outcome(read_bracket_stream(stream, path="x"))
    assert len(found) == 2
    assert message == "x:3:2: sentence 3: the tree that starts here is not closed within 1 MiB"
    assert stream.tell() < (1 << 20) + 2000


def test_a_stream_that_breaks_is_named() -> None:
    class Breaking(io.BytesIO):
        def readline(self, size: int | None = -1, /) -> bytes:
            if line := super().readline(size):
                return line
            raise OSError(5, "Input/output error")

    found, message = outcome(read_bracket_stream(Breaking(b"(X (T a))\n(X"), path="x"))
    assert (len(found), message) == (1, "x:3: cannot be read on: Input/output error")
