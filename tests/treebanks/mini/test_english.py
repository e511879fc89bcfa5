"""The English mini grammar gives grammatical, varied trees in the style of the Penn Treebank."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest

from spmrl_bench.trees.tree import Tree
from tests.treebanks.mini.language import Language
from tests.treebanks.mini.nodes import Node, labelled

# What makes the sentences grammatical is a matter of the grammar, not of the program.
pytestmark = pytest.mark.campaign

LANGUAGE = Language(
    name="english",
    root="TOP",
    labels={
        "TOP", "S", "SBAR", "SBARQ", "SQ", "SINV", "FRAG", "PRN", "NP", "VP", "PP", "ADJP", "ADVP",
        "PRT", "QP", "WHNP", "WHADVP", "WHADJP",
    },
    tags={
        "DT", "NN", "NNS", "NNP", "NNPS", "PRP", "PRP$", "VB", "VBD", "VBZ", "VBP", "VBG", "VBN",
        "MD", "TO", "IN", "CC", "CD", "JJ", "JJR", "JJS", "RB", "RBR", "RBS", "RP", "WDT", "WP",
        "WP$", "WRB", "POS", "EX", "$", ",", ".", ":", "``", "''", "-LRB-", "-RRB-",
    },
    shortest=(1, 2),
    longest=(36, 42),
    mean=(12, 16.5),
    known=3000,
    unseen=(0.03, 0.10),
)  # fmt: skip
BE_FORMS = {"be", "am", "is", "are", "was", "were", "been", "being", "'m", "'re"}
SINGULAR_ONLY = {"a", "an", "every", "each", "another", "this", "that"}
PLURAL_ONLY = {"these", "those", "all", "both"}


def head_number(subject: Node) -> str | None:
    """Number of a simple subject: of its last noun or its pronoun; None where it is not simple."""
    tags, last = subject.tags, subject.words[-1].lower()
    if tags == ("PRP",):
        return {"he": "sg", "she": "sg", "it": "sg", "i": "i"}.get(last, "pl")
    if set(tags) <= {"DT", "JJ", "JJR", "JJS", "NN", "NNS", "PRP$"}:
        return {"NN": "sg", "NNS": "pl"}.get(tags[-1])
    return None


def test_every_sentence_has_one_phrase(roots: list[Node]) -> None:
    assert all(len(root.below) == 1 for root in roots)


def test_determiners_agree_with_their_noun(nodes: list[Node]) -> None:
    checked = 0
    for phrase in labelled(nodes, "NP"):
        first, last = phrase.below[0], phrase.below[-1]
        if first is last or first.label != "DT" or last.label not in ("NN", "NNS"):
            continue
        word = first.word.lower()
        if word in SINGULAR_ONLY | PLURAL_ONLY:
            checked += 1
            assert (last.label == "NN") == (word in SINGULAR_ONLY), str(phrase)
    assert checked > 300


def test_subject_and_finite_verb_agree(nodes: list[Node]) -> None:
    checked = {"sg": 0, "pl": 0, "i": 0}
    for clause in labelled(nodes, "S"):
        for left, right in pairwise(clause.below):
            if left.label != "NP" or right.label != "VP":
                continue
            number = head_number(left)
            verb, tag = right.word.lower(), right.tags[0]
            if number is None or tag not in ("VBZ", "VBP", "VBD"):
                continue
            checked[number] += 1
            if tag == "VBD":
                assert not (verb == "was" and number == "pl"), str(clause)
                assert not (verb == "were" and number != "pl"), str(clause)
            else:
                assert (tag == "VBZ") == (number == "sg"), str(clause)
                assert verb != "are" or number == "pl", str(clause)
    assert checked["sg"] > 360
    assert checked["pl"] > 180
    assert checked["i"] > 5


def test_pronouns_have_the_case_of_their_place(nodes: list[Node]) -> None:
    subjects = {"i", "he", "she", "we", "they", "it", "you"}
    objects = {"me", "him", "her", "us", "them", "it", "you"}
    checked = 0
    for phrase in labelled(nodes, "PP", "VP"):
        for part in phrase.below[1:]:
            if part.label == "NP" and part.tags == ("PRP",):
                checked += 1
                assert part.word.lower() in objects, str(phrase)
    for clause in labelled(nodes, "S"):
        for left, right in pairwise(clause.below):
            finite = right.label == "VP" and right.tags[0] in ("VBZ", "VBP", "VBD", "MD")
            if finite and left.label == "NP" and left.tags == ("PRP",):
                checked += 1
                assert left.word.lower() in subjects, str(clause)
    assert checked > 480


def test_auxiliaries_govern_the_right_verb_form(nodes: list[Node]) -> None:
    governed = {
        "MD": {"VB"},
        "TO": {"VB"},
        "do": {"VB"},
        "have": {"VBN"},
        "be": {"VBG", "VBN"},
    }
    lemmas = dict.fromkeys(["do", "does", "did"], "do")
    lemmas |= dict.fromkeys(["have", "has", "had", "'ve"], "have")
    lemmas |= dict.fromkeys(BE_FORMS, "be")
    checked = set()
    for phrase in labelled(nodes, "VP"):
        first, last = phrase.below[0], phrase.below[-1]
        if last.label != "VP" or first.label == "VP" or last.tags[0] == "CC":
            continue
        tag = first.tags[0]
        key = tag if tag in ("MD", "TO") else lemmas.get(first.word.lower())
        below = last.tags[0]
        if key is not None and below.startswith("VB"):
            checked.add(key)
            assert below in governed[key], str(phrase)
    assert checked == set(governed)


def test_the_indefinite_article_fits_the_next_word(trees: list[Tree]) -> None:
    text = "\n".join(" ".join(tree.words) for tree in trees).lower()
    assert len(re.findall(r"(?<!\S)an [aeiouh8]", text)) > 60
    assert not re.findall(r"(?<!\S)a [aeio](?!ne)\S*", text)
    assert not re.findall(r"(?<!\S)an [^aeiouh81]\S*", text)


def test_attachment_differs_between_sentences(nodes: list[Node]) -> None:
    below_noun = sum(node.labels[:2] == ["NP", "PP"] for node in labelled(nodes, "NP"))
    below_verb = sum(("NP", "PP") in pairwise(node.labels) for node in labelled(nodes, "VP"))
    assert below_noun > 300
    assert below_verb > 300
