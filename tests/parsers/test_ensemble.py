"""An ensemble against its members, and against averages over enumerated trees."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch

from spmrl_bench.errors import SentenceTooLongError, TreeError
from spmrl_bench.parsers import parsing
from spmrl_bench.parsers.base import EnsembleError
from spmrl_bench.parsers.chart_parser import ChartParser
from spmrl_bench.parsers.ensemble import Ensemble
from spmrl_bench.parsers.vocabulary import Vocabulary
from spmrl_bench.readers.brackets import parse_brackets
from spmrl_bench.trees import Parse
from tests.builders import TREES, config, tiny
from tests.chart.enumeration import best_tree, label_table
from tests.parsers.plain_parser import PlainParser, weights_of

WORDS = sorted({word for tree in TREES for word in tree.words})


def sentences_of(lengths: Sequence[int], seed: int = 0) -> list[list[str]]:
    rng = np.random.default_rng(seed)
    known = [*WORDS, "zebra"]
    return [[known[k] for k in rng.integers(0, len(known), length)] for length in lengths]


LENGTHS = [4, 0, 9, 1, 6, 2, 12, 4, 7, 3, 11, 5]
SENTENCES = sentences_of(LENGTHS)


def member(seed: int, **changes: Any) -> ChartParser:
    """An untrained parser whose trees differ between sentences and seeds."""
    parser = tiny(seed=seed, **changes)
    with torch.no_grad():
        parser.scorer.second.weight.mul_(4)
        parser.scorer.second.bias.sub_(0.5)
    return parser.eval()


def members() -> list[ChartParser]:
    """Of several sizes, lexical inputs and encoders."""
    return [
        member(1),
        member(2, lexical=("charlstm",), d_model=16, heads=1, layers=1),
        member(3, position="added", matrices="full", lexical=("word",)),
        member(4, encoder="lstm", d_char=4),
    ]


def shuffled(parser: ChartParser, seed: int = 0) -> ChartParser:
    """The same parser with its labels in another order."""
    labels = parser.vocabulary.labels
    order = (np.random.default_rng(seed).permutation(len(labels) - 1) + 1).tolist()
    vocabulary = Vocabulary(
        parser.vocabulary.words,
        parser.vocabulary.characters,
        (labels[0], *(labels[k] for k in order)),
        parser.vocabulary.tags,
    )
    other = ChartParser(parser.config, vocabulary).eval()
    state = parser.state_dict()
    for name in ("scorer.second.weight", "scorer.second.bias"):
        state[name] = state[name][[k - 1 for k in order]]
    other.load_state_dict(state)
    return other


def test_members_differ() -> None:
    """Without this the tests below would say little."""
    found = [list(parser.parse(SENTENCES)) for parser in members()]
    for one, other in itertools.combinations(found, 2):
        assert one != other


@pytest.mark.parametrize("number", range(4))
def test_one_member_is_the_parser(number: int) -> None:
    parser = members()[number]
    assert list(Ensemble([parser]).parse(SENTENCES)) == list(parser.parse(SENTENCES))


@pytest.mark.parametrize("count", [2, 3, 4])
def test_copies_are_the_parser(count: int) -> None:
    parser = member(1)
    copies = [copy.deepcopy(parser) for _ in range(count)]
    assert list(Ensemble(copies).parse(SENTENCES)) == list(parser.parse(SENTENCES))
    assert list(Ensemble([parser] * count).parse(SENTENCES)) == list(parser.parse(SENTENCES))


def plain_constituents(
    parsers: Sequence[ChartParser], words: Sequence[str]
) -> list[tuple[int, int, str]]:
    """The best tree by enumeration, under the mean of plainly computed label scores."""
    n, labels = len(words), parsers[0].vocabulary.labels
    total: dict[tuple[int, int, tuple[str, ...]], float] = {}
    for parser in parsers:
        plain = PlainParser(parser.config, parser.vocabulary, weights_of(parser))
        scores = plain.scores(words).tolist()
        for i in range(n):
            for j in range(i + 1, n + 1):
                for label, score in zip(parser.vocabulary.labels, scores[i][j], strict=True):
                    total[i, j, label] = total.get((i, j, label), 0.0) + score / len(parsers)
    cells = [(i, j) for i in range(n) for j in range(i + 1, n + 1)]
    table = np.array([[total[i, j, label] for label in labels[1:]] for i, j in cells])
    _, nodes, found = best_tree(label_table(table.astype(np.float32), None, n), n)
    return [
        (i, j, name) for (i, j), label in zip(nodes, found, strict=True) for name in labels[label]
    ]


@pytest.mark.parametrize("reorder", [False, True], ids=["same order", "other order"])
def test_the_mean_of_two_by_enumeration(reorder: bool) -> None:
    """Two members of different size, on sentences short enough to write down all trees."""
    first = member(1)
    second = member(2, d_model=16, heads=1, layers=1)
    if reorder:
        second = shuffled(second)
        assert second.vocabulary.labels != first.vocabulary.labels
    sentences = sentences_of([1, 2, 3, 4, 5, 6, 6, 5], seed=3)
    found = list(Ensemble([first, second]).parse(sentences))
    for words, parse in zip(sentences, found, strict=True):
        assert list(parse.tree.constituents()) == plain_constituents([first, second], words)
    # It is neither of the two.
    assert found != list(first.parse(sentences))
    assert found != list(second.parse(sentences))


def test_the_order_of_labels_does_not_matter() -> None:
    parsers = members()
    expected = list(Ensemble(parsers).parse(SENTENCES))
    for seed in range(3):
        mixed = [shuffled(parser, 10 * seed + k) for k, parser in enumerate(parsers)]
        assert list(Ensemble(mixed).parse(SENTENCES)) == expected
    # Nor does that of the members, up to the rounding of sums.
    assert list(Ensemble(parsers[::-1]).parse(SENTENCES)) == expected


def test_batches_windows_and_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    ensemble = Ensemble(members())
    expected = list(ensemble.parse(SENTENCES))
    assert [len(tree) for tree in expected] == LENGTHS
    assert list(ensemble.parse(SENTENCES, max_tokens=30)) == expected
    monkeypatch.setattr(parsing, "WINDOW_SENTENCES", 5)
    monkeypatch.setattr("spmrl_bench.nn.span_scorer.BLOCK", 7)
    assert list(ensemble.parse(iter(SENTENCES))) == expected


def test_tags_are_carried_and_read() -> None:
    """A member that reads tags gets them; the trees have them; others do not mind."""
    ensemble = Ensemble([member(1), member(2, lexical=("word", "tag"))])
    assert ensemble.reads_tags
    words = [list(tree.words) for tree in TREES]
    tags = [list(tree.tags) for tree in TREES]
    found = list(ensemble.parse(words, tags))
    assert [list(tree.tags) for tree in found] == tags
    others = [["V"] * len(row) for row in tags]
    assert [parse.tree.constituents() for parse in ensemble.parse(words, others)] != [
        parse.tree.constituents() for parse in found
    ]
    with pytest.raises(TreeError, match="reads tags, but none are given"):
        list(ensemble.parse(words))
    without = Ensemble([member(1), member(2)])
    assert not without.reads_tags
    assert {tag for tree in without.parse(words) for tag in tree.tags} == {"XX"}


def test_tags_of_the_first_member_that_predicts_them() -> None:
    tagging = member(2, predict_tags=True)
    expected = [tree.tags for tree in tagging.parse(SENTENCES)]
    ensemble = Ensemble([member(1), tagging, member(3, predict_tags=True)])
    assert [tree.tags for tree in ensemble.parse(SENTENCES)] == expected
    assert expected != [tree.tags for tree in member(3, predict_tags=True).parse(SENTENCES)]


def test_a_sentence_too_long_for_one_member() -> None:
    """The trees of all sentences before it come first, as of a parser."""
    ensemble = Ensemble([member(1), member(2, max_positions=8)])
    found: list[Parse] = []
    with pytest.raises(SentenceTooLongError, match=r"sentence 3: a sentence of 9 words, .* 6"):
        found.extend(ensemble.parse(SENTENCES))
    assert [len(tree) for tree in found] == LENGTHS[:2]
    assert ensemble.length_problem(["a"] * 6) == ""


def test_rows_of_tags_that_do_not_fit() -> None:
    ensemble = Ensemble([member(1), member(2)])
    with pytest.raises(TreeError, match="fewer rows of tags than sentences"):
        list(ensemble.parse([["dog"], ["cat"]], [["N"]]))
    with pytest.raises(TreeError, match="2 tags"):
        list(ensemble.parse([["dog"]], [["N", "N"]]))


def test_nothing_to_parse() -> None:
    ensemble = Ensemble([member(1), member(2)])
    assert list(ensemble.parse([])) == []
    assert [len(tree) for tree in ensemble.parse([[], []])] == [0, 0]


def test_members_that_do_not_fit() -> None:
    with pytest.raises(EnsembleError, match="needs at least one parser, but none is given"):
        Ensemble([])
    more = [*TREES, parse_brackets("(S (INTJ (INTJ2 (U oh))) (VP (V sleep)))")]
    other = ChartParser(config(), Vocabulary.of(map(Parse.of, more)))
    message = "parser {} has the label INTJ\\+INTJ2, which parser {} lacks: .* same treebank"
    with pytest.raises(EnsembleError, match=message.format(2, 1)):
        Ensemble([member(1), other])
    with pytest.raises(EnsembleError, match=message.format(1, 3)):
        Ensemble([other, other, member(1)])
    elsewhere = member(1).to("meta")
    with pytest.raises(EnsembleError, match="parser 2 is on meta, but parser 1 is on cpu: move"):
        Ensemble([member(1), elsewhere])


def test_training_goes_on_where_it_was() -> None:
    """Dropout does not take part in parsing, and is there again afterwards."""
    parsers = [member(1, residual_dropout=0.5), member(2, residual_dropout=0.5)]
    expected = list(Ensemble(parsers).parse(SENTENCES))
    for parser in parsers:
        parser.train()
    assert list(Ensemble(parsers).parse(SENTENCES)) == expected
    assert all(parser.training for parser in parsers)
