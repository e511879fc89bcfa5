"""Numbers of actions, what is permitted, and settings that are refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from spmrl_bench.transitions import (
    LEFT_ARC,
    NO_ACTION,
    RIGHT_ARC,
    SHIFT,
    SYSTEMS,
    States,
    TransitionSystem,
)
from tests.transitions.walks import every_walk
from tests.twins import kernels_of, running_on

#: Relation 0 is for the root alone, 1 for words alone, 2 for both.
every_kernel = pytest.mark.parametrize("kernel", kernels_of("transitions"))
TABLE = np.array([[True, False], [False, True], [True, True]])


def test_actions_are_numbered_in_blocks() -> None:
    system = TransitionSystem("arc-standard", 3)
    assert system.actions == 7
    assert system.action(SHIFT) == 0
    numbers = [system.action(move, r) for move in (LEFT_ARC, RIGHT_ARC) for r in range(3)]
    assert numbers == [1, 2, 3, 4, 5, 6]
    assert system.moves(range(-1, 7)).tolist() == [-1, 0, 1, 1, 1, 2, 2, 2]
    assert system.arc_relations(range(-1, 7)).tolist() == [-1, -1, 0, 1, 2, 0, 1, 2]
    for action in range(1, 7):
        move, relation = divmod(action - 1, 3)
        assert system.action(move + 1, relation) == action
    table = np.array([[0, 1], [6, NO_ACTION]], dtype=np.int16)
    assert system.moves(table).tolist() == [[0, 1], [2, -1]]
    assert system.arc_relations(table).tolist() == [[-1, 0], [2, -1]]


@every_kernel
@pytest.mark.parametrize("name", SYSTEMS)
@pytest.mark.parametrize("roots", ["one", "several"])
def test_relations_stand_only_where_they_are_permitted(kernel: str, name: Any, roots: Any) -> None:
    system = TransitionSystem(name, 3, roots=roots, permitted=TABLE)
    with running_on(kernel, "transitions"):
        trees = every_walk(system, 3)[1].trees()
        anything = every_walk(TransitionSystem(name, 3, roots=roots), 3)[1].trees()
    at_root = {*trees.relations[trees.heads == 0].tolist()}
    at_words = {*trees.relations[trees.heads > 0].tolist()}
    assert (at_root, at_words) == ({0, 2}, {1, 2})
    # All other trees, and only these, are left out.
    allowed = TABLE[anything.relations, np.minimum(anything.heads, 1)].reshape(-1, 3).all(axis=1)
    assert 0 < allowed.sum() < len(allowed)
    kept = np.stack([anything.heads, anything.relations]).reshape(2, -1, 3)[:, allowed]
    found = np.stack([trees.heads, trees.relations]).reshape(2, -1, 3)
    assert kept.tobytes() == found.tobytes()


@every_kernel
def test_legal_actions_are_legal_moves_with_permitted_relations(kernel: str) -> None:
    system = TransitionSystem("arc-standard", 3, permitted=TABLE)
    moves = np.array([[[m & 1, m & 2, m & 4]] * 2 for m in range(8)]).astype(np.bool_)  # [8, 2, 3]
    at_root = np.array([[False, True]] * 8)
    with running_on(kernel, "transitions"):
        legal = system.legal_actions(moves, at_root)
        assert system.legal_actions(moves[:0], at_root[:0]).shape == (0, 2, 7)
        strided = system.legal_actions(moves[::2], at_root[::2])
    assert legal.shape == (8, 2, 7)
    assert strided.tolist() == legal[::2].tolist()
    for m in range(8):
        for root in (0, 1):
            left = [m & 2 and word for word in (0, 1, 1)]
            right = [m & 4 and place for place in ((1, 0, 1) if root else (0, 1, 1))]
            assert legal[m, root].tolist() == [bool(x) for x in [m & 1, *left, *right]]


def test_the_table_is_the_systems_own() -> None:
    table = TABLE.copy()
    system = TransitionSystem("arc-hybrid", 3, permitted=np.asfortranarray(table))
    table[:] = True
    assert system.permitted.tolist() == TABLE.tolist()
    with pytest.raises(ValueError, match="read-only"):
        system.permitted[0, 0] = False
    assert TransitionSystem("arc-hybrid", 3).permitted.all()


BAD: list[Any] = [
    ("arc-standart", 1, {}, "unknown transition system 'arc-standart'. Did you mean arc-standard"),
    ("arc-hybrid", 0, {}, "relations is 0; arcs have at least 1 relation"),
    ("arc-hybrid", 1, {"roots": "two"}, "unknown setting of roots 'two'.*Known: one, several"),
    ("arc-hybrid", 2, {"permitted": TABLE}, r"shape \(3, 2\); it must be bool \[2, 2\]"),
    ("arc-hybrid", 3, {"permitted": TABLE.astype(int)}, "permitted has dtype int64"),
    ("arc-hybrid", 3, {"permitted": TABLE & [False, True]}, "bars every relation at the root"),
    ("arc-hybrid", 3, {"permitted": TABLE & [True, False]}, "bars every relation between words"),
]


@pytest.mark.parametrize(("name", "relations", "settings", "message"), BAD)
def test_bad_settings_are_refused(name: Any, relations: int, settings: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        TransitionSystem(name, relations, **settings)


def test_bad_arguments_are_refused() -> None:
    system = TransitionSystem("arc-standard", 3)
    with pytest.raises(TypeError):
        TransitionSystem("arc-standard", 1.5)
    with pytest.raises(ValueError, match="move is 3; moves are 0"):
        system.action(3, 0)
    for relation in (-1, 3):
        with pytest.raises(ValueError, match=rf"relation is {relation}; relations are 0\.\.2"):
            system.action(LEFT_ARC, relation)
    moves = States.start(system, [1]).legal_moves()
    for wrong in (moves.astype(np.uint8), moves[:, :2]):
        with pytest.raises(ValueError, match=r"it must be bool \[\.\.\., 3\]"):
            system.legal_actions(wrong, np.array([False]))
    for root in (np.array([0]), np.array([False, True])):
        with pytest.raises(ValueError, match=r"at_root has .* it must be bool \[1\]"):
            system.legal_actions(moves, root)
