"""Words become indices and vectors: vocabularies, batches, forms that a session keeps."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spmrl_bench.errors import TreeError
from spmrl_bench.nn import vocabulary as marks
from spmrl_bench.nn.inputs import sub_batches
from spmrl_bench.nn.vocabulary import EMPTY, FIRST_CHAR, FIRST_WORD, START, STOP, UNK, Vocabulary
from spmrl_bench.parsers import session
from spmrl_bench.parsers.batches import Indexer, Pool
from spmrl_bench.parsers.chart import ChartParser
from spmrl_bench.parsers.session import FormTable
from spmrl_bench.readers.brackets import parse_brackets
from spmrl_bench.trees import Parse, Tree
from tests.builders import TREES, config, tiny
from tests.parsers.examples import WORDS, calls_of_forms, gold_of, lively


def vocabulary_of(trees: Iterable[Tree]) -> Vocabulary:
    return Vocabulary.of(map(Parse.of, trees))


def test_a_chain_that_no_saved_parser_may_have_is_not_learnt() -> None:
    longest = marks.LONGEST_CHAIN
    rows = [(0, 1, f"L{number}") for number in range(longest + 1)]
    assert len(vocabulary_of([Tree.build(["a"], ["N"], rows[1:])]).labels[1]) == longest
    with pytest.raises(TreeError, match="1,001 constituents over the same words"):
        vocabulary_of([Tree.build(["a"], ["N"], rows)])


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


@pytest.fixture
def parser() -> ChartParser:
    return lively(lexical=("charlstm",), max_positions=40)


@pytest.fixture
def indexer(parser: ChartParser) -> Indexer:
    return parser.indexer()


def test_what_cannot_be_learnt_is_said(parser: ChartParser, indexer: Indexer) -> None:
    for tree, message in (
        (Tree.build(["a", "b"], ["N", "V"], [(0, 1, "NP")]), r"no constituent covers .*: a b\)"),
        (Tree.build(["dogs"], ["N"], []), r"no constituent covers .*\(it begins: dogs"),
        (parse_brackets("(S (NP (N dogs)))"), r"label S\+NP is not in the parser's vocabulary"),
    ):
        with pytest.raises(TreeError, match=message):
            gold_of(parser, indexer, tree)


@given(st.lists(st.integers(1, 30), max_size=40), st.integers(1, 120))
def test_sub_batches_hold_every_sentence_once_within_the_bound(
    lengths: list[int], max_tokens: int
) -> None:
    groups = list(sub_batches(lengths, max_tokens))
    flat = [index for group in groups for index in group]
    assert sorted(flat) == list(range(len(lengths)))
    assert [lengths[index] for index in flat] == sorted(lengths)
    for group in groups:
        size = max(lengths[index] + 2 for index in group)
        assert len(group) == 1 or len(group) * size <= max_tokens
    for group, following in pairwise(groups):  # no group ends before it is full
        assert (len(group) + 1) * (lengths[following[0]] + 2) > max_tokens


FORMS = [*WORDS, "zebra", "z" * 40, "é", "日"]


@pytest.fixture
def counted(parser: ChartParser, monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """How many forms went through the LSTM since it was asked last."""
    calls = calls_of_forms(parser.lexical["charlstm"], monkeypatch)

    def since() -> int:
        total = sum(len(codes.lengths) for codes in calls)
        calls.clear()
        return total

    return since


@pytest.mark.parametrize(("most", "characters"), [(1, 50), (3, 1), (10, 50)])
def test_what_a_session_keeps_changes_no_parse(
    most: int, characters: int, parser: ChartParser, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where it is used within itself."""
    choose = random.Random(most)
    sentences = [choose.choices(FORMS, k=choose.randint(1, 12)) for _ in range(24)]
    expected = [list(parser.parse([words])) for words in sentences]
    assert len({str(parse) for (parse,) in expected}) > 20
    monkeypatch.setattr(session, "CHARACTERS", characters)
    monkeypatch.setattr(session, "MAX_FORMS", most)
    kept = parser.session()
    again = [list(parse.words) for parse in kept.parse(sentences)]
    found = kept.parse(list(next(kept.parse([words])).words) for words in again)
    assert [[parse] for parse in found] == expected


def test_a_word_is_computed_once_in_two_generations(
    parser: ChartParser, counted: Callable[[], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    table, computed = FormTable(parser), []
    # The bound on forms is that of the first generation, then of those after it; "dog" is not met
    # in the second. START and STOP are computed in each.
    words = ["the", "dog", "the", "the", "cat", "the", "dog"]
    for most, word in zip([9, 9, 9, 3, 3, 3, 3], words, strict=True):
        monkeypatch.setattr(session, "MAX_FORMS", most)
        table = table.latest()
        table.vectors(np.unique(table.indexer.sentence([word]).forms))
        computed.append(counted())
        assert table.older is None or table.older.older is None
    assert computed == [3, 1, 0, 2, 1, 2, 1]


def test_a_session_indexes_and_computes_each_form_once(
    parser: ChartParser, counted: Callable[[], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    lstm: Any = parser.lexical["charlstm"]
    codes, indexed = lstm.codes, []
    monkeypatch.setattr(lstm, "codes", lambda form: indexed.append(form) or codes(form))
    kept = parser.session()
    for _ in range(2):
        list(kept.parse([["the", "dog"], ["the", "cat"]]))
    assert counted() == len(indexed) == 5
    assert len(set(indexed)) == 5
