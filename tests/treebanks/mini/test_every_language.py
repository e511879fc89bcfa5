"""Every mini treebank: its labels and tags, lengths, unseen words, spelling, and determinism."""

from __future__ import annotations

import pytest

from spmrl_bench.treebanks.mini.generate import available_grammars, generate
from tests.treebanks.mini import (
    test_arabic,
    test_basque,
    test_chinese,
    test_english,
    test_french,
    test_german,
    test_hebrew,
    test_hungarian,
    test_korean,
    test_polish,
    test_swedish,
)
from tests.treebanks.mini.language import SEED, Language, parses_of, splits_of, trees_of
from tests.treebanks.mini.nodes import neighbours

LANGUAGES: tuple[Language, ...] = (
    test_arabic.LANGUAGE,
    test_basque.LANGUAGE,
    test_chinese.LANGUAGE,
    test_english.LANGUAGE,
    test_french.LANGUAGE,
    test_german.LANGUAGE,
    test_hebrew.LANGUAGE,
    test_hungarian.LANGUAGE,
    test_korean.LANGUAGE,
    test_polish.LANGUAGE,
    test_swedish.LANGUAGE,
)
# Also full-width, as Chinese has them, and by name, as Hebrew has them.
COMMAS = {",", "\uff0c", "yyCM"}
STOPS = {*".?!;:", "\u3002", *"\uff1f\uff01\uff1b", "yyDOT", "yyQM", "yyEXCL", "yyCLN"}
# The scope puts the tests of a language behind each other: its grammar is read only once.
each_language = pytest.mark.parametrize(
    "language", LANGUAGES, ids=lambda language: language.name, scope="module"
)


def test_every_grammar_is_described() -> None:
    assert [language.name for language in LANGUAGES] == available_grammars()


@each_language
def test_inventory(language: Language) -> None:
    trees = trees_of(language.name)
    assert {label for tree in trees for label in tree.labels} == language.labels
    tags = {tag for tree in trees for tag in tree.tags}
    joint = language.joint
    assert {
        part for tag in tags for part in (tag.split(joint) if joint else [tag])
    } == language.tags


@each_language
def test_one_root_stands_over_every_sentence(language: Language) -> None:
    for tree in trees_of(language.name):
        assert tree.labels[0] == language.root
        assert tree.labels.count(language.root) == 1
        assert tree.spans[0].tolist() == [0, len(tree)]


@each_language
def test_lengths(language: Language) -> None:
    lengths = [len(tree) for tree in trees_of(language.name)]
    for value, (least, most) in (
        (min(lengths), language.shortest),
        (max(lengths), language.longest),
        (sum(lengths) / len(lengths), language.mean),
    ):
        assert least <= value <= most


@each_language
def test_part_of_dev_and_test_is_unseen(language: Language) -> None:
    splits = splits_of(language.name)
    known = {word for tree in splits["train"] for word in tree.words}
    assert len(known) > language.known
    for split in ("dev", "test"):
        words = [word for tree in splits[split] for word in tree.words]
        least, most = language.unseen
        assert least <= sum(word not in known for word in words) / len(words) <= most


@each_language
def test_words_have_no_notation_and_sentences_begin_as_they_should(language: Language) -> None:
    for tree in trees_of(language.name):
        for word in tree.words:
            assert word, tree.words
            assert "+" not in word, tree.words
            assert not any(letter.isspace() for letter in word), tree.words
        if language.capitals:
            first = next(word for word in tree.words if word[0].isalnum())
            assert first[0].isupper() or first[0].isdigit(), tree.words


@each_language
def test_commas_stand_between_words(language: Language) -> None:
    commas = 0
    for word, _, following, _ in neighbours(trees_of(language.name)):
        if word in COMMAS:
            commas += 1
            assert following not in COMMAS | STOPS, (word, following)
    assert commas > 300


@each_language
def test_the_seed_decides(language: Language) -> None:
    first = parses_of(language.name)["train"][:20]
    assert generate(language.name, {"train": 20}, seed=SEED)["train"] == first
    assert generate(language.name, {"train": 20}, seed=SEED + 1)["train"] != first
