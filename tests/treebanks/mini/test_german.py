"""Properties of German that the generated trees must have, checked without the engine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

from spmrl_bench.treebanks.mini.generate import generate
from spmrl_bench.trees.tree import Tree

LABELS = {"TOP", "S", "CS", "VP", "CVP", "VZ", "NP", "CNP", "PP", "AP", "CAP", "AVP", "MPN", "NM"}
TAGS = {
    "ART", "NN", "NE", "ADJA", "ADJD", "APPR", "APPRART", "VVFIN", "VVINF", "VVPP", "VVIZU",
    "VAFIN", "VAINF", "VAPP", "VMFIN", "PTKVZ", "PTKZU", "PTKNEG", "KOUS", "KON", "PPER", "PRF",
    "PRELS", "PDAT", "PIAT", "PIS", "PPOSAT", "PWS", "PWAV", "ADV", "CARD", "$.", "$,",
    "$(",
}  # fmt: skip
FINITE = {"VVFIN", "VAFIN", "VMFIN"}
# Article form -> endings an adjective may have after it (weak after der, mixed after ein).
AFTER_ARTICLE = {
    "der": "e en", "die": "e en", "das": "e", "den": "en", "dem": "en", "des": "en",
    "ein": "er es", "eine": "e", "einen": "en", "einem": "en", "einer": "en", "eines": "en",
}  # fmt: skip


@pytest.fixture(scope="module")
def splits() -> dict[str, list[Tree]]:
    return generate("german", {"train": 2000, "dev": 300, "test": 300}, seed=1)


@pytest.fixture(scope="module")
def trees(splits: dict[str, list[Tree]]) -> list[Tree]:
    return [tree for part in splits.values() for tree in part]


def daughters(tree: Tree, row: int) -> list[str]:
    """Labels and tags directly below a constituent."""
    start, end = tree.spans[row].tolist()
    found = []
    position, inner = start, row + 1
    while position < end:
        if inner < len(tree.labels) and tree.spans[inner][0] == position:
            found.append(tree.labels[inner])
            position = int(tree.spans[inner][1])
            while inner < len(tree.labels) and tree.spans[inner][0] < position:
                inner += 1
        else:
            found.append(tree.tags[position])
            position += 1
    return found


def clauses(trees: list[Tree]) -> Iterator[tuple[Tree, int, list[str]]]:
    for tree in trees:
        for row, label in enumerate(tree.labels):
            if label == "S":
                yield tree, row, daughters(tree, row)


def test_inventory(trees: list[Tree]) -> None:
    assert {label for tree in trees for label in tree.labels} == LABELS
    assert {tag for tree in trees for tag in tree.tags} == TAGS
    assert all(tree.labels[0] == "TOP" and tree.labels.count("TOP") == 1 for tree in trees)


def test_lengths(trees: list[Tree]) -> None:
    lengths = [len(tree) for tree in trees]
    assert min(lengths) == 1
    assert 36 <= max(lengths) <= 40
    assert 12 <= sum(lengths) / len(lengths) <= 16


def test_part_of_dev_and_test_is_unseen(splits: dict[str, list[Tree]]) -> None:
    known = {word for tree in splits["train"] for word in tree.words}
    for split in ("dev", "test"):
        words = [word for tree in splits[split] for word in tree.words]
        assert 0.04 <= sum(word not in known for word in words) / len(words) <= 0.10


def test_main_clauses_are_verb_second_and_others_verb_final(trees: list[Tree]) -> None:
    kinds: Counter[str] = Counter()
    for tree, row, below in clauses(trees):
        start = tree.spans[row][0]
        if below[0] == "KOUS" or "PRELS" in tree.tags[start : start + 2]:
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


def test_separated_particles_close_main_clauses(trees: list[Tree]) -> None:
    seen = 0
    for _, _, below in clauses(trees):
        if "PTKVZ" in below:
            seen += 1
            rest = below[below.index("PTKVZ") + 1 :]
            assert "VVFIN" in below
            assert rest in ([], ["$,", "S"])
    assert seen > 50


def test_tiger_shape(trees: list[Tree]) -> None:
    for tree in trees:
        for row, label in enumerate(tree.labels):
            below = daughters(tree, row)
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


def test_punctuation_and_capitals(trees: list[Tree]) -> None:
    for tree in trees:
        first = next(word for word in tree.words if word[0].isalnum())
        assert first[0].isupper() or first[0].isdigit()
        for word, tag in zip(tree.words, tree.tags, strict=True):
            assert "+" not in word
            assert " " not in word
            assert tag not in {"NN", "NE"} or word[0].isupper()
        for left, right in zip(tree.tags, tree.tags[1:], strict=False):
            assert not (left == "$," and right in {"$,", "$."}), tree.words
