"""Properties of Hebrew that the generated trees must have, checked without the engine."""

from __future__ import annotations

from collections import Counter

import pytest

from spmrl_bench.trees.transforms import HEBREW_SIGNS
from spmrl_bench.trees.tree import Tree
from tests.treebanks.mini.language import Language
from tests.treebanks.mini.nodes import Node, labelled

LABELS = {
    "TOP", "S", "SQ", "SBAR", "FRAG", "NP", "NNPP", "VP", "PREDP", "PP", "INP", "ADJP", "ADVP",
    "INTJ", "PRN",
}  # fmt: skip
# The label that stands over each tag.
LAYER = {
    "NN": {"SYN_NN"}, "NNT": {"SYN_NNT"}, "BNT": {"SYN_NNT"}, "NNP": {"SYN_NNP"},
    "TTL": {"SYN_NN"}, "JJ": {"SYN_JJ"}, "JJT": {"SYN_JJT"}, "VB": {"SYN_VB"},
    "BN": {"SYN_VB", "SYN_JJ"}, "MD": {"SYN_VB"}, "EX": {"SYN_VB"},
    "COP": {"SYN_AGR", "SYN_AUX"}, "PRP": {"SYN_PRP"}, "S_PRN": {"SYN_PRP"}, "DEF": {"SYN_H"},
    "AT": {"SYN_AT"}, "POS": {"SYN_POS"}, "REL": {"SYN_REL", "SYN_COM"},
    "CC": {"SYN_CC", "SYN_COM", "SYN_REL", "SYN_MOD"}, "CONJ": {"SYN_CC"}, "TEMP": {"SYN_COM"},
    "PREPOSITION": {"SYN_IN"}, "IN": {"SYN_IN"}, "RB": {"SYN_RB", "SYN_RBR"}, "P": {"SYN_MOD"},
    "DTT": {"SYN_DT"}, "CD": {"SYN_CD"}, "CDT": {"SYN_CDT"}, "QW": {"SYN_QW", "SYN_HAM"},
    "INTJ": {"SYN_INTJ"},
    **{sign: {f"SYN_{sign}"} for sign in (
        "yyDOT", "yyCM", "yyQM", "yyQUOT", "yyCLN", "yyLRB", "yyRRB", "yyDASH", "yyEXCL"
    )},
}  # fmt: skip
# What makes the sentences grammatical is a matter of the grammar, not of the program.
pytestmark = pytest.mark.campaign

LANGUAGE = Language(
    name="hebrew", root="TOP", labels=LABELS.union(*LAYER.values()), tags=set(LAYER),
    shortest=(2, 2), mean=(13, 17), known=3000, unseen=(0.035, 0.10), capitals=False,
)  # fmt: skip
# Nouns whose gender their endings do not tell, or tell wrongly.
GENDER = {
    "fem": "EIR ARC RFWT TXRWT FNIM ERIM ABNIM MILIM NFIM BICIM CIPRIM IWNIM TWLEIM DRKIM IDIIM "
    "EINIIM RGLIIM NELIIM AWZNIIM PEMIIM XBRWT MMFLWT MPLGWT PGIFWT TMWNWT AGWDWT EIRIIWT",
    "masc": "BIT LILH MWRH EWLH MWMXH XWLH MXNH FDH MEFH MQRH MBNH MXZH RXWBWT MQWMWT DWUXWT "
    "FWLXNWT MLWNWT QIRWT ILD SPR XWQ MFPJ MFXQ KBIF HSKM EITWN AIGWD MWSD DWUX DIWN KSP CBA",
}
# Feminine nouns in the singular, and adjectives and nouns in the masculine singular, that
# end like others.
SINGULAR_WT = "RFWT TXRWT MDINIWT AXRIWT XQLAWT BRIAWT AWMNWT TRBWT TIIRWT ALIMWT"
SINGULAR_IM = {"MSWIM", "MADIM", "ALIM", "TMIM", "MTAIM"}
SINGULAR_H = {"QFH", "IPH", "FWNH", "NAH", "MFWNH", "GBWH", "EBH"}
PLURAL_ENDINGS = {"masc": ("IM",), "fem": ("WT",)}
MASCULINE_NUMERALS = {"FLWFH", "ARBEH", "XMIFH", "FIFH", "FBEH", "TFEH", "EFRH"}
FEMININE_NUMERALS = {"FLWF", "ARBE", "XMF", "FF", "FBE", "TFE", "EFR"}
# Nouns with a possessive suffix end in one of these.
SUFFIXES = ("W", "H", "M", "I")


def shape(node: Node) -> list[str]:
    """Labels of the daughters, tags in place of the layer of SYN_ labels."""
    return [
        part.below[0].label if part.label.startswith("SYN_") else part.label for part in node.below
    ]


@pytest.fixture(scope="module")
def phrases(nodes: list[Node]) -> list[Node]:
    """Every constituent above the layer of SYN_ labels."""
    return [node for node in nodes if node.below and not node.label.startswith("SYN_")]


def test_words_are_in_the_transliteration_of_the_treebank(trees: list[Tree]) -> None:
    """Each is Hebrew, a number or a named sign."""
    checked = 0
    for tree in trees:
        for word, tag in zip(tree.words, tree.tags, strict=True):
            assert (word in HEBREW_SIGNS) == (word == tag and tag.startswith("yy"))
            if word not in HEBREW_SIGNS and not word[0].isdigit():
                assert set(word) <= set("ABGDHWZXJIKLMNSEPCQRFTU"), word
                checked += 1
    assert checked > 20000


def test_a_layer_of_labels_stands_over_the_tags(phrases: list[Node]) -> None:
    checked = 0
    for node in phrases:
        tree = node.tree
        for inner in node.below:
            assert inner.below, tree.words
            if inner.label.startswith("SYN_"):
                assert inner.end - inner.start == len(inner.below) == 1, tree.words
                assert inner.label in LAYER[inner.below[0].label], (inner.label, tree.words)
                checked += 1
    assert checked == sum(node.end for node in labelled(phrases, LANGUAGE.root))


def definite(phrase: Node) -> bool | None:
    """Whether a noun phrase is definite; None where only the lexicon could tell."""
    first, kinds = phrase.below[0], shape(phrase)
    if first.label == "NP":
        return definite(first)
    if kinds[0] in {"NNT", "CDT", "BNT", "DTT"} and kinds[1:] == ["NP"]:
        return definite(phrase.below[1])
    if kinds[0] in {"DEF", "NNP", "NNPP", "TTL", "S_PRN", "AT"}:
        return True
    if kinds[0] == "NN" and len(kinds) == 1:
        return None if first.below[0].word.endswith(SUFFIXES) else False
    return False if kinds[0] == "CD" else None


def test_adjectives_agree_in_definiteness(phrases: list[Node]) -> None:
    checked: Counter[bool] = Counter()
    for node in phrases:
        tree = node.tree
        if node.label == "NP" and shape(node)[:2] == ["NP", "ADJP"]:
            known = definite(node.below[0])
            for adjective in (item for part in node.below[1:] for item in part.walk()):
                if (
                    known is not None
                    and adjective.label == "ADJP"
                    and "ADJP" not in shape(adjective)
                ):
                    marked = "DEF" in tree.tags[adjective.start : adjective.end]
                    assert marked == known, (tree.words, node.start)
                    checked[known] += 1
    assert min(checked.values()) > 400


def gender_of(noun: str, bare: bool = False) -> str | None:
    """The gender of a noun by its ending; None where only the lexicon could tell.

    In a ``bare`` noun, one without article or numeral, a final H may be the suffix `her`.
    """
    for gender, nouns in GENDER.items():
        if noun in nouns.split():
            return gender
    if noun.endswith("IM"):
        return "masc"
    return "fem" if noun.endswith(("IT", "IWT") if bare else ("IT", "IWT", "H")) else None


def test_adjectives_agree_in_gender_and_number(phrases: list[Node]) -> None:
    checked: Counter[str] = Counter()
    for node in phrases:
        tree = node.tree
        if node.label != "NP" or shape(node)[:2] != ["NP", "ADJP"]:
            continue
        noun, adjective = node.below[0], node.below[1]
        if shape(noun) not in (["NN"], ["DEF", "NN"]):
            continue
        gender = gender_of(noun.below[-1].below[0].word, bare=shape(noun) == ["NN"])
        if gender is None or shape(adjective) not in (["JJ"], ["DEF", "JJ"]):
            continue
        word, form = noun.below[-1].below[0].word, adjective.below[-1].below[0].word
        checked[gender] += 1
        if word.endswith(("IM", "WT")) and word not in ["IM", *SINGULAR_WT.split()]:
            assert form.endswith(PLURAL_ENDINGS[gender]), tree.words
        elif gender == "fem":
            assert form.endswith(("H", "T")), tree.words
        else:
            assert not form.endswith("IM") or form in SINGULAR_IM, tree.words
            assert not form.endswith(("H", "T")) or form in SINGULAR_H, tree.words
    assert min(checked["masc"], checked["fem"]) > 100


def test_construct_chains(phrases: list[Node]) -> None:
    """A construct noun never has an article of its own, and a noun phrase follows at once."""
    checked: Counter[bool] = Counter()
    for node in phrases:
        tree = node.tree
        if node.label == "TOP":
            for left, right in zip(tree.tags, tree.tags[1:], strict=False):
                assert (left, right) not in {("DEF", "NNT"), ("DEF", "BNT")}, tree.words
        if node.label == "NP" and shape(node)[0] in {"NNT", "BNT"}:
            assert shape(node) == [shape(node)[0], "NP"], tree.words
            checked[shape(node.below[1])[0] == "DEF"] += 1
    assert min(checked.values()) > 500


def test_the_object_marker_stands_before_definite_objects(phrases: list[Node]) -> None:
    marked = bare = 0
    for node in phrases:
        tree = node.tree
        if node.label == "NP" and shape(node)[0] == "AT":
            assert shape(node) == ["AT", "NP"]
            if shape(node.below[1])[0] != "QW":
                assert definite(node.below[1]) is not False, tree.words
                marked += 1
        if node.label == "VP" and node.below[0].below[0].word.startswith("L"):
            objects = [inner for inner in node.below if inner.label == "NP"]
            for inner in objects:
                if shape(inner)[0] != "AT":
                    assert shape(inner) != ["DEF", "NN"], tree.words
                    bare += 1
    assert marked > 500
    assert bare > 100


def test_finite_verbs_stand_alone_in_a_flat_clause(phrases: list[Node]) -> None:
    """VP holds complements only of an infinitive; those of a finite verb are its sisters."""
    kinds: Counter[str] = Counter()
    for node in phrases:
        tree = node.tree
        if node.label == "VP":
            if len(node.below) == 1:
                kinds["single"] += 1
            elif shape(node) == ["VP", shape(node)[1], "VP"]:
                kinds["coordinated"] += 1
            else:
                assert shape(node)[0] == "VB", tree.words
                assert tree.words[node.start].startswith("L"), tree.words
                kinds["infinitive"] += 1
    assert kinds["single"] > 2000
    assert kinds["infinitive"] > 200
    assert kinds["coordinated"] > 10


def test_subject_pronouns_agree_with_verbs(phrases: list[Node]) -> None:
    """Past: -TI I, -NW we, -H she, -W they; future: A-, N-, T-, I-...-W; participles -IM, -WT."""
    past = {"ANI": "TI", "ANXNW": "NW", "HIA": "H", "HM": "W", "HN": "W"}
    future = {"ANI": "A", "ANXNW": "N", "HIA": "T", "HM": "I", "HN": "I", "HWA": "I"}
    present = {"HM": ("IM",), "HN": ("WT",), "HIA": ("H", "T")}
    checked: Counter[str] = Counter()
    for node in phrases:
        tree = node.tree
        if node.label not in {"S", "SQ"} or "VP" not in shape(node):
            continue
        place = shape(node).index("VP")
        verb = node.below[place]
        subjects = [
            inner.below[0].below[0].word
            for inner in node.below[max(place - 2, 0) : place + 2]
            if shape(inner) == ["PRP"]
        ]
        if not subjects or len(verb.below) != 1 or subjects[0] not in {*past, "HWA"}:
            continue
        subject, form, tag = subjects[0], tree.words[verb.start], shape(verb)[0]
        checked[subject] += 1
        if tag == "VB" and subject != "HWA":
            assert form.endswith(past[subject]) or form.startswith(future[subject]), tree.words
            if subject in {"HM", "HN"}:
                assert form.endswith("W"), tree.words
        elif tag == "BN" and subject in present:
            assert form.endswith(present[subject]), tree.words
    assert all(checked[subject] > 5 for subject in (*past, "HWA"))


def test_numerals_agree_in_gender(phrases: list[Node]) -> None:
    checked: Counter[str] = Counter()
    for node in phrases:
        tree = node.tree
        if node.label == "NP" and shape(node) == ["CD", "NN"]:
            numeral, noun = (inner.below[0].word for inner in node.below)
            gender = gender_of(noun)
            if gender and numeral in MASCULINE_NUMERALS | FEMININE_NUMERALS:
                expected = MASCULINE_NUMERALS if gender == "masc" else FEMININE_NUMERALS
                assert numeral in expected, tree.words
                checked[gender] += 1
    assert min(checked["masc"], checked["fem"]) > 10


def test_relative_clauses(phrases: list[Node]) -> None:
    """F and AFR take any clause; H only a participle and only after a definite noun."""
    openers: Counter[str] = Counter()
    resumptive = 0
    for node in phrases:
        tree = node.tree
        if node.label == "SBAR" and node.below[0].label == "SYN_REL":
            word = node.below[0].below[0].word
            openers[word] += 1
            assert shape(node)[1:] == ["S"], tree.words
            clause = node.below[1]
            if word == "H":
                assert tree.tags[node.start + 1] == "BN", tree.words
            resumptive += any(
                inner.label in {"PP", "NP"} and shape(inner.below[-1]) == ["S_PRN"]
                for inner in clause.below
                if shape(inner)[0] in {"AT", "IN", "PREPOSITION"}
            )
    assert set(openers) == {"F", "AFR", "H"}
    assert min(openers.values()) > 50
    assert resumptive > 100
    for node in phrases:
        tree = node.tree
        if node.label == "NP" and shape(node) == ["NP", "SBAR"]:
            relative = node.below[1]
            if relative.below[0].below[0].word == "H":
                assert definite(node.below[0]) is not False, tree.words


def test_suffixed_objects_agree_with_the_head_of_their_relative_clause(phrases: list[Node]) -> None:
    """In N F AT-him V S the pronoun has the number and gender of N."""
    checked = 0
    for node in phrases:
        tree = node.tree
        if node.label != "NP" or shape(node) != ["NP", "SBAR"]:
            continue
        words = [tree.words[place] for place in range(node.below[1].start, node.below[1].end)]
        head = node.below[0]
        if words[:2] != ["F", "AT"] or tree.tags[node.below[1].start + 2] != "S_PRN":
            continue
        while head.below[0].label == "NP":
            head = head.below[0]
        if shape(head) in (["NN"], ["DEF", "NN"]):
            noun = head.below[-1].below[0].word
            checked += 1
            gender = gender_of(noun, bare=shape(head) == ["NN"])
            if noun.endswith("IM"):
                assert words[2] == ("HN" if gender == "fem" else "HM"), tree.words
            elif gender and not noun.endswith("WT"):
                assert words[2] == ("HIA" if gender == "fem" else "HWA"), tree.words
    assert checked > 5


def test_prefixes_and_negation(phrases: list[Node]) -> None:
    """Prefixed prepositions open PP; LA is an ADVP right before a VP."""
    prefixes = negations = 0
    for node in phrases:
        tree = node.tree
        if "PREPOSITION" in shape(node):
            assert node.label == "PP"
            assert shape(node) == ["PREPOSITION", "NP"], tree.words
            assert tree.words[node.start] in {"B", "L", "M"}
            prefixes += 1
        for left, right in zip(node.below, node.below[1:], strict=False):
            if left.label == "ADVP" and tree.words[left.start] == "LA":
                assert right.label == "VP", tree.words
                negations += 1
    assert prefixes > 1500
    assert negations > 100


def test_possession_and_existence(phrases: list[Node]) -> None:
    """FL joins two noun phrases, the second a suffix pronoun or definite; IF has no article."""
    owners: Counter[str] = Counter()
    existential = 0
    for node in phrases:
        tree = node.tree
        if node.label == "NP" and "POS" in shape(node):
            assert shape(node) == ["NP", "POS", "NP"], tree.words
            assert definite(node.below[2]) is not False, tree.words
            owners[shape(node.below[2])[0]] += 1
        if node.label == "S" and any(shape(inner) == ["EX"] for inner in node.below):
            assert "PP" in shape(node), tree.words
            for inner in node.below:
                if inner.label == "NP":
                    assert shape(inner)[:2] != ["DEF", "NN"], tree.words
                    existential += 1
    assert owners["S_PRN"] > 50
    assert owners["DEF"] > 20
    assert existential > 100


def test_word_order_is_free(phrases: list[Node]) -> None:
    """Subjects stand before the verb, or after it where something else opens the clause."""
    orders: Counter[str] = Counter()
    for node in phrases:
        if node.label == "S":
            kinds = shape(node)
            if kinds[:2] == ["NP", "VP"]:
                orders["subject verb"] += 1
            elif kinds[:3] in (["PP", "VP", "NP"], ["ADVP", "VP", "NP"]):
                orders["verb subject"] += 1
            elif kinds[:1] == ["VP"]:
                orders["verb first"] += 1
            elif "PREDP" in kinds and "VP" not in kinds:
                orders["no verb"] += 1
    assert all(orders[kind] > 100 for kind in orders)
    assert len(orders) == 4


def test_copula_agrees_with_the_predicate(phrases: list[Node]) -> None:
    endings = {"HM": ("IM",), "AINM": ("IM",), "HN": ("WT",), "AINN": ("WT",)}
    checked = 0
    for node in phrases:
        tree = node.tree
        if node.label == "PREDP" and shape(node) == ["COP", "ADJP"]:
            copula, adjective = tree.words[node.start], node.below[1]
            if copula in endings and shape(adjective)[0] == "JJ":
                form = adjective.below[0].below[0].word
                assert form.endswith(endings[copula]), tree.words
                checked += 1
    assert checked > 10


def test_punctuation(trees: list[Tree], phrases: list[Node]) -> None:
    for tree in trees:
        for left, right in zip(tree.tags, tree.tags[1:], strict=False):
            assert not (left == "yyCM" and right.startswith("yy")), tree.words
        assert tree.tags.count("yyQUOT") % 2 == 0
    roots = Counter(node.labels[0] for node in labelled(phrases, LANGUAGE.root))
    assert set(roots) == {"S", "SQ", "FRAG"}
    for node in phrases:
        tree = node.tree
        if node.label == "SQ":
            assert tree.tags[node.end - 1] == "yyQM"
