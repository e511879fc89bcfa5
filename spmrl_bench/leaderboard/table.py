"""The results of each treebank: one row for a run, a mean over seeds, an ensemble, a baseline.

A table invites comparison, so it has to keep apart what does not compare: every group of the
frame is a table of its own. Of several records of one run the newest is shown. A published figure
stands in columns of its own, with the treebank it is of.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd

from spmrl_bench.leaderboard.comparison import joined_signature
from spmrl_bench.leaderboard.estimates import Key
from spmrl_bench.leaderboard.frame import (
    GROUP,
    brief_terms,
    estimates,
    headline_terms,
    series_of,
)
from spmrl_bench.leaderboard.published import PublishedFigure
from spmrl_bench.leaderboard.record import in_order
from spmrl_bench.scoring.metric import metric_named


class FigureColumn(NamedTuple):
    """A column of figures: which, its name in CSV and its heading."""

    key: Key
    name: str
    heading: str


def figure_columns(metrics: Sequence[str]) -> list[FigureColumn]:
    """The columns of tables of these metrics: headlines of dev, the tabled figures of test."""
    found: list[tuple[Key, str]] = []
    for name, figure in headline_terms(metrics):
        found.append((("dev", name, figure), f"dev {metric_named(name).title(figure)}"))
    for name in metrics:
        metric = metric_named(name)
        for figure in metric.tabled:
            # What follows the headline is not shown of dev, so "test" tells nothing apart.
            split = "test " if (name, figure) in brief_terms(name) else ""
            found.append((("test", name, figure), split + metric.title(figure)))
    names = Counter((split, figure) for (split, _, figure), _ in found)
    headings = Counter(heading for _, heading in found)
    columns = [
        FigureColumn(
            (split, metric, figure),
            "_".join([split, *([metric] if names[split, figure] > 1 else []), figure]),
            f"{heading} ({metric})" if headings[heading] > 1 else heading,
        )
        for (split, metric, figure), heading in found
    ]
    return columns + [
        FigureColumn((split, "", "tag_accuracy"), f"{split}_tags", f"{split} tags")
        for split in ("dev", "test")
    ]


def metrics_of(rows: pd.DataFrame) -> list[str]:
    """The metrics of some rows of the frame, in the order of tables."""
    found = rows.loc[rows["metric"] != "", "metric"].unique()
    return in_order(found, rows["select"].unique())


def result_rows(frame: pd.DataFrame, published: Iterable[PublishedFigure]) -> pd.DataFrame:
    """One row per run and one per baseline, with unrounded numbers; empty cells are missing.

    Only rows of the same ``treebank`` and ``group`` compare. ``kind`` says what a row is: a
    ``run``, an ``ensemble``, the ``baseline``, or before the runs of a variant that was trained
    from several seeds the ``mean`` of them; ``runs`` is how many runs it stands for. The
    columns ``*_sd`` have sample standard deviations over the runs of a mean. ``settings`` are
    those that tell it from others of its ``variant``. ``published_*`` columns hold
    the published figures for the row's language and variant and the treebank they are of; those
    of a second system and so on have a number at their end. ``altered`` rows are of another model
    than a published one, those ``below`` a mean are its runs.

    Args:
        frame: of :func:`~spmrl_bench.leaderboard.frame.records_frame`.
        published: figures; those of variants that the records have are shown.
    """
    figures = list(published)
    columns = figure_columns(metrics_of(frame))
    rows: list[dict[str, Any]] = []
    for place, group in frame[frame["newest"]].groupby(GROUP):
        language = group["language"].iloc[0]
        for row in _group_rows(group, columns):
            if not row["altered"]:
                row |= _published(language, row["variant"], figures)
            about = {**dict(zip(GROUP, place, strict=True)), "language": language}
            rows.append({**about, "below": False, **row})
    names = [column.name for column in columns]
    more = dict.fromkeys(key for row in rows for key in row if key.startswith("published_"))
    listed = [
        *GROUP, "variant", "size", "seed", *names, "test_sentences", "tokens_per_second",
        "signature", "kind", "runs", "settings", *(f"{name}_sd" for name in names),
        *(more or _PUBLISHED), *_HIDDEN,
    ]  # fmt: skip
    # Without this, one missing cell would turn the whole column of integers into floats.
    types = dict.fromkeys(("seed", "test_sentences", "runs"), "Int64")
    return pd.DataFrame(rows, columns=listed).astype(types | {"altered": bool, "below": bool})


# Columns that are for tables alone, not for the CSV.
_HIDDEN = ["name", "language", "altered", "below"]
_PUBLISHED = ("published_system", "published_treebank", "published_dev_f1", "published_test_f1")


def to_csv(rows: pd.DataFrame) -> str:
    """The rows as CSV with a heading line."""
    return rows.drop(columns=_HIDDEN).to_csv(index=False, lineterminator="\n")


def _group_rows(group: pd.DataFrame, columns: Sequence[FigureColumn]) -> list[dict[str, Any]]:
    metrics = metrics_of(group)
    own = group[group["baseline"] == ""].sort_values("seed", kind="stable")
    rows = []
    for series in series_of(own, headline_terms(metrics)):
        runs = [run for _, run in series.groupby("record", sort=False)]
        if len(runs) > 1:
            rows.append(_row(series, columns) | {"kind": "mean", "runs": len(runs)})
        for run in runs:
            row = _row(run, columns) | {"kind": "run", "runs": 1, "seed": run["seed"].iloc[0]}
            if members := run["ensemble"].iloc[0]:
                row |= {"kind": "ensemble", "runs": members, "seed": None, "altered": True}
            rows.append(row | {"below": len(runs) > 1})
    for name, baseline in group[group["baseline"] != ""].groupby("baseline", sort=False):
        row = _row(baseline[baseline["record"] == baseline["record"].min()], columns)
        kept = ("test_sentences", "signature", *(column.name for column in columns))
        about = {"name": name, "variant": name, "kind": "baseline", "altered": True}
        rows.append(about | {key: row[key] for key in kept})
    return rows


def _row(series: pd.DataFrame, columns: Sequence[FigureColumn]) -> dict[str, Any]:
    """The columns of a mean, or of the only run there is."""
    first, found = series.iloc[0], estimates(series)
    speed = found.get(("train", "", "tokens_per_second"))
    row = {name: first[name] for name in ("name", "variant", "size", "settings", "altered")}
    row["settings"] = row["settings"] or None
    row["tokens_per_second"] = speed.mean if speed else None
    for key, name, _ in columns:
        estimate = found.get(key)
        row[name] = estimate.mean if estimate else None
        row[f"{name}_sd"] = estimate.sd if estimate else None
    tested = series[(series["split"] == "test") & (series["metric"] != "")]
    whole = tested["record"].nunique() == series["record"].nunique()
    scored = tested if whole else series[(series["split"] == "dev") & (series["metric"] != "")]
    row["test_sentences"] = tested["sentences"].iloc[0] if whole else None
    row["signature"] = " & ".join(
        joined_signature(part.drop_duplicates("record")["signature"])
        for _, part in scored.groupby("metric", sort=False)
    )
    return row


def shown_beside(
    language: str, variant: str, figures: Iterable[PublishedFigure]
) -> dict[tuple[str, str, str], list[PublishedFigure]]:
    """The headline figures of a language and variant, by system, treebank and setting."""
    found: dict[tuple[str, str, str], list[PublishedFigure]] = {}
    for figure in figures:
        headline = metric_named(figure.metric).headline
        if (figure.language, figure.variant, figure.figure) == (language, variant, headline):
            key = figure.system, figure.treebank, figure.setting
            found.setdefault(key, []).append(figure)
    return found


def _published(
    language: str, variant: str, figures: Sequence[PublishedFigure]
) -> Mapping[str, object]:
    row: dict[str, object] = {}
    found = shown_beside(language, variant, figures)
    for number, ((system, treebank, _), numbers) in enumerate(found.items(), start=1):
        end = "" if number == 1 else f"_{number}"
        row |= {f"published_system{end}": system, f"published_treebank{end}": treebank}
        for one in numbers:
            row[f"published_{one.split}_{one.figure}{end}"] = one.value
    return row
