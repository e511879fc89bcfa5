"""Contributions of heads as a table for reading: the heads behind each category, and the missed.

These are the statistics of Mrini et al. 2020, sections 4.5 ("44.9 % of the noun phrases get their
top contribution from head 35") and 4.6 (of the spans that were missed, how many are those whose
top head is one of the category's).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from spmrl_bench.analysis.head_contributions import HeadContributions

HEADINGS = (
    "category", "spans", "highest contributions", "first in % of spans", "missed", "same heads (%)",
)  # fmt: skip


def table_rows(
    found: HeadContributions, categories: Sequence[str] = (), *, top: int = 4
) -> list[tuple[str, ...]]:
    """A row of text for each category.

    Columns: its name; the number of spans predicted to be of it; the heads with the highest mean
    contributions (shares in percent, else points); the heads that contribute the most to the most
    spans, with the percentage of these spans; the number of gold spans that were not predicted to
    be of it; to what percentage of these one of the latter heads contributes the most.

    Args:
        found: contributions.
        categories: names; all without any.
        top: so many heads.

    Raises:
        SpmrlError: nothing is known of a category.
    """
    rows = [found.row(name) for name in categories] or range(len(found.categories))
    return [_row(found, row, top) for row in rows]


def _row(found: HeadContributions, row: int, top: int) -> tuple[str, ...]:
    percent = found.measure in ("norm", "released")
    spans, missed = int(found.spans[row]), int(found.missed[row])
    means, firsts = found.means[row], found.firsts[row]
    highest = np.argsort(-means, kind="stable")[:top].tolist() if spans else []
    frequent = np.argsort(-firsts, kind="stable")[:top]
    frequent = frequent[firsts[frequent] > 0]
    same = int(found.missed_firsts[row][frequent].sum())
    return (
        found.categories[row],
        f"{spans:,}",
        "  ".join(
            f"{head}: {100 * means[head]:.2f}" if percent else f"{head}: {means[head]:+.3f}"
            for head in highest
        ),
        "  ".join(f"{head}: {100 * firsts[head] / spans:.1f}" for head in frequent.tolist()),
        f"{missed:,}",
        f"{100 * same / missed:.1f}" if missed and len(frequent) else "",
    )
