"""The chart parser of Kitaev & Klein 2018: labelled spans, learnt and read off encoded tokens.

The label scores of a span come from the difference of its two fenceposts
(:mod:`spmrl_bench.nn.scorers.span_scores`). The best tree is the binary one with the highest sum of
label scores, found by a chart (:mod:`spmrl_bench.chart`); the empty label, which scores 0, stands
for no constituent. Training is max-margin: the tree is searched with every wrong label one point
better, and the loss is its lead over the gold tree.

Blocks of cells are scored, and of each cell only the best label and its score are kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, repeat
from typing import Annotated, Any, NamedTuple, Self

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor

from spmrl_bench.chart.arrays import cell_index, cell_offsets, cell_spans, starts
from spmrl_bench.chart.max_marginals import max_marginals
from spmrl_bench.chart.span_trees import best_labels as chart_labels
from spmrl_bench.chart.span_trees import decode_spans
from spmrl_bench.errors import TreeError
from spmrl_bench.nn.encoders import Encoder
from spmrl_bench.nn.ragged import Ragged
from spmrl_bench.nn.scorers.span_scores import SpanScorer, fenceposts
from spmrl_bench.nn.vocabulary import EMPTY, Vocabulary
from spmrl_bench.parsers.base import MAX_TOKENS, Margin, Prediction, Words
from spmrl_bench.parsers.batches import Batch, first_words
from spmrl_bench.parsers.certainty import (
    SpanDistribution,
    temperature_of,
    with_tag_probabilities,
)
from spmrl_bench.parsers.config import NeuralConfig
from spmrl_bench.parsers.neural import Encoded, NeuralParser, predicted_tags
from spmrl_bench.parsers.session import NeuralSession
from spmrl_bench.trees.head_driven import SUB_HEAD, constituent
from spmrl_bench.trees.parse import Parse, Probabilities
from spmrl_bench.trees.tree import Label, LabeledSpan, Tree, collapsed_spans, expand_chains

#: Labels, each 1 or more, that no single word has, and that no whole sentence has.
MaskedLabels = tuple[Sequence[int], Sequence[int]]
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
        best = _best_labels(self.blocks(posts.detach(), start, end), right)
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

    def rows(
        self, cells: NDArray[np.int64], labels: NDArray[np.int32], lengths: NDArray[np.int32]
    ) -> Iterator[list[LabeledSpan]]:
        """Yield the labelled spans of each tree in pre-order, unary chains as one; ``cells`` and
        ``labels`` are of all nodes of the trees of a batch, 2n - 1 of each sentence."""
        _, start, end = cell_spans(lengths)
        nodes = zip(start[cells].tolist(), end[cells].tolist(), labels.tolist(), strict=True)
        for n in lengths.tolist():
            tree = islice(nodes, 2 * n - 1)
            yield [(i, j, self.labels[label]) for i, j, label in tree if label != EMPTY]

    @torch.no_grad()
    def margins(
        self, encoded: Encoded, gold: Sequence[Parse], predicted: Sequence[Parse]
    ) -> list[list[Margin]]:
        """Return the spans on which trees differ, by the left end, wider ones first.

        The margin of a span is the score of the best tree less that of the best tree with the label
        of gold there, or without one where gold has no constituent. The rest of the tree may change
        too: a phrase that is attached elsewhere makes two or three spans differ, and each has the
        whole margin. The search for the best labels is asked, even where another predicts trees.
        """
        lengths = encoded.batch.lengths
        offsets = cell_offsets(lengths)
        scores = torch.cat([*self.label_scores(encoded)]).float().cpu()
        labelled, _ = _best_labels([scores])
        values = np.maximum(labelled, 0.0)
        whole = offsets[:-1] + lengths - 1  # a sentence has a label
        values[whole] = labelled[whole]
        chart = max_marginals(values, lengths)
        columns: dict[Label, list[int]] = {}  # of each label, in all of its forms
        for column, label in enumerate(self.labels[1:]):
            own = () if SUB_HEAD in label else constituent(label)
            columns.setdefault(own, []).append(column)
        results: list[list[Margin]] = [[] for _ in gold]
        for k, pair in enumerate(zip(gold, predicted, strict=True)):
            for i, j, right, own in _differing(*pair):
                cell = int(offsets[k] + cell_index(i, j, int(lengths[k])))
                row, best = scores[cell].numpy(), float(chart.best[k])
                unlabelled = float(chart.with_span[cell] - values[cell])
                known = not right or right in columns
                if not right:
                    of_none = max([0.0, *row[columns.get((), [])].tolist()])
                    alternative = max(chart.without(k, i, j), unlabelled + of_none)
                    # A sentence that is to have no label has no tree: it costs all that it brings.
                    alternative = alternative if np.isfinite(alternative) else best
                elif known:
                    alternative = unlabelled + float(row[columns[right]].max())
                else:  # no more is known than that it is not the parser's
                    others = np.delete(row, columns.get(own, []))
                    alternative = unlabelled + float((others if len(others) else row).max())
                texts = "+".join(right), "+".join(own)
                margin = max(0.0, best - alternative)
                results[k].append(Margin("constituents", i, j, *texts, margin, known))
        return results


def span_rows(lengths: NDArray[np.int32], device: torch.device) -> tuple[Tensor, Tensor]:
    """Return the rows of both fenceposts of every packed chart cell, int64 ``[cells]``."""
    sentence, start, end = cell_spans(lengths)
    first = starts(lengths + 1)[sentence]
    return torch.from_numpy(first + start).to(device), torch.from_numpy(first + end).to(device)


def best_labels(
    layers: Sequence[SpanLayer], encoded: Sequence[Encoded], masked: MaskedLabels | None = None
) -> BestLabels:
    """Return the best label but the empty one of each packed cell, by the mean of some layers with
    the same labels; the order of the first settles ties. ``encoded`` are the same sentences for
    each. Of a cell with a score that is not finite the value is NaN."""
    blocks = label_scores(layers, encoded)
    if masked is not None:
        blocks = _masked(blocks, encoded[0].batch.lengths, masked)
    return _best_labels(blocks)


def label_scores(layers: Sequence[SpanLayer], encoded: Sequence[Encoded]) -> Iterator[Tensor]:
    """Yield label scores as :meth:`SpanLayer.label_scores` does, the means of some layers."""
    alone = len(layers) == 1
    return layers[0].label_scores(encoded[0]) if alone else _mean_scores(layers, encoded)


def _mean_scores(layers: Sequence[SpanLayer], encoded: Sequence[Encoded]) -> Iterator[Tensor]:
    first, device = layers[0].labels, encoded[0].tokens.device
    # The empty label has no column, so the label with index 1 is in column 0.
    columns = [
        torch.tensor([layer.label_ids[label] - 1 for label in first[1:]], device=device)
        for layer in layers
    ]
    scores = [layer.label_scores(each) for layer, each in zip(layers, encoded, strict=True)]
    for blocks in zip(*scores, strict=True):
        total = torch.zeros_like(blocks[0], dtype=torch.float32)
        for block, own in zip(blocks, columns, strict=True):
            total += block.index_select(1, own)
        yield total.div_(len(blocks))


def _masked(
    blocks: Iterable[Tensor], lengths: NDArray[np.int32], masked: MaskedLabels
) -> Iterator[Tensor]:
    """Yield the blocks with masked labels below all others."""
    sentence, start, end = cell_spans(lengths)
    places = end - start == 1, end - start == lengths[sentence]
    done = 0
    for block in blocks:
        for where, labels in zip(places, masked, strict=True):
            rows = torch.from_numpy(where[done : done + len(block)].nonzero()[0]).to(block.device)
            lowest = block[rows].amin(dim=1) - 1
            for label in labels:
                block[rows, label - 1] = lowest
        done += len(block)
        yield block


def _differing(gold: Parse, predicted: Parse) -> Iterator[tuple[int, int, Label, Label]]:
    """Yield each span that differs with both labels, which are empty where there is none."""
    right, own = (
        {(i, j): label for i, j, label in collapsed_spans(parse.tree)} if parse.tree else {}
        for parse in (gold, predicted)
    )
    for span in sorted(right.keys() | own.keys(), key=lambda span: (span[0], -span[1])):
        if right.get(span) != own.get(span):
            yield *span, right.get(span, ()), own.get(span, ())


def _best_labels(blocks: Iterable[Tensor], gold: NDArray[np.int32] | None = None) -> BestLabels:
    """Return the best labels of blocks of cells; with ``gold`` as loss augmentation says."""
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
    citations = (
        "Kitaev & Klein (2018). Constituency Parsing with a Self-Attentive Encoder. ACL. "
        "https://aclanthology.org/P18-1249/",
    )
    config: Config

    class Config(NeuralConfig):
        """A parser of constituents."""

        scorer: SpanScorer.Config
        """Scores of labelled spans."""
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
        return self.scorer.loss(tokens, batch, gold)

    def predict(self, encoded: Sequence[Encoded], members: Sequence[Self]) -> Iterator[Prediction]:
        return self._predictions(encoded, members, scored=False)

    def predict_scored(
        self, encoded: Sequence[Encoded], members: Sequence[Self]
    ) -> Iterator[Prediction]:
        """Yield the same as :meth:`predict` with probabilities, at the temperature."""
        return self._predictions(encoded, members, scored=True)

    def _predictions(
        self, encoded: Sequence[Encoded], members: Sequence[Self], *, scored: bool
    ) -> Iterator[Prediction]:
        lengths, threshold = encoded[0].batch.lengths, self.config.threshold
        blocks: Iterable[Tensor] = label_scores([each.scorer for each in members], encoded)
        known: Iterable[Probabilities | None] = repeat(None, len(lengths))
        if scored or threshold is not None:
            blocks = [*blocks]
        trees = decode_spans(*_best_labels(blocks), lengths)
        if isinstance(blocks, list):
            scores = torch.cat(blocks).double() / temperature_of(members)
            likely = SpanDistribution(scores, lengths, trees.cells)
            trees = trees if threshold is None else likely.least_risk(threshold)
            if scored:
                found = likely.probabilities(trees, self.vocabulary.labels)
                known = with_tag_probabilities(found, encoded, members)
        rows = self.scorer.rows(trees.cells, trees.labels, lengths)
        for spans, tags, own in zip(rows, predicted_tags(encoded), known, strict=True):
            yield Prediction(list(expand_chains(spans)), tags=tags, probabilities=own)

    def scored_session(self, max_tokens: int = MAX_TOKENS) -> NeuralSession:
        return NeuralSession([self], max_tokens, self.predict_scored)

    def batch_margins(
        self, encoded: Encoded, gold: Sequence[Parse], predicted: Sequence[Parse]
    ) -> list[list[Margin]]:
        return self.scorer.margins(encoded, gold, predicted)

    def flat(self, words: Words, tags: Words) -> Parse:
        """Return one bracket over all words, named as the most frequent root in training."""
        return Parse.of(Tree.build(words, tags, [(0, len(words), self.vocabulary.root)]))
