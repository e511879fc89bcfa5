"""Scores of one model over the languages of a track, as a function of the records.

A table over languages invites three mistakes: to average scores that were counted in different
ways, to take the difference of two variants for more than chance, and to compare languages of
which one lacks a run. So a row here is one treebank with the runs that compare, from as many
seeds as there are; an average is over rows that were scored in the same way and only where
every one of them has the value; and two variants are compared by a test over the sentences.

*Setups.* Runs of one model size, precision and settings that were selected by the same figure
form a :class:`Setup`; what differs in these never shares a table. Where runs of one treebank
and variant differ in settings that nobody gave with the command, those with the most seeds, then
the newest, belong to the setup of the others; the rest are of a setup that names the settings.
Ensembles are left out, and so are variants of one language. Of several records of a run the
newest is taken, and of several states of one treebank (other files or another way of scoring) the
one with most of the variants that the table is about, then the one with the newest record.

A score from several seeds is their mean with the sample standard deviation;
:mod:`estimates` says what an average is, and :mod:`contest` how variants are compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from spmrl_bench.errors import ScoreError
from spmrl_bench.leaderboard.comparison import RUN_KEYS, joined_signature, score_key
from spmrl_bench.leaderboard.contest import compare_variants
from spmrl_bench.leaderboard.estimates import Estimate, Key, Scores, Term, average, best_variant
from spmrl_bench.leaderboard.frame import (
    GROUP,
    brief_terms,
    by_age,
    counting_differences,
    each,
    parts,
    records_frame,
)
from spmrl_bench.leaderboard.identity import Resolved, resolved_settings
from spmrl_bench.leaderboard.record import Record
from spmrl_bench.scoring.metric import Criterion
from spmrl_bench.scoring.significance import Comparison

LEVEL = 0.05  # p below which a difference is marked

# What describes a treebank rather than the way of scoring; rows differ in these by nature.
_OF_TREEBANK = frozenset({"fingerprint", "split", "sentences", "skipped", "transforms"})

Convention = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class TreebankScores:
    """One treebank in one setup.

    Attributes:
        language: of the treebank.
        treebank: name of its manifest.
        convention: what the scores share with those they may be averaged with.
        dev: what dev selects by, of each variant by seed.
        selected: the variant with the best mean of it.
        test: the figures of the selected variant on test, by seed; empty where it was not scored.
        baselines: the same of each baseline; empty without test scores.
        contests: the selected variant (second) against each other variant (first) on dev,
            where they have seeds in common.
        settings: of each variant, resolved.
        signature: of the test scores, or of dev where there are none.
        notes: what a reader has to know about this row.
    """

    language: str
    treebank: str
    convention: Convention
    dev: Mapping[str, Scores]
    selected: str
    test: Mapping[Term, Scores]
    baselines: Mapping[str, Mapping[Term, float]]
    contests: Mapping[str, Comparison]
    settings: Mapping[str, Resolved]
    signature: str
    notes: tuple[str, ...]

    @property
    def seeds(self) -> list[int]:
        """Seeds of all its runs."""
        return sorted({seed for scores in self.dev.values() for seed in scores})

    def scores(self, variant: str, key: Key, criterion: Criterion) -> Scores:
        """A figure of a variant by seed; of dev there is the criterion alone."""
        split, *term = key
        if split == "dev":
            return self.dev.get(variant, {}) if criterion.terms == (tuple(term),) else {}
        return self.test.get((term[0], term[1]), {}) if variant == self.selected else {}

    def baseline(self, name: str, term: Term) -> Scores:
        """A figure of a baseline, which has no seed."""
        figures = self.baselines.get(name, {})
        return {0: figures[term]} if term in figures else {}

    @property
    def p(self) -> float | None:
        """The largest p of the selected variant against the others; None without a test."""
        found = [contest.p_randomisation for contest in self.contests.values()]
        return max(found) if found else None

    @property
    def significant(self) -> bool:
        """Whether dev shows the selected variant to be better than every other."""
        others = self.dev.keys() - {self.selected}
        return bool(others) and all(
            (contest := self.contests.get(other)) is not None
            and contest.difference > 0
            and contest.p_randomisation < LEVEL
            for other in others
        )


@dataclass(frozen=True, slots=True)
class Average:
    """Averages over the languages that were scored in one way; None where a row has no value."""

    convention: Convention
    languages: tuple[str, ...]
    dev: Mapping[str, Estimate | None]
    test: Mapping[Term, Estimate | None]
    baselines: Mapping[str, Mapping[Term, Estimate | None]]


@dataclass(frozen=True, slots=True)
class Setup:
    """Runs of one model size, precision, settings and way to select, over the languages."""

    settings: str
    precision: str
    size: str
    criterion: Criterion
    variants: tuple[str, ...]
    rows: tuple[TreebankScores, ...]
    averages: tuple[Average, ...]
    left_out: tuple[str, ...]

    @property
    def name(self) -> str:
        """Size, and what else differs from the recipes."""
        unusual = [part for part in (self.precision, self.settings) if part]
        return ", ".join([self.size, *unusual])

    @property
    def languages(self) -> list[str]:
        """Languages of the rows, each once."""
        return list(dict.fromkeys(row.language for row in self.rows))

    @property
    def terms(self) -> list[Term]:
        """The figures that are shown of test: of each metric, those up to its headline."""
        return [term for name in self.criterion.metrics for term in brief_terms(name)]

    @property
    def baselines(self) -> list[str]:
        """Names of the baselines that a row has."""
        return list(dict.fromkeys(name for row in self.rows for name in row.baselines))


@dataclass(frozen=True, slots=True)
class TrackScores:
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
    ordered = by_age(record for record in records if record.treebank.track == track)
    frame = records_frame(ordered)
    # What selects is not known of records by metrics that are not installed.
    scored = frame.loc[frame["figure"] == "score", "record"]
    frame = _with_setup(frame[(frame["ensemble"] == 0) & frame["record"].isin(scored)])
    setups = [
        _setup(settings, precision, size, Criterion.parse(select), rows, ordered, variants)
        for (settings, precision, size, select), rows in parts(
            frame, ["setup", "precision", "size", "select"]
        ).items()
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
    settings: str,
    precision: str,
    size: str,
    criterion: Criterion,
    rows: pd.DataFrame,
    records: Sequence[Record],
    order: Sequence[str],
) -> Setup:
    rows, left_out = _of_several_languages(rows, order)
    found: list[TreebankScores] = []
    for treebank, runs in parts(rows, "treebank").items():
        # An experiment with one further variant must not displace the variants of the table.
        states = parts(runs, "group")
        shown = max(
            states,
            key=lambda number: (
                len(set(states[number]["variant"]) & set(order)),
                states[number]["record"].max(),
            ),
        )
        found.append(_treebank_scores(states[shown], records, criterion))
        for number, state in states.items():
            if number != shown:
                differing = "; ".join(
                    f"{key} is {there} there, {here} here"
                    for key, here, there in counting_differences(states[shown], state)
                )
                number = state["record"].nunique()
                many = f"{number} record{'s' if number > 1 else ''} of {treebank}"
                left_out.append(f"Not shown: {many} that do not compare ({differing}).")
    found.sort(key=lambda row: (row.language, row.treebank))
    names = {variant for row in found for variant in row.dev}
    ordered = [*(name for name in order if name in names), *sorted(names - set(order))]
    setup = Setup(
        settings, precision, size, criterion, tuple(ordered), tuple(found), (), tuple(left_out)
    )
    return replace(setup, averages=tuple(_averages(setup)))


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
    rows: pd.DataFrame, records: Sequence[Record], criterion: Criterion
) -> TreebankScores:
    """The scores of runs of one state of a treebank that differ in variant and seed only."""
    own = rows[rows["baseline"] == ""].sort_values("seed", kind="stable")
    newest = own[own["newest"]]
    score = newest[(newest["metric"] == "") & (newest["figure"] == "score")]
    dev = {name: _by_seed(found) for name, found in parts(score, "variant").items()}
    runs = {
        name: {seed: records[n] for seed, n in _by_seed(found, "record").items()}
        for name, found in parts(newest, "variant").items()
    }
    tested = _tested(own[own["split"] == "test"], runs)
    # Of equals, the one that was scored on test is the one that was selected.
    order = sorted(
        dev, key=lambda name: (-tested[tested["variant"] == name]["seed"].nunique(), name)
    )
    selected = best_variant({name: dev[name].values() for name in order})
    test = tested[(tested["variant"] == selected) & tested["metric"].isin(criterion.metrics)]
    first = rows.iloc[0]
    notes = _notes(dev, selected, newest, test)
    contests: dict[str, Comparison] = {}
    for name in sorted(dev.keys() - {selected}):
        try:
            contest = compare_variants(runs[name], runs[selected], criterion)
        except ScoreError as error:
            reason = str(error).splitlines()[0]
            notes.append(f"{first['treebank']}: {name} is not compared: {reason}.")
            continue
        if contest is not None:
            contests[name] = contest
    scored = newest[(newest["split"] == "dev") & newest["metric"].isin(criterion.metrics)]
    shown = scored[scored["variant"] == selected] if test.empty else test
    beside = rows[(rows["baseline"] != "") & rows["record"].isin(test["record"])]
    return TreebankScores(
        language=first["language"],
        treebank=first["treebank"],
        convention=_convention(scored, criterion),
        dev=dev,
        selected=selected,
        test={term: _by_seed(found) for term, found in parts(test, ["metric", "figure"]).items()},
        baselines={
            name: _figures(found[found["record"] == found["record"].min()])
            for name, found in parts(beside, "baseline").items()
        },
        contests=contests,
        settings={
            name: resolved_settings(next(iter(found.values()))) for name, found in runs.items()
        },
        signature=" & ".join(
            joined_signature(found.drop_duplicates("seed")["signature"])
            for found in parts(shown, "metric").values()
        ),
        notes=tuple(notes),
    )


def _by_seed(rows: pd.DataFrame, column: str = "value") -> dict[int, Any]:
    """A column of the rows by seed."""
    return dict(zip(rows["seed"].tolist(), rows[column].tolist(), strict=True))


def _figures(rows: pd.DataFrame) -> dict[Term, float]:
    """The figures of the rows, which are of one result."""
    keys = ("metric", "figure", "value")
    return {(metric, figure): value for metric, figure, value in rows[list(keys)].to_numpy()}


def _tested(rows: pd.DataFrame, runs: Mapping[str, Mapping[int, Record]]) -> pd.DataFrame:
    """Of rows of test those of the newest record of each seed with the weights of ``runs``."""
    keys = zip(rows["variant"], rows["seed"], rows["weights"], strict=True)
    same = [runs[variant][seed].weights == weights for variant, seed, weights in keys]
    found = rows[np.array(same, dtype=bool)]
    return found[found["record"] == found.groupby(["variant", "seed"])["record"].transform("max")]


def _convention(scored: pd.DataFrame, criterion: Criterion) -> Convention:
    """What decides how the scores were counted, whatever the treebank."""
    several = len(criterion.metrics) > 1
    return tuple(
        sorted(
            (f"{row.metric} {key}" if several else key, value)
            for row in each(scored.drop_duplicates("metric"))
            for key, value in score_key(row.signature_long, row.fingerprint).items()
            if key not in _OF_TREEBANK and key not in RUN_KEYS
        )
    )


def _notes(
    dev: Mapping[str, Scores], selected: str, newest: pd.DataFrame, test: pd.DataFrame
) -> list[str]:
    treebank, notes = newest["treebank"].iloc[0], []
    if len({tuple(scores) for scores in dev.values()}) > 1:
        listed = "; ".join(f"{variant}: {_listed(scores)}" for variant, scores in dev.items())
        notes.append(f"{treebank}: variants have different seeds ({listed}).")
    named = newest.loc[newest["settings"] != newest["setup"], "name"].unique()
    if len(named):
        notes.append(
            f"{treebank}: {', '.join(named)}; there are runs that differ in these settings."
        )
    missing = sorted(dev[selected].keys() - set(test["seed"]))
    if missing:
        notes.append(f"{treebank}: {selected} is not scored on test (seed {_listed(missing)}).")
    for split, rows in (("dev", newest[newest["split"] == "dev"]), ("test", test)):
        if number := rows["skipped"].max() if len(rows) else 0:
            notes.append(
                f"{treebank}: the scores of {split} leave out {number:.0f} of its sentences."
            )
    return notes


def _listed(numbers: Iterable[int]) -> str:
    return ", ".join(map(str, numbers))


def _averages(setup: Setup) -> list[Average]:
    """An average for each way of scoring that at least two languages share."""
    found: dict[Convention, list[TreebankScores]] = {}
    for row in setup.rows:
        found.setdefault(row.convention, []).append(row)
    averages = []
    for convention, members in found.items():
        languages = tuple(dict.fromkeys(row.language for row in members))
        if len(languages) < 2:
            continue
        names = [name for name in setup.variants if any(name in row.dev for row in members)]
        averages.append(
            Average(
                convention=convention,
                languages=languages,
                dev={
                    name: average([(row.language, row.dev.get(name, {})) for row in members])
                    for name in names
                },
                test={
                    term: average([(row.language, row.test.get(term, {})) for row in members])
                    for term in setup.terms
                },
                baselines={
                    name: {
                        term: average([(row.language, row.baseline(name, term)) for row in members])
                        for term in setup.terms
                    }
                    for name in setup.baselines
                },
            )
        )
    return sorted(averages, key=lambda one: -len(one.languages))
