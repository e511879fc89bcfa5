"""Lexical inputs: what the content half of a token vector starts from.

A lexical model is a sum of inputs (Kitaev & Klein 2018, section 5), or has them side by side, each
with a width of its own (Zhang et al. 2017, section 4; an option of the code of Zhou & Zhao 2019).
An input reads the vocabulary's indices of words and tags, or turns each distinct form into a few
integers, its codes, once. Packages add theirs as entry points of ``spmrl_bench.inputs``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any, ClassVar, Literal, Self, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from spmrl_bench.errors import RecipeError
from spmrl_bench.nn.ragged import Ragged, SentenceDropout
from spmrl_bench.nn.settings import InputSettings, Precision
from spmrl_bench.nn.vocabulary import Vocabulary
from spmrl_bench.registry import Registry


class Boundary(Enum):
    """The tokens that wrap every sentence; they have codes but no form."""

    START = "start"
    STOP = "stop"


@dataclass(frozen=True, slots=True)
class Codes:
    """The codes of distinct forms, all int64."""

    values: Tensor
    """``[forms, longest]``; what lies beyond a form's length is 0."""
    lengths: Tensor
    """``[forms]``, number of codes of each, at least 1."""
    rows: Tensor
    """``[tokens]``, which form each token of a batch is."""


@dataclass(frozen=True, slots=True)
class Tokens:
    """The tokens of a batch, START and STOP of sentences among them, as lexical inputs read them;
    words and tags are numbers of the vocabulary."""

    layout: Ragged
    words: Tensor  # int64 [tokens]
    tags: Tensor  # int64 [tokens]
    form_rows: Tensor  # int64 [tokens], in forms
    forms: Mapping[str, Tensor] = field(default_factory=dict)
    """Vectors of forms that have been computed already, ``[forms, width]``, by input."""
    codes: Mapping[str, Codes] = field(default_factory=dict)
    """What the other inputs read, by input."""
    places: NDArray[np.int32] | None = None
    """``[words, 2]``, the number of the kept sentence that each word is of (:meth:`
    LexicalInput.keep`) and its place there; None where that is not known."""


class LexicalInput(nn.Module):
    """One input; a class of its own defines :meth:`forward` and, if it reads forms, :meth:`codes`.
    ``assets`` is the folder of a saved parser, with what :meth:`save_assets` wrote."""

    Config: ClassVar[type[InputSettings]]

    def __init__(
        self,
        config: Any,
        vocabulary: Vocabulary,
        width: int,
        *,
        precision: Precision = "float32",
        assets: Path | None = None,
    ) -> None:
        super().__init__()
        self.config = config
        self.precision = precision
        #: Of the vectors of tokens.
        self.dropout = SentenceDropout(getattr(config, "dropout", 0.0))

    def codes(self, form: str | Boundary) -> NDArray[np.int64] | None:
        """Return the codes of a form or of START or STOP, int64 ``[1 or more]``; None for none."""
        return None

    def start(self) -> None:
        """Put in place what training begins with, after random weights were drawn."""

    def pretrained(self) -> list[nn.Parameter]:
        """Return the weights that were trained elsewhere and are trained on here."""
        return []

    def keep(self, sentences: Sequence[Sequence[str]], device: torch.device) -> None:
        """Compute what training never changes of sentences that come up again, if there is any."""

    def save_assets(self, folder: Path) -> None:
        """Write what the weights do not hold and the input needs again into an existing folder."""

    def forward(self, tokens: Tokens, codes: Codes | None) -> Tensor:
        """Return the vectors of a batch, ``[tokens, width]``, after the input's own dropout."""
        raise NotImplementedError


class FormInput(LexicalInput):
    """An input whose vector depends on the form of a token alone."""

    shared: ClassVar[bool] = False
    """Whether a vector is computed once for all tokens of a form in a batch, and kept from one
    batch to the next while the weights are fixed."""

    def forms(self, codes: Codes) -> Tensor:
        """Return vectors of distinct forms, ``[forms, width]``."""
        raise NotImplementedError

    def forward(self, tokens: Tokens, codes: Codes | None) -> Tensor:
        assert codes is not None
        return self.hand_out(self.forms(codes), codes.rows, tokens.layout)

    def hand_out(self, forms: Tensor, rows: Tensor, layout: Ragged) -> Tensor:
        """Return the vectors of tokens, each the row of a form."""
        return self.dropout(forms.index_select(0, rows), layout)


#: In the order in which inputs are added up, or stand side by side.
INPUTS: Registry[type[LexicalInput]] = Registry(
    "lexical input",
    "spmrl_bench.inputs",
    {
        "charlstm": "spmrl_bench.nn.inputs.characters:CharLSTM",
        "word": "spmrl_bench.nn.inputs.vectors:WordEmbedding",
        "tag": "spmrl_bench.nn.inputs.vectors:TagEmbedding",
        "charconcat": "spmrl_bench.nn.inputs.characters:CharConcat",
        "vectors": "spmrl_bench.nn.inputs.vectors:StaticVectors",
        "elmo": "spmrl_bench.nn.inputs.elmo:Elmo",
        "transformer": "spmrl_bench.nn.inputs.transformer:Transformer",
        "hidden_states": "spmrl_bench.nn.inputs.hidden_states:HiddenStates",
    },
)


class LexicalModel(nn.ModuleDict):
    """The chosen inputs by name, added up or side by side."""

    def __init__(
        self,
        configs: Mapping[str, Any],
        vocabulary: Vocabulary,
        d_content: int,
        join: Literal["sum", "concatenated"] = "sum",
        precision: Precision = "float32",
        assets: Path | None = None,
    ) -> None:
        """Make inputs with random weights; a ``PretrainedError`` says that a file is of no use."""
        made = {}
        # Tables of words and tags draw their numbers after all others.
        for name in sorted(configs, key=("word", "tag").__contains__):
            kind, config = INPUTS.get(name, RecipeError), configs[name]
            width = config.width if join == "concatenated" else d_content
            made[name] = kind(config, vocabulary, width, precision=precision, assets=assets)
        # Weights of words are drawn anew, and their gradients summed up, before all others.
        super().__init__({name: made[name] for name in ("word", *INPUTS.names()) if name in made})
        self.join = join

    @property
    def inputs(self) -> Mapping[str, LexicalInput]:
        """The inputs in the order of :data:`INPUTS`, in which they are added up."""
        names = sorted(self._modules, key=lambda name: name != "charlstm")
        return {name: cast("LexicalInput", self[name]) for name in names}

    @property
    def shared(self) -> dict[str, FormInput]:
        """Those whose vectors of forms are computed before a batch is put together."""
        inputs = self.inputs.items()
        return {name: one for name, one in inputs if isinstance(one, FormInput) and one.shared}

    def forward(self, tokens: Tokens) -> Tensor:
        """Return content vectors ``[tokens, d_content]``."""
        parts = [
            cast("FormInput", module).hand_out(tokens.forms[name], tokens.form_rows, tokens.layout)
            if name in tokens.forms
            else module(tokens, tokens.codes.get(name))
            for name, module in self.inputs.items()
        ]
        return torch.cat(parts, 1) if self.join == "concatenated" else torch.stack(parts).sum(0)


class Frozen(nn.Module):
    """A module that is used as it is: not trained, not saved, always in evaluation mode. Its
    weights are no state of the module that holds it, but follow it to its device."""

    held: nn.Module

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.__dict__["held"] = module.requires_grad_(False).eval()  # which makes it no child

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        super()._apply(fn, recurse)
        self.held._apply(fn, recurse)
        return self

    @torch.no_grad()
    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.held(*args, **kwargs)


def sub_batches(lengths: Sequence[int], most: int) -> Iterator[list[int]]:
    """Yield length-sorted groups of indices whose number times the longest, of which each has two
    marks more, is ``most`` at most. One that is longer is a group of its own."""
    order = sorted(range(len(lengths)), key=lengths.__getitem__)
    start = 0
    for end, index in enumerate(order):  # the newcomer is the longest of its group
        if end > start and (end + 1 - start) * (lengths[index] + 2) > most:
            yield order[start:end]
            start = end
    if order:
        yield order[start:]
