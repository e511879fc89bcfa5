"""All speeds of the report, and their JSON form."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import get_args

import torch

from spmrl_bench.errors import RecipeError
from spmrl_bench.experiments.recipe import RunConfig, load_recipe
from spmrl_bench.leaderboard.environment import find_commit, find_hardware, find_versions
from spmrl_bench.nn.settings import Precision
from spmrl_bench.parsers.base import ParserConfig
from spmrl_bench.parsers.registry import kind_named
from spmrl_bench.scoring import load_prm
from spmrl_bench.speed import work
from spmrl_bench.speed.epoch import epoch_speeds
from spmrl_bench.speed.machine import Machine, measure_machine
from spmrl_bench.speed.work import Speed, measure
from spmrl_bench.treebanks.treebank import Treebank, open_treebank

# Trees that are parsed: some batches' worth, in a fraction of a minute at the published size.
_PARSED = 300


def all_speeds(
    treebank: str, variant: str, sizes: Sequence[str], device: torch.device, seconds: float
) -> tuple[Machine, list[Speed]]:
    """What the machine allows, and the speed of every piece of work on a treebank's sentences.

    Parsers are of a variant of the recipe and the sizes ``published``, ``small`` or both, and
    trained on the device. Each measurement takes so many seconds at least.

    Raises:
        TreebankError: the treebank is absent, or has not what the variant learns.
        RecipeError: there is no recipe for its language, or no such variant of that size.
    """
    bank = open_treebank(treebank)
    measured = list(settings(bank, variant, sizes))
    machine, cpu = measure_machine(device, seconds), torch.device("cpu")
    speeds = []
    if "constituents" in bank.layers:
        trees = bank.split("train")
        with tempfile.TemporaryDirectory() as folder:
            reading = work.reading(trees, Path(folder, "trees.mrg"))
            speeds.append(measure(reading, cpu, seconds))
        scoring = work.scoring(trees, work.baseline_parses(trees), load_prm("spmrl"))
        speeds.append(measure(scoring, cpu, seconds))
    for n in work.CHART_LENGTHS:
        for augmented in (False, True):
            speeds.append(measure(work.decoding(n, augmented), cpu, seconds))
    for config, model in measured:
        layers = kind_named(config.kind).layers
        train, dev = bank.examples("train", layers), bank.examples("dev", layers)[:_PARSED]
        pieces = [work.training(config.kind, model, config.train, train, device)]
        pieces += [work.parsing(config.kind, each, dev, device) for each in work.searches(model)]
        what = f"{config.size} size"
        speeds += [measure(piece, device, seconds).of(what) for piece in pieces]
    return machine, speeds


def epoch_report(
    treebank: str, variant: str, sizes: Sequence[str], device: torch.device, seconds: float
) -> tuple[Machine, list[Speed]]:
    """As :func:`all_speeds`, of an epoch of a corpus made of a treebank's trees.

    Raises:
        RecipeError: also, if the variant's kind of parser is not ``chart``.
    """
    bank = open_treebank(treebank)
    measured = list(settings(bank, variant, sizes))
    kinds = {config.kind for config, _ in measured}
    if kinds != {"chart"}:
        raise RecipeError(
            f"the corpus of an epoch has constituents only, and {variant} is of kind "
            f"{', '.join(kinds)}; measure it without the epoch, or a variant of kind chart"
        )
    machine, pieces = measure_machine(device, seconds), bank.split("train")
    return machine, [
        speed.of(f"{config.size} size")
        for config, model in measured
        for speed in epoch_speeds(model, config.train, pieces, device, seconds)
    ]


def settings(
    bank: Treebank, variant: str, sizes: Sequence[str]
) -> Iterator[tuple[RunConfig, ParserConfig]]:
    """Settings of a run of each size, and its model in each precision.

    Raises:
        RecipeError: no such variant of that size.
    """
    for size in sizes:
        config = load_recipe(bank.language).resolve(
            treebank=bank.name,
            track=bank.track,
            fingerprints={layer: bank.fingerprint_of(layer) for layer in bank.layers},
            variant=variant,
            size=size,
        )
        for precision in get_args(Precision):
            yield config, config.model.model_copy(update={"precision": precision})


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
