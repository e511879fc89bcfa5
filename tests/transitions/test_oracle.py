"""The oracle on long random trees and bad ones, and the states that its actions lead through."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from spmrl_bench.errors import TreeError
from spmrl_bench.transitions import (
    NO_ACTION,
    SYSTEMS,
    IllegalActionError,
    States,
    TransitionSystem,
    oracle_actions,
    replay,
    state_history,
)
from spmrl_bench.trees.projective import is_projective, projectivize
from tests.twins import kernels_of, needs, running_on

every_kernel = pytest.mark.parametrize("kernel", kernels_of("transitions"))
systems = pytest.mark.parametrize("name", SYSTEMS)
root_settings = pytest.mark.parametrize("roots", ["one", "several"])
LENGTHS = [1, 2, 9, 30, 17, 2, 1, 64]


def random_heads(rng: np.random.Generator, n: int, roots: str) -> list[int]:
    """A projective tree: any tree, lifted."""
    order = rng.permutation(n) + 1
    heads = [0] * n
    for place in range(1, n):
        # Near words govern each other more often, so that lifting leaves something.
        before = order[:place]
        near = before[np.abs(before - order[place]).argmin()]
        governor = near if rng.random() < 0.8 else rng.choice(before)
        heads[order[place] - 1] = int(governor) if roots == "one" or rng.random() < 0.9 else 0
    return projectivize(heads)


def random_batch(seed: int, roots: str) -> tuple[list[int], list[int]]:
    """Heads and relations of sentences of these lengths."""
    rng = np.random.default_rng(seed)
    heads = [head for n in LENGTHS for head in random_heads(rng, n, roots)]
    return heads, rng.integers(0, 4, len(heads)).tolist()


@needs("transitions")
@systems
@root_settings
def test_kernels_agree_bit_for_bit(name: Any, roots: Any) -> None:
    system = TransitionSystem(name, 4, roots=roots)
    for seed in range(5):
        heads, relations = random_batch(seed, roots)
        found = []
        for kernel in ("python", "cython"):
            with running_on(kernel, "transitions"):
                actions = oracle_actions(system, heads, relations, LENGTHS)
                past = state_history(system, actions, LENGTHS)
                whole = (actions, past.pushed, past.removed, past.s0, past.s1, past.b0, past.legal)
                found.append([array.tobytes() for array in (*whole, past.legal_actions())])
                assert replay(system, actions, LENGTHS).heads.tolist() == heads
        assert found[0] == found[1]


@every_kernel
@systems
@root_settings
def test_history_is_what_states_say_step_by_step(kernel: str, name: Any, roots: Any) -> None:
    table = np.array([[True, False], [False, True], [True, True], [True, True]])
    system = TransitionSystem(name, 4, roots=roots, permitted=table)
    heads, relations = random_batch(7, roots)
    relations = [2 + r % 2 for r in relations]
    with running_on(kernel, "transitions"):
        actions = oracle_actions(system, heads, relations, LENGTHS)
        past = state_history(system, actions, LENGTHS)
        legal_actions = past.legal_actions()
        states = States.start(system, LENGTHS)
        for step in range(actions.shape[1]):
            masks, tops = states.masks(), states.tops()
            assert np.array_equal(past.pushed[:, step], masks.pushed)
            assert np.array_equal(past.removed[:, step], masks.removed)
            assert np.array_equal(past.s0[:, step], tops.s0)
            assert np.array_equal(past.s1[:, step], tops.s1)
            assert np.array_equal(past.b0[:, step], tops.b0)
            assert np.array_equal(past.legal[:, step], states.legal_moves())
            assert np.array_equal(legal_actions[:, step], states.legal_actions())
            states.advance(actions[:, step])
        assert states.finished().all()
        shorter = state_history(system, actions[:, :7], LENGTHS)
    assert past.pushed.shape == past.removed.shape == (8, 128, 65)
    assert past.legal.shape == (8, 128, 3)
    assert np.array_equal(shorter.removed, past.removed[:, :7])
    # What stands behind the end of a sentence is its finished state.
    assert past.removed[0, 2:, 1:].all()
    assert not past.removed[:, :, 0].any()
    assert not past.legal[0, 2:].any()


@systems
def test_gold_actions_are_legal(name: Any) -> None:
    system = TransitionSystem(name, 4)
    heads, relations = random_batch(8, "one")
    actions = oracle_actions(system, heads, relations, LENGTHS)
    legal = state_history(system, actions, LENGTHS).legal_actions()
    rows, steps = np.nonzero(actions != NO_ACTION)
    assert legal[rows, steps, actions[rows, steps]].all()
    assert len(rows) == 2 * sum(LENGTHS)
    assert not legal[actions == NO_ACTION].any()


@systems
def test_a_batch_is_its_sentences(name: Any) -> None:
    system = TransitionSystem(name, 4, roots="several")
    heads, relations = random_batch(9, "several")
    actions = oracle_actions(system, heads, relations, LENGTHS)
    for b, end in enumerate(np.cumsum(LENGTHS).tolist()):
        own = slice(end - LENGTHS[b], end)
        alone = oracle_actions(system, heads[own], relations[own], LENGTHS[b : b + 1])
        assert actions[b].tolist() == alone[0].tolist() + [NO_ACTION] * (128 - alone.shape[1])


@systems
def test_an_empty_batch(name: Any) -> None:
    system = TransitionSystem(name, 4)
    actions = oracle_actions(system, [], [], [])
    assert actions.shape == (0, 0)
    assert len(replay(system, actions, [])) == 0
    assert state_history(system, actions, []).pushed.shape == (0, 0, 1)


#: A good sentence of two words, and one of four.
TREES: list[Any] = [
    ([2, 1, 0, 3], "sentence 1: word 1: the heads form a cycle: 1 -> 2 -> 1"),
    ([1, 0, 2, 3], "sentence 1: word 1: the heads form a cycle: 1 -> 1"),
    ([0, 1, 0, 3], "sentence 1: word 3: a second root; 2 words have head 0"),
    ([0, 1, 5, 3], r"sentence 1: word 3: head 5 is not one of 0\.\.4"),
    ([0, 1, -1, 3], r"sentence 1: word 3: head -1 is not one of 0\.\.4"),
    ([0, 4, 1, 1], "sentence 1: the arc from 1 to 3 crosses that from 4 to 2; transitions"),
    ([3, 0, 2, 3], "sentence 1: the arc from 0 to 2 crosses that from 3 to 1"),
]


@every_kernel
@pytest.mark.parametrize(("heads", "message"), TREES)
def test_trees_that_cannot_be_made_are_named(kernel: str, heads: list[int], message: str) -> None:
    for name in SYSTEMS:
        with running_on(kernel, "transitions"), pytest.raises(TreeError, match=message):
            oracle_actions(TransitionSystem(name, 1), [2, 0, *heads], [0] * 6, [2, 4])


def test_several_roots_are_a_matter_of_the_system() -> None:
    heads = [0, 1, 0, 0]
    for name in SYSTEMS:
        system = TransitionSystem(name, 1, roots="several")
        actions = oracle_actions(system, heads, [0] * 4, [4])
        assert replay(system, actions, [4]).heads.tolist() == heads
        with pytest.raises(IllegalActionError, match=r"RIGHT-ARC with relation 0; legal is SHIFT"):
            replay(TransitionSystem(name, 1), actions, [4])


def test_relations_that_are_not_permitted_are_named() -> None:
    table = np.array([[True, False], [False, True]])
    system = TransitionSystem("arc-hybrid", 2, permitted=table)
    good = oracle_actions(system, [2, 0, 0, 1], [1, 0, 0, 1], [2, 2])
    assert (good >= 0).all()
    with pytest.raises(TreeError, match="sentence 1: word 1 has relation 1 at the root, where"):
        oracle_actions(system, [2, 0, 0, 1], [1, 0, 1, 1], [2, 2])
    with pytest.raises(TreeError, match="sentence 1: word 2 has relation 0 between words"):
        oracle_actions(system, [2, 0, 0, 1], [1, 0, 0, 0], [2, 2])


ARRAYS: list[Any] = [
    ([0, 1, 1], [0, 0], [2], "heads has 3 entries; the batch has 2 words"),
    ([0, 1], [0, 0, 0], [2], "relations has 3 entries; the batch has 2 words"),
    ([0, 1], [0, 2], [2], r"relations\[1\] is 2; relations are 0\.\.1"),
    ([0, 1], [-1, 0], [2], r"relations\[0\] is -1"),
    ([0.0, 1.0], [0, 0], [2], "heads has dtype float64; it must hold integers"),
    ([[0, 1]], [0, 0], [2], "heads has shape"),
    ([], [], [0], r"lengths\[0\] is 0; a sentence has at least 1 word"),
]


@pytest.mark.parametrize(("heads", "relations", "lengths", "message"), ARRAYS)
def test_bad_arrays_are_refused(heads: Any, relations: Any, lengths: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        oracle_actions(TransitionSystem("arc-standard", 2), heads, relations, lengths)


ACTIONS: list[Any] = [
    ([0, 0, 1, 3], r"actions has shape \(4,\); it must be \[1, steps\]"),
    ([[0, 0, 1, 3]] * 2, r"actions has shape \(2, 4\); it must be \[1, steps\]"),
    ([[0.0, 0, 1, 3]], "actions has dtype float64"),
]


@pytest.mark.parametrize(("actions", "message"), ACTIONS)
def test_bad_actions_are_refused(actions: Any, message: str) -> None:
    system = TransitionSystem("arc-standard", 2)
    for function in (replay, state_history):
        with pytest.raises(ValueError, match=message):
            function(system, actions, [2])


@every_kernel
def test_illegal_actions_of_a_sequence_are_named(kernel: str) -> None:
    system = TransitionSystem("arc-standard", 2)
    actions = np.array([[0, 3, 9, 9, 9], [0, 0, 3, 1, 9]])
    with running_on(kernel, "transitions"):
        with pytest.raises(ValueError, match="actions has 3 columns; 2 words need 4 actions"):
            replay(system, actions[:, :3], [1, 2])
        for function, place in ((replay, r"actions\[1\]"), (state_history, r"actions\[1, 3\]")):
            message = (
                rf"{place} \(sentence 1, after 3 actions\) is 1, LEFT-ARC with relation 0; "
                r"legal is RIGHT-ARC\.$"
            )
            with pytest.raises(IllegalActionError, match=message):
                function(system, actions, [1, 2])
        actions[1, 3] = NO_ACTION
        with pytest.raises(IllegalActionError, match=r"is -1, none of the actions 0\.\.4"):
            state_history(system, actions, [1, 2])


def test_random_trees_are_what_they_should_be() -> None:
    for roots in ("one", "several"):
        rng = np.random.default_rng(3)
        heads = random_heads(rng, 40, roots)
        assert is_projective(heads)
        assert (heads.count(0) == 1) == (roots == "one")
        assert len(set(heads)) > 10
