"""Parsers of dependencies and of both layers: what they learn, what they find, how it agrees."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from spmrl_bench.chart.arrays import cell_index
from spmrl_bench.chart.dependency_trees import decode_dependencies
from spmrl_bench.errors import TreeError
from spmrl_bench.nn.scorers.pair_scores import choice_loss
from spmrl_bench.nn.vocabulary import Vocabulary
from spmrl_bench.parsers.base import EnsembleError
from spmrl_bench.parsers.biaffine import BiaffineParser, DependencyScores
from spmrl_bench.parsers.ensemble import Ensemble
from spmrl_bench.parsers.joint import JointParser
from spmrl_bench.readers.brackets import parse_brackets
from spmrl_bench.trees.dependencies import DependencyTree
from spmrl_bench.trees.head_driven import SUB_HEAD, head_driven
from spmrl_bench.trees.parse import Parse
from spmrl_bench.trees.tree import Tree
from tests.builders import learn, tiny, words_of


def joint(examples: Sequence[Parse], seed: int = 1, **changes: Any) -> JointParser:
    settings = {"encoder": "lstm", "layers": 1, "max_positions": 60, **changes}
    return tiny("joint", examples, seed=seed, **settings)


def biaffine(examples: Sequence[Parse], seed: int = 1) -> BiaffineParser:
    return tiny("biaffine", examples, seed=seed, encoder="lstm", layers=1, max_positions=60)


def shaken(parser: Any) -> Any:
    """With random scores of arcs and relations, which begin at zero."""
    with torch.no_grad():
        for weight in parser.dependencies.parameters():
            weight.normal_(std=0.7)
    return parser


def sentence(heads: Sequence[int], relations: Sequence[str], brackets: str | None = None) -> Parse:
    tree = None if brackets is None else parse_brackets(brackets)
    words = [f"w{k}" for k in range(len(heads))] if tree is None else tree.words
    tags = ["T"] * len(heads) if tree is None else tree.tags
    return Parse.of(tree, DependencyTree.build(words, tags, heads, relations))


def heads_of(parses: Sequence[Parse]) -> list[list[int]]:
    return [parse.dependencies.heads.tolist() for parse in parses]


def test_the_loss_is_the_sum_of_its_weighted_parts(sentences: list[Parse]) -> None:
    examples = sentences[:4]
    ones = joint(examples, lexical=("charlstm",))
    weighted = joint(examples, lexical=("charlstm",), arc_loss_weight=0.5, relation_loss_weight=3.0)
    for parser in (ones, weighted):
        parser.load_state_dict(shaken(ones).state_dict())
        parser.eval()

    def parts(parser: JointParser) -> tuple[float, float, float]:
        """Of both layers, of heads, of relations."""
        indexed = list(parser.index(examples))
        total = parser.gradients(indexed, np.random.default_rng(0), 2000) * len(examples)
        encoded = next(parser.encoded(words_of(examples)))
        order = [indexed[place].gold[1] for place in encoded.places]
        heads, relations = (torch.from_numpy(np.concatenate(x)) for x in zip(*order, strict=True))
        scorer, layout = parser.dependencies.scorer, encoded.batch.layout
        projected = scorer.project(encoded.tokens, layout)
        of_arcs = choice_loss(scorer.arc_scores(projected, layout), heads).item()
        scores = scorer.relation_scores(projected, layout, heads)
        return total, of_arcs, choice_loss(scores, relations).item()

    total, arcs, relations = parts(ones)
    assert parts(weighted)[0] == pytest.approx(total - 0.5 * arcs + 2 * relations, rel=1e-4)


def test_sub_heads_are_labels_that_are_learnt(sentences: list[Parse]) -> None:
    flat = sentence([2, 0, 2], ["a", "root", "b"], "(S (A x) (B y) (C z))")
    deeper = sentence([3, 1, 0], ["a", "b", "root"], "(S (A x) (B y) (C z))")
    known = [(SUB_HEAD,) in joint(each).vocabulary.label_ids for each in (sentences, [flat])]
    assert known == [True, False]
    gold, _ = joint([deeper]).gold(deeper)
    assert set(gold.cells.tolist()) == {cell_index(0, 3, 3), cell_index(0, 2, 3)}


def test_what_cannot_be_learnt_is_said() -> None:
    both = sentence([2, 0], ["a", "root"], "(S (A x) (B y))")
    reserved = Tree.build(["x"], ["A"], [(0, 1, SUB_HEAD)])
    marked = Parse.of(reserved, DependencyTree.build(["x"], ["A"], [0], ["root"]))
    for message, learn_it in (
        ("has only dependencies", lambda: joint([sentence([0], ["root"])])),
        ("1 training sentences have no dependencies", lambda: biaffine([Parse.of(both.tree)])),
        (r"the sentence begins: x y\)", lambda: biaffine([both]).gold(Parse.of(both.tree))),
        ("relation other", lambda: biaffine([both]).gold(sentence([2, 0], ["other", "root"]))),
        ("reserved", lambda: joint([marked])),
    ):
        with pytest.raises(TreeError, match=message):
            learn_it()


def test_a_second_root_is_moved_and_learnt_with_its_relation() -> None:
    """Its relation was seen at roots alone before."""
    heads, relations = [0, 1, 0], ["root", "a", "root"]
    tree = parse_brackets("(S (A x) (B y) (C z))")
    two = DependencyTree.build(tree.words, tree.tags, heads, relations, roots="several")
    parser = joint([example := Parse.of(tree, two)])
    assert learn(parser, [example], 40)[-1] < 1
    (found,) = parser.parse([example.words])
    assert found.dependencies.heads.tolist() == [3, 1, 0]
    assert found.dependencies.relations == ("root", "a", "root")


def test_constituents_and_dependencies_agree_whatever_the_scores(sentences: list[Parse]) -> None:
    for changes in ({}, {"span_weight": 0.9}, {"structure": "division"}):
        checked = 0
        for parse in shaken(joint(sentences, **changes)).parse(words_of(sentences)):
            assert SUB_HEAD not in parse.tree.labels
            found = head_driven(parse.tree, parse.dependencies)
            assert (found.heads == parse.dependencies.heads).all()
            checked += len(parse.tree.labels)
        assert checked > 3 * len(sentences)


def test_lambda_weighs_spans_against_arcs(sentences: list[Parse]) -> None:
    """With spans alone arcs do not change the trees, with arcs alone labels not the heads."""
    sentences = sentences[:20]
    parser = shaken(joint(sentences))

    def parses(weight: float) -> list[Parse]:
        parser.config = parser.config.model_copy(update={"span_weight": weight})
        return list(parser.parse(words_of(sentences)))

    def score(found: Sequence[Parse]) -> float:
        total = 0.0
        for parse in found:
            n = len(parse)
            table = arcs_of(parser, parse.words).reshape(n, n + 1)
            total += table[np.arange(n), parse.dependencies.heads].sum()
        return float(total)

    arcs, both, spans = (parses(weight) for weight in (0.0, 0.5, 1.0))
    assert score(arcs) > score(both) > score(spans)
    with torch.no_grad():
        parser.scorer.second.weight.normal_()
    assert heads_of(parses(0.0)) == heads_of(arcs)
    both, spans = parses(0.5), parses(1.0)
    shaken(parser)
    assert [parse.tree for parse in parses(1.0)] == [parse.tree for parse in spans]
    assert heads_of(parses(0.0)) != heads_of(arcs)
    assert [parse.tree for parse in parses(0.5)] != [parse.tree for parse in both]


def test_crossing_arcs_are_found_where_training_trees_have_some() -> None:
    crossing = sentence([3, 4, 0, 3], ["a", "a", "root", "a"])
    nested = sentence([2, 0, 2, 3], ["a", "root", "a", "a"])
    both, one = biaffine([crossing, nested]), biaffine([nested])
    assert (both.vocabulary.projective, one.vocabulary.projective) == (False, True)
    learn(both, [crossing, nested], 100)
    assert heads_of(list(both.parse([crossing.words]))) == [[3, 4, 0, 3]]
    assert Vocabulary.from_json(both.vocabulary.to_json()) == both.vocabulary


def test_an_ensemble_averages_the_scores_of_both_layers(sentences: list[Parse]) -> None:
    """One that is sure of itself decides: ten thousand times the scores, as much more weight."""
    words = words_of(sentences)[:10]
    one, other = shaken(joint(sentences)), shaken(joint(sentences, seed=2))
    expected = list(other.parse(words))
    scorer = other.dependencies.scorer
    with torch.no_grad():
        for linear in (
            other.scorer.second, scorer.arc, scorer.relation, scorer.relation_dependent,
        ):  # fmt: skip
            linear.weight.mul_(1e4)
            linear.bias.mul_(1e4)
    assert list(Ensemble([one, other]).parse(words)) == expected != list(one.parse(words))


def test_an_ensemble_of_biaffine_parsers_takes_the_mean_of_their_scores(
    sentences: list[Parse],
) -> None:
    words = words_of(sentences)[:10]
    members = [shaken(biaffine(sentences, seed=seed)) for seed in (1, 2)]
    for own, parse in zip(words, Ensemble(members).parse(words), strict=True):
        arcs = sum(arcs_of(member, own) for member in members)
        expected = decode_dependencies(arcs, [len(own)], projective=True)
        assert parse.dependencies.heads.tolist() == expected.tolist()
    loose = members[1]
    loose.vocabulary = replace(loose.vocabulary, projective=False)
    with pytest.raises(EnsembleError, match="parser 1 has learnt projective trees only, parser 2"):
        Ensemble(members)


def arcs_of(parser: Any, words: Sequence[str]) -> Any:
    """Scores of all arcs of a sentence, packed."""
    (encoded,) = parser.encoded([words])
    return DependencyScores([parser.dependencies], [encoded]).arcs
