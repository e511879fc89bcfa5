"""Arc-standard transitions: actions that make a dependency tree, and the beam that finds the best.

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

A network gives the actions of a state probabilities that depend on all that was done before, so no
dynamic program finds the best sequence. A beam keeps the best few at every step; with one
hypothesis it is greedy search, and with room for all it finds the best of all. Of equal scores,
that of the better hypothesis before goes first, then the lower action.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spmrl_bench.errors import ArrayError, NotFiniteError, TreeError
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


class States:
    """S states of sentences, all of them after equally many actions."""

    __slots__ = ("fronts", "lengths", "removed", "sizes", "stack", "system")

    def __init__(self, system: TransitionSystem, lengths: ArrayLike, beams: int = 1) -> None:
        """Begin with ``beams`` states of each sentence, which follow each other; raise an
        ArrayError if a sentence has no words."""
        self.system = system
        self.lengths = np.repeat(np.asarray(lengths, dtype=np.int32), beams)
        if len(self.lengths) and self.lengths.min() < 1:
            raise ArrayError(f"lengths has {self.lengths.min()}; a sentence has at least 1 word")
        words = np.arange(self.lengths.max(initial=0) + 1)
        # Words that are or were on the stack; what is above its size means nothing.
        self.stack = np.zeros((len(self.lengths), len(words)), dtype=np.int32)
        self.sizes = np.ones(len(self.lengths), dtype=np.int32)  # of the stack, with the root
        self.fronts = np.ones(len(self.lengths), dtype=np.int32)  # b0; n + 1 where none waits
        self.removed = words > self.lengths[:, None]  # as of History

    def __len__(self) -> int:
        return len(self.sizes)

    @property
    def pushed(self) -> Mask:
        """As of :class:`History`, ``[S, N + 1]``."""
        return np.arange(self.stack.shape[1]) < self.fronts[:, None]

    def legal(self) -> Mask:
        """Return which actions are legal, ``[S, actions]``."""
        return self.system.legal(self.sizes, self.fronts, self.lengths)

    def take(self, rows: NDArray[np.integer] | slice) -> Self:
        """Return copies of some states, in any order and any number of times."""
        taken = object.__new__(type(self))
        taken.system = self.system
        for name in ("lengths", "stack", "sizes", "fronts", "removed"):
            setattr(taken, name, getattr(self, name)[rows])
        return taken

    def advance(self, actions: ArrayLike) -> None:
        """Do one legal action in every state."""
        numbers = np.asarray(actions)
        rows, shifts = np.arange(len(self)), numbers == SHIFT
        top, second = self.stack[rows, self.sizes - 1], self.stack[rows, self.sizes - 2]
        left = numbers <= self.system.relations
        self.removed[rows, np.where(left, second, top)] |= ~shifts
        self.sizes += np.where(shifts, 1, -1).astype(np.int32)
        self.stack[rows, self.sizes - 1] = np.where(
            shifts, self.fronts, np.where(left, top, second)
        )
        self.fronts += shifts


class BeamStep(NamedTuple):
    """Hypotheses whose next action is asked for, ``width`` of each sentence one after the other."""

    states: States
    legal: Mask
    """``[S, actions]``"""
    last: NDArray[np.int64]
    """``[S]``, the actions before; :data:`NONE` at the first step."""
    parents: NDArray[np.int64]
    """``[S]``, which hypothesis of the step before each continues."""
    width: int


class Hypothesis(NamedTuple):
    """A sequence of actions for a sentence of ``n`` words, and the tree that it makes."""

    derivation: Derivation
    heads: Numbers
    """``[n]``, from 1; 0 is the root."""
    relations: Numbers
    """``[n]``, numbers of relations."""
    score: float
    """The sum of the actions' log probabilities."""


#: Log probabilities ``[S, actions]`` of the next actions; those of illegal ones are not looked at.
Scorer = Callable[[BeamStep], NDArray[np.floating]]


def beam_search(
    system: TransitionSystem, lengths: ArrayLike, width: int, scorer: Scorer, most: int = 1
) -> list[list[Hypothesis]]:
    """Return the best hypotheses of each sentence, ``most`` of ``width`` that are kept at every
    step, the best first.

    ``lengths`` are the words of each sentence, integers ``[B]``; ``scorer`` is asked once for each
    step, for all sentences that are not done, the longest first. Raise a NotFiniteError if no legal
    action of a state has a probability, or one is NaN or infinite.
    """
    order = np.argsort(-np.asarray(lengths), kind="stable")
    words = np.asarray(lengths)[order]
    found_of: dict[int, list[Hypothesis]] = {}
    states = States(system, words, width)
    last, parents = np.full(len(states), NONE), np.arange(len(states))
    actions = np.empty((len(states), 2 * int(words.max(initial=0))), dtype=np.int32)
    scores = np.full((len(words), width), -np.inf)
    scores[:, 0] = 0.0
    for step in range(actions.shape[1]):
        legal = states.legal()
        found = scorer(BeamStep(states, legal, last, parents, width))
        log_probabilities = np.where(legal, found, -np.inf)
        if not log_probabilities.max() < np.inf:
            row = int((~(log_probabilities < np.inf)).any(axis=1).argmax())
            raise NotFiniteError(
                f"sentence {order[row // width]}, step {step}: a score is NaN or infinite."
            )
        parents, last, scores = _survivors(scores, log_probabilities)
        if not scores[:, 0].min() > -np.inf:
            sentence = order[int(scores[:, 0].argmin())]
            raise NotFiniteError(
                f"sentence {sentence}, step {step}: no legal action has a probability."
            )
        going_on = int((2 * words > step + 1).sum())
        actions = actions[parents]
        actions[:, step] = last
        for place in range(going_on, len(words)):
            beam = zip(actions[place * width :], scores[place, :most], strict=False)
            found_of[int(order[place])] = [
                Hypothesis(*system.replay(row[: step + 1].tolist()), float(score))
                for row, score in beam
                if score > -np.inf
            ]
        kept = slice(going_on * width)
        words, scores, actions = words[:going_on], scores[:going_on], actions[kept]
        parents, last = parents[kept], last[kept]
        states = states.take(parents)
        states.advance(last)
    return [found_of[place] for place in range(len(order))]


def _survivors(
    scores: NDArray[np.float64], log_probabilities: NDArray[np.floating]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Return the hypotheses that the best continuations of each sentence continue, their actions,
    and their scores ``[B, width]``, the best first.

    Scores are minus infinity where there is none, and the best one fills a beam of too few;
    ``log_probabilities``, ``[B * width, actions]``, are so where they are illegal.
    """
    sentences, width = scores.shape
    total = (scores.reshape(-1, 1) + log_probabilities).reshape(sentences, -1)
    # Those that may be among the best, in their order, and of these a stable order.
    bound = np.partition(total, -width, axis=1)[:, -width, None]
    rows, columns = (total >= bound).nonzero()
    order = np.lexsort((-total[rows, columns], rows))
    firsts = np.searchsorted(rows, np.arange(sentences))
    best = columns[order[firsts[:, None] + np.arange(width)]]
    values = np.take_along_axis(total, best, axis=1)
    best = np.where(values == -np.inf, best[:, :1], best)
    parents, chosen = np.divmod(best, log_probabilities.shape[1])
    parents += width * np.arange(sentences)[:, None]
    return parents.ravel(), chosen.ravel(), values
