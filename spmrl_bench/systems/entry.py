"""Entering what a parser of somebody else gave: scored as our own parsers are, kept as a record.

One record has all that is known of one version of a system on a treebank: a file of brackets and
one of dependencies, of dev and of test, come together in it. So it can be compared with any run,
sentence by sentence.
"""

from __future__ import annotations

import datetime
import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from spmrl_bench.errors import ScoreError
from spmrl_bench.experiments.evaluation import gold_parses, rules_of, signed_result
from spmrl_bench.leaderboard.environment import find_commit, find_versions
from spmrl_bench.leaderboard.record import (
    Output,
    Record,
    SplitResult,
    System,
    TreebankInfo,
    readable_records,
    write_record,
)
from spmrl_bench.scoring.metric import METRICS, metric_named
from spmrl_bench.scoring.signature import Source
from spmrl_bench.systems.predictions import Policy, read_predictions
from spmrl_bench.treebanks.treebank import Treebank

KIND = "system"


class Entered(NamedTuple):
    """What came of entering a file."""

    record: Record
    path: Path
    handled: dict[str, int]  # answers that could not be scored as they stood


def enter(
    path: Path,
    bank: Treebank,
    split: str,
    system: System,
    results_dir: Path,
    *,
    policy: Policy = "refuse",
    tags: bool = False,
    encoding: str = "utf-8",
) -> Entered:
    """Score a file of parses and write the record of its system.

    Args:
        path: brackets or CoNLL-U, an answer for each sentence of the split.
        bank: whose test split is open if it is asked for.
        system: its description; ``outputs`` and ``tested`` follow from the records.
        policy: what becomes of answers that cannot be scored as they stand.
        tags: whether the system read the treebank's tags.

    Raises:
        SpmrlError: the file cannot be read or scored, or the record not be written.
    """
    earlier, _ = readable_records(results_dir / "runs")
    gold = gold_parses(bank, split, [name for name in METRICS.names() if _fits(name, bank)])
    found = read_predictions(
        path, gold, transforms=bank.manifest.transforms, policy=policy, encoding=encoding
    )
    name = next(name for name in METRICS.names() if metric_named(name).layers == (found.layer,))
    rules = rules_of(bank, [name])[name]
    counts = metric_named(name).count(gold, found.parses, rules)
    source = Source(
        tags=bank.manifest.tags if tags else "none",
        variant=_signed(system.title),
        output="+".join(f"{kind} {number}" for kind, number in found.handled.items()) or None,
    )
    result = SplitResult(
        sentences=len(gold),
        metrics={name: signed_result(bank, split, name, counts, rules, source)},
    )
    output = Output(
        sha256={found.layer: hashlib.sha256(path.read_bytes()).hexdigest()},
        policy=policy,
        handled=found.handled,
    )
    record = _record(bank, split, system, result, output, earlier)
    return Entered(record, write_record(record, results_dir / "runs"), found.handled)


def _fits(metric: str, bank: Treebank) -> bool:
    return set(metric_named(metric).layers) <= set(bank.layers)


def _signed(title: str) -> str:
    """A name without the characters that part a signature."""
    return title.translate(str.maketrans("|:\n", "///"))


def _record(
    bank: Treebank,
    split: str,
    system: System,
    result: SplitResult,
    output: Output,
    earlier: Sequence[Record],
) -> Record:
    """The record with what an earlier one of the same system, version and treebank has."""
    info = TreebankInfo(
        name=bank.name,
        track=bank.track,
        language=bank.language,
        fingerprints={layer: bank.fingerprint_of(layer) for layer in bank.layers},
    )
    same = [
        record
        for record in earlier
        if record.system is not None
        and record.system.title == system.title
        and record.treebank == info
    ]
    results: dict[str, SplitResult] = {}
    outputs: dict[str, Output] = {}
    if same and (before := same[-1]).system is not None:
        results = {name: one for name in ("dev", "test") if (one := before.result(name))}
        outputs = dict(before.system.outputs)
    results[split] = _joined(results.get(split), result)
    outputs[split] = _joined_outputs(outputs.get(split), output)
    described = system.model_copy(
        update={
            "outputs": outputs,
            "tested": _tested(system.name, bank.name, outputs.get("test"), earlier),
        }
    )
    metrics = list(dict.fromkeys(name for one in results.values() for name in one.metrics))
    hashes = [one.sha256[layer] for one in outputs.values() for layer in sorted(one.sha256)]
    return Record(
        finished=datetime.datetime.now(datetime.UTC),
        lang=bank.language,
        treebank=info,
        kind=KIND,
        variant=system.title,
        size="",
        seed=0,
        selected=True,
        select=" + ".join(f"{name}.{metric_named(name).headline}" for name in metrics),
        weights=hashlib.sha256("".join(hashes).encode()).hexdigest(),
        recipe={"kind": KIND, "system": {"name": system.name, "version": system.version}},
        system=described,
        dev=results.get("dev"),
        test=results.get("test"),
        versions=find_versions(),
        commit=find_commit(),
    )


def _joined(before: SplitResult | None, new: SplitResult) -> SplitResult:
    """The scores of both layers of a split."""
    if before is None:
        return new
    if before.sentences != new.sentences:
        raise ScoreError(f"{before.sentences} sentences were scored before, now {new.sentences}")
    return new.model_copy(update={"metrics": before.metrics | new.metrics})


def _joined_outputs(before: Output | None, new: Output) -> Output:
    if before is None:
        return new
    return new.model_copy(update={"sha256": before.sha256 | new.sha256})


def _tested(name: str, treebank: str, new: Output | None, earlier: Sequence[Record]) -> int:
    """How many outputs of a system, of any version, were scored on test, the new one included."""
    found = {
        digest
        for record in earlier
        if record.system is not None
        and record.system.name == name
        and record.treebank.name == treebank
        and (output := record.system.outputs.get("test"))
        for digest in output.sha256.values()
    }
    return len(found | set(new.sha256.values() if new else ()))
