"""Records in groups whose scores compare, each run with its name; and all numbers in one frame.

What a table must not get wrong is decided here, once: which records compare (*groups*), which are
of the same run (the newest counts), and which runs differ in their seed only (*series*).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from spmrl_bench.leaderboard.compare import Difference, differences, score_key
from spmrl_bench.leaderboard.identity import (
    Resolved,
    differing_settings,
    digest,
    resolved_settings,
)
from spmrl_bench.leaderboard.record import SPLITS, Record, SplitResult, signature_parts
from spmrl_bench.scoring.metric import METRICS, metric_named
from spmrl_bench.scoring.settings_text import settings_text, variant_text

Key = tuple[str, str, str]
"""A split, a metric and one of its figures; the metric is empty for figures that are no metric's:
``score`` (what selects, of dev), ``tag_accuracy``, ``tokens_per_second`` and, of the split
``train``, what the training took."""

Counted = dict[tuple[str, str], dict[str, str]]
"""Of each metric and split the keys that records of one group agree in."""


@dataclass(frozen=True, slots=True, eq=False)
class StoredRecord:
    """A record and where it is kept."""

    record: Record
    path: Path = Path()  # of its file, whose name is the hash of its bytes
    results: Path = Path()  # the folder of results that it is in; parses may lie there too
    # Whether it comes with the program. Of a run of the user and a shipped one, which another
    # machine has made, no mean is taken, and neither is the newer of both.
    shipped: bool = False

    @property
    def name(self) -> str:
        return self.path.stem


@dataclass(slots=True, eq=False)
class Run:
    """A record among others."""

    stored: StoredRecord
    number: int  # in the order of age, from 0
    precision: str  # as its signature says it; empty for the usual one
    settings: Resolved
    digest: str  # of the settings
    given: str  # those that were changed of the recipe, as text
    shown: str = ""  # the same, and those in which runs of this name differ otherwise
    name: str = ""  # the variant with these
    altered: bool = False  # whether these change the model, but for its precision
    newest: bool = False  # whether it is the newest record of its run

    @property
    def record(self) -> Record:
        return self.stored.record

    @property
    def series(self) -> tuple[Any, ...]:
        """What runs of one group have in common that differ in their seed only."""
        members = len(self.record.ensemble)
        about = (self.stored.shipped, self.record.size, self.record.variant)
        return *about, self.digest, self.precision, members

    def result(self, split: str, baseline: str = "") -> SplitResult | None:
        """The scores of a split, of the parser or of a baseline."""
        if baseline:
            return self.record.baselines.get(baseline) if split == "test" else None
        return self.record.result(split)

    def figure(self, key: Key, baseline: str = "") -> float | None:
        """A figure of the parser or of a baseline; None where there is no value."""
        split, metric, figure = key
        if key == ("dev", "", "score"):
            return None if baseline else self.record.dev_score
        if split == "train":
            return None if baseline else getattr(self.record.cost, figure, None)
        result = self.result(split, baseline)
        return None if result is None else result.figure(metric, figure)


class RunGroup(list[Run]):
    """Records of a treebank whose scores compare, in the order of their age."""

    def __init__(self) -> None:
        super().__init__()
        self.counted: Counted = {}


def by_age(records: Iterable[Record], shipped: Iterable[Record] = ()) -> list[StoredRecord]:
    """Records of the user and shipped ones, oldest first."""
    stored = [StoredRecord(record) for record in records]
    stored += [StoredRecord(record, shipped=True) for record in shipped]
    return sorted(stored, key=lambda one: one.record.finished)


def grouped(stored: Sequence[StoredRecord]) -> dict[tuple[str, str], list[RunGroup]]:
    """The groups of each track and treebank, in the order of these; every run has its name."""
    found: dict[tuple[str, str], list[RunGroup]] = {}
    for run in _runs(stored):
        bank = run.record.treebank
        groups = found.setdefault((bank.track, bank.name), [])
        counted = _counted(run.record)
        group = next((one for one in groups if _agree(one.counted, counted)), None)
        if group is None:
            groups.append(group := RunGroup())
        group.counted.update(counted)
        group.append(run)
    for group in (group for groups in found.values() for group in groups):
        _name(group)
    return dict(sorted(found.items()))


def _runs(stored: Sequence[StoredRecord]) -> Iterator[Run]:
    known: dict[str, tuple[Resolved, str]] = {}
    for number, one in enumerate(stored):
        recipe, scored = one.record.recipe, one.record.dev or one.record.test
        # Runs of many seeds have one recipe, and to resolve it takes longer than all else here.
        about = {key: part for key, part in recipe.items() if key not in ("seed", "fingerprints")}
        text = json.dumps(about, sort_keys=True)
        if text not in known:
            resolved = resolved_settings(recipe)
            known[text] = resolved, digest(resolved)
        results = scored.metrics.values() if scored else ()
        signed = (signature_parts(result.signature_long).get("precision") for result in results)
        precision = next(filter(None, signed), "")
        yield Run(one, number, precision, *known[text], given=settings_text(one.record.settings))


def installed_metrics(result: SplitResult) -> list[str]:
    """The metrics of a result that the program has."""
    return [name for name in METRICS.names() if name in result.metrics]


def _counted(record: Record) -> Counted:
    found: Counted = {}
    for split in SPLITS:
        result = record.result(split)
        for name in installed_metrics(result) if result else ():
            fingerprint = record.treebank.fingerprint(metric_named(name).layers)
            assert result is not None
            key = score_key(result.metrics[name].signature_long, fingerprint)
            # Beyond dev, the splits of two records can differ in this only.
            skipped = {"test skipped": key.get("skipped", "0")}
            found[name, split] = skipped if split == "test" else key
    return found


def _agree(one: Counted, other: Counted) -> bool:
    return all(one[name] == other[name] for name in one.keys() & other.keys())


def counting_differences(one: Counted, other: Counted) -> list[Difference]:
    """In what the scores of two groups were counted differently, sorted by key."""
    return sorted(row for name in one.keys() & other for row in differences(one[name], other[name]))


def _name(group: Sequence[Run]) -> None:
    """Name runs by what was changed of the recipe and by what else tells them apart."""
    series: dict[tuple[Any, ...], list[Run]] = {}
    for run in group:
        series.setdefault(run.series, []).append(run)
    alike: dict[tuple[Any, ...], list[list[Run]]] = {}
    for found in series.values():
        # The same settings can be a recipe's or given with the command.
        given = next((run.given for run in found if run.given), "")
        newest = {run.record.seed: run for run in found}
        for run in found:
            run.given, run.newest = given, newest[run.record.seed] is run
        first = found[0]
        key = (*(part for part in first.series if part != first.digest), given)
        alike.setdefault(key, []).append(found)
    for several in alike.values():
        differing = differing_settings(found[0].settings for found in several)
        for found in several:
            changed = next(filter(None, (run.record.settings for run in found)), {})
            settings = found[0].settings
            shown = {**changed, **{key: settings[key] for key in differing if key in settings}}
            model = {key for key in shown if key.startswith("model.")}
            for run in found:
                run.shown, run.name = settings_text(shown), variant_text(run.record.variant, shown)
                run.altered = not model <= {"model.precision"}


# ---- All numbers ----


def records_frame(records: Iterable[Record], shipped: Iterable[Record] = ()) -> pd.DataFrame:
    """One row for each record, split, metric and figure (:data:`Key`) that has a value.

    ``record`` numbers the records by age, ``group`` those of a treebank whose scores compare;
    ``name`` is the variant with its settings, ``newest`` says whether it is the newest record of
    its run, and ``baseline`` is empty for the parser itself. Scores by metrics that are not
    installed are left out.
    """
    rows = [
        (
            *(run.number, run.stored.shipped, *place, run.record.treebank.language, number),
            *(run.record.system is not None, run.record.kind, run.record.variant, run.name),
            *(run.record.size, run.record.seed, len(run.record.ensemble), run.record.selected),
            *(run.newest, run.record.finished, baseline, *key, value),
        )
        for place, groups in grouped(by_age(records, shipped)).items()
        for number, runs in enumerate(groups, start=1)
        for run in runs
        for baseline, key in _keys(run)
        if (value := run.figure(key, baseline)) is not None
    ]
    columns = (
        "record shipped track treebank language group system kind variant name size seed ensemble "
        "selected newest finished baseline split metric figure value"
    )
    return pd.DataFrame(rows, columns=columns.split())


def _keys(run: Run) -> Iterator[tuple[str, Key]]:
    """The figures that a record can have, each with the name of the baseline that it is of."""
    for figure in ("tokens_per_second", "wall_seconds", "epochs", "parameters"):
        yield "", ("train", "", figure)
    yield "", ("dev", "", "score")
    for split, baseline in (("dev", ""), *(("test", name) for name in ("", *run.record.baselines))):
        if result := run.result(split, baseline):
            for figure in ("tag_accuracy", "tokens_per_second"):
                yield baseline, (split, "", figure)
            for metric in installed_metrics(result):
                for figure in {**result.metrics[metric].figures, **metric_named(metric).figures}:
                    yield baseline, (split, metric, figure)
