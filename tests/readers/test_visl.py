"""VISL-style entries: marks, text with brackets, and entries that lack closing brackets."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given

from spmrl_bench.errors import ReadError
from spmrl_bench.readers.visl import looks_like_visl, read_visl
from spmrl_bench.trees import Tree
from tests.conftest import shared_data
from tests.readers.text_formats import (
    brackets,
    check_whole,
    error_of,
    mutations,
    read_all,
    seconds,
)

PORTUGUESE = """\
######################
#Um banco de teste (c)
######################

#1 A1-1 Um gato (preto) :-) dorme.
(STA+fcl (SUBJ+np (>N+art Um)
                  (H+n gato)
                  ({)
                  (N<PRED+adj preto)
                  (}))
         (P+v-fin dorme)
         (.))

#2 A1-2 Sim

  (UTT+adv Sim)
 \t
#3 A1-3 «Um»
(UTT+cu («) (CJT+num Um) (»"))
"""


def test_trees() -> None:
    first, second, third = read_all(read_visl, PORTUGUESE)[0]
    assert first == Tree.build(
        ["Um", "gato", "(", "preto", ")", "dorme", "."],
        [">N+art", "H+n", "{", "N<PRED+adj", "}", "P+v-fin", "."],
        [(0, 7, "STA+fcl"), (0, 5, "SUBJ+np")],
    )
    assert second == Tree.build(["Sim"], ["UTT+adv"], [])
    assert third.words == ("«", "Um", '»"')


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("#1 A a\n(X+n a)", ["(X+n a)"]),
        ("#1 A\n(X+np\n(H+n a)\n(,))\n", ["(X+np (H+n a) (, ,))"]),
        ("\ufeff#1 A a\r\n(X+np (H+n a)\r\n (--))\r\n\r\n", ["(X+np (H+n a) (-- --))"]),
        ("#1 A a\n(?+? a)\n#2 B b ((\n(X+np (+) (>N+n b))", ["(?+? a)", "(X+np (+ +) (>N+n b))"]),
        ("#comment (\n#7\n#1 A\n(X+n a)", ["(X+n a)"]),
        ("#comment\n", []),
        ("", []),
    ],
)
def test_layouts(text: str, expected: list[str]) -> None:
    assert brackets(read_visl, text) == expected


MALFORMED = [
    (
        "#1 A1 a\n(UTT+n a\n\n#2 A2 b\n(UTT+n b)",
        "2:1: sentence A1: the bracket that opens here is not closed before the next entry",
    ),
    (
        "#1 A1 a\n(UTT+np (H+n a)\n",
        "2:1: sentence A1: the bracket that opens here is not closed before the end of the file",
    ),
    (
        "#1 A1 a\n(?+?\n#2 A2 b\n(UTT+n b)",
        "2:1: sentence A1: the bracket that opens here is not closed before the next entry",
    ),
    (
        "#1 A1 a\n(UTT+n a (STA+fcl (P+v b)))\n",
        "2:1: sentence A1: found 'a' between '(UTT+n' and another bracket, expected brackets "
        "only or one word",
    ),
    (
        "#1 A1 a\n(X+np (Y+np (H+n a)\n",
        "2:1: sentence A1: the tree that starts here lacks 2 closing brackets before the end of "
        "the file; the innermost open one is at line 2 column 7",
    ),
    ("#1 A1 a\n(X+n a))", "2:8: sentence A1: found ')' but no bracket is open"),
    ("#1 A1 a\n\n#2 A2 b\n(X+n b)", "1:1: sentence A1: found 0 trees in the entry, expected one"),
    ("#1 A1 a\n(X+n b)\n(Y+n b)", "1:1: sentence A1: found 2 trees in the entry, expected one"),
    (
        "#1 A1 a\n(X+np (H+n) (.))",
        "2:7: sentence A1: found '(H+n)' without a word in it, expected a mark or a word",
    ),
    (
        "#1 A1 a\n(X+np (?+?) (.))",
        "2:7: sentence A1: found '(?+?)' without a word in it, expected a mark or a word",
    ),
    (
        "#1 A1 a\n(X+np () (.))",
        "2:7: sentence A1: found '()' without a word in it, expected a mark or a word",
    ),
    (
        "#1 A1 a\n(X+np (H+n a b) (.))",
        "2:7: sentence A1: found 'a b' in '(H+n', expected one word",
    ),
    ("#1 A1 a\n(X+np (H+n a) b)", "2:15: sentence A1: found 'b' between brackets, expected '('"),
    (
        "#1 A1 a\n(X+np ((H+n a)))",
        "2:7: sentence A1: found a bracket without a label inside a tree",
    ),
    ("#1 A1 a\nb\n(X+n a)", "2:1: sentence A1: found 'b' outside brackets, expected '('"),
    (
        "#1 A1 a\n(X+n a)\n#x\n(X+n a)",
        "3:1: sentence 2: found '#x', expected '#number name text' to begin an entry",
    ),
    (
        "#1 A1 a\n(X+n a)\n#2\n(X+n a)",
        "3:1: sentence 2: found '#2', expected '#number name text' to begin an entry",
    ),
    (
        "#x\n(X+n a)\n",
        "2:1: sentence 1: found a tree before the first entry, expected '#1 name text'",
    ),
    ("a\n#1 A1 a\n(X+n a)\n", "1:1: sentence 1: found 'a' outside brackets, expected '('"),
]


@pytest.mark.parametrize(("text", "message"), MALFORMED)
def test_malformed(tmp_path: Path, text: str, message: str) -> None:
    assert error_of(read_visl, text, tmp_path / "f") == message


def test_a_broken_entry_costs_itself_only() -> None:
    text = "#1 A a\n(X+n a\n#2 B b\n(X+n b)\n#3 C c (\n(X+np (H+n c) (Y\n\n#4 D )\n(X+n d)\n"
    trees, errors = read_all(read_visl, text)
    assert [tree.words for tree in trees] == [("b",), ("d",)]
    assert [error.split(":")[2] for error in errors] == [" sentence A", " sentence C"]


def test_encodings(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes("#1 A …não\n(X+n …não)".encode("cp1252"))
    assert next(read_visl(tmp_path / "f", encoding="cp1252")).words == ("…não",)
    assert next(read_visl(tmp_path / "f", encoding="latin-1")).words == ("\x85não",)
    with pytest.raises(ReadError, match="byte 0x85 is not utf-8 text"):
        next(read_visl(tmp_path / "f"))


@given(mutations(PORTUGUESE, "() \n#1{}.+a"))
def test_any_text_gives_trees_or_errors(text: str) -> None:
    check_whole(read_all(read_visl, text)[0])


def test_depth_and_many_errors() -> None:
    deep = 20_000
    time, trees, errors = seconds(read_visl, "#1 A a\n" + "(X+np " * deep + "(H+n a)" + ")" * deep)
    assert (trees, errors) == (1, 0)
    assert time < 10
    time, trees, errors = seconds(read_visl, "#1 A a\n(X+np (H+n a\n" * deep)
    assert (trees, errors) == (0, deep)
    assert time < 20


def test_looks_like_visl() -> None:
    assert looks_like_visl(PORTUGUESE)
    assert looks_like_visl("\ufeff#1 A a\r\n(?+? a)")
    assert looks_like_visl("#1 A a\n(«)")
    assert not looks_like_visl("#1:1.[1] NP(Head:Nab:a)#")
    assert not looks_like_visl("#1 A a\n")
    assert not looks_like_visl("# Notes\nAn entry:\n#1 A1 a\n(UTT+n a)\n")
    assert not looks_like_visl("((S (NP (DT the) (NN dog))))")
    assert not looks_like_visl("")


@pytest.mark.parametrize(
    ("part", "trees", "tokens", "broken"),
    [("part1-1200", 1189, 29890, 11), ("part8870-9369", 485, 8641, 15)],
)
def test_release(part: str, trees: int, tokens: int, broken: int) -> None:
    """25 entries have unbalanced brackets, and #9348 a node with what is left of a tag."""
    errors: list[ReadError] = []
    path = shared_data(f"treebanks/floresta_pt/Floresta_7.4.{part}.ptb")
    found = list(read_visl(path, encoding="cp1252", on_error=errors.append))
    assert (len(found), sum(map(len, found)), len(errors)) == (trees, tokens, broken)
