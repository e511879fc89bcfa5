"""Two records: which they are, whether their scores compare, and what differs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from spmrl_bench.errors import CheckpointError, RecordError, ScoreError
from spmrl_bench.leaderboard.documents import files_of, read_document
from spmrl_bench.leaderboard.frame import Difference, differences, is_of, score_key
from spmrl_bench.leaderboard.record import (
    SPLITS,
    Record,
    load_records,
    shipped_records,
    signature_parts,
)
from spmrl_bench.scoring.counts import Counts
from spmrl_bench.scoring.metric import metric_named
from spmrl_bench.storage.digests import file_digest
from spmrl_bench.storage.json import read_json
from spmrl_bench.training import best_weights


def common_metric(one: Record, other: Record) -> str:
    for name in one.metrics:
        if name in other.metrics:
            return name
    raise ScoreError(
        "the records have no metric in common: the first was scored by "
        f"{', '.join(one.metrics)}, the second by {', '.join(other.metrics)}"
    )


def comparable_counts(one: Record, other: Record, split: str, metric: str) -> tuple[Counts, Counts]:
    """The counts of two records on a split, of which sentence ``k`` is the same on both sides. A
    ScoreError where a record has no such scores or they do not compare; names what differs."""
    scorer = metric_named(metric)
    counts, keys = [], []
    for name, record in (("the first", one), ("the second", other)):
        result = record.result(split)
        if result is None:
            why = "test is scored for the variant that dev selected. Compare on dev (--split dev)"
            if record.system:
                why = f"its system was entered for {' and '.join(record.system.outputs)} only"
            raise ScoreError(f"{name} record has no scores on {split}: {why}")
        if metric not in result.metrics:
            raise ScoreError(
                f"{name} record has no scores by {metric}; it has {', '.join(result.metrics)}"
            )
        counts.append(result.counts(metric))
        fingerprint = record.treebank.fingerprint(scorer.layers)
        keys.append(score_key(result.metrics[metric].signature_long, fingerprint))
    if differing := differences(*keys):
        listed = "".join(
            f"\n  {key}: {left} in the first, {right} in the second"
            for key, left, right in differing
        )
        raise ScoreError(f"the scores on {split} do not compare:{listed}")
    first, second = counts
    lengths = [list(scorer.lengths(each) or ()) for each in counts]
    if len(first) != len(second) or lengths[0] != lengths[1]:
        raise ScoreError(f"the scores on {split} are not of the same sentences")
    if (first.scored != second.scored).any():
        raise ScoreError(
            f"the scores on {split} leave out different sentences: a comparison of the others "
            "would reward failures"
        )
    return first, second


def record_differences(one: Record, other: Record) -> list[Difference]:
    """``(key, value in one, value in the other)`` of all that went into two records. That is the
    signatures, the treebank, the resolved recipe, the versions, the commit and the hardware, with
    dots between the parts of a key; scores, costs and dates are none of it."""
    several = len({*one.metrics, *other.metrics}) > 1
    keys = {"treebank", "system", "kind", "select", "recipe", "versions", "commit", "hardware"}
    found: list[dict[str, str]] = []
    for record in (one, other):
        signed: dict[str, Any] = {}
        for split in SPLITS:
            if result := record.result(split):
                parts = {
                    name: signature_parts(scored.signature_long)
                    for name, scored in result.metrics.items()
                }
                both = one.result(split) and other.result(split)
                shown = parts if several else next(iter(parts.values()), {})
                signed[split] = shown if both else "scored"
        found.append(dict(_flat(signed | record.model_dump(mode="json", include=keys))))
    return differences(*found)


def _flat(content: Mapping[str, Any], at: str = "") -> Iterator[tuple[str, str]]:
    for key, value in content.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{at}{key}.")
        elif value is not None:
            shown = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            yield f"{at}{key}", shown


def find_record(wanted: str, results_dir: Path, errors: list[str] | None = None) -> Record:
    """The record of a run; why files that could be one cannot be read is added to ``errors``.

    It is wanted by the path of a record; by the beginning of the name of one in
    ``results_dir/runs``; or by the folder of a run or of a system, whose newest record with its
    weights, or its parses, is taken. A RecordError if there is none or there are several, or it is
    broken; a CheckpointError if a folder holds no trained parser.
    """
    path, folder = Path(wanted), results_dir / "runs"
    if path.is_dir():
        return _record_of_run(path, folder, [] if errors is None else errors)
    if path.exists():
        return read_document(Record, path)
    name = wanted.removesuffix(".json")
    places = (folder, shipped_records(results_dir)) if name else ()
    files = (file for place in places for file in files_of(place, ".json"))
    matching = [file for file in files if file.name.startswith(name)]
    if len(matching) == 1:
        return read_document(Record, matching[0])
    if matching:
        names = ", ".join(file.stem for file in matching)
        raise RecordError(f"{wanted}: begins the names of several records in {folder}: {names}")
    raise RecordError(
        f"{wanted}: no record; expected the file of a record, the beginning of the name of one in "
        f"{folder}, or a run folder"
    )


def _record_of_run(run: Path, folder: Path, errors: list[str]) -> Record:
    path = run / "run.json"
    settings = read_json(path, CheckpointError) if path.exists() else None
    if not isinstance(settings, dict | None):
        raise CheckpointError(f"{path}: not the settings of a run")
    records, wrong = load_records(folder)
    errors += wrong
    if settings is not None and "system" in settings:
        what, about = "parses", [settings.get(key) for key in ("treebank", "size", "seed")]
        paths = {split: run / f"{split}.parses" for split in SPLITS}
        parses = {split: [file_digest(path)] for split, path in paths.items() if path.is_file()}
        found = [
            record
            for record in records
            if record.system
            and [record.treebank.name, record.size, record.seed] == about
            and parses
            == {key: [*one.sha256.values()] for key, one in record.system.outputs.items()}
        ]
    else:
        what, members = "best parser", [best_weights(run)]
        found = [
            record
            for record in records
            # Runs may end with the same weights; a copy of one may have lost its settings.
            if record.members == members and (settings is None or is_of(record, settings, members))
        ]
    if found:
        return found[-1]
    broken = "".join(f"\nnot read: {error}" for error in wrong)
    raise RecordError(
        f"{run}: no record of its {what} in {folder}: "
        f"'spmrl-bench eval' with the options of its training writes it{broken}"
    )
