"""Bracket formats of single treebanks: what their files hold, their layouts and mistakes."""

from __future__ import annotations

from tests.readers.cases import DEEP, Big, Broken, Encoded, TextFormat, read_all

# Plain brackets, as most treebanks have them

PENN = """
( (S
    (NP-SBJ (-NONE- *T*-1) )
    (VP (VBZ is)
      (ADJP-PRD (JJ 1\\/2)))
    (. .) ))
( (FRAG (UH Yes)))
"""

BRACKETS = TextFormat(
    name="brackets",
    sample=PENN,
    trees=[
        r"( (S (NP-SBJ (-NONE- \*T\*-1)) (VP (VBZ is) (ADJP-PRD (JJ 1\/2))) (. .)))",
        "( (FRAG (UH Yes)))",
    ],
    layouts=[
        ("(NN word)", ["(NN word)"]),
        ("( (NN word))", ["( (NN word))"]),
        ("(S ((NN a)))", ["(S ( (NN a)))"]),
        ("(S(NN a)(NN b))", ["(S (NN a) (NN b))"]),
        ("(S\r\n\t(NN a )\x0b( NN b))\r\n", ["(S (NN a) (NN b))"]),
        ("(NN a)\r(S (NN b)\r(NN c))\r", ["(NN a)", "(S (NN b) (NN c))"]),
        ("(NN a\xa0b\u3000\x85c)", ["(NN a\xa0b\u3000\x85c)"]),
        ("(-LRB- -LRB-)", ["(-LRB- -LRB-)"]),
        ("(\\x28\\0 \\x28)", ["(\\x28 -LRB-)"]),
        ("(A a) (B b)(C c)", ["(A a)", "(B b)", "(C c)"]),
    ],
    malformed=[
        ("(A a)\n(S (B b)))", "2:10: sentence 3", "no bracket is open"),
        ("(A a)\n\n(S (B b)\n  (C (D d)", "3:1: sentence 2", "open brackets is at 4:3"),
        ("(S (B b)", "1:1: sentence 1", "not closed before the file ends"),
        ("(A a)\nword (B b)", "2:1: sentence 2", "found text outside brackets"),
        ("(S (A a) word)", "1:10: sentence 1", "'word' beside brackets"),
        ("(S\n(NP (A a)\n word))", "3:2: sentence 1", "the tree begins at line 1"),
        ("(NN New York)", "1:5: sentence 1", "(NN New York)"),
        ("(S (A a) (NN))", "1:10: sentence 1", "(NN)"),
        ("(S (A a) (NP ( )))", "1:14: sentence 1", "()"),
        ("(())", "1:2: sentence 1", "()"),
        ("()", "1:1: sentence 1", "()"),
        ("(S (NP (NN a)) (VP ))", "1:16: sentence 1", "(VP)"),
    ],
    broken=Broken(
        "(A a)\n(S (A b)\n(S (A c))\n  junk\n(A d))\n\n(A e) (A f)\n(S (A g)\n   (A h))\n(S (A i",
        words=[("a",), ("c",), ("d",), ("e",), ("f",), ("g", "h")],
        errors=["4:3: sentence 2", "4:3: sentence 4", "5:6: sentence 6", "10:7: sentence 10"],
    ),
    encoded=Encoded("(NN a)\n(NN é)", {"latin-1": ("a", "é")}, "2: byte 0xe9 is not utf-8 text"),
    big=(
        Big("(X " * 100_000 + "(A a)" + ")" * 100_000, trees=1, errors=0),
        Big("(S (A a)\n" * 32_000, trees=0, errors=32_000),
    ),
    recognised=("\n( (S (A a)\n  (B b)) )\n", "(NP (NP (A a) (B"),
    others=("", "((((((((((", "1\ta\tb", "a (S (A a))", "(S (A a b) (B c d))", "(N (a)) (N (b))"),
)

# Words in brackets of their own: spaces in words, empty elements beside nodes, broken lines

INDONESIAN = (
    "(S  (NP-SBJ-1  (NN\t  (rumah   makan)) (-LRB- (Z (&brl;))) (CD (0)))"
    " (VP  (VB (dijual)) (NP (*-1)) (SBAR (0) (S (*T*-1)))) (Z (.)))\n"
    "(S (VB (Lari))) (NP (NN (kota)))\n"
)


BRACKETED_WORDS = TextFormat(
    name="bracketed-words",
    sample=INDONESIAN + "15a\t(S (NN (a)))\n",
    trees=[
        r"(S (NP-SBJ-1 (NN rumah\x20makan) (-LRB- (Z -LRB-)) (CD 0)) (VP (VB dijual)"
        r" (NP (-NONE- \*-1)) (SBAR (-NONE- 0) (S (-NONE- \*T\*-1)))) (Z .))",
        "(S (VB Lari))",
        "(NP (NN kota))",
        "(S (NN a))",
    ],
    layouts=[
        ("(NN (a))", ["(NN a)"]),
        ("(S(NN(a))(CD( 0 ))(X(*U*)))", ["(S (NN a) (CD 0) (X (-NONE- \\*U\\*)))"]),
        ("\ufeff(S (NN (a)))\r\n\r\n(S (NN (b)))\r\n", ["(S (NN a))", "(S (NN b))"]),
        ("1\t(S (NN (a)))\n15a\t(S (NN (b)) (NN (c)))", ["(S (NN a))", "(S (NN b) (NN c))"]),
        ("((NN (a)))", ["( (NN a))"]),
        ("(S (X (&brr;)))", ["(S (X -RRB-))"]),
        ("(S (NN (a\u3000b)))", ["(S (NN a\u3000b))"]),
        ("", []),
        ("\n \n", []),
    ],
    malformed=[
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
        ("(S b (NN (a)))", "1:1: sentence 1", "beside brackets"),
        ("((a))", "1:2: sentence 1", "without a tag"),
        ("(S ((a)))", "1:4: sentence 1", "without a label"),
    ],
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
    others=("((S (NP (DT the) (NN a))))", "#1 A1 a\n(X+np (,) (.) (H+n a))", "(S (a b c))", ""),
)


# CorpusSearch: what counts as a word, and where a broken tree ends

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


PSD = TextFormat(
    name="psd",
    sample=ICELANDIC + JAPANESE,
    trees=[
        r"( (IP-MAT (NP-SBJ (N-N bók$-bók) (D-N $in-hinn)) (CP-REL (WNP-1 (-NONE- 0))"
        r" (C (-NONE- 0)) (IP-SUB (NP-SBJ (-NONE- \*T\*-1)) (VBDI Norður-lá-liggja)))"
        " (. ---) (, -)))",
        "( (FRAG (INTJ já-já)) (PU .-.))",
        r"( (IP-MAT (PP (NP;*SBJ* (-LRB- 「) (N 本)) (P が)) (NP-SBJ (-NONE- \*が\*))"
        r" (NP-TMP (NUM 0)) (CONJ (-NONE- \*)) (VB 読む)))",
    ],
    layouts=[
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
    ],
    malformed=[
        ("( (S (A a)) (ID 1)))", "1:20: sentence 2", "no bracket is open"),
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
    ],
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


def test_leaves_of_psd() -> None:
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
        (tree,) = read_all(PSD.read, f"( (S (X {text})) (ID 1))", lemmas=lemmas)[0]
        labels = ("", "S", "X") if tag == none else ("", "S")
        assert (tree.words, tree.tags, tree.labels) == ((word,), (tag,), labels), text
    for text in ("word", "-word", "word-"):
        (error,) = read_all(PSD.read, f"( (S (A {text})))", lemmas=True)[1]
        assert error == f"1:6: sentence 1: found '(A {text})', expected '(TAG word-lemma)'"


# Sinica: nodes with roles, marks outside the tree, and broken lines

CHINESE = (
    "#1:1.[11] S(agent:NP(property:V‧的(head:VH11:大|Head:DE:的)|Head:Nab:狗)|Head:VA4:睡)"
    "#。(PERIODCATEGORY)\r\n"
    "#2:.[12] NP(Head:Nab:門) # 、(PAUSECATEGORY)\r\n"
    "#3:7.2.[13] VP(head:Head:Nac:好)#\r\n"
)

START = "#1:1.[1] "

SINICA = TextFormat(
    name="sinica",
    sample=CHINESE,
    trees=[
        "(S (agent:NP (property:V‧的 (head:VH11 大) (Head:DE 的)) (Head:Nab 狗)) (Head:VA4 睡))",
        "(NP (Head:Nab 門))",
        "(VP (head:Head:Nac 好))",
    ],
    layouts=[
        ("#1:1.[1] NP(A:a)#", ["(NP (A a))"]),
        ("#1:1.[1] A:a#", ["(A a)"]),
        ("\ufeff\n#1:..[1]\tNP(A:a|NP(B:b))\u3000#\u3000!(MARK)  \n\n", ["(NP (A a) (NP (B b)))"]),
        ("#1:1.[1] NP(A[+x]:a#)#", ["(NP (A[+x] a#))"]),
        ("", []),
    ],
    malformed=[
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
    ],
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


# TBF: leaves of two atoms, empty subjects, and where a broken tree ends

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


TBF = TextFormat(
    name="tbf",
    sample=SPANISH,
    trees=[
        r"( (S (sn.e-SUJ (-NONE- \*0\*)) (neg-MOD (rn No)) (grup.verb (vmip3s0 leen))"
        r" (sn-CD (Fpa -LRB-) (W 1989) (Fpt -RRB-) (Fz \*) (Fg -)) (Fp .)))",
        "( (INC (np00000 Río_Grande)))",
    ],
    layouts=[
        ("((S (a b c)))", ["( (S (a b)))"]),
        ("((S (a b c))) ((S (d e f)))", ["( (S (a b)))", "( (S (d e)))"]),
        ("\ufeff(\r\n  (S\r\n    (a b c)))\r\n", ["( (S (a b)))"]),
        ("(S (a b\n  c))\n(S (d -Fpa-x e))", ["(S (a b))", "(S (d -LRB-x))"]),
        ("(a b c)", ["(a b)"]),
        ("", []),
    ],
    malformed=[
        ("(\n (S\n  (a b c))))", "3:12: sentence 2", "no bracket is open"),
        ("(\n (S (a b c))\n(\n (S (a b c)))", "1:1: sentence 1", "not closed"),
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
    ],
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
    others=("((S (DT a) (NN b)))", "(S (N (a b c)) (N (d)) (N (e)))", "#1 (b c d)\n(U a)", ""),
)


# VISL: marks, text with brackets, and entries that lack closing brackets

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


VISL = TextFormat(
    name="visl",
    sample=PORTUGUESE,
    trees=[
        "(STA+fcl (SUBJ+np (>N+art Um) (H+n gato) ({ -LRB-) (N<PRED+adj preto) (} -RRB-))"
        " (P+v-fin dorme) (. .))",
        "(UTT+adv Sim)",
        '(UTT+cu (« «) (CJT+num Um) (»" »"))',
    ],
    layouts=[
        ("#1 A a\n(X+n a)", ["(X+n a)"]),
        ("#1 A\n(X+np\n(H+n a)\n(,))\n", ["(X+np (H+n a) (, ,))"]),
        ("\ufeff#1 A a\r\n(X+np (H+n a)\r\n (--))\r\n\r\n", ["(X+np (H+n a) (-- --))"]),
        ("#1 A a\n(?+? a)\n#2 B b ((\n(X+np (+) (>N+n b))", ["(?+? a)", "(X+np (+ +) (>N+n b))"]),
        ("#comment (\n#7\n#1 A\n(X+n a)", ["(X+n a)"]),
        ("#comment\n", []),
        ("", []),
    ],
    malformed=[
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
    ],
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
