"""Every mini treebank: labels, tags, lengths, unseen words, spelling, determinism, dependencies."""

from __future__ import annotations

import pytest

from spmrl_bench.treebanks.mini.generate import available_grammars, generate, ground_grammar
from spmrl_bench.treebanks.mini.links import attach
from spmrl_bench.trees.parse import Parse
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
from tests.treebanks.mini.analyses import ANALYSES
from tests.treebanks.mini.heads import UNIVERSAL, chain, derivations, outside, projective, written
from tests.treebanks.mini.language import (
    SEED,
    Language,
    constituents,
    dependencies,
    parses_of,
    splits_of,
    trees_of,
)
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


def all_of(language: Language) -> list[Parse]:
    return [parse for parses in parses_of(language.name).values() for parse in parses]


@each_language
def test_layers_are_over_the_same_words_and_every_relation_is_universal(language: Language) -> None:
    for parse in all_of(language):
        tree, layer = constituents(parse), dependencies(parse)
        assert layer.words == tree.words
        assert layer.tags == tree.tags
        assert {kind.split(":")[0] for kind in layer.relations} <= UNIVERSAL


@each_language
def test_heads_form_a_projective_tree_with_one_root(language: Language) -> None:
    for parse in all_of(language):
        layer = dependencies(parse)
        heads = layer.heads.tolist()
        roots = [kind for head, kind in zip(heads, layer.relations, strict=True) if head == 0]
        assert roots == ["root"]
        assert layer.relations.count("root") == 1
        assert all(chain(heads, word)[-1] == 0 for word in range(1, len(heads) + 1))
        assert projective(heads), written(parse)


@each_language
def test_one_word_of_every_constituent_has_its_head_outside(language: Language) -> None:
    for parse in all_of(language):
        heads = dependencies(parse).heads.tolist()
        for start, end, label in constituents(parse).constituents():
            assert outside(heads, start, end) == 1, (label, written(parse))


@each_language
def test_punctuation_and_conjunctions_govern_nothing_and_subjects_are_single(
    language: Language,
) -> None:
    several = 0
    for parse in all_of(language):
        layer = dependencies(parse)
        subjects = []
        for head, kind in zip(layer.heads.tolist(), layer.relations, strict=True):
            above = layer.relations[head - 1] if head else ""
            assert above != "punct", written(parse)
            assert above != "cc" or kind == "fixed", written(parse)
            if kind.split(":")[0] in {"nsubj", "csubj"}:
                subjects.append(head)
        several += len(subjects) > len(set(subjects))
    assert several <= 10  # of 2600: a topic, or a relative clause without its noun


@each_language
def test_every_rule_links_its_daughters_to_a_tree(language: Language) -> None:
    """One derivation for each rule and each way in which its daughters are linked."""
    source = ground_grammar(language.name)
    used = set()
    for key, derivation in derivations(source):
        used.add(key)
        heads, relations = attach(derivation.parents, derivation.links, ())
        assert heads.count(0) == 1, key
        assert relations[heads.index(0)] == "root"
        assert all(chain(heads, word)[-1] == 0 for word in range(1, len(heads) + 1)), key
        assert projective(heads), key
        for start, end in derivation.headed:
            assert outside(heads, start, end) == 1, key
    rules = {rule.key for found in source.grammar.rules.values() for rule in found}
    words = {
        rule.key
        for name, found in source.grammar.rules.items()
        for rule in found
        if source.grammar.symbols[name].kind == "word"
    }
    assert used == rules - words


@each_language
def test_sentences_have_the_analysis_of_a_grammarian(language: Language) -> None:
    known = {parse.words: written(parse) for parse in parses_of(language.name)["dev"]}
    for analysis in ANALYSES[language.name].strip().split("\n\n"):
        items = analysis.split()
        words = tuple(item.rsplit("/", 2)[0] for item in items)
        assert known.get(words) == " ".join(items)
