r"""Trees as input: words come out as they went in, and lines stay lines."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import BinaryIO

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spmrl_bench.errors import ReadError
from spmrl_bench.parsing.answers import write_answer
from spmrl_bench.parsing.given_trees import TreeReader, read_trees
from spmrl_bench.parsing.streams import InputSentence, read_input
from spmrl_bench.readers.brackets import parse_brackets
from spmrl_bench.trees import Tree
from spmrl_bench.trees.escapes import write_brackets
from spmrl_bench.trees.parse import Parse

# What treebanks and parsers write, with and without escapes.
SPELLINGS = [
    "1/2", "1\\/2", "[", "]", "-LSB-", "-RSB-", "*", "\\*", "-LRB-", "-RRB-", "{", "-LCB-", "``",
    "\\-LRB-", "\\", "\\\\", "a\\x20b", "\\0", "größe", "a\u00a0b", "-", "--", "*T*-1", "$", "U/C",
]  # fmt: skip
ANY = st.text(st.characters(exclude_categories=("Cs", "Cc"), exclude_characters="() "), min_size=1)


def read(text: str, transforms: list[str] | None = None) -> list[InputSentence]:
    return list(read_input([], "brackets", io.BytesIO(text.encode()), transforms=transforms))


def trees_of(stream: BinaryIO) -> Iterator[Tree]:
    return read_trees(stream, "t")


def parsed(sentence: InputSentence) -> str:
    """What is written of a flat parse of a sentence."""
    n = len(sentence.words)
    tree = Tree.build(sentence.words, sentence.tags or (), [(0, n, "X")] if n else [])
    return write_answer(sentence, Parse.of(tree), "brackets", "xpos", too_long=False)


def leaves(line: str) -> list[str]:
    """The words of a line as they stand in it."""
    return list(parse_brackets(line, escapes="none", blank="tree").words)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.one_of(st.sampled_from(SPELLINGS), ANY), min_size=1, max_size=8))
def test_words_come_out_as_they_went_in(words: list[str]) -> None:
    text = "(S " + " ".join(f"(N {word})" for word in words) + ")\n"
    (sentence,) = read(text)
    assert leaves(parsed(sentence)) == words
    assert list(sentence.words) == list(parse_brackets(text).words), "the parser reads real words"


def test_lines_stay_lines() -> None:
    assert list(trees_of(io.BytesIO(b"\n()\n"))) == []
    assert [len(each.words) for each in read("\n\n(S (N a))\n")] == [0, 0, 1]
    trees = ["(S (N a))", "", "(())", "( (S (N b) (N c)))", "()", ""]
    found = read("\n".join(trees) + "\n")
    assert [len(each.words) for each in found] == [1, 0, 0, 2, 0, 0]
    assert [len(leaves(parsed(each))) for each in found] == [1, 0, 0, 2, 0, 0]
    assert [each.words for each in read("(S (N a)) (S (N b))\n")] == [("a",), ("b",)]


def test_in_indented_files_blank_lines_mean_nothing() -> None:
    text = "\n(S\n  (N a)\n\n  (N b))\n\n(S (N c))\n"
    assert [len(each.words) for each in read(text)] == [2, 1]
    # The first tree of a file may well stand on one line.
    text = "(S (N a))\n\n(S\n (N b)\n (N c))\n"
    assert [len(each.words) for each in read(text)] == [1, 2]
    with pytest.raises(ReadError, match=r"t:4:.*sentence 3"):
        list(trees_of(io.BytesIO(b"(S (N a))\n(S\n (N b))\n(S (N c) d)\n")))
    with pytest.raises(ReadError, match=r"t:2:.*sentence 2"):
        list(trees_of(io.BytesIO(b"(S (N a))\n(S (N c) d)\n")))


def test_a_layout_that_changes_far_into_a_file_is_read_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spmrl_bench.parsing.given_trees.BLOCK", 1000)
    lines = "(S (N a))\n\n" * 200
    found = [len(each.words) for each in read(f"{lines}(S\n (N b)\n (N c))\n\n(S (N d))\n")]
    assert found == [1, 0] * 200 + [2, 1]
    with pytest.raises(ReadError, match=r"t:402:.*sentence 401"):
        list(trees_of(io.BytesIO(f"{lines}(S (N b)\n d)\n".encode())))


def test_answers_do_not_wait_for_the_end_of_a_pipe() -> None:
    class Pipe(io.BytesIO):
        """Has a line at a time."""

        def read1(self, size: int | None = -1, /) -> bytes:
            return self.readline()

    pipe = Pipe(b"(S (N a))\n(S (N b))\n(S (N c))\n")
    trees = trees_of(pipe)
    assert next(trees).words == ("a",)
    assert pipe.tell() <= 20


def test_traces_and_functions_are_what_the_treebank_makes_of_them() -> None:
    tree = "(S (NP-SBJ (-NONE- *T*-1)) (VP (V-X##k=v## 1\\/2)) (P .))\n"
    (sentence,) = read(tree)
    assert (sentence.words, sentence.tags) == (("1/2", "."), ("V-X##k=v##", "P"))
    assert leaves(parsed(sentence)) == ["1\\/2", "."]
    (kept,) = read(tree, [])
    assert kept.words == ("*T*-1", "1/2", ".")
    transforms = ["strip-features", "drop-traces", "strip-tag-functions", "strip-root"]
    (changed,) = read(tree, transforms)
    assert changed.tags == ("V", "P")
    (nothing,) = read("(S (-NONE- *))\n")
    assert parsed(nothing) == "\n"


def test_a_transliteration_is_for_the_parser_alone() -> None:
    reader = TreeReader(["arabic-script"])
    words, _, spelt = reader.read(parse_brackets("(S (N ktAb) (P -LRB-))", escapes="none"))
    assert (words, spelt.words) == (("كتاب", "("), ["ktAb", "-LRB-"])


def test_a_spelling_is_written_as_it_is() -> None:
    tree = parse_brackets("(S (N 1/2) (N [))")
    assert write_brackets(tree) == "(S (N 1\\/2) (N -LSB-))"
    assert write_brackets(tree, spelt=["1/2", "["]) == "(S (N 1/2) (N [))"
