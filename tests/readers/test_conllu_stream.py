"""CoNLL-U through the program: what goes in comes out, and what is malformed is refused."""

from __future__ import annotations

import io
import random
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spmrl_bench.errors import ReadError, TreeError
from spmrl_bench.readers.conll import ConlluSentence, read_conll, read_conllu_stream
from tests.conftest import shared_data
from tests.readers.test_conll import MALFORMED, row

# All that CoNLL-U has, in spellings of which the package conllu would change many if asked for
# more than text: comments without a value or twice, features and MISC with an empty or a second
# value, a name that is '_', a word that is '_', spaces and separators in words.
RICH = """# newdoc
#no space
# sent_id = r-1
# text = a  b\u00a0
# text = again
#
0.1\t_\t_\t_\t_\t_\t_\t_\t1:dep|2:_\tCopyOf=1
1-2\tau\t_\t_\t_\t_\t_\t_\t_\tSpaceAfter=No
1\tà\tà\tADP\tP|Q\tA=|B=c=d|_=e|f\t_\t_\t3:case|4:x:y\t_
2\t10 000\tle\u2028\tNUM\tD\t_\t7\t_\t_\tGloss=a|b||c=
2.1\t_\t_\t_\t_\t_\t_\t_\t_\t_
2.2\t_\t_\t_\t_\t_\t_\t_\t_\t_
3\t_\t_\tX\t_\t_\t0\troot\t_\tx\u00a0y

# sent_id =
1\t#\t\u3000\u0085x\t_\t_\t_\tnowhere\t.\t_\t_

"""


def read(data: bytes) -> list[ConlluSentence]:
    return list(read_conllu_stream(io.BytesIO(data), path="f"))


def written(data: bytes) -> bytes:
    """The data with the head 0 and the relation X of every word."""
    texts = []
    for sentence in read(data):
        n = len(sentence.column("form"))
        texts.append(sentence.with_dependencies(["0"] * n, ["X"] * n))
    return "".join(texts).encode()


def expected(data: bytes) -> bytes:
    """The same, without the reader: two columns are replaced in the lines that begin so."""
    lines = []
    for line in data.split(b"\n"):
        columns = line.split(b"\t")
        if len(columns) == 10 and columns[0].isdigit():
            columns[6:8] = [b"0", b"X"]
        lines.append(b"\t".join(columns))
    return b"\n".join(lines)


def test_all_but_heads_and_relations_comes_out_as_it_went_in() -> None:
    for line_end in ["\n", "\r\n"]:
        for front in ["", "\ufeff", "\n\n"]:
            data = (front + RICH + "\n" + RICH).replace("\n", line_end).encode()
            assert written(data) == expected(data).removeprefix("\ufeff".encode())
            for cut in (1, 2):  # a missing end is made up
                short = data[: -cut * len(line_end)]
                assert written(short) == expected(data).removeprefix("\ufeff".encode())


def test_ends_of_lines_may_differ() -> None:
    data = RICH.replace("\n", "\r\n", 9).encode()
    assert written(data) == expected(data)


def test_columns_names_and_lines() -> None:
    first, second = read(RICH.encode())
    assert first.column("form") == ["à", "10 000", "_"]
    assert first.column("xpos") == ["P|Q", "D", "_"]
    assert first.column("head") == ["_", "7", "0"]
    assert (first.name, first.line, second.name, second.line) == ("r-1", 9, "2", 16)


def test_a_sentence_is_not_changed_by_writing_it() -> None:
    (sentence,) = read(row("1", "0").encode())
    before = sentence.with_dependencies(["0"], ["r"])
    assert "x" in sentence.with_dependencies(["0"], ["x"])
    assert sentence.with_dependencies(["0"], ["r"]) == before
    for relation in ("", "a\tb", " a"):
        with pytest.raises(TreeError, match="word 1: CoNLL cannot hold"):
            sentence.with_dependencies(["0"], [relation])


HEADS = ("head", "root", "cycle", "5000", "10 digits")


def test_what_is_malformed_is_refused_but_for_heads() -> None:
    good = "# sent_id = good\n" + row("1", "_") + "\n"
    for name, (text, line, problem) in MALFORMED.items():
        stream = read_conllu_stream(io.BytesIO((good + text + "\n\n").encode()), path="f")
        assert next(stream).name == "good"
        if any(word in name for word in HEADS):
            assert next(stream).name == "2"
            continue
        with pytest.raises(ReadError, match=re.escape(f": {problem}")) as caught:
            next(stream)
        assert caught.value.line == 3 + line


def test_spaces_in_columns_come_out_as_they_went_in() -> None:
    """Also where they stand side by side, and white space other than ASCII's at the ends."""
    columns = row("1").rstrip("\n").split("\t")
    for column, text in ((1, "a  b"), (9, "Note=two  spaces"), (9, "a\u3000"), (2, "a   b  c")):
        columns[column] = text
        data = ("# c\n" + row("0.1", "_") + "\t".join(columns) + "\n\n").encode()
        assert written(data) == expected(data)


def test_no_more_is_read_than_is_needed() -> None:
    taken = 0

    class Endless(io.BytesIO):
        def readline(self, size: int | None = -1, /) -> bytes:
            nonlocal taken
            taken += 1
            return row("1").encode() if taken % 2 else b"\n"

    stream = read_conllu_stream(Endless(), path="f")
    for sentences in range(1, 5):
        next(stream)
        assert taken == 2 * sentences


def test_bytes_that_are_no_text_are_named() -> None:
    stream = read_conllu_stream(io.BytesIO(row("1").encode() + b"\n# \xff\n"), path="f")
    next(stream)
    with pytest.raises(ReadError, match=r"^f:3: not UTF-8 text: invalid start byte"):
        next(stream)


@given(st.integers(0, 2**32))
def test_damaged_text_is_refused_or_comes_out(seed: int) -> None:
    """And it is refused with the words of the reader of treebanks."""
    choose = random.Random(seed)
    text = list(RICH)
    for _ in range(choose.randint(1, 3)):
        place = choose.randrange(len(text))
        text[place : place + choose.randrange(2)] = choose.choice("\t\n 0123-.#_w=|")
    data = "".join(text).encode()
    problems: list[ReadError] = []
    list(read_conll(data.decode(), path="f", roots="several", on_error=problems.append))
    found = ""
    try:
        assert written(data).rstrip() == expected(data).rstrip()
    except ReadError as error:
        found = str(error)
    assert not found or found in map(str, problems)


def test_a_real_treebank_comes_out_as_it_went_in() -> None:
    data = shared_data("treebanks/ud_french_sequoia/fr_sequoia-ud-dev.conllu").read_bytes()
    assert written(data) == expected(data)
