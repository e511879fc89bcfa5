"""Properties of Arabic that the generated trees must have, checked without the engine."""

from __future__ import annotations

from collections import Counter

import pytest

from spmrl_bench.trees.tree import Tree
from tests.treebanks.mini.language import Language
from tests.treebanks.mini.nodes import Node, labelled, neighbours

LABELS = {
    "TOP", "S", "SQ", "SBARQ", "SBAR", "VP", "NP", "PP", "ADJP", "ADVP", "WHNP", "WHADVP", "PRT",
    "PRN", "QP", "CONJP", "UCP", "FRAG",
}  # fmt: skip
TAGS = {
    "NN", "NNS", "DTNN", "DTNNS", "NNP", "DTNNP", "JJ", "DTJJ", "JJR", "NOUN_QUANT", "CD", "DT",
    "VBD", "VBP", "VBN", "VN", "IN", "CC", "RB", "RP", "PRP", "PRP$", "WP", "WRB", "PUNC",
}  # fmt: skip
# What makes the sentences grammatical is a matter of the grammar, not of the program.
pytestmark = pytest.mark.campaign

LANGUAGE = Language(
    name="arabic", root="TOP", labels=LABELS, tags=TAGS, shortest=(1, 2), mean=(12, 16),
    known=3000, unseen=(0.04, 0.10), capitals=False,
)  # fmt: skip
NOUNS = {"NN", "NNS"}
VERBS = {"VBD", "VBP", "VBN"}
# Broken plurals of persons; the sound ones are known by their ending.
MEN = {
    "rjAl", "r&sA'", "wzrA'", "mdrA'", "qAdp", "nwAb", "zEmA'", "sfrA'", "HkAm", "ATbA'", "TlAb",
    "EmAl", "$ErA'", "ElmA'", "xbrA'", "jnwd", "AEDA'", "tjAr", "nqAd",
}  # fmt: skip
PRONOUNS = {"h", "hA", "hmA", "hm", "hn", "ny", "nA"}


def verb_of(phrase: Node) -> str:
    """The verb of a VP, behind its particle."""
    return next(part.word for part in phrase.below if part.label in VERBS)


def plural_of_men(part: Node) -> bool:
    """Whether the first noun of a phrase is a plural that is certainly of men."""
    at = 1 if part.tags[0] == "DT" else 0
    head, tag = part.words[at], part.tags[at]
    sound = tag == "DTNNS" and head.endswith("wn")
    return sound or (tag in {"NN", "DTNN"} and head.removeprefix("Al") in MEN)


def test_tokens(trees: list[Tree]) -> None:
    """Buckwalter letters only; clitics are tokens, the article is part of what it stands on."""
    letters = set("'|&}AbptvjHxd*rzs$SDTZEgfqklmnhwYy")
    clitics: Counter[str] = Counter()
    for tree in trees:
        for word, tag in zip(tree.words, tree.tags, strict=True):
            if tag != "PUNC":
                assert set(word) <= letters or word.isdigit(), word
            if tag.startswith("DT") and tag != "DT":
                assert word.startswith("Al"), word
            if tag in {"CC", "IN"} and len(word) == 1:
                clitics[word] += 1
    assert all(clitics[word] > 15 for word in "wfblk")


def test_shape(nodes: list[Node]) -> None:
    for node in labelled(nodes, *LABELS):
        tree, label, kinds = node.tree, node.label, node.labels
        if label == "PP":
            assert kinds[0] == "IN", tree.words
            assert kinds[1:] in (["NP"], ["SBAR"], ["S"]), tree.words
        if label == "VP":
            verbal = VERBS | {"VP", "VN"}
            assert verbal & set(kinds), tree.words
            assert kinds[0] in verbal | {"PRT"}, tree.words
        if label == "PRT":
            assert kinds == ["RP"]
        if label in {"WHNP", "WHADVP"}:
            assert kinds in (["WP"], ["WRB"])
        if label == "NP":
            assert kinds != ["NP"], tree.words


def test_verbs_before_their_subject_are_singular(nodes: list[Node]) -> None:
    """A suffixed plural subject inside VP has a verb in the singular of its gender."""
    checked: Counter[str] = Counter()
    for node in labelled(nodes, "VP"):
        tree, below, kinds = node.tree, node.below, node.labels
        if kinds[:2] not in (["VBD", "NP"], ["VBP", "NP"]):
            continue
        noun, verb = below[1].word, verb_of(node)
        if below[1].tags[0] not in {"DTNNS", "NNS"} or not noun.endswith(("wn", "An")):
            continue  # not certainly a nominative, so perhaps an object
        checked[noun[-2:]] += 1
        assert not verb.endswith(("wA", "tA")), tree.words
        feminine = noun.endswith("tAn")
        if kinds[0] == "VBP":
            assert verb.startswith("t" if feminine else "y"), tree.words
            assert verb in {"ytEAwn", "ykwn"} or not verb.endswith("wn"), tree.words
        elif feminine:
            assert verb.endswith("t"), tree.words
        else:
            assert verb == "mAt" or not verb.endswith("t"), tree.words
    assert checked["wn"] > 20
    assert checked["An"] > 20


def test_verbs_after_their_subject_agree_in_number(nodes: list[Node]) -> None:
    checked: Counter[str] = Counter()
    for node in labelled(nodes, "S"):
        tree, below, kinds = node.tree, node.below, node.labels
        if "NP" not in kinds[:2] or "VP" not in kinds:
            continue
        at = kinds.index("NP")
        if kinds[at : at + 2] != ["NP", "VP"]:
            continue
        predicate = below[at + 1]
        if not VERBS & set(predicate.labels):
            continue
        noun, verb = below[at].word, verb_of(predicate)
        if plural_of_men(below[at]):
            checked["men"] += 1
            assert verb.endswith(("wA", "wn", "w")), tree.words
        elif noun.startswith("Al") and noun.endswith("tAn"):
            checked["two women"] += 1
            assert verb.startswith("t") or verb.endswith("tA"), tree.words
            assert verb.endswith(("A", "An")), tree.words
    assert checked["men"] > 15
    assert checked["two women"] > 5


def test_particles_choose_the_verb(trees: list[Tree]) -> None:
    """``lm``, ``ln``, ``s`` stand before the imperfect; after ``lm`` the forms are short."""
    checked: Counter[str] = Counter()
    for word, tag, following, next_tag in neighbours(trees):
        if tag != "RP":
            continue
        checked[word] += 1
        if word in {"lm", "ln", "s", "swf", "lA"}:
            assert next_tag in {"VBP", "VBN"}, (word, following)
            assert following[0] in "ytAn", (word, following)
        if word == "lqd":
            assert next_tag in {"VBD", "VBP"}
        if word == "lm":
            assert following not in {"yqwl", "tqwl", "yzwr", "yryd", "tryd", "ykwn", "tkwn"}
            assert not following.endswith(("Y", "lwn", "mwn", "rwn")), (word, following)
    assert all(checked[word] > 30 for word in ("lm", "s", "lA", "qd", "hl"))
    assert checked["ln"] > 10


def test_pronouns_shape_the_word_before_them(trees: list[Tree]) -> None:
    """-p becomes -t, -Y becomes -A or -y, the -A after -w and the article are absent."""
    checked: Counter[str] = Counter()
    for word, tag, following, next_tag in neighbours(trees):
        if next_tag == "PRP$":
            checked["owner"] += 1
            assert following in PRONOUNS - {"ny"}
            assert tag in {"NN", "NNS", "VN"}, (word, following)
            assert not word.endswith(("p", "Y")), (word, following)
            assert tag == "NN" or not word.endswith(("wn", "tAn")), (word, following)
            checked["-t"] += word.endswith("t")
        elif next_tag == "PRP" and following in PRONOUNS and tag in VERBS | {"IN"}:
            checked[tag] += 1
            assert not word.endswith(("wA", "Y")), (word, following)
    assert all(checked[kind] > 60 for kind in ("owner", "-t", "VBD", "VBP", "IN"))


def test_construct_state(nodes: list[Node]) -> None:
    """The head of an idafa has no article, and no -n in the dual and the sound plural."""
    checked: Counter[str] = Counter()
    for node in labelled(nodes, "NP"):
        if node.labels in (["NN", "NP"], ["NNS", "NP"]):
            checked["idafa"] += 1
            if node.labels[0] == "NNS":
                checked["suffixed"] += 1
                assert node.word.endswith(("At", "A", "y", "w")), node.tree.words
    assert checked["idafa"] > 1000
    assert checked["suffixed"] > 100


def test_adjectives_agree(nodes: list[Node]) -> None:
    """Definiteness, and the suffixes of gender, number and case, in flat noun phrases."""
    checked: Counter[str] = Counter()
    for node in labelled(nodes, "NP"):
        tree, kinds = node.tree, node.labels
        if len(kinds) != 2:
            continue
        if kinds[0] in NOUNS and kinds[1] in {"JJ", "DTJJ"}:
            checked["indefinite"] += 1
            assert kinds[1] == "JJ", tree.words
        if kinds[0] in {"DTNN", "DTNNS"} and kinds[1] in {"JJ", "DTJJ"}:
            checked["definite"] += 1
            assert kinds[1] == "DTJJ", tree.words
            noun, adjective = (part.word for part in node.below)
            if kinds[0] == "DTNNS":
                if noun.endswith(("tAn", "tyn")):
                    checked["two"] += 1
                    endings = (noun[-3:], "Aw" + noun[-2:])
                    assert adjective.endswith(endings), tree.words
                if noun.endswith("wn"):
                    checked["men"] += 1
                    assert not adjective.endswith(("p", "yn", "An")), tree.words
                if noun.endswith("At"):
                    checked["-At"] += 1
                    assert adjective.endswith(("p", "At", "A'", "Y")), tree.words
    assert checked["indefinite"] > 300
    assert checked["definite"] > 300
    assert checked["-At"] > 20
    assert checked["two"] > 5
    assert checked["men"] > 8


def test_relative_clauses(nodes: list[Node]) -> None:
    """Al*y/Alty by gender, none after an indefinite noun; an object is taken up by a pronoun."""
    checked: Counter[str] = Counter()
    for node in labelled(nodes, "NP"):
        if node.labels != ["NP", "SBAR"]:
            continue
        tree, (head, clause) = node.tree, node.below
        if clause.labels[0] == "WHNP":
            pronoun = clause.word
            assert head.labels[0] not in {"JJ", "CD"}
            if head.labels in (["DTNN"], ["DTNN", "DTJJ"], ["DT", "DTNN"]):
                last = head.words[-1]
                assert not (last.endswith("p") and pronoun == "Al*y"), tree.words
            if head.labels in (["DTNNS"], ["DTNNS", "DTJJ"]):
                noun = head.word
                checked["suffixed"] += 1
                if noun.endswith("wn"):
                    assert pronoun == "Al*yn", tree.words
                if noun.endswith("tAn"):
                    assert pronoun == "AlltAn", tree.words
            checked[pronoun] += 1
        else:
            checked["none"] += 1
            assert clause.labels == ["S"], tree.words
            assert not head.labels[0].startswith(("DT", "NNP")), tree.words
    assert checked["Al*y"] > 60
    assert checked["Alty"] > 60
    assert checked["none"] > 40
    assert checked["suffixed"] > 20


def test_numerals(nodes: list[Node]) -> None:
    """Three to ten differ in gender from the noun, a genitive plural; above, the singular."""
    small = {"vlAv", "ArbE", "xms", "st", "sbE", "vmAny", "tsE", "E$r"}
    checked: Counter[str] = Counter()
    for node in labelled(nodes, "NP"):
        if node.labels[:2] not in (["CD", "NP"], ["QP", "NP"]):
            continue
        counted = node.below[1]
        number, noun = node.below[0].words, counted.word
        if len(number) == 1 and number[0].removesuffix("p") in small:
            checked["small"] += 1
            if noun.endswith("yn") and counted.labels[0] == "NNS":
                checked["men"] += 1
                assert number[0].endswith("p"), node.tree.words
        elif number[0].isdigit() and len(number) == 1 and int(number[0]) <= 90:
            checked["digits"] += counted.labels[0] == "NN"
        elif len(number) == 3 and number[1] == "w":
            checked["tens"] += 1
            assert number[2].endswith(("wn", "yn"))
            assert noun.endswith(("p", "A", "A'", "Y")) or number[0] in small | {"vmAn", "AHdY"}
    assert checked["small"] > 40
    assert checked["men"] > 2
    assert checked["digits"] > 40
    assert checked["tens"] > 10


def test_an_clauses(nodes: list[Node]) -> None:
    """After An stands a noun phrase (or a place), or at once a verb in the subjunctive."""
    checked: Counter[str] = Counter()
    for node in labelled(nodes, "SBAR"):
        if node.below[0].words != ("An",):
            continue
        assert node.labels == ["IN", "S"]
        inner = node.below[1].below[0]
        checked[inner.label] += 1
        if inner.label == "VP":
            verbs = [part.word for part in inner.below if part.label in VERBS]
            assert not any(verb.endswith(("rwn", "mwn", "lwn", "dwn")) for verb in verbs)
        else:
            assert inner.label in {"NP", "PP"}, node.tree.words
    assert checked["NP"] > 100
    assert checked["VP"] > 100


def test_clauses_without_verbs_and_punctuation(trees: list[Tree], nodes: list[Node]) -> None:
    verbless = 0
    for node in labelled(nodes, *LABELS):
        kinds = [kind for kind in node.labels if kind not in {"PUNC", "CC"}]
        if node.label == "S" and kinds in (
            ["NP", "ADJP"], ["NP", "NP"], ["NP", "PP"], ["PP", "NP"],
        ):  # fmt: skip
            verbless += 1
        if node.label == "TOP":
            assert len(node.below) == 1
        last = node.below[-1].words
        if node.label in {"S", "SQ", "SBARQ"} and len(last) == 1:
            assert last[0] not in {".", "?"} or node.tree.words[-1] == last[0]
    assert verbless > 150
    assert all(
        not (left == right == "PUNC" and {one, two} <= {",", "."})
        for one, left, two, right in neighbours(trees)
    )
