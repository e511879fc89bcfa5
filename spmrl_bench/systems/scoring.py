"""Scoring a system of somebody else that was trained here: dev and test, parsed once.

What a system answers stays in its run folder beside what it was given, so that anybody can score it
again. A run that has a record of these answers is not parsed again.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from spmrl_bench.errors import CheckpointError, TrainingError
from spmrl_bench.experiments.ownership import owned
from spmrl_bench.leaderboard.environment import find_hardware, find_versions
from spmrl_bench.leaderboard.provenance import Provenance
from spmrl_bench.leaderboard.record import Output, Record, SplitResult, System, SystemTraining
from spmrl_bench.nn.device import choose_device
from spmrl_bench.storage.files import write_text
from spmrl_bench.systems.command import run
from spmrl_bench.systems.description import filled
from spmrl_bench.systems.entry import score_file, signed_title, system_record
from spmrl_bench.systems.environment import versions_of
from spmrl_bench.systems.material import words_text
from spmrl_bench.systems.outputs import is_kept, keep_output
from spmrl_bench.systems.run import MODEL, SETTINGS, SystemRun, Trained, check, trained

SPLITS = ("dev", "test")
LOG = "parse.log"


def score_one(
    this: SystemRun,
    earlier: Sequence[Record],
    *,
    threads: int,
    device: str,
    stop: threading.Event,
) -> Record:
    """The record of a trained run, the one that there is or a new one, which is not written yet.

    Args:
        earlier: records of the results folder.

    Raises:
        CheckpointError: it is not trained, or with other settings.
        TrainingError: its command failed or wrote nothing.
        StoppedError: all is to end.
        SpmrlError: its answers cannot be read.
    """
    state = _state(this)
    with owned(this.folder):
        known = _known(this, earlier)
        if known is not None:
            return known
        bank, answering = this.treebank.with_test(), this.system.description.parse
        title = _described(this).title
        source = Provenance(
            tags=bank.manifest.tags if answering.tags == "treebank" else "none",
            variant=signed_title(title),
            settings=this.given,
            size=this.settings.size,
            seed=this.settings.seed,
        )
        results: dict[str, SplitResult] = {}
        outputs: dict[str, Output] = {}
        for split in SPLITS:
            words, seconds = _answer(this, split, threads, device, stop)
            path = _answers(this, split)
            found = score_file(path, bank, split, source, policy=answering.faults)
            results[split] = found.result.model_copy(update={"tokens_per_second": words / seconds})
            outputs[split] = found.output
        return system_record(
            bank,
            _described(this),
            results,
            outputs,
            recipe=_recipe(this),
            lang=this.settings.recipe,
            size=this.settings.size,
            seed=this.settings.seed,
            hardware=find_hardware(choose_device(device)).model_copy(
                update={"threads": state.threads if state else threads, "kernels": None}
            ),
            versions=find_versions() | (state.packages if state else versions_of(this.system)),
        )


def keep_answers(this: SystemRun, record: Record, results_dir: Path) -> None:
    """Keep the answers of a run that was scored, and the gold trees, among the results.

    Raises:
        SpmrlError: a file cannot be read or written.
    """
    bank = this.treebank.with_test()
    outputs = record.system.outputs if record.system else {}
    for split, output in outputs.items():
        if not is_kept(output, bank.name, split, results_dir):
            keep_output(_answers(this, split), output, bank, split, results_dir)


def _state(this: SystemRun) -> Trained | None:
    """What its training took; None for one that is not trained here."""
    if this.system.description.train is None:
        if not (this.folder / SETTINGS).exists():
            (this.folder / MODEL).mkdir(parents=True, exist_ok=True)
            write_text(this.folder / SETTINGS, this.settings.model_dump_json(indent=1) + "\n")
        check(this)
        return None
    check(this)
    if (state := trained(this.folder)) is None:
        raise CheckpointError(
            f"{this.folder}: training has not ended; run 'spmrl-bench train' with the same options"
        )
    return state


def _described(this: SystemRun) -> System:
    description, state = this.system.description, trained(this.folder)
    return System(
        name=description.title,
        version=this.settings.version,
        url=description.url,
        paper=description.paper,
        training_data=description.training_data or f"train of {this.settings.treebank}",
        notes=description.adapted,
        training=state
        and SystemTraining(
            wall_seconds=state.seconds,
            peak_memory_bytes=state.peak_memory_bytes,
            minutes=this.settings.minutes,
            out_of_time=state.out_of_time,
        ),
        outputs={},
    )


def _recipe(this: SystemRun) -> dict[str, object]:
    """What tells its runs from those of other systems and settings."""
    own = this.settings
    return {
        "kind": "system",
        "variant": _described(this).title,
        "size": own.size,
        "seed": own.seed,
        "system": {
            "name": this.system.description.title,
            "version": own.version,
            "description": own.description,
            "minutes": own.minutes,
            **own.values,
        },
        "settings": this.given,
    }


def _known(this: SystemRun, earlier: Sequence[Record]) -> Record | None:
    """The newest record of the answers that the folder has."""
    try:
        there = {
            split: hashlib.sha256(_answers(this, split).read_bytes()).hexdigest()
            for split in SPLITS
        }
    except OSError:
        return None
    layer = this.system.description.layer
    for record in reversed(earlier):
        if record.system is None or record.recipe != _recipe(this):
            continue
        outputs = record.system.outputs
        if {split: one.sha256.get(layer) for split, one in outputs.items()} == there:
            return record
    return None


def _answer(
    this: SystemRun, split: str, threads: int, device: str, stop: threading.Event
) -> tuple[int, float]:
    """Let the system parse a split; returns how many words, and in how many seconds."""
    answering = this.system.description.parse
    bank = this.treebank.with_test()
    sentences = bank.examples(split, [this.system.description.layer])
    given = this.folder.absolute() / f"{split}.given"
    text = words_text(sentences, answering.input, tags=answering.tags == "treebank")
    write_text(given, text)
    path = _answers(this, split)
    path.unlink(missing_ok=True)
    values = this.values(threads=threads, device=device, input=given, output=path.absolute())
    begun = time.monotonic()
    run(filled(answering.command, values), this.folder / LOG, threads=threads, stop=stop)
    if not path.is_file():
        raise TrainingError(f"{this.title}: wrote no {path.name}; see {this.folder / LOG}")
    return sum(map(len, sentences)), time.monotonic() - begun


def _answers(this: SystemRun, split: str) -> Path:
    return this.folder / f"{split}.parses"
