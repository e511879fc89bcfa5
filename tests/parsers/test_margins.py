"""Margins of decisions, against all trees written down and against plain arithmetic; and leads of
labels over others, shared out among the heads of label attention."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from torch import Tensor

from spmrl_bench.chart.arrays import cell_index
from spmrl_bench.errors import SentenceTooLongError
from spmrl_bench.nn.scorers.span_scores import fenceposts
from spmrl_bench.parsers.base import Margin
from spmrl_bench.parsers.chart import ChartParser
from spmrl_bench.parsers.views import HeadOutputs, Leads, lead_parts, runner_up, scored_label
from spmrl_bench.readers.brackets import parse_brackets
from spmrl_bench.trees.dependencies import DependencyTree
from spmrl_bench.trees.head_driven import SUB_HEAD, TO_HEAD
from spmrl_bench.trees.parse import Parse
from spmrl_bench.trees.tree import Tree
from tests.analysis.test_heads import HEADS, label_layer_of, random_parser, seen_in
from tests.builders import TREES, tiny
from tests.chart.enumeration import spans, trees
from tests.nn.plain import layer_norm
from tests.parsers import test_joint_parser, test_transition_parser
from tests.parsers.plain_parser import PlainParser


class Differing(NamedTuple):
    gold: Parse
    parser: Parse
    differences: list[Margin]


def found_in(parser: Any, gold: Sequence[Parse], **options: Any) -> dict[int, Differing]:
    """What differs, by the place of the sentence from 0."""
    return {
        place: Differing(gold[place], predicted, margins)
        for place, predicted, margins in parser.margins(gold, **options)
        if margins
    }


def cell_scores(parser: Any, words: Sequence[str]) -> dict[tuple[int, int], dict[str, float]]:
    """The score of each label of each span; the empty one does not cover the whole sentence."""
    names = ["+".join(label) for label in parser.vocabulary.labels]
    table = PlainParser(parser).scores(words)
    found = {
        span: dict(zip(names, table[span].tolist(), strict=True)) for span in spans(len(words))
    }
    del found[0, len(words)][""]
    return found


def best_score(
    scores: dict[tuple[int, int], dict[str, float]],
    n: int,
    span: tuple[int, int] | None = None,
    label: str = "",
) -> float:
    """Of all trees, or of those in which a span has a label, or none."""
    totals = []
    for tree in trees(0, n):
        if span is not None and label and span not in tree:
            continue
        total = 0.0
        for node in tree:
            row = scores[node]
            total += row[label] if node == span else max(row.values())
        totals.append(total)
    return max(totals)


GOLD = [
    "(S (NP (D the) (N dog)) (VP (V sees) (NP (D a) (N cat))))",
    "(S (NP (N cats)) (VP (V see) (NP (NP (N dogs)) (PP (I in) (NP (N houses))))))",
    "(NP (NP (D the) (A big)) (NP (N dog) (P .)))",
]


def test_the_margin_of_a_span_is_what_the_best_tree_gives_up_for_it() -> None:
    gold = [Parse.of(parse_brackets(text)) for text in GOLD]
    compared = 0
    for seed in range(4):
        parser = tiny(seed=seed).eval()
        for each in found_in(parser, gold).values():
            n, scores = len(each.gold), cell_scores(parser, each.gold.words)
            for one in each.differences:
                span = (one.start, one.end)
                alternative = best_score(scores, n, span, one.gold)
                assert one.margin == pytest.approx(best_score(scores, n) - alternative, abs=1e-4)
                assert one.known
                compared += 1
            wanted = {(i, j) for i, j, _ in each.gold.tree.constituents()} ^ {
                (i, j) for i, j, _ in each.parser.tree.constituents()
            }
            assert wanted <= {(one.start, one.end) for one in each.differences}
    assert compared > 20


def test_a_label_that_the_parser_does_not_know_costs_what_any_other_one_does() -> None:
    tree = replace(TREES[1], labels=("S", "XP", "VP", "NP"))
    parser = tiny().eval()
    each = found_in(parser, [Parse.of(tree)])[0]
    (one,) = [one for one in each.differences if one.gold == "XP"]
    assert not one.known
    n, scores = len(tree), cell_scores(parser, tree.words)
    others = [label for label in scores[0, 2] if label not in ("", one.predicted)]
    alternative = max(best_score(scores, n, (0, 2), label) for label in others)
    assert one.margin == pytest.approx(best_score(scores, n) - alternative, abs=1e-4)


def test_a_joint_parser_is_compared_on_both_layers(sentences: list[Parse]) -> None:
    for changes in ({}, {"structure": "division"}):
        parser = test_joint_parser.shaken(test_joint_parser.joint(sentences, **changes)).eval()
        found = found_in(parser, sentences)
        assert len(found) == len(sentences)
        layers = {one.layer for each in found.values() for one in each.differences}
        assert layers == {"constituents", "dependencies"}
        for each in found.values():
            assert all(one.margin >= 0 for one in each.differences if one.layer == "constituents")
            assert not any("<" in label for _, _, label in each.parser.tree.constituents())
        # Told that its own parse is gold, it differs nowhere.
        assert not found_in(parser, [found[k].parser for k in range(len(sentences))])


def test_the_margin_of_a_word_is_the_log_odds_of_its_arc(sentences: list[Parse]) -> None:
    parser = test_joint_parser.shaken(test_joint_parser.biaffine(sentences)).eval()
    names = parser.dependencies.names
    compared = 0
    for each in found_in(parser, sentences[:6]).values():
        gold, own = each.gold.dependencies, each.parser.dependencies
        (encoded,) = parser.encoded([each.gold.words], None, 2000)
        scorer, layout = parser.dependencies.scorer, encoded.batch.layout
        with torch.no_grad():
            projected = scorer.project(encoded.tokens, layout)
            arcs = scorer.arc_scores(projected, layout).double().numpy()

            relations = [
                scorer.relation_scores(projected, layout, torch.tensor(tree.heads.tolist()))
                for tree in (gold, own)
            ]
            for one in each.differences:
                word, sides = one.start, []
                for tree, scores in zip((gold, own), relations, strict=True):
                    row = scores[word].double().numpy()
                    of_arc = arcs[word, tree.heads[word]] - np.log(np.exp(arcs[word]).sum())
                    of_relation = row[names.index(tree.relations[word])]
                    sides.append(of_arc + of_relation - np.log(np.exp(row).sum()))
                assert one.margin == pytest.approx(sides[1] - sides[0], abs=1e-4)
                assert (one.gold_head, one.gold) == (gold.heads[word], gold.relations[word])
                compared += 1
    assert compared > 20


def test_a_transition_parser_goes_along_gold(sentences: list[Parse]) -> None:
    parser = test_transition_parser.parser_of(sentences, beam=1)
    own = list(parser.parse([each.words for each in sentences]))
    assert not found_in(parser, own)
    # One other relation of its own tree: the states before are those of its search.
    changed, places = [], []
    permitted = parser.system.permitted[:, 1]
    allowed = [name for name, may in zip(parser.names, permitted, strict=True) if may]
    for parse in own:
        tree = parse.dependencies
        word = next(k for k, head in enumerate(tree.heads) if head)
        relations = list(tree.relations)
        relations[word] = next(name for name in allowed if name != tree.relations[word])
        changed.append(Parse.of(dependencies=replace(tree, relations=tuple(relations))))
        places.append(word)
    found = found_in(parser, changed)
    for number, (parse, word) in enumerate(zip(changed, places, strict=True)):
        (one,) = found[number].differences
        assert (one.start, one.predicted) == (word, own[number].dependencies.relations[word])
        # The best action against the gold one where the word gets its head.
        (encoded,) = parser.encoded([parse.words], None, 2000)
        derivation = parser.gold(parse)
        with torch.no_grad():
            forced, _, _ = parser.teacher_forced(encoded.tokens, encoded.batch, [derivation])
        step = derivation.removed_at[word + 1] - 1
        scores = forced[step].double().log_softmax(dim=0)
        odds = float(scores.max() - scores[derivation.actions[step]])
        assert one.margin == pytest.approx(odds, abs=1e-4)


def test_trees_that_no_actions_make_have_no_margins(sentences: list[Parse]) -> None:
    parser = test_transition_parser.parser_of(sentences)
    tree = DependencyTree.build(["der", "Hund"], ["ART", "NN"], [0, 0], ["X", "Y"], roots="several")
    each = found_in(parser, [Parse.of(dependencies=tree)])[0]
    assert [one.margin for one in each.differences] == [0.0] * len(each.differences)
    assert not any(one.known for one in each.differences)


def test_sentences_come_with_their_numbers_whatever_the_batch() -> None:
    gold = [Parse.of(tree) for tree in TREES]
    parser = tiny().eval()
    found = found_in(parser, gold)
    alone = {
        place: each
        for place, tree in enumerate(gold)
        for each in found_in(parser, [tree], max_tokens=1).values()
    }
    assert found.keys() == alone.keys() != set()
    for place, each in found.items():
        for one, other in zip(each.differences, alone[place].differences, strict=True):
            assert one._replace(margin=0) == other._replace(margin=0)
            assert one.margin == pytest.approx(other.margin, abs=1e-4)


def test_a_sentence_that_is_too_long_is_named() -> None:
    long = Parse.of(Tree.build(["w"] * 30, ["T"] * 30, [(0, 30, "S")]))
    with pytest.raises(SentenceTooLongError, match="sentence 2: a sentence of 30 words"):
        found_in(tiny(), [Parse.of(TREES[0]), long])


# ---- Leads, head by head ----------------------------------------------------------------

WORDS = ["the", "cat", "sees", "a", "big", "dog", "."]
SPANS = [(0, 7), (2, 6), (0, 1), (3, 6)]
LABELS, OTHERS = [1, 2, 0, 3], [2, 0, 1, 1]
FORMS: list[dict[str, Any]] = [
    {},
    {"label_feed_forward": "usual"},
    {"label_feed_forward": "usual", "layer_norm": "released"},
    {"encoder": "lstm", "label_feed_forward": "usual"},
    {"label_queries": "matrices"},
]


def scores_of_parser(parser: ChartParser) -> Tensor:
    """What the parser itself scores the spans with, ``[spans, labels - 1]``."""
    (encoded,) = parser.encoded([WORDS], None, 2000)
    n = len(WORDS)
    found = torch.cat([block.clone() for block in parser.scorer.label_scores(encoded)])
    return found[[cell_index(start, end, n) for start, end in SPANS]]


def outputs(parser: ChartParser) -> HeadOutputs:
    return seen_in(parser, WORDS).heads


def scores_of(heads: HeadOutputs) -> Tensor:
    with torch.no_grad():
        return heads.label_scores(torch.from_numpy(heads.features)[None], SPANS)[0]


def given(heads: HeadOutputs) -> Leads:
    return Leads(SPANS, LABELS, OTHERS, scores_of(heads))


@pytest.mark.parametrize("form", FORMS)
def test_scores_from_what_heads_give_are_those_of_the_parser(form: dict[str, Any]) -> None:
    made = random_parser(**form)
    found = scores_of(outputs(made))
    assert torch.equal(found[:, 0], torch.zeros(len(SPANS)))
    torch.testing.assert_close(found[:, 1:], scores_of_parser(made), atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("form", FORMS[:4])
def test_parts_of_heads_and_a_constant_are_the_lead(form: dict[str, Any]) -> None:
    """The same network in plain float64, with ReLUs and deviations as they are for all heads.

    It is linear then: what it gives for one head alone, less what it gives for none, is the part.
    """
    made = random_parser(**form)
    heads = outputs(made)
    parts, scores = lead_parts(heads, given(heads)), scores_of(heads).numpy()
    features = torch.from_numpy(heads.features)
    for k, span in enumerate(SPANS):
        lead = scores[k, LABELS[k]] - scores[k, OTHERS[k]]
        whole, constant, alone = (
            _held_lead(made, features, chosen, span, LABELS[k], OTHERS[k])
            for chosen in ([*range(HEADS)], [], None)
        )
        assert whole[0] == pytest.approx(lead, abs=1e-3)
        np.testing.assert_allclose(parts[k], alone - constant, atol=1e-3)
        assert parts[k].sum() + constant[0] == pytest.approx(lead, abs=1e-3)
        assert np.abs(parts[k]).max() > 0.02


def _held_lead(
    parser: ChartParser,
    features: Tensor,
    heads: list[int] | None,
    span: tuple[int, int],
    label: int,
    other: int,
) -> Any:
    """The lead from some heads, or (None) from each alone, with all else as it is for all heads."""
    if heads is None:
        return np.array(
            [_held_lead(parser, features, [h], span, label, other)[0] for h in range(HEADS)]
        )
    double = {k: v.detach().double() for k, v in parser.scorer.state_dict().items()}
    chosen = torch.zeros(HEADS, 1, dtype=torch.float64)
    chosen[heads] = 1
    full, some = features.double().flatten(1), (features.double() * chosen).flatten(1)
    feed = label_layer_of(parser).feed_forward
    if feed is not None:
        w = {k: v.detach().double() for k, v in feed.state_dict().items()}
        hidden = full @ w["expand.weight"].T + w["expand.bias"]
        gate = hidden > 0
        own = some @ w["expand.weight"].T + w["expand.bias"]
        full = full + (hidden * gate) @ w["contract.weight"].T + w["contract.bias"]
        some = some + (own * gate) @ w["contract.weight"].T + w["contract.bias"]
        full, some = _held(full, some, feed.norm)
    left = torch.arange(len(WORDS) + 1)
    vectors = []
    for rows in (full, some):
        posts = fenceposts(rows, left, parser.encoder.d_block)
        vectors.append((posts[span[1]] - posts[span[0]]) @ double["first.weight"].T)
    full, some = (vector + double["first.bias"] for vector in vectors)
    full, some = _held(full[None], some[None], parser.scorer.norm)
    gate = full > 0
    scores = (some * gate) @ double["second.weight"].T + double["second.bias"]
    scores = torch.cat((torch.zeros(1), scores[0]))
    return np.array([float(scores[label] - scores[other])])


def _held(full: Tensor, some: Tensor, norm: Any) -> tuple[Tensor, Tensor]:
    """Both rows normalised with the deviations of the first."""
    width = full.shape[1]
    weight, bias = norm.weight.detach().double(), norm.bias.detach().double()
    results = []
    for rows in (full, some):
        out = []
        for row, other in zip(full, rows, strict=True):
            normal = layer_norm(row, norm).detach()
            # What the norm divides by, from one of its features.
            k = int((row - row.mean()).abs().argmax())
            scale = (normal[k] - bias[k]) / (row[k] - row.sum() / width)
            out.append((other - other.mean()) * scale / weight[k] * weight + bias)
        results.append(torch.stack(out))
    return results[0], results[1]


def test_the_runner_up_is_the_best_other_label_that_may_be_there() -> None:
    labels = random_parser().vocabulary.labels
    scores = torch.full((len(labels),), -1.0)
    scores[0] = 0.0
    s, np_, vp = (labels.index((name,)) for name in ("S", "NP", "VP"))
    scores[[s, np_, vp]] = torch.tensor([-0.5, 3.0, 2.0])
    assert runner_up(labels, np_, (1, 3), 7, scores) == vp
    assert runner_up(labels, vp, (1, 3), 7, scores) == np_
    scores[vp] = -2.0
    assert runner_up(labels, np_, (1, 3), 7, scores) == 0
    assert runner_up(labels, np_, (0, 7), 7, scores) == s  # a sentence has a label
    assert runner_up(labels, 0, (1, 3), 7, scores) == np_
    assert scored_label(labels, ("VP",), scores) == vp
    assert scored_label(labels, ("UNHEARD",), scores) is None
    assert scored_label(labels, (), scores) == 0


def test_labels_of_division_spans_have_two_forms() -> None:
    labels = ((), ("NP",), (TO_HEAD, "NP"), (TO_HEAD,), ("VP",), (SUB_HEAD,), (TO_HEAD, SUB_HEAD))
    scores = torch.tensor([0.0, 2.0, 3.0, 2.5, 1.0, 0.9, 2.8])
    assert scored_label(labels, ("NP",), scores) == 2
    assert scored_label(labels, (), scores) == 3
    assert runner_up(labels, 2, (1, 3), 7, scores) == 6  # not the other form
    assert runner_up(labels, 2, (1, 2), 7, scores) == 3  # a word is no sub-head
    assert runner_up(labels, 2, (0, 7), 7, scores) == 4  # nor is a sentence, which has a label
    assert runner_up(labels, 3, (1, 2), 7, scores) == 2
