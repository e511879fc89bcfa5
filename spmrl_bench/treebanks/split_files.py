"""Which files a treebank has on this machine, and are they those that its manifest is about?

The hash of every file is part of the key under which its sentences are kept, so comparing it with
the recorded one costs nothing: a treebank is checked each time it is opened.

A sentence that lies in two splits because they have one file, by its name or its content, or ranges
that overlap, is a mistake that is found here, without reading any sentence.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import combinations
from pathlib import Path

from spmrl_bench.errors import ReadError, TreebankError
from spmrl_bench.storage.digests import file_digest, file_state
from spmrl_bench.storage.files import open_unpacked
from spmrl_bench.treebanks.manifest import SPLITS, DependencyLayer, Manifest, SplitName
from spmrl_bench.treebanks.patterns import ALTERNATIVE, MatchedFiles, find_files, some
from spmrl_bench.trees.parse import Layer

#: What to write into a manifest whose splits are to have the same sentences.
ALLOW_SHARED = 'If it is meant to be so, write shared = "allowed" into the manifest'
_EMPTY = hashlib.sha256().hexdigest()
#: What ``{tags}`` stands for in the patterns of a manifest.
TAGS_IN_NAMES = {"gold": "gold", "predicted": "pred", "none": "gold"}


class TreebankFiles:
    """The files that a manifest means in a folder, its dependency layer's in another or the same.

    Each pattern is looked up once, and each file hashed once.
    """

    def __init__(self, manifest: Manifest, folder: Path, layer_folder: Path | None = None) -> None:
        self.manifest = manifest
        self.folder = folder
        self.layer_folder = layer_folder or folder
        self._matches: dict[tuple[SplitName, Layer], MatchedFiles] = {}
        self._hashes: dict[tuple[SplitName, Layer], list[tuple[str, str]]] = {}

    def of(self, split: SplitName, layer: Layer | None = None) -> MatchedFiles:
        """Return the files of a split, in reading order; among the missing ones also its table.

        They are those of the first layer if none is named. A TreebankError says that the manifest
        has no such layer.
        """
        key = split, layer or self.manifest.layers[0]
        if key not in self._matches:
            chosen = self.manifest.splits[split]
            files, exclude = chosen.files, chosen.exclude
            if key[1] != self.manifest.layers[0]:
                files, exclude = dependency_layer(self.manifest).files(split, chosen)
            tags = TAGS_IN_NAMES[self.manifest.tags]
            found = find_files(self._folder_of(key[1]), files, exclude=exclude, tags=tags)
            if (table := self._table(*key)) is not None and not (self.folder / table).is_file():
                found = found._replace(missing=(*found.missing, table))
            self._matches[key] = found
        return self._matches[key]

    def _table(self, split: SplitName, layer: Layer) -> str | None:
        rows = self.manifest.splits[split].rows
        return rows.table if rows is not None and layer == self.manifest.layers[0] else None

    def missing(self, layer: Layer | None = None) -> tuple[str, ...]:
        """Return what of a layer's files is not there, as the manifest writes it."""
        return tuple(
            dict.fromkeys(text for split in SPLITS for text in self.of(split, layer).missing)
        )

    def digests(self, split: SplitName, layer: Layer) -> list[str]:
        """Return the SHA-256 of each file of a split, its table last. Raise a ReadError if a file
        cannot be read, a TreebankError if it is not the recorded one."""
        if changed := self.changed(split, layer):
            raise TreebankError(
                f"{self.manifest.name}: not the files that the manifest was written for (their "
                f"SHA-256 differs): {some(changed)} in {self._folder_of(layer)}. "
                f"Get them again: {self.manifest.obtain}"
            )
        return [digest for _, digest in self._hashed(split, layer)]

    def by_content(self, split: SplitName) -> dict[str, str]:
        """Return the names of the files of a split's first layer by their SHA-256, in reading
        order; without empty ones."""
        first = self.manifest.layers[0]
        hashed = self._hashed(split, first)[: len(self.of(split).paths)]
        return {digest: name for name, digest in hashed if digest != _EMPTY}

    def changed(self, split: SplitName, layer: Layer) -> list[str]:
        """Return the files, by path under the folder, that are not the recorded ones."""
        return [
            name
            for name, digest in self._hashed(split, layer)
            if self.manifest.sha256.get(name.removesuffix(".gz"), digest) != digest
        ]

    def _hashed(self, split: SplitName, layer: Layer) -> list[tuple[str, str]]:
        if (split, layer) not in self._hashes:
            folder, table = self._folder_of(layer), self._table(split, layer)
            names = [path.relative_to(folder).as_posix() for path in self.of(split, layer).paths]
            names += [table] if table is not None else []
            try:
                self._hashes[split, layer] = [
                    (name, file_digest(folder / name, unpacked=True)) for name in names
                ]
            except OSError as error:
                raise ReadError(f"cannot be read: {error.strerror}", path=error.filename) from error
        return self._hashes[split, layer]

    @contextmanager
    def held(self, split: SplitName, layer: Layer) -> Iterator[None]:
        """Read the files of a split inside; a TreebankError if what was read is not what was hashed
        (:meth:`digests`), by which the sentences are known."""
        folder, hashed = self._folder_of(layer), self._hashed(split, layer)
        states = [file_state(folder / name) for name, _ in hashed]
        yield
        for (name, digest), state in zip(hashed, states, strict=True):
            path = folder / name
            if file_state(path) != state or file_digest(path, unpacked=True) != digest:
                raise TreebankError(
                    f"{self.manifest.name}: {path} has been changed since this command began; "
                    "nothing is known by what it holds now: give the command again"
                )

    def _folder_of(self, layer: Layer) -> Path:
        return self.folder if layer == self.manifest.layers[0] else self.layer_folder


def dependency_layer(manifest: Manifest) -> DependencyLayer:
    """Return the dependency layer beside the trees of a manifest; TreebankError without one."""
    if manifest.dependencies is None:
        raise TreebankError(f"treebank {manifest.name} has no dependencies, only constituents")
    return manifest.dependencies


def common_encoding(paths: Sequence[Path], names: str) -> str:
    """Return the first of some encodings (``"utf-8 | gb18030"``) that all files decode in.

    It is the last if none fits, or a file cannot be read: the reader then says what is wrong.
    """
    *tried, last = names.split(ALTERNATIVE)
    for name in tried:
        try:
            for path in paths:
                with open_unpacked(path) as file:
                    file.read().decode(name)
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
    contents = {name: files.by_content(name) for name in SPLITS}
    for one, other in combinations(SPLITS, 2):
        first, second = files.manifest.splits[one], files.manifest.splits[other]
        both = [content for content in contents[one] if content in contents[other]]
        if len(both) < min(len(contents[one]), len(contents[other])):
            # A short article may have come out twice; a path in two splits is a mistake.
            both = [both for both in both if contents[one][both] == contents[other][both]]
        if not both or first.rows is not None or second.rows is not None:
            continue
        file, again = (contents[name][both[0]] for name in (one, other))
        if again != file:
            file += f" (in {other} it is {again})"
        if len(both) > 1:
            file += f" and {len(both) - 1} other file{'s' if len(both) > 2 else ''}"
        if first.range is None and second.range is None:
            mistakes.append(f"{one} and {other} both have {file}")
        elif [*contents[one]] == [*contents[other]]:
            start = max(first.numbers[0], second.numbers[0])
            end = min(first.numbers[1], second.numbers[1])
            if start <= end:
                last = "the last" if end == sys.maxsize else end
                mistakes.append(
                    f"{one} and {other} both have sentences {start} to {last} of {file}"
                )
        elif first.range is None or second.range is None:
            whole, part = (one, other) if first.range is None else (other, one)
            mistakes.append(f"{whole} has all of {file}, of which {part} has a range")
    return [f"{mistake}. {ALLOW_SHARED}" for mistake in mistakes]
