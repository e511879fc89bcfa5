"""The results of each treebank: one row for a run, a mean over seeds, an ensemble, a baseline.

A table invites comparison, so it has to keep apart what does not compare: every group of the
frame is a table of its own. Of several records of one run the newest is shown. A published figure
stands in columns of its own, with the treebank it is of.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd

from spmrl_bench.leaderboard.beside import beside_variant
from spmrl_bench.leaderboard.board import Key, SeedMean, brief_columns, named_columns
from spmrl_bench.leaderboard.compare import joined_signature
from spmrl_bench.leaderboard.frame import GROUP, SERIES, parts
from spmrl_bench.leaderboard.published import PublishedFigure
from spmrl_bench.leaderboard.record import in_order

_PUBLISHED = ("published_system", "published_treebank", "published_dev_f1", "published_test_f1")


#: The columns of the frame that rows are made of.
_READ = (
    *SERIES, "record", "language", "system", "name", "settings", "altered", "seed", "finished",
    "commit", "select", "split", "baseline", "metric", "figure", "value", "sentences", "signature",
    "searched",
)  # fmt: skip


#: Of a commit, so many are shown.
_DIGITS = 10


class Result(NamedTuple):
    """A row of the table of a group; what does not apply is None."""

    kind: str  # run, mean (of runs that follow), ensemble or baseline
    variant: str
    name: str  # the variant with its settings
    settings: str | None  # that tell it from others of its variant
    searched: str  # what a search for the settings has cost; empty if there was none
    size: str | None
    seed: int | None
    runs: int | None  # how many it stands for
    shipped: bool  # whether it comes with the program
    below: bool  # whether it is one of the runs of the mean before it
    figures: Mapping[Key, SeedMean]  # those that all runs have
    test_sentences: int | None
    tokens_per_second: float | None  # in training
    dates: Sequence[str]  # on which its runs were scored, in order
    commits: Sequence[str]  # of the program that scored them, as far as known
    signature: str  # of test where all runs have scores of it, else of dev
    beside: Sequence[Sequence[PublishedFigure]]  # by system; none for altered models
    records: Sequence[int]  # numbers of the records in the frame that it is of


def track_title(track: str) -> str:
    """What titles of tables call a track; nobody shall take generated sentences for a language."""
    return f"{track} track, generated sentences" if track == "mini" else f"{track} track"


def metrics_of(rows: pd.DataFrame) -> list[str]:
    """The metrics of some rows of the frame, in the order of tables."""
    found = rows.loc[rows["metric"] != "", "metric"].unique()
    return in_order(found, rows["select"].unique())


def group_results(group: pd.DataFrame, published: Sequence[PublishedFigure]) -> list[Result]:
    """The rows of the table of a group: parsers by their means on dev, then baselines.

    Of a variant that was trained from several seeds, the mean stands before its runs.
    """
    group = group.loc[group["newest"], list(_READ)]  # other columns cost time for each row
    own = group[group["baseline"] == ""].sort_values("seed", kind="stable")
    headlines = [one.key for one in brief_columns(metrics_of(group)) if one.split == "dev"]

    def place(series: pd.DataFrame) -> list[float]:
        found = _estimates(series)
        return [-found[key].mean if key in found else 0.0 for key in headlines]

    results = []
    for series in sorted((rows for _, rows in own.groupby(SERIES, sort=False)), key=place):
        runs = [run for _, run in series.groupby("record", sort=False)]
        if len(runs) > 1:
            results.append(_result(series, published))
        results += [_result(run, published, below=len(runs) > 1) for run in runs]
    for _, rows in group[group["baseline"] != ""].groupby("baseline", sort=False):
        results.append(_result(rows[rows["record"] == rows["record"].min()], published))
    return results


def _result(
    rows: pd.DataFrame, published: Sequence[PublishedFigure], below: bool = False
) -> Result:
    """The row of a parser, of runs of it together, or of a baseline."""
    first, records = rows.iloc[0], list(dict.fromkeys(rows["record"].tolist()))
    runs = len(records)
    baseline, members = str(first["baseline"]), first["ensemble"]
    kind = "baseline" if baseline else "mean" if runs > 1 else "ensemble" if members else "run"
    language, variant = first["language"], baseline or str(first["variant"])
    figures = _estimates(rows)
    speed = figures.get(("train", "", "tokens_per_second"))
    as_published = kind in ("mean", "run") and not first["altered"]
    signatures = _signatures(rows, "test")
    tested = {record for found in signatures.values() for record in found}
    whole = len(tested) == runs
    if not whole:
        signatures = _signatures(rows, "dev")
    sentences = rows.loc[(rows["split"] == "test") & (rows["metric"] != ""), "sentences"]
    return Result(
        kind=kind,
        variant=variant,
        name=baseline or first["name"],
        settings=None if baseline else first["settings"] or None,
        searched="" if baseline else "; ".join(filter(None, rows["searched"].unique())),
        size=None if baseline else first["size"],
        seed=first["seed"] if kind == "run" and not first["system"] else None,
        shipped=bool(first["shipped"]) and not baseline,
        runs={"baseline": None, "ensemble": members}.get(kind, runs),
        below=below,
        figures=figures,
        tokens_per_second=speed.mean if speed else None,
        dates=sorted({f"{finished:%Y-%m-%d}" for finished in set(rows["finished"].tolist())}),
        commits=sorted({commit[:_DIGITS] for commit in set(rows["commit"].tolist()) if commit}),
        test_sentences=int(sentences.iloc[0]) if whole else None,
        signature=" & ".join(joined_signature(found.values()) for found in signatures.values()),
        beside=beside_variant(published, language, variant) if as_published else (),
        records=records,
    )


def _signatures(rows: pd.DataFrame, split: str) -> dict[str, dict[int, str]]:
    """Of each metric the signature of each record's scores on a split."""
    found: dict[str, dict[int, str]] = {}
    columns = (rows[name].tolist() for name in ("record", "split", "metric", "signature"))
    for record, of, metric, signature in zip(*columns, strict=True):
        if metric and of == split:
            found.setdefault(metric, {}).setdefault(record, signature)
    return found


def _estimates(series: pd.DataFrame) -> dict[Key, SeedMean]:
    """The estimate of each figure of a split that all records of a series have."""
    whole = series["record"].nunique()
    values: dict[Key, list[float]] = {}
    columns = (series[name].tolist() for name in ("split", "metric", "figure", "value"))
    for *key, value in zip(*columns, strict=True):
        values.setdefault((key[0], key[1], key[2]), []).append(value)
    return {
        key: estimate
        for key, found in sorted(values.items())
        if len(found) == whole and (estimate := SeedMean.of(found))
    }


def result_rows(frame: pd.DataFrame, published: Sequence[PublishedFigure]) -> pd.DataFrame:
    """One row per run and one per baseline, with unrounded numbers; empty cells are missing.

    Only rows of the same ``treebank`` and ``group`` compare; what is said of one is told in
    :class:`Result`. The columns ``*_sd`` have sample standard deviations over the runs of a mean,
    ``searched`` is there if it says something, and ``published_*`` columns hold the published
    figures for the row's language and variant and the treebank they are of; those of a second
    system and so on have a number at their end.

    Args:
        frame: of :func:`~spmrl_bench.leaderboard.frame.records_frame`.
        published: figures; those of variants that the records have are shown.
    """
    groups = parts(frame, GROUP).items()
    results = {place: group_results(group, published) for place, group in groups}
    return results_frame(results, metrics_of(frame))


def results_frame(
    results: Mapping[tuple[Any, ...], Sequence[Result]], metrics: Sequence[str]
) -> pd.DataFrame:
    """The same of results by their group, whose metrics are these in the order of tables."""
    columns = named_columns(metrics)
    rows: list[dict[str, Any]] = []
    for place, group in results.items():
        for one in group:
            row = dict(zip(GROUP, place, strict=True)) | one._asdict()
            row |= {"dates": " ".join(one.dates), "commits": " ".join(one.commits)}
            for name, column in columns.items():
                if estimate := one.figures.get(column.key):
                    row |= {name: estimate.mean, f"{name}_sd": estimate.sd}
            rows.append(row | _published(one.beside))
    searched = ["searched"] if any(row["searched"] for row in rows) else []
    more = dict.fromkeys(key for row in rows for key in row if key.startswith("published_"))
    listed = [
        *GROUP, "variant", "size", "seed", *columns, "test_sentences", "tokens_per_second",
        "signature", "dates", "commits", "kind", "runs", "shipped", "settings",
        *searched, *(f"{name}_sd" for name in columns), *(more or _PUBLISHED),
    ]  # fmt: skip
    # Without this, one missing cell would turn the whole column of integers into floats.
    types = dict.fromkeys(("seed", "test_sentences", "runs"), "Int64")
    return pd.DataFrame(rows, columns=listed).astype(types)


def _published(beside: Sequence[Sequence[PublishedFigure]]) -> dict[str, object]:
    row: dict[str, object] = {}
    for number, figures in enumerate(beside, start=1):
        end = "" if number == 1 else f"_{number}"
        row[f"published_system{end}"] = figures[0].system
        row[f"published_treebank{end}"] = figures[0].treebank
        for one in figures:
            row[f"published_{one.split}_{one.figure}{end}"] = one.value
    return row


def to_csv(rows: pd.DataFrame) -> str:
    """The rows as CSV with a heading line."""
    return rows.to_csv(index=False, lineterminator="\n")
