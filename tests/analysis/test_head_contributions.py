"""Contributions of heads by category: what they are, and what does not change them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch

from spmrl_bench.analysis.head_contributions import (
    MEASURES,
    HeadContributions,
    Measure,
    head_contributions,
    shares,
    span_features,
)
from spmrl_bench.analysis.head_table import table_rows
from spmrl_bench.analysis.observed import Asked, observe
from spmrl_bench.errors import SentenceTooLongError, SpmrlError, TreeError, UnsupportedError
from spmrl_bench.nn.scorers.spans import fenceposts
from spmrl_bench.parsers.baselines import RightBranching
from spmrl_bench.parsers.ensemble import Ensemble
from spmrl_bench.trees.tree import collapsed_spans
from tests.analysis.constructed import (
    D_PROJ,
    HEADS,
    ON,
    random_parser,
    seen_in,
    two_headed_parser,
    with_gains,
)
from tests.builders import TREES, chained, tiny
from tests.laboratory import make_trees

ASKED = [Asked(tree.words, tree.tags, tree) for tree in (*TREES, *make_trees(20, seed=3))]


def same(one: HeadContributions, other: HeadContributions) -> None:
    assert (one.categories, one.sentences) == (other.categories, other.sentences)
    for name in ("spans", "firsts", "missed", "missed_firsts"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    np.testing.assert_allclose(one.means, other.means, atol=1e-5)


# One span ------------------------------------------------------------------------------------


def test_shares_by_norm_are_sizes_of_heads() -> None:
    parts = np.zeros((2, 3, 4))
    parts[0, 0] = [3, 0, 0, -4]
    parts[0, 2] = np.array([0, -12, 5, 0]) * 15 / 13
    found = shares(parts)
    assert found.tolist() == [pytest.approx([0.25, 0.0, 0.75]), [0.0, 0.0, 0.0]]


def test_released_shares_follow_the_code() -> None:
    parts = np.random.default_rng(1).normal(size=(4, 6, D_PROJ))
    found = shares(parts, "released")
    for span, row in zip(parts.tolist(), found.tolist(), strict=True):
        sums = [sum(head) for head in span]
        scaled = [(value - min(sums)) / (max(sums) - min(sums)) for value in sums]
        whole = sum(math.exp(value) for value in scaled)
        assert row == pytest.approx([math.exp(value) / whole for value in scaled], abs=1e-6)
    assert shares(np.ones((1, 4, 2)), "released").tolist() == [[0.25] * 4]


@pytest.mark.parametrize("precision", ["float32", "bf16"])
def test_features_are_of_the_vectors_that_the_parser_scores(precision: str) -> None:
    made, words = random_parser(precision=precision), TREES[1].words
    tokens: list[torch.Tensor] = []
    handle = made.encoder.register_forward_hook(lambda _, __, rows: tokens.append(rows))
    heads = seen_in(made, words).heads
    handle.remove()
    posts = fenceposts(tokens[0], torch.arange(len(words) + 1), made.encoder.d_block)
    spans = [(0, 1), (2, 4), (0, len(words))]
    for (start, end), found in zip(spans, span_features(heads.features, spans), strict=True):
        forward, backward = (posts[end] - posts[start]).view(2, HEADS, D_PROJ // 2).numpy()
        expected = np.concatenate((forward, backward), axis=1)
        np.testing.assert_allclose(found, expected, atol=1e-5)


# Many sentences ------------------------------------------------------------------------------


@pytest.mark.parametrize("measure", ["norm", "released"])
def test_means_are_over_the_spans_of_each_predicted_label(measure: Measure) -> None:
    made = random_parser()
    sums: dict[str, list[Any]] = {}
    missed: dict[str, list[int]] = {}
    for asked in ASKED:
        seen = seen_in(made, asked.words)
        (parse,) = made.parse([asked.words])
        assert seen.tree == parse.tree
        rows = list(collapsed_spans(parse.tree))
        for start, end, label in rows:
            (own,) = shares(span_features(seen.heads.features, [(start, end)]), measure)
            sums.setdefault("+".join(label), []).append(own)
        for start, end, label in collapsed_spans(asked.gold):
            if (start, end, label) not in rows and label in made.vocabulary.label_ids:
                (own,) = shares(span_features(seen.heads.features, [(start, end)]), measure)
                missed.setdefault("+".join(label), []).append(int(own.argmax()))
    found = head_contributions(made, ASKED, measure=measure)
    assert set(found.categories) == sums.keys() | missed.keys()
    order = [(-spans, name) for spans, name in zip(found.spans, found.categories, strict=True)]
    assert order == sorted(order)
    assert len(sums) > 1
    for name, rows in sums.items():
        k = found.row(name)
        assert found.spans[k] == len(rows)
        np.testing.assert_allclose(found.means[k], np.mean(rows, axis=0), atol=1e-6)
        firsts = np.bincount([row.argmax() for row in rows], minlength=HEADS)
        np.testing.assert_array_equal(found.firsts[k], firsts)
        assert found.means[k].sum() == pytest.approx(1)
    for name, heads in missed.items():
        k = found.row(name)
        assert found.missed[k] == len(heads)
        np.testing.assert_array_equal(found.missed_firsts[k], np.bincount(heads, minlength=HEADS))


def test_the_head_that_makes_noun_phrases_is_found() -> None:
    made = two_headed_parser(np_head=3, vp_head=1)
    for measure in ("lead", "without"):
        found = head_contributions(made, ASKED, measure=measure)
        assert set(found.categories[:2]) == {"NP", "VP"}
        assert found.spans[:2].min() > 20
        for name, own, other in (("NP", 3, 1), ("VP", 1, 3)):
            k = found.row(name)
            assert found.firsts[k, own] > 0.9 * found.spans[k]
            assert found.top_heads(name, 1) == [own]
            assert found.means[k, own] > 0.5
            np.testing.assert_allclose(found.means[k, [0, 2, 4]], 0, atol=1e-6)
            assert found.means[k, other] < 0.1
    # By their sizes nothing of it is seen.
    sizes = head_contributions(made, ASKED).means
    assert sizes[:2].min() > 0.05


def test_a_head_without_features_contributes_nothing() -> None:
    made = with_gains(random_parser(), [1.0, 1.0, 0.0, 5.0, 1.0])
    for measure in ("norm", "lead", "without"):
        found = head_contributions(made, ASKED, measure=measure)
        seen = found.spans > 0
        np.testing.assert_allclose(found.means[seen, 2], 0, atol=0 if measure == "norm" else 1e-6)
        assert (found.means[seen][:, [0, 1, 3, 4]] != 0).all()
    norm = head_contributions(made, ASKED)
    assert all(
        norm.top_heads(name, 1) == [3] for name in norm.categories if norm.spans[norm.row(name)]
    )


@pytest.mark.parametrize("measure", MEASURES)
def test_neither_order_nor_batches_matter(measure: Measure) -> None:
    made = random_parser(label_feed_forward="usual")
    expected = head_contributions(made, ASKED, measure=measure)
    same(head_contributions(made, reversed(ASKED), measure=measure, max_tokens=30), expected)
    same(head_contributions(made, ASKED, measure=measure, max_tokens=1), expected)


def test_windows_are_put_together(monkeypatch: pytest.MonkeyPatch) -> None:
    made = random_parser()
    expected = head_contributions(made, ASKED)
    monkeypatch.setattr("spmrl_bench.parsers.session.WINDOW_SENTENCES", 3)
    same(head_contributions(made, ASKED), expected)
    places = []
    for seen in observe(made, ASKED):
        places.append(seen.heads.place)
        assert seen.asked == ASKED[places[-1]]
        assert seen.tree.words == tuple(seen.asked.words)
    assert sorted(places) == list(range(len(ASKED)))


def test_sentences_are_read_lazily_and_a_parser_stays_as_it_was() -> None:
    made = random_parser(attention_dropout=0.5).train()
    given = iter([*ASKED[:2], Asked([])])
    found = head_contributions(made, given)
    assert (found.sentences, found.heads) == (2, HEADS)
    assert made.training
    layer = made.encoder.label_attention
    assert not layer._forward_pre_hooks
    empty = head_contributions(made, [])
    assert (empty.categories, empty.means.shape) == ((), (0, 0))


def test_the_frame_has_a_row_for_each_category_and_head() -> None:
    found = head_contributions(random_parser(), ASKED)
    frame = found.frame()
    assert len(frame) == len(found.categories) * HEADS
    assert found.spans[1] > 0
    row = frame[(frame.category == found.categories[1]) & (frame["head"] == 2)].iloc[0]
    assert row.contribution == found.means[1, 2]
    assert (row["first"], row.spans) == (found.firsts[1, 2], found.spans[1])
    assert (row.missed, row.missed_first) == (found.missed[1], found.missed_firsts[1, 2])
    assert frame["first"].sum() == found.spans.sum()


def test_the_table_has_the_figures_of_the_paper() -> None:
    found = HeadContributions(
        "norm",
        10,
        ("NP", "QP", "X"),
        np.array([8, 2, 0]),
        np.array([[0.5, 0.2, 0.3], [0.1, 0.1, 0.8], [np.nan] * 3]),
        np.array([[5, 0, 3], [0, 0, 2], [0, 0, 0]]),
        np.array([4, 0, 1]),
        np.array([[1, 1, 2], [0, 0, 0], [0, 1, 0]]),
    )
    assert table_rows(found, top=2) == [
        ("NP", "8", "0: 50.00  2: 30.00", "0: 62.5  2: 37.5", "4", "75.0"),
        ("QP", "2", "2: 80.00  0: 10.00", "2: 100.0", "0", ""),
        ("X", "0", "", "", "1", ""),
    ]
    assert [row[0] for row in table_rows(found, ["QP"])] == ["QP"]
    with pytest.raises(SpmrlError, match=r"unknown category 'NPP'\. Did you mean NP"):
        table_rows(found, ["NPP"])


def test_what_cannot_be_asked() -> None:
    made = random_parser()
    for without, words in (
        (tiny(), "no label attention"),
        (RightBranching({"S": 1}), "no head outputs"),
    ):
        with pytest.raises(UnsupportedError, match=words):
            head_contributions(without, ASKED)
    with pytest.raises(UnsupportedError, match="labels no spans"):
        head_contributions(tiny("biaffine", chained(), **ON), ASKED)
    with pytest.raises(SpmrlError, match="adds the outputs of its heads up"):
        head_contributions(random_parser(label_outputs="projected"), ASKED)
    with pytest.raises(
        SpmrlError, match="an ensemble of 2 parsers has no 'head_outputs' of its own"
    ):
        head_contributions(Ensemble([made, made]), ASKED)
    with pytest.raises(SentenceTooLongError, match="sentence 2: a sentence of 40 words"):
        head_contributions(made, [ASKED[0], Asked(["dog"] * 40)])
    with pytest.raises(TreeError, match="sentence 1: the words of the gold tree are others"):
        head_contributions(made, [Asked(["dog"], None, TREES[0])])
    with pytest.raises(TreeError, match="1 words but 2 tags: dog"):
        head_contributions(made, [Asked(["dog"], ["N", "V"])])
    tagged = random_parser(lexical=("word", "tag"))
    with pytest.raises(TreeError, match="sentence 2: this parser reads tags"):
        head_contributions(tagged, [ASKED[0], Asked(["dog"])])
