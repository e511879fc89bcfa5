"""What the settings of the parts of a network have in common; each part has its own, ``Config``."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, Field

Positive = Annotated[int, Field(ge=1)]
#: Of layers; the widest that anybody has published have a quarter of it.
Width = Annotated[int, Field(ge=1, le=65_536)]
Even = Annotated[int, Field(ge=2, le=65_536, multiple_of=2)]
Rate = Annotated[float, Field(ge=0, lt=1)]
#: How many; a description with a million layers would be built for minutes.
Layers = Annotated[int, Field(ge=0, le=1000)]
Precision = Literal["float32", "bf16"]


class Settings(BaseModel, extra="forbid", frozen=True, allow_inf_nan=False):
    """Settings of one part, frozen; a misspelt key is noticed."""

    def files(self) -> dict[str, str]:
        """Files or folders of others, or hub names, that the settings name, by key."""
        return {}

    def outside(self) -> dict[str, str]:
        """Those of them that a saved parser is read with, each time: weights it has no copy of."""
        return self.files()


class InputSettings(Settings):
    """Settings of a lexical input."""

    width: Width | None = None
    """Width of its vectors where inputs stand side by side; added up, all are as wide as the
    content."""
