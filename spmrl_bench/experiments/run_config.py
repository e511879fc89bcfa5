"""All settings of one run: what is stored with it, and nothing else decides what is trained."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, SerializeAsAny, create_model

from spmrl_bench.errors import SpmrlError
from spmrl_bench.experiments.recipe_layers import Size
from spmrl_bench.parsers.config import ParserConfig
from spmrl_bench.parsers.registry import kind_named
from spmrl_bench.scoring.metric import SelectionMetric
from spmrl_bench.settings_text import variant_text
from spmrl_bench.storage.toml import validated
from spmrl_bench.training.config import TrainConfig


class RunConfig(BaseModel):
    """All settings of one run, resolved."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    recipe: str
    """Name of the recipe."""
    treebank: str
    """Name of the treebank."""
    fingerprint: str
    """Digest of the treebank's layers that the kind learns from: files, transforms, and the
    manifest's settings that change them."""
    kind: str = "chart"
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
    """All settings of the parser, of the kind's configuration class."""
    train: TrainConfig
    """All settings of its training."""
    settings: dict[str, Any] = Field(default_factory=dict)
    """Which of the settings above the command line changed: ``section.key`` and value as in
    JSON, sorted. What it set to the recipe's own value is not there."""
    files: dict[str, str] = Field(default_factory=dict)
    """SHA-256 of the pre-trained files that ``model`` names, by setting: a path says little."""

    @property
    def name(self) -> str:
        """The variant, with what was changed of its recipe in brackets."""
        return variant_text(self.variant, self.settings)

    @property
    def criterion(self) -> SelectionMetric:
        """What of dev is best."""
        return SelectionMetric.parse(self.select)


def run_config(values: Mapping[str, Any], place: str | Path, error: type[SpmrlError]) -> RunConfig:
    """The settings of a run, its model checked by the configuration class of its kind.

    Raises:
        SpmrlError: of the class given: the kind is unknown, or values are wrong; all are named.
    """
    kind = kind_named(str(values.get("kind", "chart")), error)
    checked = validated(_run_config_of(kind.name), values, place, error)
    return RunConfig(**{name: getattr(checked, name) for name in RunConfig.model_fields})


@cache
def _run_config_of(kind: str) -> type[RunConfig]:
    """Settings of runs of one kind."""
    config = kind_named(kind).config_class
    model: Any = (config, ...)
    return create_model("RunConfig", __base__=RunConfig, model=model)
