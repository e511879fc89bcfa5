"""The max-margin loss against enumerated trees, and gradients against plain autograd."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from spmrl_bench.chart.packing import cell_offsets
from spmrl_bench.parsers import form_cache
from spmrl_bench.parsers.batches import Indexer, Sentence
from spmrl_bench.parsers.chart_parser import ChartParser, gold_labels
from spmrl_bench.parsers.vocabulary import FIRST_WORD, UNK
from spmrl_bench.readers.brackets import parse_brackets
from spmrl_bench.trees import Tree
from spmrl_bench.trees.tree import collapsed_spans
from tests.builders import TREES, tiny
from tests.chart.enumeration import best_tree, label_table, spans
from tests.nn import plain
from tests.parsers.examples import accumulate, batch_of, gold_of, steady_indexer

SHORT = [tree for tree in TREES if len(tree) <= 6]
EVERYTHING = 10**6


def per_token_forms(parser: ChartParser, indexer: Indexer, forms: list[int]) -> Tensor:
    """The CharLSTM run on every token by itself, sharing nothing."""
    return parser.form_vectors(indexer, np.array(forms))


def margin(parser: ChartParser, indexer: Indexer, sentences: Sequence[Sentence]) -> Tensor | None:
    batch, forms = batch_of(parser, indexer, sentences)
    encoded = parser.encode(batch, per_token_forms(parser, indexer, forms))
    return parser.loss(encoded, batch, [sentence.gold for sentence in sentences])


def plain_charts(parser: ChartParser, tree: Tree) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Scores [cells, labels - 1] of one sentence by the loops of the layers' tests."""
    sentence = parser.indexer().sentence(tree.words)
    ids = parser.vocabulary.character_ids
    spelt = [[1, 3, 3, 3, 2], *([1, *map(ids.__getitem__, w), 2] for w in tree.words)]
    spelt.append([1, 4, 4, 4, 2])
    assert parser.lexical.char_lstm is not None
    content = np.array([plain.char_lstm(parser.lexical.char_lstm, form) for form in spelt])
    if parser.lexical.words is not None:
        content += plain.array(parser.lexical.words.weight)[sentence.words]
    n = len(tree)
    encoded = plain.encoder(parser.encoder, content, [n + 2])
    posts = plain.fenceposts(encoded, [n + 2])
    return np.array([plain.span_scores(parser.scorer, posts[i], posts[j]) for i, j in spans(n)])


def defined_loss(parser: ChartParser, tree: Tree) -> float:
    """max over trees of (score + wrong labels) - score of gold, all trees written down."""
    n = len(tree)
    scores = plain_charts(parser, tree)
    gold = np.zeros(len(scores), dtype=np.int32)
    for i, j, label in collapsed_spans(tree):
        gold[spans(n).index((i, j))] = parser.vocabulary.label_ids[label]
    table = label_table(scores.astype(np.float32), gold, n)
    gold_score = sum(scores[cell, label - 1] for cell, label in enumerate(gold) if label > 0)
    return best_tree(table, n)[0] - float(gold_score)


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("variant", ["charlstm", "word-charlstm"])
def test_loss_is_the_lead_of_the_best_wrong_tree(seed: int, variant: str) -> None:
    parser = tiny(seed=seed, lexical=variant.split("-"))
    with torch.no_grad():
        parser.scorer.second.weight.mul_(3)
    indexer = parser.indexer()
    expected = [defined_loss(parser, tree) for tree in SHORT]
    found = [margin(parser, indexer, [gold_of(parser, indexer, tree)]) for tree in SHORT]
    losses = [0.0 if loss is None else loss.item() for loss in found]
    assert max(expected) > 2
    np.testing.assert_allclose(losses, expected, atol=2e-4)
    together = margin(parser, indexer, [gold_of(parser, indexer, tree) for tree in SHORT])
    assert together.item() == pytest.approx(sum(expected), abs=1e-3)


@pytest.mark.parametrize("seed", range(8))
def test_loss_is_never_negative(seed: int) -> None:
    parser = tiny(seed=seed)
    with torch.no_grad():
        parser.scorer.second.weight.mul_(3 * seed)
        parser.scorer.second.bias.normal_()
    indexer = parser.indexer()
    for tree in TREES:
        loss = margin(parser, indexer, [gold_of(parser, indexer, tree)])
        assert loss is None or loss.item() > -1e-5


def flat_parser(score: float) -> tuple[ChartParser, Tree]:
    """A parser that scores its only label alike everywhere, and a tree with one constituent."""
    tree = parse_brackets("(S (t a) (t b) (t c) (t d))")
    parser = tiny("chart", [tree])
    with torch.no_grad():
        parser.scorer.second.weight.zero_()
        parser.scorer.second.bias.fill_(score)
    return parser, tree


@pytest.mark.parametrize("score", [-1.5, -1.0])
def test_right_by_the_margin_costs_nothing(score: float) -> None:
    """At exactly -1 a wrong S ties with the empty label, and the lower label wins."""
    parser, tree = flat_parser(score)
    indexer = parser.indexer()
    assert margin(parser, indexer, [gold_of(parser, indexer, tree)]) is None
    random = np.random.default_rng(0)
    assert accumulate(parser, [gold_of(parser, indexer, tree)], indexer, random, EVERYTHING) == 0.0
    assert not any(p.grad is not None and p.grad.any() for p in parser.parameters())


@pytest.mark.parametrize("score", [-0.75, 0.5, 3.0])
def test_each_wrong_node_counts_its_score_and_one(score: float) -> None:
    """Four words make six nodes below the root, empty in gold, S in the best wrong tree."""
    parser, tree = flat_parser(score)
    indexer = parser.indexer()
    loss = margin(parser, indexer, [gold_of(parser, indexer, tree)])
    assert loss.item() == pytest.approx(6 * (score + 1), abs=1e-5)
    loss.backward()
    assert parser.scorer.second.bias.grad.item() == pytest.approx(6, abs=1e-5)


def test_missed_constituents_count_only_by_their_score() -> None:
    """Both labels lose to the empty one: X over [0, 2) and [2, 4) is missed, two nodes wrong."""
    tree = parse_brackets("(S (X (t a) (t b)) (X (t c) (t d)))")
    parser = tiny("chart", [tree])
    with torch.no_grad():
        parser.scorer.second.weight.zero_()
        parser.scorer.second.bias.copy_(torch.tensor([-4.0, -3.0]))  # S, X
    indexer = parser.indexer()
    loss = margin(parser, indexer, [gold_of(parser, indexer, tree)])
    # Root: X for S is 1 error and scores -3; the two empty nodes over gold X are 1 error each.
    expected = (-3 + 1 + 1 + 1) - (-4 - 3 - 3)
    assert loss.item() == pytest.approx(expected, abs=1e-5)


def gradients(parser: ChartParser) -> dict[str, Tensor]:
    """Gradients of all parameters, which are then cleared."""
    found = {
        name: torch.zeros_like(p) if p.grad is None else p.grad.clone()
        for name, p in parser.named_parameters()
    }
    parser.zero_grad(set_to_none=True)
    return found


def assert_same_gradients(found: dict[str, Tensor], expected: dict[str, Tensor]) -> None:
    assert found.keys() == expected.keys()
    for name, gradient in expected.items():
        assert gradient.any(), name
        scale = gradient.abs().max().item()
        torch.testing.assert_close(found[name], gradient, atol=2e-5 * max(scale, 1), rtol=1e-4)


def test_gradient_is_that_of_a_dense_table_of_scores() -> None:
    parser = tiny(seed=3)
    indexer = parser.indexer()
    sentences = [gold_of(parser, indexer, tree) for tree in SHORT]
    loss = margin(parser, indexer, sentences)
    loss.backward()
    found = gradients(parser)

    total = torch.zeros(())
    for tree, sentence in zip(SHORT, sentences, strict=True):
        n = len(tree)
        batch, forms = batch_of(parser, indexer, [sentence])
        content = parser.lexical(batch.tokens, per_token_forms(parser, indexer, forms))
        encoded = parser.encoder(content, batch.layout)
        posts = torch.cat((encoded[:-1, 0::2], encoded[1:, 1::2]), dim=1)
        start, end = (torch.tensor(side) for side in zip(*spans(n), strict=True))
        scorer = parser.scorer
        scores = scorer.second(scorer.norm(scorer.first(posts[end] - posts[start])).relu())
        table = torch.cat((torch.zeros(len(scores), 1), scores), dim=1)
        gold = np.zeros(len(table), dtype=np.int32)
        gold[sentence.gold.cells] = sentence.gold.labels
        augmented = label_table(scores.detach().numpy(), gold, n)
        _, nodes, labels = best_tree(augmented, n)
        cells = [spans(n).index(node) for node in nodes]
        errors = sum(label != gold[cell] for cell, label in zip(cells, labels, strict=True))
        total = total + table[cells, labels].sum() + errors
        total = total - table[torch.arange(len(table)), gold].sum()
    assert loss.item() == pytest.approx(total.item(), abs=1e-3)
    total.backward()
    expected = gradients(parser)
    assert_same_gradients(found, expected)


# ---- batches of an optimiser step ------------------------------------------------------


class Calls:
    """Keeps the positional arguments of every call of a module."""

    def __init__(self, module: nn.Module) -> None:
        self.arguments: list[tuple[Any, ...]] = []
        module.register_forward_pre_hook(lambda _, given: self.arguments.append(given))


@pytest.mark.parametrize("max_tokens", [1, 12, 20, EVERYTHING])
@pytest.mark.parametrize("variant", ["charlstm", "word-charlstm", "word"])
def test_gradient_does_not_depend_on_sub_batches_or_shared_forms(
    variant: str, max_tokens: int
) -> None:
    parser = tiny(seed=4, lexical=variant.split("-"))
    indexer = steady_indexer(parser)
    sentences = [gold_of(parser, indexer, tree) for tree in TREES]
    naive = margin(parser, indexer, sentences)
    (naive / len(sentences)).backward()
    expected = gradients(parser)
    mean = accumulate(parser, sentences, indexer, np.random.default_rng(0), max_tokens=max_tokens)
    assert mean == pytest.approx(naive.item() / len(sentences), abs=1e-4)
    assert_same_gradients(gradients(parser), expected)


@pytest.mark.parametrize("dropout", [0.0, 0.5])
def test_forms_too_many_to_keep_are_computed_again(
    monkeypatch: pytest.MonkeyPatch, dropout: float
) -> None:
    """In parts on the way back, with the dropout of the way there."""
    parser = tiny(seed=4, char_dropout=dropout, lexical=("charlstm",))
    indexer = steady_indexer(parser)
    forms = gold_of(parser, indexer, TREES[6]).forms[[3, 1, 5, 2]]
    weights = torch.arange(64.0).view(4, 16)
    monkeypatch.setattr(form_cache, "KEPT_CHARACTERS", 20)
    calls = Calls(parser.lexical.char_lstm)
    torch.manual_seed(0)
    in_parts = parser.form_vectors(indexer, forms)
    parts = len(calls.arguments)
    assert parts > 1
    (in_parts * weights).sum().backward()
    assert len(calls.arguments) == 2 * parts
    found = gradients(parser)
    # The same parts, kept: their dropout is drawn in the same order.
    torch.manual_seed(0)
    by_form = {
        tuple(ids[:n, k].tolist()): row
        for ids, lengths in calls.arguments[:parts]
        for k, (n, row) in enumerate(
            zip(lengths.tolist(), parser.lexical.char_lstm(ids, lengths), strict=True)
        )
    }
    kept = torch.stack([by_form[tuple(indexer.spelling(form).tolist())] for form in forms])
    assert torch.equal(kept, in_parts)
    (kept * weights).sum().backward()
    for name, gradient in gradients(parser).items():
        torch.testing.assert_close(found[name], gradient, msg=name)
    assert found["lexical.char_lstm.embedding.weight"].any()


def test_gradients_add_up_over_calls() -> None:
    parser = tiny(seed=4)
    indexer = steady_indexer(parser)
    sentences = [gold_of(parser, indexer, tree) for tree in TREES]
    random = np.random.default_rng(0)
    accumulate(parser, sentences, indexer, random, 20)
    once = gradients(parser)
    accumulate(parser, sentences, indexer, random, 20)
    accumulate(parser, sentences, indexer, random, 20)
    twice = gradients(parser)
    assert_same_gradients(twice, {name: 2 * gradient for name, gradient in once.items()})


def test_char_lstm_runs_once_over_the_distinct_forms_of_a_step() -> None:
    parser = tiny()
    indexer = parser.indexer()
    for tree in TREES:  # the indexer knows more forms than the step below
        gold_of(parser, indexer, tree)
    trees = [TREES[k] for k in (0, 1, 1, 8, 2, 0)]
    assert parser.lexical.char_lstm is not None
    lstm, encoder = Calls(parser.lexical.char_lstm), Calls(parser.encoder)
    accumulate(
        parser,
        [gold_of(parser, indexer, tree) for tree in trees],
        indexer,
        np.random.default_rng(0),
        12,
    )
    assert len(encoder.arguments) >= 3
    ((characters, lengths),) = lstm.arguments
    columns = zip(characters.T.tolist(), lengths.tolist(), strict=True)
    forms = [tuple(column[:n]) for column, n in columns]
    words = {word for tree in trees for word in tree.words}
    assert len(forms) == len(set(forms)) == len(words) + 2  # and START and STOP


def test_training_words_become_unk_with_their_probability() -> None:
    """Counts 1, 2 and 5: one in 2, 3 and 6 occurrences is replaced; START and STOP never are."""
    tree = parse_brackets("(S (t a) (t b) (t b) (t c) (t c) (t c) (t c) (t c))")
    parser = tiny("chart", [tree], layers=0)
    indexer = parser.indexer()
    calls = Calls(parser.lexical)
    copies = 1500
    accumulate(
        parser,
        [gold_of(parser, indexer, tree)] * copies,
        indexer,
        np.random.default_rng(1),
        EVERYTHING,
    )
    ((tokens, forms),) = calls.arguments
    words, form_rows = tokens.words, tokens.form_rows
    rows = words.view(copies, len(tree) + 2)
    original = gold_of(parser, indexer, tree).words
    replaced = (rows == UNK).double().mean(dim=0).numpy()
    assert ((rows == UNK) | (rows == torch.from_numpy(original))).all()
    expected = [0, 1 / 2, 1 / 3, 1 / 3, *[1 / 6] * 5, 0]
    np.testing.assert_allclose(replaced, expected, atol=0.05)
    assert replaced[[0, -1]].tolist() == [0, 0]
    # Occurrences are replaced one by one, and characters stay those of the word.
    assert (rows[:, 2] != rows[:, 3]).any()
    assert len(forms) == 5
    assert len(form_rows.view(copies, -1).unique(dim=0)) == 1


class Fixed(np.random.Generator):
    """A generator whose ``random`` gives one number again and again."""

    def __init__(self, number: float) -> None:
        super().__init__(np.random.PCG64(0))
        self.number = number

    def random(self, size: Any = None, *rest: Any, **named: Any) -> Any:
        return np.full(size, self.number)


@pytest.mark.parametrize(("number", "kept"), [(0.0, ""), (0.34, "bc"), (0.49, "bc"), (0.5, "abc")])
def test_unk_replacement_at_given_random_numbers(number: float, kept: str) -> None:
    tree = parse_brackets("(S (t a) (t b) (t b) (t c) (t c) (t c))")
    parser = tiny("chart", [tree])
    indexer = parser.indexer()
    calls = Calls(parser.lexical)
    accumulate(parser, [gold_of(parser, indexer, tree)], indexer, Fixed(number), EVERYTHING)
    words = calls.arguments[0][0].words.tolist()[1:-1]
    assert words == [FIRST_WORD + "abc".index(word) if word in kept else UNK for word in tree.words]


def test_gold_cells_of_a_batch_lie_at_the_offsets_of_their_sentences() -> None:
    parser = tiny()
    indexer = parser.indexer()
    sentences = [gold_of(parser, indexer, tree) for tree in TREES]
    lengths = np.array([len(tree) for tree in TREES], dtype=np.int32)
    offsets = cell_offsets(lengths)
    gold = gold_labels(lengths, [sentence.gold for sentence in sentences])
    for k, tree in enumerate(TREES):
        chart = gold[offsets[k] : offsets[k + 1]]
        found = {
            span: parser.vocabulary.labels[label]
            for span, label in zip(spans(len(tree)), chart.tolist(), strict=True)
            if label
        }
        assert found == {(i, j): label for i, j, label in collapsed_spans(tree)}
