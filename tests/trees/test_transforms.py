"""The named transforms: what they change, in every shape that occurs in releases, and what not."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spmrl_bench.errors import SpmrlError
from spmrl_bench.readers.brackets import parse_brackets
from spmrl_bench.trees import DependencyTree, Tree
from spmrl_bench.trees.escapes import write_brackets
from spmrl_bench.trees.transforms import (
    BUCKWALTER,
    HEBREW_FINALS,
    HEBREW_LETTERS,
    HEBREW_SIGNS,
    TRANSFORMS,
    arabic_script,
    drop_traces,
    ensure_top,
    hebrew_script,
    merge_x_over_x,
    strip_root,
    transform_named,
    word_transforms,
)
from tests.timing import takes_linear_time
from tests.trees.strategies import trees

OF_TREES = [transform.name for transform in TRANSFORMS.values() if transform.stage == "tree"]


def applied(name: str, text: str) -> str:
    return write_brackets(transform_named(name).apply(parse_brackets(text)))


@pytest.mark.parametrize("name", OF_TREES)
@given(tree=trees())
def test_tree_transforms_give_valid_trees_and_settle(name: str, tree: Tree) -> None:
    apply = transform_named(name).apply
    once = apply(tree)
    if once is None:
        return  # that no overt word is lost is for the tests of the transform
    assert isinstance(once, Tree)
    assert Tree.build(once.words, once.tags, once.constituents()) == once
    assert not once.spans.flags.writeable
    assert apply(once) is once
    if name.startswith(("strip-", "coarse-")) and name != "strip-root":
        assert (once.words, once.spans.tolist()) == (tree.words, tree.spans.tolist())
        before, after = (*tree.labels, *tree.tags), (*once.labels, *once.tags)
        assert [*map(bool, before)] == [*map(bool, after)]  # no name becomes empty


def test_the_registry() -> None:
    assert {transform.stage for transform in TRANSFORMS.values()} == {"text", "graph", "tree"}
    for name, transform in TRANSFORMS.items():
        assert transform.name == name
        assert re.fullmatch("[a-z]+(-[a-z]+)*", name)
    assert [name for name in TRANSFORMS if TRANSFORMS[name].word] == [
        "arabic-script",
        "hebrew-script",
    ]
    with pytest.raises(SpmrlError, match=r"'drop-trace'\. Did you mean drop-traces"):
        transform_named("drop-trace")


def test_strip_features_works_on_text_with_spaces() -> None:
    strip_features = transform_named("strip-features").apply
    text = "(NP##n=sg x|l=a b## (NN##lem=( ## Wort) (CARD 1#2))\n(X##a## b)"
    assert strip_features(text) == "(NP (NN Wort) (CARD 1#2))\n(X b)"
    open_pair = "(NN a##)\n(NN b##)"
    assert strip_features(open_pair) == open_pair


def test_strip_markup_empties_lines_and_keeps_their_number() -> None:
    for text, expected in [
        ("<DOC>\n<S ID=1>\n( (NN a) )\n</S>\n</DOC>", "\n\n( (NN a) )\n\n"),
        ("<S ID=1>\r\n( (NN a))\r\n </S>\t\r\n", "\r\n( (NN a))\r\n\r\n"),
        ("<S>\r( (NN a))\r</S>\r", "\r( (NN a))\r\r"),
        ("<DATE> 10 May </DATE>\n(A b)\n", "\n(A b)\n"),
        *[(text, text) for text in ("(PU <)\n(PU >)\n < b\n(X <a>)\n", "<a\n(X b)\nc>", "")],
        ("\u2028<a>\n", "\u2028<a>\n"),
    ]:
        assert transform_named("strip-markup").apply(text) == expected, text


@pytest.mark.parametrize("name", ["strip-features", "strip-markup"])
def test_text_transforms_take_linear_time(name: str) -> None:
    apply = transform_named(name).apply
    for unit in ["##", "#", "## ", "<", "<>", "< ", "> ", " ", "\n<", "<a>\r", "(A##x## b)\n"]:
        texts = ["<" + unit * (size // len(unit)) + "x" for size in (1 << 13, 1 << 18)]
        assert takes_linear_time(apply, *texts), unit


#: By transform: what is left of texts, those that stay, and whether labels and tags change.
NAMES = {
    "strip-functions": (
        "NP-SBJ-1 NP, NP-SBJ NP, NP=2 NP, NP-SBJ=2 NP, S-TPC=1 S, ADVP|PRT ADVP, PRT|ADVP PRT,"
        " ADVP|PRT-CLR ADVP, PP-DE_OBJ PP",
        "-LRB- -NONE- -X - =",
        (True, False),
    ),
    "strip-tag-functions": ("CLS-SUJ CLS, CLR-AFF.DEMSUJ CLR", "P+D -LRB- P$ : --", (False, True)),
    "strip-visl-functions": (
        "SUBJ+np np, N<PRED+pp pp, -P+vp vp, P+vp- vp, ADVL/N<[+1]+cu cu, N<PRED/N<PRED[-3]+ap ap,"
        " P+v-fin v-fin, >N+pron-det pron-det, H+prp- prp, ?+? ?, ?+cu- cu",
        ", -- - { + H+",
        (True, True),
    ),
    "strip-semantic-marks": ("NP;*SBJ* NP, PP;* PP, NP-TMP;* NP-TMP", "IP-MAT ;", (True, False)),
    "strip-cess-marks": (
        "grup.nom.ms grup.nom, grup.nom.s grup.nom, grup.nom.co grup.nom, grup.nom.ms.1n grup.nom,"
        " grup.a.fp.co grup.a, s.a.mp.x s.a, s.a.ms.co s.a, s.a.fp.1c s.a, sa.co sa,"
        " espec.fs espec, sn.e.1n-SUJ sn-SUJ, sn.co-CD.Q sn-CD.Q, snp sn, snl-SUJ sn-SUJ,"
        " snd.co.j sn, sp.x sp, sp.co.j sp, sadv.j sadv, S* S, S*.co S, S.co.j S,"
        " S.F.C*.co-CD S.F.C-CD, S.F.AComp*.j.1c S.F.AComp, S.F.AConc.co-AO S.F.AConc-AO,"
        " S.NF.P.j S.NF.P",
        "grup.verb grup.adv s.a espec sn S S.F.R S.NF.PA-CC S.NF.C-CD.NF2n.NFn"
        " morfema.verbal-PASS morf.pron conj.subord INC *",
        (True, False),
    ),
    "coarse-eagles-tags": (
        "ncms000 nc, np0000p np, da0fs0 da, aq0msp aq, vmip3s0 vmi, vsn0000 vsn, vmp00sm vmp,"
        " sps00 sp, spcms sp, p0300000 p0",
        "rg i Fpa Fc W Zm X -NONE-",
        (False, True),
    ),
    "strip-roles": (
        "theme:NP NP, topic[+theme]:NP NP, property:V‧的 V‧的, head:Head:Nab Nab",
        "NP : theme:",
        (True, True),
    ),
    "coarse-sinica-categories": (
        "Nab Na, Ndabd Nd, Neqa Ne, Nv4 Nv, VH11 VH, V_11 V_1, VC2[+NEG] VC, VA4[+NEG,+ASP] VA,"
        " Caa[P1} Ca, Cbca Cb, Dbab Db, Dfa Df, P07 P, P32[+part] P, Ta T, NP[+theme] NP",
        "Ng VA V_2 A I DM DE Str NP VP PP GP N V S ADV VP‧的 得‧VP DM‧地 interjection -NONE- TOP [",
        (True, True),
    ),
}


def test_what_is_left_of_labels_and_tags() -> None:
    for name in NAMES:
        cut, same, (labels, tags) = NAMES[name]
        rows = [tuple(row.split(" ")) for row in cut.split(", ")]
        for text, left in [*rows, *zip(same.split(), same.split(), strict=True), ("", "")]:
            found = transform_named(name).apply(Tree.build(["a-b"], [text], [(0, 1, text)]))
            expected = Tree.build(
                ["a-b"], [left if tags else text], [(0, 1, left if labels else text)]
            )
            assert found == expected, text


def test_what_is_left_of_constituents() -> None:
    for name, text, expected in [
        ("drop-traces", "(S (NP (-NONE- *)) (VP (V a) (NP (NP (-NONE- 0)))))", "(S (VP (V a)))"),
        ("drop-traces", "(S (-NONE- *) (NP (N a)) (-NONE- *) (. .))", "(S (NP (N a)) (. .))"),
        ("drop-traces", "(S (V a) (SBAR (-NONE- 0) (S (-NONE- *T*-1))))", "(S (V a))"),
        ("vroot-over-words", "(NN a)", "(VROOT (NN a))"),
        ("vroot-over-words", "( (NN a))", "(VROOT (NN a))"),
        ("vroot-over-words", "( ( (NN a)))", "(VROOT (NN a))"),
        *[
            ("vroot-over-words", text, text)
            for text in ("(NP (NN a))", "(TOP (NN a))", "( (NN a) (NN b))", "( (NP (NN a)))")
        ],
        ("merge-x-over-x", "(NP (NP (N a)))", "(NP (N a))"),
        ("merge-x-over-x", "(NP (NP (NP (N a) (N b))))", "(NP (N a) (N b))"),
        ("merge-x-over-x", "(S (NP (NP (N a))) (NP (NP (N b))))", "(S (NP (N a)) (NP (N b)))"),
        ("merge-x-over-x", "(A (A (B (B (A (N a))))))", "(A (B (A (N a))))"),
        *[
            ("merge-x-over-x", text, text)
            for text in (
                "(NP (NP (N a)) (N b))", "(NP (S (NP (N a))))", "(NP-A (NP-B (N a)))",
                "(N (N a))", "(N a)",
            )
        ],
    ]:  # fmt: skip
        assert applied(name, text) == expected, (name, text)
    assert drop_traces(parse_brackets("(S (NP (-NONE- *)))")) is None


@given(tree=trees())
def test_drop_traces_keeps_all_other_words_and_what_covers_them(tree: Tree) -> None:
    tags = tuple("-NONE-" if len(tag) % 2 else tag for tag in tree.tags)
    overt = [i for i, tag in enumerate(tags) if tag != "-NONE-"]
    left = drop_traces(Tree(tree.words, tags, tree.labels, tree.spans))
    if left is None:
        assert not overt
        return
    assert left.words == tuple(tree.words[i] for i in overt)
    assert left.tags == tuple(tags[i] for i in overt)
    covers = [(label, [i for i in overt if a <= i < b]) for a, b, label in tree.constituents()]
    found = [(label, overt[a:b]) for a, b, label in left.constituents()]
    assert found == [(label, words) for label, words in covers if words]


def test_roots() -> None:
    for text, stripped, with_top in [
        ("( (S (N a)))", "(S (N a))", "(TOP (S (N a)))"),
        ("(TOP (S (N a) (V b)))", "(S (N a) (V b))", "(TOP (S (N a) (V b)))"),
        ("(ROOT ( (S1 (NP (N a)))))", "(NP (N a))", "(TOP (NP (N a)))"),
        ("(TOP (S (N a)) (. .))", "(TOP (S (N a)) (. .))", "(TOP (S (N a)) (. .))"),
        ("( (S (N a)) (. .))", "(TOP (S (N a)) (. .))", "(TOP (S (N a)) (. .))"),
        ("( (N a))", "(TOP (N a))", "(TOP (N a))"),
        ("(ROOT (N a))", "(ROOT (N a))", "(TOP (N a))"),
        ("(N a)", "(TOP (N a))", "(TOP (N a))"),
        ("(S (S (N a)))", "(S (S (N a)))", "(TOP (S (S (N a))))"),
        ("(VROOT (S (N a)))", "(VROOT (S (N a)))", "(TOP (S (N a)))"),
        ("(TOP (TOP (S (N a))))", "(S (N a))", "(TOP (S (N a)))"),
        ("(S (TOP (N a)) (TOP (N b)))",) * 2 + ("(TOP (S (TOP (N a)) (TOP (N b))))",),
        ("(TOP (TOP (N a)) (TOP (N b)))",) * 3,
    ]:
        tree = parse_brackets(text)
        assert write_brackets(strip_root(tree)) == stripped, text
        assert write_brackets(ensure_top(tree)) == with_top, text


@given(tree=trees())
def test_roots_have_names_and_chains_no_label_twice(tree: Tree) -> None:
    assert next(strip_root(tree).constituents())[2] != ""
    assert next(ensure_top(tree).constituents()) == (0, len(tree), "TOP")
    rows = list(merge_x_over_x(tree).constituents())
    assert all(above != below for above, below in pairwise(rows))
    assert set(rows) == set(tree.constituents())


ARABIC = (
    "ktAb كتاب, Al$ms الشمس, >mAm أمام, OmAm أمام, IslAm إسلام, <slAm إسلام, |vAr آثار,"
    " ms&wl مسؤول, msWwl مسؤول, $y' شيء, bi}r بِئر, mdrsp مدرسة, mad~a م\u064eد\u0651\u064e,"
    " h`*A هٰذا, {bn ٱبن, ElY على, kitAbFA كِتابًا, 1998 1998, . ., -PLUS- +, -MINUS- -, -LRB- (,"
    " -LSB- -LSB-"
)
HEBREW = (
    'FLWM שלום, ILDIM ילדים, ARC ארץ, KSP כסף, MLK מלך, GN גן, CHUL צה"ל, 50O 50%, JWB טוב,'
    ' EZQX עזקח, IRWFLIM ירושלים, 1990 1990, yyDOT ., yyELPS ..., yyQUOT "'
)


def test_words() -> None:
    for change, table in ((arabic_script, ARABIC), (hebrew_script, HEBREW)):
        rows = [row.split(" ") for row in table.split(", ")]
        assert [[latin, change(latin)] for latin, _ in rows] == rows
        assert change("") == ""
    for name, sign in HEBREW_SIGNS.items():
        assert hebrew_script(name) == hebrew_script(sign) == sign


@given(st.text(alphabet="".join(BUCKWALTER) + "0123456789.,:", max_size=12))
def test_every_arabic_letter_comes_back(word: str) -> None:
    assert arabic_script("".join(BUCKWALTER.get(c, c) for c in word)) == word


LATIN = st.text(alphabet="".join(HEBREW_LETTERS.values()) + "0123456789-", max_size=12)


@given(LATIN.filter(lambda word: word not in ("U", "-")))
def test_hebrew_letters_by_place(word: str) -> None:
    hebrew = hebrew_script(word)
    letters = {final: letter for letter, final in HEBREW_FINALS.items()}  # Latin has no finals
    plain = (letters.get(letter, letter) for letter in hebrew)
    assert "".join(HEBREW_LETTERS.get(letter, letter) for letter in plain) == word
    assert hebrew_script(hebrew) == hebrew
    if word:
        assert hebrew[-1] not in HEBREW_FINALS
        assert not set(hebrew[:-1]) & set(HEBREW_FINALS.values())


def test_transforms_of_words_change_nothing_else_in_trees_of_both_kinds() -> None:
    words, tags = ["w", "ktb", "yyDOT"], ["CC", "VBD", "yyDOT"]
    tree = Tree.build(words, tags, [(0, 3, "S"), (1, 2, "VP")])
    arcs = DependencyTree.build(words, tags, [2, 0, 2], ["x", "root", "y"])
    (hebrew,) = word_transforms(["drop-traces", "hebrew-script"])
    changed = Tree.build(["w", "ktb", "."], tags, tree.constituents())
    assert transform_named("hebrew-script").apply(tree) == changed
    assert hebrew(arcs) == DependencyTree.build(changed.words, tags, [2, 0, 2], ["x", "root", "y"])
    arabic = transform_named("arabic-script").apply(tree)
    assert arabic.words[:2] == ("و", "كتب")
    assert (arabic.tags, [*arabic.constituents()]) == (tree.tags, [*tree.constituents()])
