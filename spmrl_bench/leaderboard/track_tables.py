"""The scores of a track beside published ones: a document to read, and all its numbers as CSV.

Kitaev & Klein 2018 select between two lexical models on the dev split of each language and
print dev F1 of both and test F1 of the selected one. The first tables here do that for one
treebank a row; published figures follow (see :mod:`published_tables`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from spmrl_bench.leaderboard.beside import beside_track, published_differences
from spmrl_bench.leaderboard.board import LEVEL, Column, SeedMean, mean_text, track_title
from spmrl_bench.leaderboard.compare import ABSENT, differences
from spmrl_bench.leaderboard.formats import (
    Document,
    Note,
    Table,
    to_latex,
    to_markdown,
    write_tables,
)
from spmrl_bench.leaderboard.multilingual import Average, Setup, TrackScores, score_track
from spmrl_bench.leaderboard.published import PublishedFigure
from spmrl_bench.leaderboard.published_tables import published_tables
from spmrl_bench.leaderboard.record import Record
from spmrl_bench.scoring.significance import TRIALS

#: Of the files of one track.
SUFFIXES = ("md", "csv", "tex")

_COLUMNS = (
    "kind", "comparable", "size", "precision", "settings", "language", "treebank", "system",
    "variant", "selected", "split", "metric", "figure", "value", "sd", "seeds", "p", "significant",
    "source",
)  # fmt: skip


def render_track(
    records: Iterable[Record], track: str, published: Sequence[PublishedFigure]
) -> dict[str, str]:
    """The table of a track in all formats: ``md``, ``csv`` and ``tex``."""
    order = list(dict.fromkeys(figure.variant for figure in published if figure.variant))
    scores = score_track(records, track, variants=order)
    document = track_document(scores, published)
    frame = track_frame(scores, published)
    return {
        "md": to_markdown(document),
        "csv": frame.to_csv(index=False, lineterminator="\n"),
        "tex": to_latex(document),
    }


def write_track(
    records: Iterable[Record], track: str, results_dir: Path, published: Sequence[PublishedFigure]
) -> str:
    """Write the table of a track in all formats, and return it as Markdown.

    Raises:
        SpmrlError: a file cannot be written.
    """
    texts = render_track(records, track, published)
    write_tables({track_file(results_dir, track, suffix): text for suffix, text in texts.items()})
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
        title=f"Scores by language, {track_title(scores.track)}",
        intro=tuple(intro),
        tables=(*tables, *published_tables(scores, published)),
    )


# ---- The table of one setup ----


def _setup_table(track: str, setup: Setup) -> Table:
    columns = [one for one in setup.columns if not one.baseline or one.is_headline]
    # First dev, then test, then what the baselines have of it.
    columns.sort(key=lambda column: (column.split, column.baseline))
    dev, test = ([one for one in columns if one.split == split] for split in ("dev", "test"))
    rows = []
    for row in setup.rows:
        found = {column: row.estimate(column.key, column.system) for column in columns}
        best = row.selected if row.significant else None
        rows.append(
            [
                row.language,
                row.treebank,
                seeds_text(row.seeds),
                *(mean_text(found[one], mark="*" if one.variant == best else "") for one in dev),
                "" if row.p is None else f"{row.p:.4f}",
                row.selected if len(row.settings) > 1 else "",
                *(mean_text(found[one]) for one in test),
            ]
        )
    for average in setup.averages:
        what = f"{len(average.languages)} languages, {_rules(average, setup)}"
        values = [[mean_text(average.values[one]) for one in part] for part in (dev, test)]
        rows.append(["average", what, "", *values[0], "", "", *values[1]])
    titles = [[column.title for column in part] for part in (dev, test)]
    return Table(
        title=f"Model size {setup.name}: {track_title(track)}",
        headings=["language", "treebank", "seeds", *titles[0], "p", "selected", *titles[1]],
        rows=rows,
        numeric=frozenset({*titles[0], "p", *titles[1]}),
        breaks=frozenset({len(setup.rows)}),
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


def _rules(average: Average, setup: Setup) -> str:
    """The name of the parameter set, without its hash; of other metrics their names."""
    sets = [text.partition("(")[0] for key, text in average.convention if key.endswith("prm")]
    return ", ".join([*sets, *(name for name in setup.criterion.metrics if name != "brackets")])


def _notes(setup: Setup) -> list[Note]:
    notes: list[Note] = []
    several = any(
        len(scores) > 1
        for row in setup.rows
        for figures in row.figures.values()
        for scores in figures.values()
    )
    if several:
        notes.append("±: standard deviation over the seeds.")
    if tested := sum(bool(row.contests) for row in setup.rows):
        summed = ", with the counts of a sentence summed over the seeds that both have"
        notes.append(
            f"`*`: better than every other variant on dev with p < {LEVEL:g}. p is the largest of "
            "the selected variant against the others, by approximate randomisation over sentences "
            f"({TRIALS:,} swaps{summed if several else ''}): it is about the sentences, not about "
            f"other trainings, and not corrected for the number of treebanks ({tested})."
        )
    if setup.averages and len(setup.languages) < len(setup.rows):
        notes.append(
            "An average counts each language once, with the mean of its treebanks where it has "
            "several."
        )
    conventions = {row.convention: dict(row.convention) for row in setup.rows}
    if len(conventions) > 1:
        first, *others = conventions.values()
        keys = sorted({key for one in others for key, _, _ in differences(first, one)})
        listed = "; ".join(
            f"{', '.join(row.treebank for row in setup.rows if row.convention == convention)} with "
            + ", ".join(f"{key} {found.get(key, ABSENT)}" for key in keys)
            for convention, found in conventions.items()
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
    notes += [note for row in setup.rows for note in row.notes]
    signatures = tuple(f"{row.treebank}: `{row.signature}`" for row in setup.rows)
    return [*notes, *setup.left_out, signatures]


# ---- All numbers ----


def track_frame(scores: TrackScores, published: Sequence[PublishedFigure]) -> pd.DataFrame:
    """One row for each number, unrounded; what does not apply is missing.

    ``kind`` is ``own``, ``average``, ``baseline``, ``difference`` or ``published``;
    ``comparable`` says of published figures whether there are own scores of the treebank. Of
    dev, the figure is the one that selects.
    """
    lines: list[Mapping[str, Any]] = []
    for setup in scores.setups:
        known = {"size": setup.size, "precision": setup.precision, "settings": setup.settings}
        about = {key: value or None for key, value in known.items()}
        lines += [about | line for line in _own_numbers(setup)]
        lines += [
            about
            | _place(one.published)
            | {"kind": "difference", "variant": one.variant, "value": one.points}
            for one in published_differences(setup, published)
        ]
    lines += [
        _place(figure)
        | {
            "kind": "published",
            "comparable": comparable,
            "variant": figure.variant or None,
            "settings": figure.setting or None,
            "value": figure.value,
        }
        for figure, comparable in beside_track(published, scores)
    ]
    frame = pd.DataFrame(lines, columns=list(_COLUMNS)).dropna(subset="value")
    return frame.astype(dict.fromkeys(("comparable", "selected", "significant"), "boolean"))


def _place(found: PublishedFigure | Column) -> dict[str, Any]:
    names = ("language", "treebank", "system", "split", "metric", "figure", "source")
    return {name: getattr(found, name) for name in names if hasattr(found, name)}


def _own_numbers(setup: Setup) -> Iterator[dict[str, Any]]:
    """The scores of each treebank and its baselines, and the averages; some have no value."""
    for row in setup.rows:
        for column in setup.columns:
            variant = column.variant or row.selected
            chosen, contest = variant == row.selected, row.contests.get(column.variant)
            place = {"language": row.language, "treebank": row.treebank}
            line = place | _number(column, row.estimate(column.key, column.system))
            if column.baseline:
                yield line | {"kind": "baseline"}
                continue
            yield line | {
                "kind": "own",
                "variant": variant,
                "selected": chosen,
                "seeds": seeds_text(sorted(row.scores(column.key, variant))),
                "p": contest.p_randomisation if contest else None,
                "significant": row.significant if chosen and column.variant else None,
            }
    for average in setup.averages:
        language = f"average of {len(average.languages)}"
        place = {"language": language, "treebank": _rules(average, setup)}
        for column, value in average.values.items():
            chosen = column.split == "test" and not column.baseline
            more = {"kind": "average", "selected": chosen or None}
            yield place | _number(column, value) | more


def _number(column: Column, found: SeedMean | None) -> dict[str, Any]:
    return _place(column) | {
        "system": "spmrl_bench",
        "variant": column.system or None,
        "value": found.mean if found else None,
        "sd": found.sd if found else None,
    }
