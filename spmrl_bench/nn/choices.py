"""Names of what a recipe can choose for an encoder; read without torch, which takes a second."""

from __future__ import annotations

from typing import Literal

#: What reads the tokens of a sentence: layers of self-attention, or a bidirectional LSTM.
EncoderKind = Literal["attention", "lstm"]
#: Whether the halves of a token vector, content and position, have matrices of their own.
Matrices = Literal["factored", "full"]
#: Whether the position is the second half of a token vector or added to the content.
PositionInput = Literal["concatenated", "added"]
