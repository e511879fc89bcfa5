"""Transition systems for dependency parsing: states, legal moves, their effect, and the oracle.

A transition-based parser reads a sentence from left to right and makes its tree by one action after
another. What the actions are, when they are legal and what they do is here, for a batch of states
at once and apart from any network; so are the actions that make a given tree::

    system = TransitionSystem("arc-standard", relations=40)
    states = States.start(system, lengths)
    while not states.finished().all():
        scores = network(states.masks(), states.tops())  # [S, system.actions]
        scores[~states.legal_actions()] = -np.inf
        states.advance(scores.argmax(axis=1))
    trees = states.trees()

In a beam :meth:`States.take` keeps some of the states; in training :func:`oracle_actions` gives the
actions of gold trees, and :func:`state_history` the states before each of them, as arrays over all
steps.

Words count from 1, and 0 is the root. This package knows no model and no class of trees. The work
is done by the compiled kernel ``_transitions`` or, where it could not be built, by its plain-Python
twin :mod:`~spmrl_bench.transitions.reference`; both give the same result bit for bit. The kernel
trusts its input, so what is public here checks all of it first.
"""

from __future__ import annotations

from spmrl_bench.transitions.history import History, state_history
from spmrl_bench.transitions.moves import (
    LEFT_ARC,
    MOVES,
    NO_ACTION,
    NONE,
    RIGHT_ARC,
    SHIFT,
    SYSTEMS,
    SystemName,
)
from spmrl_bench.transitions.oracle import NonProjectiveError, oracle_actions, replay
from spmrl_bench.transitions.states import Masks, States, Tops, Trees
from spmrl_bench.transitions.system import IllegalActionError, TransitionSystem

__all__ = [
    "LEFT_ARC",
    "MOVES",
    "NONE",
    "NO_ACTION",
    "RIGHT_ARC",
    "SHIFT",
    "SYSTEMS",
    "History",
    "IllegalActionError",
    "Masks",
    "NonProjectiveError",
    "States",
    "SystemName",
    "Tops",
    "TransitionSystem",
    "Trees",
    "oracle_actions",
    "replay",
    "state_history",
]
