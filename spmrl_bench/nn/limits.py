"""What the attention of a layer may use: content, position, and how far it may look.

Kitaev & Klein 2018 (section 4) take parts of the attention away, from a trained encoder or in
training too, to see what it is good for: one of the two query-key products of factored
attention (table 1), or all pairs of tokens that lie farther apart than a window (tables 2, 3).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from spmrl_bench.nn.ragged import Ragged

#: Tokens at either end of a sentence that a relaxed window does not bind: START and the first
#: word, the last word and STOP.
EXEMPT = 2


@dataclass(frozen=True, slots=True)
class Limit:
    """The limits of one layer's attention.

    Attributes:
        content: whether the product of content queries and keys counts.
        position: whether that of position queries and keys does.
        window: largest distance of two tokens that see each other; None for any.
        relaxed: whether the tokens at the ends of a sentence see all, and are seen by all.
    """

    content: bool = True
    position: bool = True
    window: int | None = None
    relaxed: bool = False

    def __post_init__(self) -> None:
        if self.window is not None and self.window < 0:
            raise ValueError(f"window is {self.window}; it must be 0 or more, or None for none")

    @property
    def halves(self) -> bool:
        """Whether both products count."""
        return self.content and self.position

    def pairs(self, layout: Ragged) -> Tensor:
        """Which tokens may see which, bool ``[sentences, 1, 1 or longest, longest]``."""
        filled = layout.filled
        keys = filled[:, None, None, :]
        if self.window is None or self.window >= layout.longest:
            return keys
        places = torch.arange(layout.longest, device=filled.device)
        seen = ((places[:, None] - places).abs() <= self.window)[None]
        if self.relaxed:
            ends = (places < EXEMPT) | (places >= layout.lengths[:, None] - EXEMPT)
            seen = seen | ends[:, :, None] | ends[:, None, :]
        # A query that sees nothing has no weights; those beyond a sentence are of no interest.
        seen = seen | ~filled[:, :, None]
        return keys & seen[:, None]

    def queries(self, query: Tensor) -> Tensor:
        """Queries ``[..., d_kv]`` of two halves, without those whose product does not count."""
        if self.halves:
            return query
        content, position = query.chunk(2, dim=-1)
        halves = (
            content if self.content else torch.zeros_like(content),
            position if self.position else torch.zeros_like(position),
        )
        return torch.cat(halves, dim=-1)


OPEN = Limit()
