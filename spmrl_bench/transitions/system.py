"""A transition system with relations: how its actions are numbered, and which are permitted.

The moves of the known systems, and when these are legal, are described in
:mod:`spmrl_bench.transitions.moves`. An action is SHIFT, or an arc together with its relation.
"""

from __future__ import annotations

import operator
from typing import get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spmrl_bench.errors import ArrayError, unknown_name
from spmrl_bench.transitions.kernels import load_kernel
from spmrl_bench.transitions.moves import (
    LEFT_ARC,
    MOVES,
    NONE,
    RIGHT_ARC,
    SHIFT,
    SYSTEMS,
    SystemName,
)
from spmrl_bench.trees.dependencies import Roots


class TransitionSystem:
    """A system of transitions whose arcs have relations 0..R-1.

    Actions are numbered in blocks: 0 is SHIFT, 1 + r LEFT-ARC with relation r, and 1 + R + r
    RIGHT-ARC with relation r. So ``divmod(action - 1, R)`` gives the move less one, and the
    relation; :meth:`moves` and :meth:`arc_relations` do it for arrays.

    Which moves are legal depends on the state alone. The relations of a legal arc are those that
    ``permitted`` allows at its place.

    Attributes:
        name: one of :data:`~spmrl_bench.transitions.moves.SYSTEMS`.
        relations: how many there are, R.
        roots: whether the root takes exactly one word, or one or more.
        permitted: bool [R, 2], whether a relation may be at the root (column 0), and whether it may
            be between words (column 1).
    """

    def __init__(
        self,
        name: SystemName,
        relations: int,
        *,
        roots: Roots = "one",
        permitted: ArrayLike | None = None,
    ) -> None:
        """A system with these settings.

        Args:
            name: as the attribute.
            relations: at least 1.
            roots: as the attribute.
            permitted: as the attribute, in each column at least one; None allows all everywhere.

        Raises:
            ValueError: a setting is unknown or out of range.
        """
        if name not in SYSTEMS:
            raise ValueError(unknown_name("transition system", name, SYSTEMS))
        if roots not in get_args(Roots):
            raise ValueError(unknown_name("setting of roots", roots, get_args(Roots)))
        self.name = name
        self.roots = roots
        self.relations = operator.index(relations)
        if self.relations < 1:
            raise ValueError(f"relations is {relations}; arcs have at least 1 relation.")
        if permitted is None:
            permitted = np.ones((self.relations, 2), dtype=np.bool_)
        self.permitted = _checked_table(permitted, self.relations)
        # As kernels know them: the place in SYSTEMS, and a row each for the root and for words.
        self.number = SYSTEMS.index(name)
        self.several_roots = roots == "several"
        self.permitted_rows = np.ascontiguousarray(self.permitted.T).view(np.uint8)

    @property
    def actions(self) -> int:
        """How many actions there are, 1 + 2 R."""
        return 1 + 2 * self.relations

    def action(self, move: int, relation: int = NONE) -> int:
        """The number of an action; SHIFT has no relation.

        Raises:
            ValueError: there is no such move or relation.
        """
        if move == SHIFT:
            return 0
        if move not in (LEFT_ARC, RIGHT_ARC):
            raise ValueError(f"move is {move}; moves are 0 (SHIFT), 1 (LEFT-ARC), 2 (RIGHT-ARC).")
        if not 0 <= relation < self.relations:
            raise ValueError(f"relation is {relation}; relations are 0..{self.relations - 1}.")
        return 1 + (move - 1) * self.relations + relation

    def moves(self, actions: ArrayLike) -> NDArray[np.int32]:
        """The move of each action, of any shape; :data:`NONE` where there is :data:`NO_ACTION`."""
        numbers = np.asarray(actions)
        return np.where(numbers < 0, NONE, (numbers - 1) // self.relations + 1).astype(np.int32)

    def arc_relations(self, actions: ArrayLike) -> NDArray[np.int32]:
        """The relation of each action, of any shape; :data:`NONE` where it makes no arc."""
        numbers = np.asarray(actions)
        return np.where(numbers < 1, NONE, (numbers - 1) % self.relations).astype(np.int32)

    def legal_actions(self, moves: NDArray[np.bool_], at_root: ArrayLike) -> NDArray[np.bool_]:
        """Which actions are legal where some moves are.

        Args:
            moves: bool [..., 3], whether each move is legal.
            at_root: bool [...], whether s1 is the root.

        Returns:
            bool [..., 1 + 2R].

        Raises:
            ArrayError: an array has the wrong type or shape.
        """
        legal, root = np.asarray(moves), np.asarray(at_root)
        if legal.dtype != np.bool_ or legal.shape[-1:] != (len(MOVES),):
            raise ArrayError(
                f"moves has dtype {legal.dtype} and shape {legal.shape}; it must be bool [..., 3]."
            )
        if root.dtype != np.bool_ or root.shape != legal.shape[:-1]:
            raise ArrayError(
                f"at_root has dtype {root.dtype} and shape {root.shape}; it must be bool "
                f"{list(legal.shape[:-1])}."
            )
        found = np.empty((*root.shape, self.actions), dtype=np.bool_)
        load_kernel().legal_actions(
            self.permitted_rows,
            np.ascontiguousarray(legal).reshape(-1, len(MOVES)).view(np.uint8),
            np.ascontiguousarray(root).reshape(-1).view(np.uint8),
            found.reshape(-1, self.actions).view(np.uint8),
        )
        return found

    def described(self, action: int) -> str:
        """An action as a reader would call it, such as ``LEFT-ARC with relation 3``."""
        if not 0 <= action < self.actions:
            return f"none of the actions 0..{self.actions - 1}"
        move, relation = divmod(action - 1, self.relations)
        return MOVES[move + 1] + (f" with relation {relation}" if action else "")

    def described_legal(self, legal: ArrayLike, at_root: bool) -> str:
        """What is legal, as a reader would say it.

        Args:
            legal: [3], whether each move is.
            at_root: whether s1 is the root.
        """
        parts = []
        for move in np.flatnonzero(np.asarray(legal)).tolist():
            column = self.permitted[:, 0 if move == RIGHT_ARC and at_root else 1]
            text = MOVES[move]
            if move != SHIFT and not column.all():
                numbers = np.flatnonzero(column).tolist()
                shown = ", ".join(map(str, numbers[:8])) + (", ..." if len(numbers) > 8 else "")
                text += f" with relation {shown}" if len(numbers) < 2 else f" (relations {shown})"
            parts.append(text)
        return ", ".join(parts) if parts else "nothing"


class IllegalActionError(ValueError):
    """An action that the system does not allow in its state.

    Attributes:
        sentence: of the batch, from 0.
        step: how many actions the sentence had before.
        action: the number that was given.
    """

    def __init__(
        self,
        place: str,
        system: TransitionSystem,
        *,
        sentence: int,
        step: int,
        action: int,
        legal: str,
    ) -> None:
        """An error.

        Args:
            place: where the action was given.
            system: whose action it should be.
            sentence: as the attribute.
            step: as the attribute.
            action: as the attribute.
            legal: what would have been legal.
        """
        super().__init__(
            f"{place} (sentence {sentence}, after {step} actions) is {action}, "
            f"{system.described(action)}; legal is {legal}."
        )
        self.sentence = sentence
        self.step = step
        self.action = action

    def __reduce__(self) -> tuple[object, ...]:
        # Between processes an error goes past its constructor, which may want more than a message.
        return type(self).__new__, (type(self), *self.args), self.__dict__


def _checked_table(permitted: ArrayLike, relations: int) -> NDArray[np.bool_]:
    """A copy of a table of what is permitted."""
    table = np.array(permitted, order="C")
    if table.dtype != np.bool_ or table.shape != (relations, 2):
        raise ArrayError(
            f"permitted has dtype {table.dtype} and shape {table.shape}; it must be bool "
            f"[{relations}, 2]: for each relation whether it may be at the root, and at words."
        )
    for column, place in enumerate(("at the root", "between words")):
        if not table[:, column].any():
            raise ArrayError(f"permitted bars every relation {place}; at least 1 must be allowed.")
    table.setflags(write=False)
    return table
