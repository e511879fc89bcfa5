"""The chart parser of Kitaev & Klein 2018: labelled spans, learnt and read off encoded tokens.

The label scores of a span come from the difference of its two fenceposts
(:mod:`spmrl_bench.nn.scorers.span_scores`). The best tree is the binary one with the highest sum of
label scores, found by a chart (:mod:`spmrl_bench.chart`); the empty label, which scores 0, stands
for no constituent. Training is max-margin: the tree is searched with every wrong label one point
better, and the loss is its lead over the gold tree.

Blocks of cells are scored, and of each cell only the best label and its score are kept.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property, partial
from itertools import islice, pairwise, repeat
from typing import Annotated, Any, Literal, NamedTuple, Self

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor

from spmrl_bench.chart.arrays import cell_index, cell_offsets, cell_spans, starts
from spmrl_bench.chart.k_best import k_best_spans
from spmrl_bench.chart.span_trees import best_labels as chart_labels
from spmrl_bench.chart.span_trees import decode_spans, span_marginals
from spmrl_bench.errors import TreeError
from spmrl_bench.nn.encoders import Encoder
from spmrl_bench.nn.ragged import Ragged
from spmrl_bench.nn.scorers.span_scores import SpanScorer, fenceposts
from spmrl_bench.nn.vocabulary import EMPTY, Vocabulary
from spmrl_bench.parsers.base import Prediction, Words
from spmrl_bench.parsers.batches import Batch, Encoded, Group, first_words
from spmrl_bench.parsers.certainty import CERTAIN, MOST, Gains, SpanDistribution, hold_constituents
from spmrl_bench.parsers.config import NeuralConfig
from spmrl_bench.parsers.neural import NeuralParser
from spmrl_bench.trees.parse import Parse
from spmrl_bench.trees.tree import LabeledSpan, Tree, collapsed_spans, expand_chains

#: What is less likely by no more than this is not learnt.
_LITTLE = 1e-6
#: Labels, each 1 or more, that no single word has, and that no whole sentence has.
MaskedLabels = tuple[Sequence[int], Sequence[int]]
#: How far masked labels are below all others.
MASKED = 1e4
#: The best label of each cell and, before it, its score.
BestLabels = tuple[NDArray[np.float64], NDArray[np.int32]]


class SpanGold(NamedTuple):
    """The gold spans of a sentence: packed chart cells and, of each, its label's index, from 1."""

    cells: NDArray[np.int64]
    labels: NDArray[np.int32]


class SpanLayer(SpanScorer):
    """Scores of labelled spans over the encoder, in a parser's labels."""

    def __init__(self, config: SpanScorer.Config, encoder: Encoder, vocabulary: Vocabulary) -> None:
        super().__init__(config, encoder.d_out, len(vocabulary.labels))
        self.d_block = encoder.d_block
        self.labels = vocabulary.labels
        self.label_ids = vocabulary.label_ids

    def projected_posts(self, tokens: Tensor, layout: Ragged) -> Tensor:
        """Return the first linear map of all fenceposts, ``[fenceposts, d_hidden]``: of a sentence
        of ``n`` words ``n + 1``, of which number ``k`` lies right of token ``k``."""
        left = layout.position < layout.lengths[layout.sentence] - 1  # all but STOP
        return self.project(fenceposts(tokens, left.nonzero().squeeze(1), self.d_block))

    def label_scores(self, encoded: Encoded) -> Iterator[Tensor]:
        """Yield label scores ``[some cells, labels - 1]``, in the packed order of cells."""
        batch = encoded.batch
        posts = self.projected_posts(encoded.tokens, batch.layout)
        return self.blocks(posts, *span_rows(batch.lengths, posts.device))

    def gold(self, rows: Sequence[LabeledSpan], n: int) -> SpanGold:
        """Return labelled spans of ``n`` words as learnt; TreeError if a label is unknown."""
        for *_, label in rows:
            if label not in self.label_ids:
                raise TreeError(f"label {'+'.join(label)} is not in the parser's vocabulary")
        return SpanGold(
            np.array([cell_index(i, j, n) for i, j, _ in rows], dtype=np.int64),
            np.array([self.label_ids[label] for *_, label in rows], dtype=np.int32),
        )

    def loss(self, tokens: Tensor, batch: Batch, gold: Sequence[SpanGold]) -> Tensor | None:
        """Return the sum over sentences of the lead of the augmented best tree over the gold tree:
        ``s(predicted) + errors - s(gold)``, where errors counts the nodes of the predicted binary
        tree (empty ones too) whose label differs from the cell's gold label. Only cells on which
        the trees differ are scored with a gradient; None when there are none."""
        posts = self.projected_posts(tokens, batch.layout)
        start, end = span_rows(batch.lengths, posts.device)
        offsets = cell_offsets(batch.lengths)
        right = np.zeros(offsets[-1], dtype=np.int32)
        for offset, spans in zip(offsets.tolist(), gold, strict=False):
            right[offset + spans.cells] = spans.labels
        best = best_labels(self.blocks(posts.detach(), start, end), right)
        predicted = decode_spans(*best, batch.lengths, right)
        wrong = predicted.labels != right[predicted.cells]
        if not wrong.any():
            return None
        shown = wrong & (predicted.labels != EMPTY)
        missed = right != EMPTY
        missed[predicted.cells[~wrong]] = False
        found = np.stack((predicted.cells[shown], predicted.labels[shown]))
        columns = np.concatenate((found, (np.flatnonzero(missed), right[missed])), axis=1)
        cells, labels = torch.from_numpy(columns).to(posts.device)
        chosen = self.chosen_scores(posts, start[cells], end[cells], labels)
        count = int(shown.sum())
        return chosen[:count].sum() - chosen[count:].sum() + int(wrong.sum())

    def likelihood_loss(
        self, tokens: Tensor, batch: Batch, gold: Sequence[SpanGold], share: float = 1.0
    ) -> Tensor:
        """Return the sum over sentences of ``-log p`` of the gold tree (Zhang, Zhou & Li 2020, Fast
        and Accurate Neural CRF Constituency Parsing).

        If gold has only a ``share`` of the constituents, each as likely as any other, a tree T that
        has those of gold, G, shows them with ``share ** |G| (1 - share) ** (|T| - |G|)``, and the
        loss is ``-log`` of the sum of ``p(T) (1 - share) ** (|T| - |G|)`` over all these trees. A
        label that stands for several constituents has any of them.

        Its derivatives by label scores are what trees have on average, less what gold trees have.
        Only cells where these differ are scored with a gradient.
        """
        posts, lengths = self.projected_posts(tokens, batch.layout), batch.lengths
        start, end = span_rows(lengths, posts.device)
        scores = torch.cat([*self.blocks(posts.detach(), start, end)]).double().cpu()
        offsets = cell_offsets(lengths)[:-1]
        pairs = zip(offsets.tolist(), gold, strict=True)
        cells = torch.from_numpy(np.concatenate([first + own.cells for first, own in pairs]))
        labels = torch.from_numpy(np.concatenate([own.labels for own in gold]).astype(np.int64))
        change, value = _expected(scores, lengths)
        if share == 1:
            change[cells, labels - 1] -= 1
            value -= scores[cells, labels - 1].sum().item()
        else:
            sizes, gains = torch.tensor([*map(len, self.labels)]), np.zeros(len(scores))
            held = scores + math.log1p(-share) * sizes[1:]
            of_cells = held[cells] - math.log1p(-share) * sizes[labels, None]
            held[cells] = of_cells.masked_fill(~self._holding[labels], -torch.inf)
            gains[cells] = MOST
            of_gold, total = _expected(held, lengths, gains)
            change -= of_gold
            value -= total - MOST * len(cells)
        some = (change.abs().amax(dim=1) > _LITTLE).nonzero().squeeze(1).to(posts.device)
        found = self.second(self.hidden(posts, start[some], end[some]))
        through = (found * change.to(found)[some]).sum()
        return through + (value - through).detach()

    @cached_property
    def _holding(self) -> Tensor:
        """Which labels but the empty one, ``[labels, labels - 1]``, hold all names of each."""
        names = [{*label} for label in self.labels]
        return torch.tensor([[own <= other for other in names[1:]] for own in names])

    def rows(
        self, cells: NDArray[np.int64], labels: NDArray[np.int32], lengths: NDArray[np.int32]
    ) -> Iterator[list[LabeledSpan]]:
        """Yield the labelled spans of each tree in pre-order, unary chains as one; ``cells`` and
        ``labels`` are of all nodes of the trees of a batch, 2n - 1 of each sentence."""
        _, start, end = cell_spans(lengths)
        nodes = zip(start[cells].tolist(), end[cells].tolist(), labels.tolist(), strict=True)
        for n in lengths.tolist():
            yield self.named(node for node in islice(nodes, 2 * n - 1) if node[2] != EMPTY)

    def named(self, nodes: Iterable[tuple[int, int, int]]) -> list[LabeledSpan]:
        """Return spans with the labels that have these indices."""
        return [(i, j, self.labels[label]) for i, j, label in nodes]


def _expected(
    scores: Tensor, lengths: NDArray[np.int32], gains: NDArray[np.float64] | float = 0.0
) -> tuple[Tensor, float]:
    """Return how likely each label of each cell is, and the logarithm of the sum over trees of all
    sentences, in which cells gain so much."""
    weights = scores.logsumexp(dim=1)
    found = span_marginals(weights.numpy() + gains, lengths)
    shares = torch.from_numpy(found.probabilities)[:, None]
    return shares * (scores - weights[:, None]).exp(), float(found.log_partition.sum())


def span_rows(lengths: NDArray[np.int32], device: torch.device) -> tuple[Tensor, Tensor]:
    """Return the rows of both fenceposts of every packed chart cell, int64 ``[cells]``."""
    sentence, start, end = cell_spans(lengths)
    first = starts(lengths + 1)[sentence]
    return torch.from_numpy(first + start).to(device), torch.from_numpy(first + end).to(device)


def label_scores(layers: Sequence[SpanLayer], encoded: Sequence[Encoded]) -> Iterator[Tensor]:
    """Yield label scores as :meth:`SpanLayer.label_scores` does, the means of some layers."""
    scores = [layer.label_scores(each) for layer, each in zip(layers, encoded, strict=True)]
    if len(layers) == 1:
        yield from scores[0]
        return
    first, device = layers[0].labels, encoded[0].tokens.device
    # The empty label has no column, so the label with index 1 is in column 0.
    columns = [
        torch.tensor([layer.label_ids[label] - 1 for label in first[1:]], device=device)
        for layer in layers
    ]
    for blocks in zip(*scores, strict=True):
        total = torch.zeros_like(blocks[0], dtype=torch.float32)
        for block, own in zip(blocks, columns, strict=True):
            total += block.index_select(1, own)
        yield total.div_(len(blocks))


def masked_scores(
    blocks: Iterable[Tensor], lengths: NDArray[np.int32], masked: MaskedLabels
) -> Iterator[Tensor]:
    """Yield the blocks with masked labels so far below all others that they are never likely."""
    sentence, start, end = cell_spans(lengths)
    places = end - start == 1, end - start == lengths[sentence]
    done = 0
    for block in blocks:
        for where, labels in zip(places, masked, strict=True):
            rows = torch.from_numpy(where[done : done + len(block)].nonzero()[0]).to(block.device)
            lowest = block[rows].amin(dim=1) - MASKED
            for label in labels:
                block[rows, label - 1] = lowest
        done += len(block)
        yield block


def best_labels(blocks: Iterable[Tensor], gold: NDArray[np.int32] | None = None) -> BestLabels:
    """Return the best label but the empty one of each cell of some blocks, and its score, NaN where
    one is not finite; with ``gold`` as loss augmentation says."""
    found, done = [], 0
    for block in blocks:
        own = None if gold is None else gold[done : done + len(block)]
        done += len(block)
        if block.device.type == "cpu":
            table = block.float().numpy()
            values, labels = chart_labels(table, own)
            if not np.isfinite(table.min()):  # of what is NaN or +inf the maximum tells
                values[~np.isfinite(table).all(axis=1)] = np.nan
            found.append((values, labels))
        else:
            found.append(label_maxima(block, own))
    values, labels = map(np.concatenate, zip(*found, strict=True))
    return values, labels


def label_maxima(scores: Tensor, gold: NDArray[np.int32] | None) -> BestLabels:
    """Return the best labels of a block on a GPU."""
    table = scores.double()  # as in the chart: the same sums are equal then
    if gold is not None:
        label = torch.arange(1, scores.shape[1] + 1, device=scores.device)
        right = label == torch.from_numpy(gold).to(scores.device)[:, None]
        table = torch.where(right, table, table + 1)
    values, column = table.max(dim=1)
    values = values.where(scores.isfinite().all(dim=1), torch.nan)
    return values.cpu().numpy(), (column + 1).int().cpu().numpy()


class ChartParser(NeuralParser):
    """Finds the constituents with the highest sum of label scores."""

    kind = "chart"
    exact = True
    citations = (
        "Kitaev & Klein (2018). Constituency Parsing with a Self-Attentive Encoder. ACL. "
        "https://aclanthology.org/P18-1249/",
    )
    config: Config

    class Config(NeuralConfig):
        """A parser of constituents."""

        scorer: SpanScorer.Config
        """Scores of labelled spans."""
        loss: Literal["margin", "likelihood"] = "margin"
        """What is learnt: a lead of the gold tree by the number of errors, or to make it likely."""
        annotated: Annotated[float, Field(gt=0, le=1)] = 1.0
        """The share of their constituents that training trees have. With less than 1, the loss is
        the likelihood, and of the others nothing is taken to be said."""
        threshold: Annotated[float, Field(gt=0, lt=1)] | None = None
        """The parse is not the best tree but that with the most brackets which are expected to be
        right, of which each has to be more likely than this. Needs the temperature of a trained
        parser, which this may be set for."""

        @property
        def free(self) -> frozenset[str]:
            return frozenset({"threshold"})

    def add_layers(self) -> None:
        self.scorer = SpanLayer(self.config.scorer, self.encoder, self.vocabulary)
        self.add_tagger()

    @classmethod
    def build(cls, config: Any, examples: Sequence[Parse]) -> Self:
        vocabulary = Vocabulary.of(examples)
        if len(vocabulary.labels) == 1:
            raise TreeError(
                f"the {len(examples)} training trees have no constituent: nothing to learn"
            )
        return cls.fresh(config, vocabulary)

    def gold(self, example: Parse) -> SpanGold:
        rows = [] if example.tree is None else list(collapsed_spans(example.tree))
        if not rows or rows[0][:2] != (0, len(example)):
            raise TreeError(
                "no constituent covers the whole sentence, so the parser could not learn it "
                f"(it begins: {first_words(example.words)}). Add a root transform to the manifest"
            )
        return self.scorer.gold(rows, len(example))

    def loss(self, tokens: Tensor, batch: Batch, gold: Sequence[SpanGold]) -> Tensor | None:
        if self.config.loss == "margin" and self.config.annotated == 1:
            return self.scorer.loss(tokens, batch, gold)
        return self.scorer.likelihood_loss(tokens, batch, gold, self.config.annotated)

    def predict(self, group: Group) -> Iterator[Prediction]:
        lengths, names = group.lengths, self.vocabulary.labels
        threshold = self.config.threshold if group.best == 1 else None
        summed_up = group.scored or threshold is not None
        scores = label_scores([each.scorer for each in group.members], group.encoded)
        kept = [*scores] if summed_up or group.best > 1 else scores
        blocks, gains = hold_constituents(kept, names, lengths, group.given)
        values, best = best_labels(blocks)
        trees = decode_spans(values + gains, best, lengths)
        found: Iterable[Any] = repeat(None)
        ranked = self._ranked(blocks, gains, group) if group.best > 1 else repeat(())
        if summed_up:
            summed = partial(span_marginals, lengths=lengths, near=trees.cells)
            likely = SpanDistribution(blocks, 1 / group.temperature, lengths, summed, gains)
            trees = trees if threshold is None else likely.least_risk(threshold)
            if group.scored:
                found = likely.probabilities(trees.cells, trees.labels, names)
        rows = self.scorer.rows(trees.cells, trees.labels, lengths)
        for spans, known, several in zip(rows, found, ranked, strict=False):
            yield Prediction([*expand_chains(spans)], probabilities=known, best=several)

    def _ranked(
        self, blocks: Iterable[Tensor], gains: Gains, group: Group
    ) -> Iterator[Sequence[tuple[float, Prediction]]]:
        """Yield the best parses of each sentence that hold what is given, and their scores."""
        scores = torch.cat([*blocks]).double().cpu().numpy()
        gained = np.broadcast_to(gains, len(scores))
        offsets = cell_offsets(group.lengths)
        for n, own in zip(group.lengths.tolist(), pairwise(offsets), strict=True):
            of_cells = slice(*own)
            certain = float(gained[of_cells].sum())
            found = k_best_spans(scores[of_cells] + gained[of_cells, None], n, group.best)
            yield [
                (score - certain, Prediction([*expand_chains(self.scorer.named(tree))]))
                for score, tree in found
                if score > certain - CERTAIN / 2
            ]

    def flat(self, words: Words, tags: Words) -> Parse:
        """Return one bracket over all words, named as the most frequent root in training."""
        return Parse.of(Tree.build(words, tags, [(0, len(words), self.vocabulary.root)]))
