"""The best sequence of actions that a search with a beam finds, for a batch of sentences.

A network gives the actions of a state probabilities, which depend on all that was done before, so
that no dynamic program finds the best sequence. A beam keeps the best few at every step; of one it
is greedy search, and one that holds every sequence finds the best of all. All sequences of a
sentence of ``n`` words have ``2n`` actions, so that their scores compare at every step, and the
sentence is done when its hypotheses are.

The score of a sequence is the sum of the logarithms of its actions' probabilities, in double
precision. Of equal scores, that of the better hypothesis before goes first, then the lower action.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spmrl_bench.chart.checks import NotFiniteError, checked_lengths
from spmrl_bench.transitions.states import States
from spmrl_bench.transitions.system import TransitionSystem


@dataclass(frozen=True, slots=True, eq=False)
class Asked:
    """Hypotheses whose next action is asked for.

    Attributes:
        states: S of them; those of a sentence follow each other, ``width`` of each.
        last: int64 ``[S]``, the action before; -1 at the first step.
        parents: int64 ``[S]``, which of the hypotheses asked for before each continues.
        width: hypotheses of each sentence.
    """

    states: States
    last: NDArray[np.int64]
    parents: NDArray[np.int64]
    width: int


@dataclass(frozen=True, slots=True, eq=False)
class Sequence:
    """The best sequence found for a sentence of ``n`` words.

    Attributes:
        actions: int32 ``[2n]``.
        score: the sum of their log probabilities.
        heads: int32 ``[n]``, of the tree that they make; 0 is the root.
        relations: int32 ``[n]``, the number of each word's relation.
    """

    actions: NDArray[np.int32]
    score: float
    heads: NDArray[np.int32]
    relations: NDArray[np.int32]


#: Log probabilities ``[S, actions]`` of the next actions; those of illegal ones are not looked at.
Scorer = Callable[[Asked], NDArray[np.floating]]


def beam_search(
    system: TransitionSystem, lengths: ArrayLike, width: int, scorer: Scorer
) -> list[Sequence]:
    """The best sequence of each sentence.

    Args:
        system: of the transitions.
        lengths: integers ``[B]``, words per sentence, at least one each.
        width: of the beam, at least 1.
        scorer: is asked once for each step, for all sentences that are not done.

    Raises:
        NotFiniteError: no legal action of a state has a probability, or one is not a number.
        ValueError: ``lengths`` is wrong, or there would be no hypothesis.
    """
    words = checked_lengths(lengths)
    order = np.argsort(-words, kind="stable")  # so that those which are done first come last
    found: list[Sequence | None] = [None] * len(words)
    states = States.start(system, words[order], width)
    count = len(words)
    scores = np.full((count, width), -np.inf)
    scores[:, 0] = 0.0
    actions = np.empty((len(states), 2 * int(words.max(initial=0))), dtype=np.int32)
    asked = Asked(states, np.full(len(states), -1), np.arange(len(states)), width)
    for step in range(actions.shape[1]):
        log_probabilities = np.where(states.legal_actions(), scorer(asked), -np.inf)
        if np.isnan(log_probabilities.sum()):
            row = int(np.isnan(log_probabilities).any(axis=1).argmax())
            raise NotFiniteError(
                f"sentence {int(order[row // width])}, step {step}: the scores are no numbers."
            )
        parents, chosen, scores = _survivors(scores, log_probabilities)
        if not (scores[:, 0] > -np.inf).all():
            sentence = int(order[int((scores[:, 0] == -np.inf).argmax())])
            raise NotFiniteError(
                f"sentence {sentence}, step {step}: no legal action has a probability."
            )
        actions = actions.take(parents, axis=0)
        actions[:, step] = chosen
        states = states.take(parents)
        states.advance(chosen)
        done = int((2 * words[order[:count]] == step + 1).sum())
        for place in range(count - done, count):
            row = place * width
            ((heads, relations),) = states.trees([row])
            own = actions[row, : step + 1].copy()
            found[order[place]] = Sequence(own, float(scores[place, 0]), heads, relations)
        count -= done
        kept = np.arange(count * width)
        if done:
            states, actions, scores = states.take(kept), actions[kept], scores[:count]
        asked = Asked(states, chosen[kept].astype(np.int64), parents[kept], width)
    return [sequence for sequence in found if sequence is not None]


def _survivors(
    scores: NDArray[np.float64], log_probabilities: NDArray[np.floating]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """The best continuations of each sentence.

    Args:
        scores: ``[B, width]`` of the hypotheses, the best first; minus infinity for none.
        log_probabilities: ``[B * width, actions]``, minus infinity where illegal.

    Returns:
        The hypothesis that each continues ``[B * width]``, its action, its score ``[B, width]``.
        Where there are fewer than the beam holds, the best one stands in with a score of minus
        infinity.
    """
    sentences, width = scores.shape
    actions = log_probabilities.shape[1]
    total = (scores[:, :, None] + log_probabilities.reshape(sentences, width, actions)).reshape(
        sentences, -1
    )
    kept = min(width, total.shape[1])
    if kept == 1:
        best = total.argmax(axis=1)[:, None]
    else:
        # Those that may be among the best, in their order, and of these a stable order.
        bound = np.partition(total, -kept, axis=1)[:, -kept]
        among = total >= bound[:, None]
        best = np.empty((sentences, kept), dtype=np.int64)
        clear = among.sum(axis=1) == kept
        columns = among[clear].nonzero()[1].reshape(-1, kept)
        order = np.argsort(-total[clear[:, None] & among].reshape(-1, kept), kind="stable")
        best[clear] = np.take_along_axis(columns, order, axis=1)
        for row in np.flatnonzero(~clear):  # several are as good as the last of them
            candidates = np.flatnonzero(among[row])
            best[row] = candidates[np.argsort(-total[row, candidates], kind="stable")[:kept]]
    values = np.take_along_axis(total, best, axis=1)
    missing = values == -np.inf
    best = np.where(missing, best[:, :1], best)
    if kept < width:
        more = ((0, 0), (0, width - kept))
        best, values = (
            np.pad(best, more, mode="edge"),
            np.pad(values, more, constant_values=-np.inf),
        )
        best[:, kept:] = best[:, :1]
    parents, chosen = np.divmod(best, actions)
    rows = parents + width * np.arange(sentences)[:, None]
    return rows.ravel(), chosen.ravel(), values
