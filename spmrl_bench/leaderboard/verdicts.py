"""Whether our best entry is ahead of the best parser of somebody else, treebank by treebank.

Best is what dev says, on both sides. What is compared is their test scores, sentence by sentence.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import pandas as pd

from spmrl_bench.leaderboard.board import LEVEL, Entry, Group, Results, entries_of
from spmrl_bench.leaderboard.formats import Table
from spmrl_bench.scoring.metric import metric_named
from spmrl_bench.scoring.significance import randomisation

COLUMNS = ("treebank", "figure", "ours", "our_test", "others", "their_test", "difference", "p")


def verdicts(gathered: Results, treebanks: Collection[str] | None = None) -> pd.DataFrame:
    """One row for each table and metric that both sides have entries of.

    Args:
        gathered: all records.
        treebanks: only these.

    Returns:
        The columns are :data:`COLUMNS` and ``ahead``: ``ours``, ``others``, or ``neither`` where
        p is not below 0.05 or the two do not compare.
    """
    rows = [
        _row(group, metric, *pair)
        for group in entries_of(gathered)[1]
        if treebanks is None or group.treebank in treebanks
        for metric in group.metrics
        if (pair := _best(group, metric)) is not None
    ]
    return pd.DataFrame(rows, columns=[*COLUMNS, "ahead"])


def _best(group: Group, metric: str) -> tuple[Entry, Entry] | None:
    """The best of ours and of others on dev, of those that were scored on test."""
    able = [
        entry
        for entry in group.entries
        if entry.headline((metric, "dev")) and entry.headline((metric, "test"))
    ]
    ours = _first((one for one in able if one.kind in ("run", "mean")), metric)
    others = _first((one for one in able if one.is_system), metric)
    return None if ours is None or others is None else (ours, others)


def _first(entries: Iterable[Entry], metric: str) -> Entry | None:
    return max(entries, key=lambda one: _score(one, metric, "dev"), default=None)


def _score(entry: Entry, metric: str, split: str) -> float:
    found = entry.headline((metric, split))
    return found.mean if found else 0.0


def _row(group: Group, metric: str, ours: Entry, others: Entry) -> dict[str, Any]:
    scores = [_score(one, metric, "test") for one in (ours, others)]
    sums = [one.sums((metric, "test")) for one in (ours, others)]
    pair = sums[0].beside(sums[1]) if sums[0] is not None and sums[1] is not None else None
    p = None if pair is None else randomisation(*pair)
    ahead = "neither"
    if p is not None and p < LEVEL:
        ahead = "ours" if scores[0] > scores[1] else "others"
    return {
        "treebank": group.treebank,
        "figure": metric_named(metric).title(metric_named(metric).headline),
        "ours": ours.name,
        "our_test": scores[0],
        "others": others.name,
        "their_test": scores[1],
        "difference": scores[0] - scores[1],
        "p": p,
        "ahead": ahead,
    }


def verdict_table(frame: pd.DataFrame) -> Table:
    """The verdicts for people.

    Args:
        frame: of :func:`verdicts`.
    """
    rows = [
        (
            row["treebank"],
            row["figure"],
            row["ours"],
            f"{row['our_test']:.2f}",
            row["others"],
            f"{row['their_test']:.2f}",
            f"{row['difference']:+.2f}",
            "" if pd.isna(row["p"]) else f"{row['p']:.4f}",
            row["ahead"],
        )
        for row in frame.to_dict("records")
    ]
    headings = ("treebank", "", "our best", "test", "best of others", "their test", "difference")
    note = (
        "Best is the entry with the best score on dev. p is of the paired randomisation test over "
        f"the sentences of test; below {LEVEL:g} one side is said to be ahead."
    )
    return Table(
        title="Ours and others",
        headings=(*headings, "p", "ahead"),
        rows=rows,
        numeric=frozenset({"test", "their test", "difference", "p"}),
        notes=(note,) if rows else ("No treebank has entries of both sides.",),
    )
