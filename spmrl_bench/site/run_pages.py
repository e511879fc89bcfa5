"""The page of a record: its scores, how they were made, and the command that makes them again."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from spmrl_bench.leaderboard.board import Entry, Group
from spmrl_bench.leaderboard.frame import StoredRecord
from spmrl_bench.leaderboard.record import (
    SPLITS,
    Search,
    SplitResult,
    searched_text,
    signature_parts,
)
from spmrl_bench.scoring.metric import METRICS, metric_named
from spmrl_bench.site.atlas import Atlas, Bank, has_seed, runs_text
from spmrl_bench.site.downloads import Files
from spmrl_bench.site.forms import page
from spmrl_bench.site.grids import Cell, Grid, Head, number
from spmrl_bench.site.lengths import LengthClass, by_length
from spmrl_bench.site.parses import label_parts, parses_of
from spmrl_bench.site.pictures import Picture, Series, places
from spmrl_bench.site.reproducing import commands, environment, settings


def run_pages(atlas: Atlas) -> Iterator[Files]:
    """The page of each record that is shown, and the record itself."""
    for stored in atlas.shown:
        place = atlas.place_of(stored)
        if place is not None:
            address = atlas.run(stored)
            yield {
                address: _page(atlas, stored, *place, address),
                f"runs/{stored.name}.json": stored.path.read_bytes(),
            }


def _page(
    atlas: Atlas, stored: StoredRecord, bank: Bank, group: Group, entry: Entry, address: str
) -> bytes:
    record = stored.record
    alone = next(one for one in entry.members or [entry] if one.stored == [stored])
    results = [(split, result) for split in SPLITS if (result := record.result(split))]
    seed = f", seed {record.seed}" if has_seed(record) else ""
    return page(
        "run",
        address,
        bank=bank,
        entry=entry,
        entry_address=atlas.entry(bank, group, entry),
        title=f"{entry.name}{f', {runs_text(entry)}' if record.ensemble else seed}",
        stored=stored,
        record=record,
        figures=f"{bank.data('rows', group)}.csv",
        scores=_scores(results),
        signatures=_signatures(results),
        broken_down=list(_breakdowns(bank, group, alone)),
        commands=commands(record),
        settings=settings(record),
        outputs=_outputs(stored),
        searched=searched_text(record.searches),
        searches=_searches(record.searches),
        environment=environment(record),
    )


def _scores(results: list[tuple[str, SplitResult]]) -> list[Grid]:
    """A table for each metric: figures by split."""
    grids = []
    for name in dict.fromkeys(name for _, result in results for name in result.metrics):
        if name not in METRICS.names():
            continue
        metric = metric_named(name)
        splits = [(split, result) for split, result in results if name in result.metrics]
        rows = [
            [
                Cell(metric.title(figure)),
                *(number(result.figure(name, figure)) for _, result in splits),
            ]
            for figure in metric.figures
            if any(result.figure(name, figure) is not None for _, result in splits)
        ]
        heads = [Head("figure"), *(Head(split, numeric=True) for split, _ in splits)]
        grids.append(Grid(f"scores-{name}", f"Scores, {name}", heads, rows, sorted=False))
    return grids


def _signatures(results: list[tuple[str, SplitResult]]) -> list[tuple[str, str, dict[str, str]]]:
    """``(of what, short, long as keys and values)``."""
    return [
        (f"{split}, {name}", found.signature, signature_parts(found.signature_long))
        for split, result in results
        for name, found in result.metrics.items()
    ]


def _outputs(stored: StoredRecord) -> Grid | None:
    """What a system of somebody else gave."""
    system = stored.record.system
    if system is None:
        return None
    rows = [
        [
            Cell(f"{split}, {layer}"),
            Cell(output.policy),
            Cell(", ".join(f"{kind} {n}" for kind, n in output.handled.items()) or "none"),
            Cell(digest, code=True),
        ]
        for split, output in system.outputs.items()
        for layer, digest in output.sha256.items()
    ]
    heads = [Head(name) for name in ("output", "faults are", "answers with faults", "SHA-256")]
    return Grid("outputs", "What the system gave", heads, rows, sorted=False)


def _searches(searches: Sequence[Search]) -> list[Grid]:
    """The trials of each search that its settings come from."""
    grids = []
    for place, search in enumerate(searches, start=1):
        heads = [Head("trial", numeric=True), *(Head(key) for key in search.space)]
        heads += [Head(f"dev {search.select}", numeric=True), Head("state", choice=True)]
        rows = [
            [
                Cell(str(trial.number), strong=trial.number == search.found),
                *(Cell(_json(trial.settings.get(key)), code=True) for key in search.space),
                number(trial.dev),
                Cell(trial.state),
                Cell(f"{trial.minutes:.1f}"),
            ]
            for trial in search.trials
        ]
        space = "; ".join(f"{key}={text}" for key, text in search.space.items())
        grids.append(
            Grid(
                f"search-{place}",
                f"Trials of a search by {search.sampler}, pruner {search.pruner}, "
                f"seed {search.seed}",
                [*heads, Head("minutes", numeric=True)],
                rows,
                notes=[
                    f"Searched: {space}. The trial with the settings of this record is in bold."
                ],
            )
        )
    return grids


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _breakdowns(bank: Bank, group: Group, alone: Entry) -> Iterator[tuple[Grid, Picture | None]]:
    """Scores by the length of sentences and, where the parses are at hand, by label."""
    for metric in group.metrics:
        title = metric_named(metric).title(metric_named(metric).headline)
        classes: dict[str, list[LengthClass]] = {}
        for split in SPLITS:
            sums = alone.sums((metric, split))
            if sums is not None and (found := by_length(sums)):
                classes[split] = found
        if classes:
            yield _lengths(metric, title, classes)
        for split in SPLITS:
            at_hand = parses_of(alone, (metric, split), bank.facts)
            if at_hand is None or bank.facts is None:
                continue
            rows = [
                [
                    Cell(part.name),
                    *(number(part.figures()[key]) for key in ("gold", "recall", "precision", "f1")),
                ]
                for part in label_parts(at_hand, (metric, split), bank.facts)
            ]
            if rows:
                heads = [
                    Head("label"),
                    *(Head(name, True) for name in ("gold", "recall", "precision", "F1")),
                ]
                yield (
                    Grid(f"labels-{metric}-{split}", f"{title} on {split} by label", heads, rows),
                    None,
                )


def _lengths(
    metric: str, title: str, classes: dict[str, list[LengthClass]]
) -> tuple[Grid, Picture]:
    names = list(dict.fromkeys(one.name for found in classes.values() for one in found))
    by_name = {split: {one.name: one for one in found} for split, found in classes.items()}
    rows = []
    for name in names:
        row = [Cell(name)]
        for split in classes:
            one = by_name[split].get(name)
            row += [Cell(str(one.sentences) if one else ""), number(one.score if one else None)]
        rows.append(row)
    heads = [Head("words")]
    for split in classes:
        heads += [Head(f"sentences of {split}", True), Head(f"{split} {title}", True)]
    grid = Grid(
        f"lengths-{metric}", f"{title} by the length of sentences", heads, rows, sorted=False
    )
    ticks = places(names)
    place = {name: at for at, name in ticks}
    series = [
        Series(split, [(place[one.name], one.score) for one in found if one.score is not None])
        for split, found in classes.items()
    ]
    return grid, Picture(
        name=f"lengths-{metric}-picture",
        title=f"{title} over the length of sentences",
        x_title="words",
        y_title=title,
        ticks=ticks,
        series=[one for one in series if one.points],
    )
