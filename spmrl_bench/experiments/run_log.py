"""Reading the log of a run, to its end or as it grows."""

from __future__ import annotations

import codecs
import time
from collections.abc import Iterator
from pathlib import Path

from spmrl_bench.errors import CheckpointError
from spmrl_bench.experiments.run_state import state_of
from spmrl_bench.storage.files import open_regular_file
from spmrl_bench.training.report import LOG

# What the commands of a parser of somebody else print, which has no log of ours.
_OTHERS = "train.log"

_GLANCE = 0.5  # seconds between two looks whether there is more
_PIECE = 1 << 20


def log_of(folder: Path, *, follow: bool = False) -> Iterator[str]:
    """The log of a run, in pieces.

    Args:
        folder: of the run.
        follow: whether to wait for more until the run has ended. A log that is begun anew is told
            from its beginning.

    Raises:
        CheckpointError: it cannot be read, or there is none and none is waited for.
    """
    place, decoder = 0, codecs.getincrementaldecoder("utf-8")("replace")
    while True:
        # Asked first: what is written while it is looked at comes with the next look.
        run = state_of(folder) if follow else None
        waits = run is not None and run.state == "running"
        path = folder / LOG
        if not path.exists() and (folder / _OTHERS).exists():
            path = folder / _OTHERS
        try:
            with open_regular_file(path) as file:
                if file.seek(0, 2) < place:
                    place = 0
                file.seek(place)
                while piece := file.read(_PIECE):
                    place += len(piece)
                    yield decoder.decode(piece)
        except FileNotFoundError:
            if not waits and not place:
                raise CheckpointError(f"{folder}: has no log: nothing was said there") from None
        except OSError as error:
            raise CheckpointError(f"{path}: cannot be read: {error.strerror}") from None
        if not waits:
            return
        time.sleep(_GLANCE)
