"""The settings of a run by key, with their values at both sizes before any variant changes them.

Their classes say what is allowed and what each does (:mod:`spmrl_bench.reference.fields`); a value
is that of ``recipes/base.toml`` where it has one, else the default of the class.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, get_args

from spmrl_bench.errors import RecipeError
from spmrl_bench.experiments.recipe import load_recipe
from spmrl_bench.experiments.recipe_layers import BaseRecipe, Layer, Size
from spmrl_bench.parsers.registry import trained_kinds
from spmrl_bench.reference.fields import Entry, entries
from spmrl_bench.training.config import TrainConfig


@dataclass(frozen=True)
class Setting:
    """One setting that a recipe or ``--set`` can give.

    Attributes:
        key: ``model.NAME`` or ``train.NAME``.
        entry: what is allowed, and what it does.
        kinds: the kinds of parsers that have it.
        values: its value at each size.
    """

    key: str
    entry: Entry
    kinds: tuple[str, ...]
    values: Mapping[Size, Any]


def base_recipe() -> BaseRecipe:
    """What all languages share."""
    return load_recipe("english").base


def run_settings() -> list[Setting]:
    """Every setting of the kinds that can be trained: of the model, then of training.

    Those of the model are in the order of the classes that declare them.
    """
    base = base_recipe()
    kinds = trained_kinds()
    found: dict[str, tuple[Entry, list[str]]] = {}
    for kind in kinds:
        for entry in entries(kind.config_class):
            # The variant decides what is read of a word.
            if entry.name != "lexical":
                found.setdefault(entry.name, (entry, []))[1].append(kind.name)
    order = list(dict.fromkeys(entry.owner for entry, _ in found.values()))
    models = sorted(found.values(), key=lambda pair: order.index(pair[0].owner))
    training = [(entry, [kind.name for kind in kinds]) for entry in entries(TrainConfig)]
    return [
        Setting(f"{section}.{entry.name}", entry, tuple(names), _values(base, section, entry))
        for section, those in (("model", models), ("train", training))
        for entry, names in those
    ]


def _values(base: BaseRecipe, section: str, entry: Entry) -> dict[Size, Any]:
    given = {size: _given(base.size[size], section) for size in get_args(Size)}
    return {size: values.get(entry.name, entry.default) for size, values in given.items()}


def _given(layer: Layer, section: str) -> dict[str, Any]:
    values: dict[str, Any] = getattr(layer, section).model_dump(exclude_unset=True)
    return values


def settings_named(names: Sequence[str]) -> list[Setting]:
    """The settings with these keys (``train.averaging``, ``averaging``), or whose keys begin so
    (``train``, ``model.label``).

    Raises:
        RecipeError: no key is or begins like one of the names.
    """
    known = {setting.key: setting for setting in run_settings()}
    chosen: dict[str, Setting] = {}
    for name in names:
        found = [key for key in known if name in (key, key.partition(".")[2])]
        found = found or [key for key in known if key.startswith(name)]
        if not found:
            near = get_close_matches(name, known, cutoff=0.7)
            hint = f" Did you mean {' or '.join(near)}?" if near else ""
            raise RecipeError(f"unknown setting '{name}'.{hint} 'spmrl-bench settings' lists all")
        chosen |= {key: known[key] for key in found}
    return list(chosen.values())


def changed_by(layer: Layer) -> dict[str, Any]:
    """What a layer of a recipe sets, by key."""
    return {
        f"{section}.{name}": value
        for section in ("model", "train")
        for name, value in _given(layer, section).items()
    }
