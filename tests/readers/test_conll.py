"""CoNLL, whole, in three columns and off streams; every malformed file has its error."""

from __future__ import annotations

import io
import random
import re
from operator import attrgetter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spmrl_bench.errors import ReadError, TreeError
from spmrl_bench.readers.conll import (
    ConlluSentence,
    DependencySentence,
    TagColumn,
    read_conll,
    read_conll_file,
    read_conllu_stream,
)
from spmrl_bench.trees.dependencies import DependencyTree, Roots
from tests.conftest import shared_data
from tests.readers.cases import Encoded, SentenceFormat, ways_of_text
from tests.trees.strategies import dependency_trees, write_conll


def row(number: str, head: str = "0", form: str = "w", relation: str = "r") -> str:
    """A line of ten columns."""
    return "\t".join([number, form, "lemma", "U", "X", "_", head, relation, "_", "_"]) + "\n"


GOOD = row("1") + row("2", "1") + "\n"
GOOD_TREE = DependencyTree.build(["w", "w"], ["X", "X"], [0, 1], ["r", "r"])
# A sentence as the shared tasks of 2006 and 2013 write them: CPOSTAG and POSTAG, features
# joined by |, underscores, projective heads, and in some languages several roots.
CONLL_X = """1\tAz\taz\tT\tTf\tSubPOS=f|Def=y\t2\tDET\t_\t_
2\tember\tember\tN\tNc\tSubPOS=c|Num=s|Cas=n\t0\tROOT\t0\tROOT
3\t#\t_\tX\tX\t_\t0\tROOT\t_\t_
4\t_\t_\tX\tX\t_\t2\t_\t_\t_
5\t-LRB-\t-LRB-\tX\tX\t_\t2\tPUNCT\t_\t_
"""


def read(text: str, roots: Roots = "one") -> list[DependencySentence]:
    return list(read_conll(text, path="f", roots=roots))


# A bad sentence, the line of the mistake in it, how the problem begins.
MALFORMED = {
    "9 columns": (row("1").replace("lemma\t", ""), 1, "found 9 columns, expected 10"),
    "11 columns": (row("1\t1"), 1, "found 11 columns, expected 10"),
    "spaces for tabs": (row("1").replace("\t", " "), 1, "found 1 column, expected 10"),
    "a line of spaces": (row("1") + "  \n", 2, "found 1 column, expected 10"),
    "old Macintosh line ends": (GOOD.replace("\n", "\r"), 1, "found 19 columns, expected 10"),
    "lattice": ("0\t1\tw\tw\tN\tN\t_\t1\n", 1, "found 8 columns, expected 10"),
    "carriage return in a word": (row("1", form="a\rb"), 1, r"column 2 is 'a\rb', expected"),
    "empty form": (row("1", form=""), 1, "column 2 is '', expected"),
    "empty relation": (row("1", relation=""), 1, "column 8 is '', expected"),
    "empty last column": (row("1")[:-2] + "\n", 1, "column 10 is '', expected"),
    "empty first column": (row(""), 1, "column 1 is '', expected"),
    "space before a word": (row("1", form=" a"), 1, "column 2 is ' a', expected"),
    "space after a relation": (row("1", relation="r "), 1, "column 8 is 'r ', expected"),
    "starts at 0": (row("0"), 1, "word number '0', expected 1"),
    "starts at 2": (row("2"), 1, "word number '2', expected 1"),
    "leading zero": (row("01"), 1, "word number '01', expected 1"),
    "other digits": (row("\u0661"), 1, "word number '\u0661', expected 1"),
    "no number": (row("x"), 1, "word number 'x', expected 1"),
    "repeated word": (row("1") + row("2", "1") + row("2", "1"), 3, "word number '2', expected 3"),
    "left out word": (row("1") + row("3", "1"), 2, "word number '3', expected 2"),
    "no blank line": (row("1") + row("1"), 2, "word number '1', expected 2; is a blank line miss"),
    "comment inside": (row("1") + "# text\n" + row("2", "1"), 2, "a comment inside a sentence"),
    "comment after a range": (row("1-2", "_") + "# text\n", 2, "a comment inside a sentence"),
    "comment after a node": (row("0.1", "_") + "# text\n", 2, "a comment inside a sentence"),
    "comments alone": ("# text", 1, "a sentence without words"),
    "comments at the end": ("# one\n# two", 2, "a sentence without words"),
    "empty nodes alone": (row("0.1", "_"), 1, "a sentence without words"),
    "head beyond": (row("1") + row("2", "3"), 2, "head 3 is not one of 0..2"),
    "negative head": (row("1", "-1"), 1, "head '-1', expected a number from 0"),
    "no head": (row("1") + row("2", "_"), 2, "head '_', expected a number from 0"),
    "fraction as head": (row("1", "1.1"), 1, "head '1.1', expected a number from 0"),
    "head with a plus": (row("1", "+0"), 1, "head is text, expected a number from 0"),
    "head with a leading zero": (row("1", "00"), 1, "head '00', expected a number from 0"),
    "head of 5000 digits": (row("1", "9" * 5000), 1, "head '999"),
    "head of 10 digits": (row("1", "4294967296"), 1, "head '4294967296', expected a number"),
    "own head": (row("1") + row("2", "2"), 2, "the heads form a cycle: 2 -> 2"),
    "cycle": (row("1") + row("2", "3") + row("3", "2"), 2, "the heads form a cycle: 2 -> 3 -> 2"),
    "no root": (row("1", "2") + row("2", "1"), 1, "the heads form a cycle: 1 -> 2 -> 1"),
    "two roots": (row("1") + row("2"), 2, "a second root; 2 words have head 0, expected one"),
    "range in the past": (row("1") + row("1-2", "_"), 2, "range '1-2', expected one from 2"),
    "range in the future": (row("2-3", "_"), 1, "range '2-3', expected one from 1"),
    "range backwards": (row("1-0", "_"), 1, "range '1-0', expected one from 1"),
    "range in a range": (row("1-3") + row("1") + row("2-3"), 3, "range '2-3', expected word 2"),
    "range twice": (row("1-2", "_") + row("1-2", "_"), 2, "range '1-2', expected word 1 of"),
    "range beyond the end": (row("1") + row("2-3") + row("2", "1"), 2, "the range ends at word 3"),
    "empty node in the past": (row("1") + row("0.1", "_"), 2, "empty node '0.1', expected 1.1"),
    "empty node of another word": (row("1") + row("2.1", "_"), 2, "empty node '2.1', expected 1.1"),
    "empty node out of order": (row("1") + row("1.2", "_"), 2, "empty node '1.2', expected 1.1"),
    "empty node behind the next range": (
        row("1") + row("2-3", "_") + row("1.1", "_") + row("2") + row("3"),
        3,
        "empty node '1.1' behind the range that follows it",
    ),
    "empty node twice": (row("0.1", "_") + row("0.1", "_"), 2, "empty node '0.1', expected 0.2"),
    "other columns": ("# global.columns = ID HEAD\n1\t0\n", 1, "the columns are 'ID HEAD', exp"),
}

CONLL = SentenceFormat(
    name="conll",
    good=GOOD,
    expected=lambda number: (str(number), GOOD_TREE),
    content=attrgetter("name", "tree"),
    ways={**ways_of_text(GOOD), "no blank line": GOOD.removesuffix("\n\n").encode()},
    malformed={
        name: (bad + "\n\n", line, problem) for name, (bad, line, problem) in MALFORMED.items()
    },
    bad_name="2",
    open_end=True,
    encoded=Encoded(
        row("1") + row("2", "1", "été"), {"latin-1": ("w", "été")}, "2: byte 0xe9 is not utf-8 text"
    ),
    recognised=(
        GOOD,
        CONLL_X,
        "\r\n# global.columns = a\r\n" + row("1-2", "_").replace("\n", "\r\n"),
        GOOD + GOOD[:20],
        row("1", "_"),
    ),
    others=(
        *(row("x"), row("1", "x"), row("1").replace("\t_\n", "\n"), "# comments\n# alone\n"),
        *("She\tPRP\t2\n", "(S (NP a))\n", ""),
    ),
)


@given(dependency_trees(roots="several"))
def test_several_roots_are_read_where_allowed(tree: DependencyTree) -> None:
    text = write_conll(tree)
    assert [s.tree for s in read(text, roots="several")] == [tree]
    if tree.heads.tolist().count(0) > 1:
        with pytest.raises(ReadError, match="second root"):
            read(text)


def test_escapes_are_undone_where_asked_for() -> None:
    text = row("1", form="-LRB-") + "\n"
    assert read(text)[0].tree.words == ("-LRB-",)
    (sentence,) = read_conll(text, path="f", escapes="brackets")
    assert sentence.tree.words == ("(",)


def test_what_conll_u_adds_is_not_kept() -> None:
    text = (
        "# newdoc\n# sent_id = first\n# text = w w\n"
        + row("0.1", "_")
        + row("1-2", "_")
        + row("1", "2", "au")
        + row("2", "0", "le")
        + row("2.1", "_")
        + row("2.2", "_")
        + row("3-3", "_")
        + row("3", "2", "x")
        + "\n\n\n#comment without a name\n"
        + row("1")
    )
    first, second = read(text)
    assert first.tree == DependencyTree.build(
        ["au", "le", "x"], ["X", "X", "X"], [2, 0, 2], ["r", "r", "r"]
    )
    assert (first.name, first.lines) == ("first", (6, 7, 11))
    assert (second.name, second.lines) == ("2", (16,))
    assert second.tree.words == ("w",)


def test_nothing_to_read(tmp_path: Path) -> None:
    for text in ("", "\n", "\n\r\n\n", "\ufeff"):
        (tmp_path / "f").write_bytes(text.encode())
        assert list(read_conll_file(tmp_path / "f")) == []


def test_only_ends_of_lines_end_lines() -> None:
    """str.splitlines would cut at each of these."""
    form = "a\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029b"
    assert read(row("1", form=form))[0].tree.words == (form,)


def test_lines_are_those_of_the_file(tmp_path: Path) -> None:
    errors: list[ReadError] = []
    sentences = CONLL.read_file(tmp_path, GOOD, "x\n\n", GOOD, on_error=errors.append)
    assert [sentence.lines for sentence in sentences] == [(1, 2), (6, 7)]
    assert [error.line for error in errors] == [4]


def test_conll_x() -> None:
    (sentence,) = read(CONLL_X, roots="several")
    assert sentence.tree == DependencyTree.build(
        ["Az", "ember", "#", "_", "-LRB-"],
        ["Tf", "Nc", "X", "X", "X"],
        [2, 0, 0, 2, 2],
        ["DET", "ROOT", "ROOT", "_", "PUNCT"],
        roots="several",
    )
    (sentence,) = read_conll(CONLL_X, path="f", tag_column="upos", roots="several")
    assert sentence.tree.tags[:2] == ("T", "N")
    with pytest.raises(ReadError, match=r"^f:3: sentence 1: a second root; 2 words have head 0"):
        read(CONLL_X)


def test_time_is_linear_in_a_long_comment() -> None:
    spaces = " " * 1_000_000
    (sentence,) = read(f"# sent_id = a{spaces}b{spaces}\n" + GOOD)
    assert sentence.name == f"a{spaces}b"


def test_an_error_names_the_sentence_id() -> None:
    with pytest.raises(ReadError, match=r"^f:5: sentence dev-7: found 1 column"):
        read(GOOD + "# sent_id = dev-7\nx\n")


@pytest.mark.parametrize(("tags", "columns"), [("xpos", "_\t_\tNN"), ("upos", "_\tNN\t_")])
def test_ten_columns_and_a_blank_line(tags: TagColumn, columns: str) -> None:
    tree = DependencyTree.build(["10 000", "dogs"], ["NN", "NN"], [2, 0], ["nummod", "root"])
    assert write_conll(tree, tags=tags) == (
        f"1\t10 000\t{columns}\t_\t2\tnummod\t_\t_\n2\tdogs\t{columns}\t_\t0\troot\t_\t_\n\n"
    )


def test_texts_that_the_format_cannot_hold() -> None:
    for text in ("", " ", " a", "a ", "a\tb", "a\nb", "a\r", "\n"):
        for place in range(3):
            word, tag, relation = (text if k == place else "w" for k in range(3))
            tree = DependencyTree.build(["w", word], ["T", tag], [0, 1], ["r", relation])
            with pytest.raises(TreeError, match="word 2: CoNLL cannot hold"):
                write_conll(tree)


# Three columns ------------------------------------------------------------------------------

DP_GOOD = "She\tPRP\t2\nate\tVBD\t0\n1\\/2\tCD\t2\n-LRB-\t-LRB-\t3\n\n"
DP_TREE = DependencyTree.build(
    ["She", "ate", "1/2", "("], ["PRP", "VBD", "CD", "-LRB-"], [2, 0, 2, 3], ["_"] * 4
)

# A bad sentence, the line of the mistake in it, the problem.
DP = SentenceFormat(
    name="dp",
    good=DP_GOOD,
    expected=lambda number: (str(number), DP_TREE),
    content=attrgetter("name", "tree"),
    ways={
        **ways_of_text(DP_GOOD),
        "no blank line": DP_GOOD.removesuffix("\n\n").encode(),
        "more blank lines": ("\n\n" + DP_GOOD + "\n\n").encode(),
        "windows, no blank line": DP_GOOD.removesuffix("\n\n").replace("\n", "\r\n").encode(),
    },
    malformed={  # columns and heads are checked as those of CoNLL
        "2 columns": ("a\tNN\n\n", 1, "found 2 columns, expected 3 separated by tabs"),
        "4 columns": ("a\tNN\t0\tnsubj\n\n", 1, "found 4 columns, expected 3 separated by tabs"),
        "no word": ("\tNN\t0\n\n", 1, "column 1 is '', expected '_' or a text without spaces at"),
        "head is no number": ("a\tNN\tb\n\n", 1, "head is text, expected a number from 0"),
        "two roots": ("a\tNN\t0\nb\tNN\t0\n\n", 2, "a second root; 2 words have head 0"),
        "cycle": ("a\tNN\t2\nb\tNN\t1\n\n", 1, "the heads form a cycle: 1 -> 2 -> 1"),
        "head beyond": ("a\tNN\t7\n\n", 1, "head 7 is not one of 0..1"),
    },
    bad_name="2",
    open_end=True,
    encoded=Encoded("été\tNN\t0\n", {"latin-1": ("été",)}, "1: byte 0xe9 is not utf-8 text"),
    recognised=(DP_GOOD, "\n" + DP_GOOD.replace("\n", "\r\n"), DP_GOOD[:20], "a\tNN\t0"),
    others=("a\tNN\t0\nb\tNN\n", "a\tNN\tNN\n", row("1"), "(S (NP a))\n", "\n\n", ""),
)


def test_names_and_lines_of_three_columns(tmp_path: Path) -> None:
    first, second = DP.read_file(tmp_path, "\n" + DP_GOOD + "\na\tNN\t0\n")
    assert (first.name, first.lines) == ("1", (2, 3, 4, 5))
    assert (second.name, second.lines) == ("2", (8,))


# CoNLL-U through the program: what goes in comes out ------------------------------------------

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


def read_off(data: bytes) -> list[ConlluSentence]:
    return list(read_conllu_stream(io.BytesIO(data), path="f"))


def written(data: bytes) -> bytes:
    """The data with the head 0 and the relation X of every word."""
    texts = []
    for sentence in read_off(data):
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


def test_columns_names_and_lines() -> None:
    first, second = read_off(RICH.encode())
    assert first.column("form") == ["à", "10 000", "_"]
    assert first.column("xpos") == ["P|Q", "D", "_"]
    assert first.column("head") == ["_", "7", "0"]
    assert (first.name, first.line, second.name, second.line) == ("r-1", 9, "2", 16)


def test_a_sentence_is_not_changed_by_writing_it() -> None:
    (sentence,) = read_off(row("1", "0").encode())
    before = sentence.with_dependencies(["0"], ["r"])
    assert "x" in sentence.with_dependencies(["0"], ["x"])
    assert sentence.with_dependencies(["0"], ["r"]) == before


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
