"""From words and trees to indices."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from spmrl_bench.chart.arrays import cell_spans
from spmrl_bench.errors import TreeError
from spmrl_bench.nn.inputs import sub_batches
from spmrl_bench.nn.vocabulary import (
    CHAR_START,
    CHAR_STOP,
    CHAR_UNK,
    CHAR_WORD_START,
    CHAR_WORD_STOP,
    FIRST_CHAR,
    START,
    STOP,
    UNK,
)
from spmrl_bench.parsers.batches import Indexer, Pool
from spmrl_bench.parsers.chart import ChartParser
from spmrl_bench.readers.brackets import parse_brackets
from spmrl_bench.trees import Tree
from spmrl_bench.trees.tree import collapsed_spans
from tests.builders import TREES, tiny
from tests.parsers.examples import gold_of

CPU = torch.device("cpu")


@pytest.fixture
def parser() -> ChartParser:
    return tiny()


@pytest.fixture
def indexer(parser: ChartParser) -> Indexer:
    return parser.indexer()


def test_a_form_has_one_row_however_often_it_occurs(indexer: Indexer) -> None:
    first = indexer.sentence(["dog", "Dog", "dog"]).forms.tolist()
    second = indexer.sentence(["Dog", "the", "zebra", "quagga"]).forms.tolist()
    assert [*first, *second] == [0, 2, 3, 2, 1, 0, 3, 4, 5, 6, 1]


def test_forms_are_characters_between_marks(indexer: Indexer) -> None:
    forms = indexer.sentence(["the", "tXe"]).forms.tolist()
    t, h, e = FIRST_CHAR, FIRST_CHAR + 1, FIRST_CHAR + 2
    codes = indexer.codes("charlstm", forms, CPU)
    spelt = zip(codes.values.tolist(), codes.lengths.tolist(), strict=True)
    assert [row[:n] for row, n in spelt] == [
        [CHAR_WORD_START, *3 * [CHAR_START], CHAR_WORD_STOP],
        [CHAR_WORD_START, t, h, e, CHAR_WORD_STOP],
        [CHAR_WORD_START, t, CHAR_UNK, e, CHAR_WORD_STOP],
        [CHAR_WORD_START, *3 * [CHAR_STOP], CHAR_WORD_STOP],
    ]
    assert indexer.lengths("charlstm", forms[::-1]).tolist() == [5, 5, 5, 5]


def test_unk_probability_is_one_over_one_more_than_the_count(indexer: Indexer) -> None:
    counts = Counter(word for tree in TREES for word in tree.words)
    for word, count in counts.items():
        index = indexer.vocabulary.word_ids[word]
        assert indexer.unk_probability[index] == 1 / (1 + count)
    assert indexer.unk_probability[[UNK, START, STOP]].tolist() == [0, 0, 0]


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


def test_what_cannot_be_learnt_is_said(parser: ChartParser, indexer: Indexer) -> None:
    for tree, message in (
        (Tree.build(["a", "b"], ["N", "V"], [(0, 1, "NP")]), r"no constituent covers .*: a b\)"),
        (Tree.build(["dogs"], ["N"], []), r"no constituent covers .*\(it begins: dogs"),
        (parse_brackets("(S (NP (N dogs)))"), r"label S\+NP is not in the parser's vocabulary"),
    ):
        with pytest.raises(TreeError, match=message):
            gold_of(parser, indexer, tree)


def test_batch_puts_sentences_one_after_the_other(indexer: Indexer) -> None:
    given = (["the", "dog"], ["cat"], ["dog"])
    sentences = [indexer.sentence(words, ["N"] * len(words)) for words in given]
    pool = Pool(sentences, indexer)
    ((group, batch),) = pool.batches(100, CPU, {})
    assert group == [1, 2, 0]  # the shortest first
    together = [sentences[k] for k in group]
    words, tags, forms = np.concatenate([(s.words, s.tags, s.forms) for s in together], axis=1)
    assert batch.tokens.words.tolist() == words.tolist()
    assert batch.tokens.tags.tolist() == tags.tolist()
    assert pool.forms[batch.tokens.form_rows].tolist() == forms.tolist()
    assert batch.layout.lengths.tolist() == [3, 3, 4]
    assert batch.lengths.tolist() == [1, 1, 2]
    assert len(pool.forms) == len(set(pool.forms.tolist())) == 5  # START, STOP and three words


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
