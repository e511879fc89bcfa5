"""Entering what a parser of somebody else gave: scored as our own parsers are, kept as a record.

One record has all that is entered of a version of a system on a treebank: a file of brackets and
one of dependencies, of dev and of test. So it can be compared with any run, sentence by sentence. A
system that was trained here has a record for each seed.
"""

from __future__ import annotations

import datetime
import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from spmrl_bench.errors import ScoreError
from spmrl_bench.experiments.evaluation import gold_parses, metric_result, rules_of
from spmrl_bench.leaderboard.environment import find_commit, find_versions
from spmrl_bench.leaderboard.provenance import Provenance
from spmrl_bench.leaderboard.record import (
    Output,
    Record,
    SplitResult,
    System,
    TreebankInfo,
    load_records,
    write_record,
)
from spmrl_bench.scoring.metric import METRICS, metric_named
from spmrl_bench.systems.outputs import keep_output
from spmrl_bench.systems.predictions import Policy, read_predictions
from spmrl_bench.treebanks.treebank import Treebank

KIND = "system"


class Scored(NamedTuple):
    """What a file of parses is worth."""

    result: SplitResult
    output: Output


def enter(
    files: Mapping[str, Sequence[Path]],
    bank: Treebank,
    system: System,
    results_dir: Path,
    *,
    policy: Policy = "refuse",
    tags: bool = False,
    encoding: str = "utf-8",
    save_parses: bool = False,
) -> tuple[Record, Path]:
    """Score files of parses, write the record of their system, and return both.

    Args:
        files: by split: brackets, CoNLL-U, or a file of each; an answer for each sentence.
        bank: whose test split is open if it is asked for.
        system: its description; ``outputs`` and ``tested`` follow from files and records.
        policy: what becomes of answers that cannot be scored as they stand.
        tags: whether the system read the treebank's tags.
        save_parses: keep the files and the gold trees (:mod:`~spmrl_bench.systems.outputs`).

    Raises:
        SpmrlError: a file cannot be read or scored, or the record not be written.
    """
    earlier, _ = load_records(results_dir / "runs")
    source = Provenance(
        tags=bank.manifest.tags if tags else "none", variant=signed_title(system.title)
    )
    results: dict[str, SplitResult] = {}
    outputs: dict[str, Output] = {}
    for split, paths in files.items():
        scored = [
            score_file(path, bank, split, source, policy=policy, encoding=encoding)
            for path in paths
        ]
        metrics = [name for each in scored for name in each.result.metrics]
        if len(set(metrics)) < len(metrics):
            names = " and ".join(map(str, paths))
            raise ScoreError(f"{names}: two files of {split} have the same layer; expected one")
        for path, (result, output) in zip(paths, scored, strict=True):
            if save_parses:
                keep_output(path, output, bank, split, results_dir, encoding=encoding)
            if (before := results.get(split)) is not None:
                result = result.model_copy(update={"metrics": before.metrics | result.metrics})
                sha256 = outputs[split].sha256 | output.sha256
                handled = Counter(outputs[split].handled) + Counter(output.handled)
                output = output.model_copy(update={"sha256": sha256, "handled": dict(handled)})
            results[split], outputs[split] = result, output
    recipe = {"kind": KIND, "system": {"name": system.name, "version": system.version}}
    record = with_tested(system_record(bank, system, results, outputs, recipe=recipe), earlier)
    return record, write_record(record, results_dir / "runs")


def score_file(
    path: Path,
    bank: Treebank,
    split: str,
    source: Provenance,
    *,
    policy: Policy,
    encoding: str = "utf-8",
) -> Scored:
    """Score a file of parses of a split.

    Args:
        source: of the parses, to be signed; what became of faulty ones is added.

    Raises:
        SpmrlError: the file cannot be read or scored.
    """
    gold = gold_parses(bank, split, [name for name in METRICS.names() if _fits(name, bank)])
    found = read_predictions(
        path, gold, transforms=bank.manifest.transforms, policy=policy, encoding=encoding
    )
    name = next(name for name in METRICS.names() if metric_named(name).layers == (found.layer,))
    rules = rules_of(bank, [name])[name]
    counts = metric_named(name).count(gold, found.parses, rules)
    handled = "+".join(f"{kind} {number}" for kind, number in found.handled.items())
    signed = metric_result(
        bank, split, name, counts, rules, replace(source, output=handled or None)
    )
    output = Output(
        sha256={found.layer: hashlib.sha256(path.read_bytes()).hexdigest()},
        policy=policy,
        handled=found.handled,
    )
    return Scored(SplitResult(sentences=len(gold), metrics={name: signed}), output)


def _fits(metric: str, bank: Treebank) -> bool:
    return set(metric_named(metric).layers) <= set(bank.layers)


def signed_title(title: str) -> str:
    """A name without the characters that part a signature."""
    return title.translate(str.maketrans("|:\n", "///"))


def _info(bank: Treebank) -> TreebankInfo:
    return TreebankInfo(
        name=bank.name,
        track=bank.track,
        language=bank.language,
        fingerprints={layer: bank.fingerprint_of(layer) for layer in bank.layers},
    )


def system_record(
    bank: Treebank,
    system: System,
    results: Mapping[str, SplitResult],
    outputs: Mapping[str, Output],
    *,
    recipe: Mapping[str, Any],
    **more: Any,
) -> Record:
    """The record of a system's scored outputs, by split.

    Args:
        recipe: what tells it from other systems and runs.
        more: fields of the record for a system that was trained here.
    """
    metrics = list(dict.fromkeys(name for one in results.values() for name in one.metrics))
    hashes = [one.sha256[layer] for one in outputs.values() for layer in sorted(one.sha256)]
    fields = {
        "lang": bank.language,
        "variant": system.title,
        "size": "",
        "seed": 0,
        "versions": find_versions(),
    } | more
    return Record(
        finished=datetime.datetime.now(datetime.UTC),
        treebank=_info(bank),
        kind=KIND,
        selected=True,
        select=" + ".join(f"{name}.{metric_named(name).headline}" for name in metrics),
        weights=hashlib.sha256("".join(hashes).encode()).hexdigest(),
        recipe=dict(recipe),
        system=system.model_copy(update={"outputs": dict(outputs)}),
        dev=results.get("dev"),
        test=results.get("test"),
        commit=find_commit(),
        **fields,
    )


def with_tested(record: Record, earlier: Sequence[Record]) -> Record:
    """The record of a system with how many of its outputs have been scored on test by now."""
    system = record.system
    if system is None:
        return record
    found = {
        digest
        for one in [*earlier, record]
        if one.system is not None
        and one.system.name == system.name
        and one.treebank.name == record.treebank.name
        and (output := one.system.outputs.get("test"))
        for digest in output.sha256.values()
    }
    return record.model_copy(update={"system": system.model_copy(update={"tested": len(found)})})
