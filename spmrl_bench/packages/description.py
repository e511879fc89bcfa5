"""What a packaged model says of itself: ``package.json``, read with due caution.

A package is a folder with the files of a saved parser, a card for people and this description. It
lists each file that a parser is loaded from, with its size and SHA-256: what was cut short on its
way, mixed up or touched since is found before anything is believed, and of an archive or a
repository nothing else is taken. Only weights (safetensors) and text can be listed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Annotated, Any

from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field, field_validator

from spmrl_bench.errors import PackageError
from spmrl_bench.storage.digests import file_digest
from spmrl_bench.storage.files import open_regular_file
from spmrl_bench.storage.json import read_json
from spmrl_bench.storage.paths import check_path
from spmrl_bench.storage.toml import validated
from spmrl_bench.storage.unzip import UNPACKED

#: The file of the description, at the top of a package.
PACKAGE = "package.json"
#: The card, for people.
CARD = "README.md"
#: Of the layout that is written, and the latest that is read.
FORMAT = 1
#: Bytes of a description.
LARGEST = 1 << 20
#: Bytes of all files that one lists.
LARGEST_MODEL = UNPACKED
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
    # What a later release adds is no mistake.
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
    for name in _readable(folder, package):
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


def _readable(folder: Path, package: Package) -> Iterator[str]:
    """The files of a folder that a parser could read, by their paths in it."""
    yield from (path.name for path in folder.glob("*.safetensors"))
    inner = {name.partition("/")[0] for name in package.files if "/" in name}
    for name in sorted(inner):
        yield from (f"{name}/{path.name}" for path in (folder / name).iterdir())
