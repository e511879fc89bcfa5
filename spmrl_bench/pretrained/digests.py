"""The content of pre-trained files, by which they count: a path says little of what it holds."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Mapping
from pathlib import Path


def digests(places: Mapping[str, str]) -> dict[str, str]:
    """SHA-256 by setting of the files and folders of weights that are there.

    Args:
        places: by setting. What is neither a file nor a folder, such as the name of an encoder on
            a hub, is left out: the setting of its revision says which it is.
    """
    found = {}
    for name, place in places.items():
        path = Path(place)
        if path.is_file():
            found[name] = file_digest(path)
        elif path.is_dir():
            parts = [file_digest(file) for file in sorted(path.glob("*.safetensors"))]
            found[name] = hashlib.sha256("".join(parts).encode()).hexdigest()
    return found


def file_digest(path: Path) -> str:
    """SHA-256 of a file, in hex; computed again only when it has been written to."""
    status = path.stat()
    return _digest_of(path, status.st_mtime_ns, status.st_size)


@functools.lru_cache(maxsize=64)
def _digest_of(path: Path, modified: int, size: int) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
