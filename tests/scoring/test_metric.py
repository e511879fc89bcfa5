"""Metrics and what selects: what holds of every metric, and what is read of a selection."""

from __future__ import annotations

import pytest

from spmrl_bench import __version__
from spmrl_bench.errors import ScoreError
from spmrl_bench.readers.brackets import parse_brackets
from spmrl_bench.scoring.attachment import ATTACHMENT, Attachment, AttachmentRules
from spmrl_bench.scoring.metric import METRICS, SelectionMetric, metric_named
from spmrl_bench.scoring.signature import sign
from spmrl_bench.trees import Tree
from spmrl_bench.trees.dependencies import DependencyTree
from spmrl_bench.trees.parse import Parse
from tests.builders import chained

RULES = {"brackets": {"prm": "spmrl"}, "attachment": {"punctuation": "unicode"}}


def with_mistakes(parse: Parse) -> Parse:
    """Another label of the first noun phrase; every word hangs from the first."""
    heads, n = [0, *[1] * (len(parse) - 1)], len(parse)
    arcs = DependencyTree.build(parse.words, parse.tags, heads, ["root", *["dep"] * (n - 1)])
    return Parse.of(parse_brackets(str(parse.tree).replace("(NP", "(X", 1)), arcs)


@pytest.mark.parametrize("name", METRICS.names())
def test_what_holds_of_every_metric(name: str) -> None:
    metric = metric_named(name)
    rules = metric.rules(RULES[name])
    gold = chained()
    test = list(map(with_mistakes, gold))
    counts = metric.count(gold, test, rules)
    values = metric.values(counts)
    assert metric.name == name
    assert 0 < values[metric.headline] < 100
    assert {metric.headline, *metric.tabled} <= metric.figures.keys()
    # The counts are all that is needed, and the ratios are the figures of their names.
    again = metric.counts.from_columns(counts.to_columns())
    assert metric.values(again) == values
    ratios = metric.ratios(counts)
    assert ratios[0].name == metric.headline
    assert {ratio.name: ratio.value for ratio in ratios} == {
        ratio.name: values[ratio.name] and pytest.approx(values[ratio.name]) for ratio in ratios
    }
    assert metric.lengths(counts) == [len(parse) for parse in gold]
    assert all(metric.title(figure) in metric.report(counts, rules) for figure in values)
    for how in metric.breakdowns:
        parts = metric.break_down(how, counts, gold, test, rules)
        assert {part.name: part.figures() for part in parts}["all"]["f1"] == values["f1"]
    with pytest.raises(ScoreError, match=f"metric {name} has no breakdown by the weather"):
        metric.break_down("the weather", counts, gold, test, rules)


def test_a_layer_that_is_not_there_is_no_mistake_of_the_parser() -> None:
    tree = Parse.of(Tree.build(["a"], ["N"], [(0, 1, "S")]))
    arcs = Parse.of(None, DependencyTree.build(["a"], ["N"], [0], ["root"]))
    with pytest.raises(ScoreError, match="test sentence 2: has no dependencies to score"):
        ATTACHMENT.count([arcs, arcs], [arcs, tree], AttachmentRules())


class WithKeysOfItsOwn(Attachment):
    """A metric that says more of how it counts."""

    name = "weighted"

    def counting(self, rules: AttachmentRules) -> dict[str, str | None]:
        return super().counting(rules) | {"weights": "idf", "alpha": "0.5", "beta": None}


def test_keys_of_a_metric_stand_behind_those_that_all_have() -> None:
    metric, rules = WithKeysOfItsOwn(), AttachmentRules()
    counts = metric.counts.from_rows([(1, 1, 1, 1) * 2])
    signature = sign(metric, counts, rules, treebank="t", seed="3", scorer="another")
    assert signature.long() == (
        "scorer:another|match:attachment|punctuation:none|relations:whole|roots:one"
        f"|weights:idf|alpha:0.5|treebank:t|sentences:1|skipped:0|seed:3|version:{__version__}"
    )
    assert "|root:one|weights:idf|alpha:0.5|tb:t|" in signature.short()


# What selects ------------------------------------------------------------------------------


def test_what_selects_is_read_and_written() -> None:
    for text, written, title, metrics in (
        ("brackets", "brackets.f1", "F1", ("brackets",)),
        ("attachment", "attachment.las", "LAS", ("attachment",)),
        (" brackets.recall ", "brackets.recall", "recall", ("brackets",)),
        (
            "attachment.uas + brackets+attachment.las",
            "attachment.uas + brackets.f1 + attachment.las",
            "UAS + F1 + LAS",
            ("attachment", "brackets"),
        ),
    ):
        select = SelectionMetric.parse(text)
        assert (str(select), select.title, select.metrics) == (written, title, metrics)
        assert SelectionMetric.parse(written) == select


def test_figures_are_summed() -> None:
    select = SelectionMetric.parse("brackets.f1 + attachment.las")
    figures = {"brackets": {"f1": 90.5, "recall": 1}, "attachment": {"las": 80, "uas": 2}}
    assert select.score(figures) == 170.5
    # What is not there counts nothing.
    assert select.score({"brackets": {"f1": None}, "attachment": {"las": 80}}) == 80
    assert select.score({"attachment": {"uas": 2}}) == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("bracket.f1", r"unknown metric 'bracket'. Did you mean brackets\?"),
        ("", "unknown metric ''"),
        ("brackets.f1 + ", "unknown metric ''"),
        ("brackets.las", r"'brackets.las': metric brackets has no figure 'las'; it has sentences,"),
        ("attachment.las.x", r"metric attachment has no figure 'las.x'; it has sentences, words"),
    ],
)
def test_what_cannot_select(text: str, message: str) -> None:
    with pytest.raises(ScoreError, match=message):
        SelectionMetric.parse(text)
