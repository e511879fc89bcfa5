"""Properties of Hebrew that the generated trees must have, checked without the engine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from spmrl_bench.treebanks.mini.generate import generate
from spmrl_bench.trees.transliteration import HEBREW_SIGNS, from_hebrew_latin, to_hebrew_latin
from spmrl_bench.trees.tree import Tree

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


@dataclass
class Node:
    """A constituent or, with a word, a token."""

    label: str
    start: int
    end: int
    word: str = ""
    below: list[Node] = field(default_factory=list)
    shape: list[str] = field(default_factory=list)
    """Labels of the daughters, tags in place of the layer of SYN_ labels."""


def nested(tree: Tree) -> Node:
    rows = list(zip(tree.labels, tree.spans.tolist(), strict=True))
    top: list[Node] = []
    stack: list[Node] = []
    position = 0

    def tokens_to(limit: int) -> None:
        nonlocal position
        while position < limit:
            while stack and stack[-1].end <= position:
                stack.pop()
            token = Node(tree.tags[position], position, position + 1, tree.words[position])
            stack[-1].below.append(token)
            position += 1

    for label, (start, end) in rows:
        tokens_to(start)
        while stack and stack[-1].end <= start:
            stack.pop()
        node = Node(label, start, end)
        (stack[-1].below if stack else top).append(node)
        stack.append(node)
    tokens_to(len(tree))
    assert len(top) == 1
    for node in walk(top[0]):
        node.shape = [
            inner.below[0].label if inner.label.startswith("SYN_") else inner.label
            for inner in node.below
        ]
    return top[0]


def walk(node: Node) -> Iterator[Node]:
    yield node
    for inner in node.below:
        yield from walk(inner)


@pytest.fixture(scope="module")
def splits() -> dict[str, list[Tree]]:
    return generate("hebrew", {"train": 2000, "dev": 300, "test": 300}, seed=1)


@pytest.fixture(scope="module")
def trees(splits: dict[str, list[Tree]]) -> list[Tree]:
    return [tree for part in splits.values() for tree in part]


@pytest.fixture(scope="module")
def nodes(trees: list[Tree]) -> list[tuple[Tree, Node]]:
    """Every constituent above the layer of SYN_ labels, with its tree."""
    return [
        (tree, node)
        for tree in trees
        for node in walk(nested(tree))
        if not node.word and not node.label.startswith("SYN_")
    ]


def test_inventory(trees: list[Tree]) -> None:
    layer = {label for labels in LAYER.values() for label in labels}
    assert {label for tree in trees for label in tree.labels} == LABELS | layer
    assert {tag for tree in trees for tag in tree.tags} == set(LAYER)
    assert all(tree.labels[0] == "TOP" and tree.labels.count("TOP") == 1 for tree in trees)


def test_lengths(trees: list[Tree]) -> None:
    lengths = [len(tree) for tree in trees]
    assert min(lengths) == 2
    assert 36 <= max(lengths) <= 40
    assert 13 <= sum(lengths) / len(lengths) <= 17


def test_part_of_dev_and_test_is_unseen(splits: dict[str, list[Tree]]) -> None:
    known = {word for tree in splits["train"] for word in tree.words}
    assert len(known) > 3000
    for split in ("dev", "test"):
        words = [word for tree in splits[split] for word in tree.words]
        assert 0.035 <= sum(word not in known for word in words) / len(words) <= 0.10


def test_words_are_in_the_transliteration_of_the_treebank(trees: list[Tree]) -> None:
    """Each is Hebrew, a number or a named sign, and comes back from Hebrew script unchanged."""
    checked = 0
    for tree in trees:
        for word, tag in zip(tree.words, tree.tags, strict=True):
            assert to_hebrew_latin(from_hebrew_latin(word)) == word
            assert (word in HEBREW_SIGNS) == (word == tag and tag.startswith("yy"))
            if word not in HEBREW_SIGNS and not word[0].isdigit():
                assert set(word) <= set("ABGDHWZXJIKLMNSEPCQRFTU"), word
                checked += 1
    assert checked > 20000


def test_a_layer_of_labels_stands_over_the_tags(nodes: list[tuple[Tree, Node]]) -> None:
    checked = 0
    for tree, node in nodes:
        for inner in node.below:
            assert not inner.word, tree.words
            if inner.label.startswith("SYN_"):
                assert inner.end - inner.start == len(inner.below) == 1, tree.words
                assert inner.label in LAYER[inner.below[0].label], (inner.label, tree.words)
                checked += 1
    assert checked == sum(len(tree) for tree in {id(tree): tree for tree, _ in nodes}.values())


def definite(phrase: Node) -> bool | None:
    """Whether a noun phrase is definite; None where only the lexicon could tell."""
    first, kinds = phrase.below[0], phrase.shape
    if first.label == "NP":
        return definite(first)
    if kinds[0] in {"NNT", "CDT", "BNT", "DTT"} and kinds[1:] == ["NP"]:
        return definite(phrase.below[1])
    if kinds[0] in {"DEF", "NNP", "NNPP", "TTL", "S_PRN", "AT"}:
        return True
    if kinds[0] == "NN" and len(kinds) == 1:
        return None if first.below[0].word.endswith(SUFFIXES) else False
    return False if kinds[0] == "CD" else None


def test_adjectives_agree_in_definiteness(nodes: list[tuple[Tree, Node]]) -> None:
    checked: Counter[bool] = Counter()
    for tree, node in nodes:
        if node.label == "NP" and node.shape[:2] == ["NP", "ADJP"]:
            known = definite(node.below[0])
            for adjective in (item for part in node.below[1:] for item in walk(part)):
                if (
                    known is not None
                    and adjective.label == "ADJP"
                    and "ADJP" not in adjective.shape
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


def test_adjectives_agree_in_gender_and_number(nodes: list[tuple[Tree, Node]]) -> None:
    checked: Counter[str] = Counter()
    for tree, node in nodes:
        if node.label != "NP" or node.shape[:2] != ["NP", "ADJP"]:
            continue
        noun, adjective = node.below[0], node.below[1]
        if noun.shape not in (["NN"], ["DEF", "NN"]):
            continue
        gender = gender_of(noun.below[-1].below[0].word, bare=noun.shape == ["NN"])
        if gender is None or adjective.shape not in (["JJ"], ["DEF", "JJ"]):
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


def test_construct_chains(nodes: list[tuple[Tree, Node]]) -> None:
    """A construct noun never has an article of its own, and a noun phrase follows at once."""
    checked: Counter[bool] = Counter()
    for tree, node in nodes:
        if node.label == "TOP":
            for left, right in zip(tree.tags, tree.tags[1:], strict=False):
                assert (left, right) not in {("DEF", "NNT"), ("DEF", "BNT")}, tree.words
        if node.label == "NP" and node.shape[0] in {"NNT", "BNT"}:
            assert node.shape == [node.shape[0], "NP"], tree.words
            checked[node.below[1].shape[0] == "DEF"] += 1
    assert min(checked.values()) > 500


def test_the_object_marker_stands_before_definite_objects(
    nodes: list[tuple[Tree, Node]],
) -> None:
    marked = bare = 0
    for tree, node in nodes:
        if node.label == "NP" and node.shape[0] == "AT":
            assert node.shape == ["AT", "NP"]
            if node.below[1].shape[0] != "QW":
                assert definite(node.below[1]) is not False, tree.words
                marked += 1
        if node.label == "VP" and node.below[0].below[0].word.startswith("L"):
            objects = [inner for inner in node.below if inner.label == "NP"]
            for inner in objects:
                if inner.shape[0] != "AT":
                    assert inner.shape != ["DEF", "NN"], tree.words
                    bare += 1
    assert marked > 500
    assert bare > 100


def test_finite_verbs_stand_alone_in_a_flat_clause(nodes: list[tuple[Tree, Node]]) -> None:
    """VP holds complements only of an infinitive; those of a finite verb are its sisters."""
    kinds: Counter[str] = Counter()
    for tree, node in nodes:
        if node.label == "VP":
            if len(node.below) == 1:
                kinds["single"] += 1
            elif node.shape == ["VP", node.shape[1], "VP"]:
                kinds["coordinated"] += 1
            else:
                assert node.shape[0] == "VB", tree.words
                assert tree.words[node.start].startswith("L"), tree.words
                kinds["infinitive"] += 1
    assert kinds["single"] > 2000
    assert kinds["infinitive"] > 200
    assert kinds["coordinated"] > 10


def test_subject_pronouns_agree_with_verbs(nodes: list[tuple[Tree, Node]]) -> None:
    """Past: -TI I, -NW we, -H she, -W they; future: A-, N-, T-, I-...-W; participles -IM, -WT."""
    past = {"ANI": "TI", "ANXNW": "NW", "HIA": "H", "HM": "W", "HN": "W"}
    future = {"ANI": "A", "ANXNW": "N", "HIA": "T", "HM": "I", "HN": "I", "HWA": "I"}
    present = {"HM": ("IM",), "HN": ("WT",), "HIA": ("H", "T")}
    checked: Counter[str] = Counter()
    for tree, node in nodes:
        if node.label not in {"S", "SQ"} or "VP" not in node.shape:
            continue
        place = node.shape.index("VP")
        verb = node.below[place]
        subjects = [
            inner.below[0].below[0].word
            for inner in node.below[max(place - 2, 0) : place + 2]
            if inner.shape == ["PRP"]
        ]
        if not subjects or len(verb.below) != 1 or subjects[0] not in {*past, "HWA"}:
            continue
        subject, form, tag = subjects[0], tree.words[verb.start], verb.shape[0]
        checked[subject] += 1
        if tag == "VB" and subject != "HWA":
            assert form.endswith(past[subject]) or form.startswith(future[subject]), tree.words
            if subject in {"HM", "HN"}:
                assert form.endswith("W"), tree.words
        elif tag == "BN" and subject in present:
            assert form.endswith(present[subject]), tree.words
    assert all(checked[subject] > 5 for subject in (*past, "HWA"))


def test_numerals_agree_in_gender(nodes: list[tuple[Tree, Node]]) -> None:
    checked: Counter[str] = Counter()
    for tree, node in nodes:
        if node.label == "NP" and node.shape == ["CD", "NN"]:
            numeral, noun = (inner.below[0].word for inner in node.below)
            gender = gender_of(noun)
            if gender and numeral in MASCULINE_NUMERALS | FEMININE_NUMERALS:
                expected = MASCULINE_NUMERALS if gender == "masc" else FEMININE_NUMERALS
                assert numeral in expected, tree.words
                checked[gender] += 1
    assert min(checked["masc"], checked["fem"]) > 10


def test_relative_clauses(nodes: list[tuple[Tree, Node]]) -> None:
    """F and AFR take any clause; H only a participle and only after a definite noun."""
    openers: Counter[str] = Counter()
    resumptive = 0
    for tree, node in nodes:
        if node.label == "SBAR" and node.below[0].label == "SYN_REL":
            word = node.below[0].below[0].word
            openers[word] += 1
            assert node.shape[1:] == ["S"], tree.words
            clause = node.below[1]
            if word == "H":
                assert tree.tags[node.start + 1] == "BN", tree.words
            resumptive += any(
                inner.label in {"PP", "NP"} and inner.below[-1].shape == ["S_PRN"]
                for inner in clause.below
                if inner.shape[0] in {"AT", "IN", "PREPOSITION"}
            )
    assert set(openers) == {"F", "AFR", "H"}
    assert min(openers.values()) > 50
    assert resumptive > 100
    for tree, node in nodes:
        if node.label == "NP" and node.shape == ["NP", "SBAR"]:
            relative = node.below[1]
            if relative.below[0].below[0].word == "H":
                assert definite(node.below[0]) is not False, tree.words


def test_suffixed_objects_agree_with_the_head_of_their_relative_clause(
    nodes: list[tuple[Tree, Node]],
) -> None:
    """In N F AT-him V S the pronoun has the number and gender of N."""
    checked = 0
    for tree, node in nodes:
        if node.label != "NP" or node.shape != ["NP", "SBAR"]:
            continue
        words = [tree.words[place] for place in range(node.below[1].start, node.below[1].end)]
        head = node.below[0]
        if words[:2] != ["F", "AT"] or tree.tags[node.below[1].start + 2] != "S_PRN":
            continue
        while head.below[0].label == "NP":
            head = head.below[0]
        if head.shape in (["NN"], ["DEF", "NN"]):
            noun = head.below[-1].below[0].word
            checked += 1
            gender = gender_of(noun, bare=head.shape == ["NN"])
            if noun.endswith("IM"):
                assert words[2] == ("HN" if gender == "fem" else "HM"), tree.words
            elif gender and not noun.endswith("WT"):
                assert words[2] == ("HIA" if gender == "fem" else "HWA"), tree.words
    assert checked > 5


def test_prefixes_and_negation(nodes: list[tuple[Tree, Node]]) -> None:
    """Prefixed prepositions open PP; LA is an ADVP right before a VP."""
    prefixes = negations = 0
    for tree, node in nodes:
        if "PREPOSITION" in node.shape:
            assert node.label == "PP"
            assert node.shape == ["PREPOSITION", "NP"], tree.words
            assert tree.words[node.start] in {"B", "L", "M"}
            prefixes += 1
        for left, right in zip(node.below, node.below[1:], strict=False):
            if left.label == "ADVP" and tree.words[left.start] == "LA":
                assert right.label == "VP", tree.words
                negations += 1
    assert prefixes > 1500
    assert negations > 100


def test_possession_and_existence(nodes: list[tuple[Tree, Node]]) -> None:
    """FL joins two noun phrases, the second a suffix pronoun or definite; IF has no article."""
    owners: Counter[str] = Counter()
    existential = 0
    for tree, node in nodes:
        if node.label == "NP" and "POS" in node.shape:
            assert node.shape == ["NP", "POS", "NP"], tree.words
            assert definite(node.below[2]) is not False, tree.words
            owners[node.below[2].shape[0]] += 1
        if node.label == "S" and any(inner.shape == ["EX"] for inner in node.below):
            assert "PP" in node.shape, tree.words
            for inner in node.below:
                if inner.label == "NP":
                    assert inner.shape[:2] != ["DEF", "NN"], tree.words
                    existential += 1
    assert owners["S_PRN"] > 50
    assert owners["DEF"] > 20
    assert existential > 100


def test_word_order_is_free(nodes: list[tuple[Tree, Node]]) -> None:
    """Subjects stand before the verb, or after it where something else opens the clause."""
    orders: Counter[str] = Counter()
    for _, node in nodes:
        if node.label == "S":
            shape = node.shape
            if shape[:2] == ["NP", "VP"]:
                orders["subject verb"] += 1
            elif shape[:3] in (["PP", "VP", "NP"], ["ADVP", "VP", "NP"]):
                orders["verb subject"] += 1
            elif shape[:1] == ["VP"]:
                orders["verb first"] += 1
            elif "PREDP" in shape and "VP" not in shape:
                orders["no verb"] += 1
    assert all(orders[kind] > 100 for kind in orders)
    assert len(orders) == 4


def test_copula_agrees_with_the_predicate(nodes: list[tuple[Tree, Node]]) -> None:
    endings = {"HM": ("IM",), "AINM": ("IM",), "HN": ("WT",), "AINN": ("WT",)}
    checked = 0
    for tree, node in nodes:
        if node.label == "PREDP" and node.shape == ["COP", "ADJP"]:
            copula, adjective = tree.words[node.start], node.below[1]
            if copula in endings and adjective.shape[0] == "JJ":
                form = adjective.below[0].below[0].word
                assert form.endswith(endings[copula]), tree.words
                checked += 1
    assert checked > 10


def test_punctuation(trees: list[Tree], nodes: list[tuple[Tree, Node]]) -> None:
    for tree in trees:
        for left, right in zip(tree.tags, tree.tags[1:], strict=False):
            assert not (left == "yyCM" and right.startswith("yy")), tree.words
        assert tree.tags.count("yyQUOT") % 2 == 0
    roots = Counter(node.below[0].label for _, node in nodes if node.label == "TOP")
    assert set(roots) == {"S", "SQ", "FRAG"}
    for tree, node in nodes:
        if node.label == "SQ":
            assert tree.tags[node.end - 1] == "yyQM"
