"""The best labels of spans are found the same way wherever their scores are."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from spmrl_bench.chart.arrays import cell_spans
from spmrl_bench.errors import NotFiniteError
from spmrl_bench.parsers.chart import MaskedLabels, best_labels, decode_spans, label_maxima

LENGTHS = np.array([5, 1, 7], dtype=np.int32)
#: Of the smallest differences, where sums of float32 would be equal.
TINY = np.array([-1e-30, 0.0, 1e-30, 1e-9, 1 - 2**-24, 1.0], dtype=np.float32)


class Blocks:
    """A layer with given scores, in blocks of 17 cells."""

    def __init__(self, scores: torch.Tensor) -> None:
        self.labels = ((), *[(f"L{k}",) for k in range(scores.shape[1])])
        self.scores = scores

    def label_scores(self, _: Any) -> Iterator[Any]:
        return iter(part.clone() for part in self.scores.split(17))


def best_of(scores: torch.Tensor, masked: MaskedLabels | None = None) -> Any:
    encoded: Any = [SimpleNamespace(batch=SimpleNamespace(lengths=LENGTHS))]
    layers: Any = [Blocks(scores)]
    return best_labels(layers, encoded, masked)


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
