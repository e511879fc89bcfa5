"""Reading brackets: layouts that treebanks use, and an exact place for what is malformed."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spmrl_bench.errors import ReadError
from spmrl_bench.readers import brackets
from spmrl_bench.readers.brackets import (
    looks_like_brackets,
    parse_brackets,
    read_brackets,
    read_brackets_file,
)
from spmrl_bench.trees import Tree
from spmrl_bench.trees.escapes import write_brackets
from tests.timing import takes_linear_time
from tests.trees.strategies import trees

PENN = """
( (S
    (NP-SBJ (-NONE- *T*-1) )
    (VP (VBZ is)
      (ADJP-PRD (JJ 1\\/2)))
    (. .) ))
( (FRAG (UH Yes)))
"""


def test_penn_layout() -> None:
    first, second = read_brackets(PENN, path="x")
    assert first == Tree.build(
        ["*T*-1", "is", "1/2", "."],
        ["-NONE-", "VBZ", "JJ", "."],
        [(0, 4, ""), (0, 4, "S"), (0, 1, "NP-SBJ"), (1, 3, "VP"), (2, 3, "ADJP-PRD")],
    )
    assert second.labels == ("", "FRAG")


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("(NN word)", Tree.build(["word"], ["NN"], [])),
        ("( (NN word))", Tree.build(["word"], ["NN"], [(0, 1, "")])),
        ("(S(NN a)(NN b))", Tree.build(["a", "b"], ["NN", "NN"], [(0, 2, "S")])),
        ("(S\r\n\t(NN a )\x0b( NN b))\r\n", Tree.build(["a", "b"], ["NN", "NN"], [(0, 2, "S")])),
        ("(NN a\xa0b\u3000\x85c)", Tree.build(["a\xa0b\u3000\x85c"], ["NN"], [])),
        ("(NN -LRB-)", Tree.build(["("], ["NN"], [])),
        ("(-LRB- -LRB-)", Tree.build(["("], ["-LRB-"], [])),
    ],
)
def test_layouts(text: str, tree: Tree) -> None:
    assert parse_brackets(text) == tree


def test_two_trees_on_one_line() -> None:
    assert len(list(read_brackets("(A a) (B b)(C c)", path="x"))) == 3


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("(A a)\n(S (B b)))", "f:2:10: sentence 3: found ')' but no bracket is open"),
        ("(A a)\n\n(S (B b)\n  (C (D d)", "f:3:1: sentence 2: the tree that starts here lacks 2"),
        (
            "(A a)\n\n(S (B b)\n  (C (D d)",
            "before the file ends; the innermost open one is at line 4",
        ),
        ("(S (B b)", "the tree that starts here is not closed before the file ends"),
        ("(A a)\nword (B b)", "f:2:1: sentence 2: found 'word' outside brackets, expected '('"),
        ("(S (A a) word)", "f:1:10: sentence 1: found the word 'word' without a tag, expected '("),
        ("(NN New York)", "f:1:5: sentence 1: found the word 'New' without a tag"),
        ("(S (A a) (NN))", "f:1:10: sentence 1: found '(NN)' without a tag or a word in it, exp"),
        ("(S (A a) (NP ( )))", "f:1:14: sentence 1: found an empty bracket '()', expected a tag"),
        ("(())", "f:1:2: sentence 1: found an empty bracket"),
        ("()", "f:1:1: sentence 1: found an empty bracket"),
        ("(S (NP (NN a)) (VP ))", "f:1:16: sentence 1: found '(VP)' without a tag or a word"),
    ],
)
def test_malformed(text: str, message: str) -> None:
    with pytest.raises(ReadError) as caught:
        list(read_brackets(text, path="f"))
    assert message in str(caught.value)


def test_trees_before_the_mistake_are_read() -> None:
    reader = read_brackets("(A a)\n(B b)\n)", path="f")
    assert [next(reader).tags, next(reader).tags] == [("A",), ("B",)]
    with pytest.raises(ReadError) as caught:
        next(reader)
    assert (caught.value.line, caught.value.column, caught.value.sentence) == (3, 1, 3)


def test_blank_parses_hold_their_line() -> None:
    text = "(A a)\n\n()\n(())\n(TOP)\n ( )\r\n(S (B b) (C c))"
    trees = list(read_brackets(text, path="f", blank="tree"))
    assert [len(tree) for tree in trees] == [1, 0, 0, 0, 0, 0, 2]
    assert len(parse_brackets("", blank="tree")) == 0


def test_a_line_may_hold_several_roots_and_brackets_without_words() -> None:
    text = "(S (X) (A a) (NP ()) (B b)) (C c) (T (D d))\n() (A a)"
    two_roots, leaf = read_brackets(text, path="f", blank="tree")
    assert two_roots.words == ("a", "b", "c", "d")
    assert list(two_roots.constituents()) == [(0, 2, "S"), (3, 4, "T")]
    assert leaf == parse_brackets("(A a)")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("\n(S (B b)\n)", "f:2:1: sentence 2: the tree that starts here is not closed before the "
         "line ends"),
        ("\n(S (B b)))", "f:2:10: sentence 2: found ')' but no bracket is open"),
        ("(S ())\n(S (B b) c)", "f:2:10: sentence 2: found the word 'c' without a tag"),
    ],
)  # fmt: skip
def test_malformed_lines(text: str, message: str) -> None:
    with pytest.raises(ReadError) as caught:
        list(read_brackets(text, path="f", blank="tree"))
    assert message in str(caught.value)


PIECES = st.lists(st.sampled_from(["(", ")", "(N a)", "b", " ", "\n", "(S "]), max_size=12)


def outcome(text: str, blank: Literal["error", "tree"]) -> list[Tree] | ReadError:
    try:
        return list(read_brackets(text, path="f", blank=blank, margin=False))
    except ReadError as error:
        return error


@given(pieces=PIECES)
def test_any_text_is_trees_or_one_clear_error(pieces: list[str]) -> None:
    """What is accepted is exactly the grammar tree = (TAG word) | (label? tree+)."""
    text = "".join(pieces)
    accepted = re.sub(r"\(\s*([a-zA-Z]+)\s+([a-zA-Z]+)\s*\)", "T", text)
    while (
        shorter := re.sub(r"\(\s*(?:[abNS]+(?=[\s(T]))?[\sT]*T[\sT]*\)", "T", accepted)
    ) != accepted:
        accepted = shorter
    trees = outcome(text, "error")
    assert isinstance(trees, list) == bool(re.fullmatch(r"[\sT]*", accepted))
    if isinstance(trees, list):
        assert len(trees) == accepted.count("T")
    else:
        assert trees.line is not None
        assert trees.sentence is not None


@given(pieces=PIECES)
def test_any_lines_are_one_tree_each_or_an_error(pieces: list[str]) -> None:
    text = "".join(pieces)
    trees = outcome(text, "tree")
    if isinstance(trees, list):
        assert len(trees) == len(text.removesuffix("\n").split("\n")) - (text == "")
    else:
        assert trees.line == trees.sentence


def test_one_string_is_one_tree() -> None:
    with pytest.raises(ReadError, match="found 2 trees, expected one"):
        parse_brackets("(A a) (B b)")
    with pytest.raises(ReadError, match="found 0 trees"):
        parse_brackets(" ")


def test_file_encoding_and_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "a.mrg"
    path.write_bytes("\ufeff(NN é)".encode())
    assert next(read_brackets_file(path)).words == ("é",)
    path.write_bytes("(NN a)\n(NN é)".encode("latin-1"))
    assert [tree.words[0] for tree in read_brackets_file(path, encoding="latin-1")] == ["a", "é"]
    with pytest.raises(ReadError, match=r"a\.mrg:2: byte 0xe9 is not utf-8 text"):
        list(read_brackets_file(path))


def test_unreadable_file(tmp_path: Path) -> None:
    with pytest.raises(ReadError, match=r"none\.mrg: cannot be read: No such file"):
        list(read_brackets_file(tmp_path / "none.mrg"))


def read_with(kernel: bool, text: str) -> tuple[list[Tree], list[str]]:
    """Trees and errors of a text that is read to its end, with the kernel or without it."""
    errors: list[ReadError] = []
    with pytest.MonkeyPatch.context() as patch:
        if not kernel:
            patch.setattr(brackets, "scan", None)
        trees = list(read_brackets(text, path="f", on_error=errors.append))
    return trees, list(map(str, errors))


PIECES = ["(", ")", " ", "\n", "(A a)", "(S ", "ä", "\t", "中", "-LRB-", "\\x28", "(S\n (A a))\n"]


@pytest.mark.skipif(brackets.scan is None, reason="the kernel is not built")
@given(st.lists(st.sampled_from(PIECES), max_size=40).map("".join))
def test_the_kernel_reads_what_python_reads(text: str) -> None:
    assert read_with(True, text) == read_with(False, text)


@pytest.mark.skipif(brackets.scan is None, reason="the kernel is not built")
@given(st.lists(trees(), max_size=8), st.sampled_from(["ptb", "brackets"]))
def test_the_kernel_reads_what_was_written(sentences: list[Tree], escapes: str) -> None:
    text = "\r\n".join(write_brackets(tree, escapes) for tree in sentences if len(tree))
    wanted = [tree for tree in sentences if len(tree)]
    assert list(read_brackets(text, path="f", escapes=escapes)) == wanted


def test_the_kernel_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "".join(f"(S (A w{i}) (B b))\n" for i in range(10)) + "(S (A a)"
    whole = read_with(True, text)
    monkeypatch.setattr(brackets, "_AT_A_TIME", 3)
    assert read_with(True, text) == whole
    assert whole[1] == ["f:11:1: sentence 11: the tree that starts here is not closed before the "
                        "file ends"]  # fmt: skip


def test_malformed_trees_are_left_out() -> None:
    text = "(A a)\n(S (A b)\n(S (A c))\n  junk\n(A d))\n\n(A e) (A f)\n(S (A g)\n   (A h))\n(S (A i"
    found, errors = read_with(True, text)
    assert [tree.words for tree in found] == [("a",), ("c",), ("d",), ("e",), ("f",), ("g", "h")]
    assert errors == [
        "f:4:3: sentence 2: found the word 'junk' without a tag, expected '(TAG word)', '(' or ')'"
        "; the tree begins at line 2",
        "f:4:3: sentence 4: found 'junk' outside brackets, expected '('",
        "f:5:6: sentence 6: found ')' but no bracket is open",
        "f:10:7: sentence 10: found the word 'i' without a tag, expected '(TAG word)', '(' or ')'",
    ]


def test_time_is_linear_in_the_number_of_malformed_trees() -> None:
    def read(text: str) -> None:
        assert len(read_with(True, text)[1]) == text.count("\n")

    assert takes_linear_time(read, *("(S (A a)\n" * number for number in (1_000, 32_000)))


def test_depth_is_limited_by_memory_only() -> None:
    deep = "(X " * 100_000 + "(A a)" + ")" * 100_000
    for kernel in (True, False):
        (tree,), errors = read_with(kernel, deep)
        assert len(tree.labels) == 100_000
        assert errors == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("\n( (S (A a)\n  (B b)) )\n", True),
        ("(NP (NP (A a) (B", True),
        ("", False),
        ("((((((((((", False),
        ("1\ta\tb\n", False),
        ("text (S (A a))", False),
        ("(S (A a b) (B c d))", False),
        ("(NN (word)) (NN (other))", False),
    ],
)
def test_recognition(text: str, expected: bool) -> None:
    assert looks_like_brackets(text) == expected
