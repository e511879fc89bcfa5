"""What recipe files may say: layers of settings, variants, and what a language has of its own.

A layer has any of the keys of the kinds' configurations, none required, each checked as the
configuration of a run checks it.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    create_model,
    field_validator,
)

from spmrl_bench.errors import RecipeError, ScoreError
from spmrl_bench.parsers.config import PRETRAINED, LexicalInput
from spmrl_bench.parsers.registry import kind_named, trained_kinds
from spmrl_bench.scoring.metric import SelectionMetric
from spmrl_bench.storage.paths import check_name, check_path
from spmrl_bench.training.config import TrainConfig
from spmrl_bench.treebanks.manifest import Track

Size = Literal["published", "small"]


def _pretrained(text: str) -> str:
    """A pre-trained file or folder, or the name of one on a hub, as a recipe may name it."""
    try:
        return check_path(text)
    except ValueError as error:
        raise ValueError(
            f"{error}; the command line can name any other: --set model.KEY=PATH"
        ) from None


def _all_optional(*models: type[BaseModel], without: frozenset[str] = frozenset()) -> Any:
    """A model with the keys and checks of all models, none required: a layer of settings.

    Of a key that several models have, the check is that of the first; a run's own model checks
    the value again when its settings are put together.
    """
    fields: dict[str, Any] = {}
    for model in models:
        for name, field in model.model_fields.items():
            if name not in without and name not in fields:
                checked: Any = field.annotation
                for check in field.metadata:
                    checked = Annotated[checked, check]
                if name in PRETRAINED:
                    checked = Annotated[str, AfterValidator(_pretrained)]
                fields[name] = (checked | None, None)
    name = f"Some{models[0].__name__}"
    return create_model(name, __config__=ConfigDict(extra="forbid"), **fields)


# The lexical inputs are what the variants vary, so no layer may set them.
ModelLayer: Any = _all_optional(
    *(kind.config_class for kind in trained_kinds()), without=frozenset({"lexical"})
)
TrainLayer: Any = _all_optional(TrainConfig)


class Layer(BaseModel):
    """Settings that one layer gives; what it leaves out comes from the layers below."""

    model_config = ConfigDict(extra="forbid")

    model: ModelLayer = Field(default_factory=ModelLayer)
    """Settings of the parser, by key."""
    train: TrainLayer = Field(default_factory=TrainLayer)
    """Settings of its training, by key."""


def _inputs_alone(value: Any) -> Any:
    """A variant that is written as the list of its inputs."""
    return {"inputs": value} if isinstance(value, list | tuple) else value


def _one_at_least(value: tuple[Size, ...]) -> tuple[Size, ...]:
    # Unlike a bound of the schema's, this says nothing where an item is wrong.
    if not value:
        raise ValueError("expected one at least")
    return value


class Variant(Layer):
    """A model that a recipe trains: a kind of parser, what it reads of a word, own settings."""

    kind: str = "chart"
    """The kind of parser: ``chart``, ``biaffine``, ``joint`` or ``transition``, or one that an
    installed package adds."""
    like: str | None = None
    """Another variant, whose inputs and settings this one has too, its own over them."""
    inputs: tuple[LexicalInput, ...] = ()
    """What it reads of a word, its lexical inputs; those of the variant that it is ``like`` if
    there are none."""
    sizes: Annotated[tuple[Size, ...], AfterValidator(_one_at_least)] = get_args(Size)
    """The sizes that its settings are for."""
    optional: bool = False
    """Whether it is trained only where it is named, or where no other variant can learn."""
    size: dict[Size, Layer] = Field(default_factory=dict)
    """Settings for one size only, over those of the variant for all."""
    track: dict[Track, Layer] = Field(default_factory=dict)
    """Settings for treebanks of one track only, over all others of the variant."""

    @field_validator("kind")
    @classmethod
    def _kind_can_be_trained(cls, name: str) -> str:
        try:
            trained = kind_named(name).trained
        except RecipeError as error:
            raise ValueError(str(error)) from None
        if not trained:
            raise ValueError("a baseline, which is scored with every test but not trained")
        return name


Variants = dict[
    Annotated[str, AfterValidator(check_name)],  # it becomes part of a folder's name
    Annotated[Variant, BeforeValidator(_inputs_alone)],
]


def _criterion(text: str) -> str:
    """The text of what selects, as it is always written."""
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
    default the headlines of the metrics of the variant's kind, summed up."""
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
