"""A parser that writes trees action by action: what it learns, what it finds, its scores, and its
attention before each action."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from spmrl_bench.errors import SentenceTooLongError, SpmrlError, TreeError
from spmrl_bench.nn.scorers.actions import Stacks
from spmrl_bench.parsers.batches import Pool
from spmrl_bench.parsers.transition import TransitionParser
from spmrl_bench.parsers.views import PLACES, DerivationTrace
from spmrl_bench.parsing.models import load_parser
from spmrl_bench.transitions.system import NONE, TRANSITIONS, Hypothesis
from spmrl_bench.treebanks.treebank import open_treebank
from spmrl_bench.trees.dependencies import DependencyTree
from spmrl_bench.trees.parse import Parse
from spmrl_bench.trees.projective import nonprojective_words
from tests.builders import learn, tiny, words_of
from tests.transitions.simulation import applied, start


def parser_of(examples: Sequence[Parse], seed: int = 1, **changes: Any) -> TransitionParser:
    """An untrained parser whose trees differ between sentences and seeds."""
    settings = {"encoder": "gru", "layers": 1, "max_positions": 60, "decoder_layers": 2,
                "attention_layers": 2, "d_decoder": 12, **changes}  # fmt: skip
    parser = tiny("transition", examples, seed=seed, **settings)
    with torch.no_grad():
        for weight in parser.decoder.parameters():
            weight.mul_(3)
    return parser.eval()


def crossing() -> list[Parse]:
    """Sentences with arcs that cross."""
    rows = [
        ("a b c d", [3, 4, 4, 0], "x y z root"),
        ("c d a b e", [3, 5, 5, 1, 0], "x y z y root"),
        ("b a d c", [3, 4, 0, 3], "x y root z"),
        ("d c b", [0, 1, 1], "root x y"),
    ]
    return [
        Parse.of(
            dependencies=DependencyTree.build(
                words.split(), ["T"] * len(heads), heads, relations.split()
            )
        )
        for words, heads, relations in rows
    ]


def test_crossing_arcs_that_are_only_lifted_are_lost() -> None:
    examples = crossing()
    parser = parser_of(examples, nonprojective="projectivise")
    assert not any("↑" in name for name in parser.names)
    learn(parser, examples, 30, 0.02, decay=True)
    found = [parse.dependencies for parse in parser.parse(words_of(examples))]
    assert all(tree is not None and not nonprojective_words(tree.heads.tolist()) for tree in found)
    marked = parser_of(examples)
    assert any("↑" in name for name in marked.names)


@torch.no_grad()
def single_steps(
    parser: TransitionParser, words: Sequence[str], actions: Sequence[int]
) -> list[tuple[float, torch.Tensor]]:
    """The log probability of each action and the weights of attention, by single steps."""
    (encoded,) = parser.encoded([words])
    sources = parser.sources(encoded.tokens, encoded.batch, np.zeros(1, dtype=np.int64))
    history = parser.system.history([parser.system.replay(actions)[0]])
    stacks = parser.stacks(history.pushed, history.removed)
    state, last, found = parser.decoder.start(1, 1), parser.system.actions, []
    for number, action in enumerate(actions):
        before = Stacks(*(part[:, number : number + 1] for part in stacks))
        scores, state, weights = parser.decoder.step(torch.tensor([[last]]), state, sources, before)
        legal = torch.from_numpy(history.legal[0, number])
        scores = scores[0, 0].double().masked_fill(~legal, -torch.inf).log_softmax(dim=0)
        found.append((float(scores[action]), weights[0, 0]))
        last = action
    return found


def log_probability(
    parser: TransitionParser, words: Sequence[str], actions: Sequence[int]
) -> float:
    return sum(score for score, _ in single_steps(parser, words, actions))


def best(parser: TransitionParser, words: Sequence[str], *others: TransitionParser) -> Any:
    """What the beam finds for a sentence, of several parsers together."""
    members = [parser, *others]
    return parser.hypotheses([next(iter(each.encoded([words]))) for each in members], members)[0][0]


@pytest.mark.parametrize(
    "changes",
    [{}, {"pushed_words": False}, {"removed_words": False}, {"attention_layers": 1}],
    ids=str,
)
@torch.no_grad()
def test_the_loss_is_that_of_single_steps(changes: dict[str, Any], sentences: list[Parse]) -> None:
    examples = [sentences[0], crossing()[3], sentences[1], crossing()[0]]
    parser = parser_of([*sentences, *crossing()], predict_tags=False, **changes)
    indexed = list(parser.index(examples))
    pool = Pool(indexed, parser.training_indexer)
    forms = parser.form_vectors(parser.training_indexer, pool.forms)
    ((group, batch),) = pool.batches(2000, parser.device, forms)
    gold = [indexed[k].gold for k in group]
    loss = parser.loss(parser.encode(batch), batch, gold)
    expected = sum(
        log_probability(parser, example.words, parser.gold(example).actions.tolist())
        for example in examples
    )
    assert float(loss) == pytest.approx(-expected, rel=1e-5)


def test_the_score_of_a_parse_is_its_log_probability(sentences: list[Parse]) -> None:
    totals = dict.fromkeys((1, 4, 64), 0.0)
    for width in totals:
        parser = parser_of(sentences, beam=width)
        for words in words_of(sentences)[:4]:
            found = best(parser, words)
            expected = log_probability(parser, words, found.derivation.actions.tolist())
            assert found.score == pytest.approx(expected, abs=1e-4)
            totals[width] += found.score
    assert totals[1] < totals[64] - 0.01


def test_what_is_on_the_stack_matters(sentences: list[Parse]) -> None:
    words = words_of(sentences)
    parser = parser_of(sentences)
    state = parser.state_dict()
    for changes in ({"removed_words": False}, {"pushed_words": False}):
        other = parser_of(sentences, **changes)
        other.load_state_dict({key: state[key] for key in other.state_dict()})
        assert list(other.parse(words)) != list(parser.parse(words))
    plain = parser_of(sentences, removed_words=False, pushed_words=False, attention_layers=1)
    assert plain.decoder.attention.pushed is None


def test_an_ensemble_takes_the_mean_of_the_probabilities(sentences: list[Parse]) -> None:
    words, *_ = words_of(sentences)
    greedy = [parser_of(sentences, seed=seed, beam=1) for seed in (1, 2)]
    found = best(greedy[0], words, greedy[1])
    actions = found.derivation.actions.tolist()
    each = [[np.exp(score) for score, _ in single_steps(p, words, actions)] for p in greedy]
    assert found.score == pytest.approx(np.log(np.mean(each, axis=0)).sum(), abs=1e-4)


@pytest.mark.parametrize("encoding", ["head", "path"])
def test_a_saved_parser_of_another_encoding_is_refused(
    encoding: str, sentences: list[Parse], tmp_path: Path
) -> None:
    tiny("transition", sentences).save(tmp_path)
    path = tmp_path / "parser.json"
    text = path.read_text()
    assert '"head+path"' in text
    path.write_text(text.replace('"head+path"', f'"{encoding}"'))
    with pytest.raises(SpmrlError, match=rf"nonprojective.*'head\+path'.*'{encoding}'"):
        load_parser(tmp_path, "cpu")


def test_what_cannot_be_learnt(sentences: list[Parse]) -> None:
    parser = parser_of(sentences)
    with pytest.raises(TreeError, match="no dependencies to learn"):
        parser.gold(Parse.of(open_treebank("german-mini").split("dev")[0]))
    with pytest.raises(TreeError, match="relation x is not in the parser's vocabulary"):
        parser.gold(crossing()[3])
    with pytest.raises(TreeError, match="have no dependencies: nothing to learn"):
        parser_of([Parse.of(tree) for tree in open_treebank("german-mini").split("dev")[:2]])


def test_a_flat_parse_is_a_tree_of_known_relations(sentences: list[Parse]) -> None:
    flat = parser_of(sentences).flat(("a", "b", "c"), ("T",) * 3).dependencies
    assert flat.heads.tolist() == [0, 1, 1]
    assert flat.relations[0] == "root" != flat.relations[1]


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
    monkeypatch.setattr(made, "hypotheses", lambda group, members, most=1: [[found]])


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


def test_sentences_without_attention_are_refused() -> None:
    made = parser()
    with pytest.raises(SpmrlError, match="a sentence without words has no attention"):
        made.derivation([])
    with pytest.raises(SentenceTooLongError, match=r"^sentence 1: a sentence of 90 words"):
        parser(encoder="attention").derivation(["a"] * 90)
    assert len(made.derivation(["a"] * 90).actions) == 180
