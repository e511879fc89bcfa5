"""One trial of a search: a run of the recipe whose dev scores are told to the search.

It lives in the folder of the search, so nothing takes it for a run that was trained for its own
sake. Interrupted, it goes on from its checkpoint like any run.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

from rich.console import Console

from spmrl_bench.experiments.plan import Run
from spmrl_bench.experiments.run_folder import final_progress
from spmrl_bench.experiments.train import train_run
from spmrl_bench.search.journal import Journal, Rules

#: The folder of the trials in that of their search.
TRIALS = "trials"


def trial_folder(folder: Path, number: int) -> Path:
    """Of a trial, whose number counts from 0; that of its folder counts from 1."""
    return folder / TRIALS / f"{number + 1:03}"


def train_trial(
    run: Run,
    folder: Path,
    number: int,
    rules: Rules,
    note: str | None,
    *,
    device: str,
    console: Console | None = None,
) -> None:
    """Train a trial to its end, its own or the one that the pruner sets; or go on with it.

    Args:
        run: what is trained, and where.
        folder: of the search.
        number: of the trial, from 0.
        rules: of the search.
        note: what to say of the treebank before it begins.
        device: where to train.
        console: where to report; by default standard error.

    Raises:
        SpmrlError, Interrupted: as :func:`~spmrl_bench.experiments.train.train_run`; the journal
            is broken or cannot be written.
    """
    if final_progress(run.folder) is not None:
        return
    report = partial(Journal(folder, rules).report, number)
    train_run(run, note, device=device, console=console, prune=report)
