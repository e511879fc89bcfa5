"""Sentences and trees out of files and pipes, with their places, as they went in."""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spmrl_bench.errors import ReadError
from spmrl_bench.parsing.answers import write_answer
from spmrl_bench.parsing.streams import (
    LOOKED_AT,
    Form,
    InputSentence,
    Spelling,
    TreeReader,
    check_readable,
    read_input,
    read_trees,
    text_problem,
    watched,
)
from spmrl_bench.readers.brackets import parse_brackets
from spmrl_bench.trees import Tree
from spmrl_bench.trees.parse import Parse


def read(
    data: str | bytes, form: Form = "brackets", transforms: list[str] | None = None
) -> list[InputSentence]:
    stream = io.BytesIO(data.encode() if isinstance(data, str) else data)
    return list(read_input([], form, stream, transforms=transforms))


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
    trees = read(b"(S (N a))\r(S\r(N b))\r(S (N c))\r", "brackets")
    assert [[*sentence.words] for sentence in trees] == [["a"], ["b"], ["c"]]


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
        found: list[InputSentence] = []
        with pytest.raises(ReadError, match=f"^<standard input>:{problem}"):
            found.extend(read_input([], form, stream))
        assert len(found) == before


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


# Trees as input: words come out as they went in, and lines stay lines -------------------------

# What treebanks and parsers write, with and without escapes.
SPELLINGS = [
    "1/2", "1\\/2", "[", "]", "-LSB-", "-RSB-", "*", "\\*", "-LRB-", "-RRB-", "{", "-LCB-", "``",
    "\\-LRB-", "\\", "\\\\", "a\\x20b", "\\0", "größe", "a\u00a0b", "-", "--", "*T*-1", "$", "U/C",
]  # fmt: skip
ANY = st.text(st.characters(exclude_categories=("Cs", "Cc"), exclude_characters="() "), min_size=1)


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
    assert list(read_trees(io.BytesIO(b"\n()\n"), "t")) == []
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
    with pytest.raises(ReadError, match=r">:4:.*sentence 3"):
        read("(S (N a))\n(S\n (N b))\n(S (N c) d)\n")
    with pytest.raises(ReadError, match=r">:2:.*sentence 2"):
        read("(S (N a))\n(S (N c) d)\n")


def test_a_layout_that_changes_far_into_a_file_is_read_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spmrl_bench.parsing.streams.BLOCK", 1000)
    lines = "(S (N a))\n\n" * 200
    found = [len(each.words) for each in read(f"{lines}(S\n (N b)\n (N c))\n\n(S (N d))\n")]
    assert found == [1, 0] * 200 + [2, 1]
    with pytest.raises(ReadError, match=r">:402:.*sentence 401"):
        read(f"{lines}(S (N b)\n d)\n")


def test_answers_do_not_wait_for_the_end_of_a_pipe() -> None:
    class Pipe(io.BytesIO):
        """Has a line at a time."""

        def read1(self, size: int | None = -1, /) -> bytes:
            return self.readline()

    pipe = Pipe(b"(S (N a))\n(S (N b))\n(S (N c))\n")
    assert next(read_trees(pipe, "t")).words == ("a",)
    assert pipe.tell() <= 20


def test_traces_and_functions_are_what_the_treebank_makes_of_them() -> None:
    tree = "(S (NP-SBJ (-NONE- *T*-1)) (VP (V-X##k=v## 1\\/2)) (P .))\n"
    (sentence,) = read(tree)
    assert (sentence.words, sentence.tags) == (("1/2", "."), ("V-X##k=v##", "P"))
    assert leaves(parsed(sentence)) == ["1\\/2", "."]
    (kept,) = read(tree, transforms=[])
    assert kept.words == ("*T*-1", "1/2", ".")
    transforms = ["strip-features", "drop-traces", "strip-tag-functions", "strip-root"]
    (changed,) = read(tree, transforms=transforms)
    assert changed.tags == ("V", "P")
    (nothing,) = read("(S (-NONE- *))\n")
    assert parsed(nothing) == "\n"


def test_a_transliteration_is_for_the_parser_alone() -> None:
    reader = TreeReader(["arabic-script"])
    words, _, spelt = reader.read(parse_brackets("(S (N ktAb) (P -LRB-))", escapes="none"))
    assert (words, spelt.words) == (("كتاب", "("), ["ktAb", "-LRB-"])


def test_a_dialect_is_not_read_as_plain_brackets() -> None:
    tree = b"( (CODE <P_1>)\n (IP-MAT (NP-SBJ *con*) (VB come)) (ID B,13.2))\n"
    with pytest.raises(ReadError, match=r"looks like psd .*'treebanks add' makes a treebank"):
        read(tree, "brackets")
