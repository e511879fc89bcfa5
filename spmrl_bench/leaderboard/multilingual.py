"""Scores of one model over the languages of a track, as a function of the records.

A table over languages invites three mistakes: to average scores that were counted in different
ways, to take the difference of two variants for more than chance, and to compare languages of
which one lacks a run. So a row here is one treebank with the runs that compare, from as many
seeds as there are; an average is over rows that were scored in the same way and only where
every one of them has the value; and two variants are compared by a test over the sentences.

*Systems.* Runs of one model size, precision and settings form a :class:`System`; what differs
in these never shares a table. Ensembles are left out, and so are variants of one language. Of
several records of a run the newest is taken, and of several states of one treebank (other files
or another way of scoring) the one with most of the variants that the table is about, then the
one with the newest record.

A score from several seeds is their mean with the sample standard deviation;
:mod:`estimates` says what an average is, and :mod:`contest` how variants are compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from spmrl_bench.errors import ScoreError
from spmrl_bench.leaderboard.comparison import RUN_KEYS, score_key, signature_parts
from spmrl_bench.leaderboard.contest import compare_variants
from spmrl_bench.leaderboard.estimates import Estimate, Scores, average
from spmrl_bench.leaderboard.record import Record, SplitResult
from spmrl_bench.scoring.significance import Comparison
from spmrl_bench.settings_text import settings_text

METRICS = ("recall", "precision", "f1")
LEVEL = 0.05  # p below which a difference is marked

# What describes a treebank rather than the way of scoring; rows differ in these by nature.
_OF_TREEBANK = frozenset({"treebank", "fingerprint", "split", "sentences", "skipped", "transforms"})

Convention = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Row:
    """One treebank in one system.

    Attributes:
        language: of the treebank.
        treebank: name of its manifest.
        convention: what the scores share with those they may be averaged with.
        records: the newest record of each variant and seed.
        dev: dev F1 of each variant by seed.
        selected: the variant with the best mean dev F1.
        test: recall, precision and F1 of the selected variant on test, by seed; empty where it
            was not scored.
        tested: the records that ``test`` is from, by seed.
        baseline: the same of right-branching trees; empty without test scores.
        contests: the selected variant (second) against each other variant (first) by dev F1,
            where they have seeds in common.
        notes: what a reader has to know about this row.
    """

    language: str
    treebank: str
    convention: Convention
    records: Mapping[str, Mapping[int, Record]]
    dev: Mapping[str, Scores]
    selected: str
    test: Mapping[str, Scores]
    tested: Mapping[int, Record]
    baseline: Mapping[str, float]
    contests: Mapping[str, Comparison]
    notes: tuple[str, ...]

    @property
    def seeds(self) -> list[int]:
        """Seeds of all its runs."""
        return sorted({seed for runs in self.records.values() for seed in runs})

    @property
    def p(self) -> float | None:
        """The largest p of the selected variant against the others; None without a test."""
        found = [contest.p_randomisation for contest in self.contests.values()]
        return max(found) if found else None

    @property
    def significant(self) -> bool:
        """Whether dev shows the selected variant to be better than every other."""
        others = self.records.keys() - {self.selected}
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
    test: Mapping[str, Estimate | None]
    baseline: Mapping[str, Estimate | None]


@dataclass(frozen=True, slots=True)
class System:
    """Runs of one model size, precision and settings over the languages of a track."""

    size: str
    precision: str
    settings: str
    variants: tuple[str, ...]
    rows: tuple[Row, ...]
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


@dataclass(frozen=True, slots=True)
class TrackScores:
    """All of a track that its records tell."""

    track: str
    systems: tuple[System, ...]
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

    Systems of a single language are left out where another has several, which a note says: they
    are what is left of experiments on one treebank.

    Args:
        records: of any tracks; those of others are ignored.
        track: name of the track.
        variants: the variants that the table is about, in order; others follow by name.
    """
    found: dict[tuple[str, str, str], list[Record]] = {}
    for record in sorted(records, key=lambda record: record.finished):
        if record.treebank.track == track and not record.ensemble:
            precision = signature_parts(record.dev.signature_long).get("precision", "")
            key = record.size, precision, settings_text(record.settings)
            found.setdefault(key, []).append(record)
    systems = [
        _system(key, found[key], variants)
        for key in sorted(found, key=lambda key: (key[2], key[1], key[0]))
    ]
    shown = [system for system in systems if len(system.languages) > 1] or systems
    hidden = [f"{one.name} ({one.languages[0]})" for one in systems if one not in shown]
    left_out = (f"Not shown, records of one language only: {'; '.join(hidden)}.",)
    return TrackScores(track, tuple(shown), left_out if hidden else ())


def _system(key: tuple[str, str, str], records: list[Record], order: Sequence[str]) -> System:
    records, left_out = _of_several_languages(records, order)
    states: dict[str, dict[Convention, list[Record]]] = {}
    for record in records:
        whole = tuple(sorted(score_key(record, record.dev).items()))
        states.setdefault(record.treebank.name, {}).setdefault(whole, []).append(record)
    rows: list[Row] = []
    for treebank, found in states.items():
        # An experiment with one further variant must not displace the variants of the table.
        # Records are sorted by age, so the last of each state is its newest.
        newest = max(
            found,
            key=lambda state: (
                len({record.variant for record in found[state]} & set(order)),
                found[state][-1].finished,
            ),
        )
        rows.append(_row(found[newest]))
        for state, others in found.items():
            if state != newest:
                left_out.append(_left_out(treebank, others, state, newest))
    rows.sort(key=lambda row: (row.language, row.treebank))
    names = {variant for row in rows for variant in row.records}
    ordered = [*(name for name in order if name in names), *sorted(names - set(order))]
    return System(*key, tuple(ordered), tuple(rows), tuple(_averages(rows)), tuple(left_out))


def _of_several_languages(
    records: list[Record], order: Sequence[str]
) -> tuple[list[Record], list[str]]:
    """Records of the variants in ``order`` or of several languages; a note on the others."""
    languages: dict[str, set[str]] = {}
    for record in records:
        languages.setdefault(record.variant, set()).add(record.treebank.language)
    kept = {name for name, found in languages.items() if name in order or len(found) > 1}
    if not kept:
        return records, []
    hidden = [f"{name} ({min(languages[name])})" for name in sorted(languages.keys() - kept)]
    notes = [f"Not shown, variants of one language only: {', '.join(hidden)}."] if hidden else []
    return [record for record in records if record.variant in kept], notes


def _left_out(
    treebank: str, records: Sequence[Record], theirs: Convention, mine: Convention
) -> str:
    one, other = dict(mine), dict(theirs)
    differing = [
        f"{key} is {other.get(key, 'absent')} there, {one.get(key, 'absent')} here"
        for key in sorted(one.keys() | other.keys())
        if one.get(key) != other.get(key)
    ]
    number = f"{len(records)} record" + ("s" if len(records) > 1 else "")
    return f"Not shown: {number} of {treebank} that do not compare ({'; '.join(differing)})."


def _row(records: Sequence[Record]) -> Row:
    """The row of records of one state of a treebank, oldest first."""
    newest: dict[str, dict[int, Record]] = {}
    for record in records:
        newest.setdefault(record.variant, {})[record.seed] = record
    dev = {
        variant: {seed: runs[seed].dev.f1 for seed in sorted(runs) if runs[seed].dev.f1 is not None}
        for variant, runs in newest.items()
    }
    means = {
        variant: estimate.mean
        for variant, scores in dev.items()
        if (estimate := Estimate.of(scores)) is not None  # type: ignore[arg-type]
    }
    # Of equals, the one that was scored on test is the one that was selected.
    tests = {variant: _tested(records, newest[variant]) for variant in sorted(newest)}
    selected = max(tests, key=lambda name: (means.get(name, -1.0), len(tests[name])))
    tested = tests[selected]
    notes = _row_notes(records[-1].treebank.name, newest, selected, tested)
    contests: dict[str, Comparison] = {}
    for variant in newest.keys() - {selected}:
        try:
            contest = compare_variants(newest[variant], newest[selected])
        except ScoreError as error:
            reason = str(error).splitlines()[0]
            notes.append(f"{records[-1].treebank.name}: {variant} is not compared: {reason}.")
            continue
        if contest is not None:
            contests[variant] = contest
    results = {seed: record.test for seed, record in tested.items() if record.test is not None}
    baseline = next((record.baseline for record in tested.values() if record.baseline), None)
    return Row(
        language=records[-1].treebank.language,
        treebank=records[-1].treebank.name,
        convention=_convention(records[-1]),
        records=newest,
        dev=dev,  # type: ignore[arg-type]
        selected=selected,
        test=_by_metric(results),
        tested=tested,
        baseline={} if baseline is None else _figures(baseline),
        contests=contests,
        notes=tuple(notes),
    )


def _tested(records: Sequence[Record], runs: Mapping[int, Record]) -> dict[int, Record]:
    """For each seed the newest record with test scores of the weights that ``runs`` show."""
    weights = {(record.variant, seed): record.weights for seed, record in runs.items()}
    found = {
        record.seed: record
        for record in records
        if record.test is not None and weights.get((record.variant, record.seed)) == record.weights
    }
    return dict(sorted(found.items()))


def _by_metric(results: Mapping[int, SplitResult]) -> dict[str, Scores]:
    scores: dict[str, dict[int, float]] = {}
    for seed, result in results.items():
        for metric, value in _figures(result).items():
            scores.setdefault(metric, {})[seed] = value
    return dict(scores)


def _figures(result: SplitResult) -> dict[str, float]:
    values = {metric: getattr(result, metric) for metric in METRICS}
    return {metric: value for metric, value in values.items() if value is not None}


def _convention(record: Record) -> Convention:
    """What decides how the record's scores were counted, whatever the treebank."""
    parts = score_key(record, record.dev)
    return tuple(
        sorted((k, v) for k, v in parts.items() if k not in _OF_TREEBANK and k not in RUN_KEYS)
    )


def _row_notes(
    treebank: str,
    newest: Mapping[str, Mapping[int, Record]],
    selected: str,
    tested: Mapping[int, Record],
) -> list[str]:
    notes = []
    seeds = {variant: sorted(runs) for variant, runs in newest.items()}
    if len({tuple(found) for found in seeds.values()}) > 1:
        listed = "; ".join(f"{variant}: {_listed(found)}" for variant, found in seeds.items())
        notes.append(f"{treebank}: variants have different seeds ({listed}).")
    missing = [seed for seed in seeds[selected] if seed not in tested]
    if missing:
        notes.append(f"{treebank}: {selected} is not scored on test (seed {_listed(missing)}).")
    skipped = {
        "dev": max(record.dev.skipped for runs in newest.values() for record in runs.values()),
        "test": max((record.test.skipped for record in tested.values() if record.test), default=0),
    }
    for split, number in skipped.items():
        if number:
            notes.append(f"{treebank}: the scores of {split} leave out {number} of its sentences.")
    return notes


def _listed(numbers: Iterable[int]) -> str:
    return ", ".join(map(str, numbers))


def _averages(rows: Sequence[Row]) -> list[Average]:
    """An average for each way of scoring that at least two languages share."""
    found: dict[Convention, list[Row]] = {}
    for row in rows:
        found.setdefault(row.convention, []).append(row)
    averages = []
    for convention, members in found.items():
        languages = tuple(dict.fromkeys(row.language for row in members))
        if len(languages) < 2:
            continue
        variants = {variant for row in members for variant in row.records}
        averages.append(
            Average(
                convention=convention,
                languages=languages,
                dev={
                    name: average([(row.language, row.dev.get(name, {})) for row in members])
                    for name in variants
                },
                test={
                    name: average([(row.language, row.test.get(name, {})) for row in members])
                    for name in METRICS
                },
                baseline={
                    name: average(
                        [
                            (row.language, {0: row.baseline[name]} if name in row.baseline else {})
                            for row in members
                        ]
                    )
                    for name in METRICS
                },
            )
        )
    return sorted(averages, key=lambda one: -len(one.languages))
