"""What is cut off labels and tags, for every shape that occurs in releases."""

from __future__ import annotations

import pytest
from hypothesis import given

from spmrl_bench.trees import Tree
from spmrl_bench.trees.transforms import LABEL_TRANSFORMS, TRANSFORMS, transform_named
from tests.trees.strategies import trees


def cut(name: str, *, label: str = "L", tag: str = "T") -> tuple[str, str]:
    """The label and the tag that the transform leaves."""
    tree = transform_named(name).apply(Tree.build(["a"], [tag], [(0, 1, label)]))
    assert isinstance(tree, Tree)
    assert tree.words == ("a",)
    return tree.labels[0], tree.tags[0]


@pytest.mark.parametrize(
    ("name", "whole", "rest"),
    [
        ("strip-visl-functions", "SUBJ+np", "np"),
        ("strip-visl-functions", "N<PRED+pp", "pp"),
        ("strip-visl-functions", "-P+vp", "vp"),
        ("strip-visl-functions", "P+vp-", "vp"),
        ("strip-visl-functions", "ADVL/N<[+1]+cu", "cu"),
        ("strip-visl-functions", "N<PRED/N<PRED[-3]+ap", "ap"),
        ("strip-visl-functions", "P+v-fin", "v-fin"),
        ("strip-visl-functions", ">N+pron-det", "pron-det"),
        ("strip-visl-functions", "H+prp-", "prp"),
        ("strip-visl-functions", "?+?", "?"),
        ("strip-visl-functions", "?+cu-", "cu"),
        ("strip-visl-functions", ",", ","),
        ("strip-visl-functions", "--", "--"),
        ("strip-visl-functions", "-", "-"),
        ("strip-visl-functions", "{", "{"),
        ("strip-visl-functions", "+", "+"),
        ("strip-visl-functions", "H+", "H+"),
        ("strip-visl-functions", "", ""),
        ("strip-roles", "theme:NP", "NP"),
        ("strip-roles", "topic[+theme]:NP", "NP"),
        ("strip-roles", "property:V‧的", "V‧的"),
        ("strip-roles", "head:Head:Nab", "Nab"),
        ("strip-roles", "NP", "NP"),
        ("strip-roles", ":", ":"),
        ("strip-roles", "theme:", "theme:"),
        ("strip-roles", "", ""),
        ("coarse-sinica-categories", "Nab", "Na"),
        ("coarse-sinica-categories", "Ndabd", "Nd"),
        ("coarse-sinica-categories", "Neqa", "Ne"),
        ("coarse-sinica-categories", "Nv4", "Nv"),
        ("coarse-sinica-categories", "Ng", "Ng"),
        ("coarse-sinica-categories", "VH11", "VH"),
        ("coarse-sinica-categories", "VA", "VA"),
        ("coarse-sinica-categories", "V_11", "V_1"),
        ("coarse-sinica-categories", "V_2", "V_2"),
        ("coarse-sinica-categories", "VC2[+NEG]", "VC"),
        ("coarse-sinica-categories", "VA4[+NEG,+ASP]", "VA"),
        ("coarse-sinica-categories", "Caa[P1}", "Ca"),
        ("coarse-sinica-categories", "Cbca", "Cb"),
        ("coarse-sinica-categories", "Dbab", "Db"),
        ("coarse-sinica-categories", "Dfa", "Df"),
        ("coarse-sinica-categories", "P07", "P"),
        ("coarse-sinica-categories", "P32[+part]", "P"),
        ("coarse-sinica-categories", "Ta", "T"),
        ("coarse-sinica-categories", "A", "A"),
        ("coarse-sinica-categories", "I", "I"),
        ("coarse-sinica-categories", "DM", "DM"),
        ("coarse-sinica-categories", "DE", "DE"),
        ("coarse-sinica-categories", "Str", "Str"),
        ("coarse-sinica-categories", "NP", "NP"),
        ("coarse-sinica-categories", "NP[+theme]", "NP"),
        ("coarse-sinica-categories", "VP", "VP"),
        ("coarse-sinica-categories", "PP", "PP"),
        ("coarse-sinica-categories", "GP", "GP"),
        ("coarse-sinica-categories", "N", "N"),
        ("coarse-sinica-categories", "V", "V"),
        ("coarse-sinica-categories", "S", "S"),
        ("coarse-sinica-categories", "ADV", "ADV"),
        ("coarse-sinica-categories", "VP‧的", "VP‧的"),
        ("coarse-sinica-categories", "得‧VP", "得‧VP"),
        ("coarse-sinica-categories", "DM‧地", "DM‧地"),
        ("coarse-sinica-categories", "interjection", "interjection"),
        ("coarse-sinica-categories", "-NONE-", "-NONE-"),
        ("coarse-sinica-categories", "TOP", "TOP"),
        ("coarse-sinica-categories", "[", "["),
        ("coarse-sinica-categories", "", ""),
    ],
)
def test_labels_and_tags(name: str, whole: str, rest: str) -> None:
    assert cut(name, label=whole, tag=whole) == (rest, rest)


@pytest.mark.parametrize(
    ("name", "label", "rest"),
    [
        ("strip-functions", "NP-SBJ", "NP"),
        ("strip-functions", "NP=2", "NP"),
        ("strip-functions", "NP-SBJ=2", "NP"),
        ("strip-functions", "PRT|ADVP", "PRT"),
        ("strip-functions", "-NONE-", "-NONE-"),
        ("strip-functions", "=", "="),
        ("strip-semantic-marks", "NP;*SBJ*", "NP"),
        ("strip-semantic-marks", "PP;*", "PP"),
        ("strip-semantic-marks", "NP-TMP;*", "NP-TMP"),
        ("strip-semantic-marks", "IP-MAT", "IP-MAT"),
        ("strip-semantic-marks", ";", ";"),
        ("strip-semantic-marks", "", ""),
        ("strip-cess-marks", "grup.nom.ms", "grup.nom"),
        ("strip-cess-marks", "grup.nom.s", "grup.nom"),
        ("strip-cess-marks", "grup.nom.co", "grup.nom"),
        ("strip-cess-marks", "grup.nom.ms.1n", "grup.nom"),
        ("strip-cess-marks", "grup.a.fp.co", "grup.a"),
        ("strip-cess-marks", "grup.verb", "grup.verb"),
        ("strip-cess-marks", "grup.adv", "grup.adv"),
        ("strip-cess-marks", "s.a.mp.x", "s.a"),
        ("strip-cess-marks", "s.a.ms.co", "s.a"),
        ("strip-cess-marks", "s.a.fp.1c", "s.a"),
        ("strip-cess-marks", "s.a", "s.a"),
        ("strip-cess-marks", "sa.co", "sa"),
        ("strip-cess-marks", "espec.fs", "espec"),
        ("strip-cess-marks", "espec", "espec"),
        ("strip-cess-marks", "sn", "sn"),
        ("strip-cess-marks", "sn.e.1n-SUJ", "sn-SUJ"),
        ("strip-cess-marks", "sn.co-CD.Q", "sn-CD.Q"),
        ("strip-cess-marks", "snp", "sn"),
        ("strip-cess-marks", "snl-SUJ", "sn-SUJ"),
        ("strip-cess-marks", "snd.co.j", "sn"),
        ("strip-cess-marks", "sp.x", "sp"),
        ("strip-cess-marks", "sp.co.j", "sp"),
        ("strip-cess-marks", "sadv.j", "sadv"),
        ("strip-cess-marks", "S", "S"),
        ("strip-cess-marks", "S*", "S"),
        ("strip-cess-marks", "S*.co", "S"),
        ("strip-cess-marks", "S.co.j", "S"),
        ("strip-cess-marks", "S.F.R", "S.F.R"),
        ("strip-cess-marks", "S.F.C*.co-CD", "S.F.C-CD"),
        ("strip-cess-marks", "S.F.AComp*.j.1c", "S.F.AComp"),
        ("strip-cess-marks", "S.F.AConc.co-AO", "S.F.AConc-AO"),
        ("strip-cess-marks", "S.NF.P.j", "S.NF.P"),
        ("strip-cess-marks", "S.NF.PA-CC", "S.NF.PA-CC"),
        ("strip-cess-marks", "S.NF.C-CD.NF2n.NFn", "S.NF.C-CD.NF2n.NFn"),
        ("strip-cess-marks", "morfema.verbal-PASS", "morfema.verbal-PASS"),
        ("strip-cess-marks", "morf.pron", "morf.pron"),
        ("strip-cess-marks", "conj.subord", "conj.subord"),
        ("strip-cess-marks", "INC", "INC"),
        ("strip-cess-marks", "*", "*"),
        ("strip-cess-marks", "", ""),
    ],
)
def test_labels_only(name: str, label: str, rest: str) -> None:
    assert cut(name, label=label, tag=label) == (rest, label)


@pytest.mark.parametrize(
    ("tag", "rest"),
    [
        ("ncms000", "nc"),
        ("np0000p", "np"),
        ("da0fs0", "da"),
        ("aq0msp", "aq"),
        ("vmip3s0", "vmi"),
        ("vsn0000", "vsn"),
        ("vmp00sm", "vmp"),
        ("sps00", "sp"),
        ("spcms", "sp"),
        ("p0300000", "p0"),
        ("rg", "rg"),
        ("i", "i"),
        ("Fpa", "Fpa"),
        ("Fc", "Fc"),
        ("W", "W"),
        ("Zm", "Zm"),
        ("X", "X"),
        ("-NONE-", "-NONE-"),
        ("", ""),
    ],
)
def test_eagles_tags(tag: str, rest: str) -> None:
    assert cut("coarse-eagles-tags", label=tag, tag=tag) == (tag, rest)


@pytest.mark.parametrize("transform", LABEL_TRANSFORMS)
@given(tree=trees())
def test_shape_and_names(transform: object, tree: Tree) -> None:
    """Words and spans stay, no name becomes empty, and a second time changes nothing."""
    name = transform.__name__.replace("_", "-")  # type: ignore[attr-defined]
    once = TRANSFORMS[name].apply(tree)
    assert isinstance(once, Tree)
    assert once.words == tree.words
    assert (once.spans == tree.spans).all()
    for before, after in zip((*tree.labels, *tree.tags), (*once.labels, *once.tags), strict=True):
        assert bool(before) == bool(after)
    assert TRANSFORMS[name].apply(once) is once
