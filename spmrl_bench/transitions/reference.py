"""Transitions in plain Python: oracle of the compiled kernel and its fallback.

A batch of S states of sentences of at most N words is five int32 arrays, read and written by row:

    stack [S, N + 1]      the words on the stack, the root first; what stands above its size is left
    sizes [S]             the number of words on the stack, with the root
    fronts [S]            the word at the front of the buffer, n + 1 where none waits
    heads [S, N + 1]      the head of each word that has one, else -1
    relations [S, N + 1]  the relation to it, else -1

Nothing else is needed. Words are shifted in their order, so that all before the front have been
pushed; a word is removed when it gets its head; n + 1 - front words wait; and each SHIFT adds 1
to front and size where each arc takes 1 from the size, so that 2 front - size - 1 actions have
been done.

**The oracle** does LEFT-ARC or RIGHT-ARC, whichever makes an arc of the tree, as soon as the
dependent has all its own dependents, and else SHIFT. At most one of the two makes an arc of the
tree. So in both systems arcs are made as early as they can be: a left arc when its head comes to
the top of the stack (arc-standard) or to the front of the buffer (arc-hybrid), a right arc when
its dependent is complete. Of all sequences that make a tree, this is the first one if arcs are
sorted before SHIFT. The oracle makes nothing but arcs of the tree, and stops short where it can
make none and shift nothing; so the trees that it completes are the projective ones, those with
several roots only if the root takes several words.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from spmrl_bench.transitions.moves import (
    LEFT_ARC,
    NO_ACTION,
    NONE,
    RIGHT_ARC,
    SHIFT,
    SYSTEMS,
)

Numbers = NDArray[np.int32]
Flags = NDArray[np.uint8]

_ARC_STANDARD = SYSTEMS.index("arc-standard")


class _State:
    """One state of a sentence of ``n`` words."""

    def __init__(self, system: int, several: bool, n: int, stack: list[int], front: int) -> None:
        self.standard = system == _ARC_STANDARD
        self.several = several
        self.n = n
        self.stack = stack
        self.front = front

    @property
    def finished(self) -> bool:
        """Whether all words have heads."""
        return self.stack == [0] and self.front > self.n

    @property
    def second(self) -> int:
        """The word s1."""
        return self.stack[-2] if len(self.stack) > 1 else NONE

    def legal(self) -> list[bool]:
        """Whether each move is legal."""
        waits = self.front <= self.n
        if self.standard:
            left = len(self.stack) > 1 and self.second != 0
        else:
            left = self.stack[-1] != 0 and waits
        right = len(self.stack) > 1 and (self.second != 0 or self.several or not waits)
        return [waits, left, right]

    def legal_action(self, action: int, permitted: Flags) -> bool:
        """Whether an action, which may be any number, is legal."""
        relations = permitted.shape[1]
        if not 0 <= action <= 2 * relations:
            return False
        move, relation = _parted(action, relations)
        if not self.legal()[move]:
            return False
        return move == SHIFT or bool(permitted[0 if self.arc(move)[0] == 0 else 1, relation])

    def arc(self, move: int) -> tuple[int, int]:
        """Head and dependent of the arc that a move makes."""
        if move == RIGHT_ARC:
            return self.second, self.stack[-1]
        return (self.stack[-1], self.second) if self.standard else (self.front, self.stack[-1])

    def do(self, move: int) -> None:
        """Change the state by a move."""
        if move == SHIFT:
            self.stack.append(self.front)
            self.front += 1
        else:
            self.stack.remove(self.arc(move)[1])


def _parted(action: int, relations: int) -> tuple[int, int]:
    """Move and relation of an action."""
    move, relation = divmod(action - 1, relations)
    return move + 1, relation


def legal_moves(
    system: int,
    several: bool,
    lengths: Numbers,
    sizes: Numbers,
    fronts: Numbers,
    legal: Flags,
) -> None:
    """Set ``legal`` [S, 3] to which moves are legal in each state.

    ``system`` is the place of a system in ``SYSTEMS``, ``several`` says whether the root may take
    several words, ``lengths`` [S] has the number of words of the sentence of each state.
    """
    for s, (n, size, front) in enumerate(
        zip(lengths.tolist(), sizes.tolist(), fronts.tolist(), strict=True)
    ):
        # Which words are on the stack, beyond the root, does not matter.
        legal[s] = _State(system, several, n, list(range(size)), front).legal()


def legal_actions(permitted: Flags, moves: Flags, at_root: Flags, legal: Flags) -> None:
    """Set ``legal`` [S, 1 + 2R] to which actions are legal in each state.

    ``permitted`` [2, R] says which relations may be at the root, and which at words, ``moves``
    [S, 3] which moves are legal, ``at_root`` [S] whether s1 is the root.
    """
    relations = permitted.shape[1]
    for s in range(len(moves)):
        legal[s, 0] = moves[s, SHIFT]
        for relation in range(relations):
            right = permitted[0 if at_root[s] else 1, relation]
            legal[s, 1 + relation] = moves[s, LEFT_ARC] and permitted[1, relation]
            legal[s, 1 + relations + relation] = moves[s, RIGHT_ARC] and right


def advance(
    system: int,
    several: bool,
    permitted: Flags,
    actions: Numbers,
    lengths: Numbers,
    stack: Numbers,
    sizes: Numbers,
    fronts: Numbers,
    heads: Numbers,
    relations: Numbers,
) -> int:
    """Do one action in each state that is not finished, unless one is illegal.

    ``actions`` [S] are any numbers; those for finished states are not looked at. Returns the
    first state whose action is illegal, and then no state has changed; else -1.
    """
    states = []
    for s, (n, action) in enumerate(zip(lengths.tolist(), actions.tolist(), strict=True)):
        states.append(_State(system, several, n, stack[s, : sizes[s]].tolist(), int(fronts[s])))
        if not (states[s].finished or states[s].legal_action(action, permitted)):
            return s
    for s, (state, action) in enumerate(zip(states, actions.tolist(), strict=True)):
        if state.finished:
            continue
        move, relation = _parted(action, permitted.shape[1])
        if move != SHIFT:
            head, dependent = state.arc(move)
            heads[s, dependent] = head
            relations[s, dependent] = relation
        state.do(move)
        sizes[s] = len(state.stack)
        fronts[s] = state.front
        stack[s, : sizes[s]] = state.stack
    return -1


def masks(lengths: Numbers, fronts: Numbers, heads: Numbers, pushed: Flags, removed: Flags) -> None:
    """Set ``pushed`` and ``removed`` [S, N + 1] to which words have been.

    Columns beyond the sentence are removed without having been pushed.
    """
    for s, (n, front) in enumerate(zip(lengths.tolist(), fronts.tolist(), strict=True)):
        row = heads[s].tolist()
        pushed[s] = [word < front for word in range(len(row))]
        removed[s] = [head != NONE or word > n for word, head in enumerate(row)]


def tops(
    lengths: Numbers,
    stack: Numbers,
    sizes: Numbers,
    fronts: Numbers,
    s0: Numbers,
    s1: Numbers,
    b0: Numbers,
) -> None:
    """Set the last three arrays [S] to the words s0, s1 and b0, -1 where there is none."""
    for s, size in enumerate(sizes.tolist()):
        s0[s] = stack[s, size - 1]
        s1[s] = stack[s, size - 2] if size > 1 else NONE
        b0[s] = fronts[s] if fronts[s] <= lengths[s] else NONE


def oracle(
    system: int,
    several: bool,
    heads: Numbers,
    relations: Numbers,
    lengths: Numbers,
    count: int,
    actions: Numbers,
) -> int:
    """Set ``actions`` [B, 2N] to those that make the trees of a batch.

    ``heads`` and ``relations`` [words] are those of all words, sentence after sentence, the heads
    from 0 to the length of their sentence; ``count`` is the number R of relations. Behind the 2n
    actions of a sentence stands -1. Returns the first sentence whose heads the system cannot
    make, and what is written is then of no use; else -1.
    """
    first = 0
    for b, n in enumerate(lengths.tolist()):
        governors = [NONE, *heads[first : first + n].tolist()]
        state = _State(system, several, n, [0], 1)
        waiting = [governors.count(word) for word in range(n + 1)]  # dependents without a head
        actions[b] = NO_ACTION
        for step in range(2 * n):
            legal = state.legal()
            for move in (LEFT_ARC, RIGHT_ARC):
                head, dependent = state.arc(move) if legal[move] else (NONE, NONE)
                if legal[move] and governors[dependent] == head and not waiting[dependent]:
                    relation = int(relations[first + dependent - 1])
                    actions[b, step] = 1 + (move - 1) * count + relation
                    waiting[head] -= 1
                    break
            else:
                move = SHIFT
                if not legal[SHIFT]:
                    return b
                actions[b, step] = 0
            state.do(move)
        first += n
    return -1


def history(
    system: int,
    several: bool,
    permitted: Flags,
    actions: Numbers,
    lengths: Numbers,
    pushed: Flags,
    removed: Flags,
    s0: Numbers,
    s1: Numbers,
    b0: Numbers,
    legal: Flags,
) -> int:
    """Set the last six arrays to the states before each action of a batch.

    ``actions`` are [B, T]; what is written is described at
    :class:`spmrl_bench.transitions.history.History`. Returns the place in ``actions``, flat, of
    the first that is illegal, up to which all has been written; else -1.
    """
    steps = actions.shape[1]
    for b, n in enumerate(lengths.tolist()):
        state = _State(system, several, n, [0], 1)
        taken = [word > n for word in range(pushed.shape[2])]
        for step in range(steps):
            pushed[b, step] = [word < state.front for word in range(pushed.shape[2])]
            removed[b, step] = taken
            s0[b, step] = state.stack[-1]
            s1[b, step] = state.second
            b0[b, step] = state.front if state.front <= n else NONE
            legal[b, step] = state.legal()
            if state.finished:
                continue
            action = int(actions[b, step])
            if not state.legal_action(action, permitted):
                return int(b * steps + step)
            move = _parted(action, permitted.shape[1])[0]
            if move != SHIFT:
                taken[state.arc(move)[1]] = True
            state.do(move)
    return -1
