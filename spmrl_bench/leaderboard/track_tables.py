"""The scores of a track beside published ones: a document to read, and all its numbers as CSV.

Kitaev & Klein 2018 select between two lexical models on the dev split of each language and
print dev F1 of both and test F1 of the selected one. The first tables here do that for one
treebank a row; published figures follow (see :mod:`published_tables`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from spmrl_bench.errors import SpmrlError
from spmrl_bench.files import write_text
from spmrl_bench.leaderboard.comparison import ABSENT, differences
from spmrl_bench.leaderboard.estimates import Estimate, estimate_text
from spmrl_bench.leaderboard.formats import Document, Note, Table, to_html, to_latex, to_markdown
from spmrl_bench.leaderboard.frame import headline_terms
from spmrl_bench.leaderboard.published import PublishedFigure
from spmrl_bench.leaderboard.published_tables import published_differences, published_tables
from spmrl_bench.leaderboard.record import Record
from spmrl_bench.leaderboard.setup import LEVEL, Column, Convention, Setup, TrackScores
from spmrl_bench.leaderboard.track import score_track
from spmrl_bench.scoring.significance import TRIALS

#: Of the files of one track.
SUFFIXES = ("md", "csv", "tex", "html")

_COLUMNS = (
    "kind", "comparable", "size", "precision", "settings", "language", "treebank", "system",
    "variant", "selected", "split", "metric", "figure", "value", "sd", "seeds", "p", "significant",
    "source",
)  # fmt: skip


def render_track(
    records: Iterable[Record], track: str, published: Sequence[PublishedFigure]
) -> dict[str, str]:
    """The table of a track in all formats: ``md``, ``csv``, ``tex`` and ``html``."""
    order = list(dict.fromkeys(figure.variant for figure in published if figure.variant))
    scores = score_track(records, track, variants=order)
    document = track_document(scores, published)
    frame = track_frame(scores, published)
    return {
        "md": to_markdown(document),
        "csv": frame.to_csv(index=False, lineterminator="\n"),
        "tex": to_latex(document),
        "html": to_html(document),
    }


def write_track(
    records: Iterable[Record], track: str, results_dir: Path, published: Sequence[PublishedFigure]
) -> str:
    """Write the table of a track in all formats, and return it as Markdown.

    Raises:
        SpmrlError: a file cannot be written.
    """
    texts = render_track(records, track, published)
    for suffix, text in texts.items():
        path = track_file(results_dir, track, suffix)
        try:
            write_text(path, text)
        except OSError as error:
            raise SpmrlError(
                f"{path}: cannot write the table: {error.strerror or error}"
            ) from error
    return texts["md"]


def track_file(results_dir: Path, track: str, suffix: str) -> Path:
    """Where the table of a track is written."""
    return results_dir / f"multilingual-{track}.{suffix}"


def track_document(scores: TrackScores, published: Sequence[PublishedFigure]) -> Document:
    """The scores of a track, one table for each setup, and published ones."""
    titles = dict.fromkeys(setup.criterion.title for setup in scores.setups)
    intro = [
        "In percent, micro-averaged over the sentences of a split. The variant with the best mean "
        f"{' or '.join(titles)} on dev is scored on test.",
        *scores.left_out,
    ]
    tables = [_setup_table(scores.track, setup) for setup in scores.setups]
    return Document(
        title=f"Scores by language, {scores.track} track",
        intro=tuple(intro),
        tables=(*tables, *published_tables(scores, published)),
    )


# ---- The table of one setup ----


def _setup_table(track: str, setup: Setup) -> Table:
    headlines = headline_terms(setup.criterion.metrics)
    columns = [
        column
        for column in setup.columns
        if not column.baseline or (column.metric, column.figure) in headlines
    ]
    # First dev, then test, then what the baselines have of it.
    columns.sort(key=lambda column: (column.split, column.baseline))
    dev, test = ([one for one in columns if one.split == split] for split in ("dev", "test"))
    lines = [
        [
            row.language,
            row.treebank,
            seeds_text(row.seeds),
            *(
                estimate_text(
                    Estimate.of(row.scores(column).values()),
                    mark="*" if column.variant == row.selected and row.significant else "",
                )
                for column in dev
            ),
            "" if row.p is None else f"{row.p:.4f}",
            row.selected if len(row.dev) > 1 else "",
            *(estimate_text(Estimate.of(row.scores(column).values())) for column in test),
        ]
        for row in setup.rows
    ]
    lines += [
        [
            "average",
            f"{len(average.languages)} languages, {_rules(average.convention, setup)}",
            "",
            *(estimate_text(average.values[column]) for column in dev),
            "",
            "",
            *(estimate_text(average.values[column]) for column in test),
        ]
        for average in setup.averages
    ]
    titles = [[column.title for column in part] for part in (dev, test)]
    names = ["language", "treebank", "seeds", *titles[0], "p", "selected", *titles[1]]
    return Table(
        title=f"Model size {setup.name}: {track} track",
        frame=pd.DataFrame(lines, columns=names),
        numeric=frozenset({*titles[0], "p", *titles[1]}),
        breaks=frozenset({len(setup.rows)} if setup.averages else ()),
        strong=frozenset(
            (n, 3 + setup.variants.index(row.selected)) for n, row in enumerate(setup.rows)
        ),
        notes=tuple(_notes(setup)),
    )


def seeds_text(seeds: Sequence[int]) -> str:
    """``1 to 5``, or the seeds one by one."""
    if len(seeds) > 2 and list(seeds) == list(range(seeds[0], seeds[0] + len(seeds))):
        return f"{seeds[0]} to {seeds[-1]}"
    return ", ".join(map(str, seeds))


def _rules(convention: Convention, setup: Setup) -> str:
    """The name of the parameter set, without its hash; of other metrics their names."""
    parts = [value.partition("(")[0] for key, value in convention if key.split()[-1] == "prm"]
    return ", ".join([*parts, *(name for name in setup.criterion.metrics if name != "brackets")])


def _notes(setup: Setup) -> list[Note]:
    notes: list[Note] = []
    several = any(len(scores) > 1 for row in setup.rows for scores in row.dev.values())
    if several:
        notes.append("±: standard deviation over the seeds.")
    tested = [row for row in setup.rows if row.contests]
    if tested:
        summed = (
            ", with the counts of a sentence summed over the seeds that both have"
            if several
            else ""
        )
        notes.append(
            f"`*`: better than every other variant on dev with p < {LEVEL:g}. p is the largest of "
            "the selected variant against the others, by approximate randomisation over sentences "
            f"({TRIALS:,} swaps{summed}): it is about the sentences, not about other trainings, "
            f"and not corrected for the number of treebanks ({len(tested)})."
        )
    notes += _average_notes(setup)
    notes += [note for row in setup.rows for note in row.notes]
    signatures = tuple(f"{row.treebank}: `{row.signature}`" for row in setup.rows)
    return [*notes, *setup.left_out, signatures]


def _average_notes(setup: Setup) -> list[str]:
    notes = []
    languages = [row.language for row in setup.rows]
    if setup.averages and len(set(languages)) < len(languages):
        notes.append(
            "An average counts each language once, with the mean of its treebanks where it has "
            "several."
        )
    conventions = list(dict.fromkeys(row.convention for row in setup.rows))
    if len(conventions) > 1:
        first = dict(conventions[0])
        keys = sorted({key for one in conventions for key, _, _ in differences(first, dict(one))})
        listed = "; ".join(
            f"{', '.join(row.treebank for row in setup.rows if row.convention == one)} with "
            + ", ".join(f"{key} {dict(one).get(key, ABSENT)}" for key in keys)
            for one in conventions
        )
        notes.append(f"Scores that were counted in different ways are not averaged: {listed}.")
    for average in setup.averages:
        values = average.values.items()
        lacking = [one.title for one, value in values if value is None and not one.baseline]
        if lacking:
            notes.append(
                f"No average of {', '.join(lacking)} over {len(average.languages)} languages: at "
                "least one has no such score."
            )
    return notes


# ---- All numbers ----


def track_frame(scores: TrackScores, published: Sequence[PublishedFigure]) -> pd.DataFrame:
    """One row for each number, unrounded; what does not apply is missing.

    ``kind`` is ``own``, ``average``, ``baseline``, ``difference`` or ``published``;
    ``comparable`` says of published figures whether there are own scores of the treebank. Of
    dev, the figure is the one that selects.
    """
    lines: list[Mapping[str, Any]] = []
    for setup in scores.setups:
        lines += _own_numbers(setup)
        lines += _difference_numbers(setup, published)
    rows = [row for setup in scores.setups for row in setup.rows]
    languages, treebanks = {row.language for row in rows}, {row.treebank for row in rows}
    # Those of other systems first.
    for figure in sorted(published, key=lambda figure: bool(figure.variant)):
        if figure.language in languages:
            lines.append(
                {
                    "kind": "published",
                    "comparable": figure.treebank in treebanks,
                    **_place(figure),
                    "language": figure.language,
                    "variant": figure.variant or None,
                    "settings": figure.setting or None,
                    "value": figure.value,
                }
            )
    frame = pd.DataFrame(lines, columns=list(_COLUMNS))
    return frame.astype(dict.fromkeys(("comparable", "selected", "significant"), "boolean"))


def _place(figure: PublishedFigure) -> dict[str, Any]:
    names = ("treebank", "system", "split", "metric", "figure", "source")
    return {name: getattr(figure, name) for name in names}


def _about(setup: Setup) -> dict[str, Any]:
    known = {"size": setup.size, "precision": setup.precision, "settings": setup.settings}
    return {key: value or None for key, value in known.items()}


def _own_numbers(setup: Setup) -> list[Mapping[str, Any]]:
    lines: list[Mapping[str, Any]] = []

    def add(
        kind: str, place: Mapping[str, Any], column: Column, found: Estimate | None, **more: object
    ) -> None:
        if found is not None:
            about = {name: getattr(column, name) for name in ("split", "metric", "figure")}
            numbers = {"value": found.mean, "sd": found.sd, "system": "spmrl_bench"}
            variant = {"variant": column.baseline or column.variant or None}
            lines.append(
                {"kind": kind, **_about(setup), **place, **about, **numbers, **variant, **more}
            )

    for row in setup.rows:
        place = {"language": row.language, "treebank": row.treebank}
        for column in setup.columns:
            scores = row.scores(column)
            estimate = Estimate.of(scores.values())
            if column.baseline:
                add("baseline", place, column, estimate)
                continue
            variant = column.variant or row.selected
            chosen, contest = variant == row.selected, row.contests.get(column.variant)
            add(
                "own",
                place,
                column,
                estimate,
                variant=variant,
                selected=chosen,
                seeds=seeds_text(sorted(scores)),
                p=contest.p_randomisation if contest else None,
                significant=row.significant if chosen and column.variant else None,
            )
    for average in setup.averages:
        place = {"language": f"average of {len(average.languages)}"}
        place["treebank"] = _rules(average.convention, setup)
        for column, value in average.values.items():
            of_selected = column.split == "test" and not column.baseline
            add("average", place, column, value, selected=of_selected or None)
    return lines


def _difference_numbers(
    setup: Setup, published: Sequence[PublishedFigure]
) -> list[Mapping[str, Any]]:
    return [
        {
            "kind": "difference",
            **_about(setup),
            **_place(one.published),
            "language": one.row.language,
            "variant": one.variant,
            "value": one.points,
        }
        for one in published_differences(setup, published)
    ]
