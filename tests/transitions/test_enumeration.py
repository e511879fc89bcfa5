"""Transition systems against the enumeration of all sequences of moves and of all trees."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from spmrl_bench.transitions import (
    SYSTEMS,
    NonProjectiveError,
    States,
    TransitionSystem,
    oracle_actions,
    replay,
)
from tests.reliability.tally import Tally
from tests.transitions.simulation import all_trees, legal_after, projective_count, sequences
from tests.transitions.walks import every_walk
from tests.twins import kernels_of, needs, running_on

every_kernel = pytest.mark.parametrize("kernel", kernels_of("transitions"))
systems = pytest.mark.parametrize("name", SYSTEMS)
root_settings = pytest.mark.parametrize("roots", ["one", "several"])
campaign = pytest.mark.campaign
#: How many words can be enumerated with each kernel.
SMALL = [
    pytest.param(4, "python"),
    pytest.param(6, "cython", marks=needs("transitions")),
]
LARGER = [*SMALL, pytest.param(7, "cython", marks=[needs("transitions"), campaign])]


def written(moves: np.ndarray) -> list[str]:
    """Rows of moves as strings of "s", "l" and "r"."""
    return ["".join("slr"[move] for move in row) for row in moves.tolist()]


@systems
@root_settings
@pytest.mark.parametrize(("longest", "kernel"), LARGER)
def test_legal_sequences_are_those_that_end_in_a_tree(
    name: str, roots: str, longest: int, kernel: str, tally: Tally
) -> None:
    held = tally("R7", "legal sequences of moves, all that there are")
    system = TransitionSystem(name, 1, roots=roots)
    for n in range(1, longest + 1):
        with running_on(kernel, "transitions"):
            actions, states = every_walk(system, n)
            trees = [tuple(heads.tolist()) for heads, _ in states.trees()]
        held.add(len(trees))
        found = dict(zip(written(system.moves(actions)), trees, strict=True))
        assert actions.shape == (len(found), 2 * n)
        assert found == sequences(name, n, roots)
        assert set(trees) == set(all_trees(n, roots)[0])


@systems
@root_settings
@pytest.mark.parametrize(("longest", "kernel"), SMALL)
def test_a_move_is_legal_if_a_tree_can_follow(
    name: str, roots: str, longest: int, kernel: str
) -> None:
    system = TransitionSystem(name, 1, roots=roots)
    for n in range(1, longest + 1):
        expected = legal_after(name, n, roots)
        states, before, seen = States.start(system, [n]), [""], 0
        with running_on(kernel, "transitions"):
            while not states.finished().all():
                legal = states.legal_moves()
                for moves, row in zip(before, legal.tolist(), strict=True):
                    assert (
                        "".join(m for m, is_legal in zip("slr", row, strict=True) if is_legal)
                        == expected[moves]
                    )
                seen += len(before)
                parents, following = np.nonzero(legal)
                states = states.take(parents)
                states.advance(following)  # with one relation moves are actions
                before = [before[p] + "slr"[m] for p, m in zip(parents, following, strict=True)]
            assert not states.legal_moves().any()
        assert seen == len(expected)


@systems
@root_settings
@pytest.mark.parametrize(("longest", "kernel"), LARGER)
def test_the_oracle_makes_every_projective_tree(
    name: str, roots: str, longest: int, kernel: str, tally: Tally
) -> None:
    """By the sequence that is first of all that make it, if arcs come before SHIFT."""
    rng = np.random.default_rng(longest)
    system = TransitionSystem(name, 5, roots=roots)
    trees = [tree for n in range(1, longest + 1) for tree in all_trees(n, roots)[0]]
    tally("R7", "projective trees made by the oracle, all of up to so many words").add(len(trees))
    lengths = list(map(len, trees))
    relations = rng.integers(0, 5, sum(lengths))
    heads = np.concatenate([np.array(tree) for tree in trees])
    with running_on(kernel, "transitions"):
        actions = oracle_actions(system, heads, relations, lengths)
        made = replay(system, actions, lengths)
    assert made.heads.tolist() == heads.tolist()
    assert made.relations.tolist() == relations.tolist()
    assert np.count_nonzero(actions >= 0, axis=1).tolist() == [2 * n for n in lengths]
    first: dict[tuple[int, ...], str] = {}
    for n in range(1, longest + 1):
        for moves, tree in sequences(name, n, roots).items():
            first[tree] = max(first.get(tree, moves), moves, key=lambda m: m.translate(ARCS_LAST))
    for row, tree in zip(system.moves(actions), trees, strict=True):
        assert written(row[None, : 2 * len(tree)]) == [first[tree]]


ARCS_LAST = str.maketrans("slr", "abb")


@systems
@root_settings
@every_kernel
def test_trees_with_crossing_arcs_are_refused(
    name: str, roots: str, kernel: str, tally: Tally
) -> None:
    held = tally("R7", "trees with crossing arcs, which are refused")
    system = TransitionSystem(name, 1, roots=roots)
    good = [2, 0, 2]
    seen: Counter[int] = Counter()
    for n in range(1, 6 if kernel == "cython" else 5):
        for tree in all_trees(n, roots)[1]:
            held.add()
            with running_on(kernel, "transitions"), pytest.raises(NonProjectiveError) as raised:
                oracle_actions(system, [*good, *tree, *good], [0] * (n + 6), [3, n, 3])
            error = raised.value
            arcs = list(zip(tree, range(1, n + 1), strict=True))
            assert error.sentence == 1
            assert error.arc in arcs
            assert error.crossing in arcs
            assert min(error.arc) < min(error.crossing) < max(error.arc) < max(error.crossing)
            seen[n] += 1
    every = (
        {1: 1, 2: 3, 3: 16, 4: 125, 5: 1296}
        if roots == "several"
        else {1: 1, 2: 2, 3: 9, 4: 64, 5: 625}
    )
    assert all(seen[n] == every[n] - projective_count(n, roots) for n in seen)
    assert seen[4] > 0


@root_settings
def test_enumeration_knows_every_tree(roots: str) -> None:
    counts = [len(all_trees(n, roots)[0]) for n in range(1, 7)]
    assert counts == [projective_count(n, roots) for n in range(1, 7)]
    expected = [1, 2, 7, 30, 143, 728] if roots == "one" else [1, 3, 12, 55, 273, 1428]
    assert counts == expected


def test_both_systems_have_trees_of_several_sequences() -> None:
    """So the rule of the oracle has something to decide, and the two are not the same."""
    assert len(sequences("arc-standard", 5, "one")) == 14 * 2**4  # Catalan(4), a side for each arc
    assert len(sequences("arc-standard", 5, "one")) > projective_count(5, "one")
    assert len(sequences("arc-hybrid", 5, "one")) > projective_count(5, "one")
    assert sequences("arc-standard", 5, "one") != sequences("arc-hybrid", 5, "one")
