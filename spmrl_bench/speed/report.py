"""All speeds of the report, and their JSON form."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, get_args

import torch

from spmrl_bench.experiments.recipe import load_recipe
from spmrl_bench.leaderboard.environment import find_commit, find_hardware, find_versions
from spmrl_bench.nn.precision import Precision
from spmrl_bench.scoring import load_prm
from spmrl_bench.speed import work
from spmrl_bench.speed.epoch import epoch_speeds
from spmrl_bench.speed.machine import Machine, measure_machine
from spmrl_bench.speed.work import Speed, measure
from spmrl_bench.training.config import TrainConfig
from spmrl_bench.treebanks.treebank import Treebank, open_treebank

# Trees that are parsed: some batches' worth, in a fraction of a minute at the published size.
_PARSED = 300


def all_speeds(
    treebank: str, sizes: Sequence[str], device: torch.device, seconds: float
) -> tuple[Machine, list[Speed]]:
    """What the machine allows, and the speed of every piece of work on a treebank's sentences.

    Parsers are of the sizes ``published``, ``small`` or both, and trained on the device. Each
    measurement takes so many seconds at least.

    Raises:
        TreebankError: the treebank is absent.
        RecipeError: there is no recipe for its language.
    """
    machine, cpu = measure_machine(device, seconds), torch.device("cpu")
    bank = open_treebank(treebank)
    trees, dev = bank.split("train"), bank.split("dev")[:_PARSED]
    with tempfile.TemporaryDirectory() as folder:
        reading = work.reading(trees, Path(folder, "trees.mrg"))
        speeds = [measure(reading, machine, cpu, seconds)]
    scoring = work.scoring(trees, work.baseline_parses(trees), load_prm("spmrl"))
    speeds.append(measure(scoring, machine, cpu, seconds))
    for n in work.CHART_LENGTHS:
        for augmented in (False, True):
            speeds.append(measure(work.decoding(n, augmented), machine, cpu, seconds))
    for size, model, train in settings(bank, sizes):
        training = work.training(model, train, trees, device)
        speeds.append(measure(training, machine, device, seconds).of(f"{size} size"))
        parsing = work.parsing(model, dev, device)
        speeds.append(measure(parsing, machine, device, seconds).of(f"{size} size"))
    return machine, speeds


def epoch_report(
    treebank: str, sizes: Sequence[str], device: torch.device, seconds: float
) -> tuple[Machine, list[Speed]]:
    """As :func:`all_speeds`, of an epoch of a corpus made of a treebank's trees."""
    machine = measure_machine(device, seconds)
    bank = open_treebank(treebank)
    pieces = bank.split("train")
    return machine, [
        speed.of(f"{size} size")
        for size, model, train in settings(bank, sizes)
        for speed in epoch_speeds(model, train, pieces, machine, device, seconds)
    ]


def settings(bank: Treebank, sizes: Sequence[str]) -> Iterator[tuple[str, Any, TrainConfig]]:
    """Size, model and training of each size in each precision."""
    for size in sizes:
        config = load_recipe(bank.language).resolve(
            treebank=bank.name,
            track=bank.track,
            fingerprints={"constituents": bank.fingerprint},
            variant="charlstm",
            size=size,
        )
        for precision in get_args(Precision):
            yield size, config.model.model_copy(update={"precision": precision}), config.train


def to_json(machine: Machine, speeds: Sequence[Speed], threads: int) -> str:
    """The speeds with the machine and the versions they were measured on."""
    content = {
        "limits": asdict(machine),
        "threads": threads,
        "figures": [asdict(speed) for speed in speeds],
        "hardware": find_hardware(torch.device(machine.device)).model_dump(),
        "versions": find_versions(),
        "commit": find_commit(),
    }
    return json.dumps(content, indent=2) + "\n"
