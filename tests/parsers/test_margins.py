"""Margins of decisions, against all trees written down and against plain arithmetic."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch

from spmrl_bench.errors import SentenceTooLongError
from spmrl_bench.parsers.base import Margin
from spmrl_bench.readers.brackets import parse_brackets
from spmrl_bench.trees.dependencies import DependencyTree
from spmrl_bench.trees.parse import Parse
from spmrl_bench.trees.tree import Tree
from tests.builders import TREES, tiny
from tests.chart.enumeration import spans, trees
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
