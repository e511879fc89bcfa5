"""Scores of one model over the languages of a track, as a function of the records.

A table over languages invites three mistakes: to average scores that were counted in different
ways, to take the difference of two variants for more than chance, and to compare languages of
which one lacks a run. So runs are put into setups (:mod:`setup`) as follows.

Where runs of one treebank and variant differ in settings that nobody gave with the command, those
with the most seeds, then the newest, belong to the setup of the others; the rest are of a setup
that names the settings. Ensembles are left out, and so are variants of one language. Of several
records of a run the newest is taken, and of several states of one treebank (other files or another
way of scoring) the one with most of the variants that the table is about, then the one with the
newest record.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from spmrl_bench.errors import ScoreError
from spmrl_bench.leaderboard.comparison import RUN_KEYS, joined_signature, score_key
from spmrl_bench.leaderboard.contest import compare_variants
from spmrl_bench.leaderboard.estimates import Scores, Term, best_variant
from spmrl_bench.leaderboard.frame import (
    GROUP,
    by_age,
    counting_differences,
    each,
    parts,
    records_frame,
)
from spmrl_bench.leaderboard.identity import resolved_settings
from spmrl_bench.leaderboard.record import Record
from spmrl_bench.leaderboard.setup import Convention, Setup, TrackScores, TreebankScores
from spmrl_bench.scoring.metric import Criterion
from spmrl_bench.scoring.significance import Comparison

# What describes a treebank rather than the way of scoring; rows differ in these by nature.
_OF_TREEBANK = frozenset({"fingerprint", "split", "sentences", "skipped", "transforms"})


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
    return Setup(
        settings, precision, size, criterion, tuple(ordered), tuple(found), tuple(left_out)
    )


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
            name: resolved_settings(next(iter(found.values())).recipe)
            for name, found in runs.items()
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
