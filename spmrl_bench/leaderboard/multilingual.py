"""Scores of one model over the languages of a track, and published ones beside them.

Such a table invites three mistakes: to average scores that were counted in different ways, to take
the difference of two variants for more than chance, and to compare languages of which one lacks a
run. So runs of one model size, precision and settings that were selected by the same figure form a
:class:`Setup`; what differs in these never shares a table. A row of it is one treebank with the
runs that compare, from as many seeds as there are; an average is over rows that were scored in the
same way and only where every one of them has the value.

Where runs of one treebank and variant differ in settings that nobody gave with the command, those
with the most seeds, then the newest, belong to the setup of the others; the rest are of a setup
that names the settings. Ensembles, systems of others and shipped records are left out, and so are
variants of one language. Of several states of one treebank (other files or another way of scoring)
the one with most of the variants that the table is about is taken, then the newest.

The layout is that of Kitaev & Klein 2018: dev of each lexical model, test of the one selected
(Table 7); figures of one treebank by recall, precision and F1 (Table 6).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from spmrl_bench.leaderboard.board import (
    LEVEL,
    Column,
    Difference,
    Entry,
    Group,
    Scores,
    SeedMean,
    average,
    best_variant,
    brief_columns,
    mean_text,
    track_title,
)
from spmrl_bench.leaderboard.compare import ABSENT, differences
from spmrl_bench.leaderboard.formats import (
    Document,
    Note,
    Table,
    to_csv,
    to_latex,
    to_markdown,
    write_tables,
)
from spmrl_bench.leaderboard.frame import Key, Run, counting_differences
from spmrl_bench.leaderboard.published import PublishedFigure
from spmrl_bench.scoring.metric import SelectionMetric
from spmrl_bench.scoring.significance import TRIALS

SUFFIXES = ("md", "csv", "tex")  # of the files of one track

Convention = tuple[tuple[str, str], ...]
_SCORE = ("dev", "", "score")


@dataclass(frozen=True, slots=True)
class TreebankRow:
    """One treebank in one setup.

    Attributes:
        entries: the runs of each variant.
        tested: those of the selected variant with scores of test, if there are any.
        baselines: scored beside these.
        selected: the variant with the best mean of what dev selects by.
        compared: on dev, the selected variant with each other one.
    """

    group: Group
    convention: Convention  # what its scores share with those they may be averaged with
    entries: Mapping[str, Entry]
    tested: Entry | None
    baselines: Mapping[str, Entry]
    selected: str
    compared: Mapping[str, Difference]
    signature: str
    notes: tuple[str, ...]

    @property
    def language(self) -> str:
        return self.group.language

    @property
    def treebank(self) -> str:
        return self.group.treebank

    @property
    def seeds(self) -> list[int]:
        return sorted({run.record.seed for entry in self.entries.values() for run in entry.runs})

    def scores(self, key: Key, system: str = "") -> Scores:
        """A figure of a variant or baseline by seed; without a name, of the selected variant."""
        system = system or self.selected
        entry = self.entries.get(system) or self.baselines.get(system)
        if key[0] == "test" and system in self.entries:
            entry = self.tested if system == self.selected else None
        return entry.scores(key) if entry else {}

    def mean(self, key: Key, system: str = "") -> SeedMean | None:
        """The same over the seeds."""
        return SeedMean.of(self.scores(key, system).values())

    @property
    def p(self) -> float | None:
        """The largest p of the selected variant against the others; None without a test."""
        return max((one.p for one in self.compared.values()), default=None)

    @property
    def significant(self) -> bool:
        """Whether dev shows the selected variant to be better than every other."""
        won = (one.points > 0 and one.p < LEVEL for one in self.compared.values())
        return 0 < len(self.compared) == len(self.entries) - 1 and all(won)


class Average(NamedTuple):
    """Averages over the languages that were scored in one way; None where a row has no value."""

    convention: Convention
    languages: tuple[str, ...]
    values: Mapping[Column, SeedMean | None]


@dataclass(frozen=True, slots=True)
class Setup:
    """Runs of one model size, precision, settings and way to select, over the languages."""

    settings: str
    precision: str
    size: str
    criterion: SelectionMetric
    variants: tuple[str, ...]
    rows: tuple[TreebankRow, ...]
    left_out: tuple[str, ...]

    @property
    def name(self) -> str:
        """Size, and what else differs from the recipes."""
        return ", ".join(part for part in (self.size, self.precision, self.settings) if part)

    @property
    def languages(self) -> list[str]:
        return list(dict.fromkeys(row.language for row in self.rows))

    @property
    def columns(self) -> list[Column]:
        """What selects, of each variant; of test the figures up to the headline of each metric."""
        title = f"dev {self.criterion.title}"
        found = [Column(f"{title} {name}", *_SCORE, variant=name) for name in self.variants]
        baselines = dict.fromkeys(name for row in self.rows for name in row.baselines)
        for column in brief_columns(self.criterion.metrics):
            if column.split == "test":
                found.append(column)
                found += [
                    column._replace(title=f"{column.title} {name}", baseline=name)
                    for name in baselines
                ]
        return found

    @property
    def averages(self) -> list[Average]:
        """An average for each way of scoring that at least two languages share."""
        averages = []
        for convention in dict.fromkeys(row.convention for row in self.rows):
            rows = [row for row in self.rows if row.convention == convention]
            languages = tuple(dict.fromkeys(row.language for row in rows))
            values = {
                one: average([(row.language, row.scores(one.key, one.system)) for row in rows])
                for one in self.columns
            }
            if len(languages) > 1:
                averages.append(Average(convention, languages, values))
        return sorted(averages, key=lambda one: -len(one.languages))


class TrackScores(NamedTuple):
    """All of a track that its records tell."""

    track: str
    setups: tuple[Setup, ...]
    left_out: tuple[str, ...]


def tracks_of(groups: Iterable[Group], *, languages: int = 2) -> list[str]:
    """Tracks with records of the user in at least that many languages."""
    found: dict[str, set[str]] = {}
    for group in groups:
        if not all(run.stored.shipped for run in group.runs):
            found.setdefault(group.track, set()).add(group.language)
    return sorted(track for track, names in found.items() if len(names) >= languages)


def score_track(
    groups: Iterable[Group], track: str, *, variants: Sequence[str] = ()
) -> TrackScores:
    """The scores of one track.

    Setups of a single language are left out where another has several, which a note says: they
    are what is left of experiments on one treebank.

    Args:
        groups: of any tracks; those of others are ignored.
        track: name of the track.
        variants: the variants that the table is about, in order; others follow by name.
    """
    found: dict[_About, dict[Group, dict[str, Entry]]] = {}
    for group in groups:
        for about, entry in _placed(group) if group.track == track else ():
            found.setdefault(about, {}).setdefault(group, {})[entry.variant] = entry
    setups = [_setup(about, states, variants) for about, states in sorted(found.items())]
    shown = [setup for setup in setups if len(setup.languages) > 1] or setups
    hidden = [f"{one.name} ({one.languages[0]})" for one in setups if one not in shown]
    left_out = (f"Not shown, records of one language only: {'; '.join(hidden)}.",)
    return TrackScores(track, tuple(shown), left_out if hidden else ())


_About = tuple[str, str, str, str]
"""Settings, precision, size and select of a setup."""


def _placed(group: Group) -> Iterator[tuple[_About, Entry]]:
    """The entries of our runs with their setup."""
    alike: dict[tuple[_About, str], list[Entry]] = {}
    for entry in group.entries:
        # What selects is not known of records by metrics that are not installed.
        runs = [run for run in entry.runs if run.record.dev_score is not None]
        if entry.kind in ("run", "mean") and not entry.shipped and runs:
            about = runs[0].given, runs[0].precision, entry.size, entry.record.select
            alike.setdefault((about, entry.variant), []).append(Entry(runs))
    for (about, _), entries in alike.items():
        main = max(entries, key=lambda one: (len(one.runs), max(run.number for run in one.runs)))
        for entry in entries:
            given = about[0] if entry is main else entry.runs[0].shown
            yield (given, *about[1:]), entry


def _setup(
    about: _About, states: Mapping[Group, Mapping[str, Entry]], order: Sequence[str]
) -> Setup:
    settings, precision, size, select = about
    left_out: list[str] = []
    languages: dict[str, set[str]] = {}
    for group, entries in states.items():
        for variant in entries:
            languages.setdefault(variant, set()).add(group.language)
    kept = {name for name, found in languages.items() if name in order or len(found) > 1}
    if kept and (rest := sorted(languages.keys() - kept)):
        hidden = ", ".join(f"{name} ({', '.join(languages[name])})" for name in rest)
        left_out.append(f"Not shown, variants of one language only: {hidden}.")
    banks: dict[str, list[tuple[Group, dict[str, Entry]]]] = {}
    for group, entries in states.items():
        some = {name: one for name, one in entries.items() if name in kept or not kept}
        if some:
            banks.setdefault(group.treebank, []).append((group, some))

    def weight(state: tuple[Group, Mapping[str, Entry]]) -> tuple[int, int]:
        # An experiment with one further variant must not displace the variants of the table.
        newest = max(run.number for entry in state[1].values() for run in entry.runs)
        return len(state[1].keys() & set(order)), newest

    rows = []
    for treebank, found in sorted(banks.items()):
        shown, entries = max(found, key=weight)
        rows.append(_row(shown, entries, settings, SelectionMetric.parse(select)))
        for group, others in found:
            if group is not shown:
                here, there = shown.runs.counted, group.runs.counted
                differing = "; ".join(
                    f"{key} is {other} there, {own} here"
                    for key, own, other in counting_differences(here, there)
                )
                number = sum(len(group.records_of(one)) for one in others.values())
                many = f"{number} record{'s' if number > 1 else ''} of {treebank}"
                left_out.append(f"Not shown: {many} that do not compare ({differing}).")
    rows.sort(key=lambda row: (row.language, row.treebank))
    known = {variant for row in rows for variant in row.entries}
    variants = (*(name for name in order if name in known), *sorted(known - set(order)))
    criterion = SelectionMetric.parse(select)
    return Setup(settings, precision, size, criterion, variants, tuple(rows), tuple(left_out))


def _row(
    group: Group, entries: Mapping[str, Entry], settings: str, criterion: SelectionMetric
) -> TreebankRow:
    """The scores of runs of one state of a treebank that differ in variant and seed only."""
    entries = {name: entries[name] for name in sorted(entries)}
    tested = {name: _tested(group, entry, criterion) for name, entry in entries.items()}
    # Of equals, the one that was scored on test is the one that was selected.
    order = sorted(entries, key=lambda name: (-len(tested[name]), name))
    dev = {name: entries[name].scores(_SCORE) for name in order}
    selected = best_variant({name: scores.values() for name, scores in dev.items()})
    test = Entry(tested[selected]) if tested[selected] else None
    notes = _row_notes(entries, selected, test, settings, criterion)
    compared = {}
    for name in (name for name in entries if name != selected and len(criterion.terms) == 1):
        common = dev[name].keys() & dev[selected].keys()
        one, other = (
            Entry([run for run in entries[each].runs if run.record.seed in common])
            for each in (selected, name)
        )
        ((metric, figure),) = criterion.terms
        if common and (found := one.compare(other, (metric, "dev"), figure)):
            compared[name] = found
        elif common:
            notes.append(f"{name} is not compared: its scores are not of the same sentences.")
    baselines: dict[str, Entry] = {}
    for run in sorted(test.runs if test else (), key=lambda run: run.number):
        for name in run.record.baselines:
            baselines.setdefault(name, Entry([run], name))
    several = len(criterion.metrics) > 1
    convention = [
        (f"{metric} {key}" if several else key, value)
        for metric in criterion.metrics
        for key, value in group.way_of_counting(metric).items()
    ]
    return TreebankRow(
        group=group,
        convention=tuple(sorted(convention)),
        entries=entries,
        tested=test,
        baselines=baselines,
        selected=selected,
        compared=compared,
        signature=(test or entries[selected]).signature(criterion.metrics),
        notes=tuple(f"{group.treebank}: {note}" for note in notes),
    )


def _tested(group: Group, entry: Entry, criterion: SelectionMetric) -> list[Run]:
    """Of each seed the newest record with scores of test that has the weights of the newest."""
    found: dict[tuple[int, str], Run] = {}
    for run in group.records_of(entry):
        if run.record.test and set(criterion.metrics) & run.record.test.metrics.keys():
            found[run.record.seed, run.record.weights] = run
    places = ((run.record.seed, run.record.weights) for run in entry.runs)
    return [found[place] for place in places if place in found]


def _row_notes(
    entries: Mapping[str, Entry],
    selected: str,
    test: Entry | None,
    settings: str,
    criterion: SelectionMetric,
) -> list[str]:
    notes = []
    seeds = {name: [run.record.seed for run in one.runs] for name, one in entries.items()}
    if len(set(map(tuple, seeds.values()))) > 1:
        listed = "; ".join(f"{name}: {', '.join(map(str, found))}" for name, found in seeds.items())
        notes.append(f"variants have different seeds ({listed}).")
    runs = [run for entry in entries.values() for run in entry.runs]
    if named := list(dict.fromkeys(run.name for run in runs if run.shown != settings)):
        notes.append(f"{', '.join(named)}; there are runs that differ in these settings.")
    tested = test.runs if test else ()
    if missing := sorted(set(seeds[selected]) - {run.record.seed for run in tested}):
        listed = ", ".join(map(str, missing))
        notes.append(f"{selected} is not scored on test (seed {listed}).")
    for split, some in (("dev", runs), ("test", tested)):
        results = (result for run in some if (result := run.result(split)))
        signed = (one.metrics.get(name) for one in results for name in criterion.metrics)
        number = max((one.skipped for one in signed if one), default=0)
        if number:
            notes.append(f"the scores of {split} leave out {number} of its sentences.")
    return notes


# ---- The tables ----


def write_track(
    groups: Iterable[Group], track: str, results_dir: Path, published: Sequence[PublishedFigure]
) -> str:
    """Write the table of a track in all formats, and return it as Markdown.

    Raises:
        SpmrlError: a file cannot be written.
    """
    order = list(dict.fromkeys(figure.variant for figure in published if figure.variant))
    document = track_document(score_track(groups, track, variants=order), published)
    texts = (to_markdown(document), to_csv(document), to_latex(document))
    files = [track_file(results_dir, track, suffix) for suffix in SUFFIXES]
    write_tables(dict(zip(files, texts, strict=True)))
    return texts[0]


def track_file(results_dir: Path, track: str, suffix: str) -> Path:
    """Where the table of a track is written."""
    return results_dir / f"multilingual-{track}.{suffix}"


def track_document(scores: TrackScores, published: Sequence[PublishedFigure]) -> Document:
    """The scores of a track, one table for each setup, and published ones."""
    titles = dict.fromkeys(setup.criterion.title for setup in scores.setups)
    intro = (
        "In percent, micro-averaged over the sentences of a split. The variant with the best mean "
        f"{' or '.join(titles)} on dev is scored on test.",
        *scores.left_out,
    )
    tables = [_setup_table(scores.track, setup) for setup in scores.setups]
    title = f"Scores by language, {track_title(scores.track)}"
    return Document(title, intro, (*tables, *_published_tables(scores.setups, published)))


def _setup_table(track: str, setup: Setup) -> Table:
    columns = [one for one in setup.columns if not one.baseline or one.is_headline]
    # First dev, then test, then what the baselines have of it.
    columns.sort(key=lambda column: (column.split, column.baseline))
    dev, test = ([one for one in columns if one.split == split] for split in ("dev", "test"))
    rows = []
    for row in setup.rows:
        best = row.selected if row.significant else None
        texts = [
            mean_text(row.mean(one.key, one.system), mark="*" if one.variant == best else "")
            for one in (*dev, *test)
        ]
        rows.append(
            [
                row.language,
                row.treebank,
                _seeds_text(row.seeds),
                *texts[: len(dev)],
                "" if row.p is None else f"{row.p:.4f}",
                row.selected if len(row.entries) > 1 else "",
                *texts[len(dev) :],
            ]
        )
    for found in setup.averages:
        # The name of the parameter set, without its hash; of other metrics their names.
        sets = [text.partition("(")[0] for key, text in found.convention if key.endswith("prm")]
        others = [name for name in setup.criterion.metrics if name != "brackets"]
        what = ", ".join([f"{len(found.languages)} languages", *sets, *others])
        values = [[mean_text(found.values[one]) for one in part] for part in (dev, test)]
        rows.append(["average", what, "", *values[0], "", "", *values[1]])
    titles = [[column.title for column in part] for part in (dev, test)]
    strong = {(n, 3 + setup.variants.index(row.selected)) for n, row in enumerate(setup.rows)}
    return Table(
        title=f"Model size {setup.name}: {track_title(track)}",
        headings=["language", "treebank", "seeds", *titles[0], "p", "selected", *titles[1]],
        rows=rows,
        numeric=frozenset({*titles[0], "p", *titles[1]}),
        breaks=frozenset({len(setup.rows)}),
        strong=frozenset(strong),
        notes=tuple(_setup_notes(setup)),
    )


def _seeds_text(seeds: Sequence[int]) -> str:
    """``1 to 5``, or the seeds one by one."""
    if len(seeds) > 2 and list(seeds) == list(range(seeds[0], seeds[0] + len(seeds))):
        return f"{seeds[0]} to {seeds[-1]}"
    return ", ".join(map(str, seeds))


def _setup_notes(setup: Setup) -> list[Note]:
    notes: list[Note] = []
    several = any(len(one.runs) > 1 for row in setup.rows for one in row.entries.values())
    if several:
        notes.append("±: standard deviation over the seeds.")
    if tested := sum(bool(row.compared) for row in setup.rows):
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
    for found in setup.averages:
        values = found.values.items()
        lacking = [one.title for one, value in values if value is None and not one.baseline]
        if lacking:
            notes.append(
                f"No average of {', '.join(lacking)} over {len(found.languages)} languages: at "
                "least one has no such score."
            )
    notes += [note for row in setup.rows for note in row.notes]
    signatures = tuple(f"{row.treebank}: `{row.signature}`" for row in setup.rows)
    return [*notes, *setup.left_out, signatures]


# ---- Published figures ----

_AVERAGE = "average"
_SELECTED = "selected on dev"
_FAMILIES = {
    "spmrl": "the SPMRL treebanks",
    "ptb": "the Penn Treebank",
    "ctb": "the Chinese Treebank",
}
_OTHER_TREEBANK = (
    "These figures are of another treebank than the scores above, so they do not compare with "
    "them and no difference is computed."
)
_DELTA = "Δ: ours minus the published score of the same treebank and settings, in points."
_Place = tuple[str, Key]  # a language and a figure of its treebank


class PublishedDifference(NamedTuple):
    """A (mean) score of this program minus the published one of the same treebank and settings."""

    variant: str
    published: PublishedFigure
    points: float


def published_differences(
    setup: Setup, published: Iterable[PublishedFigure]
) -> list[PublishedDifference]:
    """All differences to published figures of the treebanks and settings of a setup.

    On dev each variant is compared with the same one; on test the variant that was selected
    here with the one that was selected there.
    """
    figures = [figure for figure in published if figure.variant]
    found = []
    for row in setup.rows:
        for figure in (one for one in figures if one.treebank == row.treebank):
            variant = row.selected if figure.split == "test" else figure.variant
            own = row.mean(figure.key, variant)
            if own is not None and figure.is_of(row.entries[variant].runs[0].settings):
                found.append(PublishedDifference(variant, figure, own.mean - figure.value))
    return found


def _published_tables(
    setups: Sequence[Setup], published: Sequence[PublishedFigure]
) -> Iterable[Table]:
    """The tables of published figures for the languages of some setups, comparable ones first.

    A figure compares with a score of the same treebank only. Where a setup has scores of the very
    treebank, they stand below the published ones, with the differences to the reproduced paper;
    figures of other treebanks of the language get tables without any score of this program. A
    family of treebanks of many languages has a column for each language, one of a single language
    a column for each figure.
    """
    metrics = {metric for setup in setups for metric in setup.criterion.metrics}
    rows = [row for setup in setups for row in setup.rows]
    languages, treebanks = {row.language for row in rows}, {row.treebank for row in rows}
    families: dict[tuple[str, str], set[str]] = {}
    for one in published:
        if one.variant and one.metric in metrics:
            families.setdefault((one.family, one.metric), set()).add(one.language)
    for same in (True, False):
        for (family, metric), of_family in families.items():
            name = _FAMILIES.get(family, f"treebanks of {family}")
            title = f"Published, on {name}: not comparable"
            if same:
                title = f"Beside published scores on {name}"
            figures = [  # those of variants, which are the reference, behind the others
                one
                for one in sorted(published, key=lambda one: bool(one.variant))
                if (one.family, one.metric) == (family, metric)
                and one.language in languages
                and (one.treebank in treebanks) == same
            ]
            columns, shown = brief_columns([metric]), setups if same else ()
            if len(of_family) == 1:
                yield from _published_table(title, figures, columns, shown, by_language=False)
                continue
            for column in (column for column in columns if column.is_headline):
                yield from _published_table(title, figures, [column], shown, by_language=True)


def _published_table(
    title: str,
    figures: Sequence[PublishedFigure],
    columns: Sequence[Column],
    setups: Sequence[Setup],
    *,
    by_language: bool,
) -> Iterable[Table]:
    """The table of the treebanks that the reference has figures of, if it has a row."""
    banks = {one.language: one.treebank for one in figures if one.variant}
    places: dict[_Place, str] = {
        (language, column.key): language if by_language else column.title
        for language in banks
        for column in columns
    }
    figures = [
        one
        for one in figures
        if banks.get(one.language) == one.treebank and (one.language, one.key) in places
    ]
    of_selected = by_language and columns[0].split == "test"
    # By section (lines are drawn between these), system and setting.
    lines: dict[tuple[object, str, str], dict[_Place, Scores]] = {}
    for one in figures:
        setting = one.variant or ("" if by_language else one.setting)
        setting = _SELECTED if one.variant and of_selected else setting
        kind = bool(one.variant), "" if one.variant else setting
        line = lines.setdefault((kind, one.system, setting), {})
        line[one.language, one.key] = {0: one.value}
    mixed: set[object] = set()  # sections of rows that were counted in different ways
    for setup in setups:
        name = f", {setup.name}" if len(setups) > 1 or not by_language else ""
        rows = {row.language: row for row in setup.rows if banks.get(row.language) == row.treebank}
        own, delta = ("ours", name), ("Δ", name)
        if len({row.convention for row in rows.values()}) != 1:
            mixed.add(own)
        variants = [_SELECTED] if of_selected else setup.variants
        for variant in variants:
            for place in (place for place in places if place[0] in rows):
                system = "" if of_selected else variant
                if found := rows[place[0]].scores(place[1], system):
                    lines.setdefault((own, f"ours{name}", variant), {})[place] = found
        for apart in published_differences(setup, figures):
            theirs, variant = apart.published, _SELECTED if of_selected else apart.variant
            system = f"Δ {theirs.system}{name if by_language else ''}"
            line = lines.setdefault((delta, system, variant), {})
            line[theirs.language, theirs.key] = {0: apart.points}
    if not lines:
        return
    headings = list(places.values())
    headings += [_AVERAGE] if by_language and len(banks) > 1 else []
    cells = []
    for (section, system, setting), scores in lines.items():
        signed = system.startswith("Δ")
        texts = [mean_text(SeedMean.of(scores.get(one, {}).values()), signed) for one in places]
        if _AVERAGE in headings:
            by_place = [(language, scores.get((language, key), {})) for language, key in places]
            texts.append(mean_text(None if section in mixed else average(by_place), signed))
        labels = [system, setting]
        cells.append([*([", ".join(filter(None, labels))] if by_language else labels), *texts])
    sections = [section for section, _, _ in lines]
    yield Table(
        title=f"{title} ({columns[0].title if by_language else ', '.join(banks)})",
        headings=["system", *([] if by_language else ["setting"]), *headings],
        rows=cells,
        numeric=frozenset(headings),
        breaks=frozenset(n for n, (one, last) in enumerate(pairwise(sections), 1) if one != last),
        notes=(_DELTA if setups else _OTHER_TREEBANK, _sources(figures, by_language)),
    )


def _sources(figures: Iterable[PublishedFigure], by_language: bool) -> list[str]:
    """A line for each source, with the systems whose figures are from there."""
    systems: dict[str, dict[str, None]] = {}
    for figure in figures:
        # The paper is said where the source is another, the setting where no column has it.
        about = [figure.setting] if by_language else []
        about += [] if figure.source.startswith(figure.paper) else [figure.paper]
        listed = "; ".join(filter(None, about))
        named = f"{figure.system} [{listed}]" if listed else figure.system
        systems.setdefault(figure.source, {})[named] = None
    return [f"{source}: {'; '.join(named)}" for source, named in systems.items()]
