"""Words with counts, characters, and labels of collapsed unary chains."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest
from pydantic import ValidationError

from spmrl_bench.errors import TreeError
from spmrl_bench.parsers.batches import Pool
from spmrl_bench.parsers.chart_parser import ChartParser
from spmrl_bench.parsers.vocabulary import (
    EMPTY,
    FIRST_CHAR,
    FIRST_WORD,
    START,
    STOP,
    UNK,
    Vocabulary,
)
from spmrl_bench.readers.brackets import parse_brackets
from spmrl_bench.trees import Parse, Tree
from tests.builders import TREES, config, tiny
from tests.damage import forget_digest
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
    text = json.dumps(vocabulary.to_json(), ensure_ascii=True)
    again = Vocabulary.from_json(json.loads(text))
    assert again == vocabulary
    assert list(again.words) == list(vocabulary.words)
    assert again.label_ids == vocabulary.label_ids


def test_root_is_the_most_frequent_highest_nonterminal() -> None:
    texts = ["(S (NP (t a)) (t b))", "(X (S (t a) (t b)))", "(X (t a))", "( (S (t a)))", "( (t a))"]
    given_trees = [parse_brackets(text) for text in texts]
    assert vocabulary_of(given_trees).root == "X"
    assert vocabulary_of([*given_trees, given_trees[0], given_trees[0]]).root == "S"
    # A bracket without a label has no name, and one over a part of the words is no root.
    part = Tree.build(["a", "b"], ["t", "t"], [(0, 1, "Y")])
    assert vocabulary_of([part, parse_brackets("( (t a))")]).root == "TOP"


def test_parsers_saved_without_a_root_have_one() -> None:
    value = vocabulary_of(TREES).to_json()
    assert Vocabulary.from_json(value).root == value.pop("root") == "S"
    assert Vocabulary.from_json(value).root == "TOP"
    assert Vocabulary.from_json(value) == vocabulary_of(TREES)


def test_the_most_frequent_words_are_known_and_of_equals_the_first() -> None:
    words = "b a a d b c c e a d"
    text = "".join(f"(t {word})" for word in words.split())
    vocabulary = vocabulary_of([parse_brackets(f"(S {text})")])
    assert list(vocabulary.words.items()) == [("b", 2), ("a", 3), ("d", 2), ("c", 2), ("e", 1)]
    found = [list(vocabulary.limited(number).words.items()) for number in range(1, 6)]
    assert found[0] == [("a", 3)]
    assert found[1] == [("b", 2), ("a", 3)]
    assert found[2] == [("b", 2), ("a", 3), ("d", 2)]
    assert found[3] == [("b", 2), ("a", 3), ("d", 2), ("c", 2)]
    assert found[4] == list(vocabulary.words.items())
    limited = vocabulary.limited(2)
    assert limited.word_ids == {"b": FIRST_WORD, "a": FIRST_WORD + 1}
    assert limited.limited(2) == limited == vocabulary.limited(3).limited(2)
    assert limited.characters == vocabulary.characters
    assert (limited.labels, limited.tags, limited.root) == (
        vocabulary.labels, vocabulary.tags, vocabulary.root
    )  # fmt: skip
    assert vocabulary.limited(None) is vocabulary


def test_words_beyond_the_limit_are_unk_in_training_and_parsing(tmp_path: Path) -> None:
    # "the" occurs most often, then "dog", "dogs" and "cats" three times each, in this order.
    parser = ChartParser.build(config(max_words=3), [Parse.of(tree) for tree in TREES])
    assert list(parser.vocabulary.words) == ["the", "dog", "dogs"]
    assert len(parser.lexical.words.weight) == FIRST_WORD + 3
    whole = tiny()
    assert len(whole.lexical.words.weight) == FIRST_WORD + len(whole.vocabulary.words)
    parser.save(tmp_path)
    again = ChartParser.load(tmp_path)
    assert again.is_like(parser)
    assert not whole.is_like(parser)
    for each in (parser, again):
        indexer = each.indexer()
        ids = indexer.sentence(["the", "cats", "dogs", "the", "zebra"]).words.tolist()
        known = each.vocabulary.word_ids
        assert ids == [START, known["the"], UNK, known["dogs"], known["the"], UNK, STOP]
        training = Pool([gold_of(each, indexer, TREES[0])], indexer)
        training.replace_by_unk(np.zeros_like(indexer.unk_probability), np.random.default_rng(0))
        ((_, batch),) = training.batches(100, each.device)
        assert batch.tokens.words.tolist() == [START, known["the"], known["dog"], UNK, STOP]
        words = [tree.words for tree in TREES]
        assert list(each.parse(words)) == list(parser.parse(words))


def test_a_parser_of_before_knows_all_its_words(tmp_path: Path) -> None:
    parser = tiny()
    parser.save(tmp_path)
    forget_digest(tmp_path)
    path = tmp_path / "parser.json"
    saved = json.loads(path.read_text(encoding="utf-8"))
    del saved["config"]["max_words"]
    path.write_text(json.dumps(saved), encoding="utf-8")
    assert ChartParser.load(tmp_path).is_like(parser)


def test_a_limit_of_words_wants_words() -> None:
    with pytest.raises(ValidationError, match="max_words is set, but the input 'word' is not in"):
        config(max_words=5, lexical=("charlstm",))


def test_nothing_to_learn_is_an_error() -> None:
    with pytest.raises(TreeError, match="the 0 training trees have no constituent"):
        ChartParser.build(config(), [])
    with pytest.raises(TreeError, match="the 1 training trees have no constituent"):
        ChartParser.build(config(), [Parse.of(Tree.build(["x"], ["t"], []))])
