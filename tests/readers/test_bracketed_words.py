"""Words in brackets of their own: spaces in words, empty elements beside nodes, broken lines."""

from __future__ import annotations

from spmrl_bench.readers.dialects import read_bracketed_words
from spmrl_bench.trees import Tree
from tests.readers.cases import DEEP, Big, Broken, Encoded, TextFormat, read_all

INDONESIAN = (
    "(S  (NP-SBJ-1  (NN\t  (rumah   makan)) (-LRB- (Z (&brl;))) (CD (0)))"
    " (VP  (VB (dijual)) (NP (*-1)) (SBAR (0) (S (*T*-1)))) (Z (.)))\n"
    "(S (VB (Lari))) (NP (NN (kota)))\n"
)

LAYOUTS = [
    ("(NN (a))", ["(NN a)"]),
    ("(S(NN(a))(CD( 0 ))(X(*U*)))", ["(S (NN a) (CD 0) (X (-NONE- \\*U\\*)))"]),
    ("\ufeff(S (NN (a)))\r\n\r\n(S (NN (b)))\r\n", ["(S (NN a))", "(S (NN b))"]),
    ("1\t(S (NN (a)))\n15a\t(S (NN (b)) (NN (c)))", ["(S (NN a))", "(S (NN b) (NN c))"]),
    ("((NN (a)))", ["( (NN a))"]),
    ("(S (X (&brr;)))", ["(S (X -RRB-))"]),
    ("(S (NN (a\u3000b)))", ["(S (NN a\u3000b))"]),
    ("", []),
    ("\n \n", []),
]
MALFORMED = [
    ("(NN (a)))", "1:9: sentence 2", "no bracket is open"),
    ("(S (NN (a))\n(S (NN (b)))", "1:1: sentence 1", "not closed"),
    ("(S (NN (a)))\n(S (NN (b", "2:1: sentence 2", "not closed"),
    ("7\t(S (NN (a)) (b))", "1:15: sentence 7", "beside others"),
    ("(S (NP (NN (a)) (b)))", "1:17: sentence 1", "beside others"),
    ("(S (NN (a) (b)))", "1:12: sentence 1", "beside others"),
    ("(NN (a) (b))", "1:9: sentence 1", "beside others"),
    ("(S (NN (a) (*)))", "1:12: sentence 1", "beside others"),
    ("(S (NP (*) (b)))", "1:12: sentence 1", "beside others"),
    ("(S (NN (a) (X (b))))", "1:12: sentence 1", "beside a word"),
    ("(a)", "1:1: sentence 1", "without a tag"),
    ("(*)", "1:1: sentence 1", "without a tag"),
    ("(S (NN ()))", "1:8: sentence 1", "()"),
    ("(S (NN (a)) b)", "1:13: sentence 1", "beside brackets"),
    ("a\n(S (NN (a)))", "1:1: sentence 1", "outside brackets"),
    ("(S (NN (a))) b", "1:14: sentence 2", "outside brackets"),
    ("(S b (NN (a)))", "1:1: sentence 1", "beside brackets"),
    ("((a))", "1:2: sentence 1", "without a tag"),
    ("(S ((a)))", "1:4: sentence 1", "without a label"),
]

BRACKETED_WORDS = TextFormat(
    name="bracketed-words",
    sample=INDONESIAN + "15a\t(S (NN (a)))\n",
    layouts=LAYOUTS,
    malformed=MALFORMED,
    broken=Broken(
        "1\t(S (NN (a)))\n2\t(S (NN (b))\n3\t(S (NN (c)))) (S (NN (d)))\n4\t(S (NN (e)))\n",
        words=[("a",), ("c",), ("e",)],
        errors=["2:3: sentence 2", "3:15: sentence "],
    ),
    encoded=Encoded("(S (NN (é)))", {"latin-1": ("é",)}, "1: byte 0xe9 is not utf-8 text"),
    big=(
        Big("(S " * DEEP + "(A (a))" + ")" * DEEP, trees=1, errors=0),
        Big("(S (NN (a\n" * DEEP, trees=0, errors=DEEP),
    ),
    recognised=(INDONESIAN, "15a\t" + INDONESIAN[:90]),
    others=(
        "((S (NP (DT the) (NN dog))))",
        "#1 A1 a\n(X+np (,) (.) (,) (H+n a))",
        "(S (a b c))",
        "",
    ),
)


def test_trees() -> None:
    first, second, third = read_all(read_bracketed_words, INDONESIAN)[0]
    assert first == Tree.build(
        ["rumah makan", "(", "0", "dijual", "*-1", "0", "*T*-1", "."],
        ["NN", "Z", "CD", "VB", "-NONE-", "-NONE-", "-NONE-", "Z"],
        [
            (0, 8, "S"),
            (0, 3, "NP-SBJ-1"),
            (1, 2, "-LRB-"),
            (3, 7, "VP"),
            (4, 5, "NP"),
            (5, 7, "SBAR"),
            (6, 7, "S"),
        ],
    )
    assert (second.words, third.words) == (("Lari",), ("kota",))
