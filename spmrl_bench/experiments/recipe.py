"""Recipes: what to train for a language, as data.

A language is one short TOML file over the shared ``base.toml``. A run's settings are put
together from five layers, the later winning: the size's section of the base, the track's, the
``model`` and ``train`` sections of the language, its section for the size, and settings from
the command line. The result is a :class:`~spmrl_bench.experiments.run_config.RunConfig`.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel
from pydantic_core import PydanticUndefined

from spmrl_bench.errors import RecipeError, unknown_name
from spmrl_bench.experiments.recipe_layers import (
    BaseRecipe,
    LanguageRecipe,
    Layer,
    ModelLayer,
    Size,
    TrainLayer,
    Variant,
)
from spmrl_bench.experiments.run_config import RunConfig, run_config
from spmrl_bench.parsers.config import PRETRAINED, LexicalInput
from spmrl_bench.parsers.registry import Kind, kind_named
from spmrl_bench.pretrained.digests import digests
from spmrl_bench.scoring.metric import SelectionMetric
from spmrl_bench.storage.paths import data_dir, data_dirs, require_inside
from spmrl_bench.storage.toml import parsed_toml, read_toml, validated
from spmrl_bench.treebanks.catalogue import is_known, language_of, manifest_names
from spmrl_bench.treebanks.manifest import Track


class Recipe(BaseModel):
    """A language's recipe together with its base."""

    name: str
    path: Path
    base: BaseRecipe
    language: LanguageRecipe

    @property
    def variants(self) -> Mapping[str, Variant]:
        """The variants by name."""
        return self.base.variants if self.language.variants is None else self.language.variants

    def resolve(
        self,
        *,
        treebank: str,
        track: Track,
        fingerprints: Mapping[str, str],
        variant: str,
        size: str | None = None,
        seed: int = 1,
        settings: Mapping[str, str] | None = None,
    ) -> RunConfig:
        """Settings of the run of one variant on one treebank.

        Args:
            treebank: name of the treebank in use; ``track`` is its own.
            fingerprints: of the treebank's layers of annotation.
            variant: one of the recipe's variants, or lexical inputs joined by ``-``.
            size: ``published`` or ``small``; by default the track's.
            settings: ``model.KEY`` or ``train.KEY`` to value, from the command line; a
                value is read as TOML where it is TOML, else as text.

        Raises:
            RecipeError: an unknown variant, size or key, a value out of range, a key that no
                layer sets, or a variant that learns from a layer that the treebank lacks.
        """
        own = self.variant(variant)
        kind = kind_named(own.kind)
        lacking = [layer for layer in kind.layers if layer not in fingerprints]
        if lacking:
            raise RecipeError(
                f"variant {variant} learns from {' and '.join(kind.layers)}, but treebank "
                f"{treebank} has no {' and no '.join(lacking)}"
            )
        chosen = self.size_of(track, size)
        if chosen not in own.sizes:
            raise RecipeError(
                f"variant {variant} is for the size {' and '.join(own.sizes)}, not for '{chosen}'"
            )
        merged: dict[str, dict[str, Any]] = {"model": {}, "train": {}}
        for layer in (
            self.base.size[chosen],
            self.base.track.get(track, Layer()),
            self.language,
            self.language.size.get(chosen, Layer()),
        ):
            for section, values in merged.items():
                values.update(getattr(layer, section).model_dump(exclude_unset=True))
        # What all variants share may hold settings of another kind.
        known = kind.config_class.model_fields
        merged["model"] = {key: value for key, value in merged["model"].items() if key in known}
        models = self._likes(variant)
        for each in models:
            for layer in (each, each.size.get(chosen, Layer()), each.track.get(track, Layer())):
                for section, values in merged.items():
                    values.update(getattr(layer, section).model_dump(exclude_unset=True))
        merged["model"]["lexical"] = self.inputs_of(variant)
        recipe_own = {section: dict(values) for section, values in merged.items()}
        self._check_pretrained(merged["model"], settings or {})
        for key, text in (settings or {}).items():
            section, _, name = key.partition(".")
            if section not in merged or not name:
                raise RecipeError(f"setting '{key}': expected model.KEY=VALUE or train.KEY=VALUE")
            if (section, name) == ("model", "lexical"):
                raise RecipeError(f"setting '{key}': the variant decides it; choose a --variant")
            merged[section][name] = _toml_value(text)
        config = run_config(
            {
                "recipe": self.name,
                "treebank": treebank,
                "fingerprint": "+".join(fingerprints[layer] for layer in kind.layers),
                "kind": kind.name,
                "variant": variant,
                "select": self._selection(kind, variant),
                "size": chosen,
                "seed": seed,
                **merged,
            },
            f"recipe {self.name} ({variant}, {chosen})",
            RecipeError,
        )
        return config.model_copy(
            update={
                "settings": _changed(config, recipe_own, sorted(settings or {})),
                "files": digests(config.model.pretrained()),
            }
        )

    def _check_pretrained(self, model: Mapping[str, Any], settings: Mapping[str, str]) -> None:
        """Raise where a pre-trained file of the recipe lies outside of the working directory."""
        for key in sorted(model.keys() & set(PRETRAINED)):
            if model[key] is not None and f"model.{key}" not in settings:
                require_inside(Path.cwd(), Path(model[key]), RecipeError)

    def inputs_of(self, variant: str) -> tuple[LexicalInput, ...]:
        """The lexical inputs of a variant, its own or those of the one that it is like."""
        found = (each.inputs for each in reversed(self._likes(variant)))
        return next(filter(None, found), ())

    def _likes(self, name: str) -> list[Variant]:
        """The variants whose settings one has, itself last.

        Raises:
            RecipeError: one is like a variant that is not there, or at last like itself.
        """
        found = [self.variant(name)]
        while (like := found[0].like) is not None:
            if like not in self.variants:
                known = unknown_name("variant", like, self.variants)
                raise RecipeError(f"{self.path}: variant {name}: like: {known}")
            if self.variants[like] in found:
                raise RecipeError(
                    f"{self.path}: variant {name}: it is like {like}, which is like it"
                )
            found.insert(0, self.variants[like])
        return found

    def size_of(self, track: Track, size: str | None = None) -> Size:
        """The size asked for, or that of treebanks of a track.

        Raises:
            RecipeError: there is no such size.
        """
        for known in get_args(Size):
            if known == (size or self.base.default_size[track]):
                return known
        raise RecipeError(unknown_name("size", size or "", self.base.size))

    def _selection(self, kind: Kind, variant: str) -> str:
        """What selects; it must be of a metric that the kind is scored by."""
        text = self.language.select or self.base.select
        if text is None:
            return str(SelectionMetric.parse(" + ".join(kind.metrics)))
        criterion = SelectionMetric.parse(text)
        lacking = [name for name in criterion.metrics if name not in kind.metrics]
        if lacking:
            raise RecipeError(
                f"{self.path}: select: '{criterion}' needs the metric {lacking[0]}, but variant "
                f"{variant} (kind {kind.name}) is scored by {', '.join(kind.metrics)}"
            )
        return text

    def variant(self, name: str) -> Variant:
        """A variant of the recipe, or the one that its lexical inputs joined by ``-`` name.

        Raises:
            RecipeError: there is none of that name.
        """
        if name in self.variants:
            return self.variants[name]
        inputs, known = name.split("-"), get_args(LexicalInput)
        if not set(inputs) <= set(known):
            raise RecipeError(
                f"{unknown_name('variant', name, self.variants)} Lexical inputs joined by "
                f"'-', such as word-tag, are variants too: {', '.join(known)}"
            )
        return Variant.model_validate({"inputs": inputs})


def _changed(
    config: RunConfig, recipe_own: Mapping[str, Mapping[str, Any]], keys: Sequence[str]
) -> dict[str, Any]:
    """Of the settings of these keys, those whose value is not the recipe's own.

    Raises:
        RecipeError: a value is infinite, which JSON cannot keep.
    """
    found = {}
    for key in keys:
        section, _, name = key.partition(".")
        layer = {"model": ModelLayer, "train": TrainLayer}[section]
        field = type(getattr(config, section)).model_fields[name]
        if field.exclude:
            continue  # it does not change the weights
        # A setting that no layer gives has the default of the model.
        own = recipe_own[section].get(name, field.default)
        comparable = {} if own is PydanticUndefined else {name: own}
        before = layer(**comparable).model_dump(mode="json", exclude_unset=True).get(name, ...)
        now = getattr(config, section).model_dump(mode="json")[name]
        if isinstance(now, float) and not math.isfinite(now):
            raise RecipeError(f"setting '{key}': {now} is no finite number; leave it out instead")
        if now != before:
            found[key] = now
    return found


def _toml_value(text: str) -> Any:
    """A command-line value as TOML reads it, else the text itself."""
    try:
        return parsed_toml(f"value = {text}", finite=False)["value"]
    except tomllib.TOMLDecodeError:
        return text
    except ValueError as error:
        raise RecipeError(f"setting '{text[:40]}': {error}") from None


def list_recipes() -> list[str]:
    """Names of the shipped recipes, and of the user's own."""
    return sorted(_recipe_paths())


def _recipe_paths() -> dict[str, Path]:
    """The recipe files by name; a user's own cannot replace one of the program's."""
    folders = reversed(data_dirs("recipes"))
    paths = {path.stem: path for folder in folders for path in folder.glob("*.toml")}
    paths.pop("base", None)
    return paths


def load_recipe(name: str) -> Recipe:
    """A shipped recipe by language, or a user's by the path of its TOML file.

    A user's file stands on the ``base.toml`` beside it, or on the shipped one.

    Raises:
        RecipeError: no such recipe, or mistakes in a file (all of them, one per line).
    """
    path = Path(name) if name.endswith(".toml") else _recipe_paths().get(name)
    if path is None:
        raise RecipeError(unknown_name("language", name, list_recipes()))
    if not path.is_file():
        raise RecipeError(f"{name}: no such recipe file")
    base_path = path.with_name("base.toml")
    if not base_path.is_file():
        base_path = data_dir("recipes") / "base.toml"
    base = validated(BaseRecipe, read_toml(base_path, RecipeError), base_path, RecipeError)
    missing = [f"size.{size}" for size in get_args(Size) if size not in base.size]
    missing += [
        f"default_size.{track}" for track in get_args(Track) if track not in base.default_size
    ]
    if missing:
        raise RecipeError("\n".join(f"{base_path}: {key}: missing" for key in missing))
    content = read_toml(path, RecipeError)
    also = _unknown_names(content)
    language = validated(LanguageRecipe, content, path, RecipeError, also=also)
    return Recipe(name=path.stem, path=path, base=base, language=language)


def _unknown_names(content: Mapping[str, Any]) -> list[str]:
    """What is wrong with the treebanks that a recipe names, and with its language."""
    language, listed = content.get("language"), content.get("treebanks")
    if not isinstance(listed, list) or not all(isinstance(bank, str) for bank in listed):
        listed = []  # the schema says so
    mistakes = [
        f"treebanks: {unknown_name('treebank', bank, manifest_names())}"
        for bank in listed
        if not is_known(bank)
    ]
    known = {bank: found for bank in listed if (found := language_of(bank)) is not None}
    if not isinstance(language, str) or language in known.values():
        return mistakes
    every = {found for bank in manifest_names() if (found := language_of(bank)) is not None}
    if language not in every:
        mistakes.append(f"language: {unknown_name('language', language, every)}")
    elif known:
        bank, other = next(iter(known.items()))
        mistakes.append(f"language: found {language!r}, but treebank {bank} is {other}")
    return mistakes
