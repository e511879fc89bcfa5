"""Properties of Swedish that the generated trees must have, checked without the engine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

import pytest

from spmrl_bench.trees.tree import Tree
from tests.treebanks.mini.language import Language
from tests.treebanks.mini.nodes import Node, labelled

LABELS = {
    "ROOT", "S", "CS", "NP", "CNP", "PP", "CPP", "VP", "CVP", "AP", "CAP", "AVP", "CAVP", "XP",
}  # fmt: skip
TAGS = {
    "AB", "DT", "HA", "HD", "HP", "HS", "IE", "IN", "JJ", "KN", "MAD", "MID", "NN", "PAD", "PC",
    "PL", "PM", "PN", "PP", "PS", "RG", "RO", "SN", "UO", "VB",
}  # fmt: skip
# What makes the sentences grammatical is a matter of the grammar, not of the program.
pytestmark = pytest.mark.campaign

LANGUAGE = Language(
    name="swedish", root="ROOT", labels=LABELS, tags=TAGS, shortest=(1, 1), mean=(11, 15),
    known=3000, unseen=(0.04, 0.10), lower=True,
)  # fmt: skip
HOMOGRAPHS = {"lag", "laget", "lagen", "lags"}  # law is common gender, team neuter
COPULAS = {"är", "var", "blir", "blev", "verkar", "verkade"}
# Adjectives with one form for all genders and numbers, besides comparatives and participles in -e.
FIXED = {"bra", "äkta", "samtida", "nutida", "framtida", "dåtida", "öde", "mindre"}


def statements(roots: list[Node]) -> Iterator[Node]:
    """Plain main clauses that are whole sentences with a full stop, commands left out."""
    for root in roots:
        clause = root.below[0]
        plain = clause.label == "S" and clause.end == root.end and "PAD" not in clause.labels
        if plain and root.words[-1] == "." and clause.labels[0] not in {"MID", "IN", "VB"}:
            yield clause


def place(node: Node, word: str) -> int | None:
    """Which daughter is this single word."""
    return next((k for k, part in enumerate(node.below) if part.words == (word,)), None)


def nouns_after(roots: list[Node], articles: set[str]) -> set[str]:
    """Nouns after an article, with at most one adjective between them."""
    found = set()
    for words, tags in ((root.words, root.tags) for root in roots):
        for position, word in enumerate(words[:-2]):
            if word in articles and tags[position] == "DT":
                noun = position + 1 + (tags[position + 1] == "JJ")
                if tags[noun] == "NN":
                    found.add(words[noun])
    return found


def test_talbanken_shape(roots: list[Node], nodes: list[Node]) -> None:
    """No node over one word except clauses; C* has a conjunction; punctuation in the clause."""
    for node in labelled(nodes, *(LABELS - {"ROOT", "S"})):
        assert len(node.below) > 1
    coordinations = 0
    for node in labelled(nodes, "CS", "CNP", "CVP", "CAP", "CPP", "CAVP"):
        coordinations += 1
        assert "KN" in node.labels
    assert coordinations > 500
    for node in labelled(nodes, "PP"):
        assert "PP" in node.labels[:2]
    for root in roots:
        (top,) = root.below
        if root.tags[-1] == "MAD":
            assert top.label in {"S", "CS"}
            assert top.labels[-1] == "MAD"


def test_main_clauses_are_verb_second(roots: list[Node]) -> None:
    kinds: Counter[str] = Counter()
    for clause in statements(roots):
        after_comma = clause.labels[:2] == ["S", "MID"]
        assert clause.labels[2 if after_comma else 1] == "VB", clause.words
        kinds["subject first" if clause.labels[0] in {"NP", "CNP", "PN", "NN"} else "other"] += 1
        if after_comma:
            kinds["comma"] += 1
    assert kinds["subject first"] > 600
    assert kinds["other"] > 250
    assert kinds["comma"] > 15


def test_negation_stands_after_the_finite_verb_only_in_main_clauses(
    roots: list[Node], nodes: list[Node]
) -> None:
    kinds: Counter[str] = Counter()
    for clause in statements(roots):
        negation, verb = place(clause, "inte"), clause.labels.index("VB")
        if negation is not None:
            kinds["main"] += 1
            assert verb < negation, clause.words
    for clause in labelled(nodes, "S"):
        negation = place(clause, "inte")
        if negation is not None and clause.labels[0] in {"SN", "HP"} and clause.word != "vem":
            verbs = [k for k, name in enumerate(clause.labels) if name in {"VB", "VP"}]
            if clause.word == "vad" or clause.tree.words[-1] == "?":
                continue  # a question may be a main clause
            kinds["subordinate"] += 1
            assert negation < verbs[0], clause.words
    assert kinds["main"] > 100
    assert kinds["subordinate"] > 50


def test_particles_follow_verb_subject_and_negation(nodes: list[Node]) -> None:
    kinds: Counter[str] = Counter()
    for node in labelled(nodes, "S", "VP"):
        tags = node.labels
        if "PL" in tags:
            kinds["all"] += 1
            assert "VB" in tags[: tags.index("PL")], node.words
            negation = place(node, "inte")
            if negation is not None:
                kinds["negated"] += 1
                assert negation < tags.index("PL"), node.words
    assert kinds["all"] > 150
    assert kinds["negated"] > 10


def test_att_takes_infinitives_and_har_supines(roots: list[Node], nodes: list[Node]) -> None:
    kinds: Counter[str] = Counter()
    for root in roots:
        for position, tag in enumerate(root.tags):
            if tag == "IE":
                kinds["infinitive"] += 1
                following = root.words[position + 1]
                assert root.tags[position + 1] == "VB", root.words
                assert not following.endswith(("r", "de", "te", "it", "at")), root.words
    for clause in labelled(nodes, "S"):
        for left, right in pairwise(clause.below):
            if left.label == "VB" and left.word in {"har", "hade"} and right.label in {"VB", "VP"}:
                kinds["supine"] += 1
                assert right.word.endswith(("t", "ts")), clause.words
    assert kinds["infinitive"] > 150
    assert kinds["supine"] > 100


def test_common_and_neuter_nouns_differ(roots: list[Node]) -> None:
    common, neuter = nouns_after(roots, {"en"}), nouns_after(roots, {"ett"})
    assert len(common) > 200
    assert len(neuter) > 80
    assert common & neuter <= HOMOGRAPHS


def test_definiteness_is_marked_twice_after_den_and_an_adjective(
    roots: list[Node], nodes: list[Node]
) -> None:
    """``den stora bilen`` but ``den stora bil som`` and ``denna bil``, ``sin bil``."""
    indefinite = nouns_after(roots, {"en", "ett"}) - HOMOGRAPHS
    definite: set[str] = set()
    bare: set[str] = set()
    kinds: Counter[str] = Counter()
    for phrase in labelled(nodes, "NP"):
        if phrase.labels == ["DT", "JJ", "NN"] and phrase.word in {"den", "det"}:
            kinds["double"] += 1
            assert phrase.words[-1] not in indefinite, phrase.words
            definite.add(phrase.words[-1])
        if phrase.labels == ["DT", "NN"] and phrase.word in {"denna", "detta"}:
            kinds["single"] += 1
            bare.add(phrase.words[-1])
    assert kinds["double"] > 100
    assert kinds["single"] > 30
    assert not definite & bare


def test_attributive_and_predicative_adjectives_agree(nodes: list[Node]) -> None:
    kinds: Counter[str] = Counter()

    def check(number: str, form: str) -> None:
        if form in FIXED or form.endswith(("re", "st", "nde")):
            return
        kinds[number] += 1
        if number == "plural":
            assert form.endswith(("a", "e")) or form == "små", form
        elif number == "neuter":
            assert form.endswith("t"), form
        else:
            assert not form.endswith(("a", "ade")), form

    numbers = {
        "common": {"en", "den", "denna", "min", "sin", "någon", "ingen"},
        "neuter": {"ett", "det", "detta", "mitt", "sitt", "något", "inget"},
        "plural": {"de", "dessa", "mina", "sina", "några", "inga", "alla", "många", "flera"},
    }
    first = {word: number for number, words in numbers.items() for word in words}
    for phrase in labelled(nodes, "NP"):
        if phrase.word in {"en", "ett", "de"} and phrase.labels[:3] == ["DT", "JJ", "NN"]:
            check(first[phrase.word], phrase.below[1].word)
    attributive = sum(kinds.values())
    for clause in labelled(nodes, "S"):
        if clause.labels[:2] == ["NP", "VB"] and clause.below[1].word in COPULAS:
            number = first.get(clause.word)
            for part in clause.below[2:]:
                if number is not None and part.label in {"JJ", "PC", "AP"}:
                    degree = part.label == "AP" and part.tags[0] == "AB" and len(part.words) == 2
                    if degree or part.label != "AP":
                        check(number, part.words[degree])
                    break
    assert attributive > 200
    assert sum(kinds.values()) - attributive > 25
    assert min(kinds[number] for number in ("common", "neuter", "plural")) > 50


def test_genitives_end_in_s(nodes: list[Node]) -> None:
    checked = 0
    for phrase in labelled(nodes, "NP"):
        tags = phrase.labels
        if len(tags) >= 2 and tags[0] == "NP" and "NN" in tags[1:3]:
            checked += 1
            assert phrase.below[0].words[-1][-1] in "sxz", phrase.words
        if tags == ["NN", "NN"] or tags == ["NN", "JJ", "NN"]:
            checked += 1
            assert phrase.word[-1] in "sxz", phrase.words
    assert checked > 100


def test_reflexives_have_an_antecedent_of_their_person(trees: list[Tree]) -> None:
    """``sin`` and ``sig`` neither in subjects nor with subjects of the first person."""
    kinds: Counter[str] = Counter()
    for tree in trees:
        words = [word.lower() for word in tree.words]
        assert words[0] not in {"sin", "sitt", "sina", "sig"}
        plain = tree.labels.count("S") == 1 and "VP" not in tree.labels
        if words[0] in {"jag", "vi"} and plain:
            kinds["first person"] += 1
            assert not {"sin", "sitt", "sina", "sig"} & set(words), words
        kinds["reflexive"] += len({"sin", "sitt", "sina", "sig"} & set(words))
        for left, right in pairwise(words):
            if left in {"eftersom", "medan", "innan", "fast"}:
                kinds["subject"] += 1
                assert right not in {"sin", "sitt", "sina"}, words
    assert kinds["first person"] > 12
    assert kinds["reflexive"] > 150
    assert kinds["subject"] > 50


def test_agents_follow_passives(nodes: list[Node]) -> None:
    """Before an agent with *av*: a verb in -s, or *bli* and a participle."""
    kinds: Counter[str] = Counter()
    for node in labelled(nodes, "S", "VP"):
        for left, right in pairwise(node.below):
            if right.label != "PP" or right.word != "av":
                continue
            if left.label == "PC":
                kinds["bli"] += 1
                verbs = {part.word for part in node.below if part.label == "VB"}
                assert verbs <= {"blir", "blev", "blivit"}, node.words
            if left.label == "VB" and left.word[:3] not in {"nju", "njö", "lid", "led"}:
                kinds["s"] += 1
                assert left.word.endswith("s"), node.words
    assert kinds["bli"] > 20
    assert kinds["s"] > 50


def test_spelling(trees: list[Tree]) -> None:
    """No letter stands three times in a row, and names have capitals."""
    for tree in trees:
        for word, tag in zip(tree.words, tree.tags, strict=True):
            assert "_" not in word
            assert not any(a == b == c for a, b, c in zip(word, word[1:], word[2:], strict=False))
            assert tag != "PM" or word[0].isupper()
