"""The results of each treebank, for readers and as CSV, and who is ahead.

Where a variant was trained from several seeds, its row has their means and sample standard
deviations; the single runs stand below the table, and in the CSV, one row for each. A published
figure stands in a column of its own, with the treebank it is of.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import combinations, product
from typing import Any, NamedTuple

import pandas as pd

from spmrl_bench.leaderboard.board import (
    LEVEL,
    Column,
    Entry,
    Group,
    View,
    groups_of,
    mean_text,
    metrics_of,
    named_columns,
    track_title,
)
from spmrl_bench.leaderboard.frame import by_age, counting_differences
from spmrl_bench.leaderboard.published import Beside, PublishedFigure, by_variant
from spmrl_bench.leaderboard.record import SPLITS, Record
from spmrl_bench.leaderboard.writing import Document, Note, Table, csv_text, to_markdown
from spmrl_bench.scoring.metric import metric_named

SPEED = ("train", "", "tokens_per_second")
#: What a training took, in CSV.
COSTS = ("wall_seconds", "processor_seconds", "epochs", "parameters", "peak_memory_bytes")
_RANKS = (
    "the first and the last that an entry may have on test. Two are told apart where p of the "
    f"paired randomisation test is below {LEVEL:g} after Holm's correction over all pairs of the "
    "tables shown."
)


def results_markdown(records: Iterable[Record], published: Iterable[PublishedFigure]) -> str:
    return to_markdown(results_document(groups_of(by_age(records)), published))


def results_document(groups: Sequence[Group], published: Iterable[PublishedFigure]) -> Document:
    figures, ranks = [*published], ranks_of(groups)
    beside = by_variant(figures)
    return Document("", tables=tuple(_table(one, groups, beside, ranks, figures) for one in groups))


def ranks_of(groups: Iterable[Group]) -> dict[tuple[Entry, str], str]:
    """Return the first and last rank on test by each metric that each entry of a table may have;
    none where it is the only one. Two are told apart where p of the paired randomisation test is
    below :data:`LEVEL` after Holm's correction (1979) over all pairs of all tables. Who is told
    apart from nobody may have any rank."""
    pairs: list[tuple[float, float, tuple[Entry, str], tuple[Entry, str]]] = []
    tables: list[list[tuple[Entry, str]]] = []
    for group, metric in ((one, metric) for one in groups for metric in one.metrics):
        view = (metric, "test")
        entries = [one for one in group.entries if not one.baseline and one.headline(view)]
        tables.append([(one, metric) for one in entries])
        for one, other in combinations(entries, 2):
            if (found := one.compare(other, view)) is not None:
                pairs.append((found.p, found.points, (one, metric), (other, metric)))
    above, below = Counter[tuple[Entry, str]](), Counter[tuple[Entry, str]]()
    for number, (p, points, *pair) in enumerate(sorted(pairs, key=lambda pair: pair[0])):
        if p * (len(pairs) - number) >= LEVEL:
            break
        better, worse = pair if points > 0 else pair[::-1]
        above[worse] += 1
        below[better] += 1
    return {
        key: "-".join(dict.fromkeys(map(str, (1 + above[key], len(table) - below[key]))))
        for table in tables
        for key in table
        if len(table) > 1
    }


def column_titles(groups: Iterable[Group]) -> list[str]:
    """The treebanks of groups of a track, with the number of the table where there are several."""
    tables = Counter(group.treebank for group in groups)
    return [
        f"{one.treebank}, table {one.number}" if tables[one.treebank] > 1 else one.treebank
        for one in groups
    ]


def systems_of(groups: Iterable[Group], view: View) -> list[dict[Group, Entry]]:
    """The entries of each system that have the headline of a view: those of most groups first,
    then by what their scores amount to; baselines last."""
    systems: dict[str, dict[Group, Entry]] = {}
    for group in groups:
        for entry in group.entries:
            if entry.headline(view):
                systems.setdefault(entry.text, {})[group] = entry

    def place(found: dict[Group, Entry]) -> tuple[bool, int, float]:
        entries = list(found.values())
        scores = [score.mean for one in entries if (score := one.headline(view))]
        return bool(entries[0].baseline), -len(scores), -sum(scores)

    return sorted(systems.values(), key=place)


def boards(groups: Sequence[Group]) -> Iterator[Table]:
    """Yield the scores on test of all systems of a track by treebank, best first, and their ranks:
    a table for each figure, without an encoder and with each. None where all systems are ours."""
    ranks = ranks_of(groups)
    metrics = dict.fromkeys(name for group in groups for name in group.metrics)
    for read, metric in product(sorted({group.runs.read for group in groups}), metrics):
        own = [one for one in groups if one.runs.read == read and metric in one.metrics]
        systems = systems_of(own, (metric, "test"))
        if not any(entry.is_system for found in systems for entry in found.values()):
            continue
        rows: list[list[str]] = []
        settings: list[str] = []
        for found in systems:
            first, cells = next(iter(found.values())), [""] * len(own)
            for place, group in enumerate(own):
                if entry := found.get(group):
                    score = mean_text(entry.headline((metric, "test")))
                    rank = ranks.get((entry, metric))
                    cells[place] = f"{score} ({rank})" if rank else score
            label = first.label
            if shown := first.runs[0].shown:
                settings.append(f"[{len(settings) + 1}] {shown}")
                label = f"{label} [{len(settings)}]"
            rows.append([label, first.record.size, first.origin, *cells])
        title = metric_named(metric).title(metric_named(metric).headline)
        heads = column_titles(own)
        yield Table(
            f"{title} on test, {track_title(own[0].track)}{read}",
            ["system", "size", "origin", *heads],
            rows,
            frozenset(heads),
            notes=(*([settings] if settings else ()), f"In brackets the rank: {_RANKS}"),
        )


def _table(
    group: Group,
    groups: Sequence[Group],
    beside: Beside,
    ranks: Mapping[tuple[Entry, str], str],
    published: Iterable[PublishedFigure],
) -> Table:
    entries = group.entries
    figures = [  # few parsers tag
        column
        for column in named_columns(group.metrics).values()
        if column.metric or column in group.columns.values()
    ]
    columns = {
        "variant": [one.title for one in entries],
        "rank": [
            next((ranks[one, name] for name in group.metrics if (one, name) in ranks), "")
            for one in entries
        ],
        "size": [one.record.size for one in entries],
        "seed": [
            f"mean of {one.number}" if one.form == "mean" else _whole(one.seed) for one in entries
        ],
        **{each.title: [mean_text(one.figure(each.key)) for one in entries] for each in figures},
        "sentences": [_whole(one.test_sentences) for one in entries],
        "tokens/s": [
            f"{speed.mean:.0f}" if (speed := one.figure(SPEED)) else "" for one in entries
        ],
        # Signatures are longer than all the rest of a row: number them and write them below.
        "signature": [f"[{n}]" for n in range(1, len(entries) + 1)],
        "settings": [one.searched for one in entries],
    }
    for name in ("rank", "settings"):
        if not any(columns[name]):
            del columns[name]
    # A column for each system, treebank and setting that has a figure beside one of the rows.
    for row, entry in enumerate(entries):
        for found in _beside(entry, group, beside):
            first, title = found[0], metric_named(found[0].metric).title(found[0].figure)
            other = f"another treebank: {first.treebank}"
            which = "this treebank" if first.treebank == group.treebank else other
            about = "; ".join(filter(None, (which, first.setting)))
            cells = columns.setdefault(f"{first.system} {title} ({about})", [""] * len(entries))
            cells[row] = ", ".join(f"{one.split} {one.value:.2f}" for one in found)
    return Table(
        title=group.title,
        headings=list(columns),
        rows=list(zip(*columns.values(), strict=True)),
        numeric=frozenset({"seed", "sentences", "tokens/s", *(one.title for one in figures)}),
        notes=(
            *_notes(group, groups, beside),
            *([f"Rank, by the first figure: {_RANKS}"] if "rank" in columns else []),
            *_of_treebank(group.treebank, published),
        ),
    )


def _whole(cell: int | None) -> str:
    return "" if cell is None else str(cell)


def _notes(group: Group, groups: Sequence[Group], beside: Beside) -> Iterator[Note]:
    signatures = []
    for n, one in enumerate(group.entries, start=1):
        days = " to ".join(dict.fromkeys((one.dates[0], one.dates[-1])))
        made = ", ".join([days, *(f"commit {commit}" for commit in one.commits)])
        signatures.append(f"[{n}] `{one.signature()}` {made}")
    yield signatures
    headlines = [one for one in named_columns(group.metrics).values() if one.is_headline]
    titles = {one.metric: metric_named(one.metric).title(one.figure) for one in headlines}

    def scores_text(run: Entry) -> str:
        scores = ", ".join(
            f"{column.split if len(titles) == 1 else column.title} {score.mean:.2f}"
            for column in headlines
            if (score := run.figure(column.key))
        )
        return f"seed {run.record.seed} {scores}"

    if means := [one for one in group.entries if one.members]:
        heading = "Means over seeds, ± their sample standard deviation. "
        yield f"{heading}{', '.join(titles.values())} of each run:"
        yield [f"{one.title}: {'; '.join(map(scores_text, one.members))}" for one in means]
    sources: dict[str, dict[str, None]] = {}
    for figures in (some for entry in group.entries for some in _beside(entry, group, beside)):
        for figure in figures:
            sources.setdefault(figure.system, {})[figure.source] = None
    for name, texts in sources.items():
        # One source may be another with a remark: the longer one says both.
        longest = [text for text in texts if sum(one.startswith(text) for one in texts) == 1]
        yield f"{name}: {'; '.join(longest)}."
    times = dict.fromkeys(
        f"{run.record.variant}: {system.tested} output{'' if system.tested == 1 else 's'} "
        "scored on test"
        for run in group.runs
        if run.newest and (system := run.record.system) is not None
    )
    if times:
        ours = sum(run.record.system is None and run.record.test is not None for run in group.runs)
        yield f"Systems of others. {'; '.join(times)}. Of ours, which dev chose: {ours}."
    if older := sum(not run.newest for run in group.runs):
        records = "record is" if older == 1 else "records are"
        yield f"Newest record of each run; {older} older {records} not shown."
    yield from table_differences(group, groups)


def table_differences(group: Group, groups: Iterable[Group]) -> Iterator[str]:
    for other in groups:
        if (other.track, other.treebank) == (group.track, group.treebank) and other is not group:
            differing = counting_differences(group.runs.counted, other.runs.counted)
            listed = (f"{key} is {here} here, {there} there" for key, here, there in differing)
            which = f"table {other.number} of {other.treebank}"
            yield f"Does not compare with {which}: {'; '.join(listed)}."


def _of_treebank(name: str, published: Iterable[PublishedFigure]) -> Iterator[str]:
    """What was published of a treebank, where no variant of ours is among it and has a column."""
    found: dict[tuple[str, ...], list[str]] = {}
    for one in (own for own in published if own.treebank == name):
        if one.variant:
            return
        text = f"{one.split} {metric_named(one.metric).title(one.figure)} {one.value:.2f}"
        found.setdefault((one.system, one.setting, one.source), []).append(text)
    for (system, setting, source), texts in found.items():
        yield f"Published of this treebank: {system}, {', '.join(texts)} ({setting}; {source})."


def _beside(entry: Entry, group: Group, beside: Beside) -> list[list[PublishedFigure]]:
    """The published figures of the same variant; none for altered models and ensembles."""
    as_published = entry.form in ("mean", "run") and not entry.runs[0].altered
    found = beside.get((group.language, entry.record.variant), {}) if as_published else {}
    return list(found.values())


def entries_frame(groups: Sequence[Group], published: Iterable[PublishedFigure]) -> pd.DataFrame:
    """One row per run, mean and baseline; only those of one ``treebank`` and ``group`` compare."""
    columns = named_columns(metrics_of(run for group in groups for run in group.runs))
    beside = by_variant(published)
    frame = pd.DataFrame(
        [
            {"track": group.track, "treebank": group.treebank, "group": group.number}
            | _row(entry, columns, _beside(entry, group, beside))
            for group in groups
            for mean in group.entries
            for entry in (mean, *mean.members)
        ]
    )
    if not frame["searched"].any():
        del frame["searched"]
    if not frame.columns.str.startswith("published_").any():
        for name in ("system", "treebank", "dev_f1", "test_f1"):
            frame[f"published_{name}"] = None
    # Without this, one missing cell would turn the whole column of integers into floats.
    return frame.astype(dict.fromkeys(("seed", "test_sentences", "runs", "threads"), "Int64"))


def _row(
    entry: Entry, columns: Mapping[str, Column], beside: Iterable[Sequence[PublishedFigure]]
) -> dict[str, Any]:
    figures = {name: entry.figure(column.key) for name, column in columns.items()}
    speed = entry.figure(SPEED)
    costs = {name: entry.figure(("train", "", name)) for name in COSTS}
    hardware = entry.record.hardware
    row: dict[str, Any] = {
        "variant": entry.record.variant,
        "size": entry.record.size or None,
        "seed": entry.seed,
        **{name: found and found.mean for name, found in figures.items()},
        "test_sentences": entry.test_sentences,
        "tokens_per_second": speed and speed.mean,
        **{name: found and found.mean for name, found in costs.items()},
        "processor": hardware and hardware.processor,
        "threads": hardware and hardware.threads,
        "signature": entry.signature(),
        "dates": " ".join(entry.dates),
        "commits": " ".join(entry.commits),
        "kind": entry.form,
        "runs": entry.number,
        "shipped": entry.shipped,
        "settings": entry.runs[0].shown or None,
        "searched": entry.searched,
        **{f"{name}_sd": found and found.sd for name, found in figures.items()},
    }
    for number, published in enumerate(beside, start=1):
        end = "" if number == 1 else f"_{number}"
        row[f"published_system{end}"] = published[0].system
        row[f"published_treebank{end}"] = published[0].treebank
        row |= {f"published_{one.split}_{one.figure}{end}": one.value for one in published}
    return row


def results_csv(groups: Sequence[Group], published: Iterable[PublishedFigure]) -> str:
    return csv_text(entries_frame(groups, published))


class HeadToHead(NamedTuple):
    """Our best entry of a treebank and the best of others by a metric, both as dev says."""

    treebank: str
    figure: str
    ours: str
    our_test: float
    others: str
    their_test: float
    difference: float
    p: float | None
    ahead: str  # ours, others, or neither: p is not below 0.05, or the two do not compare


def ours_and_others(
    groups: Iterable[Group], minutes: float | None = None
) -> tuple[list[HeadToHead], list[str]]:
    """Whether our best entry is ahead on test, for each table and metric with both sides; with
    ``minutes`` among those whose trainings might take so long, and which were left out for that."""
    rows: list[HeadToHead] = []
    left_out: dict[str, None] = {}
    for group, metric in [(one, metric) for one in groups for metric in one.metrics]:
        best: dict[bool, tuple[float, Entry, float]] = {}  # of systems, of others
        for entry in group.entries:
            dev, test = (entry.headline((metric, split)) for split in SPLITS)
            competes = entry.is_system or entry.form in ("run", "mean")
            if dev is None or test is None or not competes:
                continue
            if minutes is not None and _budget(entry) != minutes:
                left_out[f"{entry.text} on {group.treebank}"] = None
            elif entry.is_system not in best or dev.mean > best[entry.is_system][0]:
                best[entry.is_system] = dev.mean, entry, test.mean
        if len(best) == 2:
            (_, ours, our_test), (_, others, their_test) = best[False], best[True]
            points = our_test - their_test
            p = compared.p if (compared := ours.compare(others, (metric, "test"))) else None
            ahead = "ours" if points > 0 else "others"
            title = metric_named(metric).title(metric_named(metric).headline)
            names = group.treebank, title, ours.name, our_test, others.name, their_test
            told = p is not None and p < LEVEL
            rows.append(HeadToHead(*names, points, p, ahead if told else "neither"))
    return rows, list(left_out)


def _budget(entry: Entry) -> object:
    """Minutes that each training might take; None for no limit, and for no training here."""
    if entry.record.system is None:
        return entry.runs[0].settings.get("train.max_minutes")
    training = entry.record.system.training
    return training and training.minutes


def ours_and_others_table(rows: Iterable[HeadToHead], left_out: Collection[str] = ()) -> Table:
    headings = ("treebank", "by", "our best", "test", "best of others", "their test", "difference")
    formats = ("", "", "", ".2f", "", ".2f", "+.2f", ".4f", "")
    cells = [
        ["" if cell is None else f"{cell:{form}}" for cell, form in zip(row, formats, strict=True)]
        for row in rows
    ]
    note = (
        "Best is the entry with the best score on dev. p is of the paired randomisation test over "
        f"the sentences of test; below {LEVEL:g} one side is said to be ahead."
    )
    notes = [note if cells else "No treebank has entries of both sides."]
    if left_out:
        notes.append(f"Left out, trained with another limit of time: {'; '.join(left_out)}.")
    numeric = frozenset({"test", "their test", "difference", "p"})
    return Table("Ours and others", (*headings, "p", "ahead"), cells, numeric, notes=tuple(notes))
