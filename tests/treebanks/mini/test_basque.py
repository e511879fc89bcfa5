"""Properties of Basque that the generated trees must have, checked without the engine."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

import pytest

from spmrl_bench.trees.tree import Tree
from tests.treebanks.mini.language import Language
from tests.treebanks.mini.nodes import Node, labelled

LABELS = {"ROOT", "S", "AS", "SN", "SP", "SADV", "SADJ", "SDET", "ADI-KAT"}
TAGS = {
    "IZE", "ADJ", "DET", "IOR", "ADB", "LOT", "PRT", "ADI", "ADL", "ADT", "PUNT", "BEREIZ",
    "IZE_IZEELI", "ADL_IZEELI", "ADT_IZEELI", "ADI_IZEELI", "ADB_IZEELI", "IOR_IZEELI",
}  # fmt: skip
# What makes the sentences grammatical is a matter of the grammar, not of the program.
pytestmark = pytest.mark.campaign

LANGUAGE = Language(
    name="basque", root="ROOT", labels=LABELS, tags=TAGS, shortest=(1, 1), mean=(12, 16),
    known=4000, unseen=(0.04, 0.15),
)  # fmt: skip
FINITE = {"ADL", "ADT", "ADL_IZEELI", "ADT_IZEELI"}
# Independent forms of the auxiliary by the argument they show in the third person.
ABS_SG = "da zen daiteke litzateke"
ABS_PL = "dira ziren daitezke lirateke"
ERG_SG = "du ditu zuen zituen luke lituzke dezake ditzake nau gaitu zaitu ninduen gintuen"
ERG_PL = "dute dituzte zuten zituzten lukete lituzkete dezakete ditzakete naute gaituzte"
ERG_PL += " ninduten gintuzten"
NUMERALS = {"bi", "hiru", "lau", "bost", "sei", "zazpi", "zortzi", "hamar", "hogei"}


def simple_clauses(
    nodes: list[Node],
) -> Iterator[tuple[list[str], str, list[tuple[str, str]]]]:
    """Verb chains with an auxiliary: its tags and words, the auxiliary, the phrases around.

    A phrase is its first word, if that is its determiner, and its last one. Coordinations,
    which are plural, are left out, and so are clauses with a clause among their daughters.
    """
    for clause in labelled(nodes, "S"):
        chains = [part for part in clause.below if part.label == "ADI-KAT"]
        if len(chains) != 1 or {"S", "AS"} & set(clause.labels):
            continue
        (chain,) = chains
        finite = [part.word for part in chain.below if part.label == "ADL"]
        if finite:
            kind = chain.labels + [part.word.lower() for part in chain.below]
            around = []
            for part in clause.below:
                tags = part.labels if part.label == "SN" else ["LOT"]
                if "LOT" not in tags:
                    first = part.word.lower() if tags[0] == "DET" else ""
                    around.append((first, part.words[-1].lower()))
            yield kind, finite[0].lower(), around


def test_auxiliaries_agree_with_ergatives(nodes: list[Node]) -> None:
    """``batek`` takes ``du`` and never ``dute``; ``batzuek``, ``hiru ...ek`` the reverse."""
    singular, plural = set(ERG_SG.split()), set(ERG_PL.split())
    checked: Counter[str] = Counter()
    for kind, finite, around in simple_clauses(nodes):
        if finite not in singular | plural:
            continue
        for first, last in around:
            if last in {"batek", "honek", "horrek", "hark"}:
                checked["singular"] += 1
                assert finite in singular, (kind, finite, around)
            if last in {"batzuek", "askok"} or (first in NUMERALS and last.endswith("ek")):
                checked["plural"] += 1
                assert finite in plural, (kind, finite, around)
    assert checked["singular"] > 60
    assert checked["plural"] > 15


def test_auxiliaries_agree_with_absolutives(nodes: list[Node]) -> None:
    """Beside an intransitive participle ``bat`` takes ``da``, ``batzuk`` takes ``dira``."""
    singular, plural = set(ABS_SG.split()), set(ABS_PL.split())
    other_case = re.compile("(n|ra|tik|dik|z|zat|ri|ei|ko|go|ik)$")
    checked: Counter[str] = Counter()
    for kind, finite, around in simple_clauses(nodes):
        if finite not in singular | plural or {"ari", "ariko"} & set(kind):
            continue
        for first, last in around:
            if last in {"bat", "hau", "hori", "hura"}:
                checked["singular"] += 1
                assert finite in singular, (kind, finite, around)
            if last in {"batzuk", "asko", "hauek", "horiek", "haiek"} or (
                first in NUMERALS and not other_case.search(last)
            ):
                checked["plural"] += 1
                assert finite in plural, (kind, finite, around)
    assert checked["singular"] > 50
    assert checked["plural"] > 10


def test_datives_show_in_the_auxiliary(nodes: list[Node]) -> None:
    """``bati`` and ``honi`` need an auxiliary in -o-, ``batzuei`` and ``hauei`` one in -e-."""
    marks = dict.fromkeys(("bati", "honi", "horri", "hari"), "o")
    marks |= dict.fromkeys(("batzuei", "hauei", "horiei", "haiei"), "e")
    checked: Counter[str] = Counter()
    for kind, finite, around in simple_clauses(nodes):
        form = re.sub("^(bait(?=z)|ba(?!it))", "", finite).replace("bait", "d")
        for _, last in around:
            if last in marks:
                dative = re.match(
                    "(zai|zaizki|zitzai|zitzaizki|di|dizki|(z|n|zen|gen)i|(z|n|zen|gen)izki)([oe])",
                    form,
                )
                checked[marks[last]] += 1
                assert dative, (kind, finite, around)
                assert dative.group(4) == marks[last], (kind, finite, around)
    assert checked["o"] > 40
    assert checked["e"] > 10


def test_negation_fronts_the_auxiliary_of_main_clauses(nodes: list[Node]) -> None:
    """``ez du ikusi`` and ``ez du ... ikusi`` in main clauses, ``ikusi ez duen`` below them."""
    checked: Counter[str] = Counter()
    for clause in labelled(nodes, "S"):
        tree = clause.tree
        for place, chain in enumerate(clause.below):
            tags, start = list(chain.tags), chain.start
            if chain.label != "ADI-KAT" or "PRT" not in tags or "ADL" not in tags:
                continue
            position = start + tags.index("PRT")
            if tree.words[position].lower() != "ez":
                continue
            assert tree.tags[position + 1] == "ADL", tree.words
            finite = tree.words[position + 1]
            if position > start:
                checked["after"] += 1
                assert tags == ["ADI", "PRT", "ADL"]
                assert re.search("(n|la|lako|nean|nez)$|^ba", finite), tree.words
            else:
                checked["before"] += 1
                assert not re.search("(la|lako|nean|nez)$|^bait", finite), tree.words
                later = tags + clause.labels[place + 1 :]
                assert "ADI" in later, tree.words
    assert checked["before"] > 150
    assert checked["after"] > 30


def test_relative_clauses_precede_their_noun_and_end_in_n(nodes: list[Node]) -> None:
    checked = 0
    for phrase in labelled(nodes, "SN"):
        for place, part in enumerate(phrase.below):
            if part.label == "S" and len(phrase.below) > 1:
                checked += 1
                assert part.words[-1].endswith("n"), phrase.tree.words
                assert part.tags[-1] in {"ADL", "ADT"}
                assert place < len(phrase.below) - 1
                assert part.labels[-1] == "ADI-KAT"
    assert checked > 300


def test_subordinate_auxiliaries_stay_out_of_main_clauses(nodes: list[Node]) -> None:
    """``-ela``, ``-elako``, ``-enean`` and ``-enez`` mark clauses that depend on others."""
    checked: Counter[str] = Counter()
    marked = re.compile("(la|lako|nean|nez)$|^bait")
    held = {
        inner for clause in labelled(nodes, "S") for inner in clause.walk() if inner is not clause
    }
    for clause in labelled(nodes, "S"):
        for part in clause.below:
            ending = marked.search(part.words[-1].lower())
            if part.label == "ADI-KAT" and part.tags[-1] in {"ADL", "ADT"} and ending:
                checked[ending.group()] += 1
                assert clause in held, clause.tree.words
    assert all(checked[ending] > 10 for ending in ("la", "lako", "nean", "nez", "bait"))


def test_postpositions_govern_their_case(nodes: list[Node]) -> None:
    """``buruz`` takes the dative, ``arabera`` the genitive, ``gabeko`` the partitive, ..."""
    cases = {
        "buruz": "i", "buruzko": "i", "esker": "i", "begira": "i",
        "arabera": "n", "aurka": "n", "aurkako": "n", "alde": "n", "aldeko": "n", "bidez": "n",
        "ordez": "n", "artean": "n", "kontrako": "n",
        "gabeko": "ik", "urrun": "tik", "hurbil": "tik", "zehar": "n", "arte": "ra",
    }  # fmt: skip
    checked: Counter[str] = Counter()
    for phrase in labelled(nodes, "SP"):
        assert len(phrase.below) == 2
        complement, postposition = phrase.below
        assert postposition.label in {"ADB", "IZE"}
        last, before = postposition.word.lower(), complement.words[-1]
        if last in cases and complement.label == "SN" and before != "ere":
            checked[last] += 1
            ending = cases[last]
            voiced = ending == "tik" and before.endswith("dik")
            pronoun = before.lower() in {"nire", "zure", "gure", "bere", "inor", "ezer"}
            assert before.endswith(ending) or voiced or pronoun, str(phrase)
    assert sum(checked.values()) > 300
    assert len(checked) > 14


def test_case_stands_once_at_the_end_of_the_noun_phrase(nodes: list[Node]) -> None:
    """A noun before its adjective or before ``bat`` and ``hori`` has no ending."""
    endings = re.compile("(engan|engandik|etan|etara|etatik|etako|rekin|rentzat|aren|ean)$")
    bare = {"bat", "batek", "batean", "hori", "horrek", "batzuk", "batzuek", "asko"}
    checked: Counter[str] = Counter()
    for phrase in labelled(nodes, "SN"):
        for left, right in pairwise(phrase.below):
            if left.label == "IZE" and right.label in {"ADJ", "SADJ"}:
                checked["adjective"] += 1
            elif left.label in {"IZE", "ADJ"} and right.word in bare:
                checked["determiner"] += 1
            else:
                continue
            assert not endings.search(left.word.lower()), str(phrase)
    assert checked["adjective"] > 600
    assert checked["determiner"] > 500


def test_local_cases_of_towns_are_voiced_after_n_and_l(trees: list[Tree]) -> None:
    """Irundik and Irungo, but Paristik and Bilboko; e only after consonants."""
    after_n = re.compile("^(Irun|Beasain|Berlin|Madril|Portugal|Andoain)(.*)$")
    after_vowel = re.compile("^(Bilbo|Donostia|Getxo|Durango|Bermeo|Europa|Kuba|Peru)(.*)$")
    legal_n = {"", "ek", "i", "en", "ekin", "entzat", "ez", "era", "dik", "go"}
    legal_vowel = {"", "k", "ri", "ren", "rekin", "rentzat", "z", "n", "ra", "tik", "ko"}
    checked: Counter[str] = Counter()
    for tree in trees:
        for word, tag in zip(tree.words, tree.tags, strict=True):
            if tag != "IZE":
                continue
            for pattern, legal in ((after_n, legal_n), (after_vowel, legal_vowel)):
                match = pattern.match(word)
                if match:
                    checked[match.group(2)] += 1
                    assert match.group(2) in legal, word
    assert checked["go"] + checked["dik"] > 10
    assert checked["ko"] + checked["tik"] > 30


def test_strong_r_doubles_before_vowels_only(trees: list[Tree]) -> None:
    stems = "txakur ederr eder haur zahar piper biltzar beldur gezur labur gogor lapur nafar"
    pattern = re.compile(f"^({'|'.join(s.rstrip('r') for s in stems.split())})(r+)([aei].*)?$")
    checked = 0
    for tree in trees:
        for word, tag in zip(tree.words, tree.tags, strict=True):
            match = pattern.match(word.lower())
            if match and tag in {"IZE", "ADJ"}:
                checked += 1
                assert len(match.group(2)) == (2 if match.group(3) else 1), word
    assert checked > 80


def test_bait_changes_the_auxiliary(trees: list[Tree]) -> None:
    """bait- devoices d and g and loses its t before n and l: baita, baikara, bainaiz."""
    checked: Counter[str] = Counter()
    for tree in trees:
        for word, tag in zip(tree.words, tree.tags, strict=True):
            form = word.lower()
            if tag in {"ADL", "ADT"} and form.startswith("bai"):
                checked[form[3]] += 1
                assert form[3] in "tkn" or form.startswith("bail"), word
                assert not re.match("bait[dgnl]", form), word
    assert checked["t"] > 40
    assert sum(checked.values()) - checked["t"] > 3


def test_words_with_a_hidden_noun_stack_cases(trees: list[Tree]) -> None:
    """etxeko + ak, Mikelen + a, duen + ari: a genitive or relative and then another case."""
    endings = "(a|ak|ari|aren|arekin|ek|ei|en|ekin)$"
    before = {
        "IZE_IZEELI": "(ko|go|en)", "ADB_IZEELI": "(ko|go)", "ADI_IZEELI": "(ta|da)ko",
        "ADL_IZEELI": "n", "ADT_IZEELI": "n", "IOR_IZEELI": "(re|en)",
    }  # fmt: skip
    checked: Counter[str] = Counter()
    for tree in trees:
        for word, tag in zip(tree.words, tree.tags, strict=True):
            if tag in before:
                checked[tag] += 1
                assert re.search(before[tag] + endings, word), word
    assert set(checked) == set(before)
    assert checked["IZE_IZEELI"] > 50
    assert checked["ADL_IZEELI"] > 50


def test_tree_shape(nodes: list[Node]) -> None:
    chains = 0
    for node in labelled(nodes, *LABELS):
        label, tags = node.label, node.labels
        if label == "ADI-KAT":
            chains += 1
            assert sum(tag in FINITE for tag in tags) == 1, str(node)
            assert set(tags) <= FINITE | {"ADI", "IZE", "PRT"}, str(node)
        if label == "AS":
            assert not FINITE & set(tags)
            assert tags[-1] == "ADI", str(node)
        if label in {"SP", "SDET"}:
            assert len(tags) > 1
        if label == "SN":
            assert not {"ADL", "ADT", "ADI", "ADI-KAT"} & set(tags)
        if label == "SADV":
            assert set(tags) <= {"ADB", "LOT"}
    assert chains > 4000


def test_numerals_and_partitives(trees: list[Tree]) -> None:
    """``zenbait`` and ``edozein`` take a noun without article; -rik follows negation."""
    checked: Counter[str] = Counter()
    for tree in trees:
        for position in range(len(tree) - 1):
            word, following = tree.words[position].lower(), tree.words[position + 1]
            if word in {"zenbait", "hainbat", "edozein"} and tree.tags[position + 1] == "IZE":
                checked[word] += 1
                assert not re.search("(ean|ei|eek|een)$", following), following
            if word in {"inor", "ezer"}:
                checked["partitive"] += 1
                context = [w.lower() for w in tree.words]
                assert "ez" in context or "gabe" in context or "gabeko" in context
    assert checked["zenbait"] > 10
    assert checked["edozein"] > 10
    assert checked["partitive"] > 3
