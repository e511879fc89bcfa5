"""Beam search against the enumeration of all sequences, greedy search, and its own score."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from numpy.typing import NDArray

from spmrl_bench.chart import NotFiniteError
from spmrl_bench.transitions import SYSTEMS, States, TransitionSystem
from spmrl_bench.transitions.beam import Asked, Sequence, beam_search


class Memory:
    """Log probabilities of actions that depend on all actions before, in a way that is no sum.

    It follows the hypotheses by what the search says of their parents alone.
    """

    def __init__(self, system: TransitionSystem, seed: int, sharp: float = 2.0) -> None:
        self.system = system
        self.seed = seed
        self.sharp = sharp
        self.histories: list[tuple[int, ...]] = []

    def of(
        self, sentence: int, history: tuple[int, ...], legal: NDArray[np.bool_]
    ) -> NDArray[np.float64]:
        draw = np.random.default_rng([self.seed, sentence, *history])
        scores = np.where(legal, draw.normal(scale=self.sharp, size=self.system.actions), -np.inf)
        if not legal.any():
            return scores
        best = scores.max()
        result: NDArray[np.float64] = scores - best - np.log(np.exp(scores - best).sum())
        return result

    def __call__(self, asked: Asked) -> NDArray[np.float64]:
        states = asked.states
        if self.histories:
            self.histories = [
                (*self.histories[parent], int(last))
                for parent, last in zip(asked.parents, asked.last, strict=True)
            ]
        else:
            assert (asked.last == -1).all()
            self.histories = [()] * len(states)
        rows = zip(states.sentences.tolist(), self.histories, states.legal_actions(), strict=True)
        return np.stack([self.of(*row) for row in rows])


def every(memory: Memory, sentence: int, n: int) -> Iterator[tuple[float, tuple[int, ...]]]:
    """All sequences of a sentence with their scores."""

    def going_on(
        state: States, history: tuple[int, ...], score: float
    ) -> Iterator[tuple[float, tuple[int, ...]]]:
        legal = state.legal_actions()[0]
        if not legal.any():
            yield score, history
        found = memory.of(sentence, history, legal)
        for action in np.flatnonzero(legal).tolist():
            after = state.take([0])
            after.advance([action])
            yield from going_on(after, (*history, action), score + found[action])

    yield from going_on(States.start(memory.system, [n]), (), 0.0)


def searched(memory: Memory, lengths: list[int], width: int) -> list[Sequence]:
    memory.histories = []
    return beam_search(memory.system, lengths, width, memory)


@pytest.mark.parametrize("name", SYSTEMS)
def test_a_beam_that_holds_all_finds_the_best_of_all(name: str) -> None:
    system = TransitionSystem(name, relations=2)
    lengths = [2, 1, 3]
    for seed in range(5):
        memory = Memory(system, seed)
        # Sentences are numbered by their place in the search, the longest first.
        found = searched(memory, lengths, 2000)
        for place, sentence in ((2, 0), (0, 1), (1, 2)):
            ways = sorted(every(memory, sentence, lengths[place]), reverse=True)
            assert len(ways) <= 2000
            score, history = ways[0]
            assert found[place].score == pytest.approx(score, abs=1e-12)
            assert tuple(found[place].actions.tolist()) == history


def test_narrow_beams_are_never_better_and_one_is_greedy() -> None:
    system = TransitionSystem("arc-standard", relations=2)
    worse = 0
    for seed in range(8):
        memory = Memory(system, seed, sharp=1.0)
        best = searched(memory, [4], 1000)[0].score
        few = [searched(memory, [4], width)[0].score for width in (1, 2, 8)]
        assert max(few) <= best + 1e-12
        worse += few[0] < best - 1e-9
        state, history, score = States.start(system, [4]), (), 0.0
        while not state.finished()[0]:
            scores = memory.of(0, history, state.legal_actions()[0])
            action = int(scores.argmax())
            score += scores[action]
            history = (*history, action)
            state.advance([action])
        greedy = searched(memory, [4], 1)[0]
        assert (tuple(greedy.actions.tolist()), greedy.score) == (history, pytest.approx(score))
        assert greedy.heads.tolist() == state.trees().heads.tolist()
    assert worse > 1  # else the test says little


def test_the_score_and_the_tree_are_those_of_the_actions() -> None:
    system = TransitionSystem("arc-hybrid", relations=3)
    memory = Memory(system, 7)
    lengths = [3, 6, 1, 4, 6]
    order = [1, 4, 3, 0, 2]
    for width in (1, 3, 8):
        found = searched(memory, lengths, width)
        for sentence, place in enumerate(order):
            one, n = found[place], lengths[place]
            state, score = States.start(system, [n]), 0.0
            for step, action in enumerate(one.actions.tolist()):
                history = tuple(one.actions[:step].tolist())
                score += memory.of(sentence, history, state.legal_actions()[0])[action]
                state.advance([action])
            assert len(one.actions) == 2 * n
            assert one.score == pytest.approx(score, abs=1e-12)
            assert one.heads.tolist() == state.trees().heads.tolist()
            assert one.relations.tolist() == state.trees().relations.tolist()


def test_of_equal_scores_the_better_hypothesis_and_the_lower_action_go_first() -> None:
    system = TransitionSystem("arc-standard", relations=2)

    def indifferent(asked: Asked) -> NDArray[np.float64]:
        return np.zeros((len(asked.states), system.actions))

    for width in (1, 2, 5, 50):
        one = beam_search(system, [3], width, indifferent)[0]
        # SHIFT is action 0 and first wherever it is legal, then the left arc with relation 0.
        assert one.actions.tolist() == [0, 0, 0, 1, 1, 3]
        assert one.heads.tolist() == [3, 3, 0]


def test_what_has_no_probability_is_never_done() -> None:
    system = TransitionSystem("arc-standard", relations=1)

    def only_left(asked: Asked) -> NDArray[np.float64]:
        scores = np.zeros((len(asked.states), system.actions))
        scores[:, 2] = np.where(asked.states.sizes == 2, 0.0, -np.inf)
        scores[:, 0] = np.where(asked.states.sizes >= 3, -np.inf, 0.0)
        return scores

    for width in (1, 4):
        (one,) = beam_search(system, [4], width, only_left)
        assert one.heads.tolist() == [2, 3, 4, 0]

    def nothing(asked: Asked) -> NDArray[np.float64]:
        return np.full((len(asked.states), system.actions), -np.inf)

    with pytest.raises(NotFiniteError, match="sentence 1, step 0: no legal action has a probab"):
        beam_search(system, [1, 3], 2, nothing)
