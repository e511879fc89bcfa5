"""From an unknown folder to a manifest.

Settings are guessed (:mod:`spmrl_bench.treebanks.guess`), and everything is read with them: the
manifest that comes out declares the numbers that were found, so that it holds for exactly these
files. Recipes and parsers are not known here.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Any

from spmrl_bench.errors import ReadError, SpmrlError, TreebankError
from spmrl_bench.storage.digests import file_digest
from spmrl_bench.storage.files import write_text
from spmrl_bench.storage.paths import HOME_VARIABLE, check_name, data_dir, home, list_folder
from spmrl_bench.storage.toml import toml_text, validated
from spmrl_bench.treebanks import check
from spmrl_bench.treebanks.catalogue import manifest_names, read_manifest, treebanks_root
from spmrl_bench.treebanks.guess import Division, Source, divide, guess_sources, guess_transforms
from spmrl_bench.treebanks.manifest import SPLITS, Manifest, SplitName
from spmrl_bench.treebanks.patterns import find_files, some
from spmrl_bench.treebanks.reading import FirstLayer, read_layer, split_data
from spmrl_bench.treebanks.split_files import TreebankFiles
from spmrl_bench.trees.parse import Parse

_SHOWN = 20  # files of a split that a report names
_LISTED = 10  # files that a manifest lists by name where a pattern means the same
_PREDICTED = re.compile(r"(?<![a-z])pred(icted)?(?![a-z])")
_UNKNOWN = "unknown: fill in what the release says"


@dataclass
class NewTreebank:
    """What a folder was found to be."""

    name: str
    language: str
    folder: Path  # that was looked at, absolute
    source: Source  # this, `beside` and `others` as of `guess_sources`
    beside: Source | None
    others: Mapping[str, str]
    division: Division  # of the files among the splits
    ranges: dict[SplitName, tuple[int, int]]  # sentences, from 1, of splits with a part of files
    statistics: dict[str, check.TreebankStatistics] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)  # what else there is to say
    shared: list[check.Shared] = field(default_factory=list)  # this and the next of `find_overlaps`
    overlaps: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)  # of sentences that break the format
    manifest: str = ""  # the text of the file
    checksums: str = ""  # likewise

    @property
    def longest(self) -> int:
        return max(one.longest[0] for one in self.statistics.values())

    def files(self, split: SplitName) -> tuple[str, ...]:
        """The files that a split has, or has a part of."""
        return self.division.files["train" if split in self.division.cut else split]

    def report(self) -> str:
        """What was found: format, the files of each split and those of none, and the figures."""
        form, encoding = self.source.form, self.source.options.get("encoding")
        lines = [f"format: {form.name}, {form.title}{f', {encoding}' if encoding else ''}"]
        lines += [*self.notes, f"splits: {self.division.how}"]
        for split in SPLITS:
            cut = split in self.division.cut
            files = "the same files" if cut else some(self.division.files[split], most=_SHOWN)
            first, last = self.ranges.get(split, (0, 0))
            part = f", sentences {first} to {last}" if last else ""
            lines.append(f"  {split}: {files}{part}")
        passed_over = sorted({*self.others, *self.division.unused})
        lines.append(f"passed over: {some(passed_over, most=_SHOWN) or 'nothing'}")
        reasons = [f"  {name}: {why}" for name, why in self.others.items() if why]
        lines += [*reasons[:_SHOWN], ""]
        lines += [check.statistics_table(self.statistics), "", *check.inventories(self.statistics)]
        return "\n".join(lines + check.shared_note(self.shared))


def inspect_folder(
    folder: Path,
    *,
    language: str | None = None,
    name: str | None = None,
    format_name: str | None = None,
    encoding: str | None = None,
    given: Mapping[SplitName, Sequence[str]] | None = None,
    allow_shared: bool = False,
) -> NewTreebank:
    """Look at a folder, read everything in it, and make its manifest (as text).

    The ``language`` is the English name in small letters, else the folder's name; the ``name`` is
    else both, or the folder's alone. Format and encoding are guessed unless they are named. Files
    are ``given`` by split, as for :func:`~spmrl_bench.treebanks.guess.divide`. Raise a
    TreebankError if there is a treebank of that name, no file of a known format is there, the
    encoding has to be named, nothing tells which files are for what, or there are too few sentences
    for three splits; a ReadError if a file cannot be read at all.
    """
    folder = folder.absolute()
    slug = re.sub(r"[^a-z0-9]+", "-", folder.name.lower()).strip("-") or "treebank"
    if name is None:
        name = slug if language in (None, slug.partition("-")[0]) else f"{language}-{slug}"
    _refuse_taken(name)  # before everything is read
    source, beside, others = guess_sources(folder, format_name=format_name, encoding=encoding)
    division = divide(source.paths, given or {}, folder)
    ranges = _ranges(folder, source, division)
    found = NewTreebank(name, language or slug, folder, source, beside, others, division, ranges)
    content = _settings(found)
    files = TreebankFiles(validated(Manifest, content, f"{name}.toml", TreebankError), folder)
    layers: dict[SplitName, FirstLayer] = {}
    sentences: dict[str, Sequence[Parse]] = {}
    for split in SPLITS:
        layers[split], found.statistics[split] = check.read_and_count(files, split, found.errors)
        data = split_data(layers[split])
        if not data.sentences:
            because = f": {found.errors[0]}" if found.errors else ""
            raise TreebankError(f"{folder}: no sentence is left for {split}{because}")
        content["splits"][split] |= {key: number for key, number in data.counts.items() if number}
        sentences[split] = data.sentences
    found.errors = list(dict.fromkeys(found.errors))  # splits may share files
    found.shared, found.overlaps = check.find_overlaps(files, sentences)
    if found.overlaps and allow_shared:
        content["shared"] = "allowed"
        found.overlaps = []
    if found.errors:
        content["on_error"] = "skip"
    content |= _layer(found, content, layers)
    used = [*source.paths, *(beside.paths if "dependencies" in content and beside else ())]
    found.manifest = toml_text(content)
    found.checksums = "".join(f"{file_digest(folder / file)}  {file}\n" for file in sorted(used))
    return found


def write_new_treebank(
    found: NewTreebank, top: Path, beside: Mapping[Path, str] | None = None
) -> list[Path]:
    """Write manifest and checksums into ``top/treebanks``, and texts beside, replacing nothing.

    A folder that does not lie under the directory of treebanks is listed as one that may be read
    (:mod:`spmrl_bench.storage.paths`). Raise a TreebankError if there is a treebank of that name,
    or a file cannot be written.
    """
    _refuse_taken(found.name)
    manifest = top / "treebanks" / f"{found.name}.toml"
    checksums = manifest.parent / "checksums" / f"{found.name}.sha256"
    texts = {checksums: found.checksums, manifest: found.manifest, **(beside or {})}
    if existing := [str(path) for path in texts if path.exists()]:
        raise TreebankError(f"{', '.join(existing)}: there already; remove it or use --name")
    try:
        for path, text in texts.items():
            write_text(path, text)
    except OSError as error:
        raise TreebankError(f"{top}: cannot write: {error.strerror}") from error
    read_manifest(manifest)  # what was written is a manifest
    root = treebanks_root()
    if root is None or not found.folder.resolve().is_relative_to(root.resolve()):
        for place in {home(), top} - {data_dir("treebanks").parent}:  # the user has named it
            list_folder(found.folder, TreebankError, place)
    return list(texts)


def place_for_new() -> Path:
    """Return the user's own folder if it is named or the program is installed from a wheel, else
    the checkout."""
    checkout = data_dir("treebanks").parent
    own = os.environ.get(HOME_VARIABLE) or checkout.name == "_data"
    return home() if own else checkout


def _refuse_taken(name: str) -> None:
    try:
        check_name(name)
    except ValueError as error:
        raise TreebankError(f"--name '{name}': {error}") from None
    if name in manifest_names():
        raise TreebankError(f"there is a treebank '{name}' already: choose another name (--name)")


def _read(folder: Path, source: Source, paths: Sequence[str], most: int | None = None) -> list[Any]:
    """What the reader yields of some files, errors included."""
    found: list[Any] = []
    for path in paths:
        found += list(islice(source.read(folder / path, found.append), most))
    return found


def _ranges(folder: Path, source: Source, division: Division) -> dict[SplitName, tuple[int, int]]:
    """The parts of the training files that splits have, a tenth each for those cut."""
    if not division.cut:
        return {}
    count = len(_read(folder, source, division.files["train"]))
    tenth = max(1, count // 10)
    end = count - tenth * len(division.cut)
    if end < 1:
        cut = " and ".join(division.cut)
        raise TreebankError(f"found {count} sentences for train, too few to cut {cut} from")
    ranges: dict[SplitName, tuple[int, int]] = {"train": (1, end)}
    for split in division.cut:
        ranges[split] = (end + 1, end + tenth)
        end += tenth
    return ranges


def _settings(found: NewTreebank) -> dict[str, Any]:
    """The manifest's content; numbers of sentences are not known yet."""
    source, folder = found.source, found.folder
    root = treebanks_root()
    content: dict[str, Any] = {
        "name": found.name,
        "title": found.name,
        "language": found.language,
        "track": "open",
        "format": source.form.name,
        "path": str(folder.relative_to(root) if root and root in folder.parents else folder),
        **source.options,
    }
    if source.form.yields != "dependencies":
        sample = _read(folder, source, source.paths[:5], check.SAMPLE)
        trees = [tree for tree in sample if not isinstance(tree, ReadError)]
        content["transforms"] = guess_transforms(source.form, trees, markup=source.markup)
        if odd := check.leaf_problem(trees):
            raise TreebankError(f"{folder}: {odd}")
        content["prm"] = "COLLINS" if found.language == "english" else "spmrl"
    names = (f"{folder.name}/{path}".lower() for path in source.paths)
    content["tags"] = "predicted" if all(map(_PREDICTED.search, names)) else "gold"
    content |= dict.fromkeys(("licence", "citation", "source", "obtain"), _UNKNOWN)
    content["splits"] = {
        split: {"files": _patterns(folder, found.files(split))} for split in SPLITS
    }
    for split, (first, last) in found.ranges.items():
        content["splits"][split]["range"] = f"{first}..{last}"
    return content


def _patterns(folder: Path, paths: Sequence[str]) -> list[str]:
    """What a manifest calls some files: by name, or by patterns if these mean the same."""
    names = sorted(paths)
    stars = [path.parent / f"*{path.suffix}" for path in map(PurePosixPath, names)]
    patterns = sorted({star.as_posix() for star in stars})
    for files in [patterns, names] if len(names) > _LISTED else [names]:
        try:
            meant = find_files(folder, files).paths
        except (ValueError, NotImplementedError):  # no pattern at all
            continue
        if sorted(path.relative_to(folder).as_posix() for path in meant) == names:
            return files
    odd = next((name for name in names if set(name) & set("*{|")), names[0])
    raise TreebankError(f"{folder / odd}: '*', '{{' and '|' mean other files: rename it")


def _layer(
    found: NewTreebank, content: Mapping[str, Any], layers: Mapping[SplitName, FirstLayer]
) -> dict[str, Any]:
    """The dependencies beside the trees, if there are any and they have the same words."""
    if (beside := found.beside) is None:
        return {}
    alike = dict(zip(found.source.paths, beside.paths, strict=True))
    layer: dict[str, Any] = {"format": beside.form.name, **beside.options}
    for split in SPLITS:
        layer[split] = _patterns(found.folder, [alike[path] for path in found.files(split)])
    both = {**content, "dependencies": layer}
    files = TreebankFiles(validated(Manifest, both, found.name, TreebankError), found.folder)
    try:
        for split in SPLITS:
            read_layer(files, split, layers[split])
    except SpmrlError as error:
        found.notes.append(f"the {beside.form.name} files are not taken as a layer: {error}")
        return {}
    found.notes.append(f"dependencies of the same sentences: {beside.form.title}")
    return {"dependencies": layer}
