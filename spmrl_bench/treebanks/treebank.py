"""Treebanks by name: is it here, what are its trees, and which trees exactly.

Some treebanks are generated, some are open, some are licensed and brought by the user; a
caller should not care. :func:`open_treebank` gives any of them behind one interface or says
what is missing and where to get it. The fingerprint stands for the exact trees, so that a
score can be traced to them and is never compared with one on other trees.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
from functools import cached_property
from pathlib import Path
from typing import Any

from spmrl_bench.errors import TreebankError, unknown_name
from spmrl_bench.treebanks.cache import cached
from spmrl_bench.treebanks.catalogue import load_manifest
from spmrl_bench.treebanks.checksums import verified_digests
from spmrl_bench.treebanks.manifest import SPLITS, FileManifest, Manifest, MiniManifest
from spmrl_bench.treebanks.mini.generate import generate, grammar_digest
from spmrl_bench.treebanks.patterns import find_files
from spmrl_bench.treebanks.presence import absence, find_folder, status_of
from spmrl_bench.treebanks.reading import (
    SplitContent,
    alignment_mistake,
    count_mistakes,
    layer_files,
    read_layer,
    read_split,
    side_files,
    split_files,
    transform_tree,
)
from spmrl_bench.trees.brackets import write_brackets
from spmrl_bench.trees.dependencies import DependencyTree
from spmrl_bench.trees.tree import Tree

#: Part of every fingerprint; raised when a reader or transform gives other trees than before.
_READING_VERSION = 1

_log = logging.getLogger(__name__)


class Treebank:
    """A treebank that is present; get one from :func:`open_treebank`.

    Splits are read when asked for and kept, also for the next process (see
    :mod:`spmrl_bench.treebanks.cache`).
    """

    def __init__(
        self, manifest: Manifest, folder: Path | None = None, layer_folder: Path | None = None
    ) -> None:
        self.manifest = manifest
        self.name = manifest.name
        self.track = manifest.track
        self.language = manifest.language
        self._folder = folder
        self._layer_folder = layer_folder or folder
        self._contents: dict[str, SplitContent] = {}
        self._layers: dict[str, list[DependencyTree]] = {}
        self._digests: dict[str, list[str]] = {}
        self._made: dict[str, SplitContent] = {}

    def __getstate__(self) -> dict[str, Any]:
        """What another process is sent: it reads the sentences anew, from the cache."""
        return self.__dict__ | {"_contents": {}, "_layers": {}, "_made": {}}

    def split(self, name: str) -> list[Tree]:
        """The trees of ``"train"``, ``"dev"`` or ``"test"`` after all transforms.

        Raises:
            TreebankError: no such split, it is not as the manifest declares, or the treebank
                has dependencies only.
            ReadError: a file is malformed.
        """
        _ = self.prm  # raises where there are no constituents
        return list(self.content(name).sentences)  # type: ignore[arg-type]

    def dependencies(self, name: str) -> list[DependencyTree]:
        """The dependency trees of a split; of a treebank with trees, its second layer.

        Raises:
            TreebankError: no such split, it is not as the manifest declares, the treebank has no
                dependencies, or their words are not those of the trees.
            ReadError: a file is malformed.
        """
        if not self.has_trees:
            return list(self.content(name).sentences)  # type: ignore[arg-type]
        if not isinstance(self.manifest, FileManifest) or self.manifest.dependencies is None:
            raise TreebankError(f"treebank {self.name} has no dependencies, only constituents")
        if name not in self._layers:
            trees, folder = self.split(name), self._layer_folder
            if folder is None:
                raise ValueError(f"{self.name} is read from files and needs a folder")
            files = layer_files(self.manifest, folder, name)
            if files.missing:
                raise TreebankError(
                    f"the dependencies of {self.name} are not present: "
                    f"{', '.join(files.missing[:5])} in {folder}"
                )
            verified_digests(self.manifest, folder, files.paths)
            layer = read_layer(self.manifest, folder, name)
            mistake = alignment_mistake(trees, layer)
            if mistake is not None:
                raise TreebankError(
                    f"{self.name}, split {name}: the trees and the dependencies differ: {mistake}"
                )
            self._layers[name] = layer
        return list(self._layers[name])

    @property
    def has_trees(self) -> bool:
        """Whether it has constituents."""
        return self.manifest.prm is not None

    @property
    def prm(self) -> str:
        """The evalb parameter set of its scores.

        Raises:
            TreebankError: the treebank has dependencies only.
        """
        if self.manifest.prm is None:
            raise TreebankError(
                f"treebank {self.name} has dependencies only, no constituents: it cannot train or "
                "score a constituency parser"
            )
        return self.manifest.prm

    def dropped(self, name: str) -> int:
        """How many sentences of a split a transform left without words."""
        return self.content(name).dropped

    def skipped(self, name: str) -> tuple[str, ...]:
        """The errors of the sentences of a split that break the format and were left out."""
        return self.content(name).skipped

    def content(self, name: str) -> SplitContent:
        """All that reading a split gave.

        Raises:
            TreebankError: no such split, or it is not as the manifest declares.
            ReadError: a file is malformed.
        """
        if name not in SPLITS:
            raise TreebankError(unknown_name("split", name, SPLITS))
        if name not in self._contents:
            self._contents[name] = self._read(name)
            for what, number in (
                ("without words", self._contents[name].dropped),
                ("that break the format", len(self._contents[name].skipped)),
            ):
                if number:
                    _log.warning(
                        "%s, split %s: %d sentence(s) %s left out", self.name, name, number, what
                    )
        return self._contents[name]

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256, in hex, of what decides the trees.

        That is the content of the files, how they are divided, and the settings of the
        manifest that change trees; of a generated treebank, the trees themselves. Names and
        places of files do not matter.
        """
        content: dict[str, object] = self._settings() | {"version": _READING_VERSION}
        for name in SPLITS:
            if isinstance(self.manifest, MiniManifest):
                content[name] = _digest([write_brackets(tree) for tree in self.split(name)])
            else:
                content[name] = self._division(self.manifest, name)
        return _digest(content)

    def _read(self, name: str) -> SplitContent:
        manifest = self.manifest
        if isinstance(manifest, MiniManifest):
            return cached(
                f"{self.name}-{name}",
                self._settings()
                | {
                    "split": name,
                    "grammar": grammar_digest(manifest.grammar),
                    "seed": manifest.seed,
                    "splits": manifest.splits.model_dump(),
                },
                lambda: self._generated(manifest)[name],
            )
        split = getattr(manifest.splits, name)
        folder = self._present_folder()
        key = self._settings() | {"content": self._division(manifest, name)}
        content = cached(f"{self.name}-{name}", key, lambda: read_split(manifest, folder, split))
        wrong = count_mistakes(content, split)
        if wrong:
            note = f" ({content.dropped} without words left out)" if content.dropped else ""
            raise TreebankError(
                f"{manifest.name}, split {name} in {folder}: {'; '.join(wrong)}{note}. "
                "The files are not those that the manifest describes: is it another release, or "
                f"cut? 'spmrl-bench validate {manifest.name}' lists all that differs"
            )
        return content

    def _settings(self) -> dict[str, Any]:
        """The settings of the manifest that change trees."""
        settings: dict[str, Any] = {
            "format": self.manifest.format,
            "transforms": self.manifest.transforms,
        }
        if isinstance(self.manifest, FileManifest):
            settings |= self.manifest.options
            if self.manifest.on_error != "fail":
                settings["on_error"] = self.manifest.on_error
        return settings

    def _division(self, manifest: FileManifest, name: str) -> list[object]:
        """What is read for a split: which of the sentences of which bytes."""
        split = getattr(manifest.splits, name)
        folder = self._present_folder()
        if name not in self._digests:
            paths = [*split_files(manifest, folder, split).paths, *side_files(folder, split)]
            self._digests[name] = verified_digests(manifest, folder, paths)
        rows = split.rows.model_dump(exclude={"table"}) if split.rows else None
        division: list[object] = [rows, self._digests[name]]
        if split.range is not None:
            division.append(split.range)
        if split.tag_files is not None:
            division.append({"tag_files": len(find_files(folder, split.tag_files).paths)})
        return division

    def _generated(self, manifest: MiniManifest) -> dict[str, SplitContent]:
        """All splits at once, because no sentence may occur in two of them."""
        if not self._made:
            sizes: dict[str, int] = {
                name: getattr(manifest.splits, name).sentences for name in SPLITS
            }
            for name, parses in generate(manifest.grammar, sizes, manifest.seed).items():
                trees = [parse.tree for parse in parses if parse.tree is not None]
                changed = [transform_tree(manifest.transforms, tree) for tree in trees]
                kept = [tree for tree in changed if tree is not None]
                self._made[name] = SplitContent(kept, len(changed) - len(kept), ())
        return self._made

    def _present_folder(self) -> Path:
        if self._folder is None:
            raise ValueError(f"{self.name} is read from files and needs a folder")
        return self._folder


def open_treebank(name: str, root: str | os.PathLike[str] | None = None) -> Treebank:
    """The treebank of a name.

    Args:
        name: of a manifest, such as ``german-squoia``.
        root: the directory with treebanks; without it, the one that the environment variable
            ``TREEBANKS`` names. Generated treebanks need none.

    Raises:
        TreebankError: the name is unknown, the manifest has mistakes, or files are missing;
            the message says where they were looked for and what else there is.
    """
    manifest = load_manifest(name)
    if isinstance(manifest, MiniManifest):
        return Treebank(manifest)
    if not status_of(manifest, root).present:
        raise TreebankError(absence(manifest, root))
    layer = manifest.dependencies
    other = find_folder(layer.path, root) if layer is not None and layer.path else None
    return Treebank(manifest, find_folder(manifest.path, root), other)


def _digest(content: object) -> str:
    """SHA-256 of a value's JSON form, in hex."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
