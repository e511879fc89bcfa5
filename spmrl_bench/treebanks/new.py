"""From an unknown folder to a manifest and a recipe.

The folder is looked at, its settings are guessed, and everything is read with them: the
manifest that comes out declares the numbers that were found, so that it holds for exactly
these files.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import partial
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Any

from spmrl_bench.errors import ReadError, TreebankError
from spmrl_bench.files import write_text
from spmrl_bench.storage.paths import check_name, data_dir, home, list_folder
from spmrl_bench.storage.toml import toml_text, validated
from spmrl_bench.treebanks.catalogue import manifest_names, read_manifest, treebanks_root
from spmrl_bench.treebanks.check import (
    TreebankStatistics,
    many_shared,
    read_with_statistics,
    shared_sentences,
)
from spmrl_bench.treebanks.files import TreebankFiles, file_digest, same_places
from spmrl_bench.treebanks.guessing import (
    GuessedFiles,
    guess_files,
    guess_lists,
    guess_options,
    guess_transforms,
)
from spmrl_bench.treebanks.manifest import SPLITS, Manifest, SplitName
from spmrl_bench.treebanks.patterns import find_files
from spmrl_bench.treebanks.reading import SplitData, split_data
from spmrl_bench.treebanks.split_names import Files
from spmrl_bench.treebanks.split_proposals import Proposal, ProposedSplit, propose_splits

# How many sentences the transforms are guessed from.
_SAMPLE = 500
# How many files a manifest lists by name; more are patterns.
_LISTED = 10
# A parser of base.toml has 300 positions, two of them for the ends of the sentence.
_POSITIONS = 300
_PREDICTED = re.compile(r"(?<![a-z])pred(icted)?(?![a-z])")
_UNKNOWN = "unknown: fill in what the release says"


@dataclass
class NewTreebank:
    """What a folder was found to be.

    Attributes:
        name: of the treebank.
        language: of its recipe.
        folder: that was looked at, absolute.
        files: what the folder holds.
        proposal: how they are divided.
        surveys: the figures of each split.
        shared: sentences that two splits have.
        overlaps: what of that is too much, in words.
        errors: every sentence that breaks the format.
        manifest, recipe, checksums: the texts of the three files.
    """

    name: str
    language: str
    folder: Path
    files: GuessedFiles
    proposal: Proposal
    surveys: dict[str, TreebankStatistics] = field(default_factory=dict)
    shared: list[tuple[str, int, str, int]] = field(default_factory=list)
    overlaps: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    manifest: str = ""
    recipe: str = ""
    checksums: str = ""


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
    """Look at a folder, read everything in it, and write its manifest and recipe (as texts).

    Args:
        folder: with its files.
        language: English name in small letters; the folder's name without it.
        name: of the treebank; without it, language and folder, or the folder's alone.
        format_name, encoding: of the files; guessed without them.
        given: of splits that the user names, patterns of files, or folders.
        allow_shared: whether splits may have the same sentences.

    Raises:
        TreebankError: there is a treebank of that name, no file of a known format is there, names
            of files do not tell what is for training, or there are too few sentences for three
            splits.
        ReadError: a file cannot be read at all.
    """
    folder = folder.absolute()
    slug = _slug(folder.name)
    if name is None:
        name = slug if language in (None, slug.partition("-")[0]) else f"{language}-{slug}"
    language = language or slug
    _refuse_taken(name)  # before everything is read
    files = guess_files(folder, format_name=format_name, encoding=encoding)
    options = guess_options(files.form, folder, files)
    proposal = propose_splits(
        files.paths,
        partial(_distinct, folder, files, options),
        given=_given(files.paths, given or {}),
        lists=guess_lists(folder, files),
    )
    result = NewTreebank(name, language, folder, files, proposal)
    splits = proposal.splits
    content = _settings(result, folder, options, splits)
    contents: dict[str, SplitData] = {}
    tree_files = TreebankFiles(validated(Manifest, content, f"{name}.toml", TreebankError), folder)
    for split_name in SPLITS:
        first, survey = read_with_statistics(tree_files, split_name, result.errors)
        contents[split_name] = found = split_data(first)
        result.surveys[split_name] = survey
        _declare(content["splits"][split_name], found)
    result.errors = list(dict.fromkeys(result.errors))  # splits may share files
    result.shared = shared_sentences({key: value.sentences for key, value in contents.items()})
    sizes = {key: len(value.sentences) for key, value in contents.items()}
    result.overlaps = [*same_places(tree_files), *many_shared(result.shared, sizes)]
    if result.overlaps and allow_shared:
        content["shared"] = "allowed"
        result.overlaps = []
    if result.errors:
        content["on_error"] = "skip"
    result.manifest = toml_text(content)
    result.checksums = "".join(f"{file_digest(folder / file)}  {file}\n" for file in files.paths)
    result.recipe = _recipe(result)
    return result


def write_new_treebank(found: NewTreebank, into: Path | None = None) -> tuple[list[Path], str]:
    """Write manifest, checksums and recipe, replacing nothing.

    A folder that does not lie under the directory of treebanks is listed as one that may be read
    (:mod:`spmrl_bench.storage.paths`).

    The recipe is named after the language, or after the treebank if there is a recipe for the
    language already.

    Args:
        found: the inspected treebank.
        into: the folder that gets ``treebanks/`` and ``recipes/``; without it, the checkout, or
            the user's own folder if the program is installed from a wheel.

    Returns:
        The files written, and what ``train`` calls the recipe ("" if there is none).

    Raises:
        TreebankError: there is a treebank of that name, or a file cannot be written.
    """
    _refuse_taken(found.name)
    checkout = data_dir("treebanks").parent
    top = into or (home() if checkout.name == "_data" else checkout)
    manifest = top / "treebanks" / f"{found.name}.toml"
    checksums = manifest.parent / "checksums" / f"{found.name}.sha256"
    texts = {checksums: found.checksums, manifest: found.manifest}
    recipe_name = ""
    if found.files.form.yields != "dependencies":
        folders = [data_dir("recipes"), home() / "recipes", top / "recipes"]
        taken = {path.stem for folder in folders for path in folder.glob("*.toml")}
        names = [name for name in (found.language, found.name) if name not in taken]
        if not names:
            raise TreebankError(
                f"there is a recipe '{found.name}' already: choose another name (--name)"
            )
        recipe_name = names[0]
        texts[top / "recipes" / f"{recipe_name}.toml"] = found.recipe
    existing = [str(path) for path in texts if path.exists()]
    if existing:
        raise TreebankError(f"{', '.join(existing)}: there already; remove it or use --name")
    try:
        for path, text in texts.items():
            write_text(path, text)
    except OSError as error:
        raise TreebankError(f"{top}: cannot write: {error.strerror}") from error
    read_manifest(manifest)  # what was written is a manifest
    root = treebanks_root()
    if root is None or not found.folder.resolve().is_relative_to(root.resolve()):
        list_folder(found.folder, TreebankError)  # the user has named it
    if into is not None and not {top, top.absolute()} & {home(), checkout}:
        recipe_name = str(top / "recipes" / f"{recipe_name}.toml") if recipe_name else ""
    return list(texts), recipe_name


def _refuse_taken(name: str) -> None:
    try:
        check_name(name)
    except ValueError as error:
        raise TreebankError(f"--name '{name}': {error}") from None
    if name in manifest_names():
        raise TreebankError(f"there is a treebank '{name}' already: choose another name (--name)")


def _given(
    paths: Sequence[str], patterns: Mapping[SplitName, Sequence[str]]
) -> dict[SplitName, Files]:
    """The files of the splits that the user names, each by patterns or folders."""
    found: dict[SplitName, Files] = {}
    for name, wanted in patterns.items():
        chosen: list[str] = []
        for pattern in wanted:
            below = f"{pattern.strip('/')}/"
            matching = [
                path
                for path in paths
                if fnmatchcase(path, pattern)
                or fnmatchcase(PurePosixPath(path).name, pattern)
                or path.startswith(below)
            ]
            if not matching:
                raise TreebankError(
                    f"--{name} {pattern}: none of the {len(paths)} files of the treebank is called "
                    f"so; there are {', '.join(paths[:5])}{', ...' if len(paths) > 5 else ''}"
                )
            chosen += [path for path in matching if path not in chosen]
        found[name] = tuple(chosen)
    return found


def _distinct(
    folder: Path, files: GuessedFiles, options: Mapping[str, Any], paths: Sequence[str]
) -> tuple[Files, list[int]]:
    """The files that repeat no other, and the number of sentences of each; broken ones count."""
    kept: list[str] = []
    sizes: list[int] = []
    seen: set[tuple[object, ...]] = set()
    for path in paths:
        sentences = _raw(folder / path, files, options)
        content = tuple(
            hash(getattr(sentence, "words", None) or sentence.tree.words)
            for sentence in sentences
            if not isinstance(sentence, ReadError)
        )
        if len(content) > 1 and content in seen:
            continue
        seen.add(content)
        kept.append(path)
        sizes.append(len(sentences))
    return tuple(kept), sizes


def _raw(
    path: Path, files: GuessedFiles, options: Mapping[str, Any], limit: int | None = None
) -> list[Any]:
    """What the reader yields for a file, errors included."""
    broken: list[Any] = []
    encoding = {"encoding": files.encoding} if files.encoding else {}
    sentences = files.form.read(path, on_error=broken.append, **encoding, **options)
    found = list(islice(sentences, limit))
    return broken + found


def _settings(
    result: NewTreebank,
    folder: Path,
    options: Mapping[str, Any],
    splits: Mapping[SplitName, ProposedSplit],
) -> dict[str, Any]:
    """The manifest's content; numbers of sentences are not known yet."""
    files = result.files
    content: dict[str, Any] = {
        "name": result.name,
        "title": result.name,
        "language": result.language,
        "track": "open",
        "format": files.form.name,
        "path": _manifest_path(folder),
    }
    if files.encoding is not None:
        content["encoding"] = files.encoding
    content |= options
    if files.form.yields != "dependencies":
        sample = [
            sentence
            for file in files.paths[:5]
            for sentence in _raw(folder / file, files, options, _SAMPLE)
            if not isinstance(sentence, ReadError)
        ]
        content["transforms"] = guess_transforms(files.form, sample)
        content["prm"] = "COLLINS" if result.language == "english" else "spmrl"
    content |= {
        "tags": "predicted" if _predicted(folder, files.paths) else "gold",
        **dict.fromkeys(("licence", "citation", "source", "obtain"), _UNKNOWN),
    }
    content["splits"] = {
        name: _split(folder, files.paths, splits, name) | {"sentences": 1} for name in SPLITS
    }
    return content


def _predicted(folder: Path, paths: Sequence[str]) -> bool:
    """Whether the name of the folder, or those of all files, say that the tags were predicted."""
    return all(
        any(_PREDICTED.search(part.lower()) for part in (folder.name, *PurePosixPath(path).parts))
        for path in paths
    )


def _manifest_path(folder: Path) -> str:
    """How a manifest names a folder: relative to the directory of treebanks if it lies there."""
    root = treebanks_root()
    if root is not None and folder.is_relative_to(root) and folder != root:
        return folder.relative_to(root).as_posix()
    return str(folder)


def _split(
    folder: Path, paths: Sequence[str], splits: Mapping[SplitName, ProposedSplit], name: SplitName
) -> dict[str, Any]:
    """A split's files; patterns for a long list, less those of the other splits."""
    split = splits[name]
    entry: dict[str, Any] = {"files": list(split.files)}
    if len(split.files) > _LISTED:
        patterns = sorted({_pattern_of(path) for path in split.files})
        found = [path.relative_to(folder).as_posix() for path in find_files(folder, patterns).paths]
        extra = sorted(set(found) - set(split.files))
        if len(extra) < len(split.files):
            entry = {"files": patterns} | ({"exclude": extra} if extra else {})
    if split.ids is not None:
        entry = {"files": sorted({_pattern_of(path) for path in paths}), "ids": split.ids}
    if split.range is not None:
        entry["range"] = f"{split.range[0]}..{split.range[1]}"
    return entry


def _pattern_of(path: str) -> str:
    """The pattern of all files beside one that have its ending."""
    file = PurePosixPath(path)
    return (file.parent / f"*{file.suffix}").as_posix()


def _declare(entry: dict[str, Any], content: SplitData) -> None:
    entry["sentences"] = len(content.sentences)
    entry["tokens"] = sum(map(len, content.sentences))
    if content.skipped:
        entry["skipped"] = len(content.skipped)
    if content.dropped:
        entry["dropped"] = content.dropped


def _recipe(result: NewTreebank) -> str:
    lines = ['base = "base"', f"language = {json.dumps(result.language)}"]
    lines.append(f"treebanks = [{json.dumps(result.name)}]")
    longest = max(survey.longest[0] for survey in result.surveys.values())
    if longest + 2 > _POSITIONS:
        lines += ["", "[model]", f"max_positions = {longest + 2}  # the longest sentence"]
    return "\n".join(lines) + "\n"


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-") or "treebank"
