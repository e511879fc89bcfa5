"""The parser of a model, wherever it is: in a run, in a folder of its own, or in a package.

A saved parser is a folder with ``parser.json`` (kind, configuration, vocabulary) and the weights. A
package has beside them a card for people and ``package.json``, which lists each file that a parser
is loaded from, with its size and SHA-256; what is not as listed is found before anything is
believed. Only weights (safetensors) and text can be listed, and nothing is unpickled, so nothing
that came with a model is ever run. On the Hugging Face hub a package is named with its commit, a
hash of what is in it; ``huggingface_hub`` downloads and keeps its files.
"""

from __future__ import annotations

import hashlib
import importlib
import os
import re
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import AfterValidator, BaseModel, Field, field_validator

from spmrl_bench.errors import CheckpointError, PackageError, SpmrlError
from spmrl_bench.parsers.base import Description, Parser, not_a_parser
from spmrl_bench.parsers.kinds import Kind, kind_named
from spmrl_bench.storage.digests import file_digest
from spmrl_bench.storage.files import last_complete_version, open_regular_file, read_folder
from spmrl_bench.storage.json import read_json
from spmrl_bench.storage.paths import check_path
from spmrl_bench.storage.toml import validated
from spmrl_bench.training import BEST
from spmrl_bench.treebanks.catalogue import load_manifest

#: The description at the top of a package, and the card for people.
PACKAGE, CARD = "package.json", "README.md"
#: Of the layout that is written, and the latest that is read.
FORMAT = 1
#: The one file that every parser has.
PARSER = "parser.json"
# Bytes of a description; bytes and number of the files that one lists (a tokenizer has ten).
_LARGEST, _LARGEST_MODEL, _MOST_FILES = 1 << 20, 4 << 30, 100
# What a parser is loaded from: nothing that could be code.
_SUFFIXES = (".json", ".safetensors", ".txt", ".model")

_ON_HUB = re.compile(r"([\w.-]+/[\w.-]+)@(.*)", re.ASCII)
_COMMIT = re.compile(r"[0-9a-f]{40}")


class Identity(NamedTuple):
    """Which parser lies in a folder."""

    name: str  # of its kind
    kind: Kind
    sha256: str  # of the digests of its description and its weights, in hex


def load_parser(model: str | Path, device: str = "auto") -> Parser:
    """Load a trained parser, ready to parse.

    Args:
        model: a folder written by :meth:`Parser.save`; a run folder of ``train``, for its best
            parser; or a package, named as of :func:`located`.
        device: ``auto`` (CUDA when present), ``cpu``, ``cuda`` or ``cuda:N``.

    Raises:
        CheckpointError: not a parser folder, an unknown kind, or weights that do not fit.
        PackageError: the package is not the one that was made, or not to be had.
        RecipeError: this machine has no such device.
    """

    def load(place: Path) -> Parser:
        kind, description = _opened(model, place, whole=True)
        parser = kind.parser_class.load(place, description)
        if kind.trained:
            from spmrl_bench.nn.device import choose_device

            parser = parser.to(choose_device(device)).eval()
        return parser

    return read_folder(folder_of(model), load)


def identity(model: str | Path) -> Identity:
    """Return which parser a model is, without loading it; raise as :func:`load_parser`."""

    def identified(place: Path) -> Identity:
        kind, description = _opened(model, place)
        names = ("parser.json", "weights.safetensors") if kind.trained else ("parser.json",)
        try:
            digests = [file_digest(place / name) for name in names]
        except OSError as error:
            raise CheckpointError(f"{error.filename}: {error.strerror}") from None
        name = str(description.content["kind"])
        return Identity(name, kind, hashlib.sha256(" ".join(digests).encode()).hexdigest())

    return read_folder(folder_of(model), identified)


def trained_on(folder: Path) -> TrainedOn:
    """Return what is known of the treebank that a parser was trained on; the usual, if nothing says
    which it was, or it is known here no more. ``folder`` is that of a run, of a parser in it, or of
    a package, of which a PackageError says that its description is broken."""
    if (package := read_package(folder)) is not None:
        return package.treebank
    for place in (folder, folder.parent):
        if (path := place / "run.json").is_file():
            with suppress(SpmrlError, KeyError, TypeError):
                manifest = load_manifest(str(read_json(path, CheckpointError)["treebank"]))
                escapes = manifest.options.get("escapes") or "brackets"
                return TrainedOn(transforms=list(manifest.transforms), escapes=escapes)
            break
    return TrainedOn(transforms=None)


def folder_of(model: str | Path) -> Path:
    """Return the folder of the parser itself, of a run or as it is named."""
    folder = located(model)
    best = folder / BEST
    return folder if last_complete_version(best) is None else best


def _opened(model: str | Path, place: Path, *, whole: bool = False) -> tuple[Kind, Description]:
    """Return kind and description of a parser; ``whole`` looks at all files of a package first."""
    package, path = read_package(place), place / "parser.json"
    if package is not None and whole:
        check_files(place, package)
    if package is None and not path.exists():
        raise CheckpointError(f"{model}: no trained parser here ({_advice(place)}")
    description = Description.read(place)
    if "kind" not in description.content:
        raise not_a_parser(path, "it names no kind")
    try:
        return kind_named(str(description.content["kind"]), CheckpointError), description
    except CheckpointError as error:
        raise CheckpointError(f"{path}: {error} Install the package that adds it") from None


def _advice(place: Path) -> str:
    run = "Give a run folder written by 'spmrl-bench train'"
    if place.is_file():
        return f"a file; unpack an archive, and give the folder). {run}"
    if place.exists():
        return f"no parser.json, no best/parser.json). {run}"
    return f"no such folder). {run}, the folder of a package, or one of the hub, OWNER/NAME@COMMIT"


# Packages --------------------------------------------------------------------------------


def is_model_file(name: str) -> bool:
    """Whether a parser can be loaded from a file of this path in a package."""
    path = PurePosixPath(name)
    return path.suffix in _SUFFIXES and len(path.parts) <= 2 and name != PACKAGE


def _model_file(name: str) -> str:
    check_path(name)
    if not is_model_file(name):
        kinds = ", ".join(_SUFFIXES)
        raise ValueError(f"expected a file of a parser ({kinds}), at the top or in one folder")
    return name


class StoredFile(BaseModel):
    """A file of a package."""

    sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
    size: Annotated[int, Field(ge=0, le=_LARGEST_MODEL, strict=True)]


class TrainedOn(BaseModel):
    """What a model has to know of the treebank that it was trained on."""

    transforms: list[str] | None = []  # by name; None if nobody knows them
    escapes: Literal["ptb", "brackets", "none"] = "ptb"  # of words in brackets


class Package(BaseModel):
    """What the program reads of the description of a packaged model; all else is for people."""

    format: Annotated[int, Field(ge=1, strict=True)]
    treebank: TrainedOn
    files: Annotated[
        dict[Annotated[str, AfterValidator(_model_file)], StoredFile], Field(max_length=_MOST_FILES)
    ]

    @field_validator("files")
    @classmethod
    def _of_one_parser(cls, files: dict[str, StoredFile]) -> dict[str, StoredFile]:
        if PARSER not in files:
            raise ValueError(f"lists no {PARSER}")
        if sum(file.size for file in files.values()) > _LARGEST_MODEL:
            raise ValueError(f"lists more than {_LARGEST_MODEL:,} bytes")
        return files


def read_package(folder: Path) -> Package | None:
    """The description in a folder, None where there is none; a PackageError where it is broken, or
    of a layout that is newer than this program."""
    path = folder / PACKAGE
    if not os.path.lexists(path):
        return None
    content = read_json(path, PackageError, _LARGEST)
    if not isinstance(content, dict):
        raise PackageError(f"{path}: found a {type(content).__name__}, expected an object")
    found = content.get("format")
    if type(found) is int and found > FORMAT:
        newer = f"this program reads formats up to {FORMAT}: install a newer one"
        raise PackageError(f"{path}: format {found}, and {newer}")
    return validated(Package, content, path, PackageError)


def check_files(folder: Path, package: Package) -> None:
    """Raise a PackageError if a file of a package is not the one that is listed, or a parser would
    read one that is not listed."""
    for name, stored in package.files.items():
        if (fault := _fault(folder / name, stored)) is not None:
            raise PackageError(
                f"{folder / name}: {fault}, so the package is not the one that was made. Remove "
                f"{folder} and get it anew"
            )
    inner = {folder / name.partition("/")[0] for name in package.files if "/" in name}
    beside = (path for place in inner for path in place.iterdir())
    for path in sorted((*folder.glob("*.safetensors"), *beside)):
        if path.relative_to(folder).as_posix() not in package.files:
            raise PackageError(
                f"{path}: not listed in {PACKAGE}, but a parser could read it. Remove it, or get "
                "the package anew"
            )


def _fault(path: Path, stored: StoredFile) -> str | None:
    """What tells a file from the one that is listed."""
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


def located(model: str | Path) -> Path:
    """The folder of a model: a path as it stands, or ``OWNER/NAME@COMMIT`` of the hub, whose
    package is downloaded where it is not there yet. A PackageError where the revision can change,
    or the hub does not give the package as it was made."""
    path = Path(model)
    on_hub = _ON_HUB.fullmatch(path.as_posix())
    if on_hub is None or last_complete_version(path) is not None:
        return path
    name, revision = on_hub.groups()
    if not _COMMIT.fullmatch(revision):
        raise PackageError(
            f"{name}@{revision}: '{revision}' is no commit, and may stand for another model later. "
            "Give the 40 hexadecimal digits of one"
        )
    try:
        hub: Any = importlib.import_module("huggingface_hub")
    except ImportError:
        problem = "a model of the hub needs its library: pip install 'spmrl-bench[hub]'"
        raise PackageError(problem) from None
    folder = _downloaded(hub, name, revision, PACKAGE, _LARGEST).parent
    package = read_package(folder)
    for file, stored in (package.files if package is not None else {}).items():
        found = _downloaded(hub, name, revision, file, stored.size)
        if (fault := _fault(found, stored)) is not None:
            raise PackageError(
                f"{name}@{revision}: {file}: {fault}. If the copy {found} was damaged here, remove "
                "it; else the package on the hub is broken: take another commit, or ask its owner"
            )
    return folder


def _downloaded(hub: Any, name: str, revision: str, path: str, most: int) -> Path:
    """A file, of so many bytes at most if it is not kept here yet."""
    try:
        if not isinstance(hub.try_to_load_from_cache(name, path, revision=revision), str):
            size = hub.get_hf_file_metadata(hub.hf_hub_url(name, path, revision=revision)).size
            if size is None or size > most:
                raise ValueError(f"the hub says {size} bytes, where at most {most} are taken")
        return Path(hub.hf_hub_download(name, path, revision=revision))
    except Exception as error:  # of any class, with a lecture
        reason = " ".join(str(error).split())[:300] or type(error).__name__
        raise PackageError(
            f"{name}@{revision}: {path} cannot be had from the hub ({reason}). Check name, commit "
            "and connection"
        ) from None
