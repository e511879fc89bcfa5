"""From words and trees to indices."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from spmrl_bench.chart.packing import cell_spans
from spmrl_bench.errors import SentenceTooLongError, TreeError
from spmrl_bench.parsers.batches import Indexer, Pool, sub_batches
from spmrl_bench.parsers.chart_parser import ChartParser
from spmrl_bench.parsers.vocabulary import (
    CHAR_START,
    CHAR_STOP,
    CHAR_UNK,
    CHAR_WORD_START,
    CHAR_WORD_STOP,
    FIRST_CHAR,
    FIRST_WORD,
    START,
    STOP,
    UNK,
    Vocabulary,
)
from spmrl_bench.readers.brackets import parse_brackets
from spmrl_bench.trees import Parse, Tree
from spmrl_bench.trees.tree import collapsed_spans
from tests.builders import TREES, tiny
from tests.parsers.examples import gold_of

CPU = torch.device("cpu")


@pytest.fixture
def indexer() -> Indexer:
    return Indexer(Vocabulary.of(map(Parse.of, TREES)), max_positions=20)


@pytest.fixture
def parser() -> ChartParser:
    return tiny()


def spelling(indexer: Indexer, form: int) -> list[int]:
    ids, lengths = indexer.spellings(np.array([form]), CPU)
    assert ids.shape == (lengths.item(), 1)
    found: list[int] = ids[:, 0].tolist()
    return found


def test_words_between_start_and_stop(indexer: Indexer) -> None:
    sentence = indexer.sentence(["dog", "zebra", "the"])
    assert sentence.words.tolist() == [START, FIRST_WORD + 1, UNK, FIRST_WORD, STOP]
    assert len(sentence) == 3


def test_a_form_has_one_row_however_often_it_occurs(indexer: Indexer) -> None:
    first = indexer.sentence(["dog", "Dog", "dog"]).forms.tolist()
    second = indexer.sentence(["Dog", "the", "zebra", "quagga"]).forms.tolist()
    assert first[1] == first[3] != first[2] == second[1]
    assert len({*first, *second}) == 2 + 5
    assert (first[0], first[-1]) == (second[0], second[-1])


def test_forms_are_characters_between_marks(indexer: Indexer) -> None:
    forms = indexer.sentence(["the", "tXe"]).forms.tolist()
    t, h, e = FIRST_CHAR, FIRST_CHAR + 1, FIRST_CHAR + 2
    spelt = [spelling(indexer, form) for form in forms]
    assert spelt == [
        [CHAR_WORD_START, *3 * [CHAR_START], CHAR_WORD_STOP],
        [CHAR_WORD_START, t, h, e, CHAR_WORD_STOP],
        [CHAR_WORD_START, t, CHAR_UNK, e, CHAR_WORD_STOP],
        [CHAR_WORD_START, *3 * [CHAR_STOP], CHAR_WORD_STOP],
    ]
    ids, lengths = indexer.spellings(np.array(forms[::-1]), CPU)
    columns = [ids[:n, k].tolist() for k, n in enumerate(lengths.tolist())]
    assert columns == spelt[::-1]


def test_unk_probability_is_one_over_one_more_than_the_count(indexer: Indexer) -> None:
    counts: dict[str, int] = {}
    for tree in TREES:
        for word in tree.words:
            counts[word] = counts.get(word, 0) + 1
    assert max(counts.values()) == 5
    for word, count in counts.items():
        index = indexer.vocabulary.word_ids[word]
        assert indexer.unk_probability[index] == 1 / (1 + count)
    assert indexer.unk_probability[[UNK, START, STOP]].tolist() == [0, 0, 0]


def test_words_become_unk_with_their_probability(indexer: Indexer) -> None:
    sentence = indexer.sentence(["dogs", "bark"])
    words = indexer.vocabulary.word_ids
    probability = np.zeros_like(indexer.unk_probability)
    probability[words["dogs"]], probability[words["bark"]] = 0.25, 1.0
    pool = Pool([sentence] * 4000, indexer)
    pool.replace_by_unk(probability, np.random.default_rng(1))
    found = np.concatenate([batch.tokens.words.numpy() for _, batch in pool.batches(10**6, CPU)])
    dogs, bark = ((found == words[word]).sum() for word in ("dogs", "bark"))
    assert dogs == pytest.approx(3000, abs=120)  # four deviations
    assert bark == 0
    assert (found == UNK).sum() == 8000 - dogs


def test_gold_spans_become_cells(parser: ChartParser, indexer: Indexer) -> None:
    for tree in TREES:
        sentence = gold_of(parser, indexer, tree)
        gold = sentence.gold
        _, start, end = cell_spans([len(tree)])
        found = [
            (int(start[cell]), int(end[cell]), indexer.vocabulary.labels[label])
            for cell, label in zip(gold.cells, gold.labels, strict=True)
        ]
        assert found == list(collapsed_spans(tree))
        assert sentence.words.tolist() == indexer.sentence(tree.words).words.tolist()


def test_gold_needs_a_constituent_over_everything(parser: ChartParser, indexer: Indexer) -> None:
    for tree in (
        Tree.build(["dogs", "bark"], ["N", "V"], [(0, 1, "NP")]),
        Tree.build(["dogs"], ["N"], []),
    ):
        with pytest.raises(TreeError, match=r"no constituent covers .*\(it begins: dogs"):
            gold_of(parser, indexer, tree)


def test_unseen_label_is_an_error_that_names_it(parser: ChartParser, indexer: Indexer) -> None:
    with pytest.raises(TreeError, match=r"label S\+NP is not in the parser's vocabulary"):
        gold_of(parser, indexer, parse_brackets("(S (NP (N dogs)))"))


def test_too_long_sentence_names_the_numbers(indexer: Indexer) -> None:
    assert len(indexer.sentence(["dog"] * 18)) == 18
    with pytest.raises(SentenceTooLongError, match=r"19 words.* allows 18 .*dog dog") as caught:
        indexer.sentence(["dog"] * 19)
    assert "max_positions" in str(caught.value)


def test_batch_puts_sentences_one_after_the_other(indexer: Indexer) -> None:
    given = (["the", "dog"], ["cat"], ["dog"])
    sentences = [indexer.sentence(words, ["N"] * len(words)) for words in given]
    pool = Pool(sentences, indexer)
    ((group, batch),) = pool.batches(100, CPU)
    assert group == [1, 2, 0]  # the shortest first
    together = [sentences[k] for k in group]
    for name in ("words", "tags"):
        expected = np.concatenate([getattr(sentence, name) for sentence in together])
        assert getattr(batch.tokens, name).tolist() == expected.tolist()
    assert batch.layout.lengths.tolist() == [3, 3, 4]
    assert batch.lengths.tolist() == [1, 1, 2]
    assert len(pool.forms) == len(set(pool.forms.tolist())) == 5  # START, STOP and three words
    forms = np.concatenate([sentence.forms for sentence in together])
    assert pool.forms[batch.tokens.form_rows].tolist() == forms.tolist()


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


@pytest.mark.parametrize(
    ("max_tokens", "groups"),
    [(9, [[1], [0], [2]]), (10, [[1, 0], [2]]), (14, [[1, 0], [2]]), (15, [[1, 0, 2]])],
)
def test_sub_batches_count_start_and_stop_up_to_the_bound(
    max_tokens: int, groups: list[list[int]]
) -> None:
    assert list(sub_batches([3, 2, 3], max_tokens)) == groups
