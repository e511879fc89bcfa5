"""Settings of parsers: what those of every kind have, and the inputs that a word is read by."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from spmrl_bench.nn.precision import FLOAT32, Precision

LexicalInput = Literal["word", "tag", "charlstm", "charconcat", "vectors", "elmo", "transformer"]
Positive = Annotated[int, Field(ge=1)]
Even = Annotated[int, Field(ge=2, multiple_of=2)]
Rate = Annotated[float, Field(ge=0, lt=1)]


class ParserConfig(BaseModel):
    """What the settings of every kind of parser have; a kind adds its own."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    lexical: tuple[LexicalInput, ...] = ()
    """What the parser reads of a word; the variants of a recipe decide it."""
    precision: Precision = FLOAT32
    """Numbers that the large matrix products take, in training and in parsing."""

    @property
    def cost(self) -> float:
        """How long a word takes, roughly: the weights that its vectors are multiplied with."""
        return 1.0

    @property
    def parsing_settings(self) -> tuple[str, ...]:
        """Settings that decide nothing but how a trained parser parses, so that it may be given
        others."""
        return ()

    def pretrained(self) -> dict[str, str]:
        """Files that others have trained, or folders or hub names of them, by setting."""
        return {}

    @classmethod
    def noted(cls, settings: Mapping[str, Any]) -> Mapping[str, Any]:
        """Settings that a saved parser, a run or a record has noted, perhaps long ago.

        What they do not say has its default. Where a setting came in with a default that is not
        what was done before, this adds what was.
        """
        return settings


#: The setting that gives the width of an input where inputs stand side by side.
WIDTHS: Mapping[LexicalInput, str] = {
    "word": "d_word",
    "tag": "d_tag",
    "charlstm": "d_form",
    "charconcat": "d_form",
    "vectors": "d_vectors",
    "elmo": "d_elmo",
    "transformer": "d_transformer",
}

#: Settings that name the files that a pre-trained input needs, by input.
FILES: Mapping[LexicalInput, tuple[str, ...]] = {
    "vectors": ("vectors",),
    "elmo": ("elmo_weights", "elmo_options"),
    "transformer": ("transformer",),
}

#: The same, and that of the file which the embeddings of words may start from.
PRETRAINED = (*(key for keys in FILES.values() for key in keys), "word_vectors")
