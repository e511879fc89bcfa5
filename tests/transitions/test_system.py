"""Transitions against the enumeration of all sequences and all trees, and against plain steps; and
trees of treebanks, which come back from their derivations."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from spmrl_bench.errors import ArrayError, TreeError
from spmrl_bench.transitions.system import NONE, States, TransitionSystem
from spmrl_bench.treebanks.manifest import SPLITS
from spmrl_bench.treebanks.treebank import open_treebank
from spmrl_bench.trees.dependencies import DependencyTree
from spmrl_bench.trees.projective import encode_projective, is_projective, nonprojective_words
from tests.conftest import shared_data
from tests.reliability.tally import Tally
from tests.transitions.simulation import all_trees, applied, random_heads, sequences, start

#: Relation 0 is for the root alone, 1 for words alone, 2 for both.
TABLE = np.array([[True, False], [False, True], [True, True]])
LENGTHS = [1, 2, 9, 30, 17, 2, 1, 64]
larger = pytest.mark.parametrize("longest", [5, pytest.param(7, marks=pytest.mark.campaign)])


def system_of(relations: int) -> TransitionSystem:
    """One that permits all relations everywhere."""
    return TransitionSystem(np.ones((relations, 2), dtype=np.bool_))


def every_walk(system: TransitionSystem, n: int) -> NDArray[np.int64]:
    """The actions ``[K, 2n]`` of all legal walks over n words, state by state as in a beam."""
    states = States(system, [n])
    actions = np.empty((1, 0), dtype=np.int64)
    for _ in range(2 * n):
        parents, following = np.nonzero(states.legal())
        assert set(parents) == set(range(len(states))), "a state from which nothing is legal"
        states = states.take(parents)
        states.advance(following)
        actions = np.concatenate([actions[parents], following[:, None]], axis=1)
    assert not states.legal().any()
    return actions


def written(system: TransitionSystem, actions: Any) -> str:
    return "".join("slr"[(action + system.relations - 1) // system.relations] for action in actions)


@larger
def test_legal_sequences_are_those_that_end_in_a_tree(longest: int, tally: Tally) -> None:
    held = tally("R7", "legal sequences of transitions, all that there are")
    system = system_of(1)
    for n in range(1, longest + 1):
        rows = every_walk(system, n).tolist()
        held.add(len(rows))
        made = {written(system, row): tuple(system.replay(row)[1].tolist()) for row in rows}
        assert len(made) == len(rows)
        assert made == sequences(n)
        assert set(made.values()) == set(all_trees(n)[0])


@larger
def test_every_projective_tree_has_a_derivation(longest: int, tally: Tally) -> None:
    """The first of all that make it, if arcs come before SHIFT."""
    held = tally("R7", "projective trees that are derived, all of up to so many words")
    rng = np.random.default_rng(longest)
    system = system_of(5)
    for n in range(1, longest + 1):
        trees = all_trees(n)[0]
        held.add(len(trees))
        first: dict[tuple[int, ...], str] = {}
        for done, tree in sequences(n).items():
            first[tree] = max(
                first.get(tree, done), done, key=lambda each: [c != "s" for c in each]
            )
        for tree in trees:
            relations = rng.integers(0, 5, n).tolist()
            derivation = system.derive(tree, relations)
            assert written(system, derivation.actions) == first[tree]
            again, heads, names = system.replay(derivation.actions.tolist())
            assert (heads.tolist(), names.tolist()) == (list(tree), relations)
            assert all(map(np.array_equal, derivation, again))


def test_crossing_arcs_are_refused_by_name(tally: Tally) -> None:
    held = tally("R7", "trees with crossing arcs, which are refused")
    system = system_of(1)
    for n in range(1, 6):
        for tree in all_trees(n)[1]:
            held.add()
            crossing = "|".join(map(str, nonprojective_words(tree)))
            with pytest.raises(TreeError, match=f"^word ({crossing}): its arc crosses another"):
                system.derive(tree, [0] * n)


def test_relations_stand_only_where_they_are_permitted() -> None:
    """All trees with other relations, and only these, are left out."""
    with_table, free = TransitionSystem(TABLE), system_of(3)
    anything = [free.replay(row)[1:] for row in every_walk(free, 3).tolist()]
    permitted = [
        (heads.tolist(), relations.tolist())
        for heads, relations in anything
        if TABLE[relations, np.minimum(heads, 1)].all()
    ]
    made = [with_table.replay(row)[1:] for row in every_walk(with_table, 3).tolist()]
    assert [(heads.tolist(), relations.tolist()) for heads, relations in made] == permitted
    assert 0 < len(permitted) < len(anything)


def test_the_history_is_what_goes_on_step_by_step() -> None:
    rng = np.random.default_rng(7)
    system = TransitionSystem(TABLE)
    trees = [random_heads(rng, n) for n in LENGTHS]
    derivations = [
        system.derive(
            heads, [int(rng.choice([1, 2]) if head else rng.choice([0, 2])) for head in heads]
        )
        for heads in trees
    ]
    history = system.history(derivations)
    assert history.pushed.shape == history.removed.shape == (8, 128, 65)
    s0, s1, b0 = history.tops()
    for row, (n, derivation) in enumerate(zip(LENGTHS, derivations, strict=True)):
        states, state = States(system, [n]), start(n)
        for step in range(128):
            words = {*state.stack, *(dependent for _, dependent in state.arcs)}
            assert set(np.flatnonzero(history.pushed[row, step])) == words
            beyond = {*range(n + 1, 65)}
            assert (
                set(np.flatnonzero(history.removed[row, step])) == words - {*state.stack} | beyond
            )
            tops = s0[row, step], s1[row, step], b0[row, step]
            assert tops == (state.stack[-1], [NONE, *state.stack][-2], [*state.buffer, NONE][0])
            assert np.array_equal(states.pushed[0], history.pushed[row, step, : n + 1])
            assert np.array_equal(states.removed[0], history.removed[row, step, : n + 1])
            assert np.array_equal(states.legal()[0], history.legal[row, step])
            if step >= 2 * n:
                assert history.actions[row, step] == NONE
                assert not history.legal[row, step].any()
                continue
            action = derivation.actions[step]
            assert history.actions[row, step] == action
            assert history.legal[row, step, action]
            states.advance([action])
            state = applied(written(system, [action]), state)
        assert state.stack == (0,)


def walks(seed: int) -> int:
    """A hundred thousand random ones over twelve words, a few of which are replayed."""
    rng = np.random.default_rng(seed)
    system = TransitionSystem(TABLE)
    states, actions = States(system, [12], 100_000), []
    for _ in range(24):
        legal = states.legal()
        actions.append(np.where(legal, rng.random(legal.shape), -1).argmax(axis=1))
        states.advance(actions[-1])
    assert not states.legal().any()
    assert (states.sizes == 1).all()
    assert states.removed[:, 1:].all()
    rows = np.stack(actions, axis=1)
    for row in rows[:200].tolist():
        derivation, heads, relations = system.replay(row)
        system.derive(heads.tolist(), relations.tolist())  # which refuses what is no tree
        assert TABLE[relations, np.minimum(heads, 1)].all()
        assert derivation.removed_at[1:].max() == 24
    return len(rows)


@pytest.mark.parametrize("count", [1, pytest.param(10, marks=pytest.mark.campaign)])
def test_random_walks_end_in_trees(count: int, tally: Tally) -> None:
    held = tally("R7", "random legal walks, which end in trees")
    held.add(sum(map(walks, range(count))))


def test_what_is_no_tree_is_refused() -> None:
    for heads, relations, message in (
        ([2, 1, 0, 3], [1] * 4, "word 1: the heads form a cycle"),
        ([0, 1, 0, 3], [2] * 4, "word 3: a second root"),
        ([0, 1, 5, 3], [2] * 4, "word 3: head 5"),
        ([2, 0], [1, 1], "word 2: relation 1 is not permitted at the root"),
        ([2, 0], [0, 0], "word 1: relation 0 is not permitted between"),
        ([0], [3], "word 1: relation 3"),
        ([0], [-1], "word 1: relation -1"),
    ):
        with pytest.raises(TreeError, match=f"^{message}"):
            TransitionSystem(TABLE).derive(heads, relations)


def test_bad_arrays_are_refused() -> None:
    for wrong in (
        TABLE.astype(int), TABLE[:, :1], TABLE[:0], TABLE & [False, True], TABLE & [True, False],
    ):  # fmt: skip
        with pytest.raises(ArrayError, match="permitted"):
            TransitionSystem(wrong)
    with pytest.raises(ArrayError, match="lengths has 0"):
        States(system_of(1), [3, 0])
    assert system_of(1).history([]).pushed.shape == (0, 0, 1)


#: Of the actions of all sentences, as int32; another rule of derivation trains other parsers.
MINI = {
    "arabic": "48bca6646c8bd170",
    "english": "5427fac41ba03104",
    "hebrew": "b0203c47ddc7e88c",
}


def derived(trees: Sequence[DependencyTree]) -> tuple[int, int, str]:
    """How many trees are projective and how many are not, and the digest of all actions."""
    lifted = [encode_projective(tree, "projectivise") for tree in trees]
    names = sorted({relation for tree in trees for relation in tree.relations})
    numbers = {name: number for number, name in enumerate(names)}
    system = TransitionSystem(np.ones((len(names), 2), dtype=np.bool_))
    digest, straight = hashlib.sha256(), 0
    for tree, projective in zip(trees, lifted, strict=True):
        relations = [numbers[name] for name in projective.relations]
        derivation = system.derive(projective.heads.tolist(), relations)
        digest.update(derivation.actions.tobytes())
        _, heads, own = system.replay(derivation.actions.tolist())
        assert np.array_equal(heads, projective.heads)
        assert own.tolist() == relations
        straight += is_projective(tree.heads.tolist())
        if tree.heads.tolist() != projective.heads.tolist():
            with pytest.raises(TreeError, match="crosses"):
                system.derive(tree.heads.tolist(), relations)
    return straight, len(trees) - straight, digest.hexdigest()[:16]


@pytest.mark.parametrize("language", MINI)
def test_mini_treebanks(language: str) -> None:
    parses = open_treebank(f"{language}-mini").examples("dev")
    trees: list[Any] = [parse.dependencies for parse in parses]
    assert derived(trees) == (300, 0, MINI[language])


@pytest.mark.parametrize(
    ("treebank", "projective", "others"),
    [
        ("hungarian-ud-szeged", 1409, 391),
        pytest.param("basque-ud-bdt", 3182, 415, marks=pytest.mark.campaign),
        pytest.param("korean-ud-gsd", 1714, 225, marks=pytest.mark.campaign),
        pytest.param("french-ud-sequoia", 3022, 77, marks=pytest.mark.campaign),
        pytest.param("english-wsj-sample", 3914, 0, marks=pytest.mark.campaign),
    ],
)
def test_treebanks(treebank: str, projective: int, others: int) -> None:
    bank = open_treebank(treebank, shared_data("treebanks"))
    trees: list[Any] = [
        parse.dependencies for split in SPLITS for parse in bank.examples(split, ["dependencies"])
    ]
    assert derived(trees)[:2] == (projective, others)
