"""Which run a record is of: its settings as they were resolved, whoever gave them.

Two runs of one variant are one experiment only where every setting agrees that can change the
weights. What the command line changed is a part of a run's name; what a recipe says is not, and
neither are settings that came in since a record was written. So a run is known by all of its
settings: one that a record lacks has its default, or what was done before there was the setting
(:meth:`~spmrl_bench.parsers.config.ParserConfig.noted`), and a pre-trained file counts by its
content.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from spmrl_bench.leaderboard.record import Record
from spmrl_bench.parsers.registry import KINDS, kind_named
from spmrl_bench.training.config import TrainConfig

Resolved = Mapping[str, Any]
"""``section.key`` and value as in JSON."""

#: Tables of a recorded recipe that hold no settings.
_NO_SECTIONS = frozenset({"settings", "files", "fingerprints"})


def resolved_settings(recipe: Mapping[str, Any]) -> Resolved:
    """All that decides what a run learns, but for its seed and its treebank.

    Args:
        recipe: as a record keeps it.
    """
    kind = str(recipe.get("kind", "chart"))
    model = recipe.get("model")
    if isinstance(model, Mapping) and kind in KINDS.names():
        recipe = {**recipe, "model": kind_named(kind).config_class.noted(model)}
    sections = {
        f"{section}.{key}": value
        for section, values in recipe.items()
        if isinstance(values, Mapping) and section not in _NO_SECTIONS
        for key, value in values.items()
    }
    found = {
        **defaults(kind),
        **sections,
        **(recipe.get("settings") or {}),
        **(recipe.get("files") or {}),
        "kind": kind,
        "select": recipe.get("select", "brackets.f1"),
    }
    fields = _fields(kind)
    # A setting that the program leaves out where it notes a run does not change its weights.
    return {
        key: value
        for key, value in sorted(found.items())
        if key not in fields or not fields[key].exclude
    }


def is_of(record: Record, recipe: Mapping[str, Any], weights: Sequence[str]) -> bool:
    """Whether a record is of runs with these settings and weights.

    Weights alone do not tell: runs whose settings change only what is read off may end alike, and
    so do those on one treebank under two names.
    """
    names = ("variant", "size", "seed")
    return (
        record.members == list(weights)
        and record.treebank.name == recipe["treebank"]
        and all(record.recipe.get(name) == recipe.get(name) for name in names)
        and resolved_settings(record.recipe) == resolved_settings(recipe)
    )


def digest(settings: Resolved) -> str:
    """What stands for the settings: 16 digits of a hash."""
    given = {key: value for key, value in settings.items() if value is not None}
    return hashlib.sha256(json.dumps(given, sort_keys=True).encode()).hexdigest()[:16]


def differing_settings(several: Iterable[Resolved]) -> list[str]:
    """The keys whose values are not the same in all, sorted."""
    listed = list(several)
    keys = sorted({key for settings in listed for key in settings})
    return [key for key in keys if any(one.get(key) != listed[0].get(key) for one in listed)]


@cache
def defaults(kind: str) -> Resolved:
    """The settings of a kind of parser and of its training that have a default."""
    return {
        key: json.loads(json.dumps(field.get_default(call_default_factory=True)))
        for key, field in _fields(kind).items()
        if not field.is_required()
    }


@cache
def _fields(kind: str) -> Mapping[str, FieldInfo]:
    """All settings; of a kind that is not installed those of training."""
    sections: dict[str, type[BaseModel]] = {"train": TrainConfig}
    if kind in KINDS.names():
        sections["model"] = kind_named(kind).config_class
    return {
        f"{section}.{name}": field
        for section, config in sections.items()
        for name, field in config.model_fields.items()
    }
