"""Which files a treebank has on this machine, and are they those that its manifest is about?

Every pattern of the manifest is looked up once, however often its files are asked for. The hash of
every file is needed anyway, as part of the key under which its sentences are kept, so comparing it
with the one that was recorded costs nothing: a treebank is checked each time it is opened.

A sentence that lies in two splits by its place, because their files or ranges overlap, is a mistake
of the manifest that is found here, without reading anything.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path

from spmrl_bench.errors import ReadError, TreebankError
from spmrl_bench.treebanks.manifest import SPLITS, DependencyLayer, Manifest, SplitName
from spmrl_bench.treebanks.patterns import ALTERNATIVE, MatchedFiles, check_range, find_files
from spmrl_bench.trees.parse import Layer

#: What to write into a manifest whose splits are to have the same sentences.
ALLOW_SHARED = 'If it is meant to be so, write shared = "allowed" into the manifest'
#: What ``{tags}`` stands for in the patterns of a manifest.
_TAGS_IN_NAMES = {"gold": "gold", "predicted": "pred", "none": "gold"}


class TreebankFiles:
    """The files of a treebank.

    Attributes:
        manifest: that names them.
        folder: they lie in.
        layer_folder: the files of its dependency layer lie in.
    """

    def __init__(self, manifest: Manifest, folder: Path, layer_folder: Path | None = None) -> None:
        self.manifest = manifest
        self.folder = folder
        self.layer_folder = layer_folder or folder
        self._matches: dict[tuple[SplitName, Layer], MatchedFiles] = {}
        self._hashes: dict[tuple[SplitName, Layer], list[tuple[str, str]]] = {}

    def of(self, split: SplitName, layer: Layer | None = None) -> MatchedFiles:
        """Return the files of a split, in reading order; among the missing ones also its table.

        Args:
            split: its name.
            layer: of the treebank; its first one without it.

        Raises:
            TreebankError: the manifest has no such layer.
        """
        first = self.manifest.layers[0]
        key = split, layer or first
        if key not in self._matches:
            chosen, tags = self.manifest.splits[split], _TAGS_IN_NAMES[self.manifest.tags]
            if key[1] == first:
                found = find_files(self.folder, chosen.files, exclude=chosen.exclude, tags=tags)
                table = self.table_of(split)
                if table is not None and chosen.rows is not None and not table.is_file():
                    found = MatchedFiles(found.paths, (*found.missing, chosen.rows.table))
            else:
                files, exclude = dependency_layer(self.manifest).files(split, chosen)
                found = find_files(self.layer_folder, files, exclude=exclude, tags=tags)
            self._matches[key] = found
        return self._matches[key]

    def table_of(self, split: SplitName) -> Path | None:
        """Return the table that marks the sentences of a split, if it has one."""
        rows = self.manifest.splits[split].rows
        return self.folder / rows.table if rows is not None else None

    def missing(self, layer: Layer | None = None) -> tuple[str, ...]:
        """Return what of a layer's files is not there, as the manifest writes it."""
        return tuple(
            dict.fromkeys(text for split in SPLITS for text in self.of(split, layer).missing)
        )

    def digests(self, split: SplitName, layer: Layer) -> list[str]:
        """Return the SHA-256 of each file of a split and its table; all are the recorded ones.

        Raises:
            ReadError: a file cannot be read.
            TreebankError: a file is not the recorded one.
        """
        if changed := self.changed(split, layer):
            more = f" and {len(changed) - 3} more" if len(changed) > 3 else ""
            raise TreebankError(
                f"{self.manifest.name}: not the files that the manifest was written for (their "
                f"SHA-256 differs): {', '.join(changed[:3])}{more} in {self._folder_of(layer)}. "
                f"Get them again: {self.manifest.obtain}"
            )
        return [digest for _, digest in self._hashed(split, layer)]

    def changed(self, split: SplitName, layer: Layer) -> list[str]:
        """Return the paths, under the folder, of the files that are not the recorded ones.

        Raises:
            ReadError: a file cannot be read.
        """
        recorded = self.manifest.sha256
        files = self._hashed(split, layer)
        return [name for name, digest in files if recorded.get(name, digest) != digest]

    def _hashed(self, split: SplitName, layer: Layer) -> list[tuple[str, str]]:
        if (split, layer) not in self._hashes:
            paths, folder = [*self.of(split, layer).paths], self._folder_of(layer)
            table = self.table_of(split)
            if table is not None and layer == self.manifest.layers[0]:
                paths.append(table)
            self._hashes[split, layer] = [
                (path.relative_to(folder).as_posix(), file_digest(path)) for path in paths
            ]
        return self._hashes[split, layer]

    def _folder_of(self, layer: Layer) -> Path:
        return self.folder if layer == self.manifest.layers[0] else self.layer_folder


def dependency_layer(manifest: Manifest) -> DependencyLayer:
    """Return the dependency layer beside the trees of a manifest.

    Raises:
        TreebankError: the manifest has no such layer.
    """
    if manifest.dependencies is None:
        raise TreebankError(f"treebank {manifest.name} has no dependencies, only constituents")
    return manifest.dependencies


def file_digest(path: Path) -> str:
    """Return SHA-256 of a file, in hex.

    Raises:
        ReadError: it cannot be read.
    """
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise ReadError(f"cannot be read: {error.strerror}", path=path) from error


def common_encoding(paths: Sequence[Path], names: str) -> str:
    """Return the first of some encodings (``"utf-8 | gb18030"``) that all files decode in.

    That is the last one if none fits. A file that cannot be read decodes in none; whoever reads it
    says so.
    """
    *tried, last = names.split(ALTERNATIVE)
    for name in tried:
        try:
            for path in paths:
                path.read_bytes().decode(name)
        except (OSError, UnicodeDecodeError):
            continue
        return name
    return last


def same_places(files: TreebankFiles) -> list[str]:
    """Return in words where files or ranges give a sentence to two splits.

    Nothing is said where the manifest allows it, of splits that choose by a table, and of ranges of
    different lists of files.
    """
    if files.manifest.shared == "allowed":
        return []
    mistakes = []
    paths = {name: files.of(name).paths for name in SPLITS}
    members = {name: set(paths[name]) for name in SPLITS}
    for one, other in combinations(SPLITS, 2):
        first, second = files.manifest.splits[one], files.manifest.splits[other]
        both = [path for path in paths[one] if path in members[other]]
        if not both or first.rows is not None or second.rows is not None:
            continue
        file = both[0].relative_to(files.folder).as_posix()
        if len(both) > 1:
            file += f" and {len(both) - 1} other file{'s' if len(both) > 2 else ''}"
        mistake = ""
        if first.range is None and second.range is None:
            mistake = f"{one} and {other} both have {file}"
        elif paths[one] == paths[other]:
            start, end = _common_range(first.range, second.range)
            if end is None or start <= end:
                last = "the last" if end is None else f"{end}"
                mistake = f"{one} and {other} both have sentences {start} to {last} of {file}"
        elif first.range is None or second.range is None:
            whole, part = (one, other) if first.range is None else (other, one)
            mistake = f"{whole} has all of {file}, of which {part} has a range"
        if mistake:
            mistakes.append(f"{mistake}. {ALLOW_SHARED}")
    return mistakes


def _common_range(one: str | None, other: str | None) -> tuple[int, int | None]:
    """What two ranges have in common; its end lies before its start if that is nothing."""
    ranges = [(1, None) if text is None else check_range(text) for text in (one, other)]
    ends = [end for _, end in ranges if end is not None]
    return max(start for start, _ in ranges), min(ends) if ends else None
