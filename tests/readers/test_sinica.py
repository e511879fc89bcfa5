"""Sinica lines: nodes with roles, marks outside the tree, and broken lines."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given

from spmrl_bench.errors import ReadError
from spmrl_bench.readers.sinica import looks_like_sinica, read_sinica
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

CHINESE = (
    "#1:1.[11] S(agent:NP(property:V‧的(head:VH11:大|Head:DE:的)|Head:Nab:狗)|Head:VA4:睡)"
    "#。(PERIODCATEGORY)\r\n"
    "#2:.[12] NP(Head:Nab:門) # 、(PAUSECATEGORY)\r\n"
    "#3:7.2.[13] VP(head:Head:Nac:好)#\r\n"
)


def test_trees() -> None:
    first, second, third = read_all(read_sinica, CHINESE)[0]
    assert first == Tree.build(
        ["大", "的", "狗", "睡"],
        ["head:VH11", "Head:DE", "Head:Nab", "Head:VA4"],
        [(0, 4, "S"), (0, 3, "agent:NP"), (0, 2, "property:V‧的")],
    )
    assert second == Tree.build(["門"], ["Head:Nab"], [(0, 1, "NP")])
    assert third == Tree.build(["好"], ["head:Head:Nac"], [(0, 1, "VP")])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("#1:1.[1] NP(A:a)#", ["(NP (A a))"]),
        ("#1:1.[1] A:a#", ["(A a)"]),
        ("\ufeff\n#1:..[1]\tNP(A:a|NP(B:b))\u3000#\u3000!(MARK)  \n\n", ["(NP (A a) (NP (B b)))"]),
        ("#1:1.[1] NP(A[+x]:a#)#", ["(NP (A[+x] a#))"]),
        ("", []),
    ],
)
def test_layouts(text: str, expected: list[str]) -> None:
    assert brackets(read_sinica, text) == expected


START = "#1:1.[1] "
MALFORMED = [
    ("NP(A:a)#", "1:1: sentence 1: found 'NP(A:a)#', expected '#1:1.[1] ' and a tree"),
    (
        "#1:1[1] NP(A:a)#",
        "1:1: sentence 1: found '#1:1[1] NP(A:a)#', expected '#1:1.[1] ' and a tree",
    ),
    (
        "\n\n#1:1.[1] NP(A:a)\n",
        "3:17: sentence 1: found the end of the line, expected '#' after the tree",
    ),
    (
        f"{START}NP(A:a)#,",
        "1:18: sentence 1: found ',', expected a mark and '(NAME)'",
    ),
    (
        f"{START}NP(A:a)#,(COMMA",
        "1:18: sentence 1: found ',(COMMA', expected a mark and '(NAME)'",
    ),
    (f"{START}NP(A:a))#", "1:17: sentence 1: found ')' but no bracket is open"),
    (f"{START}NP(A:a)|B:b#", "1:17: sentence 1: found '|' but no bracket is open"),
    (
        f"{START}NP(A:a#",
        "1:10: sentence 1: the node that starts here is not closed before '#'",
    ),
    (
        f"{START}NP(A:a|VP(B:b)#",
        "1:10: sentence 1: the node that starts here is not closed before '#'",
    ),
    (f"{START}NP(A:a)B:b#", "1:17: sentence 1: found 'B:b' after a node, expected '|' or ')'"),
    (f"{START}NP(A:a)VP(B:b)#", "1:17: sentence 1: found 'VP(' after a node, expected '|' or ')'"),
    (f"{START}NP(A:a||B:b)#", "1:17: sentence 1: found '|', expected a node before it"),
    (f"{START}NP(|A:a)#", "1:13: sentence 1: found '|', expected a node before it"),
    (f"{START}NP(A:a|)#", "1:17: sentence 1: found ')', expected a node before it"),
    (f"{START}NP()#", "1:13: sentence 1: found ')', expected a node before it"),
    (f"{START}(A:a)#", "1:10: sentence 1: found '(', expected a label before '('"),
    (f"{START}NP(role:(A:a))#", "1:13: sentence 1: found 'role:(', expected a label before '('"),
    (f"{START}NP(a)#", "1:13: sentence 1: found 'a', expected 'TAG:word'"),
    (f"{START}NP(A:)#", "1:13: sentence 1: found 'A:', expected 'TAG:word'"),
    (f"{START}NP(:a)#", "1:13: sentence 1: found ':a', expected 'TAG:word'"),
    (f"{START}NP(role::a)#", "1:13: sentence 1: found 'role::a', expected 'TAG:word'"),
    (f"{START}#", "1:10: sentence 1: found '#', expected a tree before it"),
]


@pytest.mark.parametrize(("text", "message"), MALFORMED)
def test_malformed(tmp_path: Path, text: str, message: str) -> None:
    assert error_of(read_sinica, text, tmp_path / "f") == message


def test_a_broken_line_costs_itself_only() -> None:
    text = "#1:1.[1] A(B:b)#\r\n#2:1.[1] A(B:b#\r\n\r\n#3:1.[1] A(C:c)#\r\n#\r\n"
    trees, errors = read_all(read_sinica, text)
    assert [tree.words for tree in trees] == [("b",), ("c",)]
    assert [error[:15] for error in errors] == ["2:10: sentence ", "5:1: sentence 4"]


def test_encodings(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes("#1:1.[1] NP(A:門)#".encode("big5"))
    assert next(read_sinica(tmp_path / "f", encoding="big5")).words == ("門",)
    with pytest.raises(ReadError, match="is not utf-8 text"):
        next(read_sinica(tmp_path / "f"))


@given(mutations(CHINESE, "()|:# \n[].1A"))
def test_any_text_gives_trees_or_errors(text: str) -> None:
    check_whole(read_all(read_sinica, text)[0])


def test_depth_and_many_errors() -> None:
    deep = 20_000
    time, trees, errors = seconds(read_sinica, START + "S(" * deep + "A:a" + ")" * deep + "#")
    assert (trees, errors) == (1, 0)
    assert time < 10
    time, trees, errors = seconds(read_sinica, START + "S(" * deep + "A:a#\n")
    assert (trees, errors) == (0, 1)
    time, trees, errors = seconds(read_sinica, (START + "S(A:a|#\n") * deep)
    assert (trees, errors) == (0, deep)
    assert time < 20


def test_looks_like_sinica() -> None:
    assert looks_like_sinica(CHINESE)
    assert looks_like_sinica("\ufeff" + CHINESE[:30])
    assert not looks_like_sinica("#1 A1 a\n(X+n a)")
    assert not looks_like_sinica("")


def test_release() -> None:
    found = list(read_sinica(shared_data("treebanks/sinica_zh/parsed")))
    assert (len(found), sum(map(len, found)), max(map(len, found))) == (10000, 91634, 50)
    assert sum(len(tree) == 1 for tree in found) == 136
