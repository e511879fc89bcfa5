"""The result of one run, of an ensemble of runs, or of somebody else's parser, as JSON.

Beside the scores and the counts of every sentence, a :class:`Record` keeps the resolved recipe, the
treebank and its fingerprint, the searches behind the settings, versions, machine and cost.
"""

from __future__ import annotations

import datetime
import math
import re
from array import array
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

from pydantic import (
    AfterValidator,
    AwareDatetime,
    Field,
    NonNegativeFloat,
    NonNegativeInt,
    PlainSerializer,
    model_validator,
)

from spmrl_bench.errors import ScoreError
from spmrl_bench.leaderboard.documents import Part, StoredModel, load_documents
from spmrl_bench.leaderboard.searches import Search
from spmrl_bench.scoring.counts import Counts
from spmrl_bench.scoring.metric import METRICS, SelectionMetric, metric_named
from spmrl_bench.storage.paths import packaged

#: Folder, among results, of what comes with the program.
SHIPPED = "shipped"
_IN_WHEEL = packaged(f"results/{SHIPPED}/runs")
SPLITS = ("dev", "test")

#: A figure that says nothing: the treebank's tags stand in all parses that are scored.
GOLD_TAGS = "tagging_accuracy"
_MATCHES = {"brackets": ("brackets", "labelled", "unlabelled"), "attachment": ("attachment",)}
_OF_CLOCKS = datetime.timedelta(days=1)  # by which one may be ahead of another

Percent = Annotated[float, Field(ge=0, le=100)]


def _compact(values: list[int]) -> Sequence[int]:
    """Counts of sentences in a few bytes each: thousands of records are in memory at once."""
    for code in "bhiq":
        with suppress(OverflowError):
            return array(code, values)
    raise ValueError("a whole number beyond 64 bits")


def signature_parts(signature: str) -> dict[str, str]:
    return dict(part.partition(":")[::2] for part in signature.split("|"))


Column = Annotated[
    list[int], AfterValidator(_compact), PlainSerializer(list, return_type=list[int])
]


class TreebankInfo(Part):
    """Which treebank the run used."""

    name: str = Field(description="Name of the manifest, such as german-squoia.")
    track: str = Field(  # a part of the names of files
        pattern=r"^[\w-]{1,40}$", description="Of the manifest: mini, open, spmrl, ptb or ctb."
    )
    language: str = Field(description="Language of the manifest, such as german.")
    fingerprints: dict[str, str] = Field(
        description="By layer of annotation: SHA-256 of files, division and named transforms."
    )
    manifest: str = Field(
        default="",
        description="Whose manifest, `shipped` or `own`, and the SHA-256 of all that it declares.",
    )

    def fingerprint(self, layers: Iterable[str]) -> str:
        return "+".join(self.fingerprints.get(layer, "") for layer in layers)


class MetricResult(Part):
    """What one metric says of the parses of a split."""

    counts: dict[str, Column] = Field(
        description="By column of the metric's counts (in lower case), a number for each sentence "
        "in the order of the split; every figure follows from these."
    )
    figures: dict[str, int | float | None] = Field(description="By name; None for 0 of 0.")
    signature: str = Field(description="Short signature, printed beside the score.")
    signature_long: str = Field(description="Signature with every key spelled out.")

    @property
    def skipped(self) -> int:
        return int(signature_parts(self.signature_long).get("skipped", "0"))

    def check(self, name: str, sentences: int) -> None:
        """Raise a ValueError where it cannot be the result of a metric. Figures and columns that
        the metric has got or lost since are as they were counted then."""
        skipped = signature_parts(self.signature_long).get("skipped", "0")
        if not re.fullmatch("[0-9]{1,9}", skipped):
            raise ValueError(f"{name}: signature_long: skipped is '{skipped:.20}', no number")
        for column, values in self.counts.items():
            if len(values) != sentences:
                size = f"{len(values)} entries for {sentences} sentences"
                raise ValueError(f"{name}: counts['{column}'] has {size}")
        if name not in METRICS.names():
            return
        metric = metric_named(name)
        if not {column.name.lower() for column in metric.counts.columns} <= self.counts.keys():
            return
        try:
            computed = metric.values(metric.counts.from_columns(self.counts))
        except ScoreError as error:
            raise ValueError(f"{name}: counts: {error}") from None
        for figure, stated in self.figures.items():
            now = computed.get(figure, stated)
            # Another machine may round the last digits differently.
            if stated != now and (stated is None or now is None or abs(stated - now) >= 1e-9):
                raise ValueError(f"{name}: {figure} is {stated}, but the counts give {now}")


class SplitResult(Part):
    """What the parses of one split are worth, by every metric they were scored with."""

    sentences: NonNegativeInt = Field(description="Sentences of the split.")
    metrics: dict[str, MetricResult] = Field(description="Results by the name of the metric.")
    tokens_per_second: NonNegativeFloat | None = Field(None, description="Speed of parsing it.")
    tag_accuracy: Percent | None = Field(
        None, description="Words with the right tag, in percent, of a parser that tags."
    )

    def figure(self, metric: str, name: str) -> int | float | None:
        """A figure, or None; without a metric, ``tag_accuracy`` or ``tokens_per_second``."""
        if not metric:
            return getattr(self, name, None)
        if metric not in self.metrics:
            return None
        figures = self.metrics[metric].figures
        known = metric_named(metric).figures if metric in METRICS.names() else {}
        if name in figures or name not in known:
            return figures.get(name)
        try:  # one that the metric has got since
            return known[name].of(self.counts(metric))
        except ScoreError:
            return None  # counted before the metric had all its columns

    def score(self, criterion: SelectionMetric) -> float:
        return criterion.score({name: result.figures for name, result in self.metrics.items()})

    def counts(self, metric: str) -> Counts:
        """The counts of every sentence; a ScoreError where some column was not counted."""
        if metric not in self.metrics:
            raise ScoreError(f"not scored by the metric {metric}")
        return metric_named(metric).counts.from_columns(self.metrics[metric].counts)

    @model_validator(mode="after")
    def _figures_follow_from_counts(self) -> Self:
        for name, result in self.metrics.items():
            result.check(name, self.sentences)
        return self


class Training(Part):
    """What the training took, over all sittings."""

    epochs: NonNegativeFloat = Field(description="Passes over the training split.")
    updates: NonNegativeInt = Field(description="Optimiser steps.")
    parameters: NonNegativeInt = Field(description="Trained weights of the model.")
    wall_seconds: NonNegativeFloat = Field(description="Seconds, scoring of dev included.")
    processor_seconds: NonNegativeFloat | None = Field(
        None, description="Of the processor for each thread, without scoring of dev."
    )
    tokens_per_second: NonNegativeFloat = Field(description="Without the scoring of dev.")
    peak_memory_bytes: NonNegativeInt | None = Field(None, description="Of the process.")
    peak_gpu_memory_bytes: NonNegativeInt | None = Field(None, description="Of tensors on the GPU.")


class Hardware(Part):
    """The machine."""

    device: str = Field(description="Device of the weights: cpu, or cuda with the GPU's name.")
    platform: str = Field(description="Operating system and processor architecture.")
    processor: str = Field(description="Model name of the processor; empty where not known.")
    cpu_count: NonNegativeInt = Field(description="Processor cores the process could use.")
    threads: NonNegativeInt = Field(description="Threads torch computed with.")
    kernels: str | None = Field(None, description="`compiled` or `plain`; None if not noted.")


class Output(Part):
    """The parses of a split that a system of somebody else gave, by the layer they are of."""

    sha256: dict[str, str] = Field(description="SHA-256 of each file, in hex, by layer.")
    policy: str = Field(description="What was done with answers that could not be scored.")
    handled: dict[str, NonNegativeInt] = Field({}, description="Such answers, by what was wrong.")


class SystemTraining(Part):
    """What the training of a system took that was trained here."""

    wall_seconds: NonNegativeFloat = Field(description="Seconds from its start to its end.")
    processor_seconds: NonNegativeFloat | None = Field(
        None, description="Of the processor for each thread, from its start to its end."
    )
    peak_memory_bytes: NonNegativeInt | None = Field(None, description="Of its largest process.")
    minutes: NonNegativeFloat | None = Field(None, description="Allowed; None for no limit.")
    out_of_time: bool = Field(description="Whether it was ended when these were over.")
    epochs: NonNegativeFloat | None = Field(None, description="The last, as its log counts.")


class System(Part):
    """A parser of somebody else, of which only the parses and what was said of it are known."""

    name: str = Field(min_length=1, description="Such as Stanza.")
    version: str = Field("", description="Of the parser, or of its model.")
    url: str = Field("", description="Where it is found.")
    paper: str = Field("", description="Where it is described.")
    training_data: str = Field("", description="What it was trained on.")
    notes: str = Field("", description="What else a reader should know.")
    oath: bool = Field(
        False, description="Who entered it swears that test was neither learnt nor chosen by."
    )
    training: SystemTraining | None = Field(None, description="None for entered parses.")
    outputs: dict[str, Output] = Field(description="What it gave, by split.")
    tested: NonNegativeInt = Field(
        0,
        description="Outputs of this system, of whatever version, that had been scored on the "
        "treebank's test split when this record was written, this one included.",
    )

    @property
    def title(self) -> str:
        return f"{self.name} {self.version}".strip()


class Record(StoredModel):
    """One run; or an ensemble of such runs, from other seeds; or the parses of a system. Of a
    system, ``variant`` is its name and version, and ``weights`` stands for its parses."""

    what: ClassVar[str] = "record"
    # 2: bracket scores only; 3: scores by metric; 4: systems of others; 5: searches. Version 1 was
    # never released; the others are read for ever.
    version: ClassVar[int] = 5

    schema_version: int = Field(version, description="Version of this layout.")
    finished: AwareDatetime = Field(description="When the run was scored, with time zone.")
    lang: str = Field(description="The recipe that was asked for, such as german.")
    treebank: TreebankInfo
    kind: str = Field("chart", description="Kind of the parser, such as chart.")
    variant: str = Field(description="Variant of the recipe, such as word-charlstm.")
    size: str = Field(description="Size of the model: published or small.")
    seed: Annotated[int, Field(ge=0, lt=2**53, description="Seed of all random streams.")]
    selected: bool = Field(description="Whether dev chose this variant for the test split.")
    select: str = Field("brackets.f1", description="By which figure, or sum of figures, of dev.")
    weights: str = Field(
        description="SHA-256 of the scored weights, in hex; of an ensemble, that of the hashes in "
        "`ensemble`, one after the other."
    )
    ensemble: list[str] = Field(
        [],
        description="SHA-256 of the weights of each member of an ensemble; empty for a parser of "
        "one run. `seed` and `recipe` are those of the first member, `training` of all together.",
    )
    recipe: dict[str, Any] = Field(description="The resolved recipe, as it was trained.")
    searches: list[Search] = Field([], description="That its settings come from, as they were.")
    system: System | None = Field(None, description="The system of somebody else.")
    dev: SplitResult | None = Field(None, description="Of the best checkpoint on dev.")
    test: SplitResult | None = Field(None, description="Only for the selected variant.")
    baselines: dict[str, SplitResult] = Field({}, description="Scored on test, by name.")
    training: Training | None = Field(None, description="Of runs, not of systems.")
    hardware: Hardware | None = Field(None, description="Of what was trained here.")
    versions: dict[str, str] = Field(description="Of Python, this program and libraries.")
    commit: str | None = Field(None, description="Of the program; None outside a checkout.")

    @model_validator(mode="after")
    def _check_selection(self) -> Self:
        missing = [name for name in ("dev", "training", "hardware") if getattr(self, name) is None]
        if missing and self.system is None:
            raise ValueError(f"without {' and '.join(missing)}, which every run has")
        if self.dev is None and self.test is None:
            raise ValueError("neither dev nor test scores")
        if self.test is not None and not self.selected:
            raise ValueError("test scores of a variant that dev did not select")
        if self.baselines and self.test is None:
            raise ValueError("baselines without test scores")
        if len(self.ensemble) == 1:
            raise ValueError("an ensemble of one member")
        for table in ("settings", "files"):
            if not isinstance(self.recipe.get(table) or {}, dict):
                raise ValueError(f"recipe.{table} is no table of keys and values")
        if self.finished > datetime.datetime.now(datetime.UTC) + _OF_CLOCKS:
            raise ValueError(f"finished: {self.finished} is yet to come")
        for place in (("train", "max_minutes"), ("system", "minutes")):
            value = self.recipe.get(place[0])
            value = value.get(place[1]) if isinstance(value, dict) else None
            if isinstance(value, int | float) and not 0 <= value < math.inf:
                raise ValueError(f"recipe.{'.'.join(place)} is {value}, no number of minutes")
        return self

    @model_validator(mode="after")
    def _signatures_are_of_it(self) -> Self:
        splits = [("dev", self.dev), ("test", self.test)]
        splits += [("test", result) for result in self.baselines.values()]
        for split, result in splits:
            for name, scored in result.metrics.items() if result is not None else ():
                parts = signature_parts(scored.signature_long)
                number = str(len(next(iter(scored.counts.values()), ())))
                bank, _, digest = parts.get("treebank", "").removesuffix(")").partition("(")
                prints = self.treebank.fingerprints.values()
                wrong = {
                    "split": parts.get("split", split) != split,
                    "sentences": parts.get("sentences", number) != number,
                    "treebank": bank not in ("", self.treebank.name)
                    or not any(one.startswith(digest) for one in prints),
                    "match": name in _MATCHES and parts.get("match", name) not in _MATCHES[name],
                }
                if key := next((key for key, is_wrong in wrong.items() if is_wrong), None):
                    raise ValueError(f"{split}, {name}: the signature is of another {key}")
        return self

    @property
    def cost(self) -> Training | SystemTraining | None:
        """What its training here took; None for parses that came from elsewhere."""
        return self.training if self.system is None else self.system.training

    @property
    def members(self) -> list[str]:
        return self.ensemble or [self.weights]

    def result(self, split: str) -> SplitResult | None:
        return self.test if split == "test" else self.dev

    @property
    def results(self) -> list[SplitResult]:
        return [one for one in (self.dev, self.test, *self.baselines.values()) if one is not None]

    @property
    def metrics(self) -> list[str]:
        names = (name for one in (self.dev, self.test) if one is not None for name in one.metrics)
        return in_order(dict.fromkeys(names), [self.select])

    @property
    def settings(self) -> dict[str, Any]:
        return self.recipe.get("settings") or {}

    @property
    def dev_score(self) -> float | None:
        """What selects, on dev; None where it was not scored, or by a metric not installed."""
        try:
            criterion = SelectionMetric.parse(self.select)
        except ScoreError:
            return None
        return None if self.dev is None else self.dev.score(criterion)

    @classmethod
    def upgraded(cls, content: Any) -> Any:
        if isinstance(content, Mapping) and content.get("schema_version") == 2:
            content = _from_2(content)
        if isinstance(content, Mapping) and content.get("schema_version") in (3, 4):
            content = {**content, "schema_version": cls.version}
        return content


def _from_2(old: Mapping[str, Any]) -> dict[str, Any]:
    """Version 2 had bracket scores only, in the split itself, one baseline, one fingerprint."""
    new = {**old, "schema_version": 3}
    baseline = new.pop("baseline", None)
    if isinstance(baseline, Mapping):
        new["baselines"] = {"right-branching": _split_of_2(baseline)}
    new |= {name: _split_of_2(old[name]) for name in SPLITS if isinstance(old.get(name), Mapping)}
    bank = old.get("treebank")
    if isinstance(bank, Mapping) and "fingerprint" in bank:
        rest = {key: value for key, value in bank.items() if key != "fingerprint"}
        new["treebank"] = {**rest, "fingerprints": {"constituents": bank["fingerprint"]}}
    return new


def _split_of_2(old: Mapping[str, Any]) -> dict[str, Any]:
    whole = ("sentences", "tokens_per_second", "tag_accuracy")
    figures = ("sentences", "skipped", "recall", "precision", "f1", "complete_match")
    scores = {key: value for key, value in old.items() if key not in (*figures, *whole)}
    scores["figures"] = {key: old[key] for key in figures if key in old}
    return {**{key: old[key] for key in whole if key in old}, "metrics": {"brackets": scores}}


def in_order(metrics: Iterable[str], criteria: Iterable[str]) -> list[str]:
    """Metrics in the order of tables: first those of what selects, then as they are registered."""
    first = {term.strip().partition(".")[0] for text in criteria for term in text.split("+")}
    listed = list(metrics)
    known = [*METRICS.names(), *listed]
    return sorted(listed, key=lambda name: (name not in first, known.index(name)))


#: The lock of whoever first looks at the records of a folder and then writes there.
WRITING = ".tested.lock"


def shipped_records(results: Path) -> Path:
    """The folder of the program's own records: below that of the results in a checkout."""
    return _IN_WHEEL if _IN_WHEEL.is_dir() else results / SHIPPED / "runs"


def load_records(folder: Path) -> tuple[list[Record], list[str]]:
    """The records of a folder, oldest first, and a message for each file that is none."""
    found, errors = load_documents(Record, folder)
    return sorted(found.values(), key=lambda record: record.finished), errors
