"""All figures of the report on speed, and their JSON form."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import get_args

import torch

from spmrl_bench.experiments.recipe import RunConfig, load_recipe
from spmrl_bench.leaderboard.environment import find_commit, find_hardware, find_versions
from spmrl_bench.nn.precision import Precision
from spmrl_bench.speed.epoch import epoch_figures
from spmrl_bench.speed.limits import Limits, measure_limits
from spmrl_bench.speed.work import Figure, decoding, parsing, reading_and_scoring, training
from spmrl_bench.treebanks.treebank import Treebank, open_treebank

# Trees that are parsed: some batches' worth, in a fraction of a minute at the published size.
_PARSED = 300


def all_figures(
    treebank: str, sizes: Sequence[str], device: torch.device, seconds: float
) -> tuple[Limits, list[Figure]]:
    """The machine's limits, and the speed of every piece of work.

    Args:
        treebank: name of the treebank whose sentences are used.
        sizes: ``published``, ``small`` or both.
        device: where to train and parse.
        seconds: how long each measurement takes, at least.

    Raises:
        TreebankError: the treebank is absent.
        RecipeError: there is no recipe for its language.
    """
    limits = measure_limits(device, seconds)
    bank = open_treebank(treebank)
    train, dev = bank.split("train"), bank.split("dev")
    figures = [*reading_and_scoring(train, seconds), *decoding(limits, seconds)]
    for size in sizes:
        config = _settings(bank, size)
        for precision in get_args(Precision):
            model = config.model.model_copy(update={"precision": precision})
            found = [
                training(model, config.train, train, limits, device, seconds),
                parsing(model, dev[:_PARSED], limits, device, seconds),
            ]
            figures += [figure.of(f"{size} size") for figure in found]
    return limits, figures


def epoch_report(
    treebank: str, sizes: Sequence[str], device: torch.device, seconds: float
) -> tuple[Limits, list[Figure]]:
    """As :func:`all_figures`, of an epoch of a corpus of the size of the Penn Treebank.

    Args:
        treebank: of whose trees the corpus is made.
    """
    limits = measure_limits(device, seconds)
    bank = open_treebank(treebank)
    pieces = bank.split("train")
    figures = []
    for size in sizes:
        config = _settings(bank, size)
        for precision in get_args(Precision):
            model = config.model.model_copy(update={"precision": precision})
            found = epoch_figures(model, config.train, pieces, limits, device, seconds)
            figures += [figure.of(f"{size} size") for figure in found]
    return limits, figures


def to_json(limits: Limits, figures: Sequence[Figure], threads: int) -> str:
    """The figures with the machine and the versions they were measured on."""
    content = {
        "limits": asdict(limits),
        "threads": threads,
        "figures": [asdict(figure) for figure in figures],
        "hardware": find_hardware(torch.device(limits.device)).model_dump(),
        "versions": find_versions(),
        "commit": find_commit(),
    }
    return json.dumps(content, indent=2) + "\n"


def _settings(bank: Treebank, size: str) -> RunConfig:
    return load_recipe(bank.language).resolve(
        treebank=bank.name,
        track=bank.track,
        fingerprint=bank.fingerprint,
        variant="charlstm",
        size=size,
    )
