"""Parsers of dependencies and of both layers: what they learn, what they find, how it agrees."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch

from spmrl_bench.chart import decode_dependencies
from spmrl_bench.chart.packing import cell_index, cell_spans
from spmrl_bench.errors import TreeError
from spmrl_bench.nn.biaffine import arc_loss, relation_loss
from spmrl_bench.parsers.base import EnsembleError
from spmrl_bench.parsers.decoding import barred
from spmrl_bench.parsers.dependency_layer import ScoredDependencies
from spmrl_bench.parsers.dependency_parser import DependencyParser
from spmrl_bench.parsers.joint_parser import JointParser
from spmrl_bench.parsers.registry import combine
from spmrl_bench.parsers.vocabulary import Vocabulary
from spmrl_bench.readers.brackets import parse_brackets
from spmrl_bench.treebanks.treebank import open_treebank
from spmrl_bench.trees.dependencies import DependencyTree
from spmrl_bench.trees.head_driven import SUB_HEAD, head_driven
from spmrl_bench.trees.parse import Parse
from spmrl_bench.trees.tree import Tree
from tests.builders import learn, tiny, words_of


@pytest.fixture(scope="module")
def sentences() -> list[Parse]:
    """Of the German mini treebank, some of whose constituents need sub-heads."""
    return open_treebank("german-mini").examples("train", ["constituents", "dependencies"])[:60]


def joint(examples: Sequence[Parse], seed: int = 1, **changes: Any) -> JointParser:
    settings = {"encoder": "lstm", "layers": 1, "max_positions": 60, **changes}
    return tiny("joint", examples, seed=seed, **settings)


def biaffine(examples: Sequence[Parse], seed: int = 1) -> DependencyParser:
    return tiny("biaffine", examples, seed=seed, encoder="lstm", layers=1, max_positions=60)


def shaken(parser: Any) -> Any:
    """With random scores of arcs and relations, which begin at zero."""
    with torch.no_grad():
        for weight in parser.dependencies.parameters():
            weight.normal_(std=0.7)
    return parser


def sentence(heads: Sequence[int], relations: Sequence[str], brackets: str | None = None) -> Parse:
    n = len(heads)
    tree = None if brackets is None else parse_brackets(brackets)
    words = [f"w{k}" for k in range(n)] if tree is None else tree.words
    tags = ["T"] * n if tree is None else tree.tags
    return Parse.of(tree, DependencyTree.build(words, tags, heads, relations))


# What is learnt ------------------------------------------------------------------------------


@pytest.mark.parametrize("build", [joint, biaffine])
def test_a_parser_learns_its_training_sentences(build: Any, sentences: list[Parse]) -> None:
    examples = [each for each in sentences if len(each) < 12][:12]
    parser = build(examples)
    losses = learn(parser, examples, 200)
    assert losses[-1] < losses[0] / 20
    found = list(parser.parse(words_of(examples)))
    assert [each.dependencies.heads.tolist() for each in found] == [
        each.dependencies.heads.tolist() for each in examples
    ]
    for one, other in zip(found, examples, strict=True):
        assert one.dependencies.relations == other.dependencies.relations
        if parser.kind == "joint":
            assert one.tree == other.tree.__class__.build(
                one.words, one.tags, other.tree.constituents()
            )


def test_the_loss_is_the_sum_of_its_weighted_parts(sentences: list[Parse]) -> None:
    examples = sentences[:4]
    ones = joint(examples, lexical=("charlstm",))
    weighted = joint(examples, lexical=("charlstm",), arc_loss_weight=0.5, relation_loss_weight=3.0)
    for parser in (ones, weighted):
        parser.load_state_dict(shaken(ones).state_dict())
        parser.eval()

    def parts(parser: JointParser) -> tuple[float, float, float]:
        """Of the chart, of governors, of relations."""
        indexed = list(parser.index(examples))
        total = parser.gradients(indexed, np.random.default_rng(0), 2000) * len(examples)
        encoded = next(parser.encoded(words_of(examples), None, 2000, None))
        order = [indexed[place].gold.dependencies for place in encoded.places]
        heads, relations = (torch.from_numpy(np.concatenate(x)) for x in zip(*order, strict=True))
        scorer, layout = parser.dependencies.scorer, encoded.batch.layout
        projected = scorer.project(encoded.tokens, layout)
        of_arcs = arc_loss(scorer.arc_scores(projected, layout), heads).item()
        scores = scorer.relation_scores(projected, layout, heads)
        return total, of_arcs, relation_loss(scores, relations).item()

    ones.training_indexer = weighted.training_indexer = None
    total, arcs, relations = parts(ones)
    assert parts(weighted)[0] == pytest.approx(total - 0.5 * arcs + 2 * relations, rel=1e-4)


def test_sub_heads_are_labels_that_are_learnt(sentences: list[Parse]) -> None:
    vocabulary = joint(sentences).vocabulary
    assert (SUB_HEAD,) in vocabulary.label_ids
    flat = sentence([2, 0, 2], ["a", "root", "b"], "(S (A x) (B y) (C z))")
    assert (SUB_HEAD,) not in joint([flat]).vocabulary.label_ids
    deeper = sentence([3, 1, 0], ["a", "b", "root"], "(S (A x) (B y) (C z))")
    gold = joint([deeper]).gold(deeper)
    assert set(gold.spans.cells.tolist()) == {cell_index(0, 3, 3), cell_index(0, 2, 3)}


def test_what_cannot_be_learnt_is_said() -> None:
    both = sentence([2, 0], ["a", "root"], "(S (A x) (B y))")
    with pytest.raises(TreeError, match=r"learnt together, but the sentence has only dependencies"):
        joint([sentence([0], ["root"])])
    with pytest.raises(TreeError, match="the 1 training sentences have no dependencies"):
        biaffine([Parse.of(both.tree)])
    with pytest.raises(TreeError, match=r"no dependencies to learn \(the sentence begins: x y\)"):
        biaffine([both]).gold(Parse.of(both.tree))
    with pytest.raises(TreeError, match="relation other is not in the parser's vocabulary"):
        biaffine([both]).gold(sentence([2, 0], ["other", "root"]))
    reserved = Tree.build(["x"], ["A"], [(0, 1, SUB_HEAD)])
    with pytest.raises(TreeError, match="reserved"):
        joint([Parse.of(reserved, DependencyTree.build(["x"], ["A"], [0], ["root"]))])


def test_a_second_root_is_moved_and_learnt_with_its_relation() -> None:
    """Its relation was seen at roots alone before."""
    heads, relations = [0, 1, 0], ["root", "a", "root"]
    tree = parse_brackets("(S (A x) (B y) (C z))")
    two = DependencyTree.build(tree.words, tree.tags, heads, relations, roots="several")
    parser = joint([example := Parse.of(tree, two)])
    assert learn(parser, [example], 60)[-1] < 1
    (found,) = parser.parse([example.words])
    assert found.dependencies.heads.tolist() == [3, 1, 0]
    assert found.dependencies.relations == ("root", "a", "root")


# What is found -------------------------------------------------------------------------------


@pytest.mark.parametrize("changes", [{}, {"span_weight": 0.9}, {"structure": "division"}])
def test_constituents_and_dependencies_agree_whatever_the_scores(
    changes: dict[str, Any], sentences: list[Parse]
) -> None:
    parser = shaken(joint(sentences, **changes))
    checked = 0
    for parse in parser.parse(words_of(sentences)):
        assert parse.dependencies is not None
        assert SUB_HEAD not in parse.tree.labels
        found = head_driven(parse.tree, parse.dependencies)
        assert (found.heads == parse.dependencies.heads).all()
        checked += len(parse.tree.labels)
    assert checked > 3 * len(sentences)


def test_lambda_weighs_spans_against_arcs(sentences: list[Parse]) -> None:
    """With spans alone arcs do not change the trees, with arcs alone labels not the heads."""
    parser = shaken(joint(sentences))

    def parses(weight: float) -> list[Parse]:
        parser.config = parser.config.model_copy(update={"span_weight": weight})
        return list(parser.parse(words_of(sentences)))

    spans = parses(1.0)
    encoded = list(parser.encoded(words_of(sentences), None, 2000, None))
    arcs = parses(0.0)

    def score(found: Sequence[Parse]) -> float:
        total = 0.0
        for group in encoded:
            scored = ScoredDependencies([parser.dependencies], [group])
            low = 0
            for place in group.places:
                n = len(found[place])
                table = scored.arcs[low : low + n * (n + 1)].reshape(n, n + 1)
                heads = found[place].dependencies.heads
                total += table[np.arange(n), heads].sum()
                low += n * (n + 1)
        return float(total)

    assert score(arcs) > score(parses(0.5)) > score(spans)

    def heads(found: Sequence[Parse]) -> list[list[int]]:
        return [parse.dependencies.heads.tolist() for parse in found]

    with torch.no_grad():
        parser.scorer.second.weight.normal_()
    assert heads(parses(0.0)) == heads(arcs)
    both, spans = parses(0.5), parses(1.0)
    shaken(parser)
    assert [parse.tree for parse in parses(1.0)] == [parse.tree for parse in spans]
    assert heads(parses(0.0)) != heads(arcs)
    assert [parse.tree for parse in parses(0.5)] != [parse.tree for parse in both]


def test_relations_are_legal_for_their_arcs(sentences: list[Parse]) -> None:
    parser = shaken(biaffine(sentences))
    at_root = {each.dependencies.relations[each.dependencies.heads.tolist().index(0)]
               for each in sentences}  # fmt: skip
    for parse in parser.parse(words_of(sentences)):
        tree = parse.dependencies
        for head, relation in zip(tree.heads.tolist(), tree.relations, strict=True):
            assert (head == 0) == (relation in at_root)


def test_crossing_arcs_are_found_where_training_trees_have_some() -> None:
    crossing = sentence([3, 4, 0, 3], ["a", "a", "root", "a"])
    nested = sentence([2, 0, 2, 3], ["a", "root", "a", "a"])
    both, one = biaffine([crossing, nested]), biaffine([nested])
    assert (both.vocabulary.projective, one.vocabulary.projective) == (False, True)
    learn(both, [crossing, nested], 100)
    found = next(iter(both.parse([crossing.words])))
    assert found.dependencies.heads.tolist() == [3, 4, 0, 3]
    again = Vocabulary.from_json(both.vocabulary.to_json())
    assert again == both.vocabulary


def test_barred_labels_do_not_win_where_they_are_barred() -> None:
    lengths = np.array([1, 3, 2], dtype=np.int32)
    sentence, start, end = cell_spans(lengths)
    scores = torch.randn(len(start), 3, generator=torch.Generator().manual_seed(0))
    scores[:, 1] += 10

    def blocks() -> Iterator[torch.Tensor]:
        for low, high in pairwise((0, 2, 5, len(start))):
            yield scores[low:high].clone()

    def best(of_words: list[int], of_sentences: list[int]) -> list[bool]:
        """Whether the second label is still the best of each cell."""
        found = torch.cat(list(barred(blocks(), lengths, of_words, of_sentences)))
        assert torch.isfinite(found).all()
        return (found.argmax(dim=1) == 1).tolist()

    width = end - start
    words, whole = width == 1, width == lengths[sentence]
    assert best([], []) == [True] * len(start)
    assert best([2], []) == (~words).tolist()
    assert best([], [2]) == (~whole).tolist()
    assert best([1, 2], [2, 3]) == (~words & ~whole).tolist()
    assert 0 < (~words & ~whole).sum() < len(start)


def test_an_ensemble_averages_the_scores_of_both_layers(sentences: list[Parse]) -> None:
    words = words_of(sentences)[:10]
    one, other = shaken(joint(sentences)), shaken(joint(sentences, seed=2))
    alone, of_other = list(one.parse(words)), list(other.parse(words))
    assert alone != of_other
    twice = combine([one, one])
    assert (twice.kind, list(twice.parse(words))) == ("joint", alone)
    mixed = list(combine([one, other]).parse(words))
    assert mixed not in (alone, of_other)
    # One that is sure of itself decides: ten times the scores, ten times the weight.
    with torch.no_grad():
        for linear in (other.scorer.second, *other.dependencies.scorer.children()):
            if (
                isinstance(linear, torch.nn.Linear)
                and linear is not other.dependencies.scorer.hidden
            ):
                linear.weight.mul_(1e4)
                linear.bias.mul_(1e4)
    assert list(combine([one, other]).parse(words)) == of_other
    few = joint([each for each in sentences if "root" in each.dependencies.relations][:3])
    with pytest.raises(EnsembleError):
        combine([one, few])


def with_relations_turned_around(parser: Any) -> Any:
    """The same parser with its relations in the opposite order."""
    vocabulary = parser.vocabulary
    relations = dict(reversed(vocabulary.relations.items()))
    other = type(parser)(parser.config, replace(vocabulary, relations=relations)).eval()
    state = parser.state_dict()
    for name, weight in state.items():
        if (
            ".scorer.relation" in name
        ):  # [relations ...] or, of the product, [relations * width ...]
            state[name] = weight.unflatten(0, (len(relations), -1)).flip(0).flatten(0, 1)
        elif name.endswith(".legal"):
            state[name] = weight.flip(1)
    other.load_state_dict(state)
    return other


@pytest.mark.parametrize("build", [joint, biaffine])
def test_the_order_of_relations_does_not_matter(build: Any, sentences: list[Parse]) -> None:
    words = words_of(sentences)[:10]
    one, other = shaken(build(sentences)), shaken(build(sentences, seed=2))
    turned = with_relations_turned_around(other)
    assert list(turned.parse(words)) == list(other.parse(words))
    mixed = list(combine([one, other]).parse(words))
    assert list(combine([one, turned]).parse(words)) == mixed
    assert list(combine([turned, one]).parse(words)) == mixed


def test_an_ensemble_of_biaffine_parsers_takes_the_mean_of_their_scores(
    sentences: list[Parse],
) -> None:
    words = words_of(sentences)[:10]
    members = [shaken(biaffine(sentences, seed=seed)) for seed in (1, 2)]
    alone = [list(member.parse(words)) for member in members]
    mixed = combine(members)
    assert (mixed.kind, list(combine(members[:1] * 3).parse(words))) == ("biaffine", alone[0])
    found = list(mixed.parse(words))
    assert found not in alone
    for sentence, parse in zip(words, found, strict=True):
        arcs = sum(arcs_of(member, sentence) for member in members)
        expected = decode_dependencies(arcs, [len(sentence)], projective=True)
        assert parse.dependencies.heads.tolist() == expected.heads.tolist()
    loose = members[1]
    loose.vocabulary = replace(loose.vocabulary, projective=False)
    with pytest.raises(EnsembleError, match="parser 1 has learnt projective trees only, parser 2"):
        combine(members)


def arcs_of(parser: Any, words: Sequence[str]) -> Any:
    """Scores of all arcs of a sentence, packed."""
    (encoded,) = parser.encoded([words], None, 2000, None)
    return ScoredDependencies([parser.dependencies], [encoded]).arcs
