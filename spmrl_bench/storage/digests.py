"""The content of files, by which they count: a path says little of what lies there."""

from __future__ import annotations

import functools
import hashlib
import json
import time
from collections.abc import Mapping
from pathlib import Path

from spmrl_bench.storage.files import check_stored, open_regular_file, open_unpacked

# A file written to so recently may be written to again without a change of its time.
_SETTLED = 1_000_000_000  # nanoseconds


def file_digest(path: Path, *, unpacked: bool = False) -> str:
    """The SHA-256 of a file, in hex, or of what a ``.gz`` holds, ``unpacked``; computed again only
    when it was written to. An OSError where it cannot be read, or is no regular file."""
    state = file_state(path)
    if time.time_ns() - state[1] < _SETTLED:
        return _digest.__wrapped__(path, unpacked)
    return _digest(path, unpacked, *state)


def file_state(path: Path) -> tuple[int, int, int, int]:
    """What is another after every change of a file: no program can set ``st_ctime_ns`` back."""
    status = path.stat()
    return status.st_ino, status.st_mtime_ns, status.st_ctime_ns, status.st_size


@functools.lru_cache(maxsize=4096)
def _digest(path: Path, unpacked: bool, *_state: int) -> str:
    packed = unpacked and path.suffix == ".gz"
    check_stored(path.stat(), path)
    with open_unpacked(path) if packed else open_regular_file(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def digest(content: object) -> str:
    """Return the SHA-256 of a value's JSON form, in hex."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def digests(places: Mapping[str, str]) -> dict[str, str]:
    """Return the SHA-256 of the files and folders of weights that are there, by setting. That of a
    folder is of its safetensors files. What is neither, such as the name of an encoder on a hub, is
    left out: the setting of its revision says which it is."""
    found = {}
    for name, place in places.items():
        path = Path(place)
        if path.is_file():
            found[name] = file_digest(path)
        elif path.is_dir():
            parts = [file_digest(file) for file in sorted(path.glob("*.safetensors"))]
            found[name] = hashlib.sha256("".join(parts).encode()).hexdigest()
    return found
