"""Which files make a split: its patterns, less what it leaves to the others, by its own list.

A manifest says it by patterns of paths, by a list of documents beside them, or as what the other
splits leave. Whatever it names and is not there is told, so that a split is never read in part.
"""

from __future__ import annotations

from pathlib import Path

from spmrl_bench.bounded_files import read_within
from spmrl_bench.errors import TreebankError
from spmrl_bench.treebanks.manifest import FileManifest
from spmrl_bench.treebanks.patterns import FoundFiles, documents, find_files
from spmrl_bench.treebanks.sources import SPLITS, Split

#: What ``{tags}`` stands for in the patterns of a manifest.
TAGS_IN_NAMES = {"gold": "gold", "predicted": "pred", "none": "gold"}
#: Bytes of a list of documents, at most.
LONGEST_LIST = 1 << 20


def split_files(manifest: FileManifest, folder: Path, split: Split) -> FoundFiles:
    """The files of a split; among the missing ones also its tables, its files of tags, and what
    its list of documents names in vain.

    Raises:
        TreebankError: the list cannot be read.
    """
    tags = TAGS_IN_NAMES[manifest.tags]
    found = find_files(folder, split.files, exclude=split.exclude, tags=tags)
    paths, missing = found.paths, found.missing
    if split.rest:
        others = (manifest.splits[name] for name in SPLITS)
        taken = {
            path
            for other in others
            if other is not split
            for path in split_files(manifest, folder, other).paths
        }
        paths = tuple(path for path in paths if path not in taken)
    if split.ids is not None and not (folder / split.ids).is_file():
        missing = (*missing, split.ids)
    elif split.ids is not None:
        names = {path.relative_to(folder).as_posix(): path for path in paths}
        chosen, unknown = documents([*names], listed_documents(folder / split.ids))
        paths = tuple(names[name] for name in chosen)
        missing = (*missing, *(f"{line} of {split.ids}" for line in unknown))
    if split.rows is not None and not (folder / split.rows.table).is_file():
        missing = (*missing, split.rows.table)
    if split.tag_files is not None:
        missing = (*missing, *find_files(folder, split.tag_files).missing)
    return FoundFiles(paths, missing)


def listed_documents(path: Path) -> tuple[str, ...]:
    """The lines of a list of documents, without comments (``#``) and blank ones.

    Raises:
        TreebankError: the file cannot be read, or is too large for a list.
    """
    text = read_within(path, TreebankError, LONGEST_LIST).decode("utf-8-sig", errors="replace")
    lines = (line.strip() for line in text.splitlines())
    return tuple(line for line in lines if line and not line.startswith("#"))


def side_files(folder: Path, split: Split) -> list[Path]:
    """The files of a split that hold no sentences but decide what becomes of them."""
    table = [folder / split.rows.table] if split.rows is not None else []
    tags = find_files(folder, split.tag_files).paths if split.tag_files is not None else ()
    return [*table, *tags]
