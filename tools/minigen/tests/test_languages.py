"""The shipped treebanks are what their grammars give, and what their languages want."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache

import pytest

from tools.minigen.__main__ import GRAMMARS, SEED, SHIPPED, SIZES, files_of
from tools.minigen.generate import read_grammar
from tools.minigen.ground import GroundGrammar
from tools.minigen.tests.derivations import derivations
from tools.minigen.tests.languages import AGREEMENT, ANALYSES, INVENTORY, Word
from tools.minigen.tests.trees import (
    Span,
    heads_outside,
    is_projective,
    spans_of,
    splits_of,
    way_up,
    words_of,
)

each_language = pytest.mark.parametrize("language", INVENTORY)


@cache
def source_of(language: str) -> GroundGrammar:
    return read_grammar(GRAMMARS / f"{language}.toml")


def sentences(language: str) -> Iterator[tuple[str, list[Span], list[Word]]]:
    """Each shipped sentence: its split, constituents and words."""
    for split, trees, blocks in splits_of(language):
        for tree, rows in zip(trees, blocks, strict=True):
            yield split, spans_of(tree), words_of(rows)


def test_every_grammar_is_described() -> None:
    names = {path.stem for path in GRAMMARS.glob("*.toml")}
    assert names == set(INVENTORY) == set(AGREEMENT) == set(ANALYSES)
    assert names == {path.name for path in SHIPPED.iterdir()}


@each_language
def test_the_shipped_files_are_what_the_grammar_gives(language: str) -> None:
    for name, text in files_of(source_of(language), SIZES, SEED).items():
        assert (SHIPPED / language / name).read_bytes() == text.encode(), name


@each_language
def test_inventory(language: str) -> None:
    labels, tags, relations = (text.split() for text in INVENTORY[language])
    found: tuple[set[str], set[str], set[str]] = (set(), set(), set())
    for _, spans, words in sentences(language):
        assert spans[-1] == (labels[0], 0, len(words))
        assert [label for label, _, _ in spans].count(labels[0]) == 1
        found[0].update(label for label, _, _ in spans)
        for word in words:
            found[1].update(word.tag.split("+") if language == "korean" else [word.tag])
        found[2].update(word.relation for word in words)
    assert found == (set(labels), set(tags), set(relations))


@each_language
def test_words_agree(language: str) -> None:
    check, least = AGREEMENT[language]
    seen = 0
    for split, _, words in sentences(language):
        lowered = [replace(word, form=word.form.lower()) for word in words]
        for agrees in check(lowered):
            assert agrees, [word.form for word in words]
            seen += split == "train"
    assert seen > least


@each_language
def test_heads_form_a_projective_tree_and_every_constituent_has_one_head(language: str) -> None:
    for _, spans, words in sentences(language):
        heads = [word.head + 1 for word in words]
        assert [word.relation for word in words if word.head < 0] == ["root"]
        assert is_projective(heads), words
        assert all(words[word.head].relation != "punct" for word in words if word.head >= 0)
        for label, start, end in spans:
            assert heads_outside(heads, start, end) == 1, (label, words)


@each_language
def test_part_of_dev_and_test_is_unseen_and_no_long_sentence_occurs_twice(language: str) -> None:
    forms: dict[str, list[str]] = {split: [] for split in SIZES}
    long = []
    for split, _, words in sentences(language):
        sentence = [word.form for word in words]
        forms[split] += sentence
        long += [" ".join(sentence)] * (len(sentence) > 3)
    assert len(long) == len(set(long))
    known = set(forms["train"])
    for split in ("dev", "test"):
        share = sum(form not in known for form in forms[split]) / len(forms[split])
        assert 0.03 < share < 0.18


@each_language
def test_a_sentence_has_the_analysis_of_a_grammarian(language: str) -> None:
    items = ANALYSES[language].split()
    found = [
        [f"{word.form}/{word.relation}/{word.head + 1}" for word in words]
        for _, _, words in sentences(language)
        if [word.form for word in words] == [item.rsplit("/", 2)[0] for item in items]
    ]
    assert found == [items]


@each_language
def test_every_rule_links_its_daughters_to_a_tree(language: str) -> None:
    """One derivation for each rule and each way in which its daughters are linked."""
    source = source_of(language)
    used = set()
    for key, heads, relations, headed in derivations(source):
        used.add(key)
        assert heads.count(0) == 1, key
        assert relations[heads.index(0)] == "root"
        assert all(way_up(heads, word)[-1] == 0 for word in range(1, len(heads) + 1)), key
        assert is_projective(heads), key
        for start, end in headed:
            assert heads_outside(heads, start, end) == 1, key
    grammar = source.grammar
    phrases = [rules for name, rules in grammar.rules.items() if name in grammar.table.phrases]
    assert used == {rule.key for rules in phrases for rule in rules}  # so none is never used
