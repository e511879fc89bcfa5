"""The scores of a track beside published ones: a document to read, and all its numbers as CSV.

Kitaev & Klein 2018 select between two lexical models on the dev split of each language and
print dev F1 of both and test F1 of the selected one. The first tables here do that for one
treebank a row; published figures follow (see :mod:`published_tables`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import pandas as pd

from spmrl_bench.errors import SpmrlError
from spmrl_bench.files import write_text
from spmrl_bench.leaderboard.comparison import ABSENT
from spmrl_bench.leaderboard.estimates import Estimate
from spmrl_bench.leaderboard.formats import Document, Table, to_html, to_latex, to_markdown
from spmrl_bench.leaderboard.multilingual import (
    LEVEL,
    METRICS,
    Average,
    Row,
    System,
    TrackScores,
    score_track,
)
from spmrl_bench.leaderboard.published import Figure, PriorFigure
from spmrl_bench.leaderboard.published_tables import differences, published_tables, shown, title_of
from spmrl_bench.leaderboard.record import Record
from spmrl_bench.leaderboard.series import seeds_text
from spmrl_bench.scoring.significance import TRIALS

BASELINE = "right-branching"
#: Of the files of one track.
SUFFIXES = ("md", "csv", "tex", "html")

_COLUMNS = (
    "kind",
    "comparable",
    "size",
    "precision",
    "settings",
    "language",
    "treebank",
    "system",
    "variant",
    "selected",
    "split",
    "metric",
    "value",
    "sd",
    "seeds",
    "p",
    "significant",
    "source",
)


def render_track(
    records: Iterable[Record],
    track: str,
    figures: Sequence[Figure],
    prior: Sequence[PriorFigure],
) -> dict[str, str]:
    """The table of a track in all formats: ``md``, ``csv``, ``tex`` and ``html``."""
    order = list(dict.fromkeys(figure.variant for figure in figures))
    scores = score_track(records, track, variants=order)
    document = track_document(scores, figures, prior)
    frame = track_frame(scores, figures, prior)
    return {
        "md": to_markdown(document),
        "csv": frame.to_csv(index=False, lineterminator="\n"),
        "tex": to_latex(document),
        "html": to_html(document),
    }


def write_track(
    records: Iterable[Record],
    track: str,
    results_dir: Path,
    figures: Sequence[Figure],
    prior: Sequence[PriorFigure],
) -> str:
    """Write the table of a track in all formats, and return it as Markdown.

    Raises:
        SpmrlError: a file cannot be written.
    """
    texts = render_track(records, track, figures, prior)
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


def track_document(
    scores: TrackScores, figures: Sequence[Figure], prior: Sequence[PriorFigure]
) -> Document:
    """The scores of a track, one table for each system, and published ones."""
    intro = [
        "Labelled brackets in percent, micro-averaged over the sentences of a split. The variant "
        "with the best mean F1 on dev is scored on test.",
        *scores.left_out,
    ]
    tables = [_system_table(scores.track, system) for system in scores.systems]
    return Document(
        title=f"Scores by language, {scores.track} track",
        intro=tuple(intro),
        tables=(*tables, *published_tables(scores, figures, prior)),
    )


# ---- The table of one system ----


def _system_table(track: str, system: System) -> Table:
    dev = [f"dev F1 {variant}" for variant in system.variants]
    test = ["test recall", "test precision", "test F1"]
    columns = ["language", "treebank", "seeds", *dev, "p", "selected", *test]
    columns.append(f"test F1 {BASELINE}")
    lines = [_row_line(system, row) for row in system.rows]
    lines += [_average_line(system, average) for average in system.averages]
    strong = {
        (number, 3 + system.variants.index(row.selected)) for number, row in enumerate(system.rows)
    }
    return Table(
        title=f"Model size {system.name}: {track} track",
        frame=pd.DataFrame(lines, columns=columns),
        numeric=frozenset({*dev, "p", *test, columns[-1]}),
        breaks=frozenset({len(system.rows)} if system.averages else ()),
        strong=frozenset(strong),
        notes=tuple(_notes(system)),
        items=tuple(_signatures(system)),
    )


def _row_line(system: System, row: Row) -> list[str]:
    dev = []
    for variant in system.variants:
        estimate = Estimate.of(row.dev.get(variant, {}))
        marked = variant == row.selected and row.significant
        dev.append("" if estimate is None else shown(estimate, mark="*" if marked else ""))
    return [
        row.language,
        row.treebank,
        seeds_text(row.seeds),
        *dev,
        "" if row.p is None else f"{row.p:.4f}",
        row.selected if len(row.records) > 1 else "",
        *(_cell(Estimate.of(row.test.get(metric, {}))) for metric in METRICS),
        f"{row.baseline['f1']:.2f}" if "f1" in row.baseline else "",
    ]


def _average_line(system: System, average: Average) -> list[str]:
    return [
        "average",
        f"{len(average.languages)} languages, {_rules(average.convention)}",
        "",
        *(_cell(average.dev.get(variant)) for variant in system.variants),
        "",
        "",
        *(_cell(average.test[metric]) for metric in METRICS),
        _cell(average.baseline["f1"]),
    ]


def _cell(estimate: Estimate | None) -> str:
    return "" if estimate is None else shown(estimate)


def _rules(convention: Iterable[tuple[str, str]]) -> str:
    """The name of the parameter set, without its hash."""
    return dict(convention).get("prm", ABSENT).partition("(")[0]


def _notes(system: System) -> list[str]:
    notes = []
    estimates = [Estimate.of(row.dev.get(name, {})) for row in system.rows for name in row.dev]
    several = any(estimate is not None and estimate.seeds > 1 for estimate in estimates)
    if several:
        notes.append("±: standard deviation over the seeds.")
    tested = [row for row in system.rows if row.contests]
    if tested:
        summed = (
            ", with the brackets of a sentence summed over the seeds that both have"
            if several
            else ""
        )
        notes.append(
            f"`*`: better than every other variant on dev with p < {LEVEL:g}. p is the largest of "
            "the selected variant against the others, by approximate randomisation over sentences "
            f"({TRIALS:,} swaps{summed}): it is about the sentences, not about other trainings, "
            f"and not corrected for the number of treebanks ({len(tested)})."
        )
    notes += _average_notes(system)
    notes += [note for row in system.rows for note in row.notes]
    return [*notes, *system.left_out]


def _average_notes(system: System) -> list[str]:
    notes = []
    counts = [row.language for row in system.rows]
    if system.averages and len(set(counts)) < len(counts):
        notes.append(
            "An average counts each language once, with the mean of its treebanks where it has "
            "several."
        )
    conventions = list(dict.fromkeys(row.convention for row in system.rows))
    if len(conventions) > 1:
        keys = sorted({key for convention in conventions for key, _ in convention})
        differing = [
            key for key in keys if len({dict(one).get(key, ABSENT) for one in conventions}) > 1
        ]
        listed = "; ".join(
            f"{', '.join(row.treebank for row in system.rows if row.convention == one)} with "
            + ", ".join(f"{key} {dict(one).get(key, ABSENT)}" for key in differing)
            for one in conventions
        )
        notes.append(f"Scores that were counted in different ways are not averaged: {listed}.")
    for average in system.averages:
        lacking = [
            f"dev F1 {name}" for name in system.variants if average.dev.get(name) is None
        ] + [f"test {title_of(name)}" for name in METRICS if average.test[name] is None]
        if lacking:
            notes.append(
                f"No average of {', '.join(lacking)} over {len(average.languages)} languages: at "
                "least one has no such score."
            )
    return notes


def _signatures(system: System) -> list[str]:
    """The signature of each row: of its test scores, or of dev where it has none."""
    items = []
    for row in system.rows:
        runs = row.records[row.selected]
        newest = next(iter(row.tested.values()), None) or next(iter(runs.values()))
        result = newest.test or newest.dev
        seeds = "+".join(map(str, row.test["f1"] if row.test.get("f1") else sorted(runs)))
        parts = result.signature.split("|")
        signed = (f"seed:{seeds}" if part.startswith("seed:") else part for part in parts)
        items.append(f"{row.treebank}: `{'|'.join(signed)}`")
    return items


# ---- All numbers ----


def track_frame(
    scores: TrackScores, figures: Sequence[Figure], prior: Sequence[PriorFigure]
) -> pd.DataFrame:
    """One row for each number, unrounded; what does not apply is missing.

    ``kind`` is ``own``, ``average``, ``baseline``, ``difference`` or ``published``;
    ``comparable`` says of published figures whether there are own scores of the treebank.
    """
    lines: list[Mapping[str, object]] = []
    for system in scores.systems:
        lines += _own_numbers(system)
        lines += _difference_numbers(system, figures)
    rows = [row for system in scores.systems for row in system.rows]
    languages, treebanks = {row.language for row in rows}, {row.treebank for row in rows}
    published: list[PriorFigure | Figure] = [*prior, *figures]
    for figure in published:
        if figure.language in languages:
            lines.append(
                {
                    "kind": "published",
                    "comparable": figure.treebank in treebanks,
                    **{
                        name: getattr(figure, name)
                        for name in ("language", "treebank", "system", "split", "metric", "value")
                    },
                    "variant": getattr(figure, "variant", None),
                    "settings": getattr(figure, "setting", None) or None,
                    "source": figure.source,
                }
            )
    frame = pd.DataFrame(lines, columns=list(_COLUMNS))
    return frame.astype(dict.fromkeys(("comparable", "selected", "significant"), "boolean"))


def _own_numbers(system: System) -> list[Mapping[str, object]]:
    known: dict[str, object] = {
        "size": system.size,
        "precision": system.precision or None,
        "settings": system.settings or None,
        "system": "spmrl_bench",
    }
    lines: list[Mapping[str, object]] = []

    def add(kind: str, estimate: Estimate | None, seeds: str = "", **more: object) -> None:
        if estimate is not None:
            numbers = {"value": estimate.mean, "sd": estimate.sd, "seeds": seeds or None}
            lines.append({"kind": kind, **known, **more, **numbers})

    for row in system.rows:
        place = {"language": row.language, "treebank": row.treebank}
        for variant, by_seed in row.dev.items():
            contest = row.contests.get(variant)
            add(
                "own",
                Estimate.of(by_seed),
                seeds_text(sorted(by_seed)),
                **place,
                variant=variant,
                selected=variant == row.selected,
                split="dev",
                metric="f1",
                p=contest.p_randomisation if contest else None,
                significant=row.significant if variant == row.selected else None,
            )
        for metric in METRICS:
            by_seed = row.test.get(metric, {})
            found = {**place, "split": "test", "metric": metric}
            seeds = seeds_text(sorted(by_seed))
            add("own", Estimate.of(by_seed), seeds, **found, variant=row.selected, selected=True)
            base = {0: row.baseline[metric]} if metric in row.baseline else {}
            add("baseline", Estimate.of(base), **found, variant=BASELINE)
    for average in system.averages:
        place = {"language": f"average of {len(average.languages)}"}
        place["treebank"] = _rules(average.convention)
        for variant, estimate in average.dev.items():
            add("average", estimate, **place, variant=variant, split="dev", metric="f1")
        for metric in METRICS:
            found = {**place, "split": "test", "metric": metric}
            add("average", average.test[metric], **found, selected=True)
            add("average", average.baseline[metric], **found, variant=BASELINE)
    return lines


def _difference_numbers(system: System, figures: Sequence[Figure]) -> list[Mapping[str, object]]:
    return [
        {
            "kind": "difference",
            "size": system.size,
            "precision": system.precision or None,
            "settings": system.settings or None,
            "language": one.row.language,
            "treebank": one.row.treebank,
            "system": one.published.system,
            "variant": one.variant,
            "split": one.split,
            "metric": one.metric,
            "value": one.points,
            "source": one.published.source,
        }
        for one in differences(system, figures)
    ]
