"""TBF files: leaves of two atoms, empty subjects, and where a broken tree ends."""

from __future__ import annotations

from spmrl_bench.readers.dialects import read_tbf
from spmrl_bench.trees import Tree
from tests.readers.cases import DEEP, Big, Broken, Encoded, TextFormat, read_all

SPANISH = """
(
  (S
    (sn.e-SUJ *0*)
    (neg-MOD
      (rn No no))
    (grup.verb
      (vmip3s0 leen leer))
    (sn-CD
      (Fpa -Fpa- -Fpa-)
      (W 1989 [??:??/??/1989:??.??])
      (Fpt -Fpt- -Fpt-)
      (Fz * *)
      (Fg - -))
    (Fp . .)))
(
  (INC
    (np00000 Río_Grande Río_Grande)))
"""

LAYOUTS = [
    ("((S (a b c)))", ["( (S (a b)))"]),
    ("((S (a b c))) ((S (d e f)))", ["( (S (a b)))", "( (S (d e)))"]),
    ("\ufeff(\r\n  (S\r\n    (a b c)))\r\n", ["( (S (a b)))"]),
    ("(S (a b\n  c))\n(S (d -Fpa-x e))", ["(S (a b))", "(S (d -LRB-x))"]),
    ("(a b c)", ["(a b)"]),
    ("", []),
]

MALFORMED = [
    ("(\n (S\n  (a b c))))", "3:12: sentence 2", "no bracket is open"),
    ("(S (a b c))\nd", "2:1: sentence 2", "outside brackets"),
    ("(\n (S (a b c))\n", "1:1: sentence 1", "not closed"),
    ("(\n (S (a b c))\n(\n (S (a b c)))", "1:1: sentence 1", "not closed"),
    ("(S (a b c))\n(S (T (a b c)", "2:1: sentence 2", "not closed"),
    ("(S (T (a b c", "1:1: sentence 1", "not closed"),
    ("((S\n  (a b)))", "2:3: sentence 1", "(a b)"),
    ("((S\n  (a b c d)))", "2:3: sentence 1", "(a b c d)"),
    ("((S (a *0* *0* *0*)))", "1:5: sentence 1", "(a *0* *0* *0*)"),
    ("((S (a *1*)))", "1:5: sentence 1", "(a *1*)"),
    ("((S (a)))", "1:5: sentence 1", "(a)"),
    ("((S ()))", "1:5: sentence 1", "()"),
    ("()", "1:1: sentence 1", "()"),
    ("((S ((a b c))))", "1:5: sentence 1", "without a label"),
    ("((S (a b c) d))", "1:13: sentence 1", "beside brackets"),
    ("((S a b (a b c)))", "1:2: sentence 1", "beside brackets"),
]

TBF = TextFormat(
    name="tbf",
    sample=SPANISH,
    layouts=LAYOUTS,
    malformed=MALFORMED,
    broken=Broken(
        "(\n (S (a b c)))\n(\n (S (a b)))\n(\n (S (a b c))\n(\n (S (d e f)))\n",
        words=[("b",), ("e",)],
        errors=["4:5: sentence 2: f", "5:1: sentence 3: t"],
    ),
    encoded=Encoded("((S (a año año)))", {"latin-1": ("año",)}, "1: byte 0xf1 is not utf-8 text"),
    big=(
        Big("(" + "(S " * DEEP + "(a b c)" + ")" * DEEP + ")", trees=1, errors=0),
        Big("(\n (S\n  (a b\n" * DEEP, trees=0, errors=DEEP),
    ),
    recognised=(SPANISH, SPANISH[:150]),
    others=(
        "((S (NP (DT the) (NN dog))))",
        "(S (NN (a b c)) (NN (d)) (NN (e)))",
        "#1 A a (b c d)\n(UTT+n a)",
        "",
    ),
)


def test_tree() -> None:
    first, second = read_all(read_tbf, SPANISH)[0]
    assert first == Tree.build(
        ["*0*", "No", "leen", "(", "1989", ")", "*", "-", "."],
        ["-NONE-", "rn", "vmip3s0", "Fpa", "W", "Fpt", "Fz", "Fg", "Fp"],
        [
            (0, 9, ""),
            (0, 9, "S"),
            (0, 1, "sn.e-SUJ"),
            (1, 2, "neg-MOD"),
            (2, 3, "grup.verb"),
            (3, 8, "sn-CD"),
        ],
    )
    assert second == Tree.build(["Río_Grande"], ["np00000"], [(0, 1, ""), (0, 1, "INC")])
