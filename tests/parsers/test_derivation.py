"""Attention before actions: it is the decoder's own, beside the states that the actions make."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from spmrl_bench.errors import SentenceTooLongError, SpmrlError
from spmrl_bench.parsers.base import UnsupportedError
from spmrl_bench.parsers.baselines import RightBranching
from spmrl_bench.parsers.ensemble import Ensemble
from spmrl_bench.parsers.transition import TransitionParser
from spmrl_bench.parsers.views import PLACES, DerivationTrace
from spmrl_bench.transitions.beam import Hypothesis
from spmrl_bench.transitions.system import NONE, TRANSITIONS
from spmrl_bench.trees.parse import Parse
from tests.builders import tiny
from tests.parsers.test_transition_parser import crossing, parser_of, single_steps
from tests.transitions.simulation import applied, start

WORDS = ["a", "c", "b", "d", "e", "c", "a"]
ROWS = [list(text) for text in ("b", "abcd", "dcbadcba", "aabbccdd", "bdbdca", "cacabd")]


def parser(**changes: Any) -> TransitionParser:
    return parser_of(crossing(), **changes)


def numbers(made: TransitionParser, trace: DerivationTrace) -> list[int]:
    """The actions as the system numbers them, from their names."""
    names = ["SHIFT", *(f"{t}({name})" for t in TRANSITIONS[1:] for name in made.names)]
    return [names.index(action) for action in trace.actions]


def lead(made: TransitionParser, example: Parse, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the parser find the tree of a sentence, of which it has learnt nothing."""
    found = Hypothesis(*made.system.replay(made.gold(example).actions.tolist()), -7.5)
    monkeypatch.setattr(made, "hypotheses", lambda group, members: [found])


@pytest.mark.parametrize(
    "changes",
    [
        {"attention_layers": 3},
        {"beam": 1},
        {"removed_words": False, "attention_layers": 1},
        {"pushed_words": False},
    ],
    ids=str,
)
@torch.no_grad()
def test_weights_are_those_of_single_steps(changes: dict[str, Any]) -> None:
    made = parser(**changes)
    trace = made.derivation(WORDS)
    scores, weights = zip(*single_steps(made, WORDS, numbers(made, trace)), strict=True)
    assert trace.weights.shape == (14, changes.get("attention_layers", 2), 7)
    np.testing.assert_allclose(trace.weights, torch.stack(weights).numpy(), atol=1e-6)
    np.testing.assert_allclose(trace.weights.sum(axis=2), 1, atol=1e-6)
    np.testing.assert_allclose(trace.probabilities, np.exp(scores), rtol=1e-5)
    assert trace.score == pytest.approx(sum(scores), abs=1e-4)
    of_removed = trace.weights[np.broadcast_to(trace.removed[:, None], trace.weights.shape)]
    assert len(of_removed)
    assert (of_removed == 0).all() == changes.get("removed_words", True)
    # The test would tell nothing if all weights were alike.
    assert trace.weights.std(axis=0).max() > 0.02


def test_states_are_those_before_each_action(monkeypatch: pytest.MonkeyPatch) -> None:
    made, seen = parser(), set[str]()
    traces = [made.derivation(words) for words in [*ROWS, WORDS]]
    assert [trace.parse for trace in traces] == list(made.parse([*ROWS, WORDS]))
    for example in crossing():
        lead(made, example, monkeypatch)
        traces.append(made.derivation(example.words))
    for trace in traces:
        state = start(len(trace.words))
        for row, name in enumerate(trace.actions):
            stack, buffer, _ = state
            assert np.flatnonzero(trace.on_stack[row]).tolist() == [word - 1 for word in stack[1:]]
            tops = trace.top[row], trace.second[row], trace.front[row]
            assert tops == (stack[-1], [NONE, *stack][-2], [*buffer, NONE][0])
            expected = ["removed"] * len(trace.words)
            for group, behind, first in (
                (stack[:0:-1], "deeper", ["top", "second"]),
                (buffer, "waiting", ["front"]),
            ):
                for word, place in zip(group, [*first, *[behind] * len(group)], strict=False):
                    expected[word - 1] = place
            assert [PLACES[k] for k in trace.places()[row].argmax(axis=0)] == expected
            transition = name.partition("(")[0]
            seen.add(transition)
            after = applied("slr"[TRANSITIONS.index(transition)], state)
            assert after is not None
            arc = next(iter(after.arcs - state.arcs), (NONE, NONE))
            assert tuple(trace.arcs[row]) == arc
            state = after
        assert (state.stack, state.buffer) == ((0,), ())
    assert seen == set(TRANSITIONS)


def test_the_sequence_is_the_one_that_the_beam_finds() -> None:
    wide, greedy = parser(beam=8), parser(beam=1)
    pairs = [(wide.derivation(row), greedy.derivation(row)) for row in ROWS]
    assert any(one.actions != other.actions for one, other in pairs)
    assert all(one.score >= other.score - 1e-6 for one, other in pairs)


def test_lifted_arcs_have_names_and_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    made = parser()
    for example in crossing()[:2]:
        lead(made, example, monkeypatch)
        trace = made.derivation(example.words)
        assert trace.score == -7.5
        assert any("↑" in name for name in trace.actions)
        tree, own = example.dependencies, trace.parse.dependencies
        assert (own.heads.tolist(), own.relations) == (tree.heads.tolist(), tree.relations)
        heads = {int(word): int(head) for head, word in trace.arcs if word > 0}
        assert sorted(heads) == [*range(1, len(example) + 1)]
        assert any(heads[word] != head for word, head in enumerate(tree.heads, start=1))


def test_shares_are_the_weights_of_each_place() -> None:
    trace = parser().derivation(WORDS)
    shares = trace.shares()
    assert shares.shape == (14, 2, len(PLACES))
    for row, top in enumerate(trace.top.tolist()):
        expected = trace.weights[row, :, top - 1] if top else 0
        np.testing.assert_allclose(shares[row, :, 0], expected, atol=1e-6)
    assert (shares[:, :, PLACES.index("removed")] == 0).all()


def test_nothing_is_dropped_while_looking() -> None:
    made = parser(decoder_dropout=0.5)
    calm = made.derivation(WORDS)
    trace = made.train().derivation(WORDS)
    assert made.training
    assert trace.actions == calm.actions
    np.testing.assert_array_equal(trace.weights, calm.weights)


def test_tags_are_read_where_the_parser_reads_them() -> None:
    made = parser(lexical=("word", "tag"), predict_tags=False)
    trace = made.derivation(["a", "b"], ["T", "T"])
    assert trace.parse.tags == ("T", "T")
    other = made.derivation(["a", "b"], ["X", "T"])
    assert not np.allclose(trace.weights, other.weights, atol=1e-4)


def test_what_writes_no_actions_is_refused() -> None:
    made = parser()
    with pytest.raises(UnsupportedError, match=r"^an ensemble of 2 parsers has no .derivation"):
        Ensemble([made, parser(seed=2)]).derivation(WORDS)
    for other in (tiny(), RightBranching({"S": 1})):
        message = f"^a parser of kind {other.kind} has no derivation.*one of kind transition$"
        with pytest.raises(UnsupportedError, match=message):
            other.derivation(WORDS)
    with pytest.raises(SpmrlError, match="a sentence without words has no attention"):
        made.derivation([])
    with pytest.raises(SentenceTooLongError, match=r"^sentence 1: a sentence of 90 words"):
        parser(encoder="attention").derivation(["a"] * 90)
    assert len(made.derivation(["a"] * 90).actions) == 180
