"""The actions that make given trees, and the trees that given actions make.

Which actions, where several sequences make the same tree, is written in
:mod:`spmrl_bench.transitions.reference`. Only projective trees can be made; what becomes of others
(:mod:`spmrl_bench.trees.projective`) is for the caller to say.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spmrl_bench.chart.checks import checked_integers, checked_lengths
from spmrl_bench.chart.packing import word_offsets
from spmrl_bench.errors import ArrayError, TreeError
from spmrl_bench.transitions.checks import checked_actions
from spmrl_bench.transitions.kernels import load_kernel
from spmrl_bench.transitions.states import States, Trees
from spmrl_bench.transitions.system import TransitionSystem
from spmrl_bench.trees.dependencies import head_fault

Arc = tuple[int, int]


class NonProjectiveError(TreeError):
    """A tree whose arcs cross, so that no sequence of transitions makes it.

    Attributes:
        sentence: of the batch, from 0.
        arc: the head and the dependent of an arc.
        crossing: those of an arc that crosses it.
    """

    def __init__(self, sentence: int, arc: Arc, crossing: Arc) -> None:
        super().__init__(
            f"sentence {sentence}: the arc from {arc[0]} to {arc[1]} crosses that from "
            f"{crossing[0]} to {crossing[1]}; transitions make projective trees only "
            "(the encodings of spmrl_bench.trees.projective make a tree projective)"
        )
        self.sentence = sentence
        self.arc = arc
        self.crossing = crossing


def oracle_actions(
    system: TransitionSystem, heads: ArrayLike, relations: ArrayLike, lengths: ArrayLike
) -> NDArray[np.int32]:
    """The actions that make the trees of a batch.

    Args:
        system: of the transitions.
        heads: integers [words], the head of each word, sentence after sentence: 0 is the root,
            1..n are the words of its sentence.
        relations: integers [words], the relation to it, 0..R-1.
        lengths: integers [B], words per sentence.

    Returns:
        int32 [B, 2N], N being the greatest length: 2n actions of each sentence, and behind them -1.

    Raises:
        NonProjectiveError: arcs of a tree cross.
        TreeError: heads form no tree, or not one with as many roots as the system has, or a
            relation is not permitted where it is.
        ArrayError: an array has the wrong type, shape or range.
    """
    words = checked_lengths(lengths)
    governors = checked_integers("heads", heads)
    names = checked_integers("relations", relations)
    offsets = word_offsets(words)
    for name, array in (("heads", governors), ("relations", names)):
        if len(array) != offsets[-1]:
            raise ArrayError(f"{name} has {len(array)} entries; the batch has {offsets[-1]} words.")
    wrong = (names < 0) | (names >= system.relations)
    if wrong.any():
        place = int(wrong.argmax())
        raise ArrayError(
            f"relations[{place}] is {names[place]}; relations are 0..{system.relations - 1}."
        )
    beyond = (governors < 0) | (governors > np.repeat(words, words))
    if beyond.any():
        _refuse(system, governors, offsets, int(beyond.argmax()))
    barred = system.permitted_rows[np.minimum(governors, 1), names] == 0
    if barred.any():
        place = int(barred.argmax())
        sentence = int(np.searchsorted(offsets, place, side="right")) - 1
        where = "between words" if governors[place] else "at the root"
        raise TreeError(
            f"sentence {sentence}: word {place - offsets[sentence] + 1} has relation "
            f"{names[place]} {where}, where the system does not permit it"
        )
    actions = np.empty((len(words), 2 * int(words.max(initial=0))), dtype=np.int32)
    failed = load_kernel().oracle(
        system.number, system.several_roots, governors, names, words, system.relations, actions
    )
    if failed >= 0:
        _refuse(system, governors, offsets, int(offsets[failed]))
    return actions


def replay(system: TransitionSystem, actions: ArrayLike, lengths: ArrayLike) -> Trees:
    """The trees that whole sequences of actions make.

    Args:
        system: of the transitions.
        actions: integers [B, T], as :func:`oracle_actions` returns them; what stands behind the 2n
            actions of a sentence is not looked at.
        lengths: integers [B], words per sentence.

    Raises:
        IllegalActionError: an action is not legal.
        ArrayError: an array has the wrong type, shape or range, or there are too few actions.
    """
    words = checked_lengths(lengths)
    table = checked_actions(actions, words)
    longest = int(words.max(initial=0))
    if table.shape[1] < 2 * longest:
        raise ArrayError(
            f"actions has {table.shape[1]} columns; {longest} words need {2 * longest} actions."
        )
    states = States.start(system, words)
    for step in range(2 * longest):
        states.advance(table[:, step])
    return states.trees()


def _refuse(
    system: TransitionSystem, heads: NDArray[np.int32], offsets: NDArray[np.int64], word: int
) -> None:
    """Raise the error that the sentence of a word of the batch deserves."""
    sentence = int(np.searchsorted(offsets, word, side="right")) - 1
    row = heads[offsets[sentence] : offsets[sentence + 1]].tolist()
    fault = head_fault(row, system.roots)
    if fault is not None:
        raise TreeError(f"sentence {sentence}: word {fault.word}: {fault.problem}")
    raise NonProjectiveError(sentence, *_crossing_arcs(row))


def _crossing_arcs(heads: Sequence[int]) -> tuple[Arc, Arc]:
    """Two arcs of a tree that cross, of which the first begins further left."""
    arcs = [(head, word) for word, head in enumerate(heads, start=1)]
    return next(
        (arc, other)
        for arc, other in permutations(arcs, 2)
        if min(arc) < min(other) < max(arc) < max(other)
    )
