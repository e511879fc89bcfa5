"""Batches of states: both kernels, beams, finished states, random walks, and what is refused."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from spmrl_bench.transitions import (
    SYSTEMS,
    IllegalActionError,
    States,
    TransitionSystem,
)
from tests.reliability.tally import Tally
from tests.transitions.walks import assert_trees, random_legal
from tests.twins import check_fallback, kernels_of, needs, running_on

every_kernel = pytest.mark.parametrize("kernel", kernels_of("transitions"))
systems = pytest.mark.parametrize("name", SYSTEMS)
root_settings = pytest.mark.parametrize("roots", ["one", "several"])
WALKS = "random legal walks, which end in trees"
MIXED = [1, 2, 9, 10, 17, 33, 2, 1, 5, 40]


def random_system(rng: np.random.Generator, name: Any, roots: Any) -> TransitionSystem:
    """One with a table that bars some relations."""
    table = rng.random((6, 2)) < 0.5
    table[rng.integers(6, size=2), [0, 1]] = True
    return TransitionSystem(name, 6, roots=roots, permitted=table)


def arrays(states: States) -> list[np.ndarray]:
    """Everything that can be known of states."""
    return [
        *(states.sentences, states.lengths, states.stack, states.sizes, states.fronts),
        *(states.heads, states.relations, states.steps, states.finished()),
        *(*states.masks(), *states.tops(), states.legal_moves(), states.legal_actions()),
    ]


def random_program(seed: int, name: str, roots: str) -> Iterator[States]:
    """States that go through random actions and are now and then taken by random numbers."""
    rng = np.random.default_rng(seed)
    states = States.start(random_system(rng, name, roots), MIXED, beams=2)
    yield states
    while not states.finished().all():
        states.advance(random_legal(rng, states.legal_actions()))
        yield states
        if rng.random() < 0.3:
            states = states.take(rng.integers(len(states), size=rng.integers(1, 40)))
            yield states


@needs("transitions")
@systems
@root_settings
def test_kernels_agree_bit_for_bit(name: str, roots: str, tally: Tally) -> None:
    held = tally("R9", "programs of transitions done by the kernel and its twin")
    for seed in range(3):
        held.add()
        seen: dict[str, list[bytes]] = {}
        finished = 0
        for kernel in ("python", "cython"):
            with running_on(kernel, "transitions"):
                trace = seen[kernel] = []
                for states in random_program(seed, name, roots):
                    trace.extend(array.tobytes() for array in arrays(states))
                    finished += 0 < states.finished().sum() < len(states)
        assert seen["python"] == seen["cython"]
        assert finished > 10  # some states were finished while others went on


@every_kernel
@systems
def test_states_say_what_was_done(kernel: str, name: Any) -> None:
    """A walk by hand over two words: 2 governs 1, in a batch with a sentence of one word."""
    system = TransitionSystem(name, 2)
    hybrid = name == "arc-hybrid"
    shift, left, right = system.action(0), system.action(1, 1), system.action(2, 0)
    with running_on(kernel, "transitions"):
        states = States.start(system, [2, 1])
        assert states.sentences.tolist() == [0, 1]
        assert states.legal_moves().tolist() == [[True, False, False]] * 2
        assert [top.tolist() for top in states.tops()] == [[0, 0], [-1, -1], [1, 1]]
        states.advance([shift, shift])
        assert [top.tolist() for top in states.tops()] == [[1, 1], [0, 0], [2, -1]]
        # The root takes its one word when none waits.
        assert states.legal_moves().tolist() == [[True, hybrid, False], [False, False, True]]
        pushed, removed = states.masks()
        assert pushed.dtype == removed.dtype == np.uint8
        assert pushed.tolist() == [[1, 1, 0], [1, 1, 0]]
        assert removed.tolist() == [[0, 0, 0], [0, 0, 1]]
        states.advance([left if hybrid else shift, right])
        states.advance([shift if hybrid else left, 99])
        assert states.finished().tolist() == [False, True]
        assert states.steps.tolist() == [3, 2]
        assert [top.tolist() for top in states.tops()] == [[2, 0], [0, -1], [-1, -1]]
        assert states.legal_actions().tolist() == [[False] * 3 + [True] * 2, [False] * 5]
        assert [mask.tolist() for mask in states.masks()] == [
            [[1, 1, 1], [1, 1, 0]],
            [[0, 1, 0], [0, 1, 1]],
        ]
        states.advance([right, -7])
        trees = states.trees()
    assert len(trees) == 2
    assert [(h.tolist(), r.tolist()) for h, r in trees] == [([2, 0], [1, 0]), ([0], [0])]
    assert trees.offsets.tolist() == [0, 2, 3]


@needs("transitions")
@systems
@root_settings
def test_random_walks_end_in_trees(name: str, roots: str, tally: Tally) -> None:
    tally("R7", WALKS).add(100_000)
    walks_end_in_trees(name, roots, seed=0)


@pytest.mark.campaign
@needs("transitions")
@systems
@root_settings
def test_a_million_random_walks_end_in_trees(name: str, roots: str, tally: Tally) -> None:
    held = tally("R7", WALKS)
    for seed in range(1, 11):
        held.add(100_000)
        walks_end_in_trees(name, roots, seed)


def walks_end_in_trees(name: str, roots: str, seed: int) -> None:
    """A hundred thousand of them, over one to twelve words."""
    rng = np.random.default_rng(seed)
    states = States.start(random_system(rng, name, roots), rng.integers(1, 13, 100_000))
    for _ in range(24):
        states.advance(random_legal(rng, states.legal_actions()))
    assert_trees(states)
    assert len({row.tobytes() for row in states.heads}) > 3_000


@every_kernel
@systems
@root_settings
def test_scores_that_ask_for_illegal_moves_do_not_get_them(
    kernel: str, name: str, roots: str, tally: Tally
) -> None:
    """By the mask the best legal action is taken, and each illegal one is refused."""
    held = tally("R7", "illegal actions that have the best score, which are refused")
    rng = np.random.default_rng(5)
    system = random_system(rng, name, roots)
    with running_on(kernel, "transitions"):
        states = States.start(system, MIXED)
        while not states.finished().all():
            legal = states.legal_actions()
            scores = np.where(legal, -1e30, 1e30) * rng.random(legal.shape)
            unfinished = np.flatnonzero(~states.finished())
            for state in rng.choice(unfinished, 2):
                wanted = np.where(legal.any(axis=1), legal.argmax(axis=1), 0)
                wanted[state] = scores[state].argmax()
                assert not legal[state, wanted[state]]
                held.add()
                before = [array.copy() for array in arrays(states)]
                with pytest.raises(IllegalActionError) as raised:
                    states.advance(wanted)
                assert raised.value.sentence == states.sentences[state]
                after = arrays(states)
                assert all(map(np.array_equal, before, after)), "nothing has changed"
            states.advance(np.where(legal, scores, -np.inf).argmax(axis=1))
        assert_trees(states)


@systems
def test_states_that_are_taken_go_on_by_themselves(name: Any) -> None:
    rng = np.random.default_rng(6)
    states = States.start(TransitionSystem(name, 2), [3, 7, 5], beams=2)
    assert states.sentences.tolist() == [0, 0, 1, 1, 2, 2]
    for _ in range(5):
        states.advance(random_legal(rng, states.legal_actions()))
    parents = [5, 2, 2, 0, 4, 2, 1]
    taken = states.take(np.array(parents, dtype=np.uint8))
    assert taken.sentences.tolist() == [2, 1, 1, 0, 2, 1, 0]
    before = [array.copy() for array in arrays(states)]
    for array, own in zip(arrays(states), arrays(taken), strict=True):
        assert np.array_equal(array[parents], own)
    masks = taken.masks()
    kept = [mask.copy() for mask in masks]
    while not taken.finished().all():
        taken.advance(random_legal(rng, taken.legal_actions()))
    assert_trees(taken)
    assert all(map(np.array_equal, before, arrays(states)))
    assert all(map(np.array_equal, kept, masks)), "what was returned is the caller's own"
    trees = taken.trees([3, 0])
    assert trees.offsets.tolist() == [0, 3, 8]
    assert list(trees)[1][0].tolist() == taken.heads[0, 1:6].tolist()


def test_no_sentences_and_no_states() -> None:
    system = TransitionSystem("arc-standard", 2)
    for states in (States.start(system, []), States.start(system, [4]).take([])):
        assert len(states) == 0
        states.advance([])
        assert states.finished().shape == (0,)
        assert states.legal_actions().shape == (0, 5)
        assert len(states.trees()) == 0
        assert states.take([]).width == states.width


def test_arrays_cannot_be_written() -> None:
    states = States.start(TransitionSystem("arc-standard", 2), [3])
    for name in ("sentences", "lengths", "stack", "sizes", "fronts", "heads", "relations"):
        with pytest.raises(ValueError, match="read-only"):
            getattr(states, name)[0] = 1


ADVANCE: list[Any] = [
    ([0.0, 0.0], "actions has dtype float64; it must hold integers"),
    ([True, False], "actions has dtype bool; it must hold integers"),
    ([[0, 0]], r"actions has shape \(1, 2\)"),
    ([0], "actions has 1 entries; there are 2 states"),
    (np.array([0, 2**40]), "must fit 32-bit integers"),
]
TAKE: list[Any] = [
    ([0, 2], r"parents\[1\] is 2; there are 2 states, from 0"),
    ([-1], r"parents\[0\] is -1"),
    ([0.0], "parents has dtype float64"),
    (np.zeros((1, 1), int), r"parents has shape \(1, 1\)"),
]


@pytest.mark.parametrize(("actions", "message"), ADVANCE)
def test_bad_actions_are_refused(actions: Any, message: str) -> None:
    states = States.start(TransitionSystem("arc-standard", 2), [3, 1])
    with pytest.raises(ValueError, match=message):
        states.advance(actions)
    # Other types of integers, and rows that are not contiguous, are converted.
    states.advance(np.zeros((2, 2), dtype=np.int64)[:, 0])
    assert states.fronts.tolist() == [2, 2]


@pytest.mark.parametrize(("parents", "message"), TAKE)
def test_bad_parents_are_refused(parents: Any, message: str) -> None:
    states = States.start(TransitionSystem("arc-standard", 2), [3, 1])
    with pytest.raises(ValueError, match=message):
        states.take(parents)


def test_bad_starts_and_unfinished_trees_are_refused() -> None:
    system = TransitionSystem("arc-standard", 2)
    with pytest.raises(ValueError, match=r"lengths\[1\] is 0; a sentence has at least 1 word"):
        States.start(system, [3, 0])
    with pytest.raises(ValueError, match="beams is 0; a sentence begins with at least 1 state"):
        States.start(system, [3], beams=0)
    states = States.start(system, [3, 1])
    states.advance([0, 0])
    states.advance([0, 3])
    assert [heads.tolist() for heads, _ in states.trees([1])] == [[0]]
    with pytest.raises(ValueError, match=r"state 0 \(sentence 0\) has done 2 of 6 actions"):
        states.trees()
    with pytest.raises(ValueError, match=r"rows\[0\] is 2; there are 2 states"):
        states.trees([2])


@every_kernel
def test_an_illegal_action_is_named_with_what_is_legal(kernel: str) -> None:
    table = np.array([[True, False], [False, True], [True, True]])
    system = TransitionSystem("arc-hybrid", 3, permitted=table)
    message = {
        3: "LEFT-ARC with relation 2; legal is SHIFT",
        7: "none of the actions 0..6; legal is SHIFT",
        -1: "none of the actions 0..6; legal is SHIFT",
    }
    with running_on(kernel, "transitions"):
        states = States.start(system, [2, 2, 2]).take([2, 1, 0])
        for action, text in message.items():
            place = rf"actions\[1\] \(sentence 1, after 0 actions\) is {action}, {text}\.$"
            with pytest.raises(IllegalActionError, match=place):
                states.advance([0, action, 0])
        states.advance([0, 0, 0])
        # Relation 0 is for the root, which comes last.
        place = (
            r"actions\[2\] \(sentence 0, after 1 actions\) is 1, LEFT-ARC with relation 0; legal "
            r"is SHIFT, LEFT-ARC \(relations 1, 2\)\.$"
        )
        with pytest.raises(IllegalActionError, match=place) as raised:
            states.advance([0, 2, 1])
        error = pickle.loads(pickle.dumps(raised.value))
        assert (str(error), error.sentence, error.step, error.action) == (
            str(raised.value),
            0,
            1,
            1,
        )
        states.advance([2, 2, 2])
        states.advance([0, 0, 0])
        with pytest.raises(
            IllegalActionError, match=r"is 5, .*legal is RIGHT-ARC \(relations 0, 2"
        ):
            states.advance([5, 4, 4])


@every_kernel
@systems
def test_numbers_beyond_the_last_action_are_illegal(kernel: str, name: Any) -> None:
    """Also where an arc is legal that they would be, counted on."""
    with running_on(kernel, "transitions"):
        states = States.start(TransitionSystem(name, 2), [1])
        states.advance([0])
        for number in (5, 6, 7, 2**31 - 1, -1, -(2**31)):
            with pytest.raises(
                IllegalActionError, match=r"none of the actions 0\.\.4; legal is RIGHT"
            ):
                states.advance([number])
        states.advance([4])
        assert states.relations.tolist() == [[-1, 1]]


def test_without_the_kernel_its_twin_is_used_with_one_warning() -> None:
    def run() -> States:
        states = States.start(TransitionSystem("arc-standard", 2), [3])
        states.advance([0])
        return states

    with running_on("python", "transitions"):
        expected = run()
    check_fallback("transitions", run, expected)
