"""Are the files of a treebank those that its manifest was written for?

The hash of every file is needed anyway, as part of the key under which its sentences are kept,
so comparing it with the one that was recorded costs nothing: a treebank is checked each time
it is opened.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

from spmrl_bench.errors import ReadError, TreebankError
from spmrl_bench.treebanks.manifest import FileManifest


def file_digest(path: Path) -> str:
    """SHA-256 of a file, in hex.

    Raises:
        ReadError: it cannot be read.
    """
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise ReadError(f"cannot be read: {error.strerror}", path=path) from error


def verified_digests(manifest: FileManifest, folder: Path, paths: Sequence[Path]) -> list[str]:
    """SHA-256 of each file, compared with those that the manifest records.

    Raises:
        ReadError: a file cannot be read.
        TreebankError: a file is not the recorded one.
    """
    digests = [file_digest(path) for path in paths]
    changed = changed_files(manifest, folder, paths, digests)
    if changed:
        more = f" and {len(changed) - 3} more" if len(changed) > 3 else ""
        raise TreebankError(
            f"{manifest.name}: not the files that the manifest was written for (their SHA-256 "
            f"differs): {', '.join(changed[:3])}{more} in {folder}. Get them again: "
            f"{manifest.obtain}"
        )
    return digests


def changed_files(
    manifest: FileManifest, folder: Path, paths: Sequence[Path], digests: Sequence[str]
) -> list[str]:
    """Paths, under the folder, of the files whose digest is not the recorded one."""
    names = [path.relative_to(folder).as_posix() for path in paths]
    return [
        name
        for name, digest in zip(names, digests, strict=True)
        if manifest.sha256.get(name, digest) != digest
    ]
