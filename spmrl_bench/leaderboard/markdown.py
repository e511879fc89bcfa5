"""The results of each treebank for readers: in a terminal, in a file, on a page.

A variant has one row. Where it was trained from several seeds, the row shows the mean of the
runs and, behind ``±``, their sample standard deviation: what a reader wants to know of a variant
is where its scores lie and how far they spread. The scores of the single runs stand below the
table, one line for each variant, and in the CSV, one row for each run.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pandas as pd

from spmrl_bench.leaderboard.board import Column, mean_text, named_columns, track_title
from spmrl_bench.leaderboard.formats import Document, Note, Table, to_markdown
from spmrl_bench.leaderboard.frame import GROUP, counting_differences, parts, records_frame
from spmrl_bench.leaderboard.published import PublishedFigure
from spmrl_bench.leaderboard.record import Record
from spmrl_bench.leaderboard.tables import Result, group_results, metrics_of
from spmrl_bench.scoring.metric import metric_named


def results_markdown(records: Iterable[Record], published: Iterable[PublishedFigure]) -> str:
    """The tables of records as Markdown."""
    return to_markdown(results_document(records_frame(records), list(published)))


def results_document(frame: pd.DataFrame, published: Sequence[PublishedFigure]) -> Document:
    """One table for each group of the frame, with its notes."""
    groups = parts(frame, GROUP)
    tables = []
    for place, rows in groups.items():
        siblings = {other: groups[other] for other in groups if other[:2] == place[:2]}
        tables.append(_table(place, rows, siblings, published))
    return Document("", tables=tuple(tables))


Place = tuple[str, str, int]
"""Track, treebank and number of a group."""


def _table(
    place: Place,
    group: pd.DataFrame,
    siblings: dict[Place, pd.DataFrame],
    published: Sequence[PublishedFigure],
) -> Table:
    track, treebank, number = place
    results = group_results(group, published)
    shown = [one for one in results if not one.below]
    # Few parsers tag.
    figures = [
        column
        for column in named_columns(metrics_of(group)).values()
        if column.metric or any(column.key in one.figures for one in shown)
    ]
    columns = {
        "variant": [one.name for one in shown],
        "size": [one.size or "" for one in shown],
        "seed": [
            f"mean of {one.runs}" if one.kind == "mean" else _whole(one.seed) for one in shown
        ],
        **{
            column.title: [mean_text(one.figures.get(column.key)) for one in shown]
            for column in figures
        },
        "sentences": [_whole(one.test_sentences) for one in shown],
        "tokens/s": [_whole(one.tokens_per_second) for one in shown],
        # Signatures are longer than all the rest of a row: number them and write them below.
        "signature": [f"[{n}]" for n in range(1, len(shown) + 1)],
        **_searched(shown),
        **_published_columns(treebank, shown),
    }
    suffix = f", table {number}" if len(siblings) > 1 else ""
    numeric = {"seed", "sentences", "tokens/s", *(column.title for column in figures)}
    signatures = tuple(
        f"[{n}] `{one.signature}` {_made(one)}" for n, one in enumerate(shown, start=1)
    )
    return Table(
        title=f"{treebank} ({track_title(track)}{suffix})",
        headings=list(columns),
        rows=list(zip(*columns.values(), strict=True)),
        numeric=frozenset(numeric),
        notes=(
            signatures,
            *_runs(results, [column for column in figures if column.is_headline]),
            *_sources(shown),
            *_systems(group),
            *_older(group),
            *_others(place, siblings),
        ),
    )


def _searched(shown: Sequence[Result]) -> dict[str, list[str]]:
    """A column with what was spent on searches, where something was."""
    listed = [one.searched for one in shown]
    return {"settings": listed} if any(listed) else {}


def _made(result: Result) -> str:
    """When it was scored, and by which state of the program."""
    span = " to ".join(dict.fromkeys((result.dates[0], result.dates[-1])))
    return ", ".join([span, *(f"commit {commit}" for commit in result.commits)])


def _whole(cell: float | None) -> str:
    return "" if cell is None else f"{cell:.0f}"


def _runs(results: Sequence[Result], headlines: Sequence[Column]) -> list[Note]:
    """What ± means and the headlines of the single runs, where there are means."""
    titles = {
        column.metric: metric_named(column.metric).title(column.figure) for column in headlines
    }
    found: dict[tuple[str, str | None], list[str]] = {}
    for one in results:
        if one.below:
            scores = ", ".join(
                f"{column.split if len(titles) == 1 else column.title} "
                f"{one.figures[column.key].mean:.2f}"
                for column in headlines
                if column.key in one.figures
            )
            found.setdefault((one.name, one.size), []).append(f"seed {one.seed} {scores}")
    lines = tuple(f"{name}: {'; '.join(runs)}" for (name, _), runs in found.items())
    heading = "Means over seeds, ± their sample standard deviation. "
    return [f"{heading}{', '.join(titles.values())} of each run:", lines] if lines else []


def _systems(group: pd.DataFrame) -> list[str]:
    """How often systems of others were scored on test; dev chose none of our parsers so."""
    rows = group[group["newest"] & group["system"]].drop_duplicates("record")
    times = [
        f"{row.variant}: {row.tested} output{'' if row.tested == 1 else 's'} scored on test"
        for row in rows.itertuples()
    ]
    return [f"Systems of others. {'; '.join(times)}."] if times else []


# ---- Published figures ----


def _published_columns(treebank: str, shown: Sequence[Result]) -> dict[str, list[str]]:
    """A column for each system, treebank and setting that has a figure beside one of the rows."""
    cells: dict[str, list[str]] = {}
    for row, result in enumerate(shown):
        for found in result.beside:
            first = found[0]
            same = first.treebank == treebank
            which = "this treebank" if same else f"another treebank: {first.treebank}"
            about = "; ".join(filter(None, (which, first.setting)))
            heading = f"{first.system} {metric_named(first.metric).title(first.figure)} ({about})"
            column = cells.setdefault(heading, [""] * len(shown))
            column[row] = ", ".join(f"{one.split} {one.value:.2f}" for one in found)
    return cells


def _sources(shown: Sequence[Result]) -> list[str]:
    """Where the published figures are from, a sentence for each system."""
    sources: dict[str, dict[str, None]] = {}
    for one in (one for result in shown for figures in result.beside for one in figures):
        sources.setdefault(one.system, {})[one.source] = None
    notes = []
    for system, found in sources.items():
        # One source may be another with a remark: the longer one says both.
        whole = [
            one
            for one in found
            if not any(other != one and other.startswith(one) for other in found)
        ]
        notes.append(f"{system}: {'; '.join(whole)}.")
    return notes


# ---- What is not in the table ----


def _older(group: pd.DataFrame) -> list[str]:
    number = group.loc[~group["newest"], "record"].nunique()
    records = "record is" if number == 1 else "records are"
    return [f"Newest record of each run; {number} older {records} not shown."] if number else []


def _others(place: Place, siblings: dict[Place, pd.DataFrame]) -> list[str]:
    """In what the other tables of the treebank were counted differently."""
    notes = []
    for other, rows in siblings.items():
        if other != place:
            differing = counting_differences(siblings[place], rows)
            listed = "; ".join(
                f"{key} is {here} here, {there} there" for key, here, there in differing
            )
            notes.append(f"Does not compare with table {other[2]} of {other[1]}: {listed}.")
    return notes
