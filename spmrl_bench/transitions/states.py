"""A batch of states of a transition system, advanced together.

A beam has several states for each of many sentences, and a network scores all of them at once. So
states are rows of integer arrays: an action is done in every state by one call, and the states that
survive in a beam are rows taken by number. Sentences of a batch differ in length; a state that is
finished stays as it is while others go on.

Which arrays, is written in :mod:`spmrl_bench.transitions.reference`.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spmrl_bench.chart.checks import checked_integers, checked_lengths
from spmrl_bench.chart.packing import word_offsets
from spmrl_bench.errors import ArrayError
from spmrl_bench.transitions.checks import Arrays, check_states
from spmrl_bench.transitions.kernels import load_kernel
from spmrl_bench.transitions.moves import MOVES, NONE
from spmrl_bench.transitions.system import IllegalActionError, TransitionSystem


class Masks(NamedTuple):
    """Which words have left the buffer, and which the stack, of S states.

    The indicators s and r of Zhang et al. (2017), section 3.2. Columns are the root (0) and the
    words 1..N of the longest sentence.
    """

    pushed: NDArray[np.uint8]
    """[S, N + 1] 1 for the root and words that have been pushed; they stay so when removed."""
    removed: NDArray[np.uint8]
    """[S, N + 1] 1 for words that have been removed, and for columns beyond the sentence."""


class Tops(NamedTuple):
    """The words that moves are about, in S states; -1 where there is none."""

    s0: NDArray[np.int32]
    """[S] the top of the stack; 0 is the root."""
    s1: NDArray[np.int32]
    """[S] the next on the stack."""
    b0: NDArray[np.int32]
    """[S] the front of the buffer."""


@dataclass(frozen=True, slots=True, eq=False)
class Trees:
    """Heads and relations of K trees; tree k owns the words ``offsets[k]:offsets[k + 1]``."""

    heads: NDArray[np.int32]
    """[words] head of each word: 0 is the root, 1..n are the words of its sentence."""
    relations: NDArray[np.int32]
    """[words] the relation to it."""
    offsets: NDArray[np.int64]
    """[K + 1] first word of each tree."""

    def __len__(self) -> int:
        """Number of trees."""
        return len(self.offsets) - 1

    def __iter__(self) -> Iterator[tuple[NDArray[np.int32], NDArray[np.int32]]]:
        """Heads [n] and relations [n] of each tree."""
        for low, high in pairwise(self.offsets.tolist()):
            yield self.heads[low:high], self.relations[low:high]


class States:
    """S states of sentences of a batch; made by :meth:`start`, and by :meth:`take` of others.

    Attributes:
        system: whose states they are.
        sentences: int32 [S], the sentence of each state, its place in the lengths that
            :meth:`start` was given.
        lengths: int32 [S], the number of words n of this sentence.
        stack: int32 [S, N + 1], the words on the stack, the root first; what stands above its
            size is of no meaning. N is the length of the longest sentence of the batch.
        sizes: int32 [S], the number of words on the stack, with the root.
        fronts: int32 [S], the word at the front of the buffer; n + 1 where none waits.
        heads: int32 [S, N + 1], the head of each word, -1 where it has none yet.
        relations: int32 [S, N + 1], the relation to it, else -1.

    The arrays may be read, not written, and :meth:`advance` changes them; what methods return is
    the caller's own.
    """

    __slots__ = (
        "_arrays",
        "fronts",
        "heads",
        "lengths",
        "relations",
        "sentences",
        "sizes",
        "stack",
        "system",
    )

    def __init__(
        self,
        system: TransitionSystem,
        sentences: NDArray[np.int32],
        lengths: NDArray[np.int32],
        stack: NDArray[np.int32],
        sizes: NDArray[np.int32],
        fronts: NDArray[np.int32],
        heads: NDArray[np.int32],
        relations: NDArray[np.int32],
    ) -> None:
        """Take over arrays; see the attributes.

        Raises:
            ArrayError: one has another type, order or shape, or its numbers are those of no state.
        """
        arrays = (sentences, lengths, stack, sizes, fronts, heads, relations)
        check_states(arrays, system.relations)
        self._take_over(system, arrays)

    @classmethod
    def _of(cls, system: TransitionSystem, arrays: Arrays) -> Self:
        """States of arrays that have been made here, and so fit each other."""
        states = cls.__new__(cls)
        states._take_over(system, arrays)
        return states

    def _take_over(self, system: TransitionSystem, arrays: Arrays) -> None:
        self.system = system
        self._arrays = arrays
        views = [array.view() for array in self._arrays]
        for view in views:
            view.setflags(write=False)
        self.sentences, self.lengths, self.stack, self.sizes, self.fronts = views[:5]
        self.heads, self.relations = views[5:]

    @classmethod
    def start(cls, system: TransitionSystem, lengths: ArrayLike, beams: int = 1) -> Self:
        """The first state of every sentence: the root on the stack, all words in the buffer.

        Args:
            system: of the transitions.
            lengths: integers [B], words per sentence.
            beams: how many states of each sentence; those of sentence b are
                ``b * beams : (b + 1) * beams``.

        Raises:
            ArrayError: ``lengths`` has the wrong type, shape or range, or there would be no state.
        """
        words = checked_lengths(lengths)
        if operator.index(beams) < 1:
            raise ArrayError(f"beams is {beams}; a sentence begins with at least 1 state.")
        count = len(words) * beams
        shape = count, int(words.max(initial=0)) + 1
        arrays = (
            np.repeat(np.arange(len(words), dtype=np.int32), beams),
            np.repeat(words, beams),
            np.zeros(shape, dtype=np.int32),
            np.ones(count, dtype=np.int32),
            np.ones(count, dtype=np.int32),
            np.full(shape, NONE, dtype=np.int32),
            np.full(shape, NONE, dtype=np.int32),
        )
        return cls._of(system, arrays)

    def __len__(self) -> int:
        """Number of states."""
        return len(self.sizes)

    @property
    def width(self) -> int:
        """Columns of arrays of words, N + 1."""
        return self.stack.shape[1]

    @property
    def steps(self) -> NDArray[np.int32]:
        """How many actions have been done in each state, int32 [S]; 2n when it is finished."""
        return 2 * self.fronts - self.sizes - 1

    def finished(self) -> NDArray[np.bool_]:
        """Whether all words have heads, bool [S]."""
        return (self.sizes == 1) & (self.fronts > self.lengths)

    def masks(self) -> Masks:
        """Which words have been pushed, and which removed."""
        found = Masks(
            np.empty(self.stack.shape, dtype=np.uint8), np.empty(self.stack.shape, dtype=np.uint8)
        )
        load_kernel().masks(self.lengths, self.fronts, self.heads, *found)
        return found

    def tops(self) -> Tops:
        """The words s0, s1 and b0."""
        found = Tops(*(np.empty(len(self), dtype=np.int32) for _ in range(3)))
        load_kernel().tops(self.lengths, self.stack, self.sizes, self.fronts, *found)
        return found

    def legal_moves(self) -> NDArray[np.bool_]:
        """Whether SHIFT, LEFT-ARC and RIGHT-ARC are legal, bool [S, 3]; none when finished."""
        legal = np.empty((len(self), len(MOVES)), dtype=np.bool_)
        system = self.system
        load_kernel().legal_moves(
            system.number,
            system.several_roots,
            self.lengths,
            self.sizes,
            self.fronts,
            legal.view(np.uint8),
        )
        return legal

    def legal_actions(self) -> NDArray[np.bool_]:
        """Whether each action is legal, bool [S, 1 + 2R]; none when the state is finished."""
        return self.system.legal_actions(self.legal_moves(), self.sizes == 2)

    def advance(self, actions: ArrayLike) -> None:
        """Do one action in every state that is not finished.

        Args:
            actions: integers [S]; those for finished states are not looked at.

        Raises:
            IllegalActionError: an action is not legal; then no state has changed.
            ArrayError: ``actions`` has the wrong type or shape.
        """
        numbers = checked_integers("actions", actions)
        if len(numbers) != len(self):
            raise ArrayError(f"actions has {len(numbers)} entries; there are {len(self)} states.")
        system = self.system
        _, lengths, stack, sizes, fronts, heads, relations = self._arrays
        wrong = load_kernel().advance(
            system.number,
            system.several_roots,
            system.permitted_rows,
            numbers,
            lengths,
            stack,
            sizes,
            fronts,
            heads,
            relations,
        )
        if wrong >= 0:
            moves = self.legal_moves()[wrong]
            raise IllegalActionError(
                f"actions[{wrong}]",
                system,
                sentence=int(self.sentences[wrong]),
                step=int(self.steps[wrong]),
                action=int(numbers[wrong]),
                legal=system.described_legal(moves, bool(sizes[wrong] == 2)),
            )

    def take(self, parents: ArrayLike) -> States:
        """Copies of some states, which go on by themselves.

        Args:
            parents: integers [K], the numbers of states, in any order and any number of times.

        Raises:
            ArrayError: ``parents`` has the wrong type or shape, or there is no such state.
        """
        # A copy by rows moves nothing but memory; numpy does it as fast as a kernel.
        rows = self._checked_rows("parents", parents)
        sentences, lengths, stack, *others = (array.take(rows, axis=0) for array in self._arrays)
        sizes, fronts, heads, relations = others
        return self._of(self.system, (sentences, lengths, stack, sizes, fronts, heads, relations))

    def trees(self, rows: ArrayLike | None = None) -> Trees:
        """The trees of finished states.

        Args:
            rows: integers [K], the numbers of states; None for all.

        Raises:
            ArrayError: ``rows`` has the wrong type or shape, or there is no such state, or it is
                not finished.
        """
        chosen = np.arange(len(self)) if rows is None else self._checked_rows("rows", rows)
        unfinished = chosen[~self.finished()[chosen]]
        if len(unfinished):
            state = int(unfinished[0])
            raise ArrayError(
                f"state {state} (sentence {self.sentences[state]}) has done {self.steps[state]} of "
                f"{2 * self.lengths[state]} actions; only finished states are trees."
            )
        lengths = self.lengths[chosen]
        column = np.arange(self.width)
        words = (column > 0) & (column <= lengths[:, None])
        return Trees(
            self.heads[chosen][words], self.relations[chosen][words], word_offsets(lengths)
        )

    def _checked_rows(self, name: str, rows: ArrayLike) -> NDArray[np.int64]:
        numbers = checked_integers(name, rows).astype(np.int64)
        if len(numbers) and (numbers.min() < 0 or numbers.max() >= len(self)):
            place = int(((numbers < 0) | (numbers >= len(self))).argmax())
            raise ArrayError(
                f"{name}[{place}] is {numbers[place]}; there are {len(self)} states, from 0."
            )
        return numbers
