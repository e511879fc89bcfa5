"""What a transition parser looks at before each action of the parse that it finds.

The decoder of a transition parser looks at the words anew before each action, in several layers
(:mod:`spmrl_bench.nn.stack_attention`). What it looks at means something only beside the state in
which it looks: which words are on the stack, which wait, and which have been removed. Both are
found here for the actions of one sentence, and the probability of each action besides.

A beam computes attention for hypotheses that it gives up later. So the best sequence is searched
as in parsing, and then the decoder goes through it once more, step by step.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from spmrl_bench.errors import SpmrlError
from spmrl_bench.nn.stack_attention import Stacks
from spmrl_bench.parsers.base import MAX_TOKENS, Words
from spmrl_bench.parsers.ensemble import Ensemble
from spmrl_bench.parsers.neural import Encoded
from spmrl_bench.parsers.parsing import Found, Tags, parse_stream
from spmrl_bench.parsers.transition_parser import TransitionParser
from spmrl_bench.transitions import MOVES, NONE, History, TransitionSystem, state_history
from spmrl_bench.transitions.beam import Sequence as ActionSequence
from spmrl_bench.trees.parse import Parse

if TYPE_CHECKING:
    from spmrl_bench.parsers.base import Parser

#: Where a word can be: top of the stack and the one below it, further down, at the front of the
#: buffer, behind it, and gone.
PLACES = ("top", "second", "deeper", "front", "waiting", "removed")


@dataclass(frozen=True, slots=True, eq=False)
class ActionAttention:
    """The actions that parse a sentence of ``n`` words, and what was looked at before each.

    States are those before the action of their row. Words are counted from 1 where they are named
    by number, and 0 is the root; in columns the first word is column 0, and the root has none.

    Attributes:
        words: of the sentence.
        actions: the names of all ``2n``, such as ``SHIFT`` and ``LEFT-ARC(nsubj)``; relations are
            those that the parser learnt, with the marks of lifted arcs.
        weights: float32 ``[2n, layers, n]``, how much each layer of attention takes of each word;
            layers count from 0, and each row sums to 1.
        on_stack: bool ``[2n, n]``, for words on the stack.
        removed: bool ``[2n, n]``, for words that have left it. All others wait.
        top: int32 ``[2n]``, the word on top of the stack, 0 where it is the root.
        second: int32 ``[2n]``, the word below it, -1 where the root is all there is.
        front: int32 ``[2n]``, the next of the words that wait, -1 where none does.
        arcs: int32 ``[2n, 2]``, head and dependent of the arc that the action makes, -1 for SHIFT.
        probabilities: float64 ``[2n]``, of each action among the legal ones.
        score: the log probability of the whole sequence, as the search found it.
        parse: what the parser answers. Arcs that were lifted are where they belong, so that it may
            differ from ``arcs``.
    """

    words: tuple[str, ...]
    actions: tuple[str, ...]
    weights: NDArray[np.float32]
    on_stack: NDArray[np.bool_]
    removed: NDArray[np.bool_]
    top: NDArray[np.int32]
    second: NDArray[np.int32]
    front: NDArray[np.int32]
    arcs: NDArray[np.int32]
    probabilities: NDArray[np.float64]
    score: float
    parse: Parse

    @property
    def waiting(self) -> NDArray[np.bool_]:
        """Words that have not been on the stack yet, bool ``[2n, n]``."""
        return ~(self.on_stack | self.removed)

    def places(self) -> NDArray[np.bool_]:
        """Which of :data:`PLACES` each word is at, bool ``[2n, places, n]``; one for each word."""
        numbers = np.arange(1, len(self.words) + 1)
        top, second, front = (
            word[:, None] == numbers for word in (self.top, self.second, self.front)
        )
        found = (
            top,
            second,
            self.on_stack & ~(top | second),
            front,
            self.waiting & ~front,
            self.removed,
        )
        return np.stack(found, axis=1)

    def shares(self) -> NDArray[np.float64]:
        """How much of the weight is at each of :data:`PLACES`, ``[2n, layers, places]``."""
        return np.einsum("tln,tpn->tlp", self.weights.astype(np.float64), self.places())


def writes_actions(parser: Parser) -> bool:
    """Whether a parser is of the kind that writes a parse action by action."""
    return parser.kind == TransitionParser.kind


def action_attention(parser: Parser, words: Words, tags: Words | None = None) -> ActionAttention:
    """Actions, attention and states of one sentence.

    Args:
        parser: a single one of kind ``transition``, with any beam.
        words: of the sentence, at least one.
        tags: of the words, for a parser that reads them.

    Raises:
        SpmrlError: the parser is an ensemble or of another kind, or there are no words.
        SentenceTooLongError, TreeError: as of :meth:`Parser.parse`.
    """
    own = _single(parser)
    if not words:
        raise SpmrlError("a sentence without words has no attention to show")
    found: list[tuple[ActionSequence, _Walk]] = []

    def parsed(window: Sequence[Words], rows: Tags) -> Iterator[Found]:
        # While the encoded sentence is there nothing is dropped at random.
        for encoded in own.encoded(window, rows, MAX_TOKENS, None):
            (sequence,) = own.sequences([encoded], [own])
            found.append((sequence, _walk(own, encoded, sequence.actions)))
            yield own.found(sequence, encoded.tags[0])

    (parse,) = parse_stream([words], None if tags is None else [tags], parsed, own.length_problem)
    ((sequence, walk),) = found
    history = walk.history
    removed = history.removed[0, :, 1:].astype(bool)
    return ActionAttention(
        words=tuple(words),
        actions=tuple(action_names(own.system, own.names, sequence.actions)),
        weights=walk.weights,
        on_stack=history.pushed[0, :, 1:].astype(bool) & ~removed,
        removed=removed,
        top=history.s0[0],
        second=history.s1[0],
        front=history.b0[0],
        arcs=_arcs(removed, sequence.heads),
        probabilities=np.exp(walk.log_probabilities),
        score=sequence.score,
        parse=parse,
    )


def action_names(
    system: TransitionSystem, relations: Sequence[str], actions: NDArray[np.integer]
) -> Iterator[str]:
    """Actions by the names of their moves and relations, such as ``RIGHT-ARC(obj)``."""
    pairs = zip(system.moves(actions).tolist(), system.arc_relations(actions).tolist(), strict=True)
    for move, relation in pairs:
        yield MOVES[move] + ("" if relation == NONE else f"({relations[relation]})")


def _single(parser: Parser) -> TransitionParser:
    """The parser, if it is one that writes actions."""
    if isinstance(parser, Ensemble):
        raise SpmrlError(
            f"an ensemble of {len(parser.parsers)} parsers has the attention of each of them; "
            "choose one"
        )
    if not isinstance(parser, TransitionParser):
        raise SpmrlError(
            f"a parser of kind {parser.kind} writes no actions before which it could look at the "
            "words. Choose one of kind transition"
        )
    return parser


class _Walk(NamedTuple):
    """What the decoder sees and expects along a sequence of T actions."""

    history: History
    """The states, of one sentence."""
    weights: NDArray[np.float32]
    """``[T, layers, n]``"""
    log_probabilities: NDArray[np.float64]
    """``[T]``, of each action among the legal ones."""


@torch.no_grad()
def _walk(parser: TransitionParser, encoded: Encoded, actions: NDArray[np.integer]) -> _Walk:
    """Go through the actions of the one sentence that is encoded."""
    decoder = parser.decoder
    history = state_history(parser.system, actions[None], encoded.batch.lengths)
    sources = parser.sources(encoded.tokens, encoded.batch, np.zeros(1, dtype=np.int64))
    stacks = parser.stacks(history.pushed, history.removed)
    legal = torch.from_numpy(history.legal_actions()[0])
    state, last = decoder.start(1, 1), decoder.actions
    weights, log_probabilities = [], []
    for number, action in enumerate(actions.tolist()):
        at = slice(number, number + 1)
        step = decoder.step(
            torch.tensor([[last]], device=parser.device),
            state,
            sources,
            Stacks(stacks.pushed[:, at], stacks.removed[:, at]),
        )
        scores = step.scores[0, 0].double().cpu().masked_fill(~legal[number], -torch.inf)
        log_probabilities.append(float(scores.log_softmax(dim=0)[action]))
        weights.append(step.weights[0, 0])
        state, last = step.state, action
    return _Walk(history, torch.stack(weights).float().cpu().numpy(), np.array(log_probabilities))


def _arcs(removed: NDArray[np.bool_], heads: NDArray[np.int32]) -> NDArray[np.int32]:
    """Head and dependent of each action's arc: a word is removed when it gets its head."""
    after = np.concatenate((removed[1:], np.ones_like(removed[:1])))
    arcs = np.full((len(removed), 2), NONE, dtype=np.int32)
    steps, dependents = np.nonzero(after & ~removed)
    arcs[steps, 0] = heads[dependents]
    arcs[steps, 1] = dependents + 1
    return arcs
