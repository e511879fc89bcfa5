"""The settings of a run by key, with their values at both sizes before any variant changes them.

Their classes say what is allowed and what each does (:mod:`spmrl_bench.reference.fields`); a value
is that of ``recipes/base.toml`` where it has one, else the default of the class.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any, get_args

from spmrl_bench.errors import RecipeError
from spmrl_bench.experiments.model_settings import all_parts
from spmrl_bench.experiments.recipe import BaseRecipe, SettingsLayer, Size, load_recipe
from spmrl_bench.parsers.base import ParserConfig
from spmrl_bench.parsers.config import ENCODERS, parts
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
    found: dict[str, tuple[Entry, list[str]]] = {}
    kinds = trained_kinds()
    for name, kind in kinds.items():
        for key, entry in _of_model(kind.parser_class.Config):
            found.setdefault(f"model.{key}", (entry, []))[1].append(name)
    found |= {f"train.{one.name}": (one, [*kinds]) for one in entries(TrainConfig)}
    base = base_recipe()
    given = {size: changed_by(base.size[size]) for size in get_args(Size)}
    settings = [
        Setting(
            key,
            entry,
            tuple(names),
            {size: values.get(key, entry.default) for size, values in given.items()},
        )
        for key, (entry, names) in found.items()
    ]
    return sorted(settings, key=lambda one: (one.key.startswith("train."), one.key.count(".") > 1))


def _of_model(config: type[ParserConfig]) -> Iterator[tuple[str, Entry]]:
    """The settings that a recipe can give; the inputs are the variant's affair."""
    tables = parts(config)
    for entry in entries(config):
        if entry.name == "encoder":
            names = ", ".join(f"`{name}`" for name in ENCODERS.names())
            yield entry.name, replace(entry, allowed=names, default="attention")
        elif entry.name not in (*tables, "inputs"):
            yield entry.name, entry
    for table, part in tables.items():
        yield from ((f"{table}.{entry.name}", entry) for entry in entries(part))
        if table in OPTIONAL:
            use = Entry("use", "`true`, `false`", False, "Whether the parser has one.", part)
            yield f"{table}.use", use


def settings_named(names: Sequence[str]) -> list[Setting]:
    """The settings with these keys (``train.averaging``, ``averaging``) or short names (``d_ff``),
    or whose keys begin so (``train``, ``model.label``).

    Raises:
        RecipeError: no key is or begins like one of the names.
    """
    known = run_settings()
    chosen: dict[str, Setting] = {}
    for name in names:
        called = {name, f"model.{name}", f"train.{name}"}
        found = [one for one in known if not called.isdisjoint((one.key, *one.short))]
        found = found or [one for one in known if one.key.startswith(name)]
        if not found:
            every = {key: None for one in known for key in (one.key, *one.short)}
            near = get_close_matches(name, every, cutoff=0.7)
            hint = f" Did you mean {' or '.join(near)}?" if near else ""
            raise RecipeError(
                f"unknown setting '{name}'.{hint} 'spmrl-bench recipes show' lists all"
            )
        chosen |= {one.key: one for one in found}
    return list(chosen.values())


def changed_by(layer: SettingsLayer) -> dict[str, Any]:
    """What a layer of a recipe sets, by key."""
    model = dotted(in_tables(layer.model, all_parts()))
    return dotted({"model": model, "train": layer.train.model_dump(exclude_unset=True)})
