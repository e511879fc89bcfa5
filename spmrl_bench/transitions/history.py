"""The states that sequences of actions lead through, of all sentences and steps at once.

In training the actions are those of the oracle, so that all states are known before a network
scores any of them: it needs no step of Python for each word, and can score all steps in one go.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spmrl_bench.chart.checks import checked_lengths
from spmrl_bench.transitions.checks import checked_actions
from spmrl_bench.transitions.kernels import load_kernel
from spmrl_bench.transitions.moves import MOVES
from spmrl_bench.transitions.system import IllegalActionError, TransitionSystem


@dataclass(frozen=True, slots=True, eq=False)
class History:
    """The states of B sentences before each of T actions.

    Behind the last action of a sentence, its finished state is repeated. Masks are as
    :class:`spmrl_bench.transitions.states.Masks`, words as
    :class:`~spmrl_bench.transitions.states.Tops`.
    """

    system: TransitionSystem
    pushed: NDArray[np.uint8]
    """[B, T, N + 1] 1 for the root and words that have been pushed."""
    removed: NDArray[np.uint8]
    """[B, T, N + 1] 1 for words that have been removed, and for columns beyond the sentence."""
    s0: NDArray[np.int32]
    """[B, T] the top of the stack; 0 is the root."""
    s1: NDArray[np.int32]
    """[B, T] the next on the stack; -1 where there is none."""
    b0: NDArray[np.int32]
    """[B, T] the front of the buffer; -1 where there is none."""
    legal: NDArray[np.bool_]
    """[B, T, 3] whether each move is legal; none in a finished state."""

    def legal_actions(self) -> NDArray[np.bool_]:
        """Whether each action is legal, bool [B, T, 1 + 2R]."""
        return self.system.legal_actions(self.legal, self.s1 == 0)


def state_history(system: TransitionSystem, actions: ArrayLike, lengths: ArrayLike) -> History:
    """The states before each action of given sequences.

    Args:
        system: of the transitions.
        actions: integers [B, T], such as :func:`spmrl_bench.transitions.oracle_actions` returns,
            or only the first columns of these; what stands behind the 2n actions of a sentence is
            not looked at.
        lengths: integers [B], words per sentence.

    Raises:
        IllegalActionError: an action is not legal.
        ValueError: an array has the wrong type, shape or range.
    """
    words = checked_lengths(lengths)
    table = checked_actions(actions, words)
    masks = (*table.shape, int(words.max(initial=0)) + 1)
    found = History(
        system=system,
        pushed=np.empty(masks, dtype=np.uint8),
        removed=np.empty(masks, dtype=np.uint8),
        s0=np.empty(table.shape, dtype=np.int32),
        s1=np.empty(table.shape, dtype=np.int32),
        b0=np.empty(table.shape, dtype=np.int32),
        legal=np.empty((*table.shape, len(MOVES)), dtype=np.bool_),
    )
    wrong = load_kernel().history(
        system.number,
        system.several_roots,
        system.permitted_rows,
        table,
        words,
        found.pushed,
        found.removed,
        found.s0,
        found.s1,
        found.b0,
        found.legal.view(np.uint8),
    )
    if wrong >= 0:
        sentence, step = divmod(wrong, table.shape[1])
        at_root = bool(found.s1[sentence, step] == 0)
        raise IllegalActionError(
            f"actions[{sentence}, {step}]",
            system,
            sentence=sentence,
            step=step,
            action=int(table[sentence, step]),
            legal=system.described_legal(found.legal[sentence, step], at_root),
        )
    return found
