"""Trainer, schedule, checkpoints and progress reports."""

from __future__ import annotations

from pathlib import Path

from spmrl_bench.errors import CheckpointError
from spmrl_bench.storage.digests import file_digest
from spmrl_bench.storage.files import read_folder

#: Folders of a run: the last checkpoint and the best parser so far.
LAST, BEST = "last", "best"


def best_weights(folder: Path) -> str:
    """SHA-256 of the weights of the run's best parser, in hex: what its records know it by."""

    def digest(place: Path) -> str:
        try:
            return file_digest(place / "weights.safetensors")
        except OSError as error:
            raise CheckpointError(
                f"{folder / BEST}: no weights ({error.strerror}). Train anew with --fresh"
            ) from None

    return read_folder(folder / BEST, digest)
