"""Inputs that read the form of a word by means of their own: as characters, rows or sub-words.

Such an input turns each distinct form into a few integers, its codes, once. For a batch it is
given the codes of the forms that occur, and which of them each token is; tokens of one sentence
follow each other, START first and STOP last. A new input is a class of this kind and a line in
:mod:`spmrl_bench.parsers.lexicon`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from spmrl_bench.nn.ragged import Ragged


class Boundary(Enum):
    """The tokens that wrap every sentence; they have codes but no form."""

    START = "start"
    STOP = "stop"


@dataclass(frozen=True, slots=True)
class Codes:
    """The codes of the forms of a batch.

    Attributes:
        values: int64 ``[forms, longest]``; what lies beyond a form's length is 0.
        lengths: int64 ``[forms]``, number of codes of each, at least 1.
        rows: int64 ``[tokens]``, which form each token of the batch is.
    """

    values: Tensor
    lengths: Tensor
    rows: Tensor


@dataclass(frozen=True, slots=True)
class Tokens:
    """The tokens of a batch, as lexical inputs read them.

    Attributes:
        layout: which tokens form a sentence; START is the first of each and STOP the last.
        words: int64 ``[tokens]``, vocabulary index of each word.
        tags: int64 ``[tokens]``, tag index of each token.
        form_rows: int64 ``[tokens]``, row of each token in the table of form vectors.
        codes: what the inputs with codes of their own read, by name of the input.
    """

    layout: Ragged
    words: Tensor
    tags: Tensor
    form_rows: Tensor
    codes: Mapping[str, Codes] = field(default_factory=dict)


class CodedInput(nn.Module):
    """An input that reads codes of its own; subclasses define :meth:`codes` and ``forward``.

    ``forward(codes: Codes, layout: Ragged) -> Tensor`` gives ``[tokens, d_content]`` of a batch,
    after the input's own dropout.
    """

    def codes(self, form: str | Boundary) -> NDArray[np.int64]:
        """The codes of a form or of START or STOP, int64 ``[1 or more]``."""
        raise NotImplementedError

    def check(self, lengths: NDArray[np.int64]) -> str:
        """What is wrong with a sentence whose tokens have so many codes each; empty if nothing."""
        return ""

    def pretrained(self) -> list[nn.Parameter]:
        """Weights that were trained elsewhere and are trained on here."""
        return []

    def save_assets(self, folder: Path) -> None:
        """Write what the weights do not hold and the input needs again into an existing folder."""


class Frozen(nn.Module):
    """A module that is used as it is: not trained, not saved, and always in evaluation mode.

    Its weights are no parameters and no state of the module that holds it, but they follow it to
    its device.
    """

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self._held = (module.requires_grad_(False).eval(),)  # in a tuple it is no child

    @property
    def held(self) -> nn.Module:
        """The module itself."""
        return self._held[0]

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        super()._apply(fn, recurse)
        self.held._apply(fn, recurse)
        return self

    @torch.no_grad()
    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the module gives, without a gradient."""
        return self.held(*args, **kwargs)
