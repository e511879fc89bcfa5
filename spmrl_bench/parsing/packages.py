"""A packaged model: its folder or its place on the hub, and what it says of itself, held to it.

A package is a folder with the files of a saved parser, a card for people and ``package.json``. That
lists each file that a parser is loaded from, with its size and SHA-256: what was cut short on its
way, mixed up or touched since is found before anything is believed, and of a repository nothing
else is taken. Only weights (safetensors) and text can be listed, so nothing that came with a model
is ever run.

A repository of the Hugging Face hub may change at any time, and so may its branches and tags. So a
package there is named with its commit, 40 digits that are a hash of what is in it; any other
revision is an error that says which commit it stands for today. The library ``huggingface_hub``
downloads and keeps files; its settings (``HF_HOME``, ``HF_ENDPOINT``, ``HF_HUB_OFFLINE``) are its
own.
"""

from __future__ import annotations

import importlib
import os
import re
from pathlib import Path, PurePosixPath
from typing import Annotated, Any

from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field, field_validator

from spmrl_bench.errors import PackageError, SpmrlError
from spmrl_bench.storage.digests import file_digest
from spmrl_bench.storage.files import last_complete_version, open_regular_file
from spmrl_bench.storage.json import read_json
from spmrl_bench.storage.paths import check_path
from spmrl_bench.storage.toml import validated

#: The file of the description, at the top of a package.
PACKAGE = "package.json"
#: The card, for people.
CARD = "README.md"
#: Of the layout that is written, and the latest that is read.
FORMAT = 1
#: Bytes of a description.
LARGEST = 1 << 20
#: Bytes of all files that one lists.
LARGEST_MODEL = 4 << 30
#: Files that one can list: an encoder's tokenizer has ten.
MOST_FILES = 100
#: What a parser is loaded from: nothing that could be code.
SUFFIXES = (".json", ".safetensors", ".txt", ".model")
#: The one file that every parser has.
PARSER = "parser.json"

Text = Annotated[str, Field(min_length=1, max_length=10_000)]


def is_model_file(name: str) -> bool:
    """Whether a parser can be loaded from a file of this path in a package."""
    path = PurePosixPath(name)
    return path.suffix in SUFFIXES and len(path.parts) <= 2 and name != PACKAGE


def _model_file(name: str) -> str:
    check_path(name)
    if not is_model_file(name):
        raise ValueError(
            f"expected a file of a parser ({', '.join(SUFFIXES)}), at the top or in one folder"
        )
    return name


class _Part(BaseModel):
    # What a later release adds is no error.
    model_config = ConfigDict(extra="ignore", frozen=True)


class StoredFile(_Part):
    """A file of a package."""

    sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
    size: Annotated[int, Field(ge=0, le=LARGEST_MODEL, strict=True)]


class Trained(_Part):
    """The treebank that a parser was trained on."""

    name: Text
    title: Text
    language: Text
    track: Text
    licence: Text
    source: Text
    citation: Text
    commit: Text | None = None
    fingerprints: dict[str, Text] = {}
    """By layer of annotation."""
    transforms: list[Text] = []
    sentences: dict[str, list[int]] = {}
    """Of each split; several numbers where sources differ, none where nothing is declared."""
    learnt: int | None = None
    """Of those of training, where not all were learnt from."""


class Score(_Part):
    """What one metric says of the parses of a split."""

    figures: dict[str, int | float | None]
    signature: Text


class Package(_Part):
    """The description of a packaged model."""

    format: Annotated[int, Field(ge=1, strict=True)]
    name: Text
    version: Text
    license: Text
    program: Text
    """The release of the program that wrote it."""
    kind: Text
    variant: Text
    size: Text
    seed: int
    settings: dict[str, Any] = {}
    """What was changed of the recipe."""
    finished: AwareDatetime
    """When the run was scored."""
    commit: Text | None = None
    """Of the program that scored it."""
    treebank: Trained
    scores: dict[str, dict[str, Score]]
    """By split and metric."""
    files: Annotated[
        dict[Annotated[Text, AfterValidator(_model_file)], StoredFile],
        Field(max_length=MOST_FILES),
    ]

    @field_validator("files")
    @classmethod
    def _a_parser_is_listed(cls, files: dict[str, StoredFile]) -> dict[str, StoredFile]:
        if PARSER not in files:
            raise ValueError(f"lists no {PARSER}")
        if sum(file.size for file in files.values()) > LARGEST_MODEL:
            raise ValueError(f"lists more than {LARGEST_MODEL:,} bytes")
        return files


def read_package(folder: Path) -> Package | None:
    """The description in a folder; None where there is none.

    Raises:
        PackageError: it is broken, or of a layout that is newer than this program.
    """
    path = folder / PACKAGE
    if not os.path.lexists(path):
        return None
    content = read_json(path, PackageError, LARGEST)
    if not isinstance(content, dict):
        raise PackageError(f"{path}: found a {type(content).__name__}, expected an object")
    found = content.get("format")
    if type(found) is int and found > FORMAT:
        raise PackageError(
            f"{path}: format {found}, and this program reads formats up to {FORMAT}: install a "
            "newer one"
        )
    return validated(Package, content, path, PackageError)


def check_files(folder: Path, package: Package) -> None:
    """Make sure that the files of a package are those that its description lists.

    Raises:
        PackageError: one is missing or another one, or a parser would read one that is not listed.
    """
    for name, stored in package.files.items():
        if (fault := file_fault(folder / name, stored)) is not None:
            raise PackageError(
                f"{folder / name}: {fault}, so the package is not the one that was made. Remove "
                f"{folder} and get it anew"
            )
    inner = sorted({name.partition("/")[0] for name in package.files if "/" in name})
    found = [
        *folder.glob("*.safetensors"),
        *(path for name in inner for path in (folder / name).iterdir()),
    ]
    for name in (path.relative_to(folder).as_posix() for path in found):
        if name not in package.files:
            raise PackageError(
                f"{folder / name}: not listed in {PACKAGE}, but a parser could read it. Remove it, "
                "or get the package anew"
            )


def file_fault(path: Path, stored: StoredFile) -> str | None:
    """What tells a file from the one that is listed; None if nothing does."""
    try:
        with open_regular_file(path) as file:
            size = os.fstat(file.fileno()).st_size
        if size != stored.size:
            return f"has {size:,} bytes, where {PACKAGE} lists {stored.size:,}"
        if file_digest(path) != stored.sha256:
            return f"its SHA-256 is not the one that {PACKAGE} lists"
    except FileNotFoundError:
        return "missing"
    except OSError as error:
        return f"cannot be read ({error.strerror or error})"
    return None


_COMMIT = re.compile(r"[0-9a-f]{40}")
_ON_HUB = re.compile(r"([\w.-]+/[\w.-]+)@(.*)", re.ASCII)


def located(model: str | Path) -> Path:
    """Return the folder of a model: a path as it stands, or ``OWNER/NAME@COMMIT`` of the hub, whose
    package is downloaded where it is not there yet.

    Raises:
        PackageError: the revision can change, or the hub has no such package, gives no answer, or
            gives other files than the package lists.
    """
    path = Path(model)
    on_hub = _ON_HUB.fullmatch(path.as_posix())
    if on_hub is None or last_complete_version(path) is not None:
        return path
    return _fetched(on_hub[1], on_hub[2])


def _fetched(name: str, revision: str) -> Path:
    try:
        hub: Any = importlib.import_module("huggingface_hub")
    except ImportError as error:
        raise PackageError(
            f"a model of the hub needs the package huggingface_hub ({error}). Install it: "
            "pip install 'spmrl-bench[hub]'"
        ) from None
    if not _COMMIT.fullmatch(revision):
        raise _unpinned(hub, name, revision)

    def file(path: str, most: int, *, again: bool = False) -> Path:
        """A file, of so many bytes at most if it has to be downloaded."""

        def attempt() -> Any:
            kept = hub.try_to_load_from_cache(name, path, revision=revision)
            if isinstance(kept, str) and not again:
                return kept
            url = hub.hf_hub_url(name, path, revision=revision)
            size = hub.get_hf_file_metadata(url).size
            if size is None or size > most:
                said = "no size" if size is None else f"{size:,} bytes"
                raise PackageError(
                    f"{name}@{revision}: {path}: the hub says {said}, where at most {most:,} bytes "
                    "are taken"
                )
            return hub.hf_hub_download(name, path, revision=revision, force_download=again)

        try:
            return Path(attempt())
        except SpmrlError:
            raise
        except Exception as error:  # of any class
            raise PackageError(
                f"{name}@{revision}: {path} cannot be had from the hub ({_reason(error)}). Check "
                "name, commit and connection"
            ) from None

    described = file(PACKAGE, LARGEST)
    package = read_package(described.parent)
    for path, stored in (package.files if package is not None else {}).items():
        found = file(path, stored.size)
        if file_fault(found, stored) is not None:  # as a disk or another program has left it
            found = file(path, stored.size, again=True)
        if (fault := file_fault(found, stored)) is not None:
            raise PackageError(
                f"{name}@{revision}: {path}: {fault}, so the package on the hub is broken. Take "
                "another commit, or ask its owner"
            )
    return described.parent


def _unpinned(hub: Any, name: str, revision: str) -> PackageError:
    """The error of a revision that can change."""
    shown = revision or "main"
    problem = f"{name}@{revision}: '{revision}' is no commit, and may stand for another model later"
    try:
        commit = str(hub.HfApi().model_info(name, revision=shown).sha)
    except Exception as error:
        return PackageError(
            f"{problem}. Give the 40 hexadecimal digits of one; which {shown} is, the hub did not "
            f"say ({_reason(error)})"
        )
    return PackageError(f"{problem}. Today {shown} is {commit}: give {name}@{commit}")


def _reason(error: Exception) -> str:
    """The message of a library in one line, cut where it becomes a lecture."""
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= 300 else text[:300] + " ..."
