"""What reads a sentence: from a content for each token to encoded tokens.

A span vector takes what tells of the words before a token and what tells of those behind it from
different tokens (Gaddy et al. 2018): in every block of ``d_block`` features the first half is the
forward part and the second half the backward part; with blocks of two, the even and odd features.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar, Literal, get_args

from torch import Tensor, nn

from spmrl_bench.errors import UnsupportedError
from spmrl_bench.nn.kernels import autocast
from spmrl_bench.nn.layers import Matrices
from spmrl_bench.nn.ragged import Ragged
from spmrl_bench.nn.settings import Precision, Settings
from spmrl_bench.registry import Registry

if TYPE_CHECKING:
    from spmrl_bench.nn.encoders.label_attention import LabelAttention

#: Of which product of queries and keys attention weights are.
Part = Literal["content", "position", "combined"]
PARTS: tuple[Part, ...] = get_args(Part)


class Encoder(nn.Module, ABC):
    """A stack of layers over the tokens of sentences, and perhaps label attention on top."""

    Config: ClassVar[type[Settings]]
    any_width: ClassVar[bool] = False
    """Whether it takes a content of another width than :meth:`d_content`."""
    matrices: Matrices | None = None
    """Those of its layers; None where content and position have no halves of their own."""
    stack_block: int = 2  # width of a block of the features of the stack
    max_tokens: int | None = None  # of a sentence with START and STOP; None for any number
    attention_parts: tuple[Part, ...] = ()

    def __init__(self, config: Any, d_model: int, d_content: int, precision: Precision) -> None:
        super().__init__()
        self.d_model, self.precision = d_model, precision
        self.label_attention: LabelAttention | None = None

    @classmethod
    def d_content(cls, config: Any, d_model: int) -> int:
        """How wide the content is where nothing else says it."""
        return d_model

    @property
    def d_out(self) -> int:
        """Width of an encoded token."""
        return getattr(self.label_attention, "d_out", self.d_model)

    @property
    def d_block(self) -> int:
        """Width of a block of the output, half of which is the forward part."""
        return getattr(self.label_attention, "d_block", None) or self.stack_block

    @abstractmethod
    def stack(self, content: Tensor, layout: Ragged) -> Tensor:
        """Content ``[tokens, d_content]`` to ``[tokens, d_model]``, below label attention."""

    def forward(self, content: Tensor, layout: Ragged) -> Tensor:
        """Content ``[tokens, d_content]`` to encoded tokens ``[tokens, d_out]``."""
        rows = self.stack(content, layout)
        if self.label_attention is not None:
            with autocast(self.precision, content.device):
                rows = self.label_attention(rows, layout).to(content.dtype)
        return rows

    def attention(self, content: Tensor, layout: Ragged, part: Part = "combined") -> list[Tensor]:
        """Attention weights of each sentence, ``[layers, heads, n, n]``, or UnsupportedError."""
        raise self._no_attention()

    @contextmanager
    def limited(self, masks: Mapping[int, Any]) -> Iterator[None]:
        """Within it the attention of these layers alone is masked, or UnsupportedError."""
        if masks:
            raise self._no_attention()
        yield

    def _no_attention(self) -> UnsupportedError:
        return UnsupportedError(
            f"the parser has no attention that could be shown or limited: its encoder is of the "
            f"class {type(self).__name__}. Choose a parser with the encoder 'attention'"
        )

    @contextmanager
    def cached_weights(self) -> Iterator[None]:
        """Within it nobody changes the weights, so that what follows from them may be kept."""
        yield


ENCODERS: Registry[type[Encoder]] = Registry(
    "encoder",
    "spmrl_bench.encoders",
    {
        "attention": "spmrl_bench.nn.encoders.self_attention:AttentionEncoder",
        "lstm": "spmrl_bench.nn.encoders.recurrent:LSTMEncoder",
        "gru": "spmrl_bench.nn.encoders.recurrent:GRUEncoder",
    },
)
