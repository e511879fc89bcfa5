"""Scores of dependency arcs, and of their relations, from encoded tokens.

Dozat & Manning 2017 (section 2.2) give each token four small vectors by networks of one hidden
layer: as a dependent and as a governor, of arcs and of relations. An arc is scored by

    h_dep^T U h_gov + u^T h_gov

the second term being how likely the governor is to have dependents at all, and the relations of an
arc, for which all arcs would be too many, once its governor is known:

    h_dep^T U_r h_gov + w_r^T [h_dep ; h_gov] + b_r

A sentence's START stands for the root, and its STOP takes no part. Words count from 1 and 0 is
the root, so that what is scored here is what :func:`spmrl_bench.chart.decode_dependencies`
decodes.

The paper speaks of ReLUs. The hidden layers here are leaky ones of slope 0.1, as in the code that
was released with it: scores are products of two activations, and where one of them is zero the
other would learn nothing from the arc. As in that code they begin orthogonal and the products at
zero, so that at first all governors of a word, and all relations, are equally likely.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from spmrl_bench.nn.kernels import product_rows, with_product_rows
from spmrl_bench.nn.ragged import Ragged, SentenceDropout

SLOPE = 0.1
# Arcs whose relations are scored at once, so that what lies between stays in a CPU's cache.
BLOCK = 512


class Projected(NamedTuple):
    """The four vectors of each token, ``[tokens, d_arc]`` and ``[tokens, d_relation]``."""

    arc_dependent: Tensor
    arc_governor: Tensor
    relation_dependent: Tensor
    relation_governor: Tensor


class BiaffineScorer(nn.Module):
    """Scores of arcs and relations.

    Args:
        d_model: width of encoded tokens.
        d_arc, d_relation: widths of the vectors of which arcs and relations are scored.
        relations: how many there are.
        dropout: on these vectors, one mask for each sentence.
        legal: bool ``[2, relations]``, which relations an arc may have: in row 0 one between two
            words, in row 1 one from the root; see :func:`legal_relations`. All if not given. It
            is saved with the weights.

    Raises:
        ValueError: ``legal`` has another shape, or allows nothing.
    """

    legal: Tensor

    def __init__(
        self,
        d_model: int,
        d_arc: int,
        d_relation: int,
        relations: int,
        *,
        dropout: float,
        legal: Tensor | None = None,
    ) -> None:
        super().__init__()
        self.widths = (d_arc, d_arc, d_relation, d_relation)
        self.hidden = nn.Linear(d_model, sum(self.widths))
        self.dropout = SentenceDropout(dropout)
        # h_dep^T U + u^T, whose product with h_gov is the score of an arc.
        self.arc = nn.Linear(d_arc, d_arc)
        # h_dep^T U_r + (the second half of w_r), and (the first half of w_r)^T h_dep + b_r.
        self.relation = nn.Linear(d_relation, relations * d_relation)
        self.relation_dependent = nn.Linear(d_relation, relations)
        for block in self.hidden.weight.detach().split(self.widths):
            nn.init.orthogonal_(block)
        nn.init.zeros_(self.hidden.bias)
        for linear in (self.arc, self.relation, self.relation_dependent):
            nn.init.zeros_(linear.weight)
            nn.init.zeros_(linear.bias)
        if legal is None:
            legal = torch.ones(2, relations, dtype=torch.bool)
        if legal.shape != (2, relations) or not legal.any(dim=1).all():
            raise ValueError(
                f"legal has shape {list(legal.shape)} and allows {legal.sum(dim=-1).tolist()} "
                f"relations; it must be [2, {relations}] and allow at least one in each row."
            )
        self.register_buffer("legal", legal.bool())

    def project(self, tokens: Tensor, layout: Ragged) -> Projected:
        """Encoded tokens ``[tokens, d_model]``, START and STOP among them, to their vectors.

        Here and below the arithmetic is that of the weights, float32 also where autocast or the
        tokens have less.
        """
        with _own_precision(tokens):
            rows = _product(self.hidden, tokens.to(self.hidden.weight.dtype))
            rows = self.dropout(functional.leaky_relu(rows, SLOPE), layout)
            return Projected(*rows.split(self.widths, dim=1))

    def arc_scores(self, projected: Projected, layout: Ragged) -> Tensor:
        """Scores ``[words, longest - 1]`` of all governors of each word.

        Column g is that of word g of the same sentence, column 0 that of the root. Beyond the
        sentence there is minus infinity. The column of the word itself has a score as well.
        """
        dependent, governor = projected.arc_dependent, projected.arc_governor
        with _own_precision(dependent):
            # Rectangles that are as large as those of other batches.
            sentences = product_rows(len(layout.lengths), dependent.dtype)
            width = product_rows(layout.longest, dependent.dtype)
            left = layout.spread(_product(self.arc, dependent), sentences, width)
            right = layout.spread(governor, sentences, width)
            flat = torch.bmm(left, right.transpose(1, 2)).view(-1, width)
            slots = layout.sentence * width + layout.position
            rows = flat[:, : layout.longest - 1].index_select(0, slots[layout.words])
            return rows.masked_fill(~_within(layout), -torch.inf)

    def relation_scores(self, projected: Projected, layout: Ragged, governors: Tensor) -> Tensor:
        """Scores ``[words, relations]`` of the relations of each word to its governor.

        Args:
            projected: of all tokens.
            layout: which tokens form a sentence.
            governors: int64 ``[words]``, 0 for the root, else the number of a word of the sentence.

        Returns:
            Scores, minus infinity where the relation is not legal.

        Raises:
            ValueError: a governor is not in the sentence.
        """
        words = layout.words
        _check_governors(governors, layout)
        rows = words - layout.position.index_select(0, words) + governors
        legal = self.legal.index_select(0, (governors == 0).long())
        with _own_precision(projected.relation_dependent):
            scores = [
                self._relations(
                    projected.relation_dependent.index_select(0, some_words),
                    projected.relation_governor.index_select(0, some_rows),
                )
                for some_words, some_rows in zip(words.split(BLOCK), rows.split(BLOCK), strict=True)
            ]
            return torch.cat(scores).masked_fill(~legal, -torch.inf)

    def _relations(self, dependent: Tensor, governor: Tensor) -> Tensor:
        """Scores ``[arcs, relations]`` of arcs between tokens ``[arcs, d_relation]``."""
        left = _product(self.relation, dependent).view(len(dependent), -1, governor.shape[1])
        of_dependent = _product(self.relation_dependent, dependent)
        return (left * governor.unsqueeze(1)).sum(dim=2) + of_dependent


def arc_loss(scores: Tensor, governors: Tensor) -> Tensor:
    """Sum over words of the cross-entropy of the right governor among all n + 1 columns.

    As in the paper the word itself is one of them, although no tree has such an arc.

    Args:
        scores: ``[words, columns]``, of :meth:`BiaffineScorer.arc_scores`.
        governors: int64 ``[words]``.

    Raises:
        ValueError: a governor is not in the sentence.
    """
    return _cross_entropy(scores, governors, "governor {} is not in the sentence.")


def relation_loss(scores: Tensor, relations: Tensor) -> Tensor:
    """Sum over words of the cross-entropy of the right relation among the legal ones.

    Args:
        scores: ``[words, relations]``, of :meth:`BiaffineScorer.relation_scores` for the right
            governors.
        relations: int64 ``[words]``.

    Raises:
        ValueError: a relation does not exist, or is not legal for its arc.
    """
    return _cross_entropy(scores, relations, "relation {} is not legal for its arc.")


def packed_arcs(scores: Tensor, layout: Ragged) -> Tensor:
    """Arc scores ``[words, longest - 1]`` as the decoder takes them, ``[sum of n(n + 1)]``.

    See :mod:`spmrl_bench.chart.packing`.
    """
    return scores.masked_select(_within(layout))


def legal_relations(
    governors: NDArray[np.integer], relations: NDArray[np.integer], count: int
) -> Tensor:
    """Which relations were seen between words and from the root, bool ``[2, count]``.

    The root's child then only gets relations that were seen there, ``root`` in most treebanks,
    and no other word gets those that were seen nowhere else. Where nothing at all was seen, as
    between words in a treebank of single words, everything is legal.

    Args:
        governors: ``[words]`` of training sentences, 0 for the root.
        relations: ``[words]``, each from 0 to ``count`` - 1.
        count: of relations.
    """
    legal = np.zeros((2, count), dtype=bool)
    legal[(governors == 0).astype(np.int64), relations] = True
    legal[~legal.any(axis=1)] = True
    return torch.from_numpy(legal)


def _own_precision(rows: Tensor) -> torch.autocast:
    """Context without autocast, which would round what is to be ranked."""
    return torch.autocast(rows.device.type, enabled=False)


def _product(linear: nn.Linear, rows: Tensor) -> Tensor:
    """``linear(rows)``, computed for as many rows as :func:`product_rows` says."""
    result: Tensor = linear(with_product_rows(rows))
    return result[: len(rows)]


def _word_lengths(layout: Ragged) -> Tensor:
    """int64 ``[words]``, the number of words of each word's sentence."""
    return layout.lengths.index_select(0, layout.sentence.index_select(0, layout.words)) - 2


def _within(layout: Ragged) -> Tensor:
    """bool ``[words, longest - 1]``: which governors are in the sentence of a word."""
    columns = torch.arange(layout.longest - 1, device=layout.lengths.device)
    return columns <= _word_lengths(layout).unsqueeze(1)


def _check_governors(governors: Tensor, layout: Ragged) -> None:
    n = _word_lengths(layout)
    if governors.shape != n.shape:
        raise ValueError(f"{len(governors)} governors for {len(n)} words; there must be one each.")
    wrong = (governors < 0) | (governors > n)
    if wrong.any():
        k = int(wrong.nonzero()[0, 0])
        raise ValueError(
            f"word {k} of the batch: governor {int(governors[k])} is not in the sentence; it must "
            f"be from 0 to {int(n[k])}."
        )


def _cross_entropy(scores: Tensor, right: Tensor, problem: str) -> Tensor:
    """Sum over rows of minus the log-probability of the right column, which must be possible."""
    known = (right >= 0) & (right < scores.shape[1])
    chosen = scores.detach().gather(1, right.where(known, 0).unsqueeze(1)).squeeze(1)
    wrong = ~known | (chosen == -torch.inf)
    if wrong.any():
        k = int(wrong.nonzero()[0, 0])
        raise ValueError(f"word {k} of the batch: {problem.format(int(right[k]))}")
    with _own_precision(scores):
        return functional.cross_entropy(scores, right, reduction="sum")
