"""Beam search against the enumeration of all sequences, greedy search, and its own score."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from spmrl_bench.errors import NotFiniteError
from spmrl_bench.transitions.system import (
    NONE,
    BeamStep,
    Hypothesis,
    States,
    TransitionSystem,
    beam_search,
)
from tests.transitions.test_system import every_walk, system_of


class Memory:
    """Log probabilities of actions that depend on all actions before, in a way that is no sum.

    It follows the hypotheses by what the search says of their parents alone, and would most like
    to do what is not legal.
    """

    def __init__(self, system: TransitionSystem, seed: int, sharp: float = 2.0) -> None:
        self.system = system
        self.seed = seed
        self.sharp = sharp

    def of(self, n: int, history: tuple[int, ...], legal: NDArray[np.bool_]) -> NDArray[np.float64]:
        draw = np.random.default_rng([self.seed, n, *history])
        scores = draw.normal(scale=self.sharp, size=self.system.actions)
        total = np.log(np.exp(scores[legal]).sum()) if legal.any() else 0.0
        return np.where(legal, scores - total, 1e30)

    def __call__(self, step: BeamStep) -> NDArray[np.float64]:
        if step.last[0] == NONE:
            self.histories: list[tuple[int, ...]] = [()] * len(step.states)
        else:
            pairs = zip(step.parents, step.last.tolist(), strict=True)
            self.histories = [(*self.histories[parent], last) for parent, last in pairs]
        rows = zip(step.states.lengths.tolist(), self.histories, step.legal, strict=True)
        return np.stack([self.of(*row) for row in rows])

    def score(self, actions: list[int]) -> float:
        """The log probability of a sequence, action by action."""
        n, total = len(actions) // 2, 0.0
        states = States(self.system, [n])
        for step, action in enumerate(actions):
            total += float(self.of(n, tuple(actions[:step]), states.legal()[0])[action])
            states.advance([action])
        return total


def search(memory: Any, lengths: list[int], width: int) -> list[Hypothesis]:
    return [best for (best,) in beam_search(memory.system, lengths, width, memory)]


def test_a_beam_that_holds_all_finds_the_best_of_all() -> None:
    for seed in range(2):
        memory = Memory(system_of(2), seed)
        for n, best in zip([2, 1, 3], search(memory, [2, 1, 3], 2000), strict=True):
            ways = every_walk(memory.system, n).tolist()
            score, actions = max((memory.score(way), way) for way in ways)
            assert best.score == pytest.approx(score, abs=1e-12)
            assert best.derivation.actions.tolist() == actions


def test_narrow_beams_are_never_better_and_one_is_greedy() -> None:
    worse = 0
    for seed in range(4):
        memory = Memory(system_of(2), seed, sharp=1.0)
        best = search(memory, [4], 1000)[0].score
        few = [search(memory, [4], width)[0].score for width in (1, 2, 8)]
        assert max(few) <= best + 1e-12
        worse += few[0] < best - 1e-9
        states, actions = States(memory.system, [4]), list[int]()
        for _ in range(8):
            legal = states.legal()[0]
            scores = np.where(legal, memory.of(4, tuple(actions), legal), -np.inf)
            actions.append(int(scores.argmax()))
            states.advance(actions[-1:])
        assert search(memory, [4], 1)[0].derivation.actions.tolist() == actions
    assert worse > 0  # else the test says little


def test_the_score_and_the_tree_are_those_of_the_actions() -> None:
    memory, lengths = Memory(system_of(3), 7), [3, 6, 1, 4, 6]
    for width in (1, 3, 8):
        for n, best in zip(lengths, search(memory, lengths, width), strict=True):
            actions = best.derivation.actions.tolist()
            assert len(actions) == 2 * n
            assert best.score == pytest.approx(memory.score(actions), abs=1e-12)
            derivation, *tree = memory.system.replay(actions)
            pairs = zip(best.derivation + best[1:3], (*derivation, *tree), strict=True)
            assert all(np.array_equal(*pair) for pair in pairs)


def test_of_equal_scores_the_better_hypothesis_and_the_lower_action_go_first() -> None:
    for width in (1, 2, 5, 50):
        ((one,),) = beam_search(system_of(2), [3], width, lambda step: np.zeros(step.legal.shape))
        # SHIFT is action 0 and first wherever it is legal, then the left arc with relation 0.
        assert one.derivation.actions.tolist() == [0, 0, 0, 1, 1, 3]
        assert one.heads.tolist() == [3, 3, 0]


def test_what_has_no_probability_is_never_done() -> None:
    def only_left(step: BeamStep) -> NDArray[np.float64]:
        scores = np.zeros(step.legal.shape)
        scores[:, 2] = np.where(step.states.sizes == 2, 0.0, -np.inf)
        scores[:, 0] = np.where(step.states.sizes >= 3, -np.inf, 0.0)
        return scores

    for width in (1, 4):
        ((one,),) = beam_search(system_of(1), [4], width, only_left)
        assert one.heads.tolist() == [2, 3, 4, 0]


@pytest.mark.parametrize(
    ("number", "message"),
    [(-np.inf, "no legal action has"), *((x, "a score is NaN or inf") for x in (np.nan, np.inf))],
)
def test_the_sentence_of_a_bad_score_is_named(number: float, message: str) -> None:
    def spoilt(step: BeamStep) -> NDArray[np.float64]:
        scores = np.zeros(step.legal.shape)
        place = [5, 4, 2, 1].index(4) * step.width
        if (step.states.fronts == 3).all():
            scores[place : place + step.width] = number
        return scores

    with pytest.raises(NotFiniteError, match=f"sentence 2, step 2: {message}"):
        beam_search(system_of(1), [2, 1, 4, 5], 2, spoilt)
