"""Properties of Arabic that the generated trees must have, checked without the engine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from spmrl_bench.treebanks.mini.generate import generate
from spmrl_bench.trees.tree import Tree

LABELS = {
    "TOP", "S", "SQ", "SBARQ", "SBAR", "VP", "NP", "PP", "ADJP", "ADVP", "WHNP", "WHADVP", "PRT",
    "PRN", "QP", "CONJP", "UCP", "FRAG",
}  # fmt: skip
TAGS = {
    "NN", "NNS", "DTNN", "DTNNS", "NNP", "DTNNP", "JJ", "DTJJ", "JJR", "NOUN_QUANT", "CD", "DT",
    "VBD", "VBP", "VBN", "VN", "IN", "CC", "RB", "RP", "PRP", "PRP$", "WP", "WRB", "PUNC",
}  # fmt: skip
NOUNS = {"NN", "NNS"}
VERBS = {"VBD", "VBP", "VBN"}
# Broken plurals of persons; the sound ones are known by their ending.
MEN = {
    "rjAl", "r&sA'", "wzrA'", "mdrA'", "qAdp", "nwAb", "zEmA'", "sfrA'", "HkAm", "ATbA'", "TlAb",
    "EmAl", "$ErA'", "ElmA'", "xbrA'", "jnwd", "AEDA'", "tjAr", "nqAd",
}  # fmt: skip
PRONOUNS = {"h", "hA", "hmA", "hm", "hn", "ny", "nA"}


@dataclass(frozen=True)
class Part:
    """A daughter: a constituent (``row`` is its place in the tree) or a word (``row`` is -1)."""

    label: str
    words: tuple[str, ...]
    tags: tuple[str, ...]
    row: int


@pytest.fixture(scope="module")
def splits() -> dict[str, list[Tree]]:
    return generate("arabic", {"train": 2000, "dev": 300, "test": 300}, seed=1)


@pytest.fixture(scope="module")
def trees(splits: dict[str, list[Tree]]) -> list[Tree]:
    return [tree for part in splits.values() for tree in part]


def parts(tree: Tree, row: int) -> list[Part]:
    start, end = tree.spans[row].tolist()
    found = []
    position, inner = start, row + 1
    while position < end:
        if inner < len(tree.labels) and tree.spans[inner][0] == position:
            stop = int(tree.spans[inner][1])
            words, tags = tree.words[position:stop], tree.tags[position:stop]
            found.append(Part(tree.labels[inner], words, tags, inner))
            while inner < len(tree.labels) and tree.spans[inner][0] < stop:
                inner += 1
            position = stop
        else:
            tag = tree.tags[position]
            found.append(Part(tag, (tree.words[position],), (tag,), -1))
            position += 1
    return found


@pytest.fixture(scope="module")
def nodes(trees: list[Tree]) -> list[tuple[Tree, str, list[Part]]]:
    """Every constituent with its daughters."""
    return [
        (tree, label, parts(tree, row)) for tree in trees for row, label in enumerate(tree.labels)
    ]


def labels(below: list[Part]) -> list[str]:
    return [part.label for part in below]


def verb_of(below: list[Part]) -> str:
    """The verb of a VP, behind its particle."""
    return next(part.words[0] for part in below if part.label in VERBS)


def plural_of_men(part: Part) -> bool:
    """Whether the first noun of a phrase is a plural that is certainly of men."""
    at = 1 if part.tags[0] == "DT" else 0
    head, tag = part.words[at], part.tags[at]
    sound = tag == "DTNNS" and head.endswith("wn")
    return sound or (tag in {"NN", "DTNN"} and head.removeprefix("Al") in MEN)


def pairs(tree: Tree) -> Iterator[tuple[str, str, str, str]]:
    """Neighbours: word, tag, next word, next tag."""
    return zip(tree.words, tree.tags, tree.words[1:], tree.tags[1:], strict=False)


Nodes = list[tuple[Tree, str, list[Part]]]


def test_inventory(trees: list[Tree]) -> None:
    assert {label for tree in trees for label in tree.labels} == LABELS
    assert {tag for tree in trees for tag in tree.tags} == TAGS
    assert all(tree.labels[0] == "TOP" and tree.labels.count("TOP") == 1 for tree in trees)


def test_lengths(trees: list[Tree]) -> None:
    lengths = [len(tree) for tree in trees]
    assert 36 <= max(lengths) <= 40
    assert 12 <= sum(lengths) / len(lengths) <= 16


def test_part_of_dev_and_test_is_unseen(splits: dict[str, list[Tree]]) -> None:
    known = {word for tree in splits["train"] for word in tree.words}
    assert len(known) > 3000
    for split in ("dev", "test"):
        words = [word for tree in splits[split] for word in tree.words]
        assert 0.04 <= sum(word not in known for word in words) / len(words) <= 0.10


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


def test_shape(nodes: Nodes) -> None:
    for tree, label, below in nodes:
        kinds = labels(below)
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


def test_verbs_before_their_subject_are_singular(nodes: Nodes) -> None:
    """A suffixed plural subject inside VP has a verb in the singular of its gender."""
    checked: Counter[str] = Counter()
    for tree, label, below in nodes:
        kinds = labels(below)
        if label != "VP" or kinds[:2] not in (["VBD", "NP"], ["VBP", "NP"]):
            continue
        noun, verb = below[1].words[0], verb_of(below)
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


def test_verbs_after_their_subject_agree_in_number(nodes: Nodes) -> None:
    checked: Counter[str] = Counter()
    for tree, label, below in nodes:
        kinds = labels(below)
        if label != "S" or "NP" not in kinds[:2] or "VP" not in kinds:
            continue
        at = kinds.index("NP")
        if kinds[at : at + 2] != ["NP", "VP"]:
            continue
        predicate = parts(tree, below[at + 1].row)
        if not VERBS & set(labels(predicate)):
            continue
        noun, verb = below[at].words[0], verb_of(predicate)
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
    for tree in trees:
        for word, tag, following, next_tag in pairs(tree):
            if tag != "RP":
                continue
            checked[word] += 1
            if word in {"lm", "ln", "s", "swf", "lA"}:
                assert next_tag in {"VBP", "VBN"}, tree.words
                assert following[0] in "ytAn", tree.words
            if word == "lqd":
                assert next_tag in {"VBD", "VBP"}
            if word == "lm":
                assert following not in {"yqwl", "tqwl", "yzwr", "yryd", "tryd", "ykwn", "tkwn"}
                assert not following.endswith(("Y", "lwn", "mwn", "rwn")), tree.words
    assert all(checked[word] > 30 for word in ("lm", "s", "lA", "qd", "hl"))
    assert checked["ln"] > 10


def test_pronouns_shape_the_word_before_them(trees: list[Tree]) -> None:
    """-p becomes -t, -Y becomes -A or -y, the -A after -w and the article are absent."""
    checked: Counter[str] = Counter()
    for tree in trees:
        for word, tag, following, next_tag in pairs(tree):
            if next_tag == "PRP$":
                checked["owner"] += 1
                assert following in PRONOUNS - {"ny"}
                assert tag in {"NN", "NNS", "VN"}, tree.words
                assert not word.endswith(("p", "Y")), tree.words
                assert tag == "NN" or not word.endswith(("wn", "tAn")), tree.words
                checked["-t"] += word.endswith("t")
            elif next_tag == "PRP" and following in PRONOUNS and tag in VERBS | {"IN"}:
                checked[tag] += 1
                assert not word.endswith(("wA", "Y")), tree.words
    assert all(checked[kind] > 60 for kind in ("owner", "-t", "VBD", "VBP", "IN"))


def test_construct_state(nodes: Nodes) -> None:
    """The head of an idafa has no article, and no -n in the dual and the sound plural."""
    checked: Counter[str] = Counter()
    for tree, label, below in nodes:
        if label == "NP" and labels(below) in (["NN", "NP"], ["NNS", "NP"]):
            checked["idafa"] += 1
            if below[0].label == "NNS":
                checked["suffixed"] += 1
                assert below[0].words[0].endswith(("At", "A", "y", "w")), tree.words
    assert checked["idafa"] > 1000
    assert checked["suffixed"] > 100


def test_adjectives_agree(nodes: Nodes) -> None:
    """Definiteness, and the suffixes of gender, number and case, in flat noun phrases."""
    checked: Counter[str] = Counter()
    for tree, label, below in nodes:
        kinds = labels(below)
        if label != "NP" or len(kinds) != 2:
            continue
        if kinds[0] in NOUNS and kinds[1] in {"JJ", "DTJJ"}:
            checked["indefinite"] += 1
            assert kinds[1] == "JJ", tree.words
        if kinds[0] in {"DTNN", "DTNNS"} and kinds[1] in {"JJ", "DTJJ"}:
            checked["definite"] += 1
            assert kinds[1] == "DTJJ", tree.words
            noun, adjective = below[0].words[0], below[1].words[0]
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


def test_relative_clauses(nodes: Nodes) -> None:
    """Al*y/Alty by gender, none after an indefinite noun; an object is taken up by a pronoun."""
    checked: Counter[str] = Counter()
    for tree, label, below in nodes:
        if label != "NP" or labels(below) != ["NP", "SBAR"]:
            continue
        head, clause = parts(tree, below[0].row), parts(tree, below[1].row)
        if labels(clause)[0] == "WHNP":
            pronoun = clause[0].words[0]
            assert labels(head)[0] not in {"JJ", "CD"}
            if labels(head) in (["DTNN"], ["DTNN", "DTJJ"], ["DT", "DTNN"]):
                last = head[-1].words[0]
                assert not (last.endswith("p") and pronoun == "Al*y"), tree.words
            if labels(head) in (["DTNNS"], ["DTNNS", "DTJJ"]):
                noun = head[0].words[0]
                checked["suffixed"] += 1
                if noun.endswith("wn"):
                    assert pronoun == "Al*yn", tree.words
                if noun.endswith("tAn"):
                    assert pronoun == "AlltAn", tree.words
            checked[pronoun] += 1
        else:
            checked["none"] += 1
            assert labels(clause) == ["S"], tree.words
            assert not labels(head)[0].startswith(("DT", "NNP")), tree.words
    assert checked["Al*y"] > 60
    assert checked["Alty"] > 60
    assert checked["none"] > 40
    assert checked["suffixed"] > 20


def test_numerals(nodes: Nodes) -> None:
    """Three to ten differ in gender from the noun, a genitive plural; above, the singular."""
    small = {"vlAv", "ArbE", "xms", "st", "sbE", "vmAny", "tsE", "E$r"}
    checked: Counter[str] = Counter()
    for tree, label, below in nodes:
        if label != "NP" or labels(below)[:2] not in (["CD", "NP"], ["QP", "NP"]):
            continue
        number, noun = below[0].words, below[1].words[0]
        if len(number) == 1 and number[0].removesuffix("p") in small:
            checked["small"] += 1
            if noun.endswith("yn") and parts(tree, below[1].row)[0].label == "NNS":
                checked["men"] += 1
                assert number[0].endswith("p"), tree.words
        elif number[0].isdigit() and len(number) == 1 and int(number[0]) <= 90:
            checked["digits"] += parts(tree, below[1].row)[0].label == "NN"
        elif len(number) == 3 and number[1] == "w":
            checked["tens"] += 1
            assert number[2].endswith(("wn", "yn"))
            assert noun.endswith(("p", "A", "A'", "Y")) or number[0] in small | {"vmAn", "AHdY"}
    assert checked["small"] > 40
    assert checked["men"] > 2
    assert checked["digits"] > 40
    assert checked["tens"] > 10


def test_an_clauses(nodes: Nodes) -> None:
    """After An stands a noun phrase (or a place), or at once a verb in the subjunctive."""
    checked: Counter[str] = Counter()
    for tree, label, below in nodes:
        if label != "SBAR" or below[0].words != ("An",):
            continue
        assert labels(below) == ["IN", "S"]
        inner = parts(tree, below[1].row)
        checked[inner[0].label] += 1
        if inner[0].label == "VP":
            verbs = [part.words[0] for part in parts(tree, inner[0].row) if part.label in VERBS]
            assert not any(verb.endswith(("rwn", "mwn", "lwn", "dwn")) for verb in verbs)
        else:
            assert inner[0].label in {"NP", "PP"}, tree.words
    assert checked["NP"] > 100
    assert checked["VP"] > 100


def test_clauses_without_verbs_and_punctuation(nodes: Nodes) -> None:
    verbless = 0
    for tree, label, below in nodes:
        kinds = [kind for kind in labels(below) if kind not in {"PUNC", "CC"}]
        if label == "S" and kinds in (["NP", "ADJP"], ["NP", "NP"], ["NP", "PP"], ["PP", "NP"]):
            verbless += 1
        if label == "TOP":
            assert len(below) == 1
        if label in {"S", "SQ", "SBARQ"} and len(below[-1].words) == 1:
            assert below[-1].words[0] not in {".", "?"} or tree.words[-1] == below[-1].words[0]
    assert verbless > 150
    assert all(
        not (left == right == "PUNC" and {one, two} <= {",", "."})
        for tree, label, _ in nodes
        if label == "TOP"
        for one, left, two, right in pairs(tree)
    )
