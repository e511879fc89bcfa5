"""Scores of dependency arcs, and of their relations, from encoded tokens.

Dozat & Manning 2017 (section 2.2) give each token four small vectors by networks of one hidden
layer: as a dependent and as a head, of arcs and of relations. An arc is scored by

    h_dep^T U h_head + u^T h_head

the second term being how likely the head is to have dependents at all, and the relations of an
arc, for which all arcs would be too many, once its head is known:

    h_dep^T U_r h_head + w_r^T [h_dep ; h_head] + b_r

START stands for the root, 0, and STOP takes no part; words count from 1. Hidden layers are leaky
ReLUs of slope 0.1 and begin orthogonal, products begin at zero, as in the released code.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from spmrl_bench.nn.kernels import by_rounded_rows, rounded_rows
from spmrl_bench.nn.ragged import Ragged, SentenceDropout

SLOPE = 0.1
# Arcs whose relations are scored at once, so that what lies between stays in a CPU's cache.
BLOCK = 512


class Projected(NamedTuple):
    """The four vectors of each token, ``[tokens, d_arc]`` or ``[tokens, d_relation]``."""

    arc_dependent: Tensor
    arc_head: Tensor
    relation_dependent: Tensor
    relation_head: Tensor


class BiaffineScorer(nn.Module):
    """Scores of arcs and relations."""

    legal: Tensor
    """bool ``[2, relations]``, at least one that an arc may have: between words, from the root."""

    def __init__(self, config: Any, d_model: int, legal: Tensor) -> None:
        super().__init__()
        d_arc, d_relation, relations = config.d_arc, config.d_relation, legal.shape[1]
        self.widths = (d_arc, d_arc, d_relation, d_relation)
        self.hidden = nn.Linear(d_model, sum(self.widths))
        self.dropout = SentenceDropout(config.dropout)
        # h_dep^T U + u^T, whose product with h_head is the score of an arc.
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
        self.register_buffer("legal", legal)

    def project(self, tokens: Tensor, layout: Ragged) -> Projected:
        """Encoded tokens ``[tokens, d_model]``, START and STOP among them, to their vectors."""
        rows = functional.leaky_relu(by_rounded_rows(self.hidden, tokens), SLOPE)
        return Projected(*self.dropout(rows, layout).split(self.widths, dim=1))

    def arc_scores(self, projected: Projected, layout: Ragged) -> Tensor:
        """Scores ``[words, longest - 1]`` of all heads, itself among them; column 0 is the root's,
        and beyond the sentence there is minus infinity."""
        dependent, head = projected.arc_dependent, projected.arc_head
        # Rectangles that are as large as those of other batches.
        sentences = rounded_rows(len(layout.lengths), dependent.dtype)
        width = rounded_rows(layout.longest, dependent.dtype)
        left = layout.pad(by_rounded_rows(self.arc, dependent), sentences, width)
        right = layout.pad(head, sentences, width)
        flat = torch.bmm(left, right.transpose(1, 2)).view(-1, width)
        rows = flat[:, : layout.longest - 1].index_select(0, layout.cells(width)[layout.words])
        return rows.masked_fill(~_within(layout), -torch.inf)

    def relation_scores(
        self, projected: Projected, layout: Ragged, heads: Tensor, which: Tensor | None = None
    ) -> Tensor:
        """Scores ``[words, relations]`` of the relations of each word to its head, minus infinity
        where not legal; heads are int64 ``[words]``, 0 for the root. The words are those of the
        batch, or ``which`` of them, in any order and any number of times."""
        words, scores = layout.words, []
        words = words if which is None else words[which]
        rows = words - layout.position.index_select(0, words) + heads
        for some_words, some_rows in zip(words.split(BLOCK), rows.split(BLOCK), strict=True):
            dependent = projected.relation_dependent.index_select(0, some_words)
            head = projected.relation_head.index_select(0, some_rows)
            left = by_rounded_rows(self.relation, dependent).unflatten(1, (-1, head.shape[1]))
            of_dependent = by_rounded_rows(self.relation_dependent, dependent)
            scores.append((left * head.unsqueeze(1)).sum(dim=2) + of_dependent)
        legal = self.legal.index_select(0, (heads == 0).long())
        return torch.cat(scores).masked_fill(~legal, -torch.inf)


def choice_loss(scores: Tensor, right: Tensor) -> Tensor:
    """Sum over words of the cross-entropy of the right head, of all n + 1, or legal relation."""
    return functional.cross_entropy(scores, right, reduction="sum")


def packed_arcs(scores: Tensor, layout: Ragged) -> Tensor:
    """Arc scores ``[words, longest - 1]`` as the decoder takes them, ``[sum of n(n + 1)]``."""
    return scores.masked_select(_within(layout))


def _within(layout: Ragged) -> Tensor:
    """bool ``[words, longest - 1]``: which heads are in the sentence of a word."""
    lengths = layout.lengths.index_select(0, layout.sentence.index_select(0, layout.words))
    columns = torch.arange(layout.longest - 1, device=lengths.device)
    return columns <= lengths.unsqueeze(1) - 2
