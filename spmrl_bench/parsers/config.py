"""Settings of the chart parser: every size and rate that shapes the model."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from spmrl_bench.nn.choices import EncoderKind, Matrices, PositionInput
from spmrl_bench.nn.precision import FLOAT32, Precision

LexicalInput = Literal["word", "charlstm"]
Size = Annotated[int, Field(ge=1)]
EvenSize = Annotated[int, Field(ge=2, multiple_of=2)]
Rate = Annotated[float, Field(ge=0, lt=1)]


class ChartParserConfig(BaseModel):
    """Architecture and regularisation of one parser (no defaults but one: recipes state them)."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    lexical: Annotated[tuple[LexicalInput, ...], Field(min_length=1)]
    """Inputs that are summed into the content."""
    d_model: Annotated[int, Field(ge=4, multiple_of=4)]
    """Width of a token vector."""
    layers: Annotated[int, Field(ge=0)]
    """Encoder layers."""
    heads: Size
    """Attention heads per layer."""
    d_kv: EvenSize
    """Width of a query, key or value of one head; half content, half position."""
    d_ff: EvenSize
    """Hidden width of the feed-forward sublayer, both halves together."""
    d_label_hidden: Size
    """Hidden width of the span scorer."""
    d_char: Size
    """Width of a character embedding of the CharLSTM."""
    max_positions: Annotated[int, Field(ge=3)]
    """Rows of the position table; a sentence of n words needs n + 2."""
    attention_dropout: Rate
    residual_dropout: Rate
    relu_dropout: Rate
    word_dropout: Rate
    """On word embeddings."""
    form_dropout: Rate
    """On the CharLSTM's output (``morpho_emb_dropout`` of the released code)."""
    char_dropout: Rate
    """On the CharLSTM's input."""

    precision: Precision = FLOAT32
    """Numbers that the large matrix products take, in training and in parsing."""
    encoder: EncoderKind = "attention"
    """What reads the sentence; an LSTM takes its width, layers and residual dropout from here."""
    position: PositionInput = "concatenated"
    """How the position enters: as the second half of a token vector, or added to the content."""
    matrices: Matrices = "factored"
    """Of the encoder's layers: one for each half of a token vector, or one for all of it."""

    attention_window: Annotated[int, Field(ge=0)] | None = None
    """Largest distance of two tokens that see each other, in all layers; without it any."""
    relaxed_window: bool = False
    """Whether the first two and the last two tokens see all, and are seen by all."""

    @model_validator(mode="after")
    def _inputs_differ(self) -> ChartParserConfig:
        if len(set(self.lexical)) != len(self.lexical):
            raise ValueError("lexical names an input twice")
        if self.encoder == "lstm" and self.attention_window is not None:
            raise ValueError("attention_window is set, but an LSTM encoder has no attention")
        if self.relaxed_window and self.attention_window is None:
            raise ValueError("relaxed_window is set, but there is no attention_window to relax")
        return self
