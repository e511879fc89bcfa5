"""The max-margin loss by hand, what it is computed of, and the best labels in plain Python."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

from spmrl_bench.chart.arrays import cell_spans
from spmrl_bench.errors import NotFiniteError
from spmrl_bench.nn.vocabulary import UNK
from spmrl_bench.parsers import session
from spmrl_bench.parsers.chart import (
    ChartParser,
    MaskedLabels,
    best_labels,
    decode_spans,
    label_maxima,
    masked_scores,
)
from spmrl_bench.readers.brackets import parse_brackets
from tests.builders import TREES, tiny
from tests.parsers.examples import accumulate, calls_of_forms, gold_of, loss_of, steady_indexer

EVERYTHING = 10**6


def test_losses_by_hand() -> None:
    """Of labels that score alike everywhere. Four words make six nodes below the root."""
    flat, nested = "(S (t a) (t b) (t c) (t d))", "(S (X (t a) (t b)) (X (t c) (t d)))"
    for text, scores, expected in (
        (flat, [-1.5], 0.0),
        (flat, [-1.0], 0.0),  # a wrong S ties with the empty label, and the lower one wins
        # The six are empty in gold and S in the best wrong tree: each counts its score and one.
        *((flat, [score], 6 * (score + 1)) for score in (-0.75, 0.5, 3.0)),
        # Both labels lose to the empty one. X for S at the root is 1 error and scores -3, the two
        # empty nodes over gold X are 1 error each: what is missed counts by its score alone.
        (nested, [-4.0, -3.0], (-3 + 1 + 1 + 1) - (-4 - 3 - 3)),
    ):
        tree = parse_brackets(text)
        parser = tiny("chart", [tree])
        with torch.no_grad():
            parser.scorer.second.weight.zero_()
            parser.scorer.second.bias.copy_(torch.tensor(scores))
        assert loss_of(parser, [tree]) == pytest.approx(expected, abs=1e-5)
        if expected == 0:
            assert not any(p.grad is not None and p.grad.any() for p in parser.parameters())
        elif text == flat:
            assert parser.scorer.second.bias.grad.item() == pytest.approx(6, abs=1e-5)


def gradients(parser: ChartParser) -> dict[str, Tensor]:
    """Gradients of all parameters, which are then cleared."""
    found = {
        name: torch.zeros_like(p) if p.grad is None else p.grad.clone()
        for name, p in parser.named_parameters()
    }
    parser.zero_grad(set_to_none=True)
    return found


@pytest.mark.parametrize("dropout", [0.0, 0.5])
def test_forms_too_many_to_keep_are_computed_again(
    monkeypatch: pytest.MonkeyPatch, dropout: float
) -> None:
    """In parts on the way back, with the dropout of the way there."""
    parser = tiny(seed=4, char_dropout=dropout, lexical=("charlstm",))
    indexer = steady_indexer(parser)
    forms = gold_of(parser, indexer, TREES[6]).forms[[3, 1, 5, 2]]
    weights = torch.arange(64.0).view(4, 16)
    monkeypatch.setattr(session, "KEPT_CHARACTERS", 20)
    char_lstm = parser.lexical["charlstm"]
    calls = calls_of_forms(char_lstm, monkeypatch)
    torch.manual_seed(0)
    in_parts = parser.form_vectors(indexer, forms)["charlstm"]
    parts = len(calls)
    assert parts > 1
    (in_parts * weights).sum().backward()
    assert len(calls) == 2 * parts
    found = gradients(parser)
    # The same parts, kept: their dropout is drawn in the same order.
    torch.manual_seed(0)
    by_form = {
        tuple(ids[:n].tolist()): row
        for codes in calls[:parts]
        for n, ids, row in zip(
            codes.lengths.tolist(), codes.values, char_lstm.forms(codes), strict=True
        )
    }
    spelt = [char_lstm.codes(indexer.forms[form]) for form in forms]
    kept = torch.stack([by_form[tuple(ids.tolist())] for ids in spelt])
    assert torch.equal(kept, in_parts)
    (kept * weights).sum().backward()
    for name, gradient in gradients(parser).items():
        torch.testing.assert_close(found[name], gradient, msg=name)
    assert found["lexical.charlstm.embedding.weight"].any()


def test_char_lstm_runs_once_over_the_distinct_forms_of_a_step(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    parser = tiny()
    indexer = parser.indexer()
    for tree in TREES:  # the indexer knows more forms than the step below
        gold_of(parser, indexer, tree)
    trees = [TREES[k] for k in (0, 1, 1, 8, 2, 0)]
    calls = calls_of_forms(parser.lexical["charlstm"], monkeypatch)
    batches: list[Any] = []
    parser.encoder.register_forward_pre_hook(lambda _, given: batches.append(given))
    gold = [gold_of(parser, indexer, tree) for tree in trees]
    accumulate(parser, gold, indexer, np.random.default_rng(0), 12)
    assert len(batches) >= 3
    (codes,) = calls
    rows = zip(codes.values.tolist(), codes.lengths.tolist(), strict=True)
    forms = [tuple(row[:n]) for row, n in rows]
    words = {word for tree in trees for word in tree.words}
    assert len(forms) == len(set(forms)) == len(words) + 2  # and START and STOP


def test_training_words_become_unk_with_their_probability() -> None:
    """Counts 1, 2 and 5: one in 2, 3 and 6 occurrences is replaced; START and STOP never are."""
    tree = parse_brackets("(S (t a) (t b) (t b) (t c) (t c) (t c) (t c) (t c))")
    parser = tiny("chart", [tree], layers=0)
    indexer = parser.indexer()
    calls: list[Any] = []
    parser.lexical.register_forward_pre_hook(lambda _, given: calls.append(given))
    copies = 1500
    gold = [gold_of(parser, indexer, tree)] * copies
    accumulate(parser, gold, indexer, np.random.default_rng(1), EVERYTHING)
    ((tokens,),) = calls
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
    assert len(tokens.forms["charlstm"]) == 5
    assert len(form_rows.view(copies, -1).unique(dim=0)) == 1


LENGTHS = np.array([5, 1, 7], dtype=np.int32)
#: Of the smallest differences, where sums of float32 would be equal.
TINY = np.array([-1e-30, 0.0, 1e-30, 1e-9, 1 - 2**-24, 1.0], dtype=np.float32)


def best_of(scores: torch.Tensor, masked: MaskedLabels = ((), ())) -> Any:
    """The best labels of scores in blocks of 17 cells."""
    blocks = (part.clone() for part in scores.split(17))
    return best_labels(masked_scores(blocks, LENGTHS, masked))


def random_scores(seed: int, ties: bool = True) -> NDArray[np.float32]:
    rng = np.random.default_rng(seed)
    shape = (len(cell_spans(LENGTHS)[0]), 6)
    return (rng.integers(-2, 3, shape) if ties else rng.normal(size=shape)).astype(np.float32)


def plain_maxima(scores: NDArray[np.float32], gold: NDArray[np.int32] | None) -> Any:
    """Value and label of each cell: in double, every label but the gold one 1 better."""
    rows = [
        max(
            (float(score) + (gold is not None and label != gold[cell]), -label)
            for label, score in enumerate(row, 1)
        )
        for cell, row in enumerate(scores)
    ]
    return [value for value, _ in rows], [-label for _, label in rows]


@pytest.mark.parametrize("gold", [False, True], ids=["plain", "augmented"])
def test_maxima_are_those_of_plain_python(gold: bool) -> None:
    rng = np.random.default_rng(2)
    tiny = rng.choice(TINY, random_scores(0).shape)
    for scores in (random_scores(1), random_scores(2, ties=False), tiny):
        right = rng.integers(0, 7, len(scores)).astype(np.int32) if gold else None
        found = label_maxima(torch.from_numpy(scores), right)
        assert [each.tolist() for each in found] == list(plain_maxima(scores, right))
        if right is None:
            assert all(map(np.array_equal, best_of(torch.from_numpy(scores)), found))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
def test_scores_on_a_gpu() -> None:
    scores = torch.from_numpy(random_scores(1))
    assert all(map(np.array_equal, best_of(scores.cuda()), best_of(scores)))


def test_scores_that_are_not_finite_are_refused_with_their_place() -> None:
    for value in (np.nan, np.inf, -np.inf):
        scores = torch.from_numpy(random_scores(1))
        scores[15, 2] = value  # the cell of the second sentence
        for targets in (None, np.ones(len(scores), np.int32)):
            assert np.isnan(label_maxima(scores, targets)[0]).nonzero()[0].tolist() == [15]
        with pytest.raises(NotFiniteError, match=r"sentence 1, span \[0, 1\)"):
            decode_spans(*best_of(scores), LENGTHS)


def test_masked_labels_do_not_win_where_they_are_masked() -> None:
    sentence, start, end = cell_spans(LENGTHS)
    scores = torch.from_numpy(random_scores(1, ties=False))
    scores[:, 1] += 10
    words, whole = end - start == 1, end - start == LENGTHS[sentence]
    for of_words, of_sentences, allowed in (
        ([], [], words | ~words),
        ([2], [], ~words),
        ([], [2], ~whole),
        ([1, 2], [2, 3], ~words & ~whole),
    ):
        values, labels = best_of(scores, (of_words, of_sentences))
        assert np.isfinite(values).all()
        assert ((labels == 2) == allowed).all()
