"""The kinds of parsers.

A kind is one file and one line here, from which recipes, training and loading take it. Entry points
of the group ``spmrl_bench.parsers`` add those of installed packages, and name a :class:`Kind`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from spmrl_bench.errors import RecipeError, SpmrlError
from spmrl_bench.registry import Registry, imported
from spmrl_bench.trees.parse import Layer


class Kind(NamedTuple):
    """A kind of parser, as far as it is known before its class is imported."""

    place: str
    """``module:class`` of the parser."""
    layers: tuple[Layer, ...]
    """Of annotation that it learns from."""
    metrics: tuple[str, ...]
    """That it is scored by, the most telling first."""
    trained: bool = True
    """Whether it has weights; a kind without any is a baseline."""

    @property
    def parser_class(self) -> Any:
        """Its class, of :class:`~spmrl_bench.parsers.base.Parser`."""
        return imported(self.place)


_HERE = "spmrl_bench.parsers"
_SPANS: tuple[Layer, ...] = ("constituents",)
_ARCS: tuple[Layer, ...] = ("dependencies",)
_F1, _LAS = ("brackets",), ("attachment",)

KINDS: Registry[Kind] = Registry(
    "parser kind",
    _HERE,
    {
        "chart": Kind(f"{_HERE}.chart:ChartParser", _SPANS, _F1),
        "biaffine": Kind(f"{_HERE}.biaffine:BiaffineParser", _ARCS, _LAS),
        "joint": Kind(f"{_HERE}.joint:JointParser", _SPANS + _ARCS, _F1 + _LAS),
        "transition": Kind(f"{_HERE}.transition:TransitionParser", _ARCS, _LAS),
        "right-branching": Kind(f"{_HERE}.baselines:RightBranching", _SPANS, _F1, trained=False),
        "attach-neighbour": Kind(f"{_HERE}.baselines:AttachNeighbour", _ARCS, _LAS, trained=False),
        "random-projective": Kind(
            f"{_HERE}.baselines:RandomProjective", _ARCS, _LAS, trained=False
        ),
        "random-shortest": Kind(f"{_HERE}.baselines:RandomShortest", _ARCS, _LAS, trained=False),
    },
)


def kind_named(name: str, error: type[SpmrlError] = RecipeError) -> Kind:
    """Return the kind of a name; raise the error if there is none, or a package's is no kind."""
    kind = KINDS.get(name, error)
    if not isinstance(kind, Kind):
        raise error(f"parser kind {name}: its package names {kind!r}, which is no Kind")
    return kind


def trained_kinds() -> dict[str, Kind]:
    """Return the kinds that can be trained, by name."""
    return {name: kind for name in KINDS.names() if (kind := kind_named(name)).trained}


def baselines_for(metrics: Sequence[str]) -> dict[str, Kind]:
    """Return the baselines that are scored by one of the metrics, by name."""
    kinds = {name: kind for name in KINDS.names() if not (kind := kind_named(name)).trained}
    return {name: kind for name, kind in kinds.items() if {*kind.metrics} & {*metrics}}
