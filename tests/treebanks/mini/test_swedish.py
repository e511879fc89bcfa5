"""Properties of Swedish that the generated trees must have, checked without the engine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

import pytest

from spmrl_bench.treebanks.mini.generate import generate
from spmrl_bench.trees.tree import Tree

LABELS = {
    "ROOT", "S", "CS", "NP", "CNP", "PP", "CPP", "VP", "CVP", "AP", "CAP", "AVP", "CAVP", "XP",
}  # fmt: skip
TAGS = {
    "AB", "DT", "HA", "HD", "HP", "HS", "IE", "IN", "JJ", "KN", "MAD", "MID", "NN", "PAD", "PC",
    "PL", "PM", "PN", "PP", "PS", "RG", "RO", "SN", "UO", "VB",
}  # fmt: skip
HOMOGRAPHS = {"lag", "laget", "lagen", "lags"}  # law is common gender, team neuter
COPULAS = {"är", "var", "blir", "blev", "verkar", "verkade"}
# Adjectives with one form for all genders and numbers, besides comparatives and participles in -e.
FIXED = {"bra", "äkta", "samtida", "nutida", "framtida", "dåtida", "öde", "mindre"}

Part = tuple[str, int, int]
"""A daughter: its label or tag, and the words it covers, ``start`` to ``end``."""


@pytest.fixture(scope="module")
def splits() -> dict[str, list[Tree]]:
    return generate("swedish", {"train": 2000, "dev": 300, "test": 300}, seed=1)


@pytest.fixture(scope="module")
def trees(splits: dict[str, list[Tree]]) -> list[Tree]:
    return [tree for part in splits.values() for tree in part]


def daughters(tree: Tree, row: int) -> list[Part]:
    """What stands directly below a constituent, from left to right."""
    start, end = tree.spans[row].tolist()
    found: list[Part] = []
    position, inner = start, row + 1
    while position < end:
        if inner < len(tree.labels) and tree.spans[inner][0] == position:
            stop = int(tree.spans[inner][1])
            found.append((tree.labels[inner], position, stop))
            while inner < len(tree.labels) and tree.spans[inner][0] < stop:
                inner += 1
            position = stop
        else:
            found.append((tree.tags[position], position, position + 1))
            position += 1
    return found


def phrases(trees: list[Tree], *labels: str) -> Iterator[tuple[Tree, list[str], list[Part]]]:
    """Constituents with one of the labels: tree, words in lower case, daughters."""
    for tree in trees:
        words = [word.lower() for word in tree.words]
        for row, label in enumerate(tree.labels):
            if label in labels:
                yield tree, words, daughters(tree, row)


def statements(trees: list[Tree]) -> Iterator[tuple[Tree, list[str], list[Part]]]:
    """Plain main clauses that are whole sentences with a full stop, commands left out."""
    for tree in trees:
        if tree.labels[:2] == ("ROOT", "S") and tree.words[-1] == ".":
            below = daughters(tree, 1)
            if below[0][0] not in {"MID", "PAD", "IN", "VB"} and "PAD" not in names(below):
                yield tree, [word.lower() for word in tree.words], below


def names(below: list[Part]) -> list[str]:
    return [name for name, _, _ in below]


def place(words: list[str], below: list[Part], word: str) -> int | None:
    """Which daughter is this single word."""
    for number, (_, start, end) in enumerate(below):
        if end == start + 1 and words[start] == word:
            return number
    return None


def nouns_after(trees: list[Tree], articles: set[str]) -> set[str]:
    """Nouns after an article, with at most one adjective between them."""
    found = set()
    for tree in trees:
        for position, word in enumerate(tree.words[:-2]):
            if word.lower() in articles and tree.tags[position] == "DT":
                position += 1 + (tree.tags[position + 1] == "JJ")
                if tree.tags[position] == "NN":
                    found.add(tree.words[position])
    return found


def test_inventory(trees: list[Tree]) -> None:
    assert {label for tree in trees for label in tree.labels} == LABELS
    assert {tag for tree in trees for tag in tree.tags} == TAGS
    assert all(tree.labels[0] == "ROOT" and tree.labels.count("ROOT") == 1 for tree in trees)


def test_lengths(trees: list[Tree]) -> None:
    lengths = [len(tree) for tree in trees]
    assert min(lengths) == 1
    assert 36 <= max(lengths) <= 40
    assert 11 <= sum(lengths) / len(lengths) <= 15


def test_part_of_dev_and_test_is_unseen(splits: dict[str, list[Tree]]) -> None:
    known = {word for tree in splits["train"] for word in tree.words}
    assert len(known) > 3000
    for split in ("dev", "test"):
        words = [word for tree in splits[split] for word in tree.words]
        assert 0.04 <= sum(word not in known for word in words) / len(words) <= 0.10


def test_talbanken_shape(trees: list[Tree]) -> None:
    """No node over one word except clauses; C* has a conjunction; punctuation in the clause."""
    for _, _, below in phrases(trees, *(LABELS - {"ROOT", "S"})):
        assert len(below) > 1
    coordinations = 0
    for _, _, below in phrases(trees, "CS", "CNP", "CVP", "CAP", "CPP", "CAVP"):
        coordinations += 1
        assert "KN" in names(below)
    assert coordinations > 500
    for _, _, below in phrases(trees, "PP"):
        assert "PP" in names(below)[:2]
    for tree, _, below in phrases(trees, "ROOT"):
        assert len(below) == 1
        if tree.tags[-1] == "MAD":
            assert below[0][0] in {"S", "CS"}
            assert daughters(tree, 1)[-1][0] == "MAD"


def test_main_clauses_are_verb_second(trees: list[Tree]) -> None:
    kinds: Counter[str] = Counter()
    for tree, _, below in statements(trees):
        after_comma = names(below)[:2] == ["S", "MID"]
        assert below[2 if after_comma else 1][0] == "VB", tree.words
        kinds["subject first" if names(below)[0] in {"NP", "CNP", "PN", "NN"} else "other"] += 1
        if after_comma:
            kinds["comma"] += 1
    assert kinds["subject first"] > 600
    assert kinds["other"] > 250
    assert kinds["comma"] > 15


def test_negation_stands_after_the_finite_verb_only_in_main_clauses(trees: list[Tree]) -> None:
    kinds: Counter[str] = Counter()
    for tree, words, below in statements(trees):
        negation, verb = place(words, below, "inte"), names(below).index("VB")
        if negation is not None:
            kinds["main"] += 1
            assert verb < negation, tree.words
    for tree, words, below in phrases(trees, "S"):
        negation = place(words, below, "inte")
        if negation is not None and below[0][0] in {"SN", "HP"} and words[below[0][1]] != "vem":
            verbs = [number for number, name in enumerate(names(below)) if name in {"VB", "VP"}]
            if words[below[0][1]] == "vad" or tree.words[-1] == "?":
                continue  # a question may be a main clause
            kinds["subordinate"] += 1
            assert negation < verbs[0], tree.words
    assert kinds["main"] > 100
    assert kinds["subordinate"] > 50


def test_particles_follow_verb_subject_and_negation(trees: list[Tree]) -> None:
    kinds: Counter[str] = Counter()
    for tree, words, below in phrases(trees, "S", "VP"):
        tags = names(below)
        if "PL" in tags:
            kinds["all"] += 1
            assert "VB" in tags[: tags.index("PL")], tree.words
            negation = place(words, below, "inte")
            if negation is not None:
                kinds["negated"] += 1
                assert negation < tags.index("PL"), tree.words
    assert kinds["all"] > 150
    assert kinds["negated"] > 10


def test_att_takes_infinitives_and_har_supines(trees: list[Tree]) -> None:
    kinds: Counter[str] = Counter()
    for tree in trees:
        words = [word.lower() for word in tree.words]
        for position, tag in enumerate(tree.tags):
            if tag == "IE":
                kinds["infinitive"] += 1
                following = words[position + 1]
                assert tree.tags[position + 1] == "VB", tree.words
                assert not following.endswith(("r", "de", "te", "it", "at")), tree.words
    for tree, words, below in phrases(trees, "S"):
        for (name, start, _), (after, position, _) in pairwise(below):
            if name == "VB" and words[start] in {"har", "hade"} and after in {"VB", "VP"}:
                kinds["supine"] += 1
                assert words[position].endswith(("t", "ts")), tree.words
    assert kinds["infinitive"] > 150
    assert kinds["supine"] > 100


def test_common_and_neuter_nouns_differ(trees: list[Tree]) -> None:
    common, neuter = nouns_after(trees, {"en"}), nouns_after(trees, {"ett"})
    assert len(common) > 200
    assert len(neuter) > 80
    assert common & neuter <= HOMOGRAPHS


def test_definiteness_is_marked_twice_after_den_and_an_adjective(trees: list[Tree]) -> None:
    """``den stora bilen`` but ``den stora bil som`` and ``denna bil``, ``sin bil``."""
    indefinite = nouns_after(trees, {"en", "ett"}) - HOMOGRAPHS
    definite: set[str] = set()
    bare: set[str] = set()
    kinds: Counter[str] = Counter()
    for tree, words, below in phrases(trees, "NP"):
        tags = names(below)
        singular = words[below[0][1]] in {"den", "det"}
        if tags == ["DT", "JJ", "NN"] and singular:
            kinds["double"] += 1
            assert tree.words[below[2][1]] not in indefinite, tree.words
            definite.add(tree.words[below[2][1]])
        if tags == ["DT", "NN"] and words[below[0][1]] in {"denna", "detta"}:
            kinds["single"] += 1
            bare.add(tree.words[below[1][1]])
    assert kinds["double"] > 100
    assert kinds["single"] > 30
    assert not definite & bare


def test_attributive_and_predicative_adjectives_agree(trees: list[Tree]) -> None:
    kinds: Counter[str] = Counter()

    def check(tree: Tree, number: str, position: int) -> None:
        form = tree.words[position].lower()
        if form in FIXED or form.endswith(("re", "st", "nde")):
            return
        kinds[number] += 1
        if number == "plural":
            assert form.endswith(("a", "e")) or form == "små", tree.words
        elif number == "neuter":
            assert form.endswith("t"), tree.words
        else:
            assert not form.endswith(("a", "ade")), tree.words

    numbers = {
        "common": {"en", "den", "denna", "min", "sin", "någon", "ingen"},
        "neuter": {"ett", "det", "detta", "mitt", "sitt", "något", "inget"},
        "plural": {"de", "dessa", "mina", "sina", "några", "inga", "alla", "många", "flera"},
    }
    first = {word: number for number, words in numbers.items() for word in words}
    for tree, words, below in phrases(trees, "NP"):
        if words[below[0][1]] in {"en", "ett", "de"} and names(below)[:3] == ["DT", "JJ", "NN"]:
            check(tree, first[words[below[0][1]]], below[1][1])
    attributive = sum(kinds.values())
    for tree, words, below in phrases(trees, "S"):
        if names(below)[:2] == ["NP", "VB"] and words[below[1][1]] in COPULAS:
            number = first.get(words[below[0][1]])
            for name, start, end in below[2:]:
                if number is not None and name in {"JJ", "PC", "AP"}:
                    degree = name == "AP" and tree.tags[start] == "AB" and end == start + 2
                    if degree or name != "AP":
                        check(tree, number, start + degree)
                    break
    assert attributive > 200
    assert sum(kinds.values()) - attributive > 25
    assert min(kinds[number] for number in ("common", "neuter", "plural")) > 50


def test_genitives_end_in_s(trees: list[Tree]) -> None:
    checked = 0
    for tree, _, below in phrases(trees, "NP"):
        tags = names(below)
        if len(tags) >= 2 and tags[0] == "NP" and "NN" in tags[1:3]:
            checked += 1
            assert tree.words[below[0][2] - 1][-1] in "sxz", tree.words
        if tags == ["NN", "NN"] or tags == ["NN", "JJ", "NN"]:
            checked += 1
            assert tree.words[below[0][1]][-1] in "sxz", tree.words
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


def test_agents_follow_passives(trees: list[Tree]) -> None:
    """Before an agent with *av*: a verb in -s, or *bli* and a participle."""
    kinds: Counter[str] = Counter()
    for tree, words, below in phrases(trees, "S", "VP"):
        for (left, verb, _), (right, start, _) in pairwise(below):
            if right != "PP" or words[start] != "av":
                continue
            if left == "PC":
                kinds["bli"] += 1
                assert {words[begin] for name, begin, _ in below if name == "VB"} <= {
                    "blir",
                    "blev",
                    "blivit",
                }, tree.words
            if left == "VB" and words[verb][:3] not in {"nju", "njö", "lid", "led"}:
                kinds["s"] += 1
                assert words[verb].endswith("s"), tree.words
    assert kinds["bli"] > 20
    assert kinds["s"] > 50


def test_punctuation_and_capitals(trees: list[Tree]) -> None:
    for tree in trees:
        first = next(word for word in tree.words if word[0].isalnum())
        assert first[0].isupper() or first[0].isdigit()
        for word, tag in zip(tree.words, tree.tags, strict=True):
            assert "+" not in word
            assert "_" not in word
            assert not any(a == b == c for a, b, c in zip(word, word[1:], word[2:], strict=False))
            assert tag != "PM" or word[0].isupper()
        for left, right in pairwise(tree.words):
            assert not (left == "," and right in {",", ".", "?"}), tree.words
