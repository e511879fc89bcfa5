"""The kinds of parsers, and the parser in a folder.

A kind is one file with its class and one line here, from which recipes, training and loading all
take it. Installed packages add kinds of their own through entry points of the group
``spmrl_bench.parsers``, each of which names a :class:`Kind`.

A saved parser is a folder with ``parser.json`` (kind, configuration, vocabulary) and the weights.
Nothing is unpickled, so loading runs no code from the file. A package is such a folder with a
description beside them, which is held to what it says.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from spmrl_bench.errors import CheckpointError, RecipeError, SpmrlError
from spmrl_bench.files import read_folder, whole_folder
from spmrl_bench.packages.description import Package, check_files, read_package
from spmrl_bench.packages.located import installed_models, located
from spmrl_bench.parsers.base import EnsembleError, Parser, described, not_a_parser
from spmrl_bench.pretrained.digests import file_digest
from spmrl_bench.registry import Registry, imported
from spmrl_bench.training import BEST
from spmrl_bench.trees.parse import Layer

if TYPE_CHECKING:
    from spmrl_bench.parsers.config import ParserConfig

Result = TypeVar("Result")


@dataclass(frozen=True)
class Kind:
    """A kind of parser, as far as it can be known without torch.

    Attributes:
        name: in recipes and saved parsers.
        parser: ``module:class`` of the parser, imported when one is built or loaded.
        config: ``module:class`` of its configuration, which must not bring torch along.
        layers: of annotation that it learns from.
        metrics: that it is scored by, the most telling first.
        trained: whether it has weights; a kind without any is a baseline.
    """

    name: str
    parser: str
    config: str
    layers: tuple[Layer, ...]
    metrics: tuple[str, ...]
    trained: bool = True

    @cached_property
    def parser_class(self) -> Any:
        """Its class, of :class:`~spmrl_bench.parsers.base.Parser`."""
        return imported(self.parser)

    @cached_property
    def config_class(self) -> type[ParserConfig]:
        """The class of its settings."""
        return imported(self.config)


def _baseline(name: str, parser: str, layer: Layer, metric: str) -> Kind:
    config = "spmrl_bench.parsers.config:ParserConfig"
    return Kind(name, f"spmrl_bench.parsers.{parser}", config, (layer,), (metric,), trained=False)


_OWN = (
    Kind(
        "chart",
        "spmrl_bench.parsers.chart_parser:ChartParser",
        "spmrl_bench.parsers.kind_configs:ChartParserConfig",
        layers=("constituents",),
        metrics=("brackets",),
    ),
    Kind(
        "biaffine",
        "spmrl_bench.parsers.dependency_parser:DependencyParser",
        "spmrl_bench.parsers.kind_configs:DependencyParserConfig",
        layers=("dependencies",),
        metrics=("attachment",),
    ),
    Kind(
        "joint",
        "spmrl_bench.parsers.joint_parser:JointParser",
        "spmrl_bench.parsers.kind_configs:JointParserConfig",
        layers=("constituents", "dependencies"),
        metrics=("brackets", "attachment"),
    ),
    Kind(
        "transition",
        "spmrl_bench.parsers.transition_parser:TransitionParser",
        "spmrl_bench.parsers.kind_configs:TransitionParserConfig",
        layers=("dependencies",),
        metrics=("attachment",),
    ),
    _baseline("right-branching", "right_branching:RightBranching", "constituents", "brackets"),
    _baseline("attach-neighbour", "attach_neighbour:AttachNeighbour", "dependencies", "attachment"),
)

KINDS: Registry[Kind] = Registry(
    "parser kind", "spmrl_bench.parsers", {kind.name: kind for kind in _OWN}
)


def kind_named(name: str, error: type[SpmrlError] = RecipeError) -> Kind:
    """The kind of a name.

    Raises:
        SpmrlError: there is none, or what a package gave is no kind.
    """
    kind = KINDS.get(name, error)
    if not isinstance(kind, Kind):
        raise error(f"parser kind {name}: its package names {kind!r}, which is no Kind")
    return kind


def trained_kinds() -> list[Kind]:
    """The kinds that can be trained."""
    return [kind for name in KINDS.names() if (kind := kind_named(name)).trained]


def baselines_for(metrics: Sequence[str]) -> list[Kind]:
    """The baselines that are scored by one of the metrics."""
    kinds = map(kind_named, KINDS.names())
    return [kind for kind in kinds if not kind.trained and set(kind.metrics) & set(metrics)]


def load_parser(model: str | Path, device: str = "auto") -> Parser:
    """Load a trained parser, ready to parse.

    Args:
        model: a folder written by :meth:`Parser.save`; a run folder of ``train``, whose best
            parser is then taken; or a package, as a folder, a zip file, by the name under which it
            is installed, or on the hub as ``OWNER/NAME@COMMIT``
            (:func:`spmrl_bench.packages.located.located`).
        device: ``auto`` (CUDA when present), ``cpu``, ``cuda`` or ``cuda:N``.

    Raises:
        CheckpointError: not a parser folder, an unknown kind, or weights that do not fit; of a
            package, a :class:`~spmrl_bench.errors.PackageError` where it is not the one that was
            made, or not to be had.
    """
    return _read_saved(model, lambda place: _load(model, place, device))


class Identity(NamedTuple):
    """Which parser lies in a folder."""

    kind: Kind
    sha256: str
    """Of the digests of its description and its weights, in hex."""


def identity(model: str | Path) -> Identity:
    """Which parser a model is, found out without loading it.

    Raises:
        CheckpointError: as :func:`load_parser`, but of the weights no more than that they are
            missing is noticed.
    """

    def identified(place: Path) -> Identity:
        _check_there(model, place)
        with described(place) as description:
            kind = _kind_of(place, description)
        names = ("parser.json", "weights.safetensors") if kind.trained else ("parser.json",)
        try:
            digests = [file_digest(place / name) for name in names]
        except OSError as error:
            raise CheckpointError(f"{error.filename}: {error.strerror}") from None
        return Identity(kind, hashlib.sha256(" ".join(digests).encode()).hexdigest())

    return _read_saved(model, identified)


def _read_saved(model: str | Path, read: Callable[[Path], Result]) -> Result:
    """What a function reads from the folder of a parser, in a run that of its best one."""
    folder = located(model)
    best = folder / BEST
    of_run = whole_folder(best) is not None
    return read_folder(best if of_run else folder, read)


def _load(model: str | Path, place: Path, device: str) -> Parser:
    if (package := _check_there(model, place)) is not None:
        check_files(place, package)
    with described(place) as description:
        kind = _kind_of(place, description)
        parser: Parser = kind.parser_class.load(place)
    if kind.trained:
        from spmrl_bench.parsers.device import choose_device

        return parser.to(choose_device(device)).eval()  # type: ignore[attr-defined]
    return parser


def _check_there(model: str | Path, place: Path) -> Package | None:
    """The description of a package, if it is one; an error if there is no parser."""
    package = read_package(place)
    if package is None and not (place / "parser.json").exists():
        raise CheckpointError(f"{model}: no trained parser here ({_nothing_here(place)}")
    return package


def _kind_of(place: Path, description: Mapping[str, Any]) -> Kind:
    path = place / "parser.json"
    if "kind" not in description:
        raise not_a_parser(path, "it names no kind")
    try:
        return kind_named(str(description["kind"]), CheckpointError)
    except CheckpointError as error:
        raise CheckpointError(f"{path}: {error}") from None


def _nothing_here(place: Path) -> str:
    """Why there is no parser, and what can be given."""
    if place.exists():
        return (
            "no parser.json, no best/parser.json). Give a run folder written by 'spmrl-bench train'"
        )
    return (
        "no such folder or file). Give a run folder written by 'spmrl-bench train', a package "
        f"(folder or zip file), one that is installed ({', '.join(installed_models()) or 'none'}) "
        "or one of the hub, OWNER/NAME@COMMIT"
    )


def combine(parsers: Sequence[Parser]) -> Parser:
    """Several parsers of one treebank as one.

    Raises:
        EnsembleError: there are none, or they are of several kinds or do not fit each other.
    """
    kinds = sorted({parser.kind for parser in parsers})
    if len(kinds) != 1:
        raise EnsembleError(
            f"an ensemble needs parsers of one kind; found: {', '.join(kinds) or 'no parser'}"
        )
    return type(parsers[0]).combined(parsers)
