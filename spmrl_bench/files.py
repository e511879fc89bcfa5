"""Writing files and folders so that a crash leaves the old version or the new one, whole."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path


def write_text(path: Path, text: str) -> None:
    """Replace a text file atomically, as UTF-8."""
    write_bytes(path, text.encode("utf-8"))


def write_bytes(path: Path, data: bytes) -> None:
    """Replace a file atomically (temporary file, fsync, rename)."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def write_folder(path: Path, fill: Callable[[Path], None]) -> None:
    """Replace a folder by a new one that ``fill`` writes.

    A folder cannot be exchanged for another in one step, so the old one is moved aside
    first; :func:`recover_folder` puts it back if a crash fell between the two moves.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    recover_folder(path)  # else the only whole version could be the one deleted below
    temporary = path.with_name(f".{path.name}.new")
    aside = path.with_name(f".{path.name}.old")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir()
    fill(temporary)
    for file in temporary.iterdir():
        descriptor = os.open(file, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    shutil.rmtree(aside, ignore_errors=True)
    if path.exists():
        os.replace(path, aside)
    os.replace(temporary, path)
    shutil.rmtree(aside, ignore_errors=True)


def recover_folder(path: Path) -> None:
    """Finish what a crash inside :func:`write_folder` left undone."""
    aside = path.with_name(f".{path.name}.old")
    if not path.exists() and aside.exists():
        os.replace(aside, path)
