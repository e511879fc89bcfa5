"""Which run a record is of: its settings as they were resolved, whoever gave them.

Two runs of one variant are one experiment only where every setting agrees that can change the
weights, from wherever it came. One that a record lacks has its default, or what was done before
there was the setting (:mod:`spmrl_bench.parsers.legacy`), and a file of somebody else counts by its
content.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from spmrl_bench.leaderboard.record import SEARCHES, Record, Search, read_search
from spmrl_bench.parsers.config import defaults_of, parts
from spmrl_bench.parsers.legacy import (
    OPTIONAL,
    leaves,
    nested,
    short,
)
from spmrl_bench.parsers.registry import KINDS, kind_named
from spmrl_bench.training.config import TrainConfig

# A setting that is no part of what a search has found.
_MINUTES = "train.max_minutes"

Resolved = Mapping[str, Any]
"""``section.key`` and value as in JSON."""

#: Tables of a recorded recipe that hold no settings.
_NO_SECTIONS = frozenset({"settings", "files", "fingerprints", "model"})
#: Settings that the program leaves out where it notes a run: they do not change its weights.
_NOT_NOTED = {f"train.{key}" for key, field in TrainConfig.model_fields.items() if field.exclude}


def resolved_settings(recipe: Mapping[str, Any]) -> Resolved:
    """All that decides what a run learns but its seed and treebank, from a recipe as recorded.

    Settings of the parser have their short names where these say exactly the same.
    """
    kind = str(recipe.get("kind", "chart"))
    found: dict[str, Any] = {
        f"train.{key}": value for key, value in defaults_of(TrainConfig).items()
    }
    for section, values in recipe.items():
        if isinstance(values, Mapping) and section not in _NO_SECTIONS:
            found |= {f"{section}.{key}": value for key, value in values.items()}
    found |= recipe.get("settings") or {}
    if isinstance(model := recipe.get("model"), Mapping):
        own = nested(model)
        settings = short(defaults(kind, own) | leaves(own))
        found |= {f"model.{key}": value for key, value in settings.items()}
    for key, content in (recipe.get("files") or {}).items():
        found[f"model.{key.removeprefix('model.')}"] = content
    found |= {"kind": kind, "select": recipe.get("select", "brackets.f1")}
    return {key: found[key] for key in sorted(found.keys() - _NOT_NOTED)}


def is_of(record: Record, recipe: Mapping[str, Any], weights: Sequence[str]) -> bool:
    """Whether a record is of runs with these settings and weights.

    Weights alone do not tell: runs that differ in what is read off, or in the name of their
    treebank, may end alike.
    """
    names = ("variant", "size", "seed")
    return (
        record.members == list(weights)
        and record.treebank.name == recipe.get("treebank")
        and all(record.recipe.get(name) == recipe.get(name) for name in names)
        and resolved_settings(record.recipe) == resolved_settings(recipe)
    )


def searches_behind(folder: Path, recipe: Mapping[str, Any]) -> list[Search]:
    """The searches beside the runs of a treebank that resolved settings come from.

    Where a trial had these settings, whatever its seed and its time, these are all searches for the
    variant, since the later ones go on from what the earlier ones have shown.
    """

    def comparable(settings: Mapping[str, Any]) -> dict[str, Any]:
        found = resolved_settings(settings).items()
        return {key: value for key, value in found if key != _MINUTES and value is not None}

    own, names = comparable(recipe), ("treebank", "variant", "size", "kind")
    found = []
    for place in sorted(folder.glob(f"{SEARCHES}*")):
        document = read_search(place)
        if document and all(document.base.get(name) == recipe.get(name) for name in names):
            tried = (n for n, one in sorted(document.recipes.items()) if comparable(one) == own)
            found.append(document.search.model_copy(update={"found": next(tried, None)}))
    return found if any(search.found is not None for search in found) else []


def digest(settings: Resolved) -> str:
    """What stands for the settings: 16 digits of a hash."""
    given = {key: value for key, value in settings.items() if value is not None}
    return hashlib.sha256(json.dumps(given, sort_keys=True).encode()).hexdigest()[:16]


def differing_settings(several: Iterable[Resolved]) -> list[str]:
    """The keys whose values are not the same in all, sorted."""
    listed = list(several)
    keys = sorted({key for settings in listed for key in settings})
    return [key for key in keys if any(one.get(key) != listed[0].get(key) for one in listed)]


def defaults(kind: str, model: Mapping[str, Any]) -> dict[str, Any]:
    """The defaults by dotted key of a parser with these settings; none of what is not installed."""
    if kind not in KINDS.names():
        return {}
    config = kind_named(kind).parser_class.Config
    there = leaves(model)
    tables = parts(config, {*there.get("inputs", ()), str(there.get("encoder"))})
    found = {key: value for key, value in defaults_of(config).items() if key not in tables}
    for name, part in tables.items():
        if name in OPTIONAL:
            found[f"{name}.use"] = False
        if there.get(f"{name}.use", True):
            found |= {f"{name}.{key}": value for key, value in defaults_of(part).items()}
    return found
