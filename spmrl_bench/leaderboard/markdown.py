"""The results of each treebank for readers: in a terminal, in a file, on a page.

A variant has one row. Where it was trained from several seeds, the row shows the mean of the
runs and, behind ``±``, their sample standard deviation: what a reader wants to know of a variant
is where its scores lie and how far they spread. The scores of the single runs stand below the
table, one line for each variant, and in the CSV, one row for each run.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pandas as pd

from spmrl_bench.leaderboard.estimates import Estimate, estimate_text
from spmrl_bench.leaderboard.formats import Document, Note, Table, to_markdown
from spmrl_bench.leaderboard.frame import (
    GROUP,
    counting_differences,
    each,
    headline_terms,
    parts,
    records_frame,
)
from spmrl_bench.leaderboard.published import PublishedFigure
from spmrl_bench.leaderboard.record import Record
from spmrl_bench.leaderboard.table import figure_columns, metrics_of, result_rows, shown_beside
from spmrl_bench.scoring.metric import metric_named

_COUNTS = {"test_sentences": "sentences", "tokens_per_second": "tokens/s"}


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
    metrics, results = metrics_of(group), result_rows(group, published)
    shown = results[~results["below"]]
    figures = [
        column
        for column in figure_columns(metrics)
        # Few parsers tag.
        if column.key[1] or shown[column.name].notna().any()
    ]
    columns = {
        "variant": list(shown["name"]),
        "size": _text(shown["size"]),
        "seed": [
            f"mean of {row.runs}" if row.kind == "mean" else _whole(row.seed) for row in each(shown)
        ],
        **{column.heading: _estimates(shown, column.name) for column in figures},
        **{heading: [_whole(cell) for cell in shown[name]] for name, heading in _COUNTS.items()},
        # Signatures are longer than all the rest of a row: number them and write them below.
        "signature": [f"[{n}]" for n in range(1, len(shown) + 1)],
        **_published_columns(treebank, shown, published),
    }
    suffix = f", table {number}" if len(siblings) > 1 else ""
    numeric = {"seed", *_COUNTS.values(), *(column.heading for column in figures)}
    signatures = tuple(f"[{n}] `{text}`" for n, text in enumerate(shown["signature"], start=1))
    return Table(
        title=f"{treebank} ({track} track{suffix})",
        frame=pd.DataFrame(columns),
        numeric=frozenset(numeric),
        notes=(
            signatures,
            *_runs(results, metrics),
            *_sources(shown, published),
            *_older(group),
            *_others(place, siblings),
        ),
    )


def _text(cells: pd.Series) -> list[str]:
    return ["" if pd.isna(cell) else str(cell) for cell in cells]


def _whole(cell: float | None) -> str:
    return "" if pd.isna(cell) else f"{cell:.0f}"


def _estimates(rows: pd.DataFrame, name: str) -> list[str]:
    numbers = rows[[name, f"{name}_sd"]].astype(object)
    pairs = numbers.where(numbers.notna(), None).itertuples(index=False)
    return [estimate_text(None if mean is None else Estimate(mean, sd, 0)) for mean, sd in pairs]


def _scores(pairs: Iterable[tuple[str, float]]) -> str:
    """Those scores that there are, each with what it is of."""
    return ", ".join(f"{what} {value:.2f}" for what, value in pairs if not pd.isna(value))


def _runs(results: pd.DataFrame, metrics: Sequence[str]) -> list[Note]:
    """What ± means and the headlines of the single runs, where there are means."""
    headlines = headline_terms(metrics)
    titles = {name: metric_named(name).title(figure) for name, figure in headlines}
    columns = [
        (column.name, column.key[0] if len(metrics) == 1 else column.heading)
        for column in figure_columns(metrics)
        if column.key[1:] in headlines
    ]
    found: dict[tuple[str, str], list[str]] = {}
    for row in each(results):
        if row.below:
            scores = _scores((what, getattr(row, name)) for name, what in columns)
            found.setdefault((row.name, row.size), []).append(f"seed {row.seed} {scores}")
    lines = tuple(f"{name}: {'; '.join(runs)}" for (name, _), runs in found.items())
    heading = "Means over seeds, ± their sample standard deviation. "
    return [f"{heading}{', '.join(titles.values())} of each run:", lines] if lines else []


# ---- Published figures ----


def _published_columns(
    treebank: str, rows: pd.DataFrame, published: Sequence[PublishedFigure]
) -> dict[str, list[str]]:
    """A column for each system, treebank and setting that has a figure beside one of the rows."""
    cells: dict[str, dict[int, str]] = {}
    for row in each(rows[~rows["altered"]]):
        for (system, bank, setting), found in shown_beside(
            row.language, row.variant, published
        ).items():
            title = metric_named(found[0].metric).title(found[0].figure)
            which = "this treebank" if bank == treebank else f"another treebank: {bank}"
            heading = f"{system} {title} ({'; '.join(filter(None, (which, setting)))})"
            text = _scores((figure.split, figure.value) for figure in found)
            cells.setdefault(heading, {})[row.Index] = text
    return {
        heading: [found.get(index, "") for index in rows.index] for heading, found in cells.items()
    }


def _sources(rows: pd.DataFrame, published: Sequence[PublishedFigure]) -> list[str]:
    """Where the published figures are from, a sentence for each system."""
    variants = {(row.language, row.variant) for row in each(rows[~rows["altered"]])}
    sources: dict[str, list[str]] = {}
    for figure in published:
        if figure.variant and (figure.language, figure.variant) in variants:
            sources.setdefault(figure.system, []).append(figure.source)
    notes = []
    for system, found in sources.items():
        # One source may be another with a remark: the longer one says both.
        whole = [
            one
            for one in dict.fromkeys(found)
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
