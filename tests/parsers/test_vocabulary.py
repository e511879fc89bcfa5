"""Words with counts, characters, and labels of collapsed unary chains."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from spmrl_bench.errors import TreeError
from spmrl_bench.nn.vocabulary import EMPTY, FIRST_CHAR, FIRST_WORD, START, STOP, UNK, Vocabulary
from spmrl_bench.parsers.batches import Pool
from spmrl_bench.parsers.chart import ChartParser
from spmrl_bench.readers.brackets import parse_brackets
from spmrl_bench.trees import Parse, Tree
from tests.builders import TREES, config, tiny
from tests.parsers.examples import gold_of


def vocabulary_of(trees: Iterable[Tree]) -> Vocabulary:
    return Vocabulary.of(map(Parse.of, trees))


def test_inventories_are_in_order_of_appearance() -> None:
    vocabulary = vocabulary_of(
        [parse_brackets("(S (NP (D ba)) (V ab))"), parse_brackets("(S (S (D ba) (D cé)))")]
    )
    assert vocabulary.words == {"ba": 2, "ab": 1, "cé": 1}
    assert vocabulary.characters == ("b", "a", "c", "é")
    assert vocabulary.labels == ((), ("S",), ("NP",), ("S", "S"))
    assert vocabulary.word_ids == {"ba": FIRST_WORD, "ab": FIRST_WORD + 1, "cé": FIRST_WORD + 2}
    assert vocabulary.character_ids["a"] == FIRST_CHAR + 1
    assert vocabulary.label_ids[()] == EMPTY


def test_json_keeps_everything() -> None:
    vocabulary = vocabulary_of([*TREES, parse_brackets('(X (Y (t "é\u00a0\U0001f600")))')])
    value = json.loads(json.dumps(vocabulary.to_json(), ensure_ascii=True))
    again = Vocabulary.from_json(value)
    assert again == vocabulary
    assert list(again.words) == list(vocabulary.words)
    assert again.root == value.pop("root") == "S"
    assert Vocabulary.from_json(value).root == "TOP"  # as saved before there was a root


def test_what_no_training_gives_is_refused() -> None:
    value = vocabulary_of(TREES).to_json()
    for name, wrong, message in (
        ("words", [["a", 1], ["b", 1], ["a", 2]], "words: 'a' is there twice"),
        ("words", [["a", -1]], r"words\.0\.1: found -1"),
        ("characters", ["ab"], r"characters\.0: found 'ab'"),
        ("tags", ["N", "V", "N"], "tags: 'N' is there twice"),
        ("labels", [["S"]], "the first is not the empty one"),
        ("relations", [["a b", True, False], ["c\td", True, True]], "relations: .* no file"),
        ("relations", [["a", True, False], ["a", True, True]], "relations: 'a' is there twice"),
    ):
        with pytest.raises(ValueError, match=message):
            Vocabulary.from_json({**value, name: wrong})
    with pytest.raises(ValueError, match="vocabulary: found 3"):
        Vocabulary.from_json(3)


def test_root_is_the_most_frequent_highest_nonterminal() -> None:
    texts = ["(S (NP (t a)) (t b))", "(X (S (t a) (t b)))", "(X (t a))", "( (S (t a)))", "( (t a))"]
    given_trees = [parse_brackets(text) for text in texts]
    assert vocabulary_of(given_trees).root == "X"
    assert vocabulary_of([*given_trees, given_trees[0], given_trees[0]]).root == "S"
    # A bracket without a label has no name, and one over a part of the words is no root.
    part = Tree.build(["a", "b"], ["t", "t"], [(0, 1, "Y")])
    assert vocabulary_of([part, parse_brackets("( (t a))")]).root == "TOP"


def test_the_most_frequent_words_are_known_and_of_equals_the_first() -> None:
    words = "b a a d b c c e a d"
    text = "".join(f"(t {word})" for word in words.split())
    vocabulary = vocabulary_of([parse_brackets(f"(S {text})")])
    assert list(vocabulary.words.items()) == [("b", 2), ("a", 3), ("d", 2), ("c", 2), ("e", 1)]
    found = ["".join(vocabulary.limited(number).words) for number in range(1, 6)]
    assert found == ["a", "ba", "bad", "badc", "badce"]
    limited = vocabulary.limited(2)
    assert limited.words == {"b": 2, "a": 3}
    assert replace(limited, words=vocabulary.words) == vocabulary
    assert vocabulary.limited(None) is vocabulary


def test_words_beyond_the_limit_are_unk_in_training_and_parsing(tmp_path: Path) -> None:
    # "the" occurs most often, then "dog", "dogs" and "cats" three times each, in this order.
    parser = ChartParser.build(config(max_words=3), [Parse.of(tree) for tree in TREES])
    assert list(parser.vocabulary.words) == ["the", "dog", "dogs"]
    assert len(parser.lexical["word"].embedding.weight) == FIRST_WORD + 3
    parser.save(tmp_path)
    again = ChartParser.load(tmp_path)
    assert again.is_like(parser)
    assert not tiny().is_like(parser)
    for each in (parser, again):
        indexer = each.indexer()
        ids = indexer.sentence(["the", "cats", "dogs", "the", "zebra"]).words.tolist()
        known = each.vocabulary.word_ids
        assert ids == [START, known["the"], UNK, known["dogs"], known["the"], UNK, STOP]
        training = Pool([gold_of(each, indexer, TREES[0])], indexer)
        training.replace_by_unk(np.zeros_like(indexer.unk_probability), np.random.default_rng(0))
        ((_, batch),) = training.batches(100, each.device, {})
        assert batch.tokens.words.tolist() == [START, known["the"], known["dog"], UNK, STOP]
        words = [tree.words for tree in TREES]
        assert list(each.parse(words)) == list(parser.parse(words))


def test_nothing_to_learn_is_an_error() -> None:
    with pytest.raises(TreeError, match="the 0 training trees have no constituent"):
        ChartParser.build(config(), [])
    with pytest.raises(TreeError, match="the 1 training trees have no constituent"):
        ChartParser.build(config(), [Parse.of(Tree.build(["x"], ["t"], []))])
