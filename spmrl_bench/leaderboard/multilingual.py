"""Scores of one model over the languages of a track, and published ones beside them.

Such a table invites three mistakes: to average scores that were counted in different ways, to take
the difference of two variants for more than chance, and to compare languages of which one lacks a
run. So runs of one model size, precision and settings that were selected by the same figure form a
:class:`Setup`. A row of it is one treebank with the runs that compare, from as many seeds as there
are; an average is over rows that were scored in the same way, and only where each has the value.

Where runs of one treebank and variant differ in settings that nobody gave with the command, those
with the most seeds, then the newest, belong to the setup of the others; the rest are of a setup
that names the settings. Ensembles, systems of others and shipped records are left out, and so are
variants of one language. Of several states of one treebank (other files or another way of scoring)
the one with most of the published variants is taken, then the newest.

The layout is that of Kitaev & Klein 2018, Table 7: dev of each variant, test of the selected one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
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
from spmrl_bench.leaderboard.frame import Run, counting_differences
from spmrl_bench.leaderboard.published import PublishedFigure
from spmrl_bench.scoring.metric import SelectionMetric
from spmrl_bench.scoring.significance import TRIALS

SUFFIXES = ("md", "csv", "tex")  # of the files of one track
_SCORE = ("dev", "", "score")
_Counting = tuple[tuple[str, str], ...]  # what scores share that may be averaged


@dataclass(frozen=True, slots=True)
class TreebankRow:
    """One treebank in one setup.

    Attributes:
        entries: the runs of each variant.
        selected: the variant with the best mean of what dev selects by.
        tested: those of its runs that have scores of test; None without any.
        compared: on dev, the selected variant with each other one.
    """

    group: Group
    counting: _Counting
    entries: Mapping[str, Entry]
    selected: str
    tested: Entry | None
    compared: Mapping[str, Difference]
    signature: str
    notes: Sequence[str]

    @property
    def language(self) -> str:
        return self.group.language

    @property
    def treebank(self) -> str:
        return self.group.treebank

    @property
    def seeds(self) -> list[int]:
        return sorted({run.record.seed for entry in self.entries.values() for run in entry.runs})

    def scores(self, column: Column) -> Scores:
        """A figure of a variant, a baseline or, on test, the selected variant, by seed."""
        entry = self.entries.get(column.variant) if column.variant else self.tested
        if column.baseline:
            named = (one for one in self.group.entries if one.baseline == column.baseline)
            entry = next(named, None)
        return entry.scores(column.key) if entry else {}

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

    counting: _Counting
    languages: Sequence[str]
    values: Mapping[Column, SeedMean | None]


@dataclass(frozen=True, slots=True)
class Setup:
    """Runs of one model size, precision, settings and way to select, over the languages."""

    name: str
    criterion: SelectionMetric
    variants: Sequence[str]
    rows: Sequence[TreebankRow]
    left_out: Sequence[str]

    @property
    def languages(self) -> list[str]:
        return list(dict.fromkeys(row.language for row in self.rows))

    @property
    def columns(self) -> list[Column]:
        """What selects, of each variant, then figures of test, then headlines of baselines."""
        title = f"dev {self.criterion.title}"
        dev = [Column(f"{title} {name}", *_SCORE, variant=name) for name in self.variants]
        test = [one for one in brief_columns(self.criterion.metrics) if one.split == "test"]
        baselines = {one.baseline for row in self.rows for one in row.group.entries} - {""}
        of_baselines = [
            column._replace(title=f"{column.title} {name}", baseline=name)
            for name in sorted(baselines)
            for column in test
            if column.is_headline
        ]
        return (
            dev + test + [one for one in of_baselines if any(row.scores(one) for row in self.rows)]
        )

    @property
    def averages(self) -> list[Average]:
        """An average for each way of counting that at least two languages share."""
        averages = []
        for counting in dict.fromkeys(row.counting for row in self.rows):
            rows = [row for row in self.rows if row.counting == counting]
            languages = list(dict.fromkeys(row.language for row in rows))
            values = {
                one: average([(row.language, row.scores(one)) for row in rows])
                for one in self.columns
            }
            if len(languages) > 1:
                averages.append(Average(counting, languages, values))
        return sorted(averages, key=lambda one: -len(one.languages))


def tracks_of(groups: Iterable[Group], *, languages: int = 2) -> list[str]:
    """Tracks with records of the user in at least that many languages."""
    found: dict[str, set[str]] = {}
    for group in groups:
        if not all(run.stored.shipped for run in group.runs):
            found.setdefault(group.track, set()).add(group.language)
    return sorted(track for track, names in found.items() if len(names) >= languages)


# ---- Setups from the entries of each treebank ----

_About = tuple[str, str, str, str]
"""Settings, precision, size and select of a setup."""


def setups_of(
    groups: Iterable[Group], track: str, *, variants: Sequence[str] = ()
) -> tuple[list[Setup], list[str]]:
    """The setups of a track, and a note on those that are left out.

    Setups of a single language are left out where another has several: they are what is left of
    experiments on one treebank.

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
    return shown, [f"Not shown, records of one language only: {'; '.join(hidden)}."][: len(hidden)]


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
        main = max(entries, key=lambda one: (len(one.runs), _newest([one])))
        for entry in entries:
            given = about[0] if entry is main else entry.runs[0].shown
            yield (given, *about[1:]), entry


def _newest(entries: Iterable[Entry]) -> int:
    return max(run.number for entry in entries for run in entry.runs)


def _setup(
    about: _About, states: Mapping[Group, Mapping[str, Entry]], order: Sequence[str]
) -> Setup:
    settings, precision, size, select = about
    criterion = SelectionMetric.parse(select)
    languages: dict[str, set[str]] = {}
    for group, entries in states.items():
        for variant in entries:
            languages.setdefault(variant, set()).add(group.language)
    several = {name for name, found in languages.items() if name in order or len(found) > 1}
    kept = several or languages.keys()
    hidden = [f"{name} ({', '.join(languages[name])})" for name in sorted(languages.keys() - kept)]
    left_out = [f"Not shown, variants of one language only: {', '.join(hidden)}."] if hidden else []
    banks: dict[str, list[tuple[Group, dict[str, Entry]]]] = {}
    for group, entries in states.items():
        if some := {name: entries[name] for name in sorted(entries) if name in kept}:
            banks.setdefault(group.treebank, []).append((group, some))
    rows = []
    for treebank, found in sorted(banks.items()):
        # An experiment with one further variant must not displace the variants of the table.
        shown, entries = max(
            found, key=lambda state: (len(state[1].keys() & set(order)), _newest(state[1].values()))
        )
        rows.append(_row(shown, entries, settings, criterion))
        for group, others in found:
            if group is not shown:
                differing = "; ".join(
                    f"{key} is {other} there, {own} here"
                    for key, own, other in counting_differences(
                        shown.runs.counted, group.runs.counted
                    )
                )
                number = sum(len(group.records_of(one)) for one in others.values())
                many = f"{number} record{'s' if number > 1 else ''} of {treebank}"
                left_out.append(f"Not shown: {many} that do not compare ({differing}).")
    known = {variant for row in rows for variant in row.entries}
    return Setup(
        name=", ".join(filter(None, (size, precision, settings))),
        criterion=criterion,
        variants=[*(name for name in order if name in known), *sorted(known - set(order))],
        rows=sorted(rows, key=lambda row: (row.language, row.treebank)),
        left_out=left_out,
    )


def _row(
    group: Group, entries: Mapping[str, Entry], settings: str, criterion: SelectionMetric
) -> TreebankRow:
    """The scores of runs of one state of a treebank that differ in variant and seed only."""
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
    several = len(criterion.metrics) > 1
    counting = [
        (f"{metric} {key}" if several else key, value)
        for metric in criterion.metrics
        for key, value in group.way_of_counting(metric).items()
    ]
    return TreebankRow(
        group=group,
        counting=tuple(sorted(counting)),
        entries=entries,
        selected=selected,
        tested=test,
        compared=compared,
        signature=(test or entries[selected]).signature(criterion.metrics),
        notes=[f"{group.treebank}: {note}" for note in notes],
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
        notes.append(f"{selected} is not scored on test (seed {', '.join(map(str, missing))}).")
    for split, some in (("dev", runs), ("test", tested)):
        results = (result for run in some if (result := run.result(split)))
        signed = (one.metrics.get(name) for one in results for name in criterion.metrics)
        if number := max((one.skipped for one in signed if one), default=0):
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
    document = track_document(groups, track, published)
    texts = (to_markdown(document), to_csv(document), to_latex(document))
    files = [track_file(results_dir, track, suffix) for suffix in SUFFIXES]
    write_tables(dict(zip(files, texts, strict=True)))
    return texts[0]


def track_file(results_dir: Path, track: str, suffix: str) -> Path:
    """Where the table of a track is written."""
    return results_dir / f"multilingual-{track}.{suffix}"


def track_document(
    groups: Iterable[Group], track: str, published: Sequence[PublishedFigure]
) -> Document:
    """The scores of a track, one table for each setup, and published ones."""
    order = list(dict.fromkeys(figure.variant for figure in published if figure.variant))
    setups, left_out = setups_of(groups, track, variants=order)
    titles = dict.fromkeys(setup.criterion.title for setup in setups)
    intro = (
        "In percent, micro-averaged over the sentences of a split. The variant with the best mean "
        f"{' or '.join(titles)} on dev is scored on test.",
        *left_out,
    )
    tables = [_setup_table(track, setup) for setup in setups]
    title = f"Scores by language, {track_title(track)}"
    return Document(title, intro, (*tables, *_published_tables(setups, published)))


def _setup_table(track: str, setup: Setup) -> Table:
    dev, test = ([one for one in setup.columns if one.split == split] for split in ("dev", "test"))
    rows = []
    for row in setup.rows:
        best = row.selected if row.significant else None
        texts = [
            mean_text(
                SeedMean.of(row.scores(one).values()), mark="*" if one.variant == best else ""
            )
            for one in (*dev, *test)
        ]
        p = "" if row.p is None else f"{row.p:.4f}"
        selected = row.selected if len(row.entries) > 1 else ""
        about = [row.language, row.treebank, _seeds_text(row.seeds)]
        rows.append([*about, *texts[: len(dev)], p, selected, *texts[len(dev) :]])
    for found in setup.averages:
        # The name of the parameter set, without its hash; of other metrics their names.
        sets = [text.partition("(")[0] for key, text in found.counting if key.endswith("prm")]
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
    ways = {row.counting: dict(row.counting) for row in setup.rows}
    if len(ways) > 1:
        first, *others = ways.values()
        keys = sorted({key for one in others for key, _, _ in differences(first, one)})
        listed = "; ".join(
            f"{', '.join(row.treebank for row in setup.rows if row.counting == counting)} with "
            + ", ".join(f"{key} {found.get(key, ABSENT)}" for key in keys)
            for counting, found in ways.items()
        )
        notes.append(f"Scores that were counted in different ways are not averaged: {listed}.")
    for found in setup.averages:
        values = found.values.items()
        if lacking := [one.title for one, value in values if value is None and not one.baseline]:
            notes.append(
                f"No average of {', '.join(lacking)} over {len(found.languages)} languages: at "
                "least one has no such score."
            )
    notes += [note for row in setup.rows for note in row.notes]
    signatures = [f"{row.treebank}: `{row.signature}`" for row in setup.rows]
    return [*notes, *setup.left_out, signatures]


# ---- Published figures ----

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


def _published_tables(
    setups: Sequence[Setup], published: Sequence[PublishedFigure]
) -> Iterator[Table]:
    """The tables of published headlines for the languages of some setups, comparable ones first.

    A figure compares with a score of the same treebank only. Where a setup has scores of the very
    treebank, they stand below the published ones, with the differences to the reproduced paper;
    figures of other treebanks of the language get tables without any score of this program.
    """
    metrics = {metric for setup in setups for metric in setup.criterion.metrics}
    rows = [row for setup in setups for row in setup.rows]
    languages, treebanks = {row.language for row in rows}, {row.treebank for row in rows}
    listed = sorted(published, key=lambda one: bool(one.variant))  # the reference last
    families = dict.fromkeys(
        (one.family, one.metric) for one in published if one.variant and one.metric in metrics
    )
    for same in (True, False):
        for family, metric in families:
            name = _FAMILIES.get(family, f"treebanks of {family}")
            title = f"Published, on {name}: not comparable"
            if same:
                title = f"Beside published scores on {name}"
            for column in (one for one in brief_columns([metric]) if one.is_headline):
                figures = [
                    one
                    for one in listed
                    if (one.family, one.key) == (family, column.key)
                    and one.language in languages
                    and (one.treebank in treebanks) == same
                ]
                yield from _published_table(title, figures, column, setups if same else ())


def _published_table(
    title: str, figures: Sequence[PublishedFigure], column: Column, setups: Sequence[Setup]
) -> Iterator[Table]:
    """Systems by languages, on the treebanks that the reference has figures of."""
    banks = {one.language: one.treebank for one in figures if one.variant}
    figures = [one for one in figures if banks.get(one.language) == one.treebank]
    tested = column.split == "test"

    def named(system: str, variant: str) -> str:
        return ", ".join(filter(None, (system, "selected on dev" if tested else variant)))

    published: dict[str, dict[str, Scores]] = {}
    for one in figures:
        label = named(one.system, one.variant) if one.variant else one.system
        if one.language in published.get(label, ()):
            label = f"{label} ({one.setting})"
        published.setdefault(label, {})[one.language] = {0: one.value}
    ours: dict[str, dict[str, Scores]] = {}
    apart: dict[str, dict[str, Scores]] = {}
    mixed: set[str] = set()  # lines of scores that were counted in different ways
    for setup in setups:
        name = f", {setup.name}" if len(setups) > 1 else ""
        rows = {row.language: row for row in setup.rows if banks.get(row.language) == row.treebank}
        for variant in ("",) if tested else setup.variants:
            label = named(f"ours{name}", variant)
            found = {
                language: scores
                for language in banks
                if language in rows
                and (scores := rows[language].scores(column._replace(variant=variant)))
            }
            ours |= {label: found} if found else {}
            mixed |= {label} if len({row.counting for row in rows.values()}) > 1 else set()
        for one in (one for one in figures if one.variant and one.language in rows):
            row = rows[one.language]
            variant = row.selected if tested else one.variant
            scores = row.scores(column._replace(variant="" if tested else variant))
            if scores and one.is_of(row.entries[variant].runs[0].settings):
                own = SeedMean.of(scores.values())
                line = apart.setdefault(named(f"Δ {one.system}{name}", one.variant), {})
                line[one.language] = {0: own.mean - one.value} if own else {}
    if not figures:
        return
    cells = []
    for label, scores_of in (published | ours | apart).items():
        by_language = [(language, scores_of.get(language, {})) for language in banks]
        means = [SeedMean.of(scores.values()) for _, scores in by_language]
        if len(banks) > 1:
            means.append(None if label in mixed else average(by_language))
        cells.append([label, *(mean_text(one, label in apart) for one in means)])
    headings = [*banks, *(["average"] if len(banks) > 1 else [])]
    yield Table(
        title=f"{title} ({column.title})",
        headings=["system", *headings],
        rows=cells,
        numeric=frozenset(headings),
        breaks=frozenset({len(published), len(published) + len(ours)}),
        notes=(_DELTA if setups else _OTHER_TREEBANK, _sources(figures)),
    )


def _sources(figures: Iterable[PublishedFigure]) -> list[str]:
    """A line for each source, with the systems whose figures are from there."""
    systems: dict[str, dict[str, None]] = {}
    for one in figures:
        # The paper is said where the source is another.
        paper = "" if one.source.startswith(one.paper) else one.paper
        listed = "; ".join(filter(None, (one.setting, paper)))
        named = f"{one.system} [{listed}]" if listed else one.system
        systems.setdefault(one.source, {})[named] = None
    return [f"{source}: {'; '.join(named)}" for source, named in systems.items()]
