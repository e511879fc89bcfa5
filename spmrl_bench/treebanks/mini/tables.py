"""The tables and keys a grammar file may hold, as TOML sees them.

Text blocks (rules, cells, lexemes) are plain strings here; ``notation`` reads their lines.
"""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Settings(_Table):
    """How sentences are sampled and written."""

    start: str
    max_words: int = Field(default=40, ge=1)
    damping: float = Field(default=0.5, gt=0, le=1)
    nesting: int = Field(default=3, ge=1)
    capitalise: bool = False
    zipf_exponent: float = Field(default=1.0, ge=0)
    zipf_offset: float = Field(default=3.0, gt=0)
    zipf_pools: list[str] = []


def _shorthand(key: str) -> BeforeValidator:
    """Lets the text of one key stand for a whole table."""
    return BeforeValidator(lambda value: {key: value} if isinstance(value, str) else value)


class FeatureTable(_Table):
    """The values of a feature, their prior weights, and the value of words that say nothing."""

    values: str | None = None
    like: str | None = None
    weights: list[float] | None = None
    default: str | None = None


class PhraseTable(_Table):
    """A nonterminal; ``label = ""`` makes it invisible in the trees."""

    features: str = ""
    label: str | None = None
    unary: bool = True


class WordTable(_Table):
    """A word glued from parts, or a category of the lexicon."""

    features: str = ""
    tag: str | None = None
    tail: Literal["keep", "lower"] = "keep"


class ParadigmTable(_Table):
    """Word forms of a class of lexemes."""

    cells: str
    lexemes: str
    features: str = ""
    over: dict[str, str] = {}
    stems: int = Field(default=1, ge=1)
    pool: str | None = None


class SpellingTable(_Table):
    """Rewrite inside a form; ``+`` marks the boundaries of its parts."""

    pattern: re.Pattern[str]
    replace: str


class AdjustTable(_Table):
    """Rewrite a word that stands before another one."""

    word: re.Pattern[str]
    next: re.Pattern[str]
    replace: str


class GrammarTable(_Table):
    """The whole file."""

    language: str
    settings: Settings
    features: dict[str, Annotated[FeatureTable, _shorthand("values")]] = {}
    phrases: dict[str, Annotated[PhraseTable, _shorthand("features")]]
    words: dict[str, Annotated[WordTable, _shorthand("features")]] = {}
    categories: dict[str, Annotated[WordTable, _shorthand("features")]]
    rules: dict[str, str]
    dependencies: dict[str, str] = {}
    lexicon: dict[str, str] = {}
    paradigms: dict[str, ParadigmTable] = {}
    spelling: list[SpellingTable] = []
    adjust: list[AdjustTable] = []
