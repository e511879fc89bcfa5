"""Walks through transition systems: every legal one, and random ones."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from spmrl_bench.transitions import States, TransitionSystem


def every_walk(system: TransitionSystem, n: int) -> tuple[NDArray[np.int32], States]:
    """The actions [K, steps] of all legal walks over n words, and their last states.

    The frontier of all states is kept by ``take``, as that of a beam would be.
    """
    states = States.start(system, [n])
    actions = np.empty((1, 0), dtype=np.int32)
    while not states.finished().all():
        parents, following = np.nonzero(states.legal_actions())
        assert set(parents) == set(range(len(states))), "a state from which nothing is legal"
        states = states.take(parents)
        states.advance(following)
        actions = np.concatenate([actions[parents], following[:, None].astype(np.int32)], axis=1)
    return actions, states


def random_legal(rng: np.random.Generator, legal: NDArray[np.bool_]) -> NDArray[np.int64]:
    """In each row of ``legal`` the number of one that is; anything where none is."""
    scores = rng.random(legal.shape)
    scores[~legal] = -1
    chosen = scores.argmax(axis=1)
    nothing = ~legal.any(axis=1)
    chosen[nothing] = rng.integers(-5, 5, int(nothing.sum()))
    return chosen


def assert_trees(states: States) -> None:
    """All states are finished, with acyclic heads of words and as many roots as allowed."""
    assert states.finished().all()
    assert (states.steps == 2 * states.lengths).all()
    column = np.arange(states.width)
    words = (column > 0) & (column <= states.lengths[:, None])
    assert ((states.heads >= 0) == words).all()
    assert ((states.relations >= 0) == words).all()
    assert (states.heads <= states.lengths[:, None]).all()
    roots = ((states.heads == 0) & words).sum(axis=1)
    assert (roots >= 1).all()
    assert states.system.roots == "several" or (roots == 1).all()
    place = np.where(words, column, 0)
    up = np.where(words, states.heads, 0)
    for _ in range(states.width):
        place = np.take_along_axis(up, place, axis=1)
    assert (place == 0).all()
