"""Treebanks by name: the manifests, their editions, and where the files of each should be.

A manifest lies beside the program or in the user's own folder. One release may be used in several
ways, with other tags or divided otherwise: each such edition is a table of keys that replace those
of the manifest, and a treebank of its own, ``NAME-EDITION``. A manifest with ``base = "NAME"``
replaces keys of another one likewise. What is wrong with one manifest hides no other treebank.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spmrl_bench.errors import TreebankError, unknown_name
from spmrl_bench.storage.digests import digest
from spmrl_bench.storage.files import read_bounded
from spmrl_bench.storage.paths import check_name, data_dir, data_dirs, path_fault, require_inside
from spmrl_bench.storage.toml import merged, read_toml, validated
from spmrl_bench.treebanks.manifest import SPLITS, Manifest
from spmrl_bench.treebanks.patterns import ALTERNATIVE, some, subfolders
from spmrl_bench.treebanks.split_files import TAGS_IN_NAMES, TreebankFiles
from spmrl_bench.trees.parse import Layer

#: The environment variable that names the directory with treebanks.
ROOT_VARIABLE = "TREEBANKS"

Root = str | os.PathLike[str] | None

_MOST_BASES = 8
_CHECKSUM = re.compile(r"([0-9a-f]{64}) [ *](\S.*)")


def manifest_names() -> list[str]:
    """Return the names of all treebanks that have a manifest, editions included, sorted.

    A broken file has no editions; it is an error when its treebank is asked for.
    """
    return list(_places())


def is_known(name: str) -> bool:
    """Return whether there is a manifest, or an edition of one, of that name."""
    return name in _places(name)


def language_of(name: str) -> str | None:
    """Return the language that a manifest gives, whatever else is wrong there, if any.

    A TreebankError says that its file, or that of its base, is no TOML.
    """
    found = _content(*_place_of(name)).get("language") if is_known(name) else None
    return found if isinstance(found, str) else None


def load_manifest(name: str) -> Manifest:
    """Return the manifest of a name; TreebankError if there is none, or it has mistakes."""
    return read_manifest(*_place_of(name))


def read_manifest(path: Path, edition: str | None = None) -> Manifest:
    """Return the manifest in ``NAME.toml``, or an edition of it.

    ``checksums/NAME.sha256`` beside it is read too, if it is there. A TreebankError names all
    mistakes.
    """
    content = _content(path, edition)
    place = f"{path}, edition {edition}" if edition is not None else str(path)
    name = path.stem if edition is None else f"{path.stem}-{edition}"
    also = []
    if isinstance(content.get("name"), str) and content["name"] != name:
        also = [f"name: must be {name!r}, as the file is called; found {content['name']!r}"]
        content["name"] = name  # it is said once
    declared = digest(content)
    manifest = validated(Manifest, content, place, TreebankError, also=also)
    manifest._origin = "" if path.parent == data_dir("treebanks") else str(path), declared
    return manifest


def _written(path: Path) -> dict[str, Any]:
    """The keys of a file with its checksums; a user's file over that of the program on which it
    stands under the same name (``base``)."""
    content = read_toml(path, TreebankError)
    checksums = path.parent / "checksums" / f"{path.stem}.sha256"
    if checksums.is_file():
        content["sha256"] = _read_checksums(checksums)
    shipped = data_dir("treebanks") / path.name
    if content.get("base") == path.stem and shipped != path and shipped.is_file():
        del content["base"]
        content = merged(_written(shipped), content)
    return content


def _content(path: Path, edition: str | None = None, above: int = 0) -> dict[str, Any]:
    """The keys of a manifest, over those of its base; ``above`` are how many stand on it."""
    content = _written(path)
    editions = content.pop("editions", {})
    if not isinstance(editions, dict) or not all(isinstance(e, dict) for e in editions.values()):
        raise TreebankError(f"{path}: editions: must be tables, [editions.NAME]")
    for one in editions:
        try:
            check_name(one)
        except ValueError as error:
            raise TreebankError(f"{path}: editions.{one}: {error}") from None
    if (base := content.pop("base", None)) is not None:
        if above == _MOST_BASES:
            raise TreebankError(
                f"{path}: base: more than {_MOST_BASES} manifests stand on each other, or in a "
                "circle"
            )
        below = _content(*_place_of(str(base), f"{path}: base: "), above + 1)
        content = merged(below, content)
    if edition is not None:
        name = f"{content.get('name', path.stem)}-{edition}"
        content = merged(content, editions[edition] | {"name": name})
    return content


def _place_of(name: str, where: str = "") -> tuple[Path, str | None]:
    places = _places(name)
    if name not in places:
        raise TreebankError(where + unknown_name("treebank", name, manifest_names()))
    return places[name]


def _places(wanted: str | None = None) -> dict[str, tuple[Path, str | None]]:
    """The file and the edition of every treebank, or of those that one can be, sorted by name. A
    user's own file stands in front of one of the program's."""
    places: dict[str, tuple[Path, str | None]] = {}
    for folder in reversed(data_dirs("treebanks")):
        for path in sorted(folder.glob("*.toml")):
            places.setdefault(path.stem, (path, None))
    for name, (path, _) in list(places.items()):
        if name == wanted or not (wanted or name).startswith(name):
            continue
        try:
            editions = _written(path).get("editions")
        except TreebankError:
            continue
        for edition in editions if isinstance(editions, dict) else ():
            places.setdefault(f"{name}-{edition}", (path, edition))
    return dict(sorted(places.items()))


def _read_checksums(path: Path) -> dict[str, str]:
    found = {}
    text = read_bounded(path, TreebankError).decode(errors="replace")
    for number, line in enumerate(text.splitlines(), start=1):
        match = _CHECKSUM.fullmatch(line)
        if match is None:
            raise TreebankError(
                f"{path}:{number}: found another line than 64 hex digits, two spaces and a path"
            )
        if (fault := path_fault(match[2])) is not None:
            raise TreebankError(
                f"{path}:{number}: the path {fault}; expected one under the treebank's folder; "
                f"found {match[2][:80]!r}"
            )
        found[match[2]] = match[1]
    return found


# ---- What is on this machine ----


@dataclass(frozen=True, slots=True)
class TreebankStatus:
    """Whether a treebank can be used."""

    manifest: Manifest  # of the treebank
    where: str  # the folder looked in, or why none was
    missing: tuple[str, ...]  # what was not found of its first layer, as written in the manifest
    layer_missing: tuple[str, ...]  # what was not found of a second layer
    files: TreebankFiles | None  # its files, if its folder is there

    @property
    def present(self) -> bool:
        """All files of its first layer are there."""
        return not self.missing

    @property
    def layers(self) -> tuple[Layer, ...]:
        """The layers of annotation that can be used; of an absent treebank, all."""
        return self.manifest.layers[: 1 if self.layer_missing else None]


def treebank_statuses(root: Root = None) -> tuple[list[TreebankStatus], list[TreebankError]]:
    """Return the status of every treebank, sorted by name, and what is wrong with others."""
    found, wrong = [], []
    for path, edition in _places().values():
        try:
            found.append(treebank_status(read_manifest(path, edition), root))
        except TreebankError as error:
            wrong.append(error)
    return found, wrong


def treebank_status(manifest: Manifest, root: Root = None) -> TreebankStatus:
    """Return whether a treebank can be used; TreebankError if its folder may not be read.

    ``root`` is the directory with treebanks; without it, the one that ``TREEBANKS`` names.
    """
    folder = _find_folder(manifest, root)
    files = None
    missing: tuple[str, ...] = (f"{_first(manifest.path)}/",)
    layer_missing: tuple[str, ...] = ()
    if folder is not None and folder.is_dir():
        layer = manifest.dependencies
        path = layer.path if layer else None
        beside = _find_folder(manifest, root, path) if path else folder
        files = TreebankFiles(manifest, folder, beside)
        missing = files.missing()
        if path and (beside is None or not beside.is_dir()):
            layer_missing = (f"{_first(path)}/",)
        elif layer is not None:
            layer_missing = files.missing("dependencies")
    unset = f"nowhere: set {ROOT_VARIABLE} (environment) to the directory with your treebanks"
    where = str(folder) if folder is not None else unset
    return TreebankStatus(manifest, where, missing, layer_missing, files)


def _find_folder(manifest: Manifest, root: Root, layer_path: str | None = None) -> Path | None:
    """The first of a manifest's folders, or of its second layer's, that has the files; else the
    first that exists, else the first; None if there is nowhere to look. The mini treebanks lie in
    the program's own folder, all others under the directory of treebanks, unless the path is
    absolute. What exists elsewhere, and is not listed by the user, is an error."""
    base, own = treebanks_root(root), data_dir("treebanks")
    if manifest.track == "mini" and (own / manifest.path).is_dir():
        base = own
    folders = [Path(base or "", name) for name in (layer_path or manifest.path).split(ALTERNATIVE)]
    if base is None:
        folders = [folder for folder in folders if folder.is_absolute()]
    existing = [folder for folder in folders if folder.is_dir()]
    layer: Layer | None = "dependencies" if layer_path is not None else None

    def complete(folder: Path) -> bool:
        return not TreebankFiles(manifest, folder).missing(layer)

    found = next(filter(complete, existing), None)
    if found is None and base not in (None, own):
        similar = _similar_folders(base, {folder.name for folder in folders})
        if existing:  # it may be in there once more, but no other stands for it
            similar = [folder for folder in similar if existing[0] in folder.parents]
        there = {os.path.realpath(folder): folder for folder in filter(complete, similar)}
        if len(there) > 1:
            raise TreebankError(
                f"treebank {manifest.name}: {some([*map(str, there.values())])} may each be it: "
                f"rename the one that is meant to {folders[0].name}"
            )
        existing = [*there.values(), *existing, *similar]
    if found := found or next(iter(existing), None):
        return require_inside(base, found, TreebankError)
    return folders[0] if folders else None


def _similar_folders(base: Path, names: Collection[str]) -> list[Path]:
    """The directory of treebanks itself, and those one or two folders below it, that have one of
    the names in any case, with something behind it perhaps (``GERMAN_SPMRL_2014``)."""
    called = re.compile(rf"({'|'.join(map(re.escape, names))})([\W_].*)?", re.IGNORECASE)
    deeper = [inner for folder in subfolders(base) for inner in subfolders(folder, called)]
    itself = [base] if called.fullmatch(base.name) else []
    return [*itself, *subfolders(base, called), *deeper]


def treebanks_root(root: Root = None) -> Path | None:
    """Return the directory with treebanks: the one given, else the one that ``TREEBANKS`` names."""
    chosen = root if root is not None else os.environ.get(ROOT_VARIABLE) or None
    return Path(chosen).expanduser().absolute() if chosen is not None else None


def missing_message(status: TreebankStatus, root: Root = None) -> str:
    """Return what to tell a user who asked for a treebank that is not there."""
    manifest = status.manifest
    folder = _first(manifest.path)
    files = [name for split in SPLITS for name in manifest.splits[split].files]
    tags = TAGS_IN_NAMES[manifest.tags]
    layout = dict.fromkeys(f"{folder}/{name.replace('{tags}', tags)}" for name in files)
    lines = [
        f"treebank {manifest.name} is not present",
        f"looked in: {status.where}",
        f"missing: {some(status.missing)}",
        f"expected layout: {', '.join(layout)}",
        f"how to get it: {manifest.obtain}",
    ]
    if manifest.fetch:
        lines.append(f"or: spmrl-bench treebanks fetch {manifest.name}")
    if treebanks_root(root) is None:
        lines.append(f"then set {ROOT_VARIABLE} to the directory that has {folder}/")
    return "\n  ".join(lines + _what_is_there(manifest.language, root))


def none_present_message(what: str, statuses: Sequence[TreebankStatus], root: Root = None) -> str:
    """Return what to tell a user of whose treebanks none is there."""
    lines = [f"no treebank of {what} is present"]
    for status in statuses:
        missing = f"looked in {status.where}; missing: {some(status.missing, most=3)}"
        lines.append(f"{status.manifest.name}: {missing}")
    return "\n  ".join(lines + _what_is_there(statuses[0].manifest.language, root))


def _what_is_there(language: str, root: Root) -> list[str]:
    manifests = [one.manifest for one in treebank_statuses(root)[0] if one.present]
    present = ", ".join(one.name for one in manifests if one.language == language)
    there = [f"present for {language}: {f'{present} (--treebank NAME)' if present else 'none'}"]
    if (base := treebanks_root(root)) is not None:
        found = some([f"{folder.name}/" for folder in subfolders(base)]) or "no folder"
        copy = "a copy with other names takes three lines: docs/treebanks.md"
        there = [f"found in {base}: {found}", copy, *there]
    return there


def _first(alternatives: str) -> str:
    return alternatives.split(ALTERNATIVE)[0]
