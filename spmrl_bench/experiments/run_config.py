"""All settings of one run: what is stored with it, and nothing else decides what is trained."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SerializeAsAny,
    ValidationError,
    ValidationInfo,
    field_validator,
)

from spmrl_bench.experiments.recipe import KindName, Size
from spmrl_bench.parsers.base import ParserConfig
from spmrl_bench.parsers.registry import kind_named
from spmrl_bench.scoring.metric import SelectionMetric
from spmrl_bench.scoring.settings_text import variant_text
from spmrl_bench.storage.toml import moved
from spmrl_bench.training.config import TrainConfig


class RunConfig(BaseModel):
    """All settings of one run, resolved."""

    model_config = ConfigDict(extra="forbid", frozen=True)

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
    seed: Annotated[int, Field(ge=0, lt=2**63)]
    """Where all its random numbers come from."""
    model: SerializeAsAny[ParserConfig]
    """All settings of the parser, as the kind has them."""
    train: TrainConfig
    """All settings of its training."""
    settings: dict[str, Any] = Field(default_factory=dict)
    """What the command line changed of the recipe: ``section.key`` and value, sorted."""
    files: dict[str, str] = Field(default_factory=dict)
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
            raise moved(error, config, lambda at: at) from None

    @property
    def name(self) -> str:
        """The variant, with what was changed of its recipe in brackets."""
        return variant_text(self.variant, self.settings)

    @property
    def criterion(self) -> SelectionMetric:
        """What of dev is best."""
        return SelectionMetric.parse(self.select)
