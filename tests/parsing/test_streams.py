"""Sentences out of files and pipes, each with its place, and nothing lost before a mistake."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

import pytest

from spmrl_bench.errors import ReadError
from spmrl_bench.parsing.given_trees import Spelling
from spmrl_bench.parsing.streams import (
    LOOKED_AT,
    Form,
    InputSentence,
    check_readable,
    read_input,
    text_problem,
    watched,
)

T = TypeVar("T")


def read(data: bytes, form: Form) -> list[InputSentence]:
    return list(read_input([], form, io.BytesIO(data)))


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
    data = "\ufeff\nHello 10\u00a0000 \t Euro\u2028\r\n  \nBye".encode()
    assert read(data, "tokens") == [
        InputSentence([], None, "<standard input>:1"),
        InputSentence(["Hello", "10\u00a0000", "Euro\u2028"], None, "<standard input>:2"),
        InputSentence([], None, "<standard input>:3"),
        InputSentence(["Bye"], None, "<standard input>:4"),
    ]


@pytest.mark.parametrize("form", ["tokens", "brackets", "conllu"])
def test_carriage_returns_alone_end_lines_as_in_treebanks(form: Form) -> None:
    row = "1\t{}\t_\t_\t_\t_\t0\troot\t_\t_\n\n"
    text = {"tokens": "{}\n", "brackets": "(S (N {}))\n", "conllu": row}[form]
    data = (text.format("a") + text.format("b")).replace("\n", "\r").encode()
    assert [[*sentence.words] for sentence in read(data, form)] == [["a"], ["b"]]


def test_brackets_give_words_and_tags() -> None:
    place, spelt = "<standard input>: sentence", Spelling(["the", "-LRB-"], "")
    found = read(b"\xef\xbb\xbf( (S (NP (DT the)\n (NN -LRB-))))\n(X (T a))\n", "brackets")
    assert found == [
        InputSentence(("the", "("), ("DT", "NN"), f"{place} 1", spelt=spelt),
        InputSentence(("a",), ("T",), f"{place} 2", spelt=Spelling(["a"], None)),
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
    universal = read_input([], "conllu", io.BytesIO(CONLLU), "upos")
    assert [sentence.tags for sentence in universal] == [["ADP", "_"], ["NOUN"]]


def test_files_and_standard_input_follow_each_other(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.write_text("one two\nthree")  # the last line need not end
    second.write_text("")
    names = [str(first), "-", str(second), str(first)]
    found = list(read_input(names, "tokens", io.BytesIO(b"four\n")))
    expected = [["one", "two"], ["three"], ["four"], ["one", "two"], ["three"]]
    assert [sentence.words for sentence in found] == expected
    assert found[4].place == f"{first}:2"


def test_empty_input_is_an_error(tmp_path: Path) -> None:
    cases: list[tuple[bytes, Form, str]] = [
        (b"", "tokens", "one sentence per"),
        (b" \n", "brackets", "bracketed trees"),
        (b"\n\n", "conllu", "sentences in CoNLL"),
    ]
    for data, form, expected in cases:
        with pytest.raises(ReadError, match=rf"^<standard input>: empty; expected {expected}"):
            read(data, form)
    path = tmp_path / "empty"
    path.touch()
    with pytest.raises(ReadError, match=r"empty: empty \(and 1 more\); expected one sentence"):
        list(read_input([str(path), str(path)], "tokens", io.BytesIO()))


def test_mistakes_have_a_place_and_lose_nothing_before_them() -> None:
    class Broken(io.BytesIO):
        def readline(self, size: int | None = -1, /) -> bytes:
            if line := super().readline(size):
                return line
            raise OSError(5, "Input/output error")

    latin = b"(X (T a))\n(X (T \xe9))\n"
    open_tree = b"(X (T a))\n(X (T b)\n"
    cases: list[tuple[io.BytesIO, Form, int, str]] = [
        (io.BytesIO(latin), "tokens", 1, "2: not UTF-8 text"),
        (io.BytesIO(latin), "brackets", 1, "2: not UTF-8 text"),
        (io.BytesIO(open_tree), "brackets", 1, "2:1: sentence 2: the tree that starts here"),
        (Broken(b"a\nb\n"), "tokens", 2, "3: cannot be read on: Input/output error"),
    ]
    for stream, form, before, problem in cases:
        found, message = until_error(read_input([], form, stream))
        assert len(found) == before
        assert message.startswith(f"<standard input>:{problem}")


def test_missing_files_are_found_before_anything_is_read(tmp_path: Path) -> None:
    with pytest.raises(ReadError, match="gone: cannot be read: No such file"):
        check_readable(["-", str(tmp_path / "gone")])
    with pytest.raises(ReadError, match="gone: cannot be read: No such file"):
        list(read_input([str(tmp_path / "gone")], "tokens", io.BytesIO()))
    with pytest.raises(ReadError, match="is a folder; expected a file of sentences"):
        check_readable([str(tmp_path)])
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    check_readable([str(pipe)])  # opening it would wait for a writer
    (tmp_path / "shut").touch(mode=0)
    if not os.access(tmp_path / "shut", os.R_OK):  # the superuser may read everything
        with pytest.raises(ReadError, match="shut: cannot be read: Permission denied"):
            check_readable([str(tmp_path / "shut")])


# Text that is no list of words is noticed, once, and parsed all the same ------------------------

ROWS = [f"{n}\t{w}\t{w}\tN\tN\t_\t{h}\tr\t_\t_" for n, w, h in ((1, "a", 2), (2, "b", 0))]
TEXTS = {
    "CoNLL-U": (["# text = a b", *ROWS, "", *ROWS], "--input conllu"),
    "CoNLL-X of 8 columns": ([row.rpartition("\t")[0] for row in ROWS], "--input conllu"),
    "trees": (["(S (NP (N a)) (V b))", "( (S (N a)))"], "--input brackets"),
    "full stops": (["Der Hund schläft.", "Wer bellt?", "Komm her !"], "such as 'schläft.'"),
    "quoted full stops": (['Er sagt : "Komm."', "Sie kommt.)"], "words and punctuation apart"),
    "words": (["Der Hund schläft .", "Wer bellt ?", "3 Hunde (", "( x )"], ""),
    "numbers": (["1 2 3 4 5 6 7 8 9", "Es sind 4 ."], ""),
    "abbreviations at times": (["Es kommt aus den U.S.", "Es geht .", "Nein"], ""),
    "full stops alone": (["a ...", "b ?!"], ""),
    "nothing": ([], ""),
}


def test_what_is_noticed() -> None:
    found = {
        name: text_problem([line.split() for line in lines if line])
        for name, (lines, _) in TEXTS.items()
    }
    wrong = {
        name: found[name]
        for name, (_, problem) in TEXTS.items()
        if problem not in found[name] or bool(problem) != bool(found[name])
    }
    assert not wrong


def test_it_is_told_once_as_soon_as_it_is_known_and_nothing_is_lost() -> None:
    for number in (1, LOOKED_AT - 1, LOOKED_AT, 3 * LOOKED_AT):
        some = [InputSentence(["Er", "schläft."], None, str(n)) for n in range(number)]
        told: list[str] = []
        stream = watched(some, told.append)
        assert [next(stream) for _ in some[:LOOKED_AT]] == some[:LOOKED_AT]
        assert told == []
        assert list(stream) == some[LOOKED_AT:]
        assert len(told) == 1
