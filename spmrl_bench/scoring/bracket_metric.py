"""Labelled brackets with evalb's conventions, as a metric."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from spmrl_bench.errors import ScoreError
from spmrl_bench.scoring.breakdown import break_down, tabulate_brackets
from spmrl_bench.scoring.corpus import score_trees
from spmrl_bench.scoring.counts import BracketCounts, Column
from spmrl_bench.scoring.golden import scorer_version
from spmrl_bench.scoring.metric import Metric, Part
from spmrl_bench.scoring.policy import PUBLISHED, Policy
from spmrl_bench.scoring.prm import Parameters, load_prm
from spmrl_bench.scoring.report import FIGURES, as_text
from spmrl_bench.scoring.signature import prm_signature, unusual
from spmrl_bench.scoring.significance import Ratio
from spmrl_bench.trees.parse import Parse
from spmrl_bench.trees.tree import Tree


class BracketRules(NamedTuple):
    """A parameter set, and what becomes of what it does not decide."""

    prm: Parameters
    policy: Policy = PUBLISHED


class Brackets(Metric[BracketCounts, BracketRules]):
    """Recall, precision and F1 of labelled brackets, as EVALB and EVALB_SPMRL count them."""

    name = "brackets"
    layers = ("constituents",)
    counts = BracketCounts
    figures = FIGURES
    headline = "f1"
    tabled = ("recall", "precision", "f1", "complete_match")
    breakdowns = ("length", "label", "span")

    def rules(self, options: Mapping[str, Any]) -> BracketRules:
        if "prm" not in options:
            raise ScoreError("brackets cannot be scored without a parameter set (prm)")
        return BracketRules(load_prm(options["prm"]))

    def count(
        self, gold: Sequence[Parse], test: Sequence[Parse], rules: BracketRules
    ) -> BracketCounts:
        one, other = _trees(gold, test)
        return score_trees(one, other, *rules)

    def ratios(self, counts: BracketCounts) -> list[Ratio]:
        matched, gold, test = map(counts.column, (Column.MATCHED, Column.GOLD, Column.TEST))
        return [
            Ratio.of("f1", 2 * matched, gold + test),
            Ratio.of("recall", matched, gold),
            Ratio.of("precision", matched, test),
        ]

    def counting(self, rules: BracketRules) -> dict[str, str | None]:
        policy = rules.policy
        return {
            "scorer": scorer_version(self.name),
            "match": "labelled" if rules.prm.labeled else "unlabelled",
            "prm": prm_signature(rules.prm),
            "punctuation": unusual(policy.punctuation, PUBLISHED.punctuation),
            "missing": unusual(policy.missing_parse, PUBLISHED.missing_parse),
        }

    def break_down(
        self,
        how: str,
        counts: BracketCounts,
        gold: Sequence[Parse],
        test: Sequence[Parse],
        rules: BracketRules,
    ) -> Sequence[Part]:
        if how not in self.breakdowns:
            return super().break_down(how, counts, gold, test, rules)
        one, other = _trees(gold, test)
        return break_down(how, counts, tabulate_brackets(one, other, *rules))

    def lengths(self, counts: BracketCounts) -> Sequence[int]:
        return counts.column(Column.LENGTH).tolist()

    def report(self, counts: BracketCounts, rules: BracketRules) -> str:
        return as_text(counts, rules.prm)


def _trees(*sides: Sequence[Parse]) -> list[list[Tree | None]]:
    return [[parse.tree for parse in side] for side in sides]


BRACKETS = Brackets()
