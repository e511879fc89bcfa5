"""Reading dependencies in three columns: words as in the trees, and a place for mistakes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given

from spmrl_bench.errors import ReadError
from spmrl_bench.readers.brackets import read_brackets_file
from spmrl_bench.readers.dp import looks_like_dp, read_dp
from spmrl_bench.readers.on_error import OnError, fail
from spmrl_bench.readers.sentences import DependencySentence
from spmrl_bench.trees.dependencies import DependencyTree
from spmrl_bench.trees.structure import drop_traces
from tests.conftest import shared_data
from tests.readers.damage import damaged, read_both_ways

GOOD = "She\tPRP\t2\nate\tVBD\t0\n1\\/2\tCD\t2\n-LRB-\t-LRB-\t3\n\n"
TREE = DependencyTree.build(
    ["She", "ate", "1/2", "("], ["PRP", "VBD", "CD", "-LRB-"], [2, 0, 2, 3], ["_"] * 4
)


def read(tmp_path: Path, text: str, on_error: OnError = fail) -> Iterator[DependencySentence]:
    path = tmp_path / "a.dp"
    path.write_text(text, encoding="utf-8", newline="")
    return read_dp(path, on_error=on_error)


@pytest.mark.parametrize(
    "text",
    [
        GOOD,
        GOOD.removesuffix("\n"),
        GOOD.removesuffix("\n\n"),
        "\n\n" + GOOD + "\n\n",
        "\ufeff" + GOOD,
        GOOD.replace("\n", "\r\n"),
        GOOD.replace("\n", "\r\n").removesuffix("\r\n\r\n"),
    ],
)
def test_one_sentence_in_many_ways(tmp_path: Path, text: str) -> None:
    assert [sentence.tree for sentence in read(tmp_path, text)] == [TREE]


def test_names_and_lines(tmp_path: Path) -> None:
    first, second = read(tmp_path, "\n" + GOOD + "\na\tNN\t0\n")
    assert (first.name, first.lines) == ("1", (2, 3, 4, 5))
    assert (second.name, second.lines) == ("2", (8,))


def test_another_encoding(tmp_path: Path) -> None:
    path = tmp_path / "a.dp"
    path.write_bytes(b"\xe9t\xe9\tNN\t0\n")
    (sentence,) = read_dp(path, encoding="latin-1")
    assert sentence.tree.words == ("été",)
    with pytest.raises(ReadError, match=r"a\.dp:1: byte 0xe9 is not utf-8 text"):
        list(read_dp(path, on_error=lambda _: None))
    with pytest.raises(ReadError, match=r"none: cannot be read: No such file"):
        list(read_dp(tmp_path / "none", on_error=lambda _: None))


_FLAW = "expected '_' or a text without spaces at its ends and without carriage returns"

# name: (text after GOOD, its line, the problem). GOOD has five lines and is sentence 1.
MALFORMED = {
    "1 column": ("a b c\n", 6, "found 1 column, expected 3 separated by tabs"),
    "2 columns": ("a\tNN\n", 6, "found 2 columns, expected 3 separated by tabs"),
    "4 columns": ("a\tNN\t0\tnsubj\n", 6, "found 4 columns, expected 3 separated by tabs"),
    "a line of spaces": ("a\tNN\t0\n  \n", 7, "found 1 column, expected 3 separated by tabs"),
    "no word": ("\tNN\t0\n", 6, f"column 1 is '', {_FLAW}"),
    "no tag": ("a\t\t0\n", 6, f"column 2 is '', {_FLAW}"),
    "no head": ("a\tNN\t\n", 6, f"column 3 is '', {_FLAW}"),
    "space before a word": (" a\tNN\t0\n", 6, f"column 1 is ' a', {_FLAW}"),
    "space after a tag": ("a\tNN \t0\n", 6, f"column 2 is 'NN ', {_FLAW}"),
    "carriage return in a word": ("a\rb\tNN\t0\n", 6, rf"column 1 is 'a\rb', {_FLAW}"),
    "head is no number": ("a\tNN\tb\n", 6, "head 'b', expected a number from 0"),
    "negative head": ("a\tNN\t-1\n", 6, "head '-1', expected a number from 0"),
    "head with other digits": ("a\tNN\t\u0661\n", 6, "head '\u0661', expected a number from 0"),
    "head of 10 digits": ("a\tNN\t4294967296\n", 6, "head '4294967296', expected a number from 0"),
    "head beyond": ("a\tNN\t0\nb\tNN\t3\n", 7, "head 3 is not one of 0..2"),
    "own head": ("a\tNN\t0\nb\tNN\t2\n", 7, "the heads form a cycle: 2 -> 2"),
    "no root": ("a\tNN\t2\nb\tNN\t1\n", 6, "the heads form a cycle: 1 -> 2 -> 1"),
    "two roots": ("a\tNN\t0\nb\tNN\t0\n", 7, "a second root; 2 words have head 0, expected one"),
}


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
@pytest.mark.parametrize("name", MALFORMED)
def test_malformed(tmp_path: Path, name: str, line_end: str) -> None:
    bad, line, problem = MALFORMED[name]
    text = (GOOD + bad + "\n" + GOOD).replace("\n", line_end)
    expected = f"{tmp_path}/a.dp:{line}: sentence 2: {problem}"
    sentences = read(tmp_path, text)
    assert next(sentences).tree == TREE  # what comes before the mistake is read
    with pytest.raises(ReadError) as caught:
        list(sentences)
    assert str(caught.value) == expected
    # The sentence is left out, and reported once, if the caller wishes; the next one is read.
    errors: list[ReadError] = []
    assert [sentence.name for sentence in read(tmp_path, text, errors.append)] == ["1", "3"]
    assert list(map(str, errors)) == [expected]


@given(damaged((GOOD * 3).encode()))
def test_damaged_files_never_cause_another_error(data: bytes) -> None:
    read_both_ways(read_dp, data)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (GOOD, True),
        ("\ufeff\n" + GOOD.replace("\n", "\r\n"), True),
        (GOOD[:20], True),
        ("a\tNN\t0", True),
        ("a\tNN\t0\nb\tNN\n", False),
        ("a\tNN\tNN\n", False),
        ("1\ta\ta\tN\tN\t_\t0\troot\t_\t_\n", False),
        ("(S (NP a))\n", False),
        ("\n\n", False),
        ("", False),
    ],
)
def test_recognition(text: str, expected: bool) -> None:
    assert looks_like_dp(text) is expected


def test_the_real_layer_has_the_words_and_tags_of_the_trees() -> None:
    """Token by token, in all files; words without their escapes, trees without traces."""
    folder = shared_data("treebanks/wsj_sample_dep_en/dp")
    trees = shared_data("treebanks/wsj_sample_en/combined")
    sentences = tokens = 0
    for path in sorted(folder.glob("*.dp")):
        layer = [sentence.tree for sentence in read_dp(path, encoding="ascii")]
        other = [
            drop_traces(tree)
            for tree in read_brackets_file(trees / f"{path.stem}.mrg", escapes="ptb")
        ]
        assert [tree.words for tree in layer] == [tree and tree.words for tree in other]
        assert [tree.tags for tree in layer] == [tree and tree.tags for tree in other]
        sentences += len(layer)
        tokens += sum(map(len, layer))
    assert (sentences, tokens) == (3914, 94084)
