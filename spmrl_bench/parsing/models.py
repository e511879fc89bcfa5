"""The parser of a model, wherever it is: in a run, in a folder of its own, or in a package.

A saved parser is a folder with ``parser.json`` (kind, configuration, vocabulary) and the weights.
Nothing is unpickled, so loading runs no code from the file. A package is such a folder with a
description beside them, which is held to what it says.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, TypeVar

from spmrl_bench.errors import CheckpointError, SpmrlError
from spmrl_bench.packages.description import check_files, read_package
from spmrl_bench.packages.located import installed_models, located
from spmrl_bench.parsers.base import Description, Parser, not_a_parser
from spmrl_bench.parsers.registry import Kind, kind_named
from spmrl_bench.storage.digests import file_digest
from spmrl_bench.storage.files import last_complete_version, read_folder, read_regular
from spmrl_bench.storage.json import parse_json
from spmrl_bench.training import BEST
from spmrl_bench.treebanks.catalogue import load_manifest

Result = TypeVar("Result")


class Identity(NamedTuple):
    """Which parser lies in a folder."""

    name: str  # of its kind
    kind: Kind
    sha256: str  # of the digests of its description and its weights, in hex


def load_parser(model: str | Path, device: str = "auto") -> Parser:
    """Load a trained parser, ready to parse.

    Args:
        model: a folder written by :meth:`Parser.save`; a run folder of ``train``, whose best
            parser is then taken; or a package
            (:func:`spmrl_bench.packages.located.located` says how it can be named).
        device: ``auto`` (CUDA when present), ``cpu``, ``cuda`` or ``cuda:N``.

    Raises:
        CheckpointError: not a parser folder, an unknown kind, or weights that do not fit; of a
            package, a :class:`~spmrl_bench.errors.PackageError` where it is not the one that was
            made, or not to be had.
        RecipeError: this machine has no such device.
    """

    def load(place: Path, description: Description) -> Parser:
        kind = _kind_of(place, description)
        parser = kind.parser_class.load(place, description)
        if kind.trained:
            from spmrl_bench.nn.device import choose_device

            parser = parser.to(choose_device(device)).eval()
        return parser

    return _read_model(model, load, whole=True)


def identity(model: str | Path) -> Identity:
    """Return which parser a model is, without loading it.

    Raises:
        CheckpointError: as :func:`load_parser`; of the weights, that they are missing.
    """

    def identified(place: Path, description: Description) -> Identity:
        kind = _kind_of(place, description)
        names = ("parser.json", "weights.safetensors") if kind.trained else ("parser.json",)
        try:
            digests = [file_digest(place / name) for name in names]
        except OSError as error:
            raise CheckpointError(f"{error.filename}: {error.strerror}") from None
        name = str(description.content["kind"])
        return Identity(name, kind, hashlib.sha256(" ".join(digests).encode()).hexdigest())

    return _read_model(model, identified)


def _read_model(
    model: str | Path, read: Callable[[Path, Description], Result], *, whole: bool = False
) -> Result:
    """What a function makes of the folder of a parser and of its description; if it needs the
    whole, all files of a package are looked at first."""

    def read_saved(place: Path) -> Result:
        package = read_package(place)
        if package is not None and whole:
            check_files(place, package)
        if package is None and not (place / "parser.json").exists():
            raise CheckpointError(f"{model}: no trained parser here ({_advice(place)}")
        return read(place, Description.read(place))

    folder = located(model)
    best = folder / BEST
    return read_folder(folder if last_complete_version(best) is None else best, read_saved)


def _kind_of(place: Path, description: Description) -> Kind:
    path = place / "parser.json"
    if "kind" not in description.content:
        raise not_a_parser(path, "it names no kind")
    try:
        return kind_named(str(description.content["kind"]), CheckpointError)
    except CheckpointError as error:
        raise CheckpointError(f"{path}: {error}") from None


def _advice(place: Path) -> str:
    run = "Give a run folder written by 'spmrl-bench train'"
    if place.exists():
        return f"no parser.json, no best/parser.json). {run}"
    return (
        f"no such folder or file). {run}, a package (folder or zip file), one that is installed "
        f"({', '.join(installed_models()) or 'none'}) or one of the hub, OWNER/NAME@COMMIT"
    )


def trained_transforms(folder: Path) -> list[str] | None:
    """Names of the transforms of the treebank that a parser was trained on.

    Args:
        folder: of a run, of a parser in it, or of a package.

    Returns:
        None if nothing says so, or the treebank is known here no more.

    Raises:
        PackageError: the description of the package is broken.
    """
    if (package := read_package(folder)) is not None:
        return list(package.treebank.transforms)
    for place in (folder, folder.parent):
        if (path := place / "run.json").is_file():
            try:
                noted = parse_json(read_regular(path))
                return list(load_manifest(noted["treebank"]).transforms)
            except (SpmrlError, OSError, ValueError, TypeError, KeyError):
                return None
    return None
