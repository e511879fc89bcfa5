"""States of transition systems in a beam, by pytest-benchmark.

Run with ``make bench``; elsewhere each of these runs once, with few states. A round is a walk of
all states from the first to the last action of sentences of 24 words, with 40 relations.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from spmrl_bench.speed.work import Work
from spmrl_bench.transitions import (
    SYSTEMS,
    States,
    SystemName,
    TransitionSystem,
    oracle_actions,
    state_history,
)
from tests.benchmarks.test_work import timed

WORDS = 24
BEAM = 32


@pytest.fixture
def sentences(request: pytest.FixtureRequest) -> int:
    return 256 if request.config.getoption("benchmark_enable") else 2


@pytest.mark.parametrize("name", SYSTEMS)
def test_states_in_a_beam(benchmark: Any, sentences: int, name: SystemName) -> None:
    rng = np.random.default_rng(1)
    system = TransitionSystem(name, 40)
    steps = []
    states = States.start(system, [WORDS] * sentences, beams=BEAM)
    for _ in range(2 * WORDS):
        legal = states.legal_actions()
        actions = np.where(legal, rng.random(legal.shape), -1).argmax(axis=1).astype(np.int32)
        survivors = rng.integers(BEAM, size=(sentences, BEAM))
        parents = (survivors + BEAM * np.arange(sentences)[:, None]).ravel().astype(np.int32)
        steps.append((actions, parents))
        states.advance(actions)
        states = states.take(parents)

    def walk() -> States:
        states = States.start(system, [WORDS] * sentences, beams=BEAM)
        for actions, parents in steps:
            states.legal_actions()
            states.advance(actions)
            states = states.take(parents)
        return states

    done = timed(benchmark, Work("beam", walk, 2 * WORDS * len(states), "states"))
    assert done.finished().all()


def test_oracle_and_history(benchmark: Any, sentences: int) -> None:
    """Of chains of words, each governed by the next."""
    system = TransitionSystem("arc-standard", 40)
    lengths = np.full(sentences, WORDS)
    heads = np.tile([*range(2, WORDS + 1), 0], sentences)

    def run() -> Any:
        actions = oracle_actions(system, heads, np.zeros_like(heads), lengths)
        return state_history(system, actions, lengths)

    past = timed(benchmark, Work("oracle", run, len(heads), "words"))
    assert past.removed[:, -1, 1:].sum() == len(heads) - sentences
