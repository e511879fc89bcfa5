"""What to say of files that no format can read: the nearest one, and where it fails.

Whoever brings a treebank that is almost in a known format, or in brackets with a mistake in its
first tree, should learn what is in the way, not only that something is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from spmrl_bench.errors import ReadError, SpmrlError
from spmrl_bench.readers.described import read_described_text
from spmrl_bench.readers.formats import FORMATS
from spmrl_bench.treebanks.bracket_proposals import LOOKED_AT, TRIED, described


def nearest_format(paths: Sequence[Path]) -> str:
    """What the format nearest to some files of no known one is, with the place where it ends."""
    best: tuple[float, int, str, str] | None = None
    for path in paths:
        try:
            text = path.read_text("utf-8", errors="replace")[: 4 * LOOKED_AT]
        except OSError:
            continue
        suggested = described(text[:LOOKED_AT])
        tried: list[tuple[str, dict[str, Any]]]
        tried = [("brackets", suggested)] if suggested else []
        tried += [("brackets", {"escapes": "brackets"})]
        tried += [(form.name, {}) for form in FORMATS.values() if form.name != "brackets"]
        for name, options in tried:
            trees, error = _first_error(path, text, name, options)
            if error is not None:
                shown = ", ".join(f"{key} = {value!r}" for key, value in options.items())
                what = f"{name} ({shown})" if name == "brackets" and options else name
                rank = (trees, error.line or 0, what, str(error))
                best = rank if best is None or rank[:2] > best[:2] else best
    return "" if best is None else f" The nearest is {best[2]}, which fails: {best[3]}"


def _first_error(
    path: Path, text: str, name: str, options: Mapping[str, Any]
) -> tuple[float, ReadError | None]:
    """How many sentences a format finds in a file for each mistake, and the first of those."""
    errors: list[ReadError] = []
    found = 0
    try:
        if name == "brackets":
            read = read_described_text(text, path=path, on_error=errors.append, **options)
        else:
            read = FORMATS[name].read(path, on_error=errors.append)
        found = sum(1 for _ in islice(read, TRIED))
    except ReadError as error:
        errors.append(error)
    except SpmrlError:
        return 0, None
    return found / (1 + len(errors)), errors[0] if errors else None
