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
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from spmrl_bench.errors import TreebankError, unknown_name
from spmrl_bench.treebanks.files import files_digest, find_files, read_split, transform_tree
from spmrl_bench.treebanks.manifest import (
    SPLITS,
    FileManifest,
    Manifest,
    MiniManifest,
    load_manifest,
    manifest_names,
)
from spmrl_bench.treebanks.mini.generate import generate
from spmrl_bench.trees.brackets import write_brackets
from spmrl_bench.trees.tree import Tree

#: The environment variable that names the directory with treebanks.
ROOT_VARIABLE = "TREEBANKS"

#: Part of every fingerprint; raised when a reader or transform gives other trees than before.
_READING_VERSION = 1

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class TreebankStatus:
    """Whether a treebank can be used.

    Attributes:
        name, title, track, language: as in the manifest.
        present: all its files are there, or none are needed.
        where: the folder looked in, or why none was.
        sentences: declared number of sentences by split.
        missing: what was not found, as written in the manifest.
    """

    name: str
    title: str
    track: str
    language: str
    present: bool
    where: str
    sentences: dict[str, int]
    missing: tuple[str, ...]


class Treebank:
    """A treebank that is present; get one from :func:`open_treebank`.

    Splits are read when asked for and kept.
    """

    def __init__(self, manifest: Manifest, folder: Path | None) -> None:
        self.manifest = manifest
        self.name = manifest.name
        self.track = manifest.track
        self.language = manifest.language
        self._folder = folder
        self._splits: dict[str, list[Tree]] = {}
        self._dropped: dict[str, int] = {}

    def split(self, name: str) -> list[Tree]:
        """The trees of ``"train"``, ``"dev"`` or ``"test"`` after all transforms.

        Raises:
            TreebankError: no such split, or it is not as the manifest declares.
            ReadError: a file is malformed.
        """
        if name not in SPLITS:
            raise TreebankError(unknown_name("split", name, SPLITS))
        if name not in self._splits:
            self._read(name)
        return list(self._splits[name])

    def dropped(self, name: str) -> int:
        """How many sentences of a split a transform left without words."""
        self.split(name)
        return self._dropped[name]

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256, in hex, of what decides the trees.

        That is the content of the files, how they are divided, and the settings of the
        manifest that change trees; of a generated treebank, the trees themselves. Names and
        places of files do not matter.
        """
        fields = {"format", "encoding", "escapes", "transforms"}
        content: dict[str, object] = self.manifest.model_dump(include=fields)
        content["version"] = _READING_VERSION
        for name in SPLITS:
            if isinstance(self.manifest, MiniManifest):
                content[name] = _digest([write_brackets(tree) for tree in self.split(name)])
            else:
                split = getattr(self.manifest.splits, name)
                rows = split.rows.model_dump(exclude={"table"}) if split.rows else None
                content[name] = [rows, files_digest(self._present_folder(), split)]
        return _digest(content)

    def _read(self, name: str) -> None:
        if isinstance(self.manifest, MiniManifest):
            self._generate(self.manifest)
        else:
            split = getattr(self.manifest.splits, name)
            folder = self._present_folder()
            self._splits[name], self._dropped[name] = read_split(self.manifest, folder, name, split)
        if self._dropped[name]:
            _log.warning(
                "%s, split %s: %d sentence(s) without words left out",
                self.name,
                name,
                self._dropped[name],
            )

    def _generate(self, manifest: MiniManifest) -> None:
        """All splits at once, because no sentence may occur in two of them."""
        sizes: dict[str, int] = {name: getattr(manifest.splits, name).sentences for name in SPLITS}
        for name, trees in generate(manifest.grammar, sizes, manifest.seed).items():
            changed = [transform_tree(manifest.transforms, tree) for tree in trees]
            self._splits[name] = [tree for tree in changed if tree is not None]
            self._dropped[name] = len(changed) - len(self._splits[name])

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
    status = _status(manifest, root)
    if not status.present:
        raise TreebankError(_absent(manifest, status, root))
    return Treebank(manifest, _folder(manifest, root))


def treebank_status(root: str | os.PathLike[str] | None = None) -> list[TreebankStatus]:
    """The status of every treebank with a manifest, sorted by name.

    Raises:
        TreebankError: a manifest has mistakes.
    """
    return [_status(load_manifest(name), root) for name in manifest_names()]


def _root(root: str | os.PathLike[str] | None) -> Path | None:
    chosen = root if root is not None else os.environ.get(ROOT_VARIABLE) or None
    return Path(chosen).expanduser().absolute() if chosen is not None else None


def _folder(manifest: Manifest, root: str | os.PathLike[str] | None) -> Path | None:
    """The treebank's own folder; None if it needs none or no directory was named."""
    if isinstance(manifest, MiniManifest):
        return None
    base = _root(root)
    return base / manifest.path if base is not None else None


def _status(manifest: Manifest, root: str | os.PathLike[str] | None) -> TreebankStatus:
    splits = {name: getattr(manifest.splits, name) for name in SPLITS}
    missing: list[str] = []
    if isinstance(manifest, MiniManifest):
        where = "generated, needs no files"
    elif (folder := _folder(manifest, root)) is None:
        where = f"nowhere: the environment variable {ROOT_VARIABLE} is not set"
        missing = [f"{manifest.path}/"]
    else:
        where = str(folder)
        if folder.is_dir():
            for split in splits.values():
                missing += find_files(folder, split).missing
        else:
            missing = [f"{manifest.path}/"]
    return TreebankStatus(
        name=manifest.name,
        title=manifest.title,
        track=manifest.track,
        language=manifest.language,
        present=not missing,
        where=where,
        sentences={name: split.sentences for name, split in splits.items()},
        missing=tuple(dict.fromkeys(missing)),
    )


def _absent(manifest: Manifest, status: TreebankStatus, root: str | os.PathLike[str] | None) -> str:
    """What to tell a user who asked for a treebank that is not there."""
    shown = ", ".join(status.missing[:5])
    if len(status.missing) > 5:
        shown += f" and {len(status.missing) - 5} more"
    lines = [
        f"treebank {status.name} is not present",
        f"looked in: {status.where}",
        f"missing: {shown}",
    ]
    if not isinstance(manifest, MiniManifest):
        lines += [f"expected layout: {_layout(manifest)}", f"how to get it: {manifest.obtain}"]
        if _root(root) is None:
            lines.append(f"then set {ROOT_VARIABLE} to the directory that has {manifest.path}/")
    others = [
        other.name
        for other in treebank_status(root)
        if other.language == status.language and other.present
    ]
    lines.append(f"present for {status.language}: {', '.join(others) or 'none'}")
    return "\n  ".join(lines)


def _layout(manifest: FileManifest) -> str:
    splits = (manifest.splits.train, manifest.splits.dev, manifest.splits.test)
    files = dict.fromkeys(f"{manifest.path}/{name}" for split in splits for name in split.files)
    return ", ".join(files)


def _digest(content: object) -> str:
    """SHA-256 of a value's JSON form, in hex."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
