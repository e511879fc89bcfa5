"""Is a treebank here, where was it looked for, and how does one get it?"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from spmrl_bench.errors import TreebankError
from spmrl_bench.storage.paths import require_inside
from spmrl_bench.treebanks.catalogue import load_manifest, manifest_names
from spmrl_bench.treebanks.manifest import FileManifest, Manifest, MiniManifest
from spmrl_bench.treebanks.patterns import ALTERNATIVE
from spmrl_bench.treebanks.reading import layer_files
from spmrl_bench.treebanks.sources import SPLITS
from spmrl_bench.treebanks.split_files import split_files
from spmrl_bench.trees.parse import Layer

#: The environment variable that names the directory with treebanks.
ROOT_VARIABLE = "TREEBANKS"

Root = str | os.PathLike[str] | None


@dataclass(frozen=True, slots=True)
class TreebankStatus:
    """Whether a treebank can be used.

    Attributes:
        name, track, language: as in the manifest.
        present: all its files are there, or none are needed.
        where: the folder looked in, or why none was.
        sentences: declared number of sentences by split; None where none is.
        missing: what was not found, as written in the manifest.
        layers: the layers of annotation that can be used; of an absent treebank, all.
        layer_missing: what was not found of a second layer.
    """

    name: str
    track: str
    language: str
    present: bool
    where: str
    sentences: dict[str, int | None]
    missing: tuple[str, ...]
    layers: tuple[Layer, ...]
    layer_missing: tuple[str, ...]


def treebank_statuses(root: Root = None) -> tuple[list[TreebankStatus], list[TreebankError]]:
    """The status of every treebank with a manifest, sorted by name, and what is wrong with others.

    One manifest with mistakes hides no other treebank.
    """
    found, wrong = [], []
    for name in manifest_names():
        try:
            found.append(status_of(load_manifest(name), root))
        except TreebankError as error:
            wrong.append(error)
    return found, wrong


def find_folder(path: str, root: Root = None) -> Path | None:
    """The first of a manifest's folders that exists, else the first.

    Args:
        path: folders under the directory of treebanks, as in a manifest: ``"A | B"``. An absolute
            path needs no such directory.
        root: that directory; without it, the one that ``TREEBANKS`` names. None if there is none.

    Raises:
        TreebankError: what exists lies elsewhere, and the user has not listed it; see
            :mod:`spmrl_bench.storage.paths`.
    """
    base = treebanks_root(root)
    names = [Path(name) for name in path.split(ALTERNATIVE)]
    folders = [base / name if base is not None else name for name in names]
    if base is None:
        folders = [folder for folder in folders if folder.is_absolute()]
    if not folders:
        return None
    found = next((folder for folder in folders if folder.is_dir()), None)
    if found is None:
        return folders[0]
    return require_inside(base, found, TreebankError)


def treebanks_root(root: Root = None) -> Path | None:
    """The directory with treebanks: the one given, else the one that ``TREEBANKS`` names."""
    chosen = root if root is not None else os.environ.get(ROOT_VARIABLE) or None
    return Path(chosen).expanduser().absolute() if chosen is not None else None


def status_of(manifest: Manifest, root: Root = None) -> TreebankStatus:
    """Whether the treebank of a manifest can be used."""
    missing: list[str] = []
    layer_missing: list[str] = []
    sizes: dict[str, int | None]
    if isinstance(manifest, MiniManifest):
        where = "generated, needs no files"
        sizes = {name: manifest.splits[name].sentences for name in SPLITS}
    else:
        declared = {name: manifest.splits[name].sentences for name in SPLITS}
        sizes = {name: None if counts is None else counts[0] for name, counts in declared.items()}
        folder = find_folder(manifest.path, root)
        unset = f"nowhere: the environment variable {ROOT_VARIABLE} is not set"
        where = str(folder) if folder is not None else unset
        if folder is None or not folder.is_dir():
            missing = [f"{_first(manifest.path)}/"]
        else:
            for name in SPLITS:
                missing += split_files(manifest, folder, manifest.splits[name]).missing
            layer_missing = _layer_missing(manifest, root)
    return TreebankStatus(
        name=manifest.name,
        track=manifest.track,
        language=manifest.language,
        present=not missing,
        where=where,
        sentences=sizes,
        missing=tuple(dict.fromkeys(missing)),
        layers=manifest.layers[: 1 if layer_missing else None],
        layer_missing=tuple(dict.fromkeys(layer_missing)),
    )


def _layer_missing(manifest: FileManifest, root: Root) -> list[str]:
    """What is not there of a second layer, if the manifest has one."""
    if manifest.dependencies is None:
        return []
    path = manifest.dependencies.path or manifest.path
    folder = find_folder(path, root)
    if folder is None or not folder.is_dir():
        return [f"{_first(path)}/"]
    return [text for name in SPLITS for text in layer_files(manifest, folder, name).missing]


def absence(manifest: FileManifest, root: Root = None) -> str:
    """What to tell a user who asked for a treebank that is not there."""
    status = status_of(manifest, root)
    shown = ", ".join(status.missing[:5])
    if len(status.missing) > 5:
        shown += f" and {len(status.missing) - 5} more"
    folder = _first(manifest.path)
    layout = dict.fromkeys(
        f"{folder}/{name}" for split in SPLITS for name in manifest.splits[split].files
    )
    lines = [
        f"treebank {status.name} is not present",
        f"looked in: {status.where}",
        f"missing: {shown}",
        f"expected layout: {', '.join(layout)}",
        f"how to get it: {manifest.obtain}",
    ]
    if manifest.fetch:
        lines.append(f"or: spmrl-bench treebanks fetch {manifest.name}")
    if treebanks_root(root) is None:
        lines.append(f"then set {ROOT_VARIABLE} to the directory that has {folder}/")
    others = [
        other.name
        for other in treebank_statuses(root)[0]
        if other.language == status.language and other.present
    ]
    lines.append(f"present for {status.language}: {', '.join(others) or 'none'}")
    return "\n  ".join(lines)


def _first(alternatives: str) -> str:
    return alternatives.split(ALTERNATIVE)[0]
