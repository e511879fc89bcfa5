"""Labelled brackets with evalb's conventions, as a metric: its figures, report and breakdowns.

A program that leaves out the sentences it cannot compare and prints the F1 of the rest rewards a
parser for failing. Both forms of the report, text and JSON, say how many sentences were left
out, why, and which.

One F1 also hides that a parser fails on long sentences or never finds a rare label. The rows of
a breakdown are sums over the brackets that :func:`~spmrl_bench.scoring.evalb.count_brackets`
compares, so that they add up to the score.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from spmrl_bench.errors import ScoreError
from spmrl_bench.scoring.counts import BracketCounts, Column, Status
from spmrl_bench.scoring.evalb import Bracket, compared_brackets
from spmrl_bench.scoring.metric import BreakdownRow, Figure, Metric, check_options, figure_lines
from spmrl_bench.scoring.prm import PUBLISHED, Parameters, Policy, load_prm
from spmrl_bench.scoring.significance import Ratio
from spmrl_bench.scoring.texts import score_trees
from spmrl_bench.trees.parse import Parse

_LISTED = 10  # sentences that are named
_REASONS = {
    Status.LENGTH_UNMATCH: "different number of words",
    Status.WORDS_UNMATCH: "different words",
    Status.NO_WORDS: "no parse, or no words to score",
}

#: Share of the sentences that a score may leave out without anybody having allowed it.
MOST_LEFT_OUT = 0.05

#: Upper bounds of the classes of length, in words; what is longer is a class of its own.
SENTENCE_LENGTHS = (10, 20, 30, 40, 50)
SPAN_LENGTHS = (1, 2, 3, 4, 5, 10, 20, 40)


class BracketRules(NamedTuple):
    """A parameter set, and what becomes of what it does not decide."""

    prm: Parameters
    policy: Policy = PUBLISHED


class Brackets(Metric[BracketCounts, BracketRules]):
    """Recall, precision and F1 of labelled brackets, as EVALB and EVALB_SPMRL count them."""

    name = "brackets"
    layers = ("constituents",)
    counts = BracketCounts
    figures: Mapping[str, Figure] = {
        "sentences": Figure("sentences", len),
        "scored": Figure("scored", attrgetter("valid")),
        "skipped": Figure("left out", attrgetter("skipped")),
        "recall": Figure("recall", attrgetter("recall")),
        "precision": Figure("precision", attrgetter("precision")),
        "f1": Figure("F1", attrgetter("f1")),
        "complete_match": Figure("complete match", attrgetter("complete_match")),
        "average_crossing": Figure("average crossing", attrgetter("average_crossing")),
        "no_crossing": Figure("no crossing", attrgetter("no_crossing")),
        "two_or_less_crossing": Figure("2 or less crossing", attrgetter("two_or_less_crossing")),
        "tagging_accuracy": Figure("tagging accuracy", attrgetter("tagging_accuracy")),
    }
    headline = "f1"
    tabled = ("recall", "precision", "f1", "complete_match")
    breakdowns = ("length", "label", "span")

    def rules(self, options: Mapping[str, Any]) -> BracketRules:
        check_options(self.name, options, ["prm"])
        if "prm" not in options:
            raise ScoreError("brackets cannot be scored without a parameter set (prm)")
        return BracketRules(load_prm(options["prm"]))

    def count(
        self, gold: Sequence[Parse], test: Sequence[Parse], rules: BracketRules
    ) -> BracketCounts:
        one, other = ([parse.tree for parse in side] for side in (gold, test))
        return score_trees(one, other, *rules)

    def ratios(self, counts: BracketCounts) -> list[Ratio]:
        matched, gold, test = map(counts.column, (Column.MATCHED, Column.GOLD, Column.TEST))
        return [
            Ratio("f1", 2 * matched, gold + test),
            Ratio("recall", matched, gold),
            Ratio("precision", matched, test),
        ]

    def counting(self, rules: BracketRules) -> dict[str, str | None]:
        prm, policy = rules
        # A signature does not show what is as in published scores.
        removal, missing = policy.punctuation, policy.missing_parse
        return {
            "scorer": self.scorer,
            "match": "labelled" if prm.labeled else "unlabelled",
            "prm": f"{prm.name}({prm.sha256[:8]})",
            "punctuation": None if removal is PUBLISHED.punctuation else removal.value,
            "missing": None if missing is PUBLISHED.missing_parse else missing.value,
        }

    def break_down(
        self,
        how: str,
        counts: BracketCounts,
        gold: Sequence[Parse],
        test: Sequence[Parse],
        rules: BracketRules,
    ) -> list[BreakdownRow]:
        """Return the rows by ``length``, ``label`` or ``span``; no empty classes.

        Behind them stand a row of all brackets and one of all without their labels. Raise a
        ScoreError if there is no such breakdown.
        """
        if how not in self.breakdowns:
            raise ScoreError(f"metric {self.name} has no breakdown by {how}")
        compared = [
            compared_brackets(one.tree, other.tree, *rules)
            for one, other in zip(gold, test, strict=True)
        ]
        labelled = [(Counter(one), Counter(other)) for one, other in compared]
        unlabelled = [(_spans(one), _spans(other)) for one, other in compared]
        if how == "length":
            rows = by_sentence_length(counts)
        elif how == "label":
            rows = _rows(labelled, lambda bracket: bracket[2])
            rows.sort(key=lambda row: (-row.gold, -row.test, row.name))
        else:
            names = length_names(SPAN_LENGTHS)
            rows = _rows(labelled, lambda span: names[bisect_left(SPAN_LENGTHS, span[1] - span[0])])
            rows.sort(key=lambda row: names.index(row.name))
        for name, pairs in (("all", labelled), ("unlabelled", unlabelled)):
            sums = _rows(pairs, lambda bracket: "")
            rows.append(replace(sums[0], name=name) if sums else BreakdownRow(name, 0, 0, 0, 0))
        return rows

    def lengths(self, counts: BracketCounts) -> Sequence[int]:
        return counts.column(Column.LENGTH).tolist()

    def report(self, counts: BracketCounts, rules: BracketRules) -> str:
        """Return two columns of figures, then every sentence left out."""
        prm = rules.prm
        short = self.values(counts.up_to(prm.cutoff_len))
        values = {"all": self.values(counts), f"length <= {prm.cutoff_len}": short}
        heading = f"Bracket scores: {prm.name}, conventions of {prm.program}"
        lines = [heading, "", *figure_lines(self.figures, values, 20, 14)]
        warning = left_out_text(counts)
        return "\n".join(lines) + "\n" + (f"\n{warning}" if warning else "")

    def report_dict(self, counts: BracketCounts, rules: BracketRules) -> dict[str, object]:
        """Return the report as JSON-able values.

        Keys: ``prm``, ``program``, ``all`` and ``up_to_cutoff`` (figures by name),
        ``cutoff_len`` (words), ``left_out`` (by reason, the sentences from 1) and ``missed``
        (those without a parse whose gold brackets count as missed).
        """
        prm = rules.prm
        return {
            "prm": prm.name,
            "program": prm.program.value,
            "all": self.values(counts),
            "cutoff_len": prm.cutoff_len,
            "up_to_cutoff": self.values(counts.up_to(prm.cutoff_len)),
            "left_out": {status.name.lower(): found for status, found in left_out(counts).items()},
            "missed": _numbers(counts, Status.MISSED),
        }


def left_out(counts: BracketCounts) -> dict[Status, list[int]]:
    """Return the sentences (from 1) that no figure includes, by the reasons that occur."""
    numbers = {status: _numbers(counts, status) for status in _REASONS}
    return {status: found for status, found in numbers.items() if found}


def _numbers(counts: BracketCounts, status: Status) -> list[int]:
    return (counts.sentences_with(status) + 1).tolist()


def left_out_text(counts: BracketCounts) -> str:
    """Say in lines what no figure includes and what counts as missed; empty if nothing does."""
    lines = []
    if counts.skipped:
        lines.append(f"LEFT OUT of every figure: {counts.skipped} of {len(counts)} sentences")
        for status, sentences in left_out(counts).items():
            lines.append(f"  {_REASONS[status]}: {_listed(sentences)}")
    if missed := _numbers(counts, Status.MISSED):
        lines.append(f"Without a parse, all gold brackets missed: {_listed(missed)}")
    return "".join(f"{line}\n" for line in lines)


def _listed(sentences: list[int]) -> str:
    which = ", ".join(map(str, sentences[:_LISTED]))
    more = ", ..." if len(sentences) > _LISTED else ""
    return f"{len(sentences)} (sentence {which}{more})"


def require_all(counts: BracketCounts) -> None:
    """Raise a ScoreError if sentences were left out, which names the first ones and why."""
    if not counts.skipped:
        return
    reasons = sorted(
        (sentence, _REASONS[status])
        for status, sentences in left_out(counts).items()
        for sentence in sentences
    )
    named = "; ".join(f"sentence {number}: {reason}" for number, reason in reasons[:_LISTED])
    more = "; ..." if len(reasons) > _LISTED else ""
    raise ScoreError(f"{len(reasons)} of {len(counts)} sentences cannot be scored: {named}{more}")


def require_most(counts: BracketCounts) -> None:
    """See to it that a score is of nearly every sentence. Raise a ScoreError if more than
    :data:`MOST_LEFT_OUT` of them were left out."""
    if counts.skipped > MOST_LEFT_OUT * len(counts):
        raise ScoreError(
            f"{counts.skipped} of {len(counts)} sentences are in no figure, more than a twentieth, "
            "so this is no score of the parses; --allow-skipped accepts it"
        )


def by_sentence_length(counts: BracketCounts) -> list[BreakdownRow]:
    """Return scores by the length of the gold sentence, shortest first; no empty classes.

    The sentences of a row are all that are scored, also those without brackets.
    """
    columns = (Column.MATCHED, Column.GOLD, Column.TEST)
    classes = np.searchsorted(SENTENCE_LENGTHS, counts.column(Column.LENGTH))
    rows = []
    for number, name in enumerate(length_names()):
        chosen = BracketCounts(counts.rows[counts.scored & (classes == number)])
        if len(chosen):
            rows.append(BreakdownRow(name, len(chosen), *map(chosen.total, columns)))
    return rows


def length_names(bounds: Sequence[int] = SENTENCE_LENGTHS) -> list[str]:
    """Return the names of classes of length: up to the first bound, up to the second, ..."""
    names = [f"up to {bounds[0]}" if bounds[0] > 1 else "1"]
    for low, high in pairwise(bounds):
        names.append(f"{low + 1}-{high}" if high > low + 1 else f"{high}")
    return [*names, f"over {bounds[-1]}"]


def _spans(brackets: Iterable[Bracket]) -> Counter[Bracket]:
    """The same brackets if labels did not matter; deleted labels stay deleted."""
    return Counter((start, end, "") for start, end, _ in brackets)


def _rows(
    pairs: Sequence[tuple[Counter[Bracket], Counter[Bracket]]], class_of: Callable[[Bracket], str]
) -> list[BreakdownRow]:
    """A row for each class of brackets that occurs in a pair of gold and test brackets."""
    sums: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for gold, test in pairs:
        for column, side in (("matched", gold & test), ("gold", gold), ("test", test)):
            for bracket, times in side.items():
                sums[class_of(bracket)][column] += times
        for name in set(map(class_of, gold | test)):
            sums[name]["sentences"] += 1
    columns = ("sentences", "matched", "gold", "test")
    return [BreakdownRow(name, *map(found.__getitem__, columns)) for name, found in sums.items()]


BRACKETS = Brackets()
