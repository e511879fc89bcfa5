"""Scores of one model over the languages of a track, as a function of the records.

A table over languages invites three mistakes: to average scores that were counted in different
ways, to take the difference of two variants for more than chance, and to compare languages of
which one lacks a run. So runs of one model size, precision and settings that were selected by the
same figure form a :class:`Setup`; what differs in these never shares a table. A row of it is one
treebank with the runs that compare, from as many seeds as there are; an average is over rows that
were scored in the same way and only where every one of them has the value.

Where runs of one treebank and variant differ in settings that nobody gave with the command, those
with the most seeds, then the newest, belong to the setup of the others; the rest are of a setup
that names the settings. Ensembles are left out, and so are variants of one language. Of several
records of a run the newest is taken, and of several states of one treebank (other files or another
way of scoring) the one with most of the variants that the table is about, then the one with the
newest record.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import pandas as pd

from spmrl_bench.errors import ScoreError
from spmrl_bench.leaderboard.board import (
    Column,
    Key,
    Scores,
    SeedMean,
    average,
    best_variant,
    brief_columns,
    selecting_column,
)
from spmrl_bench.leaderboard.compare import joined_signature, score_key
from spmrl_bench.leaderboard.contest import compare_variants
from spmrl_bench.leaderboard.frame import (
    GROUP,
    by_age,
    counting_differences,
    parts,
    records_frame,
)
from spmrl_bench.leaderboard.identity import Resolved, resolved_settings
from spmrl_bench.leaderboard.record import Record
from spmrl_bench.scoring.metric import SelectionMetric
from spmrl_bench.scoring.significance import Comparison

LEVEL = 0.05  # p below which a difference is marked

Convention = tuple[tuple[str, str], ...]

# What describes a treebank rather than the way of scoring; rows differ in these by nature.
_OF_TREEBANK = frozenset({"fingerprint", "split", "sentences", "skipped", "counts", "transforms"})


@dataclass(frozen=True, slots=True)
class TreebankScores:
    """One treebank in one setup."""

    language: str
    treebank: str
    convention: Convention  # what its scores share with those they may be averaged with
    selected: str  # the variant with the best mean of what dev selects by
    # Of each variant what dev selects by, of the selected one also what test has, if it was scored
    # there; of each baseline test, with the seed 0.
    figures: Mapping[str, Mapping[Key, Scores]]
    baselines: Sequence[str]
    contests: Mapping[str, Comparison]  # on dev: another variant, then the selected one
    settings: Mapping[str, Resolved]  # of each variant
    signature: str  # of the test scores, or of dev where there are none
    notes: tuple[str, ...]

    @property
    def seeds(self) -> list[int]:
        """Seeds of all its runs."""
        found = (self.figures[variant].values() for variant in self.settings)
        return sorted({seed for figures in found for scores in figures for seed in scores})

    def scores(self, key: Key, system: str = "") -> Scores:
        """A figure of a variant or baseline by seed; without a name, of the selected variant."""
        return self.figures.get(system or self.selected, {}).get(key, {})

    def estimate(self, key: Key, system: str = "") -> SeedMean | None:
        """The same over the seeds."""
        return SeedMean.of(self.scores(key, system).values())

    @property
    def p(self) -> float | None:
        """The largest p of the selected variant against the others; None without a test."""
        return max((one.p_randomisation for one in self.contests.values()), default=None)

    @property
    def significant(self) -> bool:
        """Whether dev shows the selected variant to be better than every other."""
        won = (one.difference > 0 and one.p_randomisation < LEVEL for one in self.contests.values())
        return 0 < len(self.contests) == len(self.settings) - 1 and all(won)


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
    rows: tuple[TreebankScores, ...]
    left_out: tuple[str, ...]

    @property
    def name(self) -> str:
        """Size, and what else differs from the recipes."""
        return ", ".join(part for part in (self.size, self.precision, self.settings) if part)

    @property
    def languages(self) -> list[str]:
        """Languages of the rows, each once."""
        return list(dict.fromkeys(row.language for row in self.rows))

    @property
    def columns(self) -> list[Column]:
        """What selects, of each variant; of test the figures up to the headline of each metric."""
        selecting = selecting_column(self.criterion)
        found = [
            selecting._replace(title=f"{selecting.title} {name}", variant=name)
            for name in self.variants
        ]
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
                column: average(
                    [(row.language, row.scores(column.key, column.system)) for row in rows]
                )
                for column in self.columns
            }
            if len(languages) > 1:
                averages.append(Average(convention, languages, values))
        return sorted(averages, key=lambda one: -len(one.languages))


class TrackScores(NamedTuple):
    """All of a track that its records tell."""

    track: str
    setups: tuple[Setup, ...]
    left_out: tuple[str, ...]


def tracks_of(records: Iterable[Record], *, languages: int = 2) -> list[str]:
    """Tracks with records of at least that many languages."""
    found: dict[str, set[str]] = {}
    for record in records:
        found.setdefault(record.treebank.track, set()).add(record.treebank.language)
    return sorted(track for track, names in found.items() if len(names) >= languages)


def score_track(
    records: Iterable[Record], track: str, *, variants: Sequence[str] = ()
) -> TrackScores:
    """The scores of one track.

    Setups of a single language are left out where another has several, which a note says: they
    are what is left of experiments on one treebank.

    Args:
        records: of any tracks; those of others are ignored.
        track: name of the track.
        variants: the variants that the table is about, in order; others follow by name.
    """
    ordered = by_age(
        record for record in records if record.treebank.track == track and record.system is None
    )
    frame = records_frame(ordered)
    # What selects is not known of records by metrics that are not installed.
    scored = frame.loc[frame["figure"] == "score", "record"]
    frame = _with_setup(frame[(frame["ensemble"] == 0) & frame["record"].isin(scored)])
    setups = [
        _setup(about, rows, ordered, variants)
        for about, rows in parts(frame, ["setup", "precision", "size", "select"]).items()
    ]
    shown = [setup for setup in setups if len(setup.languages) > 1] or setups
    hidden = [f"{one.name} ({one.languages[0]})" for one in setups if one not in shown]
    left_out = (f"Not shown, records of one language only: {'; '.join(hidden)}.",)
    return TrackScores(track, tuple(shown), left_out if hidden else ())


def _with_setup(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame with the settings of each run's setup in a column ``setup``."""
    setup = frame["given"].copy()
    alike = [*GROUP, "precision", "size", "select", "given", "variant"]
    for rows in parts(frame, alike).values():
        several = parts(rows, "digest")
        main = max(
            several, key=lambda one: (several[one]["seed"].nunique(), several[one]["record"].max())
        )
        apart = rows.index[rows["digest"] != main]
        setup[apart] = frame.loc[apart, "settings"]
    return frame.assign(setup=setup)


def _setup(
    about: tuple[str, str, str, str],
    rows: pd.DataFrame,
    records: Sequence[Record],
    order: Sequence[str],
) -> Setup:
    settings, precision, size, select = about
    criterion = SelectionMetric.parse(select)
    rows, left_out = _of_several_languages(rows, order)
    found: list[TreebankScores] = []
    for treebank, runs in parts(rows, "treebank").items():
        # An experiment with one further variant must not displace the variants of the table.
        shown, *others = sorted(
            parts(runs, "group").values(),
            key=lambda state: (len(set(state["variant"]) & set(order)), state["record"].max()),
            reverse=True,
        )
        found.append(_treebank_scores(shown, records, criterion))
        for state in sorted(others, key=lambda state: state["group"].iloc[0]):
            differing = "; ".join(
                f"{key} is {there} there, {here} here"
                for key, here, there in counting_differences(shown, state)
            )
            number = state["record"].nunique()
            many = f"{number} record{'s' if number > 1 else ''} of {treebank}"
            left_out.append(f"Not shown: {many} that do not compare ({differing}).")
    found.sort(key=lambda row: (row.language, row.treebank))
    there = {variant for row in found for variant in row.settings}
    variants = (*(name for name in order if name in there), *sorted(there - set(order)))
    left = tuple(left_out)
    return Setup(settings, precision, size, criterion, variants, tuple(found), left)


def _of_several_languages(
    rows: pd.DataFrame, order: Sequence[str]
) -> tuple[pd.DataFrame, list[str]]:
    """Rows of the variants in ``order`` or of several languages; a note on the others."""
    languages = rows.groupby("variant")["language"].nunique()
    kept = [name for name, number in languages.items() if name in order or number > 1]
    if not kept:
        return rows, []
    apart = rows[~rows["variant"].isin(kept)].drop_duplicates("variant").sort_values("variant")
    hidden = [f"{row.variant} ({row.language})" for row in apart.itertuples()]
    notes = [f"Not shown, variants of one language only: {', '.join(hidden)}."] if hidden else []
    return rows[rows["variant"].isin(kept)], notes


def _treebank_scores(
    rows: pd.DataFrame, records: Sequence[Record], criterion: SelectionMetric
) -> TreebankScores:
    """The scores of runs of one state of a treebank that differ in variant and seed only."""
    own = rows[rows["baseline"] == ""].sort_values("seed", kind="stable")
    newest = own[own["newest"]]
    runs = {
        name: dict(zip(found["seed"], (records[n] for n in found["record"]), strict=True))
        for name, found in parts(newest, "variant").items()
    }
    dev = {
        name: {seed: record.dev.score(criterion) for seed, record in found.items()}
        for name, found in runs.items()
    }
    # Of test, the newest record of each seed that has the weights of the newest of all.
    weights = newest[["variant", "seed", "weights"]].drop_duplicates()
    tested = own[own["split"] == "test"].merge(weights)
    last = tested.groupby(["variant", "seed"])["record"].transform("max")
    tested = tested[tested["record"] == last]
    # Of equals, the one that was scored on test is the one that was selected.
    order = sorted(
        dev, key=lambda name: (-tested[tested["variant"] == name]["seed"].nunique(), name)
    )
    selected = best_variant({name: dev[name].values() for name in order})
    test = tested[(tested["variant"] == selected) & tested["metric"].isin(criterion.metrics)]
    language, treebank = rows[["language", "treebank"]].iloc[0]
    notes = _notes(dev, selected, newest, test)
    contests: dict[str, Comparison] = {}
    for name in sorted(dev.keys() - {selected}):
        try:
            contest = compare_variants(runs[name], runs[selected], criterion)
        except ScoreError as error:
            reason = str(error).splitlines()[0]
            notes.append(f"{treebank}: {name} is not compared: {reason}.")
            continue
        if contest is not None:
            contests[name] = contest
    scored = newest[(newest["split"] == "dev") & newest["metric"].isin(criterion.metrics)]
    shown = scored[scored["variant"] == selected] if test.empty else test
    beside = rows[(rows["baseline"] != "") & rows["record"].isin(test["record"])]
    baselines = {
        name: _figures(found[found["record"] == found["record"].min()].assign(seed=0))
        for name, found in parts(beside, "baseline").items()
    }
    selecting = selecting_column(criterion).key
    figures = baselines | {name: {selecting: scores} for name, scores in dev.items()}
    figures[selected] |= _figures(test)
    return TreebankScores(
        language=language,
        treebank=treebank,
        convention=_convention(scored, criterion),
        selected=selected,
        figures=figures,
        baselines=tuple(baselines),
        contests=contests,
        settings={
            name: resolved_settings(next(iter(found.values())).recipe)
            for name, found in runs.items()
        },
        signature=" & ".join(
            joined_signature(found.drop_duplicates("seed")["signature"])
            for found in parts(shown, "metric").values()
        ),
        notes=tuple(notes),
    )


def _figures(rows: pd.DataFrame) -> dict[Key, dict[int, float]]:
    """Each figure by seed."""
    return {
        key: dict(zip(found["seed"].tolist(), found["value"].tolist(), strict=True))
        for key, found in parts(rows, ["split", "metric", "figure"]).items()
    }


def _convention(scored: pd.DataFrame, criterion: SelectionMetric) -> Convention:
    """What decides how the scores were counted, whatever the treebank."""
    several = len(criterion.metrics) > 1
    return tuple(
        sorted(
            (f"{metric} {key}" if several else key, value)
            for metric, rows in parts(scored, "metric").items()
            for key, value in way_of_counting(rows["signature_long"].iloc[0]).items()
        )
    )


def way_of_counting(signature_long: str) -> dict[str, str]:
    """What scores share that may be averaged: their signature without what is the treebank's."""
    key = score_key(signature_long, "")
    return {name: value for name, value in key.items() if name not in _OF_TREEBANK}


def _notes(
    dev: Mapping[str, Scores], selected: str, newest: pd.DataFrame, test: pd.DataFrame
) -> list[str]:
    notes = []
    if len({tuple(scores) for scores in dev.values()}) > 1:
        listed = "; ".join(f"{variant}: {_listed(scores)}" for variant, scores in dev.items())
        notes.append(f"variants have different seeds ({listed}).")
    named = newest.loc[newest["settings"] != newest["setup"], "name"].unique()
    if len(named):
        notes.append(f"{', '.join(named)}; there are runs that differ in these settings.")
    missing = sorted(dev[selected].keys() - set(test["seed"]))
    if missing:
        notes.append(f"{selected} is not scored on test (seed {_listed(missing)}).")
    for split, rows in (("dev", newest[newest["split"] == "dev"]), ("test", test)):
        if number := rows["skipped"].max() if len(rows) else 0:
            notes.append(f"the scores of {split} leave out {number:.0f} of its sentences.")
    return [f"{newest['treebank'].iloc[0]}: {note}" for note in notes]


def _listed(numbers: Iterable[int]) -> str:
    return ", ".join(map(str, numbers))
