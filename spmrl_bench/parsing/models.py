"""The parser of a model, wherever it is: in a run, in a folder of its own, or in a package.

A saved parser is a folder with ``parser.json`` (kind, configuration, vocabulary) and the weights; a
package has a description beside them. Nothing is unpickled, so loading runs no code from a file.
"""

from __future__ import annotations

import hashlib
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from spmrl_bench.errors import CheckpointError, SpmrlError
from spmrl_bench.parsers.base import Description, Parser, not_a_parser
from spmrl_bench.parsers.kinds import Kind, kind_named
from spmrl_bench.parsing.packages import TrainedOn, check_files, located, read_package
from spmrl_bench.storage.digests import file_digest
from spmrl_bench.storage.files import last_complete_version, read_folder
from spmrl_bench.storage.json import read_json
from spmrl_bench.training import BEST
from spmrl_bench.treebanks.catalogue import load_manifest


class Identity(NamedTuple):
    """Which parser lies in a folder."""

    name: str  # of its kind
    kind: Kind
    sha256: str  # of the digests of its description and its weights, in hex


def load_parser(model: str | Path, device: str = "auto") -> Parser:
    """Load a trained parser, ready to parse.

    Args:
        model: a folder written by :meth:`Parser.save`; a run folder of ``train``, for its best
            parser; or a package, named as of :func:`spmrl_bench.parsing.packages.located`.
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
    which it was, or it is known here no more.

    ``folder`` is that of a run, of a parser in it, or of a package, of which a PackageError says
    that its description is broken.
    """
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
