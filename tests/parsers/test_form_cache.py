"""Forms that a session keeps: the vectors of the CharLSTM, each computed once while it is held."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from spmrl_bench.parsers import session
from spmrl_bench.parsers.chart import ChartParser
from spmrl_bench.parsers.session import FormTable
from tests.builders import TREES, tiny
from tests.parsers.examples import WORDS, calls_of_forms

FORMS = [*WORDS, "zebra", "z" * 40, "é", "日"]


@pytest.fixture
def parser() -> ChartParser:
    return tiny(max_positions=40).eval()


@pytest.fixture
def counted(parser: ChartParser, monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """How many forms went through the LSTM since it was asked last."""
    calls = calls_of_forms(parser.lexical["charlstm"], monkeypatch)

    def since() -> int:
        total = sum(len(codes.lengths) for codes in calls)
        calls.clear()
        return total

    return since


def looked_up(table: FormTable, words: list[str]) -> dict[str, torch.Tensor]:
    """The vectors of words."""
    rows = table.indexer.sentence(words).forms
    distinct, places = np.unique(rows, return_inverse=True)
    vectors = table.vectors(distinct)["charlstm"]
    assert vectors.shape == (len(distinct), 16)
    return dict(zip(words, vectors[places[1:-1]], strict=True))


@pytest.mark.parametrize(("most", "characters"), [(1, 50), (3, 1), (10, 50), (1000, 1 << 15)])
def test_vectors_are_those_of_the_lstm(
    most: int, characters: int, parser: ChartParser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "CHARACTERS", characters)
    monkeypatch.setattr(session, "MAX_FORMS", most)
    indexer = parser.indexer()
    rows = indexer.sentence(FORMS).forms[1:-1]
    expected = dict(zip(FORMS, parser.form_vectors(indexer, rows)["charlstm"], strict=True))
    table, choose = FormTable(parser), random.Random(most)
    for _ in range(12):
        words, table = choose.choices(FORMS, k=choose.randint(1, 12)), table.latest()
        for word, vector in looked_up(table, words).items():
            torch.testing.assert_close(vector, expected[word], rtol=0, atol=1e-6)
        # A window fits whatever it has, and no more than two generations are held.
        assert len(table.indexer.forms) <= most + 2 + 12
        assert table.older is None or table.older.older is None


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
        looked_up(table, [word])
        computed.append(counted())
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


def test_a_session_may_be_used_within_itself(
    parser: ChartParser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "MAX_FORMS", 4)
    sentences = [list(tree.words) for tree in TREES]
    expected = [list(parser.parse([words])) for words in sentences]
    kept = parser.session()
    again = [list(parse.words) for parse in kept.parse(sentences)]
    found = kept.parse(list(next(kept.parse([words])).words) for words in again)
    assert [[parse] for parse in found] == expected
