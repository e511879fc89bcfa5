"""CorpusSearch files: what counts as a word, and where a broken tree ends."""

from __future__ import annotations

from spmrl_bench.readers.dialects import read_psd
from spmrl_bench.trees import Tree
from spmrl_bench.trees.transforms import drop_traces
from tests.readers.cases import DEEP, Big, Broken, Encoded, TextFormat, read_all

ICELANDIC = """\
( (IP-MAT (CODE <heading>)
\t  (NP-SBJ (N-N bók$-bók) (D-N $in-hinn))
\t  (CP-REL (WNP-1 0)
\t\t  (C 0)
\t\t  (IP-SUB (NP-SBJ *T*-1) (VBDI Norður<dash/>lá-liggja)))
\t  (. ---)
\t  (, -)) (ID 1899.BOOK,.1))

( (CODE {COM:picture}) (ID 1899.BOOK,.2))
( (FRAG (INTJ já-já)) (PU .-.) (ID 1899.BOOK,.3))
"""

JAPANESE = """
( (IP-MAT (PP (NP;*SBJ* (-LRB- 「) (N 本))
              (P が))
          (NP-SBJ *が*)
          (NP-TMP (NUM 0))
          (CONJ *)
          (VB 読む))
  (ID 1_book;JP))
"""

LAYOUTS = [
    ("( (S (A a)) (ID 1))", ["( (S (A a)))"]),
    ("((S (A a))(ID 1))((S(B b))(ID 2))", ["( (S (A a)))", "( (S (B b)))"]),
    ("\ufeff( (S (A a))\r\n  (ID 1))\r\n", ["( (S (A a)))"]),
    ("  ( (S (A a)) (ID 1))\n\n  ( (S (B b)) (ID 2))", ["( (S (A a)))", "( (S (B b)))"]),
    ("(S (A a))\n(S (B b))", ["(S (A a))", "(S (B b))"]),
    ("(A a)", ["(A a)"]),
    ("( (S (CODE x y) (NP (CODE z)) (A a)) (ID 1))", ["( (S (A a)))"]),
    ("( (S (CODE (B b) (C)) (A a)) (ID 1))", ["( (S (A a)))"]),
    ("( (S (NP (CODE))) (ID 1))\n( (A a) (ID a b))", ["( (A a))"]),
    ("", []),
    (" \r\n\t", []),
]
MALFORMED = [
    ("( (S (A a)) (ID 1)))", "1:20: sentence 2", "no bracket is open"),
    ("( (S (A a)) (ID 1)) b", "1:21: sentence 2", "outside brackets"),
    ("( (S (A a)) (ID 1)\n", "1:1: sentence 1", "not closed"),
    ("( (S (A a) (ID 1))\n( (B b) (ID 2))", "1:1: sentence 1", "not closed"),
    ("( (S (A a))\n (ID 1))\n( (S\n  (B", "3:1: sentence 2", "not closed"),
    ("( (S (A a) (B)) (ID 1))", "1:12: sentence 1", "(B)"),
    ("( (S ( a)))", "1:6: sentence 1", "(a)"),
    ("( (S (A a) ( )))", "1:12: sentence 1", "()"),
    ("( (S (NP (B b)) (NP (())))", "1:21: sentence 1", "without a label"),
    ("( (S (A a b)))", "1:6: sentence 1", "(A a b)"),
    ("( (S a (A b)))", "1:3: sentence 1", "beside brackets"),
    ("( (S (A a) b))", "1:12: sentence 1", "beside brackets"),
    ("( (S (A a)) (ID 1))\n( (S (A a)))", "2:1: sentence 2", "without '(ID name)'"),
    ("( (A a) (ID 1) ( (B b) (ID 2)))", "1:16: sentence 1", "without a label"),
    ("( (A a) (ID 1) (ID 2))", "1:16: sentence 1", "second ID"),
    ("( (A a) (ID))", "1:9: sentence 1", "without a name"),
    (f"( (A {'x' * 50} b) (ID 1))", "1:3: sentence 1", "xxx...)"),
]

PSD = TextFormat(
    name="psd",
    sample=ICELANDIC + JAPANESE,
    layouts=LAYOUTS,
    malformed=MALFORMED,
    broken=Broken(
        "( (S (A a)) (ID 1))\n( (S (B b) (ID 2))\n( (S (C c))) (ID 3))\n( (S (D d)) (ID 4))\n",
        words=[("a",), ("d",)],
        errors=["2:1: sentence 2:", "3:1: sentence 3:"],
    ),
    encoded=Encoded("( (A blå) (ID 1))", {"latin-1": ("blå",)}, "1: byte 0xe5 is not utf-8 text"),
    big=(
        Big("(" + "(S " * DEEP + "(A a)" + ")" * DEEP + ")", trees=1, errors=0),
        Big("(S " * DEEP, trees=0, errors=1),
        Big("( (S\n (A\n" * DEEP, trees=0, errors=DEEP),
    ),
    recognised=(ICELANDIC, JAPANESE, ICELANDIC[:400]),
    others=("( (S (NP (A a))))", "#1 A a (ID 1))\n(UTT+n a)", ""),
)


def test_words_lemmas_and_metadata() -> None:
    first, second = read_all(read_psd, ICELANDIC, lemmas=True)[0]
    assert first == Tree.build(
        ["bók$", "$in", "0", "0", "*T*-1", "Norður-lá", "-", "-"],
        ["N-N", "D-N", "-NONE-", "-NONE-", "-NONE-", "VBDI", ".", ","],
        [
            (0, 8, ""),
            (0, 8, "IP-MAT"),
            (0, 2, "NP-SBJ"),
            (2, 6, "CP-REL"),
            (2, 3, "WNP-1"),
            (3, 4, "C"),
            (4, 6, "IP-SUB"),
            (4, 5, "NP-SBJ"),
        ],
    )
    assert second == Tree.build(["já", "."], ["INTJ", "PU"], [(0, 2, ""), (0, 1, "FRAG")])


def test_empty_elements_in_any_script() -> None:
    (tree,) = read_all(read_psd, JAPANESE)[0]
    assert tree.words == ("「", "本", "が", "*が*", "0", "*", "読む")
    assert tree.tags == ("-LRB-", "N", "P", "-NONE-", "NUM", "-NONE-", "VB")
    assert tree.labels == ("", "IP-MAT", "PP", "NP;*SBJ*", "NP-SBJ", "NP-TMP", "CONJ")
    overt = drop_traces(tree)
    assert overt is not None
    assert overt.labels == ("", "IP-MAT", "PP", "NP;*SBJ*", "NP-TMP")


def test_leaves() -> None:
    """Text of a leaf, whether it has a lemma, its word and tag; an empty element is in a node."""
    none = "-NONE-"
    for text, lemmas, word, tag in [
        ("*", False, "*", none), ("*-1", False, "*-1", none), ("*T*-12", True, "*T*-12", none),
        ("*con*-D", True, "*con*-D", none), ("*speaker+hearer*", False, "*speaker+hearer*", none),
        ("0", True, "0", none), ("**", False, "**", "X"), ("*a", False, "*a", "X"),
        ("0-0", True, "0", "X"), ("a-b-c", True, "a-b", "X"), ("a-b-c", False, "a-b-c", "X"),
        ("-", True, "-", "X"), ("--", True, "--", "X"), ("---", True, "-", "X"),
        ("-----", True, "--", "X"), (",-,", True, ",", "X"), ("-LRB-", False, "(", "X"),
        ("-LRB---RRB-", False, "(-)", "X"), ("<dash/>-<dash/>", True, "-", "X"),
        ("a\u3000b", False, "a\u3000b", "X"),
    ]:  # fmt: skip
        (tree,) = read_all(read_psd, f"( (S (X {text})) (ID 1))", lemmas=lemmas)[0]
        labels = ("", "S", "X") if tag == none else ("", "S")
        assert (tree.words, tree.tags, tree.labels) == ((word,), (tag,), labels), text
    for text in ("word", "-word", "word-"):
        (error,) = read_all(read_psd, f"( (S (A {text})))", lemmas=True)[1]
        assert error == f"1:6: sentence 1: found '(A {text})', expected '(TAG word-lemma)'"
