"""Tables as pure functions of the records.

A table invites comparison, so it has to keep apart what does not compare. Runs are grouped
by treebank, and within a treebank by everything in the signature of their scores that
changes what is measured (scorer, parameter file, fingerprint of the treebank, transforms,
tags, sentences left out); variant, settings, size, precision, seed and version say which run it
was. Each group is a table of its own; where one treebank has several, a note says which keys
differ. A published figure stands in a column of its own whose heading says whether it is of the
same treebank.

Of several records of one run (same group, size, variant, settings, precision and seed) the
newest is shown, and a note says how many older ones there are.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean

import pandas as pd

from spmrl_bench.leaderboard.comparison import comparison_key
from spmrl_bench.leaderboard.published import Figure, find_figure
from spmrl_bench.leaderboard.record import Record
from spmrl_bench.leaderboard.series import Series, all_series, run_key
from spmrl_bench.settings_text import settings_text

BASELINE = "right-branching"

#: Figures in percent: column of the table, split and name in the record.
FIGURES = {
    "dev_f1": ("dev", "f1"),
    "test_recall": ("test", "recall"),
    "test_precision": ("test", "precision"),
    "test_f1": ("test", "f1"),
    "test_complete_match": ("test", "complete_match"),
    "dev_tags": ("dev", "tag_accuracy"),
    "test_tags": ("test", "tag_accuracy"),
}
_COLUMNS = (
    "track",
    "treebank",
    "group",
    "variant",
    "size",
    "seed",
    *FIGURES,
    "test_sentences",
    "tokens_per_second",
    "signature",
    "kind",
    "runs",
    "settings",
    *(f"{column}_sd" for column in FIGURES),
    "published_system",
    "published_treebank",
    "published_dev_f1",
    "published_test_f1",
)


@dataclass(frozen=True, slots=True)
class Group:
    """Runs whose scores compare.

    Attributes:
        track: track of the treebank.
        treebank: its name.
        language: its language.
        number: 1 for the first group of the treebank, 2 for the second, ...
        rows: the newest record of each run; best dev F1 first.
        older: records of the same runs that are not shown.
        key: what the members have in common, as sorted ``(name, value)`` pairs.
    """

    track: str
    treebank: str
    language: str
    number: int
    rows: tuple[Record, ...]
    older: int
    key: tuple[tuple[str, str], ...]


def group_records(records: Iterable[Record]) -> list[Group]:
    """Records in groups that compare, ordered by track, treebank and age of the group."""
    members: dict[tuple[Hashable, ...], list[Record]] = {}
    for record in sorted(records, key=lambda record: record.finished):
        bank = record.treebank
        members.setdefault((bank.track, bank.name, comparison_key(record)), []).append(record)
    groups: list[Group] = []
    for found in sorted(members.values(), key=lambda found: _place(found[0])):
        bank = found[0].treebank
        newest = {run_key(record): record for record in found}
        rows = sorted(newest.values(), key=lambda record: -(record.dev.f1 or 0.0))
        number = 1 + sum(group.treebank == bank.name for group in groups)
        groups.append(
            Group(
                track=bank.track,
                treebank=bank.name,
                language=bank.language,
                number=number,
                rows=tuple(rows),
                older=len(found) - len(rows),
                key=comparison_key(found[0]),
            )
        )
    return groups


def _place(record: Record) -> tuple[str, str]:
    return record.treebank.track, record.treebank.name


def table_frame(groups: Sequence[Group], figures: Sequence[Figure]) -> pd.DataFrame:
    """One row per run and one per baseline, with unrounded numbers; empty cells are missing.

    Only rows of the same ``treebank`` and ``group`` compare. ``kind`` says what a row is: a
    ``run``, an ``ensemble``, the ``baseline``, or before the runs of a variant that was trained
    from several seeds the ``mean`` of them; ``runs`` is how many runs it stands for. The
    columns ``*_sd`` have sample standard deviations over the runs of a mean. ``settings`` are
    those changed of the recipe. ``published_*`` columns hold the published figures for the
    row's language and variant and the treebank they are of.
    """
    rows = [row for group in groups for row in _group_rows(group, figures)]
    frame = pd.DataFrame(rows, columns=list(_COLUMNS))
    # Without this, one missing cell would turn the whole column of integers into floats.
    return frame.astype({"seed": "Int64", "test_sentences": "Int64", "runs": "Int64"})


def _group_rows(group: Group, figures: Sequence[Figure]) -> list[dict[str, object]]:
    place = {"track": group.track, "treebank": group.treebank, "group": group.number}
    rows: list[dict[str, object]] = []
    for series in all_series(group.rows):
        if len(series.runs) > 1:
            rows.append(place | series_row(series, group.language, figures))
        for run in series.runs:
            rows.append(place | series_row(Series((run,)), group.language, figures))
    baseline = baseline_row(group)
    return [*rows, place | baseline] if baseline else rows


def series_row(series: Series, language: str, figures: Sequence[Figure]) -> dict[str, object]:
    """The columns of a series: its mean, or the only run it has."""
    first, alone = series.runs[0], len(series.runs) == 1
    row: dict[str, object] = {
        "variant": first.variant,
        "size": first.size,
        "seed": first.seed if alone and not first.ensemble else None,
        "test_sentences": _sentences(first) if series.tested else None,
        "tokens_per_second": fmean(run.training.tokens_per_second for run in series.runs),
        "signature": series.signature,
        "kind": "ensemble" if first.ensemble else "run" if alone else "mean",
        "runs": len(first.ensemble) or len(series.runs),
        "settings": settings_text(first.settings) or None,
    }
    for column, (split, figure) in FIGURES.items():
        row[column] = series.mean(split, figure)
        row[f"{column}_sd"] = series.deviation(split, figure)
    if shows_published(first):
        row |= _published(language, first.variant, figures)
    return row


def baseline_row(group: Group) -> dict[str, object] | None:
    """The columns of the baseline of a group, if it was scored."""
    found = next((record.baseline for record in group.rows if record.baseline), None)
    if found is None:
        return None
    row: dict[str, object] = {
        "variant": BASELINE,
        "kind": "baseline",
        "test_sentences": found.sentences - found.skipped,
        "signature": found.signature,
    }
    for column, (split, figure) in FIGURES.items():
        if split == "test":
            row[column] = getattr(found, figure)
    return row


def _sentences(record: Record) -> int | None:
    return record.test.sentences - record.test.skipped if record.test else None


def shows_published(record: Record) -> bool:
    """Whether published figures of its variant stand beside it.

    They do not beside an ensemble, nor where settings make it another model than the published.
    """
    changed = {key for key in record.settings if key.startswith("model.")}
    return not record.ensemble and changed <= {"model.precision"}


def _published(language: str, variant: str, figures: Sequence[Figure]) -> dict[str, object]:
    row: dict[str, object] = {}
    for split in ("dev", "test"):
        figure = find_figure(figures, language=language, variant=variant, split=split)
        if figure is not None:
            row["published_system"] = figure.system
            row["published_treebank"] = figure.treebank
            row[f"published_{split}_f1"] = figure.value
    return row


def to_csv(frame: pd.DataFrame) -> str:
    """The frame as CSV with a heading line."""
    return frame.to_csv(index=False, lineterminator="\n")
