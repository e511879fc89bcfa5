"""The settings of a run by key, with their values at both sizes before any variant changes them.

Their classes say what is allowed and what each does (:mod:`spmrl_bench.reference.fields`); a value
is that of ``recipes/base.toml`` where it has one, else the default of the class.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any, get_args

from spmrl_bench.errors import RecipeError
from spmrl_bench.experiments.model_settings import all_parts
from spmrl_bench.experiments.recipe import BaseRecipe, SettingsLayer, Size, load_recipe
from spmrl_bench.parsers.config import ENCODERS, NeuralConfig, parts
from spmrl_bench.parsers.legacy import FLAT, OPTIONAL, dotted, in_tables
from spmrl_bench.parsers.registry import trained_kinds
from spmrl_bench.reference.fields import Entry, entries
from spmrl_bench.training.config import TrainConfig


@dataclass(frozen=True)
class Setting:
    """One setting that a recipe or ``--set`` can give.

    Attributes:
        key: ``model.NAME``, ``model.TABLE.NAME`` or ``train.NAME``.
        entry: what is allowed, and what it does.
        kinds: the kinds of parsers that have it.
        values: its value at each size.
    """

    key: str
    entry: Entry
    kinds: tuple[str, ...]
    values: Mapping[Size, Any]

    @property
    def short(self) -> list[str]:
        """Short names that set it too, perhaps with settings of other parts."""
        place = self.key.removeprefix("model.")
        return [f"model.{name}" for name, places in FLAT.items() if place in places]


def base_recipe() -> BaseRecipe:
    """What all languages share."""
    return load_recipe("english").base


def run_settings() -> list[Setting]:
    """Every setting of the kinds that can be trained: of the model by part, then of training."""
    base, kinds = base_recipe(), trained_kinds()
    found: dict[str, tuple[Entry, list[str]]] = {}
    for name, kind in kinds.items():
        config = kind.parser_class.Config
        tables = parts(config)
        # The variant decides what is read of a word.
        entries_of = {
            one.name: one for one in entries(config) if one.name not in (*tables, "inputs")
        }
        for table, part in tables.items():
            entries_of |= {f"{table}.{one.name}": one for one in entries(part)}
        for key, entry in entries_of.items():
            found.setdefault(f"model.{key}", (entry, []))[1].append(name)
    for name, part in parts(NeuralConfig).items():
        if name in OPTIONAL:
            use = Entry("use", "`true`, `false`", False, "Whether the parser has one.", part)
            found[f"model.{name}.use"] = (
                use,
                found[f"model.{name}.{next(iter(part.model_fields))}"][1],
            )
    encoder = found["model.encoder"][0]
    names = ", ".join(f"`{name}`" for name in ENCODERS.names())
    found["model.encoder"] = (
        replace(encoder, allowed=names, default="attention"),
        found["model.encoder"][1],
    )
    found |= {f"train.{one.name}": (one, [*kinds]) for one in entries(TrainConfig)}
    given = {size: changed_by(base.size[size]) for size in get_args(Size)}
    order = sorted(found, key=lambda key: (key.startswith("train."), key.count(".") > 1))
    return [
        Setting(
            key,
            found[key][0],
            tuple(found[key][1]),
            {size: values.get(key, found[key][0].default) for size, values in given.items()},
        )
        for key in order
    ]


def settings_named(names: Sequence[str]) -> list[Setting]:
    """The settings with these keys (``train.averaging``, ``averaging``) or short names (``d_ff``),
    or whose keys begin so (``train``, ``model.label``).

    Raises:
        RecipeError: no key is or begins like one of the names.
    """
    known = {setting.key: setting for setting in run_settings()}
    chosen: dict[str, Setting] = {}
    for name in names:
        found = [
            key
            for key, one in known.items()
            if name in (key, key.partition(".")[2])
            or name in one.short
            or f"model.{name}" in one.short
        ]
        found = found or [key for key in known if key.startswith(name)]
        if not found:
            every = dict.fromkeys([*known, *(key for one in known.values() for key in one.short)])
            near = get_close_matches(name, every, cutoff=0.7)
            hint = f" Did you mean {' or '.join(near)}?" if near else ""
            raise RecipeError(f"unknown setting '{name}'.{hint} 'spmrl-bench settings' lists all")
        chosen |= {key: known[key] for key in found}
    return list(chosen.values())


def changed_by(layer: SettingsLayer) -> dict[str, Any]:
    """What a layer of a recipe sets, by key."""
    model = dotted(in_tables(layer.model, all_parts()))
    train = layer.train.model_dump(exclude_unset=True)
    return {
        **{f"model.{key}": value for key, value in model.items()},
        **{f"train.{key}": value for key, value in train.items()},
    }
