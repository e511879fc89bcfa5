"""VISL-style entries: marks, text with brackets, and entries that lack closing brackets."""

from __future__ import annotations

from spmrl_bench.readers.dialects import read_visl
from spmrl_bench.trees import Tree
from tests.readers.cases import DEEP, Big, Broken, Encoded, TextFormat, read_all

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

LAYOUTS = [
    ("#1 A a\n(X+n a)", ["(X+n a)"]),
    ("#1 A\n(X+np\n(H+n a)\n(,))\n", ["(X+np (H+n a) (, ,))"]),
    ("\ufeff#1 A a\r\n(X+np (H+n a)\r\n (--))\r\n\r\n", ["(X+np (H+n a) (-- --))"]),
    ("#1 A a\n(?+? a)\n#2 B b ((\n(X+np (+) (>N+n b))", ["(?+? a)", "(X+np (+ +) (>N+n b))"]),
    ("#comment (\n#7\n#1 A\n(X+n a)", ["(X+n a)"]),
    ("#comment\n", []),
    ("", []),
]
MALFORMED = [
    ("#1 A1 a\n(UTT+n a\n\n#2 A2 b\n(UTT+n b)", "2:1: sentence A1", "not closed"),
    ("#1 A1 a\n(UTT+np (H+n a)\n", "2:1: sentence A1", "not closed"),
    ("#1 A1 a\n(?+?\n#2 A2 b\n(UTT+n b)", "2:1: sentence A1", "not closed"),
    ("#1 A1 a\n(UTT+n a (STA+fcl (P+v b)))\n", "2:1: sentence A1", "beside brackets"),
    ("#1 A1 a\n(X+np (Y+np (H+n a)\n", "2:1: sentence A1", "not closed"),
    ("#1 A1 a\n(X+n a))", "2:8: sentence A1", "no bracket is open"),
    ("#1 A1 a\n\n#2 A2 b\n(X+n b)", "1:1: sentence A1", "trees in the entry"),
    ("#1 A1 a\n(X+n b)\n(Y+n b)", "1:1: sentence A1", "trees in the entry"),
    ("#1 A1 a\n(X+np (H+n) (.))", "2:7: sentence A1", "a mark or a label"),
    ("#1 A1 a\n(X+np (?+?) (.))", "2:7: sentence A1", "a mark or a label"),
    ("#1 A1 a\n(X+np () (.))", "2:7: sentence A1", "a mark or a label"),
    ("#1 A1 a\n(X+np (H+n a b) (.))", "2:7: sentence A1", "a mark or a label"),
    ("#1 A1 a\n(X+np (H+n a) b)", "2:15: sentence A1", "beside brackets"),
    ("#1 A1 a\n(X+np ((H+n a)))", "2:7: sentence A1", "without a label"),
    ("#1 A1 a\nb\n(X+n a)", "2:1: sentence A1", "outside brackets"),
    ("#1 A1 a\n(X+n a)\n#x\n(X+n a)", "3:1: sentence 2", "begin an entry"),
    ("#1 A1 a\n(X+n a)\n#2\n(X+n a)", "3:1: sentence 2", "begin an entry"),
    ("#x\n(X+n a)\n", "2:1: sentence 1", "before the first entry"),
    ("a\n#1 A1 a\n(X+n a)\n", "1:1: sentence 1", "outside brackets"),
]

VISL = TextFormat(
    name="visl",
    sample=PORTUGUESE,
    layouts=LAYOUTS,
    malformed=MALFORMED,
    broken=Broken(
        "#1 A a\n(X+n a\n#2 B b\n(X+n b)\n#3 C c (\n(X+np (H+n c) (Y\n\n#4 D )\n(X+n d)\n",
        words=[("b",), ("d",)],
        errors=["2:1: sentence A:", "6:1: sentence C:"],
    ),
    encoded=Encoded(
        "#1 A …não\n(X+n …não)",
        {"cp1252": ("…não",), "latin-1": ("\x85não",)},
        "1: byte 0x85 is not utf-8 text",
    ),
    big=(
        Big("#1 A a\n" + "(X+np " * DEEP + "(H+n a)" + ")" * DEEP, trees=1, errors=0),
        Big("#1 A a\n(X+np (H+n a\n" * DEEP, trees=0, errors=DEEP),
    ),
    recognised=(PORTUGUESE, "#1 A a\r\n(?+? a)", "#1 A a\n(«)"),
    others=(
        "#1:1.[1] NP(Head:Nab:a)#",
        "#1 A a\n",
        "# Notes\nAn entry:\n#1 A1 a\n(UTT+n a)\n",
        "((S (NP (DT the) (NN dog))))",
        "",
    ),
)


def test_trees() -> None:
    first, second, third = read_all(read_visl, PORTUGUESE)[0]
    assert first == Tree.build(
        ["Um", "gato", "(", "preto", ")", "dorme", "."],
        [">N+art", "H+n", "{", "N<PRED+adj", "}", "P+v-fin", "."],
        [(0, 7, "STA+fcl"), (0, 5, "SUBJ+np")],
    )
    assert second == Tree.build(["Sim"], ["UTT+adv"], [])
    assert third.words == ("«", "Um", '»"')
