"""Splits that were read once are kept, ready for use, in the user's own folder.

A treebank is opened for every training and every score, and most of its files take far longer
to read than their sentences take to load. A stored split is found by a key that stands for
everything that decides the sentences: the bytes of the files, the settings of the manifest,
and the code of the readers and transforms. So it can never be out of date: anything that
changes leads to another key, and the old file is removed when the new one is written.

Files appear under their names only when they are whole, and carry a checksum. Several
processes may therefore read and write at the same time, and one that is stopped while it
writes leaves nothing behind that could be taken for a split. A file that is damaged counts as
absent.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import spmrl_bench
from spmrl_bench.files import write_bytes
from spmrl_bench.storage.paths import home
from spmrl_bench.treebanks.columns import from_bytes, to_bytes
from spmrl_bench.treebanks.reading import SplitContent

#: Set to ``0`` in the environment, nothing is kept and nothing kept is used.
CACHE_VARIABLE = "SPMRL_BENCH_CACHE"

_DIGEST_SIZE = 32
_CODE = ("readers", "trees", "treebanks")

_log = logging.getLogger(__name__)


def cached(name: str, key: Mapping[str, Any], read: Callable[[], SplitContent]) -> SplitContent:
    """The content of a split, from the cache or from ``read``, which is then stored.

    Args:
        name: of treebank and split, for the name of the file; one file is kept for each name.
        key: all that decides the content, besides the program itself.
        read: reads it.

    Raises:
        SpmrlError: what ``read`` raises.
    """
    if os.environ.get(CACHE_VARIABLE) == "0":
        return read()
    path = folder() / f"{name}.{digest({**key, 'code': _code_digest()})[:24]}.safetensors"
    content = _load(path)
    if content is None:
        content = read()
        _store(name, path, content)
    return content


def folder() -> Path:
    """Where the files are; it may not exist."""
    return home() / "cache"


def _load(path: Path) -> SplitContent | None:
    try:
        data = path.read_bytes()
    except OSError:
        return None
    stored, payload = data[:_DIGEST_SIZE], data[_DIGEST_SIZE:]
    if hashlib.sha256(payload).digest() != stored:
        _log.warning("%s is damaged; reading the treebank again", path)
        return None
    sentences, notes = from_bytes(payload)
    return SplitContent(sentences, notes["dropped"], tuple(notes["skipped"]))


def _store(name: str, path: Path, content: SplitContent) -> None:
    """Write a file and remove those of the same name; a failure costs time only."""
    notes = {"dropped": content.dropped, "skipped": content.skipped}
    payload = to_bytes(content.sentences, notes)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_bytes(path, hashlib.sha256(payload).digest() + payload)
        for other in path.parent.glob(f"{name}.*.safetensors"):
            if other != path:
                other.unlink(missing_ok=True)
    except OSError as error:
        _log.warning("cannot keep the treebank for the next time: %s", error)


@lru_cache(maxsize=1)
def _code_digest() -> str:
    """SHA-256 of the program's code that decides what a treebank is read as."""
    package = Path(spmrl_bench.__file__).parent
    files = sorted(path for part in _CODE for path in (package / part).rglob("*.py*"))
    content = [
        (path.relative_to(package).as_posix(), hashlib.sha256(path.read_bytes()).hexdigest())
        for path in files
        if path.suffix in (".py", ".pyx")
    ]
    return digest({"version": spmrl_bench.__version__, "files": content})


def digest(content: object) -> str:
    """SHA-256 of a value's JSON form, in hex."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
