"""The best sequences of actions that a beam finds, for a batch of sentences.

A network gives the actions of a state probabilities that depend on all that was done before, so no
dynamic program finds the best sequence. A beam keeps the best few at every step; with one
hypothesis it is greedy search, and with room for all it finds the best of all. Of equal scores,
that of the better hypothesis before goes first, then the lower action.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spmrl_bench.errors import ArrayError, NotFiniteError
from spmrl_bench.transitions.system import NONE, SHIFT, Derivation, Mask, Numbers, TransitionSystem


class States:
    """S states of sentences, all of them after equally many actions."""

    __slots__ = ("fronts", "lengths", "removed", "sizes", "stack", "system")

    def __init__(self, system: TransitionSystem, lengths: ArrayLike, beams: int = 1) -> None:
        """Begin with ``beams`` states of each sentence, which follow each other; raise an
        ArrayError if a sentence has no words."""
        self.system = system
        self.lengths = np.repeat(np.asarray(lengths, dtype=np.int32), beams)
        if len(self.lengths) and self.lengths.min() < 1:
            raise ArrayError(f"lengths has {self.lengths.min()}; a sentence has at least 1 word")
        words = np.arange(self.lengths.max(initial=0) + 1)
        # Words that are or were on the stack; what is above its size means nothing.
        self.stack = np.zeros((len(self.lengths), len(words)), dtype=np.int32)
        self.sizes = np.ones(len(self.lengths), dtype=np.int32)  # of the stack, with the root
        self.fronts = np.ones(len(self.lengths), dtype=np.int32)  # b0; n + 1 where none waits
        self.removed = words > self.lengths[:, None]  # as of History

    def __len__(self) -> int:
        return len(self.sizes)

    @property
    def pushed(self) -> Mask:
        """As of :class:`History`, ``[S, N + 1]``."""
        return np.arange(self.stack.shape[1]) < self.fronts[:, None]

    def legal(self) -> Mask:
        """Return which actions are legal, ``[S, actions]``."""
        return self.system.legal(self.sizes, self.fronts, self.lengths)

    def take(self, rows: NDArray[np.integer] | slice) -> Self:
        """Return copies of some states, in any order and any number of times."""
        taken = object.__new__(type(self))
        taken.system = self.system
        for name in ("lengths", "stack", "sizes", "fronts", "removed"):
            setattr(taken, name, getattr(self, name)[rows])
        return taken

    def advance(self, actions: ArrayLike) -> None:
        """Do one legal action in every state."""
        numbers = np.asarray(actions)
        rows, shifts = np.arange(len(self)), numbers == SHIFT
        top, second = self.stack[rows, self.sizes - 1], self.stack[rows, self.sizes - 2]
        left = numbers <= self.system.relations
        self.removed[rows, np.where(left, second, top)] |= ~shifts
        self.sizes += np.where(shifts, 1, -1).astype(np.int32)
        self.stack[rows, self.sizes - 1] = np.where(
            shifts, self.fronts, np.where(left, top, second)
        )
        self.fronts += shifts


class BeamStep(NamedTuple):
    """Hypotheses whose next action is asked for, ``width`` of each sentence one after the other."""

    states: States
    legal: Mask
    """``[S, actions]``"""
    last: NDArray[np.int64]
    """``[S]``, the actions before; :data:`NONE` at the first step."""
    parents: NDArray[np.int64]
    """``[S]``, which hypothesis of the step before each continues."""
    width: int


class Hypothesis(NamedTuple):
    """A sequence of actions for a sentence of ``n`` words, and the tree that it makes."""

    derivation: Derivation
    heads: Numbers
    """``[n]``, from 1; 0 is the root."""
    relations: Numbers
    """``[n]``, numbers of relations."""
    score: float
    """The sum of the actions' log probabilities."""


#: Log probabilities ``[S, actions]`` of the next actions; those of illegal ones are not looked at.
Scorer = Callable[[BeamStep], NDArray[np.floating]]


def beam_search(
    system: TransitionSystem, lengths: ArrayLike, width: int, scorer: Scorer, most: int = 1
) -> list[list[Hypothesis]]:
    """Return the best hypotheses of each sentence, ``most`` of ``width`` that are kept at every
    step, the best first.

    ``lengths`` are the words of each sentence, integers ``[B]``; ``scorer`` is asked once for each
    step, for all sentences that are not done, the longest first. Raise a NotFiniteError if no legal
    action of a state has a probability, or one is NaN or infinite.
    """
    order = np.argsort(-np.asarray(lengths), kind="stable")
    words = np.asarray(lengths)[order]
    found_of: dict[int, list[Hypothesis]] = {}
    states = States(system, words, width)
    last, parents = np.full(len(states), NONE), np.arange(len(states))
    actions = np.empty((len(states), 2 * int(words.max(initial=0))), dtype=np.int32)
    scores = np.full((len(words), width), -np.inf)
    scores[:, 0] = 0.0
    for step in range(actions.shape[1]):
        legal = states.legal()
        found = scorer(BeamStep(states, legal, last, parents, width))
        log_probabilities = np.where(legal, found, -np.inf)
        if not log_probabilities.max() < np.inf:
            row = int((~(log_probabilities < np.inf)).any(axis=1).argmax())
            raise NotFiniteError(
                f"sentence {order[row // width]}, step {step}: a score is NaN or infinite."
            )
        parents, last, scores = _survivors(scores, log_probabilities)
        if not scores[:, 0].min() > -np.inf:
            sentence = order[int(scores[:, 0].argmin())]
            raise NotFiniteError(
                f"sentence {sentence}, step {step}: no legal action has a probability."
            )
        going_on = int((2 * words > step + 1).sum())
        actions = actions[parents]
        actions[:, step] = last
        for place in range(going_on, len(words)):
            beam = zip(actions[place * width :], scores[place, :most], strict=False)
            found_of[int(order[place])] = [
                Hypothesis(*system.replay(row[: step + 1].tolist()), float(score))
                for row, score in beam
                if score > -np.inf
            ]
        kept = slice(going_on * width)
        words, scores, actions = words[:going_on], scores[:going_on], actions[kept]
        parents, last = parents[kept], last[kept]
        states = states.take(parents)
        states.advance(last)
    return [found_of[place] for place in range(len(order))]


def _survivors(
    scores: NDArray[np.float64], log_probabilities: NDArray[np.floating]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Return the hypotheses that the best continuations of each sentence continue, their actions,
    and their scores ``[B, width]``, the best first.

    Scores are minus infinity where there is none, and the best one fills a beam of too few;
    ``log_probabilities``, ``[B * width, actions]``, are so where they are illegal.
    """
    sentences, width = scores.shape
    total = (scores.reshape(-1, 1) + log_probabilities).reshape(sentences, -1)
    # Those that may be among the best, in their order, and of these a stable order.
    bound = np.partition(total, -width, axis=1)[:, -width, None]
    rows, columns = (total >= bound).nonzero()
    order = np.lexsort((-total[rows, columns], rows))
    firsts = np.searchsorted(rows, np.arange(sentences))
    best = columns[order[firsts[:, None] + np.arange(width)]]
    values = np.take_along_axis(total, best, axis=1)
    best = np.where(values == -np.inf, best[:, :1], best)
    parents, chosen = np.divmod(best, log_probabilities.shape[1])
    parents += width * np.arange(sentences)[:, None]
    return parents.ravel(), chosen.ravel(), values
