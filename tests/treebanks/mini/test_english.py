"""The English mini grammar gives grammatical, varied trees in the style of the Penn Treebank."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

import pytest

from spmrl_bench.treebanks.mini.generate import generate
from spmrl_bench.trees.tree import Tree

SENTENCES = 400

LABELS = "TOP S SBAR SBARQ SQ SINV FRAG PRN NP VP PP ADJP ADVP PRT QP WHNP WHADVP WHADJP"
TAGS = (
    "DT NN NNS NNP NNPS PRP PRP$ VB VBD VBZ VBP VBG VBN MD TO IN CC CD JJ JJR JJS RB RBR RBS RP "
    "WDT WP WP$ WRB POS EX $ , . : `` '' -LRB- -RRB-"
)
BE_FORMS = {"be", "am", "is", "are", "was", "were", "been", "being", "'m", "'re"}
SINGULAR_ONLY = {"a", "an", "every", "each", "another", "this", "that"}
PLURAL_ONLY = {"these", "those", "all", "both"}


@pytest.fixture(scope="module")
def trees() -> list[Tree]:
    return generate("english", {"train": SENTENCES}, seed=7)["train"]


def daughters(tree: Tree, row: int) -> list[tuple[str, int, int]]:
    """Labels and spans of the daughters of a constituent; a bare word counts with its tag."""
    start, end = tree.spans[row]
    found: list[tuple[str, int, int]] = []
    position, other = start, row + 1
    while position < end:
        if other < len(tree.labels) and tree.spans[other, 0] == position:
            stop = int(tree.spans[other, 1])
            found.append((tree.labels[other], int(position), stop))
            position = stop
            while other < len(tree.labels) and tree.spans[other, 0] < stop:
                other += 1
        else:
            found.append((tree.tags[position], int(position), int(position) + 1))
            position += 1
    return found


def constituents(
    trees: list[Tree], *labels: str
) -> Iterator[tuple[Tree, int, list[tuple[str, int, int]]]]:
    for tree in trees:
        for row, label in enumerate(tree.labels):
            if label in labels:
                yield tree, row, daughters(tree, row)


def head_number(tree: Tree, start: int, end: int) -> str | None:
    """Number of a simple subject: of its last noun or its pronoun; None where it is not simple."""
    tags = tree.tags[start:end]
    last = tree.words[end - 1].lower()
    if tags == ("PRP",):
        return {"he": "sg", "she": "sg", "it": "sg", "i": "i"}.get(last, "pl")
    if set(tags) <= {"DT", "JJ", "JJR", "JJS", "NN", "NNS", "PRP$"}:
        return {"NN": "sg", "NNS": "pl"}.get(tags[-1])
    return None


def test_labels_and_tags_are_those_of_the_penn_treebank(trees: list[Tree]) -> None:
    assert {label for tree in trees for label in tree.labels} == set(LABELS.split())
    assert {tag for tree in trees for tag in tree.tags} <= set(TAGS.split())


def test_every_sentence_stands_below_one_top(trees: list[Tree]) -> None:
    for tree in trees:
        assert tree.labels[0] == "TOP"
        assert tree.labels.count("TOP") == 1
        assert tuple(tree.spans[0]) == (0, len(tree))
        assert len(daughters(tree, 0)) == 1


def test_lengths(trees: list[Tree]) -> None:
    lengths = [len(tree) for tree in trees]
    assert min(lengths) <= 2
    assert 30 <= max(lengths) <= 42
    assert 12 <= sum(lengths) / len(lengths) <= 16.5


def test_determiners_agree_with_their_noun(trees: list[Tree]) -> None:
    checked = 0
    for tree, _, parts in constituents(trees, "NP"):
        if len(parts) < 2 or parts[0][0] != "DT" or parts[-1][0] not in ("NN", "NNS"):
            continue
        word = tree.words[parts[0][1]].lower()
        if word in SINGULAR_ONLY | PLURAL_ONLY:
            checked += 1
            assert (parts[-1][0] == "NN") == (word in SINGULAR_ONLY), tree
    assert checked > 50


def test_subject_and_finite_verb_agree(trees: list[Tree]) -> None:
    checked = {"sg": 0, "pl": 0, "i": 0}
    for tree, _, parts in constituents(trees, "S"):
        for left, right in pairwise(parts):
            if left[0] != "NP" or right[0] != "VP":
                continue
            number = head_number(tree, left[1], left[2])
            verb, tag = tree.words[right[1]].lower(), tree.tags[right[1]]
            if number is None or tag not in ("VBZ", "VBP", "VBD"):
                continue
            checked[number] += 1
            if tag == "VBD":
                assert not (verb == "was" and number == "pl"), tree
                assert not (verb == "were" and number != "pl"), tree
            else:
                assert (tag == "VBZ") == (number == "sg"), tree
                assert verb != "are" or number == "pl", tree
    assert checked["sg"] > 60
    assert checked["pl"] > 30
    assert checked["i"] > 0


def test_pronouns_have_the_case_of_their_place(trees: list[Tree]) -> None:
    subjects = {"i", "he", "she", "we", "they", "it", "you"}
    objects = {"me", "him", "her", "us", "them", "it", "you"}
    checked = 0
    for tree, _, parts in constituents(trees, "PP", "VP"):
        for label, start, end in parts[1:]:
            if label == "NP" and tree.tags[start:end] == ("PRP",):
                checked += 1
                assert tree.words[start].lower() in objects, tree
    for tree, _, parts in constituents(trees, "S"):
        for left, right in pairwise(parts):
            start, end = left[1:]
            finite = right[0] == "VP" and tree.tags[right[1]] in ("VBZ", "VBP", "VBD", "MD")
            if finite and left[0] == "NP" and tree.tags[start:end] == ("PRP",):
                checked += 1
                assert tree.words[start].lower() in subjects, tree
    assert checked > 80


def test_auxiliaries_govern_the_right_verb_form(trees: list[Tree]) -> None:
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
    for tree, _, parts in constituents(trees, "VP"):
        first = parts[0][1]
        if parts[-1][0] != "VP" or parts[0][0] == "VP" or tree.tags[parts[-1][1]] == "CC":
            continue
        tag = tree.tags[first]
        key = tag if tag in ("MD", "TO") else lemmas.get(tree.words[first].lower())
        below = tree.tags[parts[-1][1]]
        if key is not None and below.startswith("VB"):
            checked.add(key)
            assert below in governed[key], tree
    assert checked == set(governed)


def test_the_indefinite_article_fits_the_next_word(trees: list[Tree]) -> None:
    text = "\n".join(" ".join(tree.words) for tree in trees).lower()
    assert len(re.findall(r"(?<!\S)an [aeiouh8]", text)) > 10
    assert not re.findall(r"(?<!\S)a [aeio](?!ne)\S*", text)
    assert not re.findall(r"(?<!\S)an [^aeiouh81]\S*", text)


def test_attachment_differs_between_sentences(trees: list[Tree]) -> None:
    below_noun = sum(
        [part[0] for part in parts][:2] == ["NP", "PP"] for *_, parts in constituents(trees, "NP")
    )
    below_verb = sum(
        any(left[0] == "NP" and right[0] == "PP" for left, right in pairwise(parts))
        for *_, parts in constituents(trees, "VP")
    )
    assert below_noun > 50
    assert below_verb > 50


def test_a_share_of_test_words_is_unseen() -> None:
    splits = generate("english", {"train": 2000, "test": 300}, seed=1)
    known = {word for tree in splits["train"] for word in tree.words}
    words = [word for tree in splits["test"] for word in tree.words]
    unseen = sum(word not in known for word in words) / len(words)
    assert 0.03 < unseen < 0.10


def test_the_seed_decides(trees: list[Tree]) -> None:
    assert generate("english", {"train": 20}, seed=7)["train"] == trees[:20]
    assert generate("english", {"train": 20}, seed=8)["train"] != trees[:20]
