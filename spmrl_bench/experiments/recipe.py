"""Recipes: what to train for a language, as data.

A language is one short TOML file over the shared ``base.toml``. A run's settings come from these
layers, the later winning: the size's section of the base, the track's, the ``model`` and ``train``
sections of the language, its section for the size, the variant, and the command line.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel

from spmrl_bench.errors import RecipeError, unknown_name
from spmrl_bench.experiments.recipe import (
    LIGHT,
    BaseRecipe,
    LanguageRecipe,
    RunConfig,
    Size,
    Variant,
)
from spmrl_bench.parsers.registry import Kind, kind_named
from spmrl_bench.scoring.metric import SelectionMetric
from spmrl_bench.storage.digests import digests
from spmrl_bench.storage.paths import check_path, data_dir, data_dirs, require_inside
from spmrl_bench.storage.toml import read_toml, validated
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
        """Return the settings of the run of one variant on one treebank.

        Args:
            treebank: name of the treebank in use; ``track`` is its own.
            fingerprints: of the treebank's layers of annotation.
            variant: one of the recipe's variants, or lexical inputs joined by ``-``.
            size: ``published`` or ``small``; by default the track's.
            settings: of the command line, ``model.KEY`` or ``train.KEY`` to a value in TOML, or
                else as text.

        Raises:
            RecipeError: an unknown variant, size or key, a wrong value, a key that no layer sets,
                or a variant that learns from annotation that the treebank lacks.
        """
        from spmrl_bench.experiments.model_settings import PutTogether
        from spmrl_bench.parsers.legacy import short

        own = self.variant(variant)
        kind = kind_named(own.kind)
        lacking = [layer for layer in kind.layers if layer not in fingerprints]
        if lacking:
            raise RecipeError(
                f"variant {variant} learns from {' and '.join(kind.layers)}, but treebank "
                f"{treebank} has no {' and no '.join(lacking)}"
            )
        of_size = self.size_of(track, size)
        if of_size not in own.sizes:
            raise RecipeError(
                f"variant {variant} is for the size {' and '.join(own.sizes)}, not for '{of_size}'"
            )
        base, language = self.base, self.language
        shared = (base.size[of_size], base.track.get(track), language, language.size.get(of_size))
        variants = [
            layer
            for like in self._likes(variant)
            for layer in (like, like.size.get(of_size), like.track.get(track))
        ]
        put_together = PutTogether(
            kind.parser_class.Config,
            filter(None, shared),
            filter(None, variants),
            self.inputs_of(variant),
            settings or {},
        )
        config = validated(
            RunConfig,
            {
                "recipe": self.name,
                "treebank": treebank,
                "fingerprint": "+".join(fingerprints[layer] for layer in kind.layers),
                "kind": own.kind,
                "variant": variant,
                "select": self._selection(kind, variant),
                "size": of_size,
                "seed": seed,
                **put_together.sections,
            },
            f"recipe {self.name} ({variant}, {of_size})",
            RecipeError,
            also=put_together.mistakes,
        )
        files = config.model.files()
        self._check_files({key: files[key] for key in files.keys() - put_together.touched})
        return config.model_copy(
            update={"settings": put_together.changed(config), "files": digests(short(files))}
        )

    def _check_files(self, files: Mapping[str, str]) -> None:
        for key, place in sorted(files.items()):
            try:
                check_path(place)
            except ValueError as error:
                raise RecipeError(
                    f"{self.path}: model.{key}: {error}; the command line can name any other: "
                    f"--set model.{key}=PATH"
                ) from None
            require_inside(Path.cwd(), Path(place), RecipeError)

    def inputs_of(self, variant: str) -> tuple[str, ...]:
        """The lexical inputs of a variant, its own or those of the one that it is like."""
        found = (each.inputs for each in reversed(self._likes(variant)))
        return next(filter(None, found), ())

    def _likes(self, name: str) -> list[Variant]:
        """The variants whose settings one has, itself last."""
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
        text = self.language.select or self.base.select
        if text is None:
            return str(SelectionMetric.parse(" + ".join(kind.metrics)))
        criterion = SelectionMetric.parse(text)
        lacking = [name for name in criterion.metrics if name not in kind.metrics]
        if lacking:
            raise RecipeError(
                f"{self.path}: select: '{criterion}' needs the metric {lacking[0]}, but variant "
                f"{variant} (kind {self.variant(variant).kind}) is scored by "
                f"{', '.join(kind.metrics)}"
            )
        return text

    def variant(self, name: str) -> Variant:
        """A variant of the recipe, or the one that its lexical inputs joined by ``-`` name.

        Raises:
            RecipeError: there is none of that name.
        """
        if name in self.variants:
            return self.variants[name]
        from spmrl_bench.parsers.config import INPUTS

        inputs, known = name.split("-"), INPUTS.names()
        if not set(inputs) <= set(known):
            raise RecipeError(
                f"{unknown_name('variant', name, self.variants)} Lexical inputs joined by "
                f"'-', such as word-tag, are variants too: {', '.join(known)}"
            )
        return validated(Variant, {"inputs": inputs}, f"variant {name}", RecipeError)


def list_recipes() -> list[str]:
    """Names of the shipped recipes, and of the user's own."""
    return sorted(_recipe_paths())


def _recipe_paths() -> dict[str, Path]:
    """The recipe files by name; a user's own cannot replace one of the program's."""
    folders = reversed(data_dirs("recipes"))
    paths = {path.stem: path for folder in folders for path in folder.glob("*.toml")}
    paths.pop("base", None)
    return paths


def load_recipe(name: str, *, light: bool = False) -> Recipe:
    """A shipped recipe by language, or a user's by the path of its TOML file.

    A user's file stands on the ``base.toml`` beside it, or on the shipped one.

    Args:
        name: of a language, or path.
        light: whether the settings of parsers are left unchecked, which needs torch: for lists.

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
    base_content, context = read_toml(base_path, RecipeError), {LIGHT: light}
    base = validated(BaseRecipe, base_content, base_path, RecipeError, context=context)
    missing = [f"size.{size}" for size in get_args(Size) if size not in base.size]
    missing += [
        f"default_size.{track}" for track in get_args(Track) if track not in base.default_size
    ]
    if missing:
        raise RecipeError("\n".join(f"{base_path}: {key}: missing" for key in missing))
    content = read_toml(path, RecipeError)
    also = _unknown_names(content)
    language = validated(LanguageRecipe, content, path, RecipeError, also=also, context=context)
    return Recipe(name=path.stem, path=path, base=base, language=language)


def _unknown_names(content: Mapping[str, Any]) -> list[str]:
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
    every = {*filter(None, map(language_of, manifest_names()))}
    if language not in every:
        mistakes.append(f"language: {unknown_name('language', language, every)}")
    elif known:
        bank, other = next(iter(known.items()))
        mistakes.append(f"language: found {language!r}, but treebank {bank} is {other}")
    return mistakes
