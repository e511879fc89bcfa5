"""The tables of records as Markdown: in a terminal, in a file, on a page.

A variant has one row. Where it was trained from several seeds, the row shows the mean of the
runs and, behind ``±``, their sample standard deviation: what a reader wants to know of a variant
is where its scores lie and how far they spread. The scores of the single runs stand below the
table, one line for each variant, and in the CSV, one row for each run.
"""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from spmrl_bench.leaderboard.published import Figure
from spmrl_bench.leaderboard.series import Series, all_series
from spmrl_bench.leaderboard.table import (
    FIGURES,
    Group,
    baseline_row,
    series_row,
    shows_published,
)

_HEADINGS = {
    "variant": "variant",
    "size": "size",
    "seed": "seed",
    "dev_f1": "dev F1",
    "test_recall": "test recall",
    "test_precision": "test precision",
    "test_f1": "test F1",
    "test_complete_match": "complete match",
    "dev_tags": "dev tags",
    "test_tags": "test tags",
    "test_sentences": "sentences",
    "tokens_per_second": "tokens/s",
    "signature": "signature",
}
#: Columns that are left out where no row has a value: few parsers tag.
_RARE = ("dev_tags", "test_tags")
_COUNT = ("seed", "test_sentences", "tokens_per_second")


def to_markdown(groups: Sequence[Group], figures: Sequence[Figure]) -> str:
    """One Markdown table per group, each with its notes."""
    sections = []
    for group in groups:
        siblings = [other for other in groups if other.treebank == group.treebank]
        sections.append(_section(group, siblings, figures))
    return "\n".join(sections)


def _section(group: Group, siblings: Sequence[Group], figures: Sequence[Figure]) -> str:
    suffix = f", table {group.number}" if len(siblings) > 1 else ""
    lines = [f"## {group.treebank} ({group.track} track{suffix})", ""]
    series, baseline = all_series(group.rows), baseline_row(group)
    frame = pd.DataFrame(
        [series_row(one, group.language, figures) for one in series]
        + ([baseline] if baseline else [])
    )
    shown = pd.DataFrame(
        {
            heading: _cells(frame, name)
            for name, heading in _HEADINGS.items()
            if name not in _RARE or frame[name].notna().any()
        }
    )
    for row, one in enumerate(series):
        shown.loc[row, "variant"] = one.name
        if len(one.runs) > 1:
            shown.loc[row, "seed"] = f"mean of {len(one.runs)}"
    # Signatures are longer than all the rest of a row: number them and write them below.
    signatures = list(shown["signature"])
    shown["signature"] = [f"[{number}]" for number in range(1, len(signatures) + 1)]
    published = _published_column(group, frame)
    if published is not None:
        shown[published.name] = published
    numeric = {_HEADINGS[name] for name in (*FIGURES, *_COUNT)}
    align = ["right" if heading in numeric else "left" for heading in shown.columns]
    lines.append(shown.to_markdown(index=False, disable_numparse=True, colalign=align))
    lines.append("")
    for number, signature in enumerate(signatures, start=1):
        lines.append(f"- [{number}] `{signature}`")
    lines.append("")
    lines.extend(_runs_of(series))
    lines.extend(_notes(group, siblings, figures))
    return "\n".join(lines) + "\n"


def _cells(frame: pd.DataFrame, name: str) -> list[str]:
    if name in FIGURES:
        deviations = frame[f"{name}_sd"]
        return [
            ("" if pd.isna(value) else f"{value:.2f}")
            + ("" if pd.isna(deviation) else f" ± {deviation:.2f}")
            for value, deviation in zip(frame[name], deviations, strict=True)
        ]
    if name in _COUNT:
        return ["" if pd.isna(value) else f"{value:.0f}" for value in frame[name]]
    return ["" if pd.isna(value) else str(value) for value in frame[name]]


def _runs_of(series: Sequence[Series]) -> list[str]:
    """What ± means and the F1 of the single runs, where there are means."""
    lines = []
    for one in series:
        if len(one.runs) > 1:
            runs = "; ".join(
                f"seed {run.seed} {_scores(run.dev.f1, run.test.f1 if run.test else None)}"
                for run in one.runs
            )
            lines.append(f"- {one.name}: {runs}")
    if not lines:
        return []
    return ["Means over seeds, ± their sample standard deviation. F1 of each run:", "", *lines, ""]


def _scores(dev: float | None, test: float | None) -> str:
    """F1 of the splits that have one."""
    values = (("dev", dev), ("test", test))
    shown = [f"{split} {value:.2f}" for split, value in values if not pd.isna(value)]
    return ", ".join(shown)


def _published_column(group: Group, frame: pd.DataFrame) -> pd.Series[str] | None:
    if "published_treebank" not in frame:
        return None
    known = frame.dropna(subset=["published_treebank"])
    system, name = known.iloc[0][["published_system", "published_treebank"]]
    relation = "this treebank" if name == group.treebank else f"another treebank: {name}"
    blank = pd.Series([None] * len(frame))
    splits = (frame.get(f"published_{split}_f1", blank) for split in ("dev", "test"))
    cells = [_scores(dev, test) for dev, test in zip(*splits, strict=True)]
    return pd.Series(cells, index=frame.index, name=f"{system} F1 ({relation})")


def _notes(group: Group, siblings: Sequence[Group], figures: Sequence[Figure]) -> list[str]:
    notes = []
    variants = {record.variant for record in group.rows if shows_published(record)}
    sources: dict[str, list[str]] = {}
    for figure in figures:
        if figure.language == group.language and figure.variant in variants:
            sources.setdefault(figure.system, []).append(figure.source)
    for system, found in sources.items():
        # One source may be another with a remark: the longer one says both.
        whole = [one for one in dict.fromkeys(found) if not _continued(one, found)]
        notes.append(f"{system}: {'; '.join(whole)}.")
    if group.older:
        records = "record is" if group.older == 1 else "records are"
        notes.append(f"Newest record of each run; {group.older} older {records} not shown.")
    for other in siblings:
        if other.number == group.number:
            continue
        mine, theirs = dict(group.key), dict(other.key)
        differing = [
            f"{key} is {mine.get(key, 'absent')} here, {theirs.get(key, 'absent')} there"
            for key in sorted(mine.keys() | theirs.keys())
            if mine.get(key) != theirs.get(key)
        ]
        notes.append(
            f"Does not compare with table {other.number} of {group.treebank}: "
            f"{'; '.join(differing)}."
        )
    return [line for note in notes for line in (note, "")]


def _continued(source: str, sources: Sequence[str]) -> bool:
    return any(other != source and other.startswith(source) for other in sources)
