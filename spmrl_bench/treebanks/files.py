"""From a manifest and a folder to the trees of a split.

The manifest says what should be there; this module finds it, reads it with the reader of its
format, applies the transforms in order and compares the result with the numbers that the
manifest promises. Anything else than what was promised is an error: scores on another set of
sentences would look like any other score.
"""

from __future__ import annotations

import csv
import hashlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import compress
from pathlib import Path
from typing import Any

from spmrl_bench.errors import ReadError, TreebankError, TreeError
from spmrl_bench.readers.brackets import read_brackets_file
from spmrl_bench.readers.text import read_text
from spmrl_bench.readers.tigerxml import read_tiger_xml
from spmrl_bench.treebanks.manifest import BracketManifest, FileManifest, Rows, Split
from spmrl_bench.trees.graph import to_tree
from spmrl_bench.trees.transforms import Stage, transform_named
from spmrl_bench.trees.tree import Tree

_RANGE = re.compile(r"\{(\d+)\.\.(\d+)\}")


@dataclass(frozen=True, slots=True)
class FoundFiles:
    """The files of a split under a folder, in reading order, and the patterns without any."""

    paths: tuple[Path, ...]
    missing: tuple[str, ...]


def find_files(folder: Path, split: Split) -> FoundFiles:
    """Look for the files of a split, and for the table that marks its sentences."""
    paths: list[Path] = []
    missing: list[str] = []
    for pattern in (name for entry in split.files for name in _numbered(entry)):
        if "*" in pattern:
            found = sorted(path for path in folder.glob(pattern) if path.is_file())
        else:
            found = [folder / pattern] if (folder / pattern).is_file() else []
        paths += found
        if not found:
            missing.append(pattern)
    if split.rows is not None and not (folder / split.rows.table).is_file():
        missing.append(split.rows.table)
    return FoundFiles(tuple(paths), tuple(missing))


def _numbered(pattern: str) -> Iterator[str]:
    """Each name that ``{0001..0159}`` stands for; numbers keep the width of the first."""
    match = _RANGE.search(pattern)
    if match is None:
        yield pattern
        return
    first, last = match.groups()
    for number in range(int(first), int(last) + 1):
        name = f"{pattern[: match.start()]}{number:0{len(first)}d}{pattern[match.end() :]}"
        yield from _numbered(name)


def read_split(
    manifest: FileManifest, folder: Path, split_name: str, split: Split
) -> tuple[list[Tree], int]:
    """The trees of a split, and how many sentences a transform left without words.

    Raises:
        ReadError: a file is malformed or empty.
        TreebankError: the split does not have the sentences or tokens the manifest declares.
    """
    paths = find_files(folder, split).paths
    sentences: Iterable[Tree | None] = [
        tree for path in paths for tree in _read_file(manifest, path)
    ]
    if split.rows is not None:
        sentences = _marked(list(sentences), folder, split.rows)
    read = list(sentences)
    trees = [tree for tree in read if tree is not None]
    dropped = len(read) - len(trees)
    counts = {"sentences": len(trees), "tokens": sum(map(len, trees))}
    expected = {"sentences": split.sentences, "tokens": split.tokens}
    wrong = [
        f"expected {expected[what]} {what}, found {counts[what]}"
        for what in counts
        if expected[what] not in (None, counts[what])
    ]
    if wrong:
        note = f" ({dropped} without words left out)" if dropped else ""
        raise TreebankError(
            f"{manifest.name}, split {split_name} in {folder}: {'; '.join(wrong)}{note}. "
            "The files are not those that the manifest describes: is it another release, or cut?"
        )
    return trees, dropped


def files_digest(folder: Path, split: Split) -> list[str]:
    """SHA-256 of each file of a split in reading order, the table of its sentences last."""
    paths = list(find_files(folder, split).paths)
    if split.rows is not None:
        paths.append(folder / split.rows.table)
    return [hashlib.sha256(path.read_bytes()).hexdigest() for path in paths]


def transform_tree(transforms: Iterable[str], tree: Tree) -> Tree | None:
    """The tree after the tree transforms among those named; None if no word is left."""
    result: Tree | None = _applied("tree", transforms, tree)
    return result


def _applied(stage: Stage, transforms: Iterable[str], value: Any) -> Any:
    """The value after the transforms of one stage among those named."""
    for transform in map(transform_named, transforms):
        if transform.stage == stage and value is not None:
            value = transform.apply(value)
    return value


def _read_file(manifest: FileManifest, path: Path) -> Iterator[Tree | None]:
    empty = True
    for tree in _parsed(manifest, path):
        empty = False
        yield transform_tree(manifest.transforms, tree)
    if empty:
        raise ReadError("found no sentence in the file", path=path)


def _parsed(manifest: FileManifest, path: Path) -> Iterator[Tree]:
    """The trees of a file before the tree transforms, by its format."""
    if isinstance(manifest, BracketManifest):
        yield from read_brackets_file(
            path,
            encoding=manifest.encoding,
            escapes=manifest.escapes,
            prepare=partial(_applied, "text", manifest.transforms),
        )
        return
    for graph in read_tiger_xml(path):
        try:
            yield to_tree(_applied("graph", manifest.transforms, graph))
        except TreeError as error:
            raise ReadError(str(error), path=path, sentence=graph.name) from error


def _marked(sentences: list[Tree | None], folder: Path, rows: Rows) -> Iterable[Tree | None]:
    """The sentences whose line in the side table has the value wanted."""
    path = folder / rows.table
    table = csv.DictReader(read_text(path).splitlines(), delimiter="\t", quoting=csv.QUOTE_NONE)
    if rows.column not in (table.fieldnames or ()):
        found = ", ".join(table.fieldnames or ()) or "none"
        raise ReadError(f"found the columns {found}, expected '{rows.column}'", path=path, line=1)
    marks = [line[rows.column] == rows.equals for line in table]
    if len(marks) != len(sentences):
        raise ReadError(
            f"found {len(marks)} lines below the first, expected {len(sentences)}: "
            "one for each sentence of the files",
            path=path,
        )
    return compress(sentences, marks)
