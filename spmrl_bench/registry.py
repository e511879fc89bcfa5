"""Parts of the program by name: its own, and those that installed packages add.

A package adds its own through entry points, in a group that the registry names. Only installed
packages are asked: a recipe, a manifest or a saved parser can name a part but cannot bring code.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from functools import cached_property
from importlib.metadata import entry_points
from typing import Any, Generic, TypeVar

from spmrl_bench.errors import SpmrlError, unknown_name

Part = TypeVar("Part")


class Registry(Generic[Part]):
    """Objects by name, each imported when it is first asked for."""

    def __init__(self, what: str, group: str, own: Mapping[str, str | Part]) -> None:
        """Have the program's ``own`` by name, which no package can replace, each an object or the
        ``module:attribute`` where it is, and those that packages name in entry points of a
        ``group``; messages say ``what`` they are."""
        self._what, self._group, self._own = what, group, own

    @cached_property
    def _places(self) -> dict[str, str | Part]:
        return {each.name: each.value for each in entry_points(group=self._group)} | {**self._own}

    def names(self) -> list[str]:
        """Return all names: the program's own in their order, then those of packages, sorted."""
        return [*self._own, *sorted(self._places.keys() - self._own.keys())]

    def get(self, name: str, error: type[SpmrlError] = SpmrlError) -> Part:
        """Return the object of a name; an ``error`` if there is none, or it cannot be imported."""
        if name not in self._places:
            raise error(unknown_name(self._what, name, self.names()))
        place = self._places[name]
        try:
            return imported(place) if isinstance(place, str) else place
        except (ImportError, AttributeError) as problem:
            raise error(f"{self._what} {name}: cannot import {place}: {problem}") from problem


def imported(place: str) -> Any:
    """Return the object at ``module:attribute``."""
    module, _, attribute = place.partition(":")
    return getattr(importlib.import_module(module), attribute)
