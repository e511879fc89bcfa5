"""Attention before actions: it is the decoder's own, beside the states that the actions make."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch

from spmrl_bench.analysis.action_attention import (
    PLACES,
    ActionAttention,
    action_attention,
    writes_actions,
)
from spmrl_bench.errors import SentenceTooLongError, SpmrlError, TreeError
from spmrl_bench.parsers.registry import combine
from spmrl_bench.parsers.right_branching import RightBranching
from spmrl_bench.parsers.transition_parser import TransitionParser
from spmrl_bench.transitions import MOVES, States, replay
from spmrl_bench.transitions.beam import Sequence as ActionSequence
from spmrl_bench.trees.dependencies import DependencyTree
from spmrl_bench.trees.parse import Parse
from spmrl_bench.trees.projective import decode_projective
from tests.builders import tiny
from tests.parsers.test_transition_parser import crossing, parser_of

WORDS = ["a", "c", "b", "d", "e", "c", "a"]


def parser(**changes: Any) -> TransitionParser:
    return parser_of(crossing(), **changes)


def manual(
    made: TransitionParser, words: Sequence[str], actions: Sequence[int]
) -> tuple[list[torch.Tensor], list[float]]:
    """Weights and probabilities of the decoder along actions, state by state."""
    (encoded,) = made.encoded([words], None, 2000, None)
    sources = made.sources(encoded.tokens, encoded.batch, np.zeros(1, dtype=np.int64))
    states = States.start(made.system, [len(words)])
    state, last = made.decoder.start(1, 1), made.system.actions
    weights, probabilities = [], []
    for action in actions:
        masks = [mask.reshape(1, 1, -1) for mask in states.masks()]
        step = made.decoder.step(torch.tensor([[last]]), state, sources, made.stacks(*masks))
        legal = torch.from_numpy(states.legal_actions()[0])
        scores = step.scores[0, 0].double()[legal].softmax(dim=0)
        probabilities.append(float(scores[int(legal[:action].sum())]))
        weights.append(step.weights[0, 0])
        state, last = step.state, action
        states.advance([action])
    return weights, probabilities


def numbers(made: TransitionParser, found: ActionAttention) -> list[int]:
    """The actions as the system numbers them, from their names."""
    result = []
    for name in found.actions:
        move, _, relation = name.removesuffix(")").partition("(")
        place = made.names.index(relation) if relation else -1
        result.append(made.system.action(MOVES.index(move), place))
    return result


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"beam": 1},
        {"system": "arc-hybrid", "attention_layers": 3},
        {"removed_words": False, "attention_layers": 1},
        {"pushed_words": False},
    ],
    ids=str,
)
@torch.no_grad()
def test_weights_are_those_of_a_walk_by_hand(changes: dict[str, Any]) -> None:
    made = parser(**changes)
    found = action_attention(made, WORDS)
    layers = changes.get("attention_layers", 2)
    assert found.weights.shape == (14, layers, 7)
    weights, probabilities = manual(made, WORDS, numbers(made, found))
    np.testing.assert_allclose(found.weights, torch.stack(weights).numpy(), atol=1e-6)
    np.testing.assert_allclose(found.probabilities, probabilities, rtol=1e-5)
    assert found.score == pytest.approx(np.log(probabilities).sum(), abs=1e-4)
    np.testing.assert_allclose(found.weights.sum(axis=2), 1, atol=1e-6)
    of_removed = found.weights[np.broadcast_to(found.removed[:, None], found.weights.shape)]
    assert len(of_removed)
    assert (of_removed == 0).all() == changes.get("removed_words", True)
    # The test would tell nothing if all weights were alike.
    assert found.weights.std(axis=0).max() > 0.02


@pytest.mark.parametrize("system", ["arc-standard", "arc-hybrid"])
@pytest.mark.parametrize("beam", [1, 8])
def test_the_actions_are_those_of_the_parse(system: str, beam: int) -> None:
    made = parser(system=system, beam=beam)
    for words in (["b"], WORDS, *(example.words for example in crossing())):
        found = action_attention(made, words)
        assert found.words == tuple(words)
        assert [found.parse] == list(made.parse([words]))
        ((heads, relations),) = replay(made.system, [numbers(made, found)], [len(words)])
        tags = found.parse.tags
        names = [made.names[relation] for relation in relations.tolist()]
        tree = DependencyTree.build(words, tags, heads.tolist(), names)
        assert found.parse.dependencies == decode_projective(tree, made.config.nonprojective)
        arcs = sorted((int(word), int(head)) for head, word in found.arcs if word > 0)
        assert arcs == list(enumerate(heads.tolist(), start=1))


def test_the_sequence_is_the_one_that_the_beam_finds() -> None:
    wide, greedy = parser(beam=8), parser(beam=1)
    pairs = [(action_attention(wide, row), action_attention(greedy, row)) for row in rows_of()]
    assert any(one.actions != other.actions for one, other in pairs)
    assert all(one.score >= other.score - 1e-6 for one, other in pairs)


def rows_of() -> list[list[str]]:
    return [list(text) for text in ("abcd", "dcbadcba", "aabbccdd", "bdbdca", "cacabd")]


def led_to(made: TransitionParser, example: Parse, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the parser find the tree of a sentence, of which it has learnt nothing."""
    actions = made.gold(example).actions
    ((heads, relations),) = replay(made.system, actions[None], [len(example)])
    found = ActionSequence(actions, -7.5, heads, relations)
    monkeypatch.setattr(made, "sequences", lambda group, members: [found])


def test_lifted_arcs_have_names_and_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    made = parser()
    for example in crossing()[:2]:
        led_to(made, example, monkeypatch)
        found = action_attention(made, example.words)
        assert found.score == -7.5
        assert any("↑" in name for name in found.actions)
        heads = example.dependencies.heads.tolist()
        assert found.parse.dependencies.heads.tolist() == heads
        assert found.parse.dependencies.relations == example.dependencies.relations
        made_heads = {int(word): int(head) for head, word in found.arcs if word > 0}
        assert sorted(made_heads) == [*range(1, len(example) + 1)]
        assert any(made_heads[word] != head for word, head in enumerate(heads, start=1))


@pytest.mark.parametrize("system", ["arc-standard", "arc-hybrid"])
def test_states_are_those_before_each_action(system: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made, moves = parser(system=system, beam=2), set()
    shown = [action_attention(made, words) for words in rows_of()]
    for example in crossing():
        led_to(made, example, monkeypatch)
        shown.append(action_attention(made, example.words))
    for found in shown:
        stack, buffer = [0], list(range(1, len(found.words) + 1))
        for row, name in enumerate(found.actions):
            assert np.flatnonzero(found.on_stack[row]).tolist() == [word - 1 for word in stack[1:]]
            assert np.flatnonzero(found.waiting[row]).tolist() == [word - 1 for word in buffer]
            tops = found.top[row], found.second[row], found.front[row]
            assert tops == (stack[-1], [-1, *stack][-2], [*buffer, -1][0])
            places = [PLACES[place] for place in found.places()[row].argmax(axis=0)]
            expected = ["removed"] * len(found.words)
            for group, behind, first in (
                (stack[:0:-1], "deeper", ["top", "second"]),
                (buffer, "waiting", ["front"]),
            ):
                for word, place in zip(group, [*first, *[behind] * len(group)], strict=False):
                    expected[word - 1] = place
            assert places == expected
            move = name.partition("(")[0]
            moves.add(move)
            if move == "SHIFT":
                arc = (-1, -1)
                stack.append(buffer.pop(0))
            elif move == "RIGHT-ARC":
                arc = (stack[-2], stack[-1])
                stack.pop()
            elif system == "arc-hybrid":
                arc = (buffer[0], stack.pop())
            else:
                arc = (stack[-1], stack.pop(-2))
            assert tuple(found.arcs[row]) == arc
        assert (stack, buffer) == ([0], [])
    assert moves == set(MOVES)


def test_shares_are_the_weights_of_each_place() -> None:
    found = action_attention(parser(), WORDS)
    shares = found.shares()
    assert shares.shape == (14, 2, len(PLACES))
    assert (found.places().sum(axis=1) == 1).all()
    np.testing.assert_allclose(shares.sum(axis=2), 1, atol=1e-6)
    for row, top in enumerate(found.top.tolist()):
        expected = found.weights[row, :, top - 1] if top else 0
        np.testing.assert_allclose(shares[row, :, 0], expected, atol=1e-6)
    assert (shares[:, :, PLACES.index("removed")] == 0).all()


def test_nothing_is_dropped_while_looking() -> None:
    made = parser(decoder_dropout=0.5)
    calm = action_attention(made, WORDS)
    made.train()
    found = action_attention(made, WORDS)
    assert made.training
    assert found.actions == calm.actions
    np.testing.assert_array_equal(found.weights, calm.weights)


def test_tags_are_read_where_the_parser_reads_them() -> None:
    made = parser(lexical=("word", "tag"), predict_tags=False)
    found = action_attention(made, ["a", "b"], ["T", "T"])
    assert found.parse.tags == ("T", "T")
    other = action_attention(made, ["a", "b"], ["X", "T"])
    assert not np.allclose(found.weights, other.weights, atol=1e-4)
    with pytest.raises(TreeError, match="reads tags, but none are given"):
        action_attention(made, ["a", "b"])
    with pytest.raises(TreeError, match="2 words but 1 tags"):
        action_attention(made, ["a", "b"], ["T"])


def test_what_writes_no_actions_is_refused() -> None:
    made = parser()
    assert writes_actions(made)
    both = combine([made, parser(seed=2)])
    with pytest.raises(SpmrlError, match=r"^an ensemble of 2 parsers has the attention of each"):
        action_attention(both, WORDS)
    for other in (tiny(), RightBranching({"S": 1})):
        assert not writes_actions(other)
        with pytest.raises(SpmrlError, match=f"^a parser of kind {other.kind} writes no actions"):
            action_attention(other, WORDS)
    with pytest.raises(SpmrlError, match="a sentence without words has no attention"):
        action_attention(made, [])
    with pytest.raises(SentenceTooLongError, match=r"^sentence 1: a sentence of 90 words"):
        action_attention(parser(encoder="attention"), ["a"] * 90)
    assert len(action_attention(made, ["a"] * 90).actions) == 180
