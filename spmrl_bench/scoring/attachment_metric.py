"""Attachment scores of dependencies by named rules, as a metric, and its reports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from operator import attrgetter
from typing import Any

from spmrl_bench.errors import ScoreError
from spmrl_bench.scoring.attachment import AttachmentRules, score_dependencies
from spmrl_bench.scoring.attachment_counts import AttachmentColumn, AttachmentCounts
from spmrl_bench.scoring.golden import scorer_version
from spmrl_bench.scoring.metric import Figure, Metric, Number, figure_lines
from spmrl_bench.scoring.punctuation import PUNCTUATION_RULES
from spmrl_bench.scoring.significance import Ratio
from spmrl_bench.trees.dependencies import DependencyTree
from spmrl_bench.trees.parse import Parse

#: Every figure of attachment by name, in the order of a report.
FIGURES = {
    "sentences": Figure("sentences", attrgetter("sentences")),
    "words": Figure("words", attrgetter("words")),
    "uas": Figure("UAS", attrgetter("uas")),
    "las": Figure("LAS", attrgetter("las")),
    "label_accuracy": Figure("label accuracy", attrgetter("label_accuracy")),
    "unlabelled_match": Figure("complete match, heads", attrgetter("unlabelled_match")),
    "labelled_match": Figure("complete match, labelled", attrgetter("labelled_match")),
}
_LABELLED = ("las", "label_accuracy", "labelled_match")


class Attachment(Metric[AttachmentCounts, AttachmentRules]):
    """Unlabelled and labelled attachment, the accuracy of relations, complete matches."""

    name = "attachment"
    layers = ("dependencies",)
    counts = AttachmentCounts
    figures = FIGURES
    headline = "las"
    tabled = ("uas", "las", "label_accuracy", "labelled_match")

    def rules(self, options: Mapping[str, Any]) -> AttachmentRules:
        return AttachmentRules(**options)

    def count(
        self, gold: Sequence[Parse], test: Sequence[Parse], rules: AttachmentRules
    ) -> AttachmentCounts:
        return score_dependencies(_trees(gold, "gold"), _trees(test, "test"), rules)

    def ratios(self, counts: AttachmentCounts) -> list[Ratio]:
        columns = AttachmentColumn
        words = counts.column(columns.WORDS)
        return [
            Ratio.of("las", counts.column(columns.BOTH), words),
            Ratio.of("uas", counts.column(columns.HEADS), words),
            Ratio.of("label_accuracy", counts.column(columns.LABELS), words),
        ]

    def counting(self, rules: AttachmentRules) -> dict[str, str | None]:
        by_tag = PUNCTUATION_RULES[rules.punctuation].foreign_tags
        return {
            "scorer": scorer_version(self.name),
            "match": "attachment",
            "punctuation": rules.punctuation + (f"({rules.tags})" if by_tag else ""),
            "relations": rules.relations,
            "roots": rules.roots,
        }

    def lengths(self, counts: AttachmentCounts) -> Sequence[int]:
        return counts.column(AttachmentColumn.ALL_WORDS).tolist()

    def report(self, counts: AttachmentCounts, rules: AttachmentRules) -> str:
        return attachment_text(counts, rules)


def attachment_figures(counts: AttachmentCounts, rules: AttachmentRules) -> dict[str, Number]:
    """The figures of the scored words by name: counts, percentages, None for 0 of 0.

    Rules that do not compare relations give no labelled figures.
    """
    return {
        name: figure.of(counts)
        for name, figure in FIGURES.items()
        if rules.relations != "none" or name not in _LABELLED
    }


def attachment_dict(counts: AttachmentCounts, rules: AttachmentRules) -> dict[str, object]:
    """The report as JSON-able values.

    Keys: ``punctuation``, ``tags``, ``relations``, ``roots`` (the rules), ``sentences``,
    ``all_words`` and, if a rule leaves out punctuation, ``without_punctuation``
    (:func:`attachment_figures`).
    """
    parts = _parts(counts, rules).items()
    figures = {name: attachment_figures(part, rules) for name, part in parts}
    return {**asdict(rules), "sentences": len(counts), **figures}


def attachment_text(counts: AttachmentCounts, rules: AttachmentRules) -> str:
    """The report for people: a column of figures with punctuation and one without."""
    parts = _parts(counts, rules)
    columns = {
        name.replace("_", " "): attachment_figures(part, rules) for name, part in parts.items()
    }
    heading = f"punctuation rule {rules.punctuation}, relations {rules.relations}"
    lines = [f"Attachment scores: {heading}", "", *figure_lines(FIGURES, columns, 24, 22)]
    if len(columns) > 1 and counts.words == counts.with_punctuation().words:
        lines += ["", f"The rule {rules.punctuation} found no punctuation."]
    return "\n".join(lines) + "\n"


def _parts(counts: AttachmentCounts, rules: AttachmentRules) -> dict[str, AttachmentCounts]:
    whole = {"all_words": counts.with_punctuation()}
    if rules.punctuation == "none":
        return whole
    return {"without_punctuation": counts} | whole


def _trees(parses: Sequence[Parse], side: str) -> list[DependencyTree]:
    found = []
    for number, parse in enumerate(parses, start=1):
        if parse.dependencies is None:
            raise ScoreError(f"{side} sentence {number}: has no dependencies to score")
        found.append(parse.dependencies)
    return found


ATTACHMENT = Attachment()
