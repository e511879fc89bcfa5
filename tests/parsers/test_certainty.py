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
from unittest.mock import Mock

import numpy as np
import pytest
import torch

from spmrl_bench.chart.span_trees import span_marginals
from spmrl_bench.errors import CheckpointError, TreeError, UnsupportedError
from spmrl_bench.parsers import joint
from spmrl_bench.parsers.biaffine import DependencyScores
from spmrl_bench.parsers.calibration import Decisions, decisions_of, fit_temperature
from spmrl_bench.parsers.chart import masked_scores
from spmrl_bench.parsers.ensemble import Ensemble
from spmrl_bench.parsers.saved import TEMPERATURE
from spmrl_bench.parsing.models import load_parser
from spmrl_bench.trees.given import Given
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


#: Constituents, as (start, end, label), and arcs, as (word, head).
Parts = frozenset[tuple[Any, ...]]


def every(parser: Any) -> list[tuple[Parts, float]]:
    """All parses of the three words, with their weights at the temperature."""
    kind, labels, temperature = parser.kind, parser.vocabulary.labels, parser.temperature
    (encoded,) = parser.encoded([SHORT])
    of_labels, of_arcs, weight = np.zeros((6, 1)), np.zeros(12), 0.5
    with torch.no_grad():
        if kind != "biaffine":
            blocks = parser.scorer.label_scores(encoded)
            if kind == "joint":
                blocks = masked_scores(blocks, np.array([3]), parser.masked)
                weight = parser.config.span_weight
            of_labels = torch.cat([*blocks]).double().numpy() / temperature
    if kind != "chart":
        of_arcs = DependencyScores([parser.dependencies], [encoded]).arcs / temperature
    if kind == "joint":
        of_labels, of_arcs = weight * of_labels, (1 - weight) * of_arcs / joint.ARC_TEMPERATURE
    shapes: list[tuple[Any, Any]]
    if kind == "chart":
        shapes = [([*np.flatnonzero(row)], ()) for row in span_trees(3)]
    elif kind == "joint":
        shapes = [([spans(3).index(one) for one in nodes], arcs) for nodes, arcs in structures(3)]
    else:
        name = "projective_trees" if parser.vocabulary.projective else "trees"
        shapes = [((), [*enumerate(tree)]) for tree in getattr(dependency_oracles, name)(3)]
    found = []
    for cells, arcs in shapes:
        of_heads = sum(of_arcs.reshape(3, 4)[word, head] for word, head in arcs)
        own = {(word + 1, head) for word, head in arcs}
        for row in product(range(1, len(labels)), repeat=len(cells)):
            at = [*zip(cells, row, strict=True)]
            total = of_heads + sum(of_labels[cell, label - 1] for cell, label in at)
            names = {
                (*spans(3)[cell], name)
                for cell, label in at
                if SUB_HEAD not in labels[label]
                for name in labels[label]
            }
            found.append((frozenset(names | own), math.exp(total)))
    return found


def parts_of(parse: Parse) -> Parts:
    heads = () if parse.dependencies is None else enumerate(parse.dependencies.heads.tolist(), 1)
    return frozenset({*(() if parse.tree is None else parse.tree.constituents()), *heads})


@pytest.fixture(params=["chart", "joint", "biaffine", "crossing"])
def parser(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    """An untrained parser, at several temperatures, at which the best parse is the most likely."""
    monkeypatch.setattr(joint, "ARC_TEMPERATURE", 1.0)
    name, temperatures = request.param, {"chart": 0.5, "joint": 3.0}
    made = enlarge(tiny("biaffine" if name == "crossing" else name))
    object.__setattr__(made.vocabulary, "projective", name != "crossing")
    made.temperature = temperatures.get(name, 2.0)
    return made


def test_parts_have_their_share_of_all_parses(parser: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joint, "ARC_TEMPERATURE", 1.25)
    parses = every(parser)
    total = sum(weight for _, weight in parses)
    shares: dict[Any, float] = defaultdict(float)
    for parts, weight in parses:
        for part in parts:
            shares[part] += weight / total
    parse = scored(parser, SHORT)
    known = parse.probabilities
    assert known is not None
    found = {**(known.constituents or {}), **(known.arcs or {})}
    for part in shares.keys() | found.keys():
        least = LEAST["constituents" if len(part) == 3 else "dependencies"]
        assert found.get(part, 0.0) == pytest.approx(shares[part], abs=least)
        if len(part) == 3 and known.constituents:
            assert parse.probability(*part) == found.get(part, 0.0)
    best = max(weight for _, weight in parses)
    assert known.log_tree == pytest.approx(math.log(best / total), abs=1e-4)
    of_arcs: dict[Any, float] = defaultdict(float)
    for (word, head, _), share in (known.relations or {}).items():
        of_arcs[word, head] += share
    assert of_arcs == pytest.approx(known.arcs or {}, abs=1e-4)
    likely: dict[Parts, float] = {}
    for parts, weight in parses:
        likely[parts] = max(weight, likely.get(parts, 0.0))
    (several,) = parser.parse([SHORT], best=9, scored=True)
    for _, one in several.best:
        expected = math.log(likely[parts_of(one)] / total)
        assert one.probabilities.log_tree == pytest.approx(expected, abs=1e-4)


def test_the_parse_is_the_best_that_holds_what_is_given(parser: Any) -> None:
    parses = every(parser)
    random = np.random.default_rng(2)
    for _ in range(12):
        parts, _ = parses[random.integers(len(parses))]
        some = [part for part in sorted(parts, key=str) if random.random() < 0.5]
        brackets = [part for part in some if len(part) == 3]
        named = [(*part[:2], part[2] if random.random() < 0.7 else None) for part in brackets]
        none = [(*span, None) for span in ((0, 2), (1, 3)) if all(p[:2] != span for p in parts)]
        none += [one for one in ((0, 3, "VP"), (0, 2, "NP"), (1, 2, "X")) if one not in parts]
        given = Given(
            named,
            [one for one in none if random.random() < 0.5] if parser.kind != "biaffine" else (),
            [(*part, None) for part in some if len(part) == 2],
        )

        def holds(parts: Parts, given: Given = given) -> bool:
            found = parts | {(*part[:2], None) for part in parts if len(part) == 3}
            return (
                {*given.constituents} <= found
                and not found & {*given.not_constituents}
                and all((word, head) in parts for word, head, _ in given.arcs)
            )

        left = [(own, weight) for own, weight in parses if holds(own)]
        (parse,) = parser.parse([SHORT], given=[given], scored=True)
        best = max(left, key=lambda pair: pair[1])
        assert parts_of(parse) == best[0]
        expected = math.log(best[1] / sum(weight for _, weight in left))
        assert parse.probabilities.log_tree == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("share", [1.0, 0.75, 0.1])
def test_the_loss_is_how_unlikely_gold_is(share: float) -> None:
    parser = enlarge(tiny("chart", TREES[:2]))
    learnt = {"loss": "likelihood"} if share == 1 else {"annotated": share}
    parser.config = parser.config.model_copy(update=learnt)
    (encoded,) = parser.encoded([SHORT])
    for rows in ([(0, 3, "S")], [(0, 3, "S"), (0, 2, "NP")], [(0, 3, "S"), (2, 3, "VP")]):
        parts = frozenset(rows)

        def unlikely(parts: Parts = parts) -> float:
            parses = every(parser)
            of_gold = (p * (1 - share) ** len(tree - parts) for tree, p in parses if parts <= tree)
            return math.log(sum(weight for _, weight in parses) / sum(of_gold))

        gold = [parser.gold(Parse.of(Tree.build(SHORT, SHORT, rows)))]
        value = parser.loss(encoded.tokens, encoded.batch, gold)
        assert value.item() == pytest.approx(unlikely(), abs=1e-4)
        parser.zero_grad()
        value.backward()
        bias = parser.scorer.second.bias
        at = int(bias.grad.abs().argmax())
        with torch.no_grad():
            bias[at] += 0.01
            above = unlikely()
            bias[at] -= 0.02
            slope = (above - unlikely()) / 0.02
            bias[at] += 0.01
        assert bias.grad[at].item() == pytest.approx(slope, rel=1e-2)


def test_the_best_parses_come_in_their_order(parser: Any) -> None:
    parses = every(parser)
    total = sum(weight for _, weight in parses)
    part = next(part for part in sorted(min(parses, key=lambda own: own[1])[0]) if part[0] == 1)
    given = Given([part]) if len(part) == 3 else Given(arcs=[(*part, None)])
    for one, one_parser in product((None, given), (parser, Ensemble([parser, parser]))):
        (parse,) = one_parser.parse([SHORT], best=5, given=[one], scored=True)
        left = [own for own in parses if one is None or part in own[0]]
        left.sort(key=lambda own: -own[1])
        assert [parts_of(own) for _, own in parse.best] == [own for own, _ in left[:5]]
        assert parse.best[0][1].tree == parse.tree
        assert parse.best[0][1].dependencies == parse.dependencies
        of_all = total if one is None else sum(weight for _, weight in left)
        for (score, own), (_, weight) in zip(parse.best, left, strict=False):
            assert score == pytest.approx(math.log(weight) * parser.temperature, abs=1e-4)
            assert own.probabilities.log_tree == pytest.approx(math.log(weight / of_all), abs=1e-4)
    (parse,) = parser.parse([SHORT], best=300)
    assert len(parse.best) == min(300, len(parses))
    (parse,) = parser.parse([[]], best=5)
    assert parse.best == ()


def test_the_best_of_a_beam_are_other_trees() -> None:
    parser = enlarge(tiny("transition"))
    (parse,) = parser.parse([SHORT], best=4)
    assert parse.best[0][1].dependencies == parse.dependencies
    scores = [score for score, _ in parse.best]
    assert scores == sorted(scores, reverse=True)
    trees = {str(own) for _, own in parse.best}
    assert len(trees) == len(scores) == 4


def test_what_no_parse_holds_is_said() -> None:
    sentences, nothing = [SHORT, SHORT], None
    for kind, given, message in (
        ("chart", Given([(0, 2, "XP")]), r"no .* holds constituent \[0, 2, XP\].*begins: the dog"),
        ("chart", Given([(0, 4, None)]), r"^\[0, 4\] is no span of 3 words"),
        ("chart", Given((), (), [(1, 2, None)]), r"no .* holds arc \[1, 2, None\]"),
        ("biaffine", Given([(0, 2, None)]), r"no .* holds constituent \[0, 2, any\]"),
        ("biaffine", Given((), [(0, 2, None)]), r"no .* holds no constituent \[0, 2, any\]"),
        ("biaffine", Given((), (), [(1, 3, "zz")]), r"no .* holds arc \[1, 3, zz\]"),
        ("biaffine", Given((), (), [(1, 2, None), (2, 1, None)]), "words 1, 2 make a circle"),
    ):
        with pytest.raises(TreeError, match=message):
            list(tiny(kind).parse(sentences, given=[nothing, given]))
    crossing = Given(arcs=[(1, 3, None), (2, 0, None)])  # of which a projective tree has one
    for best in (1, 3):
        parses = enlarge(tiny("biaffine")).parse(sentences, given=[nothing, crossing], best=best)
        with pytest.raises(TreeError, match=r"no parse of this parser holds arc \[[12], "):
            list(parses)
    for parser in (tiny("transition"), tiny("right-branching"), Ensemble([tiny("transition")] * 2)):
        with pytest.raises(UnsupportedError, match=r"holds nothing .* chart or biaffine or joint"):
            list(parser.parse(sentences, given=[nothing, Given([(0, 2, None)])]))


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
    of_first = (share for (word, *_), share in known.relations.items() if word == 1)
    assert sum(of_first) == pytest.approx(1)


def test_the_heads_of_division_spans_have_none() -> None:
    known = scored(enlarge(tiny("joint", structure="division")), SHORT).probabilities
    assert known is not None
    assert known.arcs is None
    assert known.constituents
    assert not any("<" in name for *_, name in known.constituents)


def test_the_best_division_spans_are_other_parses() -> None:
    parser = enlarge(tiny("joint", structure="division"))
    (plain,), (parse,) = parser.parse([SHORT]), parser.parse([SHORT], best=8)
    first = parse.best[0][1]
    assert (first.tree, first.dependencies) == (plain.tree, plain.dependencies)
    assert len({parts_of(one) for _, one in parse.best}) == len(parse.best) == 8


def test_no_more_parses_are_listed_than_hold_what_is_given() -> None:
    """Of 18 words too many parses hold less for them all to be looked at."""
    parser, words = enlarge(tiny("joint")), SHORT * 6
    (plain,) = parser.parse([words])
    wanted = {*plain.tree.constituents()}
    names = {name for label in parser.vocabulary.labels for name in label if name != SUB_HEAD}
    others = {(*span, name) for span in spans(len(words)) for name in names} - wanted
    arcs = [(*pair, None) for pair in enumerate(plain.dependencies.heads.tolist(), 1)]
    (parse,) = parser.parse([words], best=30, given=[Given([*wanted], [*others], arcs)])
    assert [parts_of(one) for _, one in parse.best] == [parts_of(plain)]


def test_a_long_sentence_has_one_parse(monkeypatch: pytest.MonkeyPatch) -> None:
    parser = enlarge(tiny("joint"))
    monkeypatch.setattr(joint, "LONGEST", 2)
    (plain,), (parse,) = parser.parse([SHORT]), parser.parse([SHORT], best=8)
    assert [parts_of(own) for _, own in parse.best] == [parts_of(plain)]


def test_a_parser_that_tags_says_how_sure_it_is_of_tags() -> None:
    parser = enlarge(tiny("chart", tagger=True))
    probabilities = scored(parser, SHORT).probabilities
    assert probabilities is not None
    assert probabilities.tags is not None
    least = 1 / len(parser.vocabulary.tags)
    assert all(least <= one <= 1 for one in probabilities.tags)


def test_what_tells_no_probabilities() -> None:
    with pytest.raises(UnsupportedError, match="has no probabilities"):
        tiny("right-branching").session_for(True, 1)
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
    values = (f'{{"temperature": {value}}}' for value in ("0", "NaN", '"a"'))
    for bad in ("{", "[]", "{}", *values):
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

        def session_for(self, scored: bool, best: int) -> Any:
            return self

        def decoded(self, windows: Any) -> Any:
            for row in logits:
                sure = 1 / (1 + np.exp(-row / self.temperature))
                keys = [(0, k + 2, "A") for k in range(len(row))]
                tree = Tree.build(words, words, keys[::-1])
                known = Probabilities(0.0, dict(zip(keys, sure.tolist(), strict=True)))
                yield Parse(tuple(words), tuple(words), tree, None, known)

    parser: Any = Drawn(temperature=1.0, eval=lambda: None, encoded=Mock(return_value=[]))
    fit_temperature(parser, gold)
    parser.encoded.assert_called_once()  # whatever the number of temperatures
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
    on_test = works(*looking, "--split", "test", "--output", "sure.svg").stdout
    assert "on test: expected" in on_test
    figure = Path("sure.svg").read_text(encoding="utf-8")
    assert f">fitted, {fitted:.2f}: error {float(on_test.split()[-1]):.3f}<" in figure
    assert ">temperature 1: error " in figure
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
    assert "has no probabilities" in refused("model", "calibrate", *mistaken)
