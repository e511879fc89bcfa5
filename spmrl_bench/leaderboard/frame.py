"""Records in groups whose scores compare, each run with its name; and all numbers in one frame.

Two scores compare where everything agrees that decides what is measured: scorer, parameter set,
treebank with the hash of its files, split, sentences, those left out, transforms, tags. Two runs of
one variant are one experiment (*series*, which differ in their seed) only where every setting
agrees that can change the weights, from wherever it came. One that a record lacks has its default,
or what was done before there was the setting, and a file of somebody else counts by its content.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spmrl_bench.leaderboard.record import GOLD_TAGS, SPLITS, Record, SplitResult, signature_parts
from spmrl_bench.leaderboard.searches import SEARCHES, Search, read_search
from spmrl_bench.parsers.config import defaults_of, parts
from spmrl_bench.parsers.kinds import KINDS, kind_named
from spmrl_bench.parsers.legacy import OPTIONAL, leaves, nested, short
from spmrl_bench.scoring.metric import METRICS, metric_named
from spmrl_bench.scoring.signature import settings_text, variant_text
from spmrl_bench.storage import digests
from spmrl_bench.training.schedule import TrainConfig

if TYPE_CHECKING:
    import pandas as pd

Key = tuple[str, str, str]
"""A split, a metric and one of its figures; the metric is empty for figures that are no metric's:
``score`` (what selects, of dev), ``tag_accuracy``, ``tokens_per_second`` and, of the split
``train``, what the training took."""

Counted = dict[tuple[str, str], dict[str, str]]  # by metric and split, what a group agrees in
READ = "", ""  # its key for what holds of all metrics: the encoder that a parser has read
Resolved = Mapping[str, Any]  # settings: section.key and value as in JSON
Difference = tuple[str, str, str]

#: Keys of a signature that say which run it was: what one compares.
_OF_RUNS = "variant settings ensemble size precision seed output version learns encoder"
_RUN_KEYS = frozenset(_OF_RUNS.split())
#: Tables of a recorded recipe that hold no settings.
_NO_SECTIONS = frozenset({"settings", "files", "fingerprints", "model"})
#: Settings that the program leaves out where it notes a run: they do not change its weights.
_NOT_NOTED = {f"train.{key}" for key, field in TrainConfig.model_fields.items() if field.exclude}


@dataclass(slots=True, eq=False)
class Run:
    """A record, where it is kept and, once it is in a group, what it is among others."""

    record: Record
    path: Path = Path()  # of its file, whose name is the hash of its bytes
    results: Path = Path()  # the folder of results that it is in; parses may lie there too
    # Whether it comes with the program. Of a run of the user and a shipped one, which another
    # machine has made, no mean is taken, and neither is the newer of both.
    shipped: bool = False
    number: int = 0  # in the order of age, from 0
    precision: str = ""  # as its signature says it; empty for the usual one
    settings: Resolved = field(default_factory=dict)
    digest: str = ""  # of the settings
    given: str = ""  # those that were changed of the recipe, as text
    shown: str = ""  # the same, and those in which runs of this name differ otherwise
    name: str = ""  # the variant with these
    altered: bool = False  # whether these change the model, but for its precision
    newest: bool = False  # whether it is the newest record of its run
    baseline: bool = False  # whether its record is what it has of a baseline

    @property
    def series(self) -> tuple[Any, ...]:
        """What runs of one group have in common that differ in their seed only."""
        members = len(self.record.ensemble)
        about = (self.shipped, self.record.size, self.record.variant)
        return *about, self.digest, self.precision, members

    def figure(self, key: Key) -> float | None:
        split, metric, figure = key
        if key == ("dev", "", "score"):
            return self.record.dev_score
        if split == "train":
            return getattr(self.record.cost, figure, None)
        result = self.record.result(split)
        return None if result is None else result.figure(metric, figure)

    def of_baseline(self, name: str) -> Run:
        """A baseline that was scored with it: without settings, size, cost and scores on dev."""
        none = dict.fromkeys(("dev", "system", "training", "hardware"))
        about = {"variant": name, "size": "", "seed": 0, "ensemble": [], "searches": []}
        test = {"test": self.record.baselines[name]}
        record = self.record.model_copy(update={**none, **about, **test})
        return replace(self, record=record, shipped=False, shown="", name=name, baseline=True)


class RunGroup(list[Run]):
    """Records of a treebank whose scores compare, in the order of their age."""

    def __init__(self) -> None:
        super().__init__()
        self.counted: Counted = {}

    @property
    def read(self) -> str:
        """Which encoder its parsers read, as titles say it; empty for none."""
        return "" if (read := self.counted[READ]["encoder"]) == "none" else f", with {read}"


def by_age(records: Iterable[Record]) -> list[Run]:
    return sorted(map(Run, records), key=lambda one: one.record.finished)


def grouped(stored: Iterable[Run]) -> dict[tuple[str, str], list[RunGroup]]:
    """The groups of each track and treebank, in the order of these; every run has its name."""
    found: dict[tuple[str, str], list[RunGroup]] = {}
    for run in _runs(stored):
        bank = run.record.treebank
        groups = found.setdefault((bank.track, bank.name), [])
        counted = _counted(run.record)
        alike = (one for one in groups if not counting_differences(one.counted, counted))
        group = next(alike, None)
        if group is None:
            groups.append(group := RunGroup())
        group.counted.update(counted)
        group.append(run)
    for group in (group for groups in found.values() for group in groups):
        _name(group)
    return dict(sorted(found.items()))


def _runs(stored: Iterable[Run]) -> Iterator[Run]:
    known: dict[str, dict[str, Any]] = {}
    for number, one in enumerate(stored):
        recipe, scored = one.record.recipe, one.record.dev or one.record.test
        # Runs of many seeds have one recipe, and to resolve it takes longer than all else here.
        own = {key: part for key, part in recipe.items() if key not in ("seed", "fingerprints")}
        text = json.dumps(own, sort_keys=True)
        if text not in known:
            resolved = resolved_settings(recipe)
            known[text] = {"settings": resolved, "digest": digest(resolved)}
        results = scored.metrics.values() if scored else ()
        signed = (signature_parts(result.signature_long).get("precision") for result in results)
        precision = next(filter(None, signed), "")
        given = settings_text(one.record.settings)
        yield replace(one, number=number, precision=precision, given=given, **known[text])


def known_metrics(result: SplitResult) -> list[str]:
    return [name for name in METRICS.names() if name in result.metrics]


def _counted(record: Record) -> Counted:
    found: Counted = {READ: {"encoder": "none"}}
    for split in SPLITS:
        if (result := record.result(split)) is None:
            continue
        for name in known_metrics(result):
            fingerprint = record.treebank.fingerprint(metric_named(name).layers)
            key = score_key(result.metrics[name].signature_long, fingerprint)
            # Beyond dev, the splits of two records can differ in this only.
            skipped = {"test skipped": key.get("skipped", "0")}
            found[name, split] = skipped if split == "test" else key
            # What an encoder has read makes it no competition for parsers without one.
            signed = signature_parts(result.metrics[name].signature_long)
            found[READ]["encoder"] = signed.get("encoder", found[READ]["encoder"])
    return found


def counting_differences(one: Counted, other: Counted) -> list[Difference]:
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


# ---- Which scores compare ----


def score_key(signature_long: str, fingerprint: str) -> dict[str, str]:
    """Everything that decides what a score measures; ``fingerprint`` is whole, of its layers."""
    parts = {
        key: value
        for key, value in signature_parts(signature_long).items()
        if key not in _RUN_KEYS and key != "treebank"  # of the treebank, the whole hash counts
    }
    return parts | {"fingerprint": fingerprint}


def differences(one: Mapping[str, str], other: Mapping[str, str]) -> list[Difference]:
    """``(key, value in one, value in the other)`` where they differ, in the order of the first."""
    keys = dict.fromkeys((*one, *other))
    rows = ((key, one.get(key, "absent"), other.get(key, "absent")) for key in keys)
    return [row for row in rows if row[1] != row[2]]


# ---- Which run a record is of ----


def resolved_settings(recipe: Mapping[str, Any]) -> Resolved:
    """All that decides what a run learns but its seed and treebank, from a recipe as recorded."""
    kind = str(recipe.get("kind", "chart"))
    found: dict[str, Any] = {}
    for section, values in (("train", defaults_of(TrainConfig)), *recipe.items()):
        if isinstance(values, Mapping) and section not in _NO_SECTIONS:
            found |= {f"{section}.{key}": value for key, value in values.items()}
    found |= recipe.get("settings") or {}
    if isinstance(model := recipe.get("model"), Mapping):
        own = nested(model)
        settings = short(_defaults(kind, own) | leaves(own))
        found |= {f"model.{key}": value for key, value in settings.items()}
    for key, content in (recipe.get("files") or {}).items():
        found[f"model.{key.removeprefix('model.')}"] = content
    found |= {"kind": kind, "select": recipe.get("select", "brackets.f1")}
    return {key: found[key] for key in sorted(found.keys() - _NOT_NOTED)}


def is_of(record: Record, recipe: Mapping[str, Any], weights: Sequence[str]) -> bool:
    """Whether a record is of runs with these settings and weights: other runs may end alike."""
    return (
        record.members == list(weights)
        and record.treebank.name == recipe.get("treebank")
        and all(record.recipe.get(key) == recipe.get(key) for key in ("variant", "size", "seed"))
        and resolved_settings(record.recipe) == resolved_settings(recipe)
    )


def searches_behind(runs: Path, recipe: Mapping[str, Any]) -> list[Search]:
    """The searches, on any treebank of a folder of runs, that resolved settings come from. Where a
    trial had these settings, whatever its seed and its time, these are all searches for the
    variant, since the later ones go on from what the earlier ones have shown."""
    # A description that takes over what was found is another one than that of the trials.
    other = dict.fromkeys(("train.max_minutes", "system.minutes", "system.description"))

    def comparable(settings: Mapping[str, Any]) -> str:
        return digest({**resolved_settings(settings), **other})

    own, names = comparable(recipe), ("variant", "size", "kind")
    found = []
    for place in sorted(runs.glob(f"*/{SEARCHES}*")):
        document = read_search(place)
        if document and all(document.base.get(name) == recipe.get(name) for name in names):
            tried = (n for n, one in sorted(document.recipes.items()) if comparable(one) == own)
            found.append(document.search.model_copy(update={"found": next(tried, None)}))
    return found if any(search.found is not None for search in found) else []


def digest(settings: Resolved) -> str:
    return digests.digest({key: value for key, value in settings.items() if value is not None})[:16]


def differing_settings(several: Iterable[Resolved]) -> list[str]:
    first, *others = several
    keys = sorted({*first}.union(*others))
    return [key for key in keys if any(one.get(key) != first.get(key) for one in others)]


def _defaults(kind: str, model: Mapping[str, Any]) -> dict[str, Any]:
    if kind not in KINDS.names():
        return {}
    config = kind_named(kind).parser_class.Config
    there = leaves(model)
    tables = parts(config, {*there.get("inputs", ()), str(there.get("encoder"))})
    found = {key: value for key, value in defaults_of(config).items() if key not in tables}
    for name, part in tables.items():
        if name in OPTIONAL:
            found[f"{name}.use"] = False
        if there.get(f"{name}.use", True):
            found |= {f"{name}.{key}": value for key, value in defaults_of(part).items()}
    return found


# ---- All numbers ----


def records_frame(stored: Iterable[Run]) -> pd.DataFrame:
    """One row for each record, split, metric and figure (:data:`Key`) that has a value. ``record``
    numbers the records by age, ``group`` those of a treebank whose scores compare; ``name`` is the
    variant with its settings, ``newest`` says whether it is the newest record of its run, and
    ``baseline`` is empty for the parser itself."""
    rows = [
        (
            *(run.number, run.shipped, *place, run.record.treebank.language, number),
            *(run.record.system is not None, run.record.kind, run.record.variant, run.name),
            *(run.record.size, run.record.seed, len(run.record.ensemble), run.record.selected),
            *(run.newest, run.record.finished, one.name if one.baseline else "", *key, value),
        )
        for place, groups in grouped(stored).items()
        for number, runs in enumerate(groups, start=1)
        for run in runs
        for one in (run, *map(run.of_baseline, run.record.baselines))
        for key in _keys(one.record)
        if (value := one.figure(key)) is not None
    ]
    columns = (
        "record shipped track treebank language group system kind variant name size seed ensemble "
        "selected newest finished baseline split metric figure value"
    )
    import pandas as pd  # which would be a sixth of the time in which a training starts

    return pd.DataFrame(rows, columns=columns.split())


def _keys(record: Record) -> Iterator[Key]:
    for figure in ("tokens_per_second", "wall_seconds", "epochs", "parameters"):
        yield "train", "", figure
    yield "dev", "", "score"
    for split in SPLITS:
        if result := record.result(split):
            for figure in ("tag_accuracy", "tokens_per_second"):
                yield split, "", figure
            for metric in known_metrics(result):
                for figure in {**result.metrics[metric].figures, **metric_named(metric).figures}:
                    if figure != GOLD_TAGS:
                        yield split, metric, figure
