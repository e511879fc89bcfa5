"""Settings of parsers that are neural networks: inputs, encoder and tagger, of every kind alike.

The settings of a part stand with the part, and those of an input or an encoder are checked by the
class that its registry names. What stands here concerns several parts. Mistakes are named as
recipes have the tables of the parts, beside each other: ``charlstm.d_char``.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import suppress
from functools import cache
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import (
    BaseModel,
    Field,
    ModelWrapValidatorHandler,
    SerializeAsAny,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError, to_jsonable_python

from spmrl_bench.errors import SpmrlError
from spmrl_bench.nn.encoders import ENCODERS
from spmrl_bench.nn.encoders.label_attention import LabelAttention
from spmrl_bench.nn.inputs import INPUTS
from spmrl_bench.nn.layers import Initialisation
from spmrl_bench.nn.scorers import Tagger
from spmrl_bench.nn.settings import InputSettings, Settings
from spmrl_bench.parsers.base import ParserConfig
from spmrl_bench.registry import Registry
from spmrl_bench.storage.toml import UNKNOWN, moved

#: Settings that are tables of parts, each checked by the class that a registry names.
_OF_PARTS: Mapping[str, Registry[Any]] = {"inputs": INPUTS, "encoder": ENCODERS}


class NeuralConfig(ParserConfig):
    """Inputs, encoder and tagger of one parser, whatever it reads off the encoded tokens.

    Settings with a default are options of the model, the default being the form of the paper.
    """

    d_model: Annotated[int, Field(ge=4, le=16384, multiple_of=4)]
    """Width of a token vector."""
    inputs: Annotated[dict[str, SerializeAsAny[InputSettings]], Field(min_length=1)]
    """What the parser reads of a word: lexical inputs, which make the content together."""
    join: Literal["sum", "concatenated"] = "sum"
    """Whether the inputs are added up, or stand side by side, each with a width of its own, which
    must add up to the content of attention."""
    encoder: Annotated[dict[str, SerializeAsAny[Settings]], Field(min_length=1, max_length=1)]
    """What reads the sentence."""
    label_attention: LabelAttention.Config | None = None
    """Label attention on top of the encoder."""
    tagger: Tagger.Config | None = None
    """What learns to tag, from the encoded tokens and together with the trees."""
    initialisation: Initialisation = "usual"
    """Random weights: each layer's own, or all drawn as Zhang et al. 2017 print it
    (``glorot-normal``) or probably mean it (``glorot-uniform``), and the biases zero."""

    @property
    def own_encoder(self) -> tuple[str, Any]:
        """Name of the encoder, and its settings."""
        return next(iter(self.encoder.items()))

    @property
    def d_content(self) -> int:
        """Width of the content, which the inputs make and the encoder takes."""
        if self.join == "concatenated":
            return sum(own.width or 0 for own in self.inputs.values())
        name, own = self.own_encoder
        return ENCODERS.get(name).d_content(own, self.d_model)

    def cost(self) -> float:
        cost = float(self.d_model**2 * (1 + getattr(self.own_encoder[1], "layers", 1)))
        if (labels := self.label_attention) is not None:
            cost += (labels.heads or 100) * labels.d_proj * labels.d_ff  # how many is not known yet
        return cost

    @field_validator(*_OF_PARTS, mode="before")
    @classmethod
    def _tables(cls, tables: Any, field: ValidationInfo) -> Any:
        if not isinstance(tables, Mapping):
            return tables
        registry = _OF_PARTS[str(field.field_name)]
        found, known = {}, registry.names()
        # In the order of the registry, in which inputs are summed.
        for name in sorted(tables, key=lambda name: known.index(name) if name in known else -1):
            try:
                config = _config_of(registry, str(name))
            except SpmrlError as error:
                raise PydanticCustomError(UNKNOWN, "{reason}", {"reason": str(error)}) from None
            try:
                found[name] = config.model_validate(tables[name])
            except ValidationError as error:
                raise moved(error, config, lambda place: (name, *place)) from None  # noqa: B023
        return found

    @model_validator(mode="wrap")
    @classmethod
    def _named_as_in_recipes(cls, value: Any, check: ModelWrapValidatorHandler[Self]) -> Self:
        """Recipes have the tables of inputs and encoders beside each other."""
        try:
            return check(value)
        except ValidationError as error:
            raise moved(error, cls, lambda at: at[at[0] in _OF_PARTS and len(at) > 1 :]) from None

    @model_validator(mode="after")
    def _parts_fit(self) -> Self:
        (encoder, own), width = self.own_encoder, self.d_content
        for name, of_input in self.inputs.items():
            if self.join == "sum" and of_input.width is not None:
                raise ValueError(
                    f"{name}.width is set, but the inputs are added up and all as wide as the "
                    "content; join = 'concatenated' gives each a width of its own"
                )
            if self.join == "concatenated" and of_input.width is None:
                raise ValueError(f"join = 'concatenated' needs {name}.width, which is not set")
        if self.join == "sum" and "charconcat" in self.inputs and width % 16:
            raise ValueError(
                f"the input 'charconcat' needs a content whose width 16 divides, and it is "
                f"{width} wide; make d_model a multiple of {16 * (self.d_model // width)}"
            )
        taken = ENCODERS.get(encoder).d_content(own, self.d_model)
        layers = getattr(own, "layers", 1)
        if width != taken and not (ENCODERS.get(encoder).any_width and layers):
            raise ValueError(
                f"join = 'concatenated' makes a content that is {width} wide of the inputs "
                f"{', '.join(self.inputs)}, but the encoder '{encoder}' with d_model = "
                f"{self.d_model}{'' if layers else ' and without layers'} has a content of "
                f"{taken}; make their widths add up to it"
            )
        if "tag" in self.inputs and self.tagger is not None:
            raise ValueError("a tagger is set, but the input 'tag' already reads the tags")
        if (labels := self.label_attention) is not None:
            matrices = getattr(own, "matrices", None)
            if problem := labels.problem(self.d_model, matrices, labels.heads):
                raise ValueError(problem)
        return self


def parts(
    config: type[ParserConfig], among: Collection[str] | None = None
) -> dict[str, type[Settings]]:
    """Return the settings of the parts that parsers of a kind may have, by the name of their table:
    of inputs and encoders those that can be imported, all or those ``among`` some names."""
    found: dict[str, type[Settings]] = {}
    for name, field in config.model_fields.items():
        for annotation in (field.annotation, *get_args(field.annotation)):
            if _is_part(annotation):
                found[name] = annotation
        if registry := _OF_PARTS.get(name):
            for part in registry.names():
                if among is None or part in among:
                    with suppress(SpmrlError):
                        found[part] = _config_of(registry, part)
    return found


@cache
def defaults_of(config: type[BaseModel]) -> Mapping[str, Any]:
    """Return the defaults of a class of settings, as JSON has them."""
    return {
        name: to_jsonable_python(field.get_default(call_default_factory=True))
        for name, field in config.model_fields.items()
        if not field.is_required()
    }


def _config_of(registry: Registry[Any], name: str) -> type[Settings]:
    part = registry.get(name)
    found: Any = getattr(part, "Config", None)
    if not _is_part(found):
        raise SpmrlError(f"{name}: its package names {part!r}, which has no settings (Config)")
    return found


def _is_part(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, Settings)
