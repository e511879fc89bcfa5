"""The cache of form vectors: the vectors of the CharLSTM, each computed once while it is held."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
import torch

from spmrl_bench.parsers import form_cache
from spmrl_bench.parsers.chart_parser import ChartParser
from spmrl_bench.parsers.form_cache import FormCache
from tests.builders import TREES, tiny

WORDS = [*sorted({word for tree in TREES for word in tree.words}), "zebra", "z" * 40, "é", "日"]


def looked_up(cache: FormCache, parser: ChartParser, words: list[str]) -> dict[str, torch.Tensor]:
    """Vectors of words by way of an indexer that knows no others."""
    indexer = parser.indexer()
    sentence = indexer.sentence(words)
    forms = np.unique(sentence.forms)
    vectors = cache.vectors(indexer, forms)
    assert vectors.shape == (len(forms), parser.config.d_model // 2)
    rows = {form: row for row, form in enumerate(forms.tolist())}
    return {
        word: vectors[rows[form]]
        for word, form in zip(words, sentence.forms[1:-1].tolist(), strict=True)
    }


def computed(parser: ChartParser, word: str) -> torch.Tensor:
    """The vector of one word, without a cache."""
    indexer = parser.indexer()
    forms = indexer.sentence([word]).forms[1:2]
    with torch.no_grad():
        return parser.form_vectors(indexer, forms)[0]


@pytest.mark.parametrize("max_forms", [1, 3, 10, 1000])
@pytest.mark.parametrize("characters", [1, 50, 1 << 15])
def test_vectors_are_those_of_the_lstm(
    max_forms: int, characters: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(form_cache, "CHARACTERS", characters)
    parser = tiny(max_positions=40).eval()
    expected = {word: computed(parser, word) for word in WORDS}
    cache = FormCache(parser.lexical.char_lstm, max_forms)
    choose = random.Random(max_forms)
    for _ in range(30):
        words = choose.choices(WORDS, k=choose.randint(1, 12))
        for word, vector in looked_up(cache, parser, words).items():
            torch.testing.assert_close(vector, expected[word], rtol=0, atol=1e-6)
        assert len(cache) <= max_forms


def test_a_word_is_computed_once() -> None:
    parser = tiny(max_positions=40).eval()
    cache = FormCache(parser.lexical.char_lstm)
    for _ in range(3):
        looked_up(cache, parser, ["the", "dog", "the"])
    assert cache.computed == len(cache) == 4  # START and STOP too
    looked_up(cache, parser, ["dog", "cat"])
    assert cache.computed == 5
    # Characters that the parser does not know are one and the same.
    alike = looked_up(cache, parser, ["日", "本", "cats"])
    assert cache.computed == len(cache) == 7
    assert torch.equal(alike["日"], alike["本"])
    assert not torch.equal(alike["日"], alike["cats"])


def test_what_was_used_last_is_kept() -> None:
    parser = tiny(max_positions=40).eval()
    cache = FormCache(parser.lexical.char_lstm, 4)
    for words in (["the"], ["dog"], ["the"], ["cat"]):  # the last one drops "dog"
        looked_up(cache, parser, words)
    assert cache.computed == 5
    looked_up(cache, parser, ["the"])
    assert cache.computed == 5
    looked_up(cache, parser, ["dog"])
    assert cache.computed == 6


def test_a_session_keeps_vectors_over_its_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[FormCache] = []

    class Noted(FormCache):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            made.append(self)

    monkeypatch.setattr("spmrl_bench.parsers.neural.FormCache", Noted)
    session = tiny().eval().session()
    for _ in range(2):
        list(session.parse([["the", "dog"], ["the", "cat"]]))
    (cache,) = made
    assert cache.computed == len(cache) == 5
    list(tiny(lexical=("word",)).parse([["the", "dog"]]))
    assert made == [cache]
