"""What to say of files that no format can read: the nearest one, and where it fails.

Whoever brings a treebank that is almost in a known format, or in brackets with a mistake in its
first tree, should learn what is in the way, not only that something is.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from pathlib import Path

from spmrl_bench.errors import ReadError, SpmrlError
from spmrl_bench.readers.formats import FORMATS

#: Sentences that each format is tried with.
TRIED = 200


def nearest_format(paths: Sequence[Path]) -> str:
    """What the format nearest to some files of no known one is, with the place where it ends."""
    best: tuple[float, int, str, str] | None = None
    for path in paths:
        for name in FORMATS.names():
            trees, error = _first_error(path, name)
            if error is not None:
                rank = (trees, error.line or 0, name, str(error))
                best = rank if best is None or rank[:2] > best[:2] else best
    return "" if best is None else f" The nearest is {best[2]}, which fails: {best[3]}"


def _first_error(path: Path, name: str) -> tuple[float, ReadError | None]:
    """How many sentences a format finds in a file for each mistake, and the first of those."""
    errors: list[ReadError] = []
    found = 0
    try:
        read = FORMATS.get(name).read(path, on_error=errors.append)
        found = sum(1 for _ in islice(read, TRIED))
    except ReadError as error:
        errors.append(error)
    except SpmrlError:
        return 0, None
    return found / (1 + len(errors)), errors[0] if errors else None
