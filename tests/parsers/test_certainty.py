"""How likely parsers find parts of a parse and the whole, and whether they are right in that."""

from __future__ import annotations

import json
import math
import re
from collections import defaultdict
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from spmrl_bench.chart.span_marginals import span_marginals
from spmrl_bench.errors import CheckpointError, TreeError, UnsupportedError
from spmrl_bench.parsers.biaffine import DependencyScores
from spmrl_bench.parsers.calibration import Decisions, decisions_of, fit_temperature
from spmrl_bench.parsers.chart import masked_scores
from spmrl_bench.parsers.ensemble import Ensemble
from spmrl_bench.parsers.saved import TEMPERATURE
from spmrl_bench.parsing.models import load_parser
from spmrl_bench.trees.head_driven import SUB_HEAD
from spmrl_bench.trees.parse import LEAST, Parse, Probabilities
from spmrl_bench.trees.tree import Tree, collapsed_spans
from tests.builders import TREES, chained, enlarge, of_layers, refused, tiny, words_of, works
from tests.chart import dependency_oracles
from tests.chart.enumeration import spans
from tests.chart.test_marginals import span_trees, structures
from tests.laboratory import Laboratory

SENTENCES = [list(words) for words in words_of(chained())]
SHORT = ["the", "dog", "sees"]


def scored(parser: Any, words: list[str]) -> Parse:
    (parse,) = parser.parse([words], scored=True)
    return parse


@pytest.mark.parametrize("kind", ["chart", "joint", "biaffine", "transition"])
def test_parses_are_the_same_with_and_without_probabilities(kind: str) -> None:
    parser = enlarge(tiny(kind))
    for words, plain in zip(SENTENCES, parser.parse(SENTENCES), strict=True):
        parse = scored(parser, words)
        assert parse.probabilities is not None
        assert (parse.tree, parse.dependencies) == (plain.tree, plain.dependencies)
        assert plain.probabilities is None
        assert parse.probabilities.log_tree <= 0
    (empty,) = parser.parse([[]], scored=True)
    assert empty.probabilities is None


@pytest.mark.parametrize("temperature", [0.5, 1.0, 3.0])
def test_constituents_have_their_share_of_all_labelled_trees(temperature: float) -> None:
    parser = enlarge(tiny("chart"))
    parser.temperature = temperature
    (encoded,) = parser.encoded([SHORT])
    with torch.no_grad():
        scores = torch.cat([*parser.scorer.label_scores(encoded)]).double() / temperature
    labels = parser.vocabulary.labels
    shares: dict[Any, float] = defaultdict(float)
    trees = dict[frozenset[Any], float]()
    for row in span_trees(3):
        cells = np.flatnonzero(row).tolist()
        for chosen in product(range(1, len(labels)), repeat=len(cells)):
            total = sum(
                scores[cell, label - 1].item() for cell, label in zip(cells, chosen, strict=True)
            )
            nodes = frozenset(
                (*spans(3)[cell], labels[label]) for cell, label in zip(cells, chosen, strict=True)
            )
            trees[nodes] = math.exp(total)
    everything = sum(trees.values())
    for nodes, weight in trees.items():
        for key in {(i, j, name) for i, j, chain in nodes for name in chain}:
            shares[key] += weight / everything
    parse = scored(parser, SHORT)
    assert parse.probabilities is not None
    known, least = parse.probabilities.constituents, LEAST["constituents"]
    assert known is not None
    for key in shares.keys() | known.keys():
        assert parse.probability(*key) == pytest.approx(shares[key], abs=least)
    assert min(known.values()) >= least
    best = max(trees.values()) / everything
    assert parse.probabilities.log_tree == pytest.approx(math.log(best), abs=1e-4)


@pytest.mark.parametrize("threshold", [0.05, 0.3, 0.6])
def test_the_tree_of_least_risk_is_that_of_all_trees(threshold: float) -> None:
    """Of all sets of labelled spans that are trees, by the probabilities of single chains."""
    parser = enlarge(tiny("chart", TREES[:2]))
    parser.temperature = 4.0
    (encoded,) = parser.encoded([SHORT])
    with torch.no_grad():
        scores = torch.cat([*parser.scorer.label_scores(encoded)]).double().numpy() / 4.0
    weights = np.logaddexp.reduce(scores, axis=1)
    shares = span_marginals(weights, [3]).probabilities
    gains = np.exp(scores.max(axis=1) - weights) * shares - threshold
    values = span_trees(3) @ gains
    best = span_trees(3)[values.argmax()]
    expected = {(*spans(3)[cell], parser.vocabulary.labels[1 + scores[cell].argmax()])
                for cell in np.flatnonzero(best)}  # fmt: skip
    parser.config = parser.config.model_copy(update={"threshold": threshold})
    (parse,) = parser.parse([SHORT])
    assert {(i, j, label) for i, j, label in collapsed_spans(parse.tree)} == expected
    assert scored(parser, SHORT).tree == parse.tree


@pytest.mark.parametrize("crossing", [False, True])
def test_arcs_have_their_share_of_all_trees(crossing: bool) -> None:
    parser = enlarge(tiny("biaffine"))
    object.__setattr__(parser.vocabulary, "projective", not crossing)
    parser.temperature = 2.0
    (encoded,) = parser.encoded([SHORT])
    arcs = DependencyScores([parser.dependencies], [encoded]).arcs.reshape(3, 4) / 2
    every = dependency_oracles.trees(3) if crossing else dependency_oracles.projective_trees(3)
    weights = [math.exp(sum(arcs[k, head] for k, head in enumerate(tree))) for tree in every]
    parse = scored(parser, SHORT)
    assert parse.probabilities is not None
    assert parse.probabilities.arcs is not None
    for word, head in product(range(1, 4), range(4)):
        with_arc = sum(w for tree, w in zip(every, weights, strict=True) if tree[word - 1] == head)
        found = parse.probabilities.arcs.get((word, head), 0.0)
        assert found == pytest.approx(with_arc / sum(weights), abs=LEAST["dependencies"])
    best = math.log(max(weights) / sum(weights))
    assert parse.probabilities.log_tree == pytest.approx(best, abs=1e-6)
    of_arcs: dict[Any, float] = defaultdict(float)
    for (word, head, _), share in (parse.probabilities.relations or {}).items():
        of_arcs[word, head] += share
    assert of_arcs == pytest.approx(parse.probabilities.arcs, abs=1e-4)
    assert parse.dependencies is not None
    heads = zip(range(1, 4), parse.dependencies.heads.tolist(), strict=True)
    best_of = {arc: [] for arc in heads}  # type: dict[Any, list[Any]]
    for (word, head, name), share in (parse.probabilities.relations or {}).items():
        best_of.setdefault((word, head), []).append((share, name))
    for (word, head), name in zip(heads, parse.dependencies.relations, strict=False):
        assert max(best_of[word, head])[1] == name


def test_joint_structures_have_their_share_of_all() -> None:
    parser = enlarge(tiny("joint"))
    parser.temperature = 3.0
    weight = parser.config.span_weight
    (encoded,) = parser.encoded([SHORT])
    with torch.no_grad():
        blocks = masked_scores(parser.scorer.label_scores(encoded), np.array([3]), parser.masked)
        scores = torch.cat([*blocks]).double().numpy() * weight / 3
    arcs = DependencyScores([parser.dependencies], [encoded]).arcs * ((1 - weight) / 3)
    table, labels = arcs.reshape(3, 4), parser.vocabulary.labels
    shares: dict[Any, float] = defaultdict(float)
    totals = []
    for nodes, pairs in structures(3):
        chosen = [spans(3).index(node) for node in nodes]
        of_heads = sum(table[word, head] for word, head in pairs)
        for row in product(range(1, len(labels)), repeat=len(chosen)):
            at = [*zip(chosen, row, strict=True)]
            total = math.exp(of_heads + sum(scores[cell, label - 1] for cell, label in at))
            totals.append(total)
            names = {
                (*spans(3)[cell], name)
                for cell, label in at
                if SUB_HEAD not in labels[label]
                for name in labels[label]
            }
            for key in {*names, *((word + 1, head) for word, head in pairs)}:
                shares[key] += total
    known = scored(parser, SHORT).probabilities
    assert known is not None
    assert known.constituents is not None
    assert known.arcs is not None
    found = {**known.constituents, **known.arcs}
    for key in shares.keys() | found.keys():
        least = LEAST["constituents" if len(key) == 3 else "dependencies"]
        assert found.get(key, 0.0) == pytest.approx(shares[key] / sum(totals), abs=least)
    assert known.log_tree == pytest.approx(math.log(max(totals) / sum(totals)), abs=1e-4)


def test_what_the_beam_has_kept_is_the_distribution_of_actions() -> None:
    """With room for all sequences, their sums are those of trees."""
    parser = enlarge(tiny("transition"))
    parser.config = parser.config.model_copy(update={"beam": 1000})
    (encoded,) = parser.encoded([SHORT[:2]])
    (beam,) = parser.hypotheses([encoded], [parser], 1000)
    assert sum(math.exp(each.score) for each in beam) == pytest.approx(1)
    known = scored(parser, SHORT[:2]).probabilities
    assert known is not None
    with_arc = [math.exp(each.score) for each in beam if each.heads[0] == 2]
    assert known.arcs is not None
    assert known.arcs[1, 2] == pytest.approx(sum(with_arc))
    assert known.arcs[1, 2] + known.arcs[1, 0] == pytest.approx(1)
    assert known.relations is not None
    assert sum(share for (word, *_), share in known.relations.items() if word == 1) == (
        pytest.approx(1)
    )


def test_the_heads_of_division_spans_have_none() -> None:
    known = scored(enlarge(tiny("joint", structure="division")), SHORT).probabilities
    assert known is not None
    assert known.arcs is None
    assert known.constituents
    assert not any("<" in name for *_, name in known.constituents)


def test_an_ensemble_of_one_parser_is_as_sure_as_it_is() -> None:
    for kind in ("chart", "joint", "biaffine", "transition"):
        parser = enlarge(tiny(kind))
        alone, twice = scored(parser, SHORT), scored(Ensemble([parser, parser]), SHORT)
        assert alone.probabilities is not None
        assert twice.probabilities is not None
        assert twice.probabilities.log_tree == pytest.approx(alone.probabilities.log_tree)


def test_a_parser_that_tags_says_how_sure_it_is_of_tags() -> None:
    parser = enlarge(tiny("chart", tagger=True))
    probabilities = scored(parser, SHORT).probabilities
    assert probabilities is not None
    assert probabilities.tags is not None
    least = 1 / len(parser.vocabulary.tags)
    assert all(least <= one <= 1 for one in probabilities.tags)


def test_what_tells_no_probabilities() -> None:
    with pytest.raises(UnsupportedError, match="has no scored session"):
        tiny("right-branching").scored_session()
    with pytest.raises(TreeError, match="scored=True"):
        Parse.of(TREES[0]).probability(0, 1, "S")


def test_the_temperature_is_kept_beside_a_parser(tmp_path: Path) -> None:
    parser = tiny("chart")
    parser.save(tmp_path)
    assert not (tmp_path / TEMPERATURE).exists()
    parser.temperature = 0.75
    (tmp_path / "again").mkdir()
    parser.save(tmp_path / "again")
    names = {path.name for path in (tmp_path / "again").iterdir()}
    assert names == {TEMPERATURE, "parser.json", "weights.safetensors"}
    assert load_parser(tmp_path / "again", "cpu").temperature == 0.75
    for bad in (
        "{",
        "[]",
        '{"temperature": 0}',
        '{"temperature": NaN}',
        '{"temperature": "a"}',
        "{}",
    ):
        (tmp_path / TEMPERATURE).write_text(bad)
        with pytest.raises(CheckpointError, match=TEMPERATURE):
            load_parser(tmp_path, "cpu")


# Calibration -------------------------------------------------------------------------------


def test_the_error_is_the_mean_distance_of_bins() -> None:
    probabilities = np.array([0.05, 0.05, 0.55, 0.58, 0.95, 1.0])
    right = np.array([False, True, True, True, True, False])
    decisions = Decisions(probabilities, right)
    assert [each.decisions for each in decisions.bins] == [2, 2, 2]
    expected = (2 * (0.5 - 0.05) + 2 * (1 - 0.565) + 2 * (0.975 - 0.5)) / 6
    assert decisions.error == pytest.approx(expected)
    assert Decisions(np.array([]), np.array([], dtype=bool)).error == 0


def test_decisions_are_compared_with_gold() -> None:
    parser = enlarge(tiny("chart"))
    gold = of_layers(chained(), ["constituents"])
    found = decisions_of(parser, gold)
    parses = list(parser.parse([one.words for one in gold]))
    hits = [
        set(p.tree.constituents()) & set(g.tree.constituents())
        for p, g in zip(parses, gold, strict=True)
    ]
    assert found.right.sum() == sum(map(len, hits))
    assert len(found.right) == sum(len(set(p.tree.constituents())) for p in parses)


@pytest.mark.parametrize("true", [0.5, 1.0, 2.5])
def test_the_temperature_is_that_of_the_decisions(true: float) -> None:
    """Logits are drawn, and decisions are right as often as logits at a temperature say."""
    random = np.random.default_rng(4)
    words = ["w"] * 40
    gold, logits = [], []
    for _ in range(150):
        row = random.normal(1.5, 2.0, size=len(words) - 1)
        right = random.random(len(row)) < 1 / (1 + np.exp(-row / true))
        spans_of = [(0, k + 2, "A" if one else "B") for k, one in enumerate(right)]
        gold.append(Parse.of(Tree.build(words, words, spans_of[::-1])))
        logits.append(row)

    class Drawn(SimpleNamespace):
        reads_tags = False

        def scored_session(self) -> Any:
            return self

        def parse(self, sentences: Any, tags: Any) -> Any:
            for row, _ in zip(logits, sentences, strict=False):
                sure = 1 / (1 + np.exp(-row / self.temperature))
                keys = [(0, k + 2, "A") for k in range(len(row))]
                tree = Tree.build(words, words, keys[::-1])
                known = Probabilities(0.0, dict(zip(keys, sure.tolist(), strict=True)))
                yield Parse(tuple(words), tuple(words), tree, None, known)

    parser: Any = Drawn(temperature=1.0)
    fit_temperature(parser, gold)
    assert parser.temperature == pytest.approx(true, rel=0.12)
    assert decisions_of(parser, gold).error < 0.02


def test_a_training_ends_with_a_temperature_and_the_command_shows_what_it_is_worth(
    laboratory: Laboratory,
) -> None:
    works("train", str(laboratory.recipe), "--variant", "charlstm", "--set", "train.max_epochs=3")
    (best,) = Path("runs").glob("tiny-open/*/best")
    fitted = load_parser(best, "cpu").temperature
    assert fitted != 1
    looking = ("model", "calibrate", "--model", str(best.parent), "--treebank", "tiny-open")
    shown = works(*looking).stdout
    assert re.search(rf"Temperature {fitted:g}, \d+ decisions on dev: expected cal", shown)
    assert "on test: expected" in works(*looking, "--split", "test").stdout
    # A parser of before has none, and its parses stay as they were when it gets one.
    plain = list(load_parser(best, "cpu").parse([SHORT]))
    (best / TEMPERATURE).unlink()
    assert "Temperature 1, " in works(*looking).stdout
    assert f"Temperature {fitted:g}, " in works(*looking, "--fit").stdout
    again = load_parser(best, "cpu")
    assert (again.temperature, list(again.parse([SHORT]))) == (fitted, plain)
    scores = ("parse", "--model", str(best), "--scores", "tokens.txt")
    Path("tokens.txt").write_text("the dog\n")
    assert "no room for probabilities" in refused(*scores)
    line = json.loads(works(*scores, "--output", "json").stdout)
    assert len(line["constituent_probabilities"]) == len(line["constituents"])
    tiny("right-branching").save(best.parent.parent)
    mistaken = ("--model", str(best.parent.parent), "--treebank", "tiny-open")
    assert "has no scored session" in refused("model", "calibrate", *mistaken)
