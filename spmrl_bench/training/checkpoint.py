"""The complete state of a training run on disk, so that it continues exactly where it was.

A checkpoint is a folder: the parser as :meth:`Parser.save` writes it, the optimiser's moments,
of which plain gradient descent has none, and the average of the weights, if one is kept
(``optimiser.safetensors``), and the schedule (``progress.json``). Random numbers need no state
of their own: every stream is a function of seed, epoch and batch. Folders are replaced
atomically, so a kill at any moment leaves a whole checkpoint.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import torch
from safetensors.torch import save

from spmrl_bench.errors import CheckpointError, remedy
from spmrl_bench.files import put, read_folder, write_folder
from spmrl_bench.parsers.trained import TrainedParser
from spmrl_bench.tensor_files import Stored, TensorFile
from spmrl_bench.training import BEST, LAST
from spmrl_bench.training.averaging import WeightAverage
from spmrl_bench.training.saved_progress import PROGRESS, incomplete, progress_of_version
from spmrl_bench.training.schedule import Progress

#: What Adam remembers of a weight.
MOMENTS = ("step", "exp_avg", "exp_avg_sq")


def save_checkpoint(
    run_dir: Path,
    parser: TrainedParser,
    optimiser: torch.optim.Optimizer,
    average: WeightAverage | None,
    progress: Progress,
) -> None:
    """Replace the run's last checkpoint.

    Raises:
        CheckpointError: it cannot be written; the one before it is kept.
    """

    def fill(folder: Path) -> None:
        parser.save(folder)
        moments = {}
        for name, parameter in parser.named_parameters():
            for key, value in optimiser.state.get(parameter, {}).items():
                moments[f"{key}/{name}"] = value.contiguous()
        for name, mean in average.means.items() if average is not None else ():
            moments[f"average/{name}"] = mean
        put(folder / "optimiser.safetensors", [save(moments)])
        put(folder / PROGRESS, [f"{progress.model_dump_json(indent=1)}\n".encode()])

    _write(run_dir / LAST, fill)


def save_best(run_dir: Path, parser: TrainedParser) -> None:
    """Replace the parser that had the best dev score.

    Raises:
        CheckpointError: it cannot be written; the one before it is kept.
    """
    _write(run_dir / BEST, parser.save)


def _write(folder: Path, fill: Callable[[Path], None]) -> None:
    try:
        write_folder(folder, fill)
    except OSError as error:
        raise CheckpointError(
            f"{folder}: cannot be written ({error}); what was saved before is kept. "
            f"{remedy(error)}, then give the same command again (without --fresh) to continue"
        ) from None


def load_checkpoint(
    run_dir: Path,
    parser: TrainedParser,
    optimiser: torch.optim.Optimizer,
    average: WeightAverage | None,
) -> Progress | None:
    """Restore parser, optimiser and average in place; None if the run has no checkpoint yet.

    Raises:
        CheckpointError: the checkpoint is incomplete or belongs to another model.
    """
    return read_folder(
        run_dir / LAST, lambda folder: _load_checkpoint(folder, parser, optimiser, average)
    )


def _load_checkpoint(
    folder: Path,
    parser: TrainedParser,
    optimiser: torch.optim.Optimizer,
    average: WeightAverage | None,
) -> Progress | None:
    if not folder.exists():
        return None
    saved = type(parser).load(folder)
    if not saved.is_like(parser):
        raise CheckpointError(
            f"{folder}: belongs to a parser with another configuration or vocabulary. "
            "Train into another folder, or start anew with --fresh"
        )
    parser.load_state_dict(saved.state_dict())
    progress = progress_of_version(folder)
    path = folder / "optimiser.safetensors"
    moments = _read_moments(path, parser, optimiser, average)
    for name, parameter in parser.named_parameters():
        for key in MOMENTS:
            if f"{key}/{name}" in moments:
                # The fused optimiser wants its step counters beside the weights too.
                optimiser.state[parameter][key] = moments[f"{key}/{name}"].to(parameter.device)
    for name, mean in average.means.items() if average is not None else ():
        mean.copy_(moments[f"average/{name}"])
    return progress


def _read_moments(
    path: Path,
    parser: TrainedParser,
    optimiser: torch.optim.Optimizer,
    average: WeightAverage | None,
) -> dict[str, torch.Tensor]:
    """What the optimiser remembers, and the averages, by name.

    Raises:
        CheckpointError: the file is broken, or not of this parser and optimiser.
    """
    expected: dict[str, Stored] = {}
    for name, parameter in parser.named_parameters():
        own = Stored.of(parameter)
        if isinstance(optimiser, torch.optim.Adam):
            step = Stored(own.dtype, ())
            expected |= {f"{key}/{name}": step if key == "step" else own for key in MOMENTS}
        if average is not None:
            expected[f"average/{name}"] = own
    try:
        with TensorFile(path) as file:
            file.check(expected)
            return file.read()
    except FileNotFoundError:
        raise incomplete(path, "missing") from None
    except (OSError, ValueError) as error:
        raise incomplete(path, getattr(error, "strerror", None) or error) from None
