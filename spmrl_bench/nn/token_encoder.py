"""What all encoders have in common: how wide their output is, and what its features stand for.

A parser reads its scores off encoded tokens and asks the encoder, not the settings, for their
width. It also has to know which features of a token tell of what lies before it and which of what
lies behind, since a span vector takes the two from different tokens (Gaddy et al. 2018): in every
block of ``d_block`` features the first half is the forward part and the second half the backward
part. With blocks of two these are the even and the odd features, with one block of all features
the first and the last half.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from torch import Tensor, nn

from spmrl_bench.errors import ArrayError
from spmrl_bench.nn.precision import Precision, products
from spmrl_bench.nn.ragged import Ragged

if TYPE_CHECKING:
    from spmrl_bench.nn.label_attention import LabelAttentionLayer


class TokenEncoder(nn.Module):
    """A stack of layers over the tokens of sentences, and perhaps label attention on top.

    Attributes:
        d_model: width of a token vector between the layers of the stack.
        precision: of the matrix products.
        d_stack_block: width of a block of the features of the stack.
        label_attention: the layer on top; None for none.
    """

    def __init__(self, d_model: int, precision: Precision, d_block: int = 2) -> None:
        """An encoder without layers.

        Args:
            d_model: width of its tokens.
            precision: of its products.
            d_block: width of a block of their features, an even number that divides ``d_model``.
        """
        super().__init__()
        self.d_model = d_model
        self.precision = precision
        self.d_stack_block = d_block
        self.label_attention: LabelAttentionLayer | None = None

    @property
    def d_out(self) -> int:
        """Width of an encoded token."""
        return self.d_model if self.label_attention is None else self.label_attention.d_out

    @property
    def d_block(self) -> int:
        """Width of a block of the output, half of which is the forward part."""
        labels = self.label_attention
        # Heads that are added up leave the features where they were.
        if labels is None or not labels.concatenated:
            return self.d_stack_block
        return labels.d_block

    @abstractmethod
    def stack(self, content: Tensor, layout: Ragged) -> Tensor:
        """Content ``[tokens, d_content]`` to ``[tokens, d_model]``, below label attention."""

    @contextmanager
    def steady_weights(self) -> Iterator[None]:
        """Within it nobody changes the weights, so that what follows from them may be kept."""
        yield

    def forward(self, content: Tensor, layout: Ragged) -> Tensor:
        """Content ``[tokens, d_content]`` to encoded tokens ``[tokens, d_out]``.

        Raises:
            ArrayError: the stack gives something else than its tokens.
        """
        rows = self.stack(content, layout)
        if rows.shape != (len(content), self.d_model):
            raise ArrayError(
                f"{type(self).__name__}.stack gives the shape {list(rows.shape)}; its tokens are "
                f"{[len(content), self.d_model]}."
            )
        if self.label_attention is None:
            return rows
        with products(self.precision, content.device):
            labelled: Tensor = self.label_attention(rows, layout)
        return labelled.to(content.dtype)
