"""Sinica lines: nodes with roles, marks outside the tree, and broken lines."""

from __future__ import annotations

from spmrl_bench.readers.dialects import read_sinica
from spmrl_bench.trees import Tree
from tests.readers.cases import DEEP, Big, Broken, Encoded, TextFormat, read_all

CHINESE = (
    "#1:1.[11] S(agent:NP(property:V‧的(head:VH11:大|Head:DE:的)|Head:Nab:狗)|Head:VA4:睡)"
    "#。(PERIODCATEGORY)\r\n"
    "#2:.[12] NP(Head:Nab:門) # 、(PAUSECATEGORY)\r\n"
    "#3:7.2.[13] VP(head:Head:Nac:好)#\r\n"
)

LAYOUTS = [
    ("#1:1.[1] NP(A:a)#", ["(NP (A a))"]),
    ("#1:1.[1] A:a#", ["(A a)"]),
    ("\ufeff\n#1:..[1]\tNP(A:a|NP(B:b))\u3000#\u3000!(MARK)  \n\n", ["(NP (A a) (NP (B b)))"]),
    ("#1:1.[1] NP(A[+x]:a#)#", ["(NP (A[+x] a#))"]),
    ("", []),
]
START = "#1:1.[1] "
MALFORMED = [
    ("NP(A:a)#", "1:1: sentence 1", "#number TREE"),
    ("\n\n#1:1.[1] NP(A:a)\n", "3:1: sentence 1", "#number TREE"),
    (START + "NP(A:a))#", "1:17: sentence 1", "no bracket is open"),
    (START + "NP(A:a)|B:b#", "1:17: sentence 1", "no bracket is open"),
    (START + "NP(A:a#", "1:10: sentence 1", "not closed"),
    (START + "NP(A:a|VP(B:b)#", "1:10: sentence 1", "not closed"),
    (START + "NP(A:a)B:b#", "1:17: sentence 1", "after a node"),
    (START + "NP(A:a)VP(B:b)#", "1:17: sentence 1", "after a node"),
    (START + "NP(A:a||B:b)#", "1:17: sentence 1", "expected a node before"),
    (START + "NP(|A:a)#", "1:13: sentence 1", "expected a node before"),
    (START + "NP(A:a|)#", "1:17: sentence 1", "expected a node before"),
    (START + "NP()#", "1:13: sentence 1", "expected a node before"),
    (START + "(A:a)#", "1:10: sentence 1", "expected a label"),
    (START + "NP(role:(A:a))#", "1:13: sentence 1", "expected a label"),
    (START + "NP(a)#", "1:13: sentence 1", "tag:word"),
    (START + "NP(A:)#", "1:13: sentence 1", "tag:word"),
    (START + "NP(:a)#", "1:13: sentence 1", "tag:word"),
    (START + "NP(role::a)#", "1:13: sentence 1", "tag:word"),
    (START + "#", "1:10: sentence 1", "no word"),
]

SINICA = TextFormat(
    name="sinica",
    sample=CHINESE,
    layouts=LAYOUTS,
    malformed=MALFORMED,
    broken=Broken(
        "#1:1.[1] A(B:b)#\r\n#2:1.[1] A(B:b#\r\n\r\n#3:1.[1] A(C:c)#\r\n#\r\n",
        words=[("b",), ("c",)],
        errors=["2:10: sentence ", "5:1: sentence 4"],
    ),
    encoded=Encoded("#1:1.[1] NP(A:門)#", {"big5": ("門",)}, "1: byte 0xaa is not utf-8 text"),
    big=(
        Big(START + "S(" * DEEP + "A:a" + ")" * DEEP + "#", trees=1, errors=0),
        Big(START + "S(" * DEEP + "A:a#\n", trees=0, errors=1),
        Big((START + "S(A:a|#\n") * DEEP, trees=0, errors=DEEP),
    ),
    recognised=(CHINESE, CHINESE[:30]),
    others=("#1 A1 a\n(X+n a)", ""),
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
