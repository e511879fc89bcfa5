"""Properties of German that the generated trees must have, checked without the engine."""

from __future__ import annotations

from collections import Counter

import pytest

from spmrl_bench.trees.tree import Tree
from tests.treebanks.mini.language import Language
from tests.treebanks.mini.nodes import Node, labelled

LABELS = {"TOP", "S", "CS", "VP", "CVP", "VZ", "NP", "CNP", "PP", "AP", "CAP", "AVP", "MPN", "NM"}
TAGS = {
    "ART", "NN", "NE", "ADJA", "ADJD", "APPR", "APPRART", "VVFIN", "VVINF", "VVPP", "VVIZU",
    "VAFIN", "VAINF", "VAPP", "VMFIN", "PTKVZ", "PTKZU", "PTKNEG", "KOUS", "KON", "PPER", "PRF",
    "PRELS", "PDAT", "PIAT", "PIS", "PPOSAT", "PWS", "PWAV", "ADV", "CARD", "$.", "$,",
    "$(",
}  # fmt: skip
# What makes the sentences grammatical is a matter of the grammar, not of the program.
pytestmark = pytest.mark.campaign

LANGUAGE = Language(
    name="german", root="TOP", labels=LABELS, tags=TAGS, shortest=(1, 1), mean=(12, 16),
    known=3000, unseen=(0.04, 0.10),
)  # fmt: skip
FINITE = {"VVFIN", "VAFIN", "VMFIN"}
# Article form -> endings an adjective may have after it (weak after der, mixed after ein).
AFTER_ARTICLE = {
    "der": "e en", "die": "e en", "das": "e", "den": "en", "dem": "en", "des": "en",
    "ein": "er es", "eine": "e", "einen": "en", "einem": "en", "einer": "en", "eines": "en",
}  # fmt: skip


def test_main_clauses_are_verb_second_and_others_verb_final(nodes: list[Node]) -> None:
    kinds: Counter[str] = Counter()
    for clause in labelled(nodes, "S"):
        tree, below = clause.tree, clause.labels
        if below[0] == "KOUS" or "PRELS" in tree.tags[clause.start : clause.start + 2]:
            kinds["final"] += 1
            assert below[-1] in FINITE, tree.words
            assert sum(tag in FINITE for tag in below) == 1
        elif below[0] in FINITE:
            kinds["first"] += 1
            assert tree.words[-1] == "?"
        elif below[0] == "$(":
            kinds["quoted"] += 1
            assert below[:5] == ["$(", "S", "$(", "$,", "VVFIN"]
        else:
            kinds["second"] += 1
            field = below[1:] if below[1] != "$," else below[2:]  # after a fronted clause
            assert field[0] in FINITE, tree.words
            assert not any(tag in FINITE for tag in field[1:])
    assert all(kinds[kind] > 20 for kind in ("final", "first", "quoted", "second"))


def test_separated_particles_close_main_clauses(nodes: list[Node]) -> None:
    seen = 0
    for clause in labelled(nodes, "S"):
        below = clause.labels
        if "PTKVZ" in below:
            seen += 1
            rest = below[below.index("PTKVZ") + 1 :]
            assert "VVFIN" in below
            assert rest in ([], ["$,", "S"])
    assert seen > 50


def test_tiger_shape(nodes: list[Node]) -> None:
    for node in labelled(nodes, *LABELS):
        tree, label, below = node.tree, node.label, node.labels
        if label in {"NP", "VP", "CNP", "CS", "CVP", "CAP", "AP", "AVP", "MPN", "NM", "VZ"}:
            assert len(below) > 1, tree.words
        if label == "PP":
            assert below[0] in {"APPR", "APPRART", "ADV"}
            assert "NP" not in below[1:2]
        if label in {"VP", "CVP"}:
            assert not FINITE & set(below)
        if label in {"CNP", "CS", "CVP", "CAP"}:
            assert "KON" in below or label == "CS"
        if label == "VZ":
            assert below == ["PTKZU", "VVINF"]


def test_adjectives_decline_after_articles(trees: list[Tree]) -> None:
    checked = 0
    for tree in trees:
        for position in range(len(tree) - 2):
            if list(tree.tags[position : position + 3]) == ["ART", "ADJA", "NN"]:
                article, adjective, _ = (w.lower() for w in tree.words[position : position + 3])
                endings = AFTER_ARTICLE[article].split()
                ending = next(e for e in ("en", "er", "es", "em", "e") if adjective.endswith(e))
                assert ending in endings, tree.words[position : position + 3]
                checked += 1
    assert checked > 300


def test_prepositions_govern_their_case(trees: list[Tree]) -> None:
    """``mit`` and ``nach`` take the dative, ``gegen`` the accusative, ``wegen`` the genitive."""
    legal = {
        "mit": {"dem", "der", "den", "einem", "einer"},
        "nach": {"dem", "der", "den", "einem", "einer"},
        "gegen": {"den", "die", "das", "einen", "eine", "ein"},
        "wegen": {"des", "der", "eines", "einer"},
    }
    checked: Counter[str] = Counter()
    for tree in trees:
        lowered = [word.lower() for word in tree.words]
        for word, following, tag in zip(lowered, lowered[1:], tree.tags[1:], strict=False):
            if word in legal and tag == "ART":
                checked[word] += 1
                assert following in legal[word], tree.words
    assert set(checked) == set(legal)


def test_subjects_agree_with_verbs(trees: list[Tree]) -> None:
    """Clauses that begin with ich, er or wir have the auxiliary of that person."""
    forms = {
        "ich": {"habe", "hatte", "bin", "war", "werde", "wurde"},
        "er": {"hat", "hatte", "ist", "war", "wird", "wurde"},
        "wir": {"haben", "hatten", "sind", "waren", "werden", "wurden"},
    }
    checked = 0
    for tree in trees:
        if tree.tags[:2] == ("PPER", "VAFIN") and tree.words[0].lower() in forms:
            checked += 1
            assert tree.words[1] in forms[tree.words[0].lower()], tree.words
    assert checked > 10


def test_relative_pronouns_agree_with_plain_antecedents(trees: list[Tree]) -> None:
    """``die`` never follows a noun phrase of ``das`` or ``ein``, nor ``das`` one of ``die``."""
    checked = 0
    for tree in trees:
        for position, tag in enumerate(tree.tags):
            if tag == "PRELS" and tree.tags[position - 3 : position] == ("ART", "NN", "$,"):
                article = tree.words[position - 3].lower()
                checked += 1
                if article in {"das", "ein", "des", "eines", "dem", "einem"}:
                    assert tree.words[position] not in {"die", "denen"}, tree.words
                if article in {"die", "eine", "einer", "den", "einen"}:
                    assert tree.words[position] != "das", tree.words
    assert checked > 40


def test_nouns_have_capitals(trees: list[Tree]) -> None:
    for tree in trees:
        for word, tag in zip(tree.words, tree.tags, strict=True):
            assert tag not in {"NN", "NE"} or word[0].isupper(), word
