"""Attention: weights of every encoder; heads of label attention, by category and traced back."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Sequence
from typing import Any, get_args

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from spmrl_bench.analysis.heads import (
    Example,
    HeadContributions,
    Measure,
    SpansByHead,
    head_contributions,
    shares,
    span_features,
    spans_by_head,
    table_rows,
    trace,
    trace_text,
)
from spmrl_bench.errors import SentenceTooLongError, SpmrlError, TreeError, UnsupportedError
from spmrl_bench.nn.encoders import PARTS
from spmrl_bench.nn.encoders.label_attention import LabelAttention
from spmrl_bench.nn.encoders.self_attention import AttentionMask, SelfAttention
from spmrl_bench.nn.scorers.span_scores import fenceposts
from spmrl_bench.parsers.base import Parser
from spmrl_bench.parsers.baselines import RightBranching
from spmrl_bench.parsers.chart import ChartParser
from spmrl_bench.parsers.ensemble import Ensemble
from spmrl_bench.readers.brackets import parse_brackets
from spmrl_bench.treebanks.treebank import open_treebank
from spmrl_bench.trees.head_driven import TO_HEAD
from spmrl_bench.trees.tree import collapsed_spans
from tests.builders import TREES, chained, tiny
from tests.laboratory import make_trees
from tests.nn.plain import randomise
from tests.parsers.test_joint_parser import joint

# Parsers with label attention whose heads do what a test says ---------------------------------

HEADS, D_PROJ = 5, 4
ON: dict[str, Any] = {
    "label_attention": True, "label_heads": HEADS, "label_d_kv": 8, "label_d_proj": D_PROJ,
    "label_feed_forward": "none",
}  # fmt: skip


def label_layer_of(parser: ChartParser) -> LabelAttention:
    layer = parser.encoder.label_attention
    assert isinstance(layer, LabelAttention)
    return layer


def seen_in(parser: ChartParser, words: Sequence[str]) -> SpansByHead:
    """What the parser finds in one sentence and its heads give."""
    (seen,) = spans_by_head(parser, [Example(words)])
    return seen


def random_parser(**choices: Any) -> ChartParser:
    """With large random weights, so that its heads differ."""
    made = tiny(**{**ON, **choices})
    randomise(label_layer_of(made), seed=5)
    randomise(made.scorer, seed=6)
    with torch.no_grad():
        made.scorer.second.bias.sub_(1)  # some cells are empty
    return made.eval()


def two_headed_parser(np_head: int, vp_head: int) -> ChartParser:
    """One whose score of NP comes from one head alone, that of VP from another; no other label.

    The hidden units come in pairs of opposite sign, so that their mean is zero and the layer norm
    only divides; the sum of the ReLUs of a pair is the size of what it reads.
    """
    made = random_parser()
    scorer, labels = made.scorer, made.vocabulary.labels
    hidden = scorer.first.out_features
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        read = torch.zeros(hidden // 2, 2, HEADS, D_PROJ // 2)
        for units, head in ((slice(0, 4), np_head), (slice(4, 8), vp_head)):
            read[units, :, head] = torch.randn(4, 2, D_PROJ // 2, generator=generator)
        scorer.first.weight.copy_(torch.cat((read, -read)).flatten(1))
        scorer.first.bias.zero_()
        scorer.norm.weight.fill_(1)
        scorer.norm.bias.zero_()
        scorer.second.weight.zero_()
        scorer.second.bias.fill_(-50)
        for label, units in ((("NP",), range(4)), (("VP",), range(4, 8))):
            row = labels.index(label) - 1
            scorer.second.bias[row] = -3
            for unit in units:
                scorer.second.weight[row, [unit, unit + hidden // 2]] = 1
    return made


# Heads by category ----------------------------------------------------------------------------

EXAMPLES = [Example(tree.words, tree.tags, tree) for tree in (*TREES, *make_trees(20, seed=3))]


def test_shares_are_sizes_of_heads_or_as_in_the_released_code() -> None:
    parts = np.zeros((2, 3, 4))
    parts[0, 0] = [3, 0, 0, -4]
    parts[0, 2] = np.array([0, -12, 5, 0]) * 15 / 13
    assert shares(parts).tolist() == [pytest.approx([0.25, 0.0, 0.75]), [0.0, 0.0, 0.0]]
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


@pytest.mark.parametrize("measure", ["norm", "released"])
def test_means_are_over_the_spans_of_each_predicted_label(measure: Measure) -> None:
    made = random_parser()
    sums: dict[str, list[Any]] = {}
    missed: dict[str, list[int]] = {}
    for example in EXAMPLES:
        seen = seen_in(made, example.words)
        (parse,) = made.parse([example.words])
        assert seen.tree == parse.tree
        rows = list(collapsed_spans(parse.tree))
        for start, end, label in rows:
            (own,) = shares(span_features(seen.heads.features, [(start, end)]), measure)
            sums.setdefault("+".join(label), []).append(own)
        for start, end, label in collapsed_spans(example.gold):
            if (start, end, label) not in rows and label in made.vocabulary.label_ids:
                (own,) = shares(span_features(seen.heads.features, [(start, end)]), measure)
                missed.setdefault("+".join(label), []).append(int(own.argmax()))
    found = head_contributions(made, EXAMPLES, measure)
    assert set(found.categories) == sums.keys() | missed.keys()
    order = [(-spans, name) for spans, name in zip(found.spans, found.categories, strict=True)]
    assert order == sorted(order)
    assert len(sums) > 1
    for name, rows in sums.items():
        k = found.row(name)
        np.testing.assert_allclose(found.means[k], np.mean(rows, axis=0), atol=1e-6)
        firsts = np.bincount([row.argmax() for row in rows], minlength=HEADS)
        np.testing.assert_array_equal(found.firsts[k], firsts)
    for name, heads in missed.items():
        firsts = np.bincount(heads, minlength=HEADS)
        np.testing.assert_array_equal(found.missed_firsts[found.row(name)], firsts)


def test_the_head_that_makes_noun_phrases_is_found() -> None:
    made = two_headed_parser(np_head=3, vp_head=1)
    found = head_contributions(made, EXAMPLES, "lead")
    assert set(found.categories[:2]) == {"NP", "VP"}
    for name, own, other in (("NP", 3, 1), ("VP", 1, 3)):
        k = found.row(name)
        assert found.firsts[k, own] > 0.9 * found.spans[k] > 18
        assert found.means[k, own] > 0.5
        np.testing.assert_allclose(found.means[k, [0, 2, 4]], 0, atol=1e-6)
        assert found.means[k, other] < 0.1
    # By their sizes nothing of it is seen.
    assert head_contributions(made, EXAMPLES).means[:2].min() > 0.05


@pytest.mark.parametrize("measure", get_args(Measure))
def test_neither_order_nor_windows_matter_and_a_parser_stays_as_it_was(
    measure: Measure, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = random_parser(label_feed_forward="usual", attention_dropout=0.5).train()
    expected = head_contributions(made, EXAMPLES, measure)
    monkeypatch.setattr("spmrl_bench.parsers.session.WINDOW_SENTENCES", 3)
    found = head_contributions(made, reversed(EXAMPLES), measure)
    assert (found.categories, found.sentences) == (expected.categories, expected.sentences)
    for name in ("firsts", "missed_firsts"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
    np.testing.assert_allclose(found.means, expected.means, atol=1e-5)
    for seen in spans_by_head(made, EXAMPLES):
        assert seen.example == EXAMPLES[seen.heads.place]
        assert seen.tree.words == tuple(seen.example.words)
    assert made.training
    assert not any(module._forward_pre_hooks for module in made.modules())
    assert head_contributions(made, [Example([])]).means.shape == (0, 0)


def test_the_table_has_the_figures_of_the_paper() -> None:
    found = HeadContributions(
        "norm",
        10,
        ("NP", "QP", "X"),
        np.array([[0.5, 0.2, 0.3], [0.1, 0.1, 0.8], [np.nan] * 3]),
        np.array([[5, 0, 3], [0, 0, 2], [0, 0, 0]]),
        np.array([[1, 1, 2], [0, 0, 0], [0, 1, 0]]),
    )
    assert table_rows(found, top=2) == [
        ("NP", "8", "0: 50.00  2: 30.00", "0: 62.5  2: 37.5", "4", "75.0"),
        ("QP", "2", "2: 80.00  0: 10.00", "2: 100.0", "0", ""),
        ("X", "0", "", "", "1", ""),
    ]
    assert [row[0] for row in table_rows(found, ["QP"])] == ["QP"]


def test_what_cannot_be_asked() -> None:
    made = random_parser()
    for other, message in (
        (tiny(), "no label attention"),
        (RightBranching({"S": 1}), "no head outputs"),
        (tiny("biaffine", chained(), **ON), "labels no spans"),
        (random_parser(label_outputs="projected"), "adds the outputs of its heads up"),
        (Ensemble([made, made]), "an ensemble of 2 parsers has no 'head_outputs' of its own"),
    ):
        with pytest.raises(UnsupportedError, match=message):
            head_contributions(other, EXAMPLES)
    with pytest.raises(SentenceTooLongError, match="sentence 2: a sentence of 40 words"):
        head_contributions(made, [EXAMPLES[0], Example(["dog"] * 40)])
    with pytest.raises(TreeError, match="sentence 2: this parser reads tags"):
        head_contributions(random_parser(lexical=("word", "tag")), [EXAMPLES[0], Example(["dog"])])
    with pytest.raises(SpmrlError, match="without words has no spans"):
        trace(made, Example([]))


# One sentence --------------------------------------------------------------------------------

WORDS = ["the", "cat", "sees", "a", "big", "dog", "."]
GOLD = parse_brackets("(S (NP (D the) (N cat)) (VP (V sees) (NP (D a) (A big) (N dog))) (X (P .)))")


@pytest.mark.parametrize("queries", ["vectors", "matrices"])
def test_each_constituent_has_its_label_and_its_heads(queries: str) -> None:
    made = random_parser(label_feed_forward="usual", label_queries=queries)
    (parse,) = made.parse([WORDS])
    heads = seen_in(made, WORDS).heads
    tree, spans = trace(made, Example(WORDS))
    assert tree == parse.tree
    assert [(one.start, one.end, one.label) for one in spans] == list(collapsed_spans(parse.tree))
    labels = made.vocabulary.labels
    for span in spans:
        place = [(span.start, span.end)]
        scores = heads.label_scores(torch.from_numpy(heads.features)[None], place)[0, 0].detach()
        assert span.score == pytest.approx(float(scores[labels.index(span.label)]), abs=1e-5)
        assert span.other_score == pytest.approx(float(scores[labels.index(span.other)]), abs=1e-5)
        assert span.gold is None
        (own,) = shares(span_features(heads.features, place))
        np.testing.assert_allclose(span.shares, own, atol=1e-6)
        weights = heads.weights
        if queries == "matrices":  # the mean over the tokens that the span vector is made of
            tokens = [span.start, span.start + 1, span.end, span.end + 1]
            weights = weights[:, tokens].mean(axis=1)
        np.testing.assert_allclose(span.weights, weights, atol=1e-6)


def test_gold_is_beside_a_label_where_it_differs() -> None:
    tree, spans = trace(random_parser(), Example(WORDS, None, GOLD))
    predicted = {row[:2]: row[2] for row in collapsed_spans(tree)}
    right = {row[:2]: row[2] for row in collapsed_spans(GOLD)}
    places = [(span.start, span.end) for span in spans]
    assert places == sorted(predicted.keys() | right.keys(), key=lambda span: (span[0], -span[1]))
    for span, place in zip(spans, places, strict=True):
        assert (span.label, span.gold) == (predicted.get(place, ()), right.get(place, ()))
        assert span.known == (span.gold != ("X",))
        if span.wrong and span.known:
            assert span.other == span.gold
        else:
            assert span.other != span.label
    assert any(span.wrong for span in spans)


@pytest.mark.parametrize("structure", ["joint", "division"])
def test_labels_of_joint_parsers_are_those_of_constituents(structure: str) -> None:
    bank = open_treebank("german-mini")
    sentences = bank.examples("train", ["constituents", "dependencies"])[:20]
    made = joint(sentences, structure=structure, **{**ON, "label_feed_forward": "usual"}).eval()
    labels = 0
    for example in sentences[:4]:
        for span in trace(made, Example(example.words, None, example.tree))[1]:
            labels += bool(span.label)
            assert span.label != span.other
            assert TO_HEAD not in (*span.label, *span.other)
            assert span.wrong or span.score - span.other_score >= -1e-4 or not span.label
    assert labels > 10


def test_the_text_says_it_all() -> None:
    tree, spans = trace(two_headed_parser(np_head=3, vp_head=1), Example(WORDS, None, GOLD))
    text = trace_text(tree, spans, top=2, tokens=2)
    lines = text.splitlines()
    wrong = sum(span.wrong for span in spans)
    assert lines[:2] == [str(tree), f"{wrong} of {len(spans)} spans differ from gold"]
    assert "in gold X: .\n" in text
    assert "the parser does not know the gold label" in text
    assert text.count("looks at") == len(spans)
    assert trace_text(tree, spans, errors=True).count("looks at") == wrong
    first = spans[0]
    head = int(first.parts.argmax())
    strongest = int(first.weights[head].argmax())
    token = ["START", *WORDS, "STOP"][strongest]
    (row,) = [line for line in lines[:7] if line.startswith(f"  {head:4d} ")]
    assert f"{100 * first.shares[head]:.1f} %  " in row
    assert f"{first.parts[head]:+.3f}  {token} {100 * first.weights[head, strongest]:.0f} %" in row


# Weights of attention: they are what the parser's layers use, in every encoder ---------------

TOKENS = len(WORDS) + 2
ENCODERS: dict[str, dict[str, Any]] = {
    "factored": {},
    "unfactored": {"position": "added", "matrices": "full"},
    "concatenated": {"matrices": "full"},
    "sparse": {"position": "added"},
    "position-only": {"position": "added", "matrices": "full", "position_only_layers": (0, 1)},
    "scaled": {"attention_scale": "d_model", "layer_norm": "released", "input_norm": False},
    "window": {"attention_window": 2},
    "relaxed": {"attention_window": 1, "relaxed_window": True},
}


def attention_maps(parser: Parser, words: list[str], part: Any = "combined") -> Tensor:
    return torch.from_numpy(parser.attention(words, None, part).weights)


def parser(**choices: Any) -> ChartParser:
    made = tiny(**choices)
    # Larger weights than a new parser's, so that its attention is far from uniform.
    randomise(made.encoder, seed=5)
    return made.eval()


@contextlib.contextmanager
def watched(found: ChartParser) -> Iterator[list[tuple[SelfAttention, Tensor, Tensor]]]:
    """Each attention with the rows that it read and what it gave."""
    seen: list[tuple[SelfAttention, Tensor, Tensor]] = []

    def note(module: nn.Module, given: Any, result: Tensor) -> None:
        assert isinstance(module, SelfAttention)
        seen.append((module, given[0], result))

    modules = [module for module in found.modules() if isinstance(module, SelfAttention)]
    handles = [module.register_forward_hook(note) for module in modules]
    yield seen
    for handle in handles:
        handle.remove()


@pytest.mark.parametrize("name", ENCODERS)
def test_weights_times_values_are_what_the_attention_gives(name: str) -> None:
    made = parser(**ENCODERS[name])
    before = list(made.parse([WORDS]))
    with watched(made) as seen:
        maps = attention_maps(made, WORDS)
    assert maps.shape == (2, 2, TOKENS, TOKENS)
    for weights, (module, rows, given) in zip(maps, seen[-2:], strict=True):
        values = module.project.to_heads(rows, 3 * module.heads)[:, 2 * module.heads :]
        context = torch.einsum("hij,jhd->ihd", weights, values)
        torch.testing.assert_close(module.output.from_heads(context), given, atol=1e-5, rtol=1e-4)
    # The test would tell nothing if all weights were alike.
    assert maps.std() > 0.02
    for part in made.attention(WORDS).parts:
        sums = attention_maps(made, WORDS, part=part).sum(-1)
        torch.testing.assert_close(sums, torch.ones_like(sums))
    # Looking changes nothing.
    assert not any(module._forward_pre_hooks for module in made.modules())
    assert list(made.parse([WORDS])) == before


@pytest.mark.parametrize("name", ["factored", "scaled", "window"])
def test_the_parts_multiply_to_the_whole(name: str) -> None:
    """The softmax of a sum is the product of the softmaxes, normalised."""
    made = parser(**ENCODERS[name])
    content, position, combined = (attention_maps(made, WORDS, part=part) for part in PARTS)
    product = content * position
    torch.testing.assert_close(product / product.sum(-1, keepdim=True), combined)
    assert not torch.allclose(content, position, atol=0.02)


def test_masks_of_a_trained_parser_are_seen() -> None:
    made = parser()
    with made.limited({0: AttentionMask(content=False), 1: AttentionMask(window=0)}):
        combined = attention_maps(made, WORDS)
        position = attention_maps(made, WORDS, part="position")
    torch.testing.assert_close(combined[0], position[0])
    torch.testing.assert_close(combined[1], torch.eye(TOKENS).expand(2, -1, -1))


def test_a_parser_without_attention_can_only_be_left_as_it_is() -> None:
    for other in (tiny(encoder="lstm"), tiny("right-branching")):
        with other.limited({}):
            assert len(list(other.parse([WORDS]))) == 1
        with pytest.raises(UnsupportedError):
            other.limited({0: AttentionMask(window=0)}).__enter__()


def test_what_has_no_attention_to_show_is_refused() -> None:
    made = parser()
    refused: list[tuple[Any, str]] = [
        (tiny(encoder="lstm"), "no attention .* class LSTMEncoder"),
        (RightBranching({"S": 1}), "kind right-branching has no attention: .* chart or biaffine"),
        (Ensemble([made, made]), "an ensemble of 2 parsers has no .attention. of its own"),
    ]
    for other, words in refused:
        with pytest.raises(UnsupportedError, match=words):
            other.attention(WORDS)
    with pytest.raises(UnsupportedError, match="content and to position can be told apart only"):
        attention_maps(parser(matrices="full"), WORDS, part="content")
    with pytest.raises(TreeError, match="a sentence without words has no attention"):
        attention_maps(made, [])
    with pytest.raises(SentenceTooLongError):
        attention_maps(made, ["dog"] * 19)
