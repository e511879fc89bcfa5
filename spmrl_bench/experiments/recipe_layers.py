"""What recipe files may say: layers of settings, variants, and what a language has of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationInfo,
    create_model,
)

from spmrl_bench.errors import RecipeError, ScoreError, unknown_name
from spmrl_bench.parsers.registry import kind_named
from spmrl_bench.scoring.metric import SelectionMetric
from spmrl_bench.storage.paths import check_name
from spmrl_bench.training.config import TrainConfig
from spmrl_bench.treebanks.manifest import Track

Size = Literal["published", "small"]


def some(name: str, fields: Mapping[str, Any]) -> Any:
    """Return a model with these fields and no others."""
    return create_model(name, __config__=ConfigDict(extra="forbid"), **fields)


def optional(model: type[BaseModel]) -> dict[str, Any]:
    """Return the fields of a model with their checks, none required."""
    fields = {}
    for name, field in model.model_fields.items():
        checked: Any = field.annotation
        for check in field.metadata:
            checked = Annotated[checked, check]
        fields[name] = (checked | None, None)
    return fields


TrainLayer: Any = some("TrainLayer", optional(TrainConfig))


#: In the context of a validation: what takes the classes of the parts is left out.
LIGHT = "light"


def _model_unless_light(values: dict[str, Any], info: ValidationInfo) -> dict[str, Any]:
    if values and not (info.context or {}).get(LIGHT):
        from spmrl_bench.experiments.model_settings import check_model

        check_model(values)
    return values


def _inputs_unless_light(names: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
    if names and not (info.context or {}).get(LIGHT):
        from spmrl_bench.nn.inputs import INPUTS

        for name in names:
            if name not in INPUTS.names():
                raise ValueError(unknown_name("lexical input", name, INPUTS.names()))
            if names.count(name) > 1:
                raise ValueError(f"the input '{name}' is named twice")
    return names


Inputs = Annotated[tuple[str, ...], AfterValidator(_inputs_unless_light)]


class Layer(BaseModel):
    """Settings that one layer gives; what it leaves out comes from the layers below."""

    model_config = ConfigDict(extra="forbid")

    model: Annotated[dict[str, Any], AfterValidator(_model_unless_light)] = Field(
        default_factory=dict
    )
    """Settings of the parser, in a table for each part, or by the short names of settings."""
    train: TrainLayer = Field(default_factory=TrainLayer)
    """Settings of its training, by key."""


def _inputs_alone(value: Any) -> Any:
    return {"inputs": value} if isinstance(value, list | tuple) else value


def _one_at_least(value: tuple[Size, ...]) -> tuple[Size, ...]:
    # Unlike a bound of the schema's, this says nothing where an item is wrong.
    if not value:
        raise ValueError("expected one at least")
    return value


def _can_be_trained(kind: str) -> str:
    try:
        trained = kind_named(kind).trained
    except RecipeError as error:
        raise ValueError(str(error)) from None
    if not trained:
        raise ValueError("a baseline, which is scored with every test but not trained")
    return kind


KindName = Annotated[str, AfterValidator(_can_be_trained)]


class Variant(Layer):
    """A model that a recipe trains: a kind of parser, what it reads of a word, own settings."""

    kind: KindName = "chart"
    """The kind of parser: ``chart``, ``biaffine``, ``joint``, ``transition``, or a package's."""
    like: str | None = None
    """Another variant, whose inputs and settings this one has too, its own over them."""
    inputs: Inputs = ()
    """What it reads of a word, its lexical inputs; if none, as the variant that it is ``like``."""
    sizes: Annotated[tuple[Size, ...], AfterValidator(_one_at_least)] = get_args(Size)
    """The sizes that its settings are for."""
    optional: bool = False
    """Whether it is trained only where it is named, or where no other variant can learn."""
    size: dict[Size, Layer] = Field(default_factory=dict)
    """Settings for one size only, over those of the variant for all."""
    track: dict[Track, Layer] = Field(default_factory=dict)
    """Settings for treebanks of one track only, over all others of the variant."""


Variants = dict[
    Annotated[str, AfterValidator(check_name)],  # it becomes part of a folder's name
    Annotated[Variant, BeforeValidator(_inputs_alone)],  # or the list of its inputs
]


def _criterion(text: str) -> str:
    try:
        return str(SelectionMetric.parse(text))
    except ScoreError as error:
        raise ValueError(str(error)) from None


Selection = Annotated[str, AfterValidator(_criterion)]


class BaseRecipe(BaseModel):
    """``base.toml``: what all languages share."""

    model_config = ConfigDict(extra="forbid")

    variants: Variants
    """The model variants by name; dev selects among them."""
    select: Selection | None = None
    """The figure of dev, or sum of figures, that selects, as ``brackets.f1 + attachment.las``; by
    default the sum of the headlines of the kind's metrics."""
    default_size: dict[Track, Size]
    """Size used for a treebank of each track unless the user names one."""
    size: dict[Size, Layer]
    """All settings of both sizes that are not left at their default."""
    track: dict[Track, Layer] = Field(default_factory=dict)
    """Settings for treebanks of one track, over those of the size."""


class LanguageRecipe(Layer):
    """``<language>.toml``."""

    base: Literal["base"]
    """The shared recipe; one level, always ``base.toml``."""
    language: str
    """The language of its treebanks, in English and in small letters."""
    treebanks: Annotated[list[str], Field(min_length=1)]
    """Treebanks in order of preference; the first that is present is used."""
    size: dict[Size, Layer] = Field(default_factory=dict)
    """Settings for one size only, over all others of the file."""
    variants: Variants | None = None
    """Variants in place of those of the base."""
    select: Selection | None = None
    """What selects, in place of the base's."""
