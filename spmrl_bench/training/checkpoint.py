"""The complete state of a training run on disk, so that it continues exactly where it was.

A checkpoint is a folder: the parser as :meth:`Parser.save` writes it, the optimiser's moments and
the average of the weights, if there are any (``optimiser.safetensors``), and the schedule
(``progress.json``). Folders are replaced atomically, so a kill at any moment leaves a whole one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import torch
from safetensors.torch import save
from torch import Tensor

from spmrl_bench.errors import CheckpointError
from spmrl_bench.parsers.legacy import current_name
from spmrl_bench.parsers.neural import TrainedParser
from spmrl_bench.storage.files import read_folder, write_folder, write_new
from spmrl_bench.storage.tensors import check_state, content_digest, read_tensors
from spmrl_bench.training import BEST, LAST
from spmrl_bench.training.schedule import PROGRESS, Progress, incomplete, read_progress, unwritten

#: What Adam remembers of a weight.
MOMENTS = ("step", "exp_avg", "exp_avg_sq")
_NOTE = "content"  # of the optimiser's file, with the digest of its tensors


def save_checkpoint(
    run_dir: Path,
    parser: TrainedParser,
    optimiser: torch.optim.Optimizer,
    means: Mapping[str, Tensor],
    progress: Progress,
) -> None:
    """Replace the run's last checkpoint; ``means`` are average weights by name, if any are kept.
    Raise a CheckpointError if it cannot be written; the one before it is kept."""
    state = {f"average/{name}": mean for name, mean in means.items()}
    for name, parameter in parser.named_parameters():
        for key, value in optimiser.state.get(parameter, {}).items():
            state[f"{key}/{name}"] = value.contiguous()

    def fill(folder: Path) -> None:
        parser.save(folder)
        notes = {_NOTE: content_digest(state)}
        write_new(folder / "optimiser.safetensors", save(state, notes))
        write_new(folder / PROGRESS, progress.to_bytes())

    _write(run_dir / LAST, fill)


def save_best(run_dir: Path, parser: TrainedParser) -> None:
    """Replace the parser that had the best dev score, as :func:`save_checkpoint`."""
    _write(run_dir / BEST, parser.save)


def _write(folder: Path, fill: Callable[[Path], None]) -> None:
    try:
        write_folder(folder, fill)
    except OSError as error:
        raise unwritten(folder, error) from None


def load_checkpoint(
    run_dir: Path,
    parser: TrainedParser,
    optimiser: torch.optim.Optimizer,
    means: Mapping[str, Tensor],
) -> Progress | None:
    """Restore parser, optimiser and average in place; None if the run has no checkpoint yet. Raise
    a CheckpointError if that is incomplete or belongs to another model."""

    def load(folder: Path) -> Progress | None:
        if not folder.exists():
            return None
        saved = type(parser).load(folder)
        if not saved.is_like(parser):
            raise CheckpointError(
                f"{folder}: belongs to a parser with another configuration or vocabulary. "
                "Train into another folder, or start anew with --fresh"
            )
        parser.load_state_dict(saved.state_dict())
        progress = read_progress(folder)
        moments = MOMENTS if isinstance(optimiser, torch.optim.Adam) else ()
        state = _read_state(folder / "optimiser.safetensors", parser, moments, means)
        for name, parameter in parser.named_parameters():
            for key in moments:
                # The fused optimiser wants its step counters beside the weights too.
                optimiser.state[parameter][key] = state[f"{key}/{name}"].to(parameter.device)
        for name, mean in means.items():
            mean.copy_(state[f"average/{name}"])
        return progress

    return read_folder(run_dir / LAST, load)


def _read_state(
    path: Path, parser: TrainedParser, moments: tuple[str, ...], means: Mapping[str, Tensor]
) -> dict[str, Tensor]:
    """Return moments and averages, raise a CheckpointError if they are not of this parser."""
    expected = {f"average/{name}": mean for name, mean in means.items()}
    for name, own in parser.named_parameters():
        expected |= {
            f"{key}/{name}": own.new_empty(()) if key == "step" else own for key in moments
        }
    try:
        tensors, notes = read_tensors(path)
        if notes.get(_NOTE, digest := content_digest(tensors)) != digest:
            raise ValueError("its numbers have changed since it was saved")
        state = {current_name(name): tensor for name, tensor in tensors.items()}
        check_state(state, expected)
        return state
    except FileNotFoundError:
        raise incomplete(path, "missing") from None
    except (OSError, ValueError) as error:
        raise incomplete(path, getattr(error, "strerror", None) or error) from None
