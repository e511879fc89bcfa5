"""What can be seen of a parser at work: attention weights, what heads say of a sentence, and what
is looked at before each action that writes a tree.

Where features of label attention reach the span vector by themselves (Mrini et al. 2020, section
4.5), label scores are computed anew from them, so that one may change them or follow gradients.

A score says little by itself: a head may raise those of all labels. What decides is the lead over
the best other label. For one span the ReLUs are open or closed and the norms divide by some
deviation; with these held as they are the lead is exactly a sum of one part for each head and a
constant of the biases. The labels of a chart are not always those of constituents: joint parsing
has artificial nodes, division spans two forms of each label, and some are not allowed everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from spmrl_bench.errors import UnsupportedError
from spmrl_bench.nn.encoders import Encoder, Part
from spmrl_bench.nn.kernels import autocast
from spmrl_bench.nn.layers import ReleasedLayerNorm
from spmrl_bench.nn.ragged import Ragged
from spmrl_bench.nn.scorers.span_scores import SpanScorer, fenceposts
from spmrl_bench.trees.head_driven import SUB_HEAD, TO_HEAD, constituent
from spmrl_bench.trees.parse import Parse
from spmrl_bench.trees.tree import Label

#: Features of the copies of a sentence that are worked on at once (64 MiB).
_FEATURES = 1 << 24

Span = tuple[int, int]


class AttentionMaps(NamedTuple):
    """The attention of every head of an encoder to a sentence of ``n`` words."""

    weights: NDArray[np.float32]
    """``[layers, heads, n + 2, n + 2]``: entry ``[l, h, i, j]`` is how much token ``i`` takes of
    token ``j``, where 0 is START, 1 the first word and ``n + 1`` STOP. Every row sums to 1."""
    parts: tuple[Part, ...]
    """Of the products of queries and keys of which the parser has weights."""


class HeadOutputs(NamedTuple):
    """What the heads of label attention make of a sentence of ``n`` tokens, with START and STOP."""

    place: int
    """Which of the sentences it is, the first being 0."""
    predicted: Parse
    labels: Sequence[Label]
    """Those that a span can have, the first of no constituent."""
    weights: NDArray[np.float32]
    """As of :meth:`LabelAttention.weights`."""
    features: NDArray[np.float32]
    """``[n, heads, d_proj]`` that each head gives each token."""
    label_scores: Callable[..., Tensor]
    """Of spans of this sentence, see :meth:`SpanHeads.label_scores`."""


#: Where a word can be: top of the stack and the one below it, further down, at the front of the
#: buffer, behind it, and gone.
PLACES = ("top", "second", "deeper", "front", "waiting", "removed")


@dataclass(frozen=True, slots=True, eq=False)
class DerivationTrace:
    """The actions that parse a sentence of ``n`` words, and what was looked at before each.

    States are those before the action of their row. Words are counted from 1 where they are named
    by number, and 0 is the root; in columns the first word is column 0, and the root has none.
    """

    words: tuple[str, ...]
    actions: tuple[str, ...]
    """All ``2n``, such as ``SHIFT`` and ``LEFT-ARC(nsubj)``, with the marks of lifted arcs."""
    weights: NDArray[np.float32]
    """``[2n, layers, n]``, how much each layer of attention takes of each word; rows sum to 1."""
    on_stack: NDArray[np.bool_]
    """``[2n, n]``"""
    removed: NDArray[np.bool_]
    """``[2n, n]``, for words that have left the stack."""
    top: NDArray[np.int32]
    """``[2n]``, the word on top of the stack, 0 where it is the root."""
    second: NDArray[np.int32]
    """``[2n]``, the word below it, -1 where the root is all there is."""
    front: NDArray[np.int32]
    """``[2n]``, the next of the words that wait, -1 where none does."""
    arcs: NDArray[np.int32]
    """``[2n, 2]``, head and dependent of the arc that the action makes, -1 for SHIFT."""
    probabilities: NDArray[np.float64]
    """``[2n]``, of each action among the legal ones."""
    score: float
    """The log probability of the whole sequence, as the search found it."""
    parse: Parse
    """What the parser answers: arcs that were lifted are where they belong, unlike in ``arcs``."""

    def places(self) -> NDArray[np.bool_]:
        """Return at which of :data:`PLACES` each word is, ``[2n, places, n]``."""
        numbers = np.arange(1, len(self.words) + 1)
        top, second, front = (
            word[:, None] == numbers for word in (self.top, self.second, self.front)
        )
        deeper = self.on_stack & ~(top | second)
        behind = ~(self.on_stack | self.removed | front)
        return np.stack((top, second, deeper, front, behind, self.removed), axis=1)

    def shares(self) -> NDArray[np.float64]:
        """Return how much of the weight is at each of :data:`PLACES`, ``[2n, layers, places]``."""
        return np.einsum("tln,tpn->tlp", self.weights.astype(np.float64), self.places())


class SpanHeads:
    """The heads of label attention of an encoder below a span scorer."""

    def __init__(self, encoder: Encoder, scorer: object) -> None:
        """Raise an UnsupportedError if there are none, or they have no features of their own."""
        layer = encoder.label_attention
        if layer is None:
            raise UnsupportedError(
                "the parser has no label attention to show. Choose one that was trained with it"
            )
        if not isinstance(scorer, SpanScorer):
            raise UnsupportedError(
                "the parser labels no spans to which heads could contribute. Choose one that "
                "finds constituents"
            )
        if not layer.concatenated:
            raise UnsupportedError(
                "the parser adds the outputs of its heads up (outputs = 'projected'), so no part "
                "of a span vector is that of a head. Choose one with outputs = 'concatenated'"
            )
        self.layer, self._encoder, self._scorer = layer, encoder, scorer

    @torch.no_grad()
    def of_sentences(
        self, rows: Tensor, layout: Ragged
    ) -> tuple[list[NDArray[np.float32]], list[NDArray[np.float32]]]:
        """Weights and features of each sentence, from what the layer is given."""
        with autocast(self._encoder.precision, rows.device):
            features = self.layer.features(rows, layout).float().cpu()
        weights = self.layer.weights(rows, layout)
        parts = features.split(layout.lengths.tolist())
        return [each.float().cpu().numpy() for each in weights], [each.numpy() for each in parts]

    def label_scores(
        self, features: Tensor, spans: Sequence[Span], *, held_norms: bool = False
    ) -> Tensor:
        """Return label scores ``[copies, spans, labels]``, with a gradient where it is enabled.

        ``features`` are ``[copies, tokens, heads, d_proj]`` of a sentence, of which copies may
        differ; with ``held_norms`` what layer norms divide by counts as constant.
        """
        scorer, feed_forward = self._scorer, self.layer.feed_forward
        normed = _held_norm if held_norms else lambda norm, rows: norm(rows)
        copies, n = features.shape[:2]
        rows = features.to(scorer.first.weight).reshape(copies * n, -1)
        with torch.autocast(rows.device.type, enabled=False):
            if feed_forward is not None:
                changes = feed_forward.contract(feed_forward.expand(rows).relu())
                rows = normed(feed_forward.norm, rows + changes)
            left = torch.arange(copies * n, device=rows.device).view(copies, n)[:, :-1].flatten()
            projected = scorer.project(fenceposts(rows, left, self._encoder.d_block))
            posts = projected.view(copies, n - 1, -1)
            start, end = torch.tensor(spans, device=rows.device).view(-1, 2).long().unbind(1)
            difference = posts[:, end] - posts[:, start]
            hidden = normed(scorer.norm, difference + scorer.first.bias).relu()
            return functional.pad(scorer.second(hidden), (1, 0))


def _held_norm(norm: nn.LayerNorm, rows: Tensor) -> Tensor:
    """A layer norm whose deviations are numbers through which no gradient goes."""
    centred = rows - rows.mean(dim=-1, keepdim=True)
    squares = centred.detach().square().sum(dim=-1, keepdim=True)
    if isinstance(norm, ReleasedLayerNorm):
        deviation = (squares / (rows.shape[-1] - 1)).sqrt() + norm.eps
    else:
        deviation = (squares / rows.shape[-1] + norm.eps).sqrt()
    return centred / deviation * norm.weight + norm.bias


@contextmanager
def inputs_of(module: nn.Module) -> Iterator[list[Any]]:
    """Within it what a module is given is listed, call by call."""
    calls: list[Any] = []
    handle = module.register_forward_pre_hook(lambda _, given: calls.append(given))
    try:
        yield calls
    finally:
        handle.remove()


class Leads(NamedTuple):
    """Labels of spans of a sentence, each beside the one that it is compared with."""

    spans: Sequence[Span]
    labels: list[int]  # indices among the labels of the chart
    others: list[int]
    scores: Tensor  # float32 [spans, labels]


def leads(
    heads: HeadOutputs,
    spans: Sequence[Span],
    labels: Sequence[Label],
    others: Sequence[Label | None],
) -> Leads:
    """Labels beside others or, without one that the parser knows, beside the runners-up."""
    n, known = len(heads.features) - 2, heads.labels
    with torch.no_grad():
        scores = heads.label_scores(torch.from_numpy(heads.features)[None], spans)[0].cpu()
    found = Leads(spans, [], [], scores)
    for span, label, other, row in zip(spans, labels, others, scores, strict=True):
        own = scored_label(known, label, row) or 0
        beside = None if other is None else scored_label(known, other, row)
        found.labels.append(own)
        found.others.append(runner_up(known, own, span, n, row) if beside is None else beside)
    return found


def scored_label(labels: Sequence[Label], label: Label, scores: Tensor) -> int | None:
    """Index of the label of the chart that stands for a constituent's; None if there is none. Of
    the two forms of division spans the one with the better score is meant."""
    forms = [k for k, form in enumerate(labels) if form in (label, (TO_HEAD, *label))]
    return max(forms, key=lambda form: (float(scores[form]), -form), default=None)


def runner_up(labels: Sequence[Label], label: int, span: Span, n: int, scores: Tensor) -> int:
    """The best other label, which a span of ``n`` words would have if the label had not: no other
    form of it, and none that the chart does not allow there."""
    length = span[1] - span[0]
    for other in scores.argsort(descending=True, stable=True).tolist():
        if constituent(labels[other]) == constituent(labels[label]):
            continue
        if SUB_HEAD in labels[other] and length in (1, n):
            continue
        if length < n or constituent(labels[other]):  # a sentence has a label
            return int(other)
    return 0  # there is but one label


def lead_parts(heads: HeadOutputs, given: Leads) -> NDArray[np.float64]:
    """Return what each head brings into the lead of a label, ``[spans, heads]``, in float32 also of
    a parser with bf16; their sum over the heads is the lead, but for the constant.

    The gradient times the features, when no gradient goes through the deviations of the norms.
    """
    features = torch.from_numpy(heads.features)
    parts = [torch.zeros(0, features.shape[1])]
    most = max(1, _FEATURES // max(1, 4 * features[0].numel()))
    for low in range(0, len(given.spans), most):
        high = low + most
        start, end = torch.tensor(given.spans[low:high]).unbind(1)
        # A copy for each span of the four tokens that it is made of, in which it is span (0, 2).
        tokens = torch.stack((start, start + 1, end, end + 1), dim=1)
        copies = features[tokens].requires_grad_()
        with torch.enable_grad():
            scores = heads.label_scores(copies, [(0, 2)], held_norms=True)[:, 0]
            row = range(len(start))
            lead = scores[row, given.labels[low:high]] - scores[row, given.others[low:high]]
            (gradient,) = torch.autograd.grad(lead.sum(), copies)
        parts.append((gradient * copies.detach()).sum(dim=(1, 3)))
    return torch.cat(parts).double().numpy()
