"""How sure a transition parser is of each dependency that differs from gold.

A transition parser gives probabilities to actions, each of which depends on all before it, and
none to arcs. So it is led along the actions of the gold tree, and asked at every step: what would
you do here? Where it would do something else, the logarithm of the odds of its action against the
gold one is charged to the words that get their head by either of the two. The margin of a word is
the largest that it is charged with. (It need not be the probability with which a beam search, on
other ways, comes to another arc; of words that are never charged the margin is 0.)
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from spmrl_bench.annotation.arc_margins import difference, differs
from spmrl_bench.annotation.differences import Difference
from spmrl_bench.errors import TreeError
from spmrl_bench.parsers.neural import Encoded
from spmrl_bench.parsers.transition_parser import ActionGold, TransitionParser
from spmrl_bench.transitions import oracle_actions
from spmrl_bench.transitions.moves import LEFT_ARC, NONE, RIGHT_ARC
from spmrl_bench.trees.dependencies import DependencyTree
from spmrl_bench.trees.projective import encode_projective


@torch.no_grad()
def action_differences(
    parser: TransitionParser,
    encoded: Encoded,
    gold: Sequence[DependencyTree],
    found: Sequence[DependencyTree],
) -> list[list[Difference]]:
    """The words whose head or relation differs, of each sentence.

    Args:
        parser: of kind ``transition``.
        encoded: some sentences.
        gold: of each.
        found: the parser's trees of each.
    """
    ids = parser.vocabulary.relation_ids
    results = []
    led = _charges(parser, encoded, gold)
    for right, own, charges in zip(gold, found, led, strict=True):
        words = [word for word in range(len(right)) if differs(word, right, own)]
        results.append(
            [
                difference(word, right, own, charges[word], right.relations[word] in ids)
                for word in words
            ]
        )
    return results


def _charges(
    parser: TransitionParser, encoded: Encoded, gold: Sequence[DependencyTree]
) -> list[list[float]]:
    """The margin of each word of each sentence; 0 in one whose tree no actions make."""
    actions = [_gold_actions(parser, tree) for tree in gold]
    charges = [[0.0] * len(tree) for tree in gold]
    # Sentences are led all together; where there are no actions, those of a chain stand in.
    stand_in = [
        ActionGold(_chain(parser, len(tree)) if own is None else own)
        for own, tree in zip(actions, gold, strict=True)
    ]
    led = parser.led(encoded.tokens, encoded.batch, stand_in)
    scores = led.scores.float().log_softmax(dim=1)
    best, preferred = scores.max(dim=1)
    margins = (best - scores.gather(1, led.chosen[:, None]).squeeze(1)).cpu().numpy()
    steps = led.history.s0.shape[1]
    columns = zip(
        led.rows.tolist(), margins.tolist(), led.chosen.tolist(), preferred.tolist(), strict=True
    )
    for place, margin, chosen, wanted in columns:
        row, step = divmod(place, steps)
        sentence = int(led.order[row])
        if chosen == wanted or actions[sentence] is None:
            continue
        for action in (chosen, wanted):
            word = _removed(parser, action, led.history.s0[row, step], led.history.s1[row, step])
            if word > 0:
                charges[sentence][word - 1] = max(charges[sentence][word - 1], margin)
    return charges


def _removed(parser: TransitionParser, action: int, s0: int, s1: int) -> int:
    """The word, from 1, that gets its head by an action; :data:`NONE` by a shift."""
    move = int(parser.system.moves(action))
    if move == RIGHT_ARC or (move == LEFT_ARC and parser.system.name == "arc-hybrid"):
        return int(s0)
    return int(s1) if move == LEFT_ARC else NONE


def _gold_actions(parser: TransitionParser, gold: DependencyTree) -> NDArray[np.int32] | None:
    """The actions that make a tree; None if none do, because it has several roots.

    A relation that the parser does not know, or not at its place, is another one there.
    """
    tree, system = encode_projective(gold, parser.config.nonprojective), parser.system
    ids = parser.vocabulary.relation_ids
    relations = []
    for head, name in zip(tree.heads.tolist(), tree.relations, strict=True):
        column = system.permitted[:, min(head, 1)]
        relation = ids.get(name, NONE)
        relations.append(relation if relation >= 0 and column[relation] else int(column.argmax()))
    try:
        (actions,) = oracle_actions(system, tree.heads, relations, [len(tree)])
    except TreeError:
        return None
    found: NDArray[np.int32] = actions
    return found


def _chain(parser: TransitionParser, words: int) -> NDArray[np.int32]:
    """Actions of a tree in which every word hangs from the one before."""
    at_root, between = parser.system.permitted.argmax(axis=0).tolist()
    relations = [at_root, *[between] * (words - 1)]
    (actions,) = oracle_actions(parser.system, list(range(words)), relations, [words])
    found: NDArray[np.int32] = actions
    return found
