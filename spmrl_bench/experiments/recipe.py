"""Recipes: what to train for a language, as data.

A language is one short TOML file over the shared ``base.toml``. A run's settings come from these
layers, the later winning: the size's section of the base, the track's, the ``model`` and ``train``
sections of the language, its section for the size, the variant, and the command line. Resolved,
they are a :class:`RunConfig`, which is stored with the run and decides alone what is trained.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, Literal, get_args
from unicodedata import normalize

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    Field,
    SerializeAsAny,
    ValidationError,
    ValidationInfo,
    field_validator,
)

from spmrl_bench.errors import RecipeError, as_value_error, unknown_name
from spmrl_bench.parsers.base import ParserConfig
from spmrl_bench.parsers.kinds import kind_named
from spmrl_bench.scoring.metric import SelectionMetric
from spmrl_bench.scoring.signature import variant_text
from spmrl_bench.storage import toml
from spmrl_bench.storage.digests import digests
from spmrl_bench.storage.paths import check_name, check_path, data_dir, data_dirs, require_inside
from spmrl_bench.training.schedule import TrainConfig
from spmrl_bench.treebanks.catalogue import is_known, language_of, manifest_names
from spmrl_bench.treebanks.manifest import Track

Size = Literal["published", "small"]
#: What languages are called by those who speak them, without accents, and last their ISO 639-1
#: codes, by the names that the manifests of the program have.
LANGUAGES = {
    "arabic": "العربية ar", "basque": "euskara eu", "chinese": "中文 汉语 zh",
    "dutch": "nederlands nl", "english": "en", "french": "francais fr", "german": "deutsch de",
    "hebrew": "עברית he",
    "hungarian": "magyar hu", "icelandic": "islenska is", "indonesian": "indonesia id",
    "japanese": "日本語 ja", "korean": "한국어 ko", "polish": "polski pl",
    "portuguese": "portugues pt", "spanish": "espanol castellano es", "swedish": "svenska sv",
}  # fmt: skip
_ALSO = {also: name for name, others in LANGUAGES.items() for also in others.split()}


def _check(check: Callable[[Any], Any]) -> AfterValidator:
    """What a check refuses is a mistake of the value's key; what it returns is the value. In a
    light context nothing is checked, since that needs torch."""

    def checked(value: Any, info: ValidationInfo) -> Any:
        if (info.context or {}).get("light"):
            return value
        with as_value_error():
            return check(value)

    return AfterValidator(checked)


def _model_checked(values: Mapping[str, Any]) -> Mapping[str, Any]:
    from spmrl_bench.experiments.model_settings import check_model

    check_model(values)
    return values


def _inputs_checked(names: tuple[str, ...]) -> tuple[str, ...]:
    from spmrl_bench.nn.inputs import INPUTS

    for name in names:
        if name not in INPUTS.names():
            raise ValueError(unknown_name("lexical input", name, INPUTS.names()))
        if names.count(name) > 1:
            raise ValueError(f"the input '{name}' is named twice")
    return names


def _trainable(kind: str) -> str:
    if not kind_named(kind).trained:
        raise ValueError("a baseline, which is scored with every test but not trained")
    return kind


Inputs = Annotated[tuple[str, ...], _check(_inputs_checked)]
KindName = Annotated[str, _check(_trainable)]
Selection = Annotated[str, _check(lambda text: str(SelectionMetric.parse(text)))]
TrainLayer: Any = toml.strict_model("TrainLayer", toml.optional_fields(TrainConfig))


class SettingsLayer(BaseModel, extra="forbid"):
    """Settings that one layer gives; what it leaves out comes from the layers below."""

    model: Annotated[dict[str, Any], _check(_model_checked)] = {}
    """Settings of the parser, in a table for each part, or by the short names of settings."""
    train: TrainLayer = TrainLayer()
    """Settings of its training, by key."""


class Variant(SettingsLayer):
    """A model that a recipe trains: a kind of parser, what it reads of a word, own settings."""

    kind: KindName = "chart"
    """The kind of parser: ``chart``, ``biaffine``, ``joint``, ``transition``, or a package's."""
    like: str | None = None
    """Another variant, whose inputs and settings this one has too, its own over them."""
    inputs: Inputs = ()
    """What it reads of a word, its lexical inputs; if none, as the variant that it is ``like``."""
    sizes: tuple[Size, ...] = get_args(Size)
    """The sizes that its settings are for."""
    optional: bool = False
    """Whether it is trained only where it is named, or where no other variant can learn."""
    size: dict[Size, SettingsLayer] = {}
    """Settings for one size only, over those of the variant for all."""
    track: dict[Track, SettingsLayer] = {}
    """Settings for treebanks of one track only, over all others of the variant."""


Variants = dict[
    Annotated[str, AfterValidator(check_name)],  # it becomes part of a folder's name
    Annotated[
        Variant,  # or the list of its inputs
        BeforeValidator(lambda it: {"inputs": it} if isinstance(it, list | tuple) else it),
    ],
]


class BaseRecipe(BaseModel, extra="forbid"):
    """``base.toml``: what all languages share."""

    variants: Variants
    """The model variants by name; dev selects among them."""
    select: Selection | None = None
    """The figure of dev, or sum of figures, that selects, as ``brackets.f1 + attachment.las``; by
    default the sum of the headlines of the kind's metrics."""
    default_size: Annotated[dict[Track, Size], Field(min_length=len(get_args(Track)))]
    """Size used for a treebank of each track unless the user names one."""
    size: Annotated[dict[Size, SettingsLayer], Field(min_length=len(get_args(Size)))]
    """All settings of both sizes that are not left at their default."""
    track: dict[Track, SettingsLayer] = {}
    """Settings for treebanks of one track, over those of the size."""


class LanguageRecipe(SettingsLayer):
    """``<language>.toml``."""

    base: Literal["base"]
    """The shared recipe; one level, always ``base.toml``."""
    treebanks: Annotated[list[str], Field(min_length=1)]
    """Treebanks in order of preference; the first that is present is used."""
    language: str
    """The language of its treebanks, in English and in small letters."""
    size: dict[Size, SettingsLayer] = {}
    """Settings for one size only, over all others of the file."""
    variants: Variants | None = None
    """Variants in place of those of the base."""
    select: Selection | None = None
    """What selects, in place of the base's."""

    @field_validator("treebanks")
    @classmethod
    def _known(cls, names: list[str]) -> list[str]:
        for name in names:
            if not is_known(name):
                raise ValueError(unknown_name("treebank", name, manifest_names()))
        return names

    @field_validator("language")
    @classmethod
    def _of_its_treebanks(cls, language: str, info: ValidationInfo) -> str:
        theirs = {*filter(None, map(language_of, info.data.get("treebanks", ())))}
        if theirs and language not in theirs:
            raise ValueError(f"the language of its treebanks is {' or '.join(sorted(theirs))}")
        return language


class RunConfig(
    BaseModel, extra="forbid", frozen=True, validate_by_name=True, serialize_by_alias=True
):
    """All settings of one run, resolved."""

    recipe: str
    """Name of the recipe."""
    treebank: str
    """Name of the treebank."""
    fingerprint: str
    """Digest of the treebank's layers that the kind learns from, and of what changes them."""
    kind: KindName = "chart"
    """The kind of parser."""
    variant: str
    """Name of the variant, or its lexical inputs joined by ``-``."""
    select: str = "brackets.f1"
    """The figure of dev, or sum of figures, that says which parser is best."""
    size: Size
    """The size whose settings it has."""
    seed: Annotated[int, Field(ge=0, lt=2**53)]
    """Where all its random numbers come from."""
    model: SerializeAsAny[ParserConfig]
    """All settings of the parser, as the kind has them."""
    train: TrainConfig
    """All settings of its training."""
    overrides: dict[str, Any] = Field(default={}, alias="settings")
    """What the command line changed of the recipe: ``section.key`` and value, sorted."""
    files: dict[str, str] = {}
    """SHA-256 of the files of others that ``model`` names, by setting: a path says little."""

    @field_validator("model", mode="plain")
    @classmethod
    def _of_the_kind(cls, value: Any, info: ValidationInfo) -> Any:
        if "kind" not in info.data:
            return value
        config = kind_named(info.data["kind"]).parser_class.Config
        try:
            return config.model_validate(value)
        except ValidationError as error:
            raise toml.moved(error, config, lambda at: at) from None

    @property
    def name(self) -> str:
        """The variant, with what was changed of its recipe in brackets."""
        return variant_text(self.variant, self.overrides)

    @property
    def criterion(self) -> SelectionMetric:
        return SelectionMetric.parse(self.select)


class Recipe(BaseModel):
    """A language's recipe together with its base."""

    name: str
    path: Path
    base: BaseRecipe
    language: LanguageRecipe

    @property
    def variants(self) -> Mapping[str, Variant]:
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
        """The settings of the run of one variant on one treebank, whose layers have fingerprints; a
        RecipeError names all mistakes. Those ``settings`` of the command line are ``model.KEY`` or
        ``train.KEY`` to a value in TOML, or else as text."""
        from spmrl_bench.experiments.model_settings import merge_settings
        from spmrl_bench.parsers.legacy import short

        own = self.variant(variant)
        kind = kind_named(own.kind)
        if lacking := [layer for layer in kind.layers if layer not in fingerprints]:
            raise RecipeError(
                f"variant {variant} learns from {' and '.join(kind.layers)}, but treebank "
                f"{treebank} has no {' and no '.join(lacking)}"
            )
        of_size = self.size_of(track, size)
        if of_size not in own.sizes:
            raise RecipeError(
                f"variant {variant} is for the size {' and '.join(own.sizes)}, not for '{of_size}'"
            )
        criterion = self.language.select or self.base.select or " + ".join(kind.metrics)
        metrics = SelectionMetric.parse(criterion).metrics
        if unscored := [name for name in metrics if name not in kind.metrics]:
            raise RecipeError(
                f"{self.path}: select: '{criterion}' needs the metric {unscored[0]}, but variant "
                f"{variant} (kind {own.kind}) is scored by {', '.join(kind.metrics)}"
            )
        base, language = self.base, self.language
        shared = [base.size[of_size], base.track.get(track), language, language.size.get(of_size)]
        merged = merge_settings(
            kind.parser_class.Config,
            self.inputs_of(variant),
            shared,
            [
                layer
                for each in self._ancestors(variant)
                for layer in (each, each.size.get(of_size), each.track.get(track))
            ],
            settings or {},
        )
        config = toml.validated(
            RunConfig,
            {
                "recipe": self.name,
                "treebank": treebank,
                "fingerprint": "+".join(fingerprints[layer] for layer in kind.layers),
                "kind": own.kind,
                "variant": variant,
                "select": str(SelectionMetric.parse(criterion)),
                "size": of_size,
                "seed": seed,
                **merged.sections,
            },
            f"recipe {self.name} ({variant}, {of_size})",
            RecipeError,
            also=merged.mistakes,
        )
        files = config.model.files()
        for key in sorted(files.keys() - merged.given["model"]):
            # A recipe reads no files but those in the working directory.
            try:
                check_path(files[key])
            except ValueError as error:
                option = f"the command line can name any other: --set model.{key}=PATH"
                raise RecipeError(f"{self.path}: model.{key}: {error}; {option}") from None
            require_inside(Path.cwd(), Path(files[key]), RecipeError)
        try:
            found = digests(short(files))
        except OSError as error:
            raise RecipeError(f"{self.path}: {error.filename}: {error.strerror}") from None
        return config.model_copy(update={"overrides": merged.overrides(config), "files": found})

    def inputs_of(self, variant: str) -> tuple[str, ...]:
        """The lexical inputs of a variant, its own or those of the one that it is like."""
        return next((one.inputs for one in self._ancestors(variant)[::-1] if one.inputs), ())

    def _ancestors(self, name: str) -> list[Variant]:
        """The variants whose settings one has, itself last."""
        found = [self.variant(name)]
        while (like := found[0].like) is not None:
            problem = "" if like in self.variants else unknown_name("variant", like, self.variants)
            if not problem and self.variants[like] in found:
                problem = f"{like} is like this one"
            if problem:
                raise RecipeError(f"{self.path}: variants.{name}.like: {problem}")
            found.insert(0, self.variants[like])
        return found

    def size_of(self, track: Track, size: str | None = None) -> Size:
        """The size asked for, or that of treebanks of a track; a RecipeError if there is none."""
        wanted: Any = size or self.base.default_size[track]
        if wanted not in get_args(Size):
            raise RecipeError(unknown_name("size", wanted, self.base.size))
        return wanted

    def variant(self, name: str) -> Variant:
        """A variant of the recipe, or the one that its lexical inputs joined by ``-`` name."""
        if name in self.variants:
            return self.variants[name]
        from spmrl_bench.nn.inputs import INPUTS

        inputs, known = name.split("-"), INPUTS.names()
        if not set(inputs) <= set(known):
            raise RecipeError(
                f"{unknown_name('variant', name, self.variants)} Lexical inputs joined by "
                f"'-', such as word-tag, are variants too: {', '.join(known)}"
            )
        return toml.validated(Variant, {"inputs": inputs}, f"variant {name}", RecipeError)


def list_recipes() -> list[str]:
    """Names of the shipped recipes, and of the user's own."""
    return sorted(_recipe_paths())


def _recipe_paths() -> dict[str, Path]:
    # A user's own cannot replace one of the program's.
    folders = reversed(data_dirs("recipes"))
    paths = {path.stem: path for folder in folders for path in folder.glob("*.toml")}
    return {name: path for name, path in paths.items() if name != "base"}


def load_recipe(name: str, *, light: bool = False) -> Recipe:
    """A shipped recipe by language, or a user's by the path of its TOML file; by the name of a
    treebank that none names, the base recipe for it. A user's file stands on the ``base.toml``
    beside it, or on the shipped one. A RecipeError has all mistakes of a file, one per line;
    ``light`` leaves unchecked what needs torch."""
    paths = _recipe_paths()
    spoken = re.sub("[\u0300-\u036f]", "", normalize("NFD", name.lower()))
    usual = name if name in paths else _ALSO.get(normalize("NFC", spoken), name)
    path = Path(name) if name.endswith(".toml") else paths.get(usual)
    content: dict[str, Any] | None = None
    if path is None and is_known(name) and recipe_of(name) == name:
        path = data_dir("recipes") / "base.toml"
        content = {"base": "base", "treebanks": [name], "language": language_of(name)}
    if path is None:
        raise RecipeError(unknown_name("language", name, list_recipes(), _ALSO))
    if not path.is_file():
        raise RecipeError(f"{path}: no such recipe file")
    beside = path.with_name("base.toml")
    base_path = beside if beside.is_file() else data_dir("recipes") / "base.toml"
    shared = toml.read_toml(base_path, RecipeError)
    own, context = content or toml.read_toml(path, RecipeError), {"light": light}
    base = toml.validated(BaseRecipe, shared, base_path, RecipeError, context=context)
    language = toml.validated(LanguageRecipe, own, path, RecipeError, context=context)
    return Recipe(name=name if content else path.stem, path=path, base=base, language=language)


def recipe_of(treebank: str) -> str:
    """The name of the first recipe that names a treebank; its own name if there is none."""
    if not is_known(treebank):
        raise RecipeError(unknown_name("treebank", treebank, manifest_names()))
    for name in list_recipes():
        with suppress(RecipeError):
            if treebank in load_recipe(name, light=True).language.treebanks:
                return name
    return treebank


def new_recipe(language: str, treebank: str, longest: int, top: Path) -> tuple[Path, str]:
    """Path and text of a recipe below a folder for a treebank that none names yet, called as the
    language or else as that; it says no more than the positions that the ``longest`` needs."""
    content: dict[str, object] = {"base": "base", "language": language, "treebanks": [treebank]}
    sizes = toml.read_toml(data_dir("recipes") / "base.toml", RecipeError)["size"].values()
    needed = longest + 2  # the ends of a sentence have positions too
    if needed > min(size["model"]["attention"]["max_positions"] for size in sizes):
        content["model"] = {"max_positions": needed}
    folders = [*data_dirs("recipes"), top / "recipes"]
    for name in (language, treebank):
        if not any((folder / f"{name}.toml").exists() for folder in folders):
            return top / "recipes" / f"{name}.toml", toml.toml_text(content)
    raise RecipeError(f"there is a recipe '{treebank}' already: choose another name (--name)")
