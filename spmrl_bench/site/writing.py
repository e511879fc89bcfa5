"""Putting a site into its folder: what was written before and is no longer made goes, nothing else.

A folder of pages is often more than the pages: somebody adds a file for the server, or a logo. So
the site keeps a list of its files with the hash of each. What is on the list and made no more is
removed, if it is still what was written; a file that is not on the list is never touched, and
where a page would have to take its place, nothing is written at all.

Pages are first written beside the folder and then moved, so that a build that fails leaves the
site as it was.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from spmrl_bench.errors import RecordError
from spmrl_bench.site.downloads import Files
from spmrl_bench.storage.files import write_bytes
from spmrl_bench.storage.json import parse_json
from spmrl_bench.storage.paths import path_fault

LIST = "files.json"


class Written(NamedTuple):
    """What became of a folder.

    Attributes:
        files: of the site.
        size: their bytes.
        removed: files of an earlier build that are made no more.
        kept: those of them that somebody has changed, and which therefore stay.
    """

    files: int
    size: int
    removed: int
    kept: list[str]


def write_site(folder: Path, pages: Iterable[Files]) -> Written:
    """Make a folder hold these files, and no other of an earlier build.

    Raises:
        RecordError: the folder holds something else, a file that is not of a site stands in the
            place of one, or it cannot be written.
    """
    before = _listed(folder)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(prefix=f".{folder.name}-", dir=folder.parent) as place:
            new = Path(place)
            made = _spread(new, pages)
            _refuse_others(folder, made, before)
            folder.mkdir(exist_ok=True)
            # Whatever happens now, all that is there is on the list.
            _note(folder, before | made)
            size = _move(new, folder, made)
        removed, kept = _remove(folder, {name: before[name] for name in before.keys() - made})
        _note(folder, made)
    except OSError as error:
        where = error.filename or folder
        raise RecordError(f"{where}: cannot write the site: {error.strerror or error}") from None
    return Written(len(made), size, removed, kept)


def _listed(folder: Path) -> dict[str, str]:
    """The files of an earlier build with their hashes."""
    path = folder / LIST
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        if folder.is_dir() and any(folder.iterdir()):
            raise RecordError(
                f"{folder}: holds other files than a site; name a new or an empty folder (--to)"
            ) from None
        return {}
    except OSError as error:
        raise RecordError(f"{path}: cannot be read: {error.strerror}") from None
    try:
        found = parse_json(text)["files"]
        files = {str(name): str(digest) for name, digest in found.items()}
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise RecordError(
            f"{path}: not the list of a site's files ({error}); remove the folder, or name another "
            "(--to)"
        ) from None
    return {name: digest for name, digest in files.items() if path_fault(name) is None}


def _spread(new: Path, pages: Iterable[Files]) -> dict[str, str]:
    """Write the files under a new folder; their hashes."""
    made: dict[str, str] = {}
    folders = {new}
    for files in pages:
        for name, data in files.items():
            path = new / name
            if path.parent not in folders:
                path.parent.mkdir(parents=True, exist_ok=True)
                folders.add(path.parent)
            path.write_bytes(data)
            made[name] = hashlib.sha256(data).hexdigest()
    return made


def _refuse_others(folder: Path, made: Mapping[str, str], before: Mapping[str, str]) -> None:
    for name in made.keys() - before.keys():
        if os.path.lexists(folder / name) and _digest(folder / name) != made[name]:
            raise RecordError(
                f"{folder / name}: is not of a site that was built here, and a page would take its "
                "place; move it away, or name another folder (--to)"
            )


def _move(new: Path, folder: Path, made: Mapping[str, str]) -> int:
    """Move what has changed; the size of all."""
    size = 0
    for name, digest in made.items():
        source, target = new / name, folder / name
        size += source.stat().st_size
        if _digest(target) != digest:
            target.parent.mkdir(parents=True, exist_ok=True)
            os.replace(source, target)
    return size


def _remove(folder: Path, gone: Mapping[str, str]) -> tuple[int, list[str]]:
    removed, kept = 0, []
    for name, digest in sorted(gone.items()):
        path = folder / name
        if not os.path.lexists(path):
            continue
        if _digest(path) != digest:
            kept.append(name)
            continue
        path.unlink()
        removed += 1
        parent = path.parent
        while parent != folder and not any(parent.iterdir()):
            parent.rmdir()
            parent = parent.parent
    return removed, kept


def _digest(path: Path) -> str:
    """Hash of a file; empty for what is none."""
    if path.is_symlink() or not path.is_file():
        return ""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _note(folder: Path, files: Mapping[str, str]) -> None:
    content = {"made_by": "spmrl-bench site", "files": dict(sorted(files.items()))}
    write_bytes(folder / LIST, f"{json.dumps(content, indent=0)}\n".encode())
