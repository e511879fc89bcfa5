"""Arc-standard transitions: the actions that make a dependency tree, and the states on their way.

A state has a stack of words, s0 and s1 on top, and a buffer of those that wait, b0 in front. At
first the root (0) is on the stack, and the words 1..n wait. The transitions are those of Nivre
(2004, Incrementality in Deterministic Dependency Parsing), as they work on the top of the stack:

    SHIFT      b0 goes to the stack
    LEFT-ARC   s0 becomes the head of s1, a word, which is removed
    RIGHT-ARC  s1 becomes the head of s0, which is removed

Every word is shifted once and gets its head once, so all derivations have 2n actions. They make the
projective trees with one word at the root, which is the last to get its head: earlier, the words
that wait would be left without one. Words are shifted in their order, so a state is known by how
many have been shifted and which have been removed.

An action is a transition with a relation 0..R-1, which must be permitted where the arc is: 0 is
SHIFT, 1 + r is LEFT-ARC and 1 + R + r RIGHT-ARC with the relation r.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spmrl_bench.errors import ArrayError, TreeError
from spmrl_bench.trees.dependencies import head_fault
from spmrl_bench.trees.projective import nonprojective_words

SHIFT: Final = 0
TRANSITIONS: Final = ("SHIFT", "LEFT-ARC", "RIGHT-ARC")
#: There is no such word, relation or action.
NONE: Final = -1

Numbers = NDArray[np.int32]
Mask = NDArray[np.bool_]


class Derivation(NamedTuple):
    """The actions that make the tree of a sentence of ``n`` words."""

    actions: Numbers
    """``[2n]``"""
    removed_at: Numbers
    """``[n + 1]``, the actions done when a word is removed; of the root, which stays, the largest
    number there is."""


class History(NamedTuple):
    """The states of B sentences of up to N words before each of T actions; behind the last of a
    sentence, its last state is repeated."""

    actions: NDArray[np.int64]
    """``[B, T]``, :data:`NONE` behind the last."""
    pushed: Mask
    """``[B, T, N + 1]``, the root and words that have been shifted, removed ones among them."""
    removed: Mask
    """``[B, T, N + 1]``, words that have been removed, and what is beyond the sentence."""
    legal: Mask
    """``[B, T, actions]``, none in the last state."""

    def tops(self) -> tuple[Numbers, Numbers, Numbers]:
        """Return the words s0, s1 and b0, ``[B, T]`` each; :data:`NONE` where there is none."""
        words = np.arange(self.pushed.shape[2], dtype=np.int32)
        stack = np.where(self.pushed & ~self.removed, words, np.int32(NONE))
        s0 = stack.max(axis=2)
        s1 = np.where(words < s0[..., None], stack, np.int32(NONE)).max(axis=2)
        waits = ~(self.pushed | self.removed)
        b0 = np.where(waits.any(axis=2), waits.argmax(axis=2), NONE).astype(np.int32)
        return s0, s1, b0


class TransitionSystem:
    """Arc-standard transitions: ``actions``, how many there are, with ``relations``, as many."""

    def __init__(self, permitted: ArrayLike) -> None:
        """Permit relations at the root and between words, bool ``[R, 2]``; raise an ArrayError
        where that is no such table, or nothing may be somewhere."""
        table = np.array(permitted)
        if table.dtype != np.bool_ or table.shape[1:] != (2,) or not table.any(axis=0).all():
            raise ArrayError(
                f"permitted has dtype {table.dtype} and shape {table.shape}; it must be bool "
                "[relations, 2], with a relation at the root and one between words"
            )
        self.permitted: Mask = table
        self.relations = len(table)
        self.actions = 1 + 2 * self.relations
        # What is legal where no word waits or one does, by the size of the stack (3: or larger).
        self._legal = np.zeros((2, 4, self.actions), dtype=np.bool_)
        self._legal[1, :, SHIFT] = True
        self._legal[:, 3, 1:] = np.tile(table[:, 1], 2)
        self._legal[0, 2, 1 + self.relations :] = table[:, 0]

    def legal(self, sizes: ArrayLike, fronts: ArrayLike, lengths: ArrayLike) -> Mask:
        """Return which actions are legal, ``[..., actions]``, for sizes of stacks, with the root,
        and the words b0 (``n + 1`` where none waits) of sentences of so many words."""
        return self._legal[np.less_equal(fronts, lengths).view(np.int8), np.minimum(sizes, 3)]

    def transitions(self, actions: ArrayLike) -> NDArray[np.integer]:
        """Return the transition of each action, by its place in :data:`TRANSITIONS`."""
        return (np.asarray(actions) + self.relations - 1) // self.relations

    def derive(self, heads: Sequence[int], relations: Sequence[int]) -> Derivation:
        """Return the derivation of a tree, of the head of each word, from 1 or 0 for the root, and
        its relation. An arc is made as soon as its dependent has all dependents of its own. Raise a
        TreeError if the heads are no projective tree with one word at the root, or a relation is
        not permitted where it is."""
        n = len(heads)
        if fault := head_fault(heads):
            raise TreeError(f"word {fault.word}: {fault.problem}")
        for word, (head, relation) in enumerate(zip(heads, relations, strict=True), start=1):
            if not (0 <= relation < self.relations and self.permitted[relation, min(head, 1)]):
                place = "between words" if head else "at the root"
                raise TreeError(f"word {word}: relation {relation} is not permitted {place}")
        head_of = [NONE, *heads]
        missing = np.bincount(heads, minlength=n + 1).tolist()  # dependents, not yet got
        actions: list[int] = []
        removed_at = [np.iinfo(np.int32).max] + [0] * n
        stack = [0]
        for word in range(1, n + 1):
            actions.append(SHIFT)
            stack.append(word)
            while len(stack) > 2 or (len(stack) == 2 and word == n):
                second, top = stack[-2:]
                if head_of[second] == top and not missing[second]:
                    first, head, dependent = 1, top, second
                elif head_of[top] == second and not missing[top]:
                    first, head, dependent = 1 + self.relations, second, top
                else:
                    break
                actions.append(first + relations[dependent - 1])
                removed_at[dependent] = len(actions)
                missing[head] -= 1
                stack[-2:] = [head]
        if len(stack) > 1:
            raise TreeError(
                f"word {nonprojective_words(heads)[0]}: its arc crosses another; transitions make "
                "projective trees only (encode_projective makes a tree projective)"
            )
        return Derivation(np.array(actions, np.int32), np.array(removed_at, np.int32))

    def replay(self, actions: Sequence[int]) -> tuple[Derivation, Numbers, Numbers]:
        """Return the derivation of legal actions, and heads and relations ``[n]`` of its tree."""
        n = len(actions) // 2
        heads, relations, removed_at = np.full((3, n + 1), NONE, dtype=np.int32)
        removed_at[0] = np.iinfo(np.int32).max
        stack, front = [0], 1
        for step, action in enumerate(actions):
            if action == SHIFT:
                stack.append(front)
                front += 1
                continue
            second, top = stack[-2:]
            head, dependent = (top, second) if action <= self.relations else (second, top)
            stack[-2:] = [head]
            heads[dependent] = head
            relations[dependent] = (action - 1) % self.relations
            removed_at[dependent] = step + 1
        return Derivation(np.array(actions, np.int32), removed_at), heads[1:], relations[1:]

    def history(self, derivations: Sequence[Derivation]) -> History:
        """Return the states that derivations lead through."""
        lengths = np.array([len(each.actions) // 2 for each in derivations])
        longest = int(lengths.max(initial=0))
        actions = np.full((len(lengths), 2 * longest), NONE)
        removed_at = np.zeros((len(lengths), longest + 1), dtype=np.int32)
        for row, times, each in zip(actions, removed_at, derivations, strict=True):
            row[: len(each.actions)] = each.actions
            times[: len(each.removed_at)] = each.removed_at
        step, word = np.arange(2 * longest)[:, None], np.arange(longest + 1)
        # States of all steps follow from two cumulative sums, without a loop over steps.
        shifts, arcs = (
            np.cumsum(done, axis=1) - done for done in (actions == SHIFT, actions > SHIFT)
        )
        return History(
            actions,
            word <= shifts[..., None],
            removed_at[:, None] <= step,
            self.legal(1 + shifts - arcs, 1 + shifts, lengths[:, None]),
        )
