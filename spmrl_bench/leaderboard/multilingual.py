"""Scores over the languages of a track: the board of all systems, tables of one model's variants,
and published scores of these treebanks.

A row is one treebank with the runs that compare, from as many seeds as there are; an average is
over rows that were scored in the same way, and only where each has the value.

Ensembles, systems of others, shipped records and variants of one language are left out. Of several
states of a treebank the one with most of the published variants is taken, then the newest. The
layout is that of Kitaev & Klein 2018, Table 7: dev of each variant, test of the selected one.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from spmrl_bench.leaderboard import writing
from spmrl_bench.leaderboard.board import (
    LEVEL,
    Column,
    Difference,
    Entry,
    Group,
    Scores,
    average,
    brief_columns,
    mean_text,
    track_title,
)
from spmrl_bench.leaderboard.frame import READ, Key
from spmrl_bench.leaderboard.published import PublishedFigure
from spmrl_bench.leaderboard.tables import boards
from spmrl_bench.scoring.metric import SelectionMetric
from spmrl_bench.scoring.significance import TRIALS

_SCORE = ("dev", "", "score")
# What describes a treebank rather than the way of scoring.
_OF_TREEBANK = frozenset({"fingerprint", "split", "sentences", "skipped", "counts", "transforms"})
_About = tuple[str, str, str, str]  # settings, precision, size and select of a setup


@dataclass(frozen=True)
class TreebankRow:
    """One treebank in one setup."""

    group: Group
    entries: Mapping[str, Entry]  # runs of each variant, which differ in their seed only
    criterion: SelectionMetric  # what dev selects by

    @property
    def seeds(self) -> list[int]:
        return sorted({run.record.seed for entry in self.entries.values() for run in entry.runs})

    @cached_property
    def selected(self) -> str:
        """The variant with the best mean on dev; of equals the one that was scored on test."""

        def rank(name: str) -> tuple[float, bool]:
            entry = self.entries[name]
            tested = any(run.record.test is not None for run in entry.runs)
            return statistics.fmean(entry.scores(_SCORE).values()), tested

        return max(sorted(self.entries), key=rank)

    def scores(self, column: Column) -> Scores:
        """A figure of a baseline, a variant or, without its name, the selected one, by seed."""
        baselines = {one.name: one for one in self.group.entries if one.baseline}
        entry = {**baselines, **self.entries}.get(column.variant or self.selected)
        return entry.scores(column.key) if entry else {}

    @cached_property
    def compared(self) -> dict[str, Difference | None]:
        """On dev, the selected variant with each other one from the seeds that both have. None
        where they are not of the same sentences. A sum of figures is not tested."""
        found: dict[str, Difference | None] = {}
        for name in self.entries if len(self.criterion.terms) == 1 else ():
            pair = [self.entries[self.selected], self.entries[name]]
            one, other = (entry.scores(_SCORE).keys() for entry in pair)
            if name != self.selected and (common := one & other):
                ours, theirs = (
                    Entry([run for run in entry.runs if run.record.seed in common])
                    for entry in pair
                )
                ((metric, figure),) = self.criterion.terms
                found[name] = ours.compare(theirs, (metric, "dev"), figure)
        return found

    @property
    def p(self) -> float | None:
        """The largest against the others; None without a test."""
        return max((one.p for one in self.compared.values() if one), default=None)

    @property
    def significant(self) -> bool:
        won = [one for one in self.compared.values() if one and one.points > 0 and one.p < LEVEL]
        return 0 < len(won) == len(self.entries) - 1

    @cached_property
    def counting(self) -> frozenset[tuple[str, ...]]:
        """Metrics, keys and values that scores share which may be averaged with its own."""
        return frozenset(
            (metric, key, value)
            for metric, split in (READ, *((name, "dev") for name in self.criterion.metrics))
            for key, value in self.group.runs.counted[metric, split].items()
            if key not in _OF_TREEBANK
        )

    @property
    def notes(self) -> Iterator[str]:
        bank = self.group.treebank
        seeds = {
            name: ", ".join(str(run.record.seed) for run in entry.runs)
            for name, entry in sorted(self.entries.items())
        }
        if len(set(seeds.values())) > 1:
            listed = "; ".join(f"{name}: {found}" for name, found in seeds.items())
            yield f"{bank}: variants have different seeds ({listed})."
        runs = self.entries[self.selected].runs
        if missing := ", ".join(str(run.record.seed) for run in runs if not run.record.test):
            yield f"{bank}: {self.selected} is not scored on test (seed {missing})."
        if apart := ", ".join(sorted(name for name, one in self.compared.items() if one is None)):
            yield f"{bank}: {apart}: not compared, as not of the same sentences."


@dataclass(frozen=True)
class Setup:
    name: str
    criterion: SelectionMetric
    variants: Sequence[str]
    rows: Sequence[TreebankRow]
    left_out: Sequence[str]

    @cached_property
    def columns(self) -> list[Column]:
        title = f"dev {self.criterion.title}"
        dev = [Column(f"{title} {name}", *_SCORE, variant=name) for name in self.variants]
        test = [one for one in brief_columns(self.criterion.metrics) if one.split == "test"]
        entries = [one for row in self.rows for one in row.group.entries]
        of_baselines = [
            column._replace(title=f"{column.title} {name}", variant=name)
            for name in sorted({one.name for one in entries if one.baseline})
            for column in test
            if column.is_headline
        ]
        there = [one for one in of_baselines if any(row.scores(one) for row in self.rows)]
        return [*dev, *test, *there]

    @property
    def averaged(self) -> list[list[TreebankRow]]:
        """The rows behind each average: those of several languages that were counted alike."""
        counted: dict[object, list[TreebankRow]] = {}
        for row in self.rows:
            counted.setdefault(row.counting, []).append(row)
        several = [rows for rows in counted.values() if len(_languages(rows)) > 1]
        return sorted(several, key=lambda rows: -len(_languages(rows)))


def _languages(rows: Iterable[TreebankRow]) -> list[str]:
    return list(dict.fromkeys(row.group.language for row in rows))


def setups_of(
    groups: Iterable[Group], track: str, order: Sequence[str] = ()
) -> tuple[list[Setup], list[str]]:
    """The setups of a track, for tables about the variants in ``order``, and a note on others."""
    found: dict[_About, list[tuple[Group, dict[str, Entry]]]] = {}
    for group in groups:
        for about, entries in _placed(group).items() if group.track == track else ():
            found.setdefault(about, []).append((group, entries))
    setups = [_setup(about, states, order) for about, states in sorted(found.items())]
    shown = [setup for setup in setups if len(_languages(setup.rows)) > 1] or setups
    hidden = [f"{one.name} ({_languages(one.rows)[0]})" for one in setups if one not in shown]
    return shown, [f"Not shown, records of one language only: {'; '.join(hidden)}."][: len(hidden)]


def _placed(group: Group) -> dict[_About, dict[str, Entry]]:
    """The entries of our runs by their setup and variant. Of entries that differ in settings that
    nobody gave with the command, the one with the most seeds, then the newest, belongs to the setup
    of the others; the rest to one that names them."""
    alike: dict[tuple[_About, str], list[Entry]] = {}
    for entry in group.entries:
        # What selects is not known of records by metrics that are not installed.
        runs = [run for run in entry.runs if run.record.dev_score is not None]
        if entry.form in ("run", "mean") and not (entry.is_system or entry.shipped) and runs:
            about = runs[0].given, runs[0].precision, entry.record.size, entry.record.select
            alike.setdefault((about, entry.record.variant), []).append(Entry(runs))
    placed: dict[_About, dict[str, Entry]] = {}
    for (about, variant), entries in alike.items():
        main = max(entries, key=lambda one: (len(one.runs), max(run.number for run in one.runs)))
        for entry in entries:
            own = about if entry is main else (entry.runs[0].shown, *about[1:])
            placed.setdefault(own, {})[variant] = entry
    return placed


def _setup(
    about: _About, states: Iterable[tuple[Group, Mapping[str, Entry]]], order: Sequence[str]
) -> Setup:
    settings, precision, size, select = about
    languages: dict[str, set[str]] = {}
    for group, entries in states:
        for variant in entries:
            languages.setdefault(variant, set()).add(group.language)
    several = {name for name, found in languages.items() if name in order or len(found) > 1}
    hidden = sorted(languages.keys() - several) if several else []
    listed = ", ".join(f"{name} ({', '.join(languages[name])})" for name in hidden)
    left_out = [f"Not shown, variants of one language only: {listed}."] if hidden else []

    def weight(row: TreebankRow) -> tuple[int, int]:
        # An experiment with one further variant must not displace the variants of the table.
        newest = max(run.number for entry in row.entries.values() for run in entry.runs)
        return len(row.entries.keys() & set(order)), newest

    criterion = SelectionMetric.parse(select)
    rows: dict[tuple[str, str], TreebankRow] = {}
    for group, entries in states:
        if shown := {name: one for name, one in entries.items() if name not in hidden}:
            row, place = TreebankRow(group, shown, criterion), (group.language, group.treebank)
            other, taken = sorted((rows.get(place, row), row), key=weight)
            rows[place] = taken
            if other is not taken:
                what = f"{other.group.title}, which does not compare with {taken.group.title}"
                left_out.append(f"Not shown: {what}.")
    known = {variant for row in rows.values() for variant in row.entries}
    return Setup(
        name=", ".join(filter(None, (size, precision, settings))),
        criterion=criterion,
        variants=[*(name for name in order if name in known), *sorted(known - set(order))],
        rows=[row for _, row in sorted(rows.items())],
        left_out=left_out,
    )


def tracks_of(groups: Iterable[Group], results_dir: Path) -> list[str]:
    """Tracks with records of the user in two languages, or whose table is there already."""
    found: dict[str, set[str]] = {}
    for group in groups:
        if not all(run.shipped for run in group.runs):
            found.setdefault(group.track, set()).add(group.language)
    return sorted(
        track
        for track, languages in found.items()
        if len(languages) > 1 or (results_dir / f"multilingual-{track}.md").exists()
    )


def write_track(
    groups: Sequence[Group], track: str, results_dir: Path, published: Sequence[PublishedFigure]
) -> str:
    """Write the table of a track in all formats, and return it as Markdown."""
    document = track_document(groups, track, published)
    forms = {"md": writing.to_markdown, "csv": writing.to_csv, "tex": writing.to_latex}
    texts = {suffix: form(document) for suffix, form in forms.items()}
    for suffix, text in texts.items():
        writing.write_file(results_dir / f"multilingual-{track}.{suffix}", text.encode())
    return texts["md"]


def track_document(
    groups: Sequence[Group], track: str, published: Sequence[PublishedFigure]
) -> writing.Document:
    order = list(dict.fromkeys(figure.variant for figure in published if figure.variant))
    setups, left_out = setups_of(groups, track, order)
    titles = dict.fromkeys(setup.criterion.title for setup in setups)
    intro = (
        "In percent, micro-averaged over the sentences of a split. The variant with the best mean "
        f"{' or '.join(titles)} on dev is scored on test.",
        *left_out,
    )
    tables = [_setup_table(track, setup) for setup in setups]
    title = f"Scores by language, {track_title(track)}"
    board = boards([group for group in groups if group.track == track])
    return writing.Document(title, intro, (*board, *tables, *_published_tables(setups, published)))


def _setup_table(track: str, setup: Setup) -> writing.Table:
    titles = [column.title for column in setup.columns]
    dev = len(setup.variants)
    cells = []
    for row in setup.rows:
        best = row.selected if row.significant else None
        texts = [_mean([row], one, mark="*" * (one.variant == best)) for one in setup.columns]
        about = [row.group.language, row.group.treebank, ", ".join(map(str, row.seeds))]
        p = "" if row.p is None else f"{row.p:.4f}"
        selected = row.selected if len(row.entries) > 1 else ""
        cells.append([*about, *texts[:dev], p, selected, *texts[dev:]])
    for rows in setup.averaged:
        # The name of the parameter set, without its hash; of other metrics their names.
        sets = [text.partition("(")[0] for _, key, text in rows[0].counting if key == "prm"]
        others = [name for name in setup.criterion.metrics if name != "brackets"]
        what = ", ".join([f"{len(_languages(rows))} languages", *sets, *others])
        texts = [_mean(rows, one) for one in setup.columns]
        cells.append(["average", what, "", *texts[:dev], "", "", *texts[dev:]])
    strong = {(n, 3 + setup.variants.index(row.selected)) for n, row in enumerate(setup.rows)}
    return writing.Table(
        title=f"Model size {setup.name}: {track_title(track)}",
        headings=["language", "treebank", "seeds", *titles[:dev], "p", "selected", *titles[dev:]],
        rows=cells,
        numeric=frozenset({*titles, "p"}),
        breaks=frozenset({len(setup.rows)}),
        strong=frozenset(strong),
        notes=tuple(_setup_notes(setup)),
    )


def _mean(rows: Iterable[TreebankRow], column: Column, mark: str = "") -> str:
    return mean_text(average([(row.group.language, row.scores(column)) for row in rows]), mark=mark)


def _setup_notes(setup: Setup) -> Iterator[writing.Note]:
    if any(len(one.runs) > 1 for row in setup.rows for one in row.entries.values()):
        yield "±: standard deviation over the seeds."
    if tested := sum(row.p is not None for row in setup.rows):
        yield (
            f"`*`: better than every other variant on dev with p < {LEVEL:g}. p is the largest of "
            "the selected variant against the others, by approximate randomisation over sentences "
            f"({TRIALS:,} swaps; counts of the seeds that both have are summed): it is about the "
            "sentences, not about other trainings, and not corrected for the number of treebanks "
            f"({tested})."
        )
    if len({row.counting for row in setup.rows}) > 1:
        yield "Scores that were counted in different ways are not averaged; see the signatures."
    yield from (note for row in setup.rows for note in row.notes)
    yield from setup.left_out
    metrics = setup.criterion.metrics
    entries = {row.group.treebank: row.entries[row.selected] for row in setup.rows}
    yield [f"{name}: `{one.signature(metrics)}`" for name, one in entries.items()]


def _published_tables(
    setups: Sequence[Setup], published: Sequence[PublishedFigure]
) -> Iterator[writing.Table]:
    """Published scores of the treebanks, each with ours below."""
    metrics = {metric: None for setup in setups for metric in setup.criterion.metrics}
    columns = {one.key: one for one in brief_columns(metrics) if one.is_headline}
    banks = {(row.group.language, row.group.treebank) for setup in setups for row in setup.rows}
    found: dict[tuple[str, Key], list[PublishedFigure]] = {}
    for one in sorted(published, key=lambda one: bool(one.variant)):  # the reference last
        if one.key in columns and (one.language, one.treebank) in banks:
            found.setdefault((one.family, one.key), []).append(one)
    for (family, key), figures in sorted(found.items()):
        if figures[-1].variant:
            title = f"Beside published scores: {family} ({columns[key].title})"
            yield _published_table(title, figures, columns[key], setups)


def _published_table(
    title: str, figures: Sequence[PublishedFigure], column: Column, setups: Sequence[Setup]
) -> writing.Table:
    banks = {one.language: one.treebank for one in figures if one.variant}
    figures = [one for one in figures if banks.get(one.language) == one.treebank]
    selected = "selected on dev" if column.split == "test" else ""
    lines: dict[str, dict[str, Scores]] = {}
    sources: dict[str, dict[str, None]] = {}
    for one in figures:
        label = ", ".join(filter(None, (one.system, one.variant and (selected or one.variant))))
        if one.language in lines.get(label, ()):
            label = f"{label} ({one.setting})"
        lines.setdefault(label, {})[one.language] = {0: one.value}
        # The paper is said where the source is another.
        paper = "" if one.source.startswith(one.paper) else one.paper
        listed = "; ".join(filter(None, (one.setting, paper)))
        named = f"{one.system} [{listed}]" if listed else one.system
        sources.setdefault(one.source, {})[named] = None
    theirs, mixed = len(lines), set()
    for setup in setups:
        rows = [row for row in setup.rows if banks.get(row.group.language) == row.group.treebank]
        name = setup.name if len(setups) > 1 else ""
        for variant in ("",) if selected else setup.variants:
            label = ", ".join(filter(None, ("ours", name, variant or selected)))
            placed = column._replace(variant=variant)
            lines[label] = {row.group.language: row.scores(placed) for row in rows}
            mixed |= {label} if len({row.counting for row in rows}) > 1 else set()
    cells = []
    for label, scores in lines.items():
        by_language = [(language, scores.get(language, {})) for language in banks]
        means = [average([one]) for one in by_language]
        if any(means):
            means += [None if label in mixed else average(by_language)] * (len(banks) > 1)
            cells.append([label, *map(mean_text, means)])
    return writing.Table(
        title=title,
        headings=["system", *banks, "average"][: len(cells[0])],
        rows=cells,
        numeric=frozenset({*banks, "average"}),
        breaks=frozenset({theirs}),
        notes=([f"{source}: {'; '.join(systems)}" for source, systems in sources.items()],),
    )
