"""Attachment scores of dependencies by named rules, as a metric."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from spmrl_bench.errors import ScoreError
from spmrl_bench.scoring.attachment import AttachmentRules, score_dependencies
from spmrl_bench.scoring.attachment_counts import AttachmentColumn, AttachmentCounts
from spmrl_bench.scoring.attachment_report import FIGURES, attachment_text
from spmrl_bench.scoring.golden import scorer_version
from spmrl_bench.scoring.metric import Metric
from spmrl_bench.scoring.punctuation import PUNCTUATION_RULES
from spmrl_bench.scoring.significance import Ratio
from spmrl_bench.trees.dependencies import DependencyTree
from spmrl_bench.trees.parse import Parse


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


def _trees(parses: Sequence[Parse], side: str) -> list[DependencyTree]:
    found = []
    for number, parse in enumerate(parses, start=1):
        if parse.dependencies is None:
            raise ScoreError(f"{side} sentence {number}: has no dependencies to score")
        found.append(parse.dependencies)
    return found


ATTACHMENT = Attachment()
