"""An ensemble against its members, and against averages over enumerated trees."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from spmrl_bench.errors import SentenceTooLongError
from spmrl_bench.nn.vocabulary import Vocabulary
from spmrl_bench.parsers.base import EnsembleError
from spmrl_bench.parsers.chart import ChartParser
from spmrl_bench.parsers.ensemble import Ensemble
from spmrl_bench.parsers.kinds import kind_named, trained_kinds
from spmrl_bench.readers.brackets import parse_brackets
from spmrl_bench.trees import Parse
from tests.builders import TREES, chained, config, enlarge, of_layers, tiny
from tests.chart.enumeration import best_tree, label_table, spans
from tests.parsers.examples import lively, sentences_of
from tests.parsers.plain_parser import PlainParser

LENGTHS = [4, 0, 9, 1, 6, 2, 12, 4, 7, 3, 11, 5]
SENTENCES = sentences_of(LENGTHS)


def turned_around(parser: Any) -> Any:
    """The same parser with its labels and its relations in another order."""
    own, count = parser.vocabulary, len(parser.vocabulary.relations)
    labels = np.random.default_rng(0).permutation(len(own.labels) - 1).tolist()
    actions = [0, *range(count, 0, -1), *range(2 * count, count, -1)]
    vocabulary = replace(
        own,
        labels=(own.labels[0], *(own.labels[k + 1] for k in labels)),
        relations=dict(reversed(own.relations.items())),
    )
    other = type(parser)(parser.config, vocabulary).eval()
    state = parser.state_dict()
    for name, weight in state.items():
        if name.startswith("scorer.second."):
            state[name] = weight[labels]
        elif ".scorer.relation" in name:  # [relations ...] or [relations * width ...]
            state[name] = weight.unflatten(0, (count, -1)).flip(0).flatten(0, 1)
        elif name.endswith(".legal"):
            state[name] = weight.flip(1)
        elif name.startswith("decoder.scores."):
            state[name] = weight[actions]
        elif name == "decoder.embedding.weight":
            state[name] = weight[[*actions, 2 * count + 1]]
    other.load_state_dict(state)
    return other


@pytest.mark.parametrize("kind", trained_kinds())
def test_the_order_of_members_labels_and_relations_does_not_matter(kind: str) -> None:
    one, other = (enlarge(tiny(kind, seed=seed), seed=seed) for seed in (1, 2))
    alone = [list(parser.parse(SENTENCES)) for parser in (one, other)]
    for copies in ([one], [one] * 2, [one] * 3):
        same = Ensemble(copies)
        assert (same.kind, list(same.parse(SENTENCES))) == (kind, alone[0])
    mixed = list(Ensemble([one, other]).parse(SENTENCES))
    assert mixed not in alone
    turned = turned_around(other)
    assert repr(turned.vocabulary) != repr(other.vocabulary)
    assert list(turned.parse(SENTENCES)) == alone[1]
    for members in ([other, one], [one, turned], [turned, one]):
        assert list(Ensemble(members).parse(SENTENCES)) == mixed
    few = tiny(kind, of_layers(chained(TREES[4:5]), kind_named(kind).layers))
    with pytest.raises(EnsembleError):
        Ensemble([one, few])


def plain_constituents(
    parsers: Sequence[ChartParser], words: Sequence[str]
) -> list[tuple[int, int, str]]:
    """The best tree by enumeration, under the mean of plainly computed label scores."""
    n, labels = len(words), parsers[0].vocabulary.labels
    table = np.zeros((len(spans(n)), len(labels) - 1))
    for parser in parsers:
        scores = PlainParser(parser).scores(words)
        columns = [parser.vocabulary.labels.index(label) for label in labels[1:]]
        rows = [scores[i, j, columns].tolist() for i, j in spans(n)]
        table += np.array(rows) / len(parsers)
    _, nodes, found = best_tree(label_table(table.astype(np.float32), None, n), n)
    return [
        (i, j, name) for (i, j), label in zip(nodes, found, strict=True) for name in labels[label]
    ]


@pytest.mark.parametrize("reorder", [False, True], ids=["same order", "other order"])
def test_the_mean_of_two_by_enumeration(reorder: bool) -> None:
    """Two members of different size, on sentences short enough to write down all trees."""
    first, second = lively(seed=1), lively(seed=2, d_model=16, heads=1, layers=1)
    if reorder:
        second = turned_around(second)
        assert second.vocabulary.labels != first.vocabulary.labels
    sentences = sentences_of([1, 2, 3, 4, 5, 6, 6, 5], seed=3)
    found = list(Ensemble([first, second]).parse(sentences))
    for words, parse in zip(sentences, found, strict=True):
        assert list(parse.tree.constituents()) == plain_constituents([first, second], words)
    assert found not in (list(first.parse(sentences)), list(second.parse(sentences)))


def test_tags_are_carried_and_read() -> None:
    """A member that reads tags gets them; the trees have them; others do not mind."""
    ensemble = Ensemble([lively(seed=1), lively(seed=2, lexical=("word", "tag"))])
    assert ensemble.reads_tags
    words = [list(tree.words) for tree in TREES]
    tags = [list(tree.tags) for tree in TREES]
    found = list(ensemble.parse(words, tags))
    assert [list(tree.tags) for tree in found] == tags
    others = list(ensemble.parse(words, [["V"] * len(row) for row in tags]))
    assert [[*each.tree.constituents()] for each in found] != [
        [*each.tree.constituents()] for each in others
    ]
    assert not Ensemble([lively(seed=1), lively(seed=2)]).reads_tags


def test_tags_of_the_first_member_that_predicts_them() -> None:
    tagging = lively(seed=2, predict_tags=True)
    expected = [tree.tags for tree in tagging.parse(SENTENCES)]
    ensemble = Ensemble([lively(seed=1), tagging, lively(seed=3, predict_tags=True)])
    assert [tree.tags for tree in ensemble.parse(SENTENCES)] == expected
    assert expected != [tree.tags for tree in lively(seed=3, predict_tags=True).parse(SENTENCES)]


def test_a_sentence_too_long_for_one_member() -> None:
    """The trees of all sentences before it come first, as of a parser."""
    ensemble = Ensemble([lively(seed=1), lively(seed=2, max_positions=8)])
    found: list[Parse] = []
    with pytest.raises(SentenceTooLongError, match=r"sentence 3: a sentence of 9 words, .* 6"):
        found.extend(ensemble.parse(SENTENCES))
    assert [len(tree) for tree in found] == LENGTHS[:2]
    assert ensemble.problem(["a"] * 6) == ""


def test_members_that_do_not_fit() -> None:
    more = [*TREES, parse_brackets("(S (INTJ (INTJ2 (U oh))) (VP (V sleep)))")]
    other = ChartParser(config(), Vocabulary.of(map(Parse.of, more)))
    message = "parser {} has the label INTJ\\+INTJ2, which parser {} lacks: .* same treebank"
    for parsers, found in (
        ([lively(seed=1), other], message.format(2, 1)),
        ([other, other, lively(seed=1)], message.format(1, 3)),
        ([lively(seed=1), lively(seed=1).to("meta")], "parser 2 is on meta, .* 1 is on cpu: move"),
    ):
        with pytest.raises(EnsembleError, match=found):
            Ensemble(parsers)
