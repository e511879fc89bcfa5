"""Properties of French that the generated trees must have, checked without the engine."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

import pytest

from spmrl_bench.trees.tree import Tree
from tests.treebanks.mini.language import Language
from tests.treebanks.mini.nodes import Node, labelled, lowered, neighbours

LABELS = {
    "TOP", "SENT", "NP", "PP", "VN", "AP", "AdP", "COORD", "VPinf", "VPpart", "Srel", "Ssub",
    "Sint",
}  # fmt: skip
TAGS = {
    "NC", "NPP", "DET", "ADJ", "V", "VINF", "VPP", "VPR", "VS", "VIMP", "P", "P+D", "P+PRO", "CLS",
    "CLO", "CLR", "ADV", "ADVWH", "PRO", "PROREL", "PROWH", "CC", "CS", "PONCT", "DETWH", "ADJWH",
    "ET", "I", "PREF",
}  # fmt: skip
# What makes the sentences grammatical is a matter of the grammar, not of the program.
pytestmark = pytest.mark.campaign

LANGUAGE = Language(
    name="french", root="TOP", labels=LABELS, tags=TAGS, shortest=(1, 4), mean=(10, 16),
    known=3000, unseen=(0.04, 0.10), lower=True,
)  # fmt: skip
VERBS = {"V", "VS", "VINF", "VPP", "VPR", "VIMP"}
FINITE = {"V", "VS", "VIMP"}
CLITICS = {"CLS", "CLO", "CLR"}
BE = re.compile(
    r"suis|est|sommes|êtes|sont|étai(?:s|t|ent)|étions|étiez|ser(?:ai|as?|ons|ez|ont|ais|ait|ions)"
    r"|seriez|seraient|fut|furent|soi(?:s|t|ent)|soyons|soyez"
)
HAVE = re.compile(
    r"ai|a|avons|avez|ont|avai(?:s|t|ent)|avions|aviez|aur(?:ai|a|ons|ez|ont|ais|ait|ions|iez|aient)"
    r"|aie|ait|ayons|ayez|aient"
)
# Words with a vowel or h at the beginning that do not let the word before them lose its own.
ASPIRATED = re.compile(r"(?i)(hall|hangar|hauss|haut|hamb|holding|holland|hongr|huit|onz|oui)")
VOWEL = re.compile(r"(?i)[aeiouyàâéèêëîïôûœh]")
GENDER = {"un": "m", "une": "f", "ce": "m", "cet": "m", "cette": "f", "le": "m", "la": "f"}


def phrases(nodes: list[Node], label: str) -> Iterator[tuple[Node, list[str], list[str]]]:
    """Each constituent with that label, the labels below it, and the first words below it."""
    for node in labelled(nodes, label):
        yield node, node.labels, [part.word for part in node.below]


def elides(word: str) -> bool:
    return bool(VOWEL.match(word)) and not ASPIRATED.match(word)


def test_every_sentence_is_one_sent(roots: list[Node]) -> None:
    for root in roots:
        assert root.labels == ["SENT"]
        assert root.tree.labels.count("SENT") == 1


def test_words_lose_their_vowel_before_vowels_only(trees: list[Tree]) -> None:
    checked: Counter[bool] = Counter()
    short = re.compile(r"(.*_)?(?:[jmtsnldc]|qu|lorsqu|puisqu|quoiqu)'$")
    long = re.compile(r"(?:je|me|se|ne|le|la|(?:.*_)?(?:de|que)|lorsque|puisque|quoique)$")
    for word, tag, following, _ in neighbours(map(lowered, trees)):
        if short.match(word):
            checked[True] += 1
            assert elides(following), (word, following)
        elif long.match(word) and tag not in {"NPP", "NC"}:
            checked[False] += 1
            assert not elides(following), (word, following)
    assert min(checked.values()) > 1500


def test_articles_contract_with_prepositions(trees: list[Tree], nodes: list[Node]) -> None:
    """``de le``, ``de les``, ``à le``, ``à les`` never stand before a noun phrase."""
    contracted = 0
    for node, below, words in phrases(nodes, "PP"):
        if below[:2] == ["P", "NP"] and re.search(r"(?:^|_)(?:de|d'|à)$", words[0]):
            assert words[1] not in {"le", "les"}, node.words
            assert words[1] not in {"des", "du"} or words[0].endswith("à"), node.words
        if "P+D" in below:
            contracted += 1
            place = below.index("P+D")
            assert re.search(r"(?:^|_)(?:du|des|aux?)$", words[place])
            assert below[place + 1] == "NP"
    assert contracted > 800
    for word, tag, following, after in neighbours(map(lowered, trees)):
        if tag == "P+D":
            assert after != "DET", (word, following)
            if re.search(r"(?:^|_)(?:du|au)$", word):
                assert not elides(following), (word, following)


def test_verbal_nuclei_keep_the_order_of_clitics(trees: list[Tree], nodes: list[Node]) -> None:
    """Subject, ne, reflexive, le or lui, y or en, verb, inverted subject, pas, participles."""
    order = re.compile(
        r"(?:CLS )?(?:NE )?(?:CLR )?(?:CLO )?(?:V|VS|VIMP|VINF|VPR) (?:INV )?(?:ADV )*(?:VPP ){0,2}"
        r"(?:ADV )?(?:VPP )?$"
    )
    kinds: Counter[str] = Counter()
    for node, below, words in phrases(nodes, "VN"):
        names = []
        for tag, word in zip(below, words, strict=True):
            inverted = tag == "CLS" and word.startswith("-")
            names.append("INV" if inverted else "NE" if word in {"ne", "n'"} else tag)
        kinds.update(names)
        assert order.match(" ".join(names) + " "), node.words
    assert all(kinds[kind] > 50 for kind in ("CLS", "NE", "CLR", "CLO", "INV", "VPP", "VS"))
    outside = sum(tag in CLITICS or tag in FINITE for tree in trees for tag in tree.tags)
    inside = sum(kinds[name] for name in (*CLITICS, "INV", *FINITE))
    assert outside == inside


def test_subject_clitics_agree_with_their_verb(nodes: list[Node]) -> None:
    endings = {
        "je": r"(?:[esx]|ai)$", "j'": r"(?:[esx]|ai)$", "nous": r"(?:ons|sommes)$",
        "vous": r"(?:ez|[fd]?[aiê]tes)$", "il": r"(?:[edtac]|vainc)$", "elle": r"[edtac]$",
        "ils": r"(?:ent|ont)$", "elles": r"(?:ent|ont)$",
    }  # fmt: skip
    checked: Counter[str] = Counter()
    for node, below, words in phrases(nodes, "VN"):
        if below[0] == "CLS" and words[0] in endings:
            verb = next(w for tag, w in zip(below, words, strict=True) if tag in {"V", "VS"})
            checked[words[0]] += 1
            assert re.search(endings[words[0]], verb), node.words
    assert all(checked[word] > 5 for word in endings)


def test_negation_has_two_parts(trees: list[Tree]) -> None:
    """``ne`` needs pas, plus, jamais, guère, que, or a negative subject, and these need it."""
    second = {"pas", "plus", "jamais", "guère", "que", "qu'"}
    checked = 0
    for tree in trees:
        lowered = [word.lower() for word in tree.words]
        for position, word in enumerate(lowered):
            if word in {"ne", "n'"}:
                checked += 1
                before = {"aucun", "aucune", "nul", "nulle", "personne", "rien"}
                assert second & set(lowered[position + 2 : position + 5]) or before & set(
                    lowered[:position]
                ), tree.words
            if word == "pas" and tree.tags[position] == "ADV":
                assert {"ne", "n'"} & set(lowered[max(0, position - 4) : position]), tree.words
    assert checked > 200


def test_determiners_and_nouns_agree(trees: list[Tree]) -> None:
    """A noun has one gender wherever it stands after a singular determiner."""
    found: dict[str, set[str]] = {}
    plural = {"les", "des", "ces", "ses", "mes", "nos", "vos", "leurs", "plusieurs", "quelques"}
    checked: Counter[str] = Counter()
    for word, tag, following, after in neighbours(map(lowered, trees)):
        if tag == "DET" and after == "NC":
            if word in GENDER:
                checked["gender"] += 1
                found.setdefault(following, set()).add(GENDER[word])
            if word in plural:
                checked["plural"] += 1
                assert re.search(r"[sx]$|[sx][_-]|-parole$", following), following
    epicene = {"élève", "enfant", "secrétaire", "journaliste", "ministre", "responsable", "livre"}
    assert {noun for noun, genders in found.items() if len(genders) > 1} <= epicene
    assert checked["gender"] > 1500
    assert checked["plural"] > 500


def test_adjectives_agree_with_determiners(nodes: list[Node]) -> None:
    """After ``une`` no masculine ending, after ``un`` no feminine one, after ``les`` s or x."""
    feminine = re.compile(r"(?:euse|elle|enne|ante|ente|ive|ière|ale|aise|aine|ise|ée|[^q]ue)$")
    checked: Counter[str] = Counter()
    for node, below, words in phrases(nodes, "NP"):
        if below[:3] != ["DET", "NC", "AP"]:
            continue
        adjective = words[2]
        if words[0] in {"des", "les", "ces"}:
            checked["plural"] += 1
            if "très" not in words and adjective not in DEGREES:
                assert adjective[-1] in "sx", node.words
        elif words[0] == "une" and adjective not in DEGREES:
            checked["une"] += 1
            assert adjective.endswith("e"), node.words
        elif words[0] == "un" and adjective not in DEGREES:
            checked["un"] += 1
            assert not feminine.search(adjective) or adjective in SAME, node.words
    assert all(checked[kind] > 30 for kind in ("plural", "une", "un"))


DEGREES = {
    "très", "plus", "trop", "si", "assez", "particulièrement", "extrêmement", "peu", "moins",
    "tout_à_fait", "aussi",
}  # fmt: skip
SAME = {"sale"}  # one form for both genders


def test_participles_agree_after_be_and_not_after_have(nodes: list[Node]) -> None:
    checked: Counter[str] = Counter()
    for node, below, words in phrases(nodes, "VN"):
        if "VPP" not in below or "CLO" in below:
            continue
        auxiliaries = [w for tag, w in zip(below, words, strict=True) if tag in {"V", "VS"}]
        last = words[len(below) - 1 - below[::-1].index("VPP")]
        if (
            below[0] == "CLS"
            and auxiliaries
            and BE.fullmatch(auxiliaries[0])
            and "été" not in words
        ):
            ending = {"elle": "e", "elles": "es", "ils": "s"}.get(words[0])
            if ending:
                checked[words[0]] += 1
                assert last.endswith(ending), node.words
        elif (
            auxiliaries
            and HAVE.fullmatch(auxiliaries[0])
            and "été" not in words
            and below[0] == "CLS"
        ):
            checked["avoir"] += 1
            feminine = re.search(r"(?:ées?|ues?|ies?|tes?|ises?)$", last)
            assert not feminine or follows_relative(node.tree, words), node.words
    assert all(checked[kind] > 5 for kind in ("elle", "elles", "ils"))
    assert checked["avoir"] > 80


def follows_relative(tree: Tree, words: list[str]) -> bool:
    """Whether the nucleus stands right after a relative pronoun, its preceding object."""
    lowered = [word.lower() for word in tree.words]
    width = len(words)
    return any(
        lowered[place : place + width] == words and tree.tags[place - 1] == "PROREL"
        for place in range(1, len(lowered) - width + 1)
    )


def test_some_conjunctions_take_the_subjunctive(nodes: list[Node]) -> None:
    subjunctive = re.compile(r"(?:bien|pour|avant|afin|sans)_qu[e']$")
    indicative = re.compile(r"(?:parce_qu[e']|quand|lorsqu[e']|puisqu[e']|alors_qu[e'])$")
    checked: Counter[str] = Counter()
    for clause in labelled(nodes, "Ssub"):
        nuclei = [part for part in clause.below if part.label == "VN"]
        if clause.labels[0] != "CS" or not nuclei:
            continue
        word, tags = clause.word, clause.tree.tags[nuclei[0].start :]
        verb = next(tag for tag in tags if tag in {"V", "VS"})
        if subjunctive.match(word):
            checked["VS"] += 1
            assert verb == "VS", clause.words
        elif indicative.match(word):
            checked["V"] += 1
            assert verb == "V", clause.words
    assert checked["VS"] > 30
    assert checked["V"] > 60


def test_relative_clauses_begin_with_their_pronoun(trees: list[Tree], nodes: list[Node]) -> None:
    kinds: Counter[str] = Counter()
    for node, below, words in phrases(nodes, "Srel"):
        assert below[0] in {"NP", "PP"}, node.words
        assert "VN" in below
        assert below[-1] != "PONCT"
        kinds[words[0]] += 1
        if words[0] == "qui":
            assert below[1] == "VN", node.words
        if words[0] == "dont":
            assert below[0] == "PP"
    assert all(kinds[word] > 15 for word in ("qui", "que", "qu'", "dont", "où"))
    assert sum("quel" in word for tree in trees for word in tree.words) > 50
    for word, _, following, after in neighbours(map(lowered, trees)):
        if after == "PROREL" and following.endswith(("quelle", "quels", "quelles")):
            assert word not in {"de", "à"} or following == "laquelle", (word, following)


def test_flat_shape_of_the_treebank(nodes: list[Node]) -> None:
    for node, below, words in phrases(nodes, "COORD"):
        assert below[0] == "CC" or words[0] == ",", node.words
        assert len(below) > 1
    for node, below, _ in phrases(nodes, "VPinf"):
        assert below[0] in {"VN", "P"}, node.words
        assert "VN" in below[:3]
    for node, below, _ in phrases(nodes, "AP"):
        assert {"ADJ", "ADJWH"} & set(below), node.words
    for node, below, _ in phrases(nodes, "PP"):
        first = below[1] if below[0] == "ADV" else below[0]
        assert first in {"P", "P+D", "PROREL", "NP"}, node.words
    for node, below, _ in phrases(nodes, "NP"):
        assert below.count("DET") <= 1, node.words
        assert {"NC", "NPP", "PRO", "PROREL", "PROWH", "P+PRO", "ET"} & set(below), node.words
    coordinated = Counter("COORD" in below for _, below, _ in phrases(nodes, "NP"))
    assert coordinated[True] > 50


def test_questions_invert_the_subject(trees: list[Tree], nodes: list[Node]) -> None:
    joined: Counter[bool] = Counter()
    for _, tag, following, after in neighbours(map(lowered, trees)):
        if after == "CLS" and following.startswith("-"):
            assert tag in {"V"}, (tag, following)
    for node, below, words in phrases(nodes, "VN"):
        for position, word in enumerate(words):
            if below[position] == "CLS" and word.startswith("-"):
                verb = words[position - 1]
                joined[word.startswith("-t-")] += 1
                if word in {"-il", "-elle", "-on", "-ils", "-elles"}:
                    assert verb[-1] in "td", node.words
                if word.startswith("-t-"):
                    assert verb[-1] in "aec", node.words
    assert min(joined[True], joined[False]) > 20


def test_spelling_and_pairs_of_marks(trees: list[Tree]) -> None:
    for tree in trees:
        assert not any("~" in word for word in tree.words)
        assert tree.words.count('"') in {0, 2}
        assert tree.words.count("(") == tree.words.count(")")
