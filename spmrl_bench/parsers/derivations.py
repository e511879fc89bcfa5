"""What a parser that writes actions looks at before each action of the parse that it finds.

Attention means something only beside the state in which it looks: which words are on the stack,
which wait, and which have been removed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spmrl_bench.trees.parse import Parse

#: Where a word can be: top of the stack and the one below it, further down, at the front of the
#: buffer, behind it, and gone.
PLACES = ("top", "second", "deeper", "front", "waiting", "removed")


@dataclass(frozen=True, slots=True, eq=False)
class DerivationTrace:
    """The actions that parse a sentence of ``n`` words, and what was looked at before each.

    States are those before the action of their row. Words are counted from 1 where they are named
    by number, and 0 is the root; in columns the first word is column 0, and the root has none.
    """

    words: tuple[str, ...]
    actions: tuple[str, ...]
    """All ``2n``, such as ``SHIFT`` and ``LEFT-ARC(nsubj)``, with the marks of lifted arcs."""
    weights: NDArray[np.float32]
    """``[2n, layers, n]``, how much each layer of attention takes of each word; rows sum to 1."""
    on_stack: NDArray[np.bool_]
    """``[2n, n]``"""
    removed: NDArray[np.bool_]
    """``[2n, n]``, for words that have left the stack."""
    top: NDArray[np.int32]
    """``[2n]``, the word on top of the stack, 0 where it is the root."""
    second: NDArray[np.int32]
    """``[2n]``, the word below it, -1 where the root is all there is."""
    front: NDArray[np.int32]
    """``[2n]``, the next of the words that wait, -1 where none does."""
    arcs: NDArray[np.int32]
    """``[2n, 2]``, head and dependent of the arc that the action makes, -1 for SHIFT."""
    probabilities: NDArray[np.float64]
    """``[2n]``, of each action among the legal ones."""
    score: float
    """The log probability of the whole sequence, as the search found it."""
    parse: Parse
    """What the parser answers: arcs that were lifted are where they belong, unlike in ``arcs``."""

    def places(self) -> NDArray[np.bool_]:
        """Return at which of :data:`PLACES` each word is, ``[2n, places, n]``."""
        numbers = np.arange(1, len(self.words) + 1)
        top, second, front = (
            word[:, None] == numbers for word in (self.top, self.second, self.front)
        )
        deeper = self.on_stack & ~(top | second)
        behind = ~(self.on_stack | self.removed | front)
        return np.stack((top, second, deeper, front, behind, self.removed), axis=1)

    def shares(self) -> NDArray[np.float64]:
        """Return how much of the weight is at each of :data:`PLACES`, ``[2n, layers, places]``."""
        return np.einsum("tln,tpn->tlp", self.weights.astype(np.float64), self.places())
