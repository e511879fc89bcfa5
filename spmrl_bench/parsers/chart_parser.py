"""The self-attentive chart parser of Kitaev & Klein 2018.

A factored self-attentive encoder gives a vector per token; spans are scored from fencepost
differences; the tree with the highest sum of label scores is found by a chart algorithm.
Training is max-margin: the predicted tree is searched with every wrong label one point
better, and the loss is its lead over the gold tree.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from spmrl_bench.chart.packing import cell_index, cell_offsets, cell_spans, node_offsets
from spmrl_bench.errors import TreeError
from spmrl_bench.nn.span_scorer import SpanScorer, fenceposts
from spmrl_bench.parsers.base import Words
from spmrl_bench.parsers.batches import Batch
from spmrl_bench.parsers.decoding import decode_blocks
from spmrl_bench.parsers.kind_configs import ChartParserConfig
from spmrl_bench.parsers.lengths import SPANS, Search, beginning
from spmrl_bench.parsers.neural import Encoded, NeuralParser, predicted_tags
from spmrl_bench.parsers.parsing import Found
from spmrl_bench.parsers.vocabulary import EMPTY, Vocabulary
from spmrl_bench.trees.parse import Parse
from spmrl_bench.trees.tree import LabeledSpan, Tree, collapsed_spans, expand_chains


class ChartGold(NamedTuple):
    """The gold labelled spans of a sentence.

    Attributes:
        cells: int64 ``[spans]``, packed chart cell of each.
        labels: int32 ``[spans]``, label index (never 0) of each.
    """

    cells: NDArray[np.int64]
    labels: NDArray[np.int32]


class ChartParser(NeuralParser):
    """Encoder, span scorer and chart, with the vocabulary they were built for."""

    kind = "chart"

    def __init__(
        self, config: ChartParserConfig, vocabulary: Vocabulary, assets: Path | None = None
    ) -> None:
        """A parser with random weights; the arguments are those of :class:`NeuralParser`."""
        super().__init__(config, vocabulary, assets)
        self.scorer = SpanScorer(
            self.encoder.d_out, config.d_label_hidden, len(vocabulary.labels), config.layer_norm
        )
        self._add_tagger()

    @classmethod
    def build(cls, config: ChartParserConfig, examples: Sequence[Parse]) -> Self:
        vocabulary = Vocabulary.of(examples)
        if len(vocabulary.labels) == 1:
            raise TreeError(
                f"the {len(examples)} training trees have no constituent: nothing to learn"
            )
        return cls.fresh(config, vocabulary)

    @property
    def search(self) -> Search:
        return SPANS

    # Scores ---------------------------------------------------------------------------

    def projected_posts(self, encoded: Tensor, batch: Batch) -> Tensor:
        """The span scorer's first linear map of all fenceposts, ``[fenceposts, hidden]``.

        A sentence of ``n`` words has ``n + 1`` fenceposts, sentence after sentence.
        """
        lengths = batch.layout.lengths
        # Fencepost k of a sentence lies right of its token k; STOP has none to its right.
        last = lengths.cumsum(0) - 1
        left = torch.ones(len(encoded), dtype=torch.bool, device=encoded.device)
        left[last] = False
        rows = left.nonzero().squeeze(1)
        return self.scorer.project(fenceposts(encoded, rows, self.encoder.d_block))

    def span_rows(self, lengths: NDArray[np.int32]) -> tuple[Tensor, Tensor]:
        """Rows of the start and end fencepost of every packed chart cell, int64 ``[cells]``."""
        sentence, start, end = cell_spans(lengths)
        first = np.concatenate(([0], np.cumsum(lengths.astype(np.int64) + 1)[:-1]))[sentence]
        return (
            torch.from_numpy(first + start).to(self.device),
            torch.from_numpy(first + end).to(self.device),
        )

    def label_scores(self, encoded: Encoded) -> Iterator[Tensor]:
        """Label scores ``[some cells, labels - 1]``, block by block in the packed order of cells.

        To be used up before the next group of sentences is encoded.
        """
        batch = encoded.batch
        projected = self.projected_posts(encoded.tokens, batch)
        return self.scorer.blocks(projected, *self.span_rows(batch.lengths))

    # Training -------------------------------------------------------------------------

    def gold(self, example: Parse) -> ChartGold:
        """Its labelled spans.

        Raises:
            TreeError: there is no tree, no constituent covers the whole sentence, or a label is
                not in the vocabulary.
        """
        tree, n = example.tree, len(example)
        rows = [] if tree is None else list(collapsed_spans(tree))
        if not rows or rows[0][:2] != (0, n):
            raise TreeError(
                "no constituent covers the whole sentence, so the parser could not learn it "
                f"(it begins: {beginning(example.words)}). Add a root transform to the manifest"
            )
        return self.spans(rows, n)

    def spans(self, rows: Sequence[LabeledSpan], n: int) -> ChartGold:
        """The cells and labels of labelled spans of a sentence of ``n`` words.

        Raises:
            TreeError: a label is not in the vocabulary.
        """
        ids = self.vocabulary.label_ids
        unknown = [label for _, _, label in rows if label not in ids]
        if unknown:
            raise TreeError(f"label {'+'.join(unknown[0])} is not in the parser's vocabulary")
        return ChartGold(
            np.array([cell_index(i, j, n) for i, j, _ in rows], dtype=np.int64),
            np.array([ids[label] for *_, label in rows], np.int32),
        )

    def loss(self, tokens: Tensor, batch: Batch, gold: Sequence[ChartGold]) -> Tensor | None:
        """Sum over sentences of the lead of the loss-augmented best tree over the gold tree.

        The lead is ``s(predicted) + errors - s(gold)``, where errors counts the nodes of the
        predicted binarised tree (empty ones too) whose label differs from the cell's gold
        label. It is never negative, because the gold tree competes with no errors. Cells on
        which both trees agree cancel, so only the others are scored with a gradient; None
        when there are no others.
        """
        projected = self.projected_posts(tokens, batch)
        start, end = self.span_rows(batch.lengths)
        right = gold_labels(batch.lengths, gold)
        blocks = self.scorer.blocks(projected.detach(), start, end)
        predicted = decode_blocks(blocks, batch.lengths, right)
        wrong = predicted.labels != right[predicted.cells]
        if not wrong.any():
            return None
        shown = wrong & (predicted.labels != EMPTY)
        found = np.zeros(len(right), dtype=bool)
        found[predicted.cells[~wrong]] = True
        missed = np.flatnonzero((right != EMPTY) & ~found)
        cells = torch.from_numpy(np.concatenate((predicted.cells[shown], missed)))
        labels = torch.from_numpy(np.concatenate((predicted.labels[shown], right[missed])))
        cells, labels = cells.to(self.device), labels.to(self.device).long()
        chosen = self.scorer.chosen_scores(projected, start[cells], end[cells], labels)
        predicted_count = int(shown.sum())
        return chosen[:predicted_count].sum() - chosen[predicted_count:].sum() + int(wrong.sum())

    # Parsing --------------------------------------------------------------------------

    def found_by(self, group: Sequence[Encoded], members: Sequence[Self]) -> Iterator[Found]:
        lengths = group[0].batch.lengths
        decoded = decode_blocks(self.mean_scores(group, members), lengths)
        labelled = self.label_rows(decoded.cells, decoded.labels, lengths)
        for rows, tags in zip(labelled, predicted_tags(group), strict=True):
            yield Found(list(expand_chains(rows)), tags=tags)

    def mean_scores(self, group: Sequence[Encoded], members: Sequence[Self]) -> Iterator[Tensor]:
        """The mean of several parsers' label scores, block by block, as of :meth:`label_scores`.

        Arguments are those of :meth:`found_by`. No chart of label scores is ever held as a whole.
        """
        if len(members) == 1:
            yield from self.label_scores(group[0])
            return
        first = self.vocabulary.labels
        # The empty label has no column, so the label with index 1 is in column 0.
        columns = [
            None
            if member.vocabulary.labels == first
            else torch.tensor(
                [member.vocabulary.label_ids[label] - 1 for label in first[1:]], device=self.device
            )
            for member in members
        ]
        scores = map(ChartParser.label_scores, members, group)
        for blocks in zip(*scores, strict=True):
            total = torch.zeros_like(blocks[0], dtype=torch.float32)
            for block, own in zip(blocks, columns, strict=True):
                total += block if own is None else block.index_select(1, own)
            yield total.div_(len(blocks))

    def label_rows(
        self, cells: NDArray[np.int64], labels: NDArray[np.int32], lengths: NDArray[np.int32]
    ) -> Iterator[list[LabeledSpan]]:
        """Labelled nodes of each decoded tree in pre-order, unary chains as one.

        Args:
            cells: of all nodes of a batch, as in :class:`Decoded`.
            labels: of each.
            lengths: words of each sentence.
        """
        _, start, end = cell_spans(lengths)
        for low, high in pairwise(node_offsets(lengths).tolist()):
            found = labels[low:high]
            kept = found != EMPTY
            places = cells[low:high][kept]
            yield [
                (i, j, self.vocabulary.labels[label])
                for i, j, label in zip(
                    start[places].tolist(), end[places].tolist(), found[kept].tolist(), strict=True
                )
            ]

    def flat(self, words: Words, tags: Words) -> Parse:
        """One bracket over all words, named as the most frequent root of the training trees."""
        return Parse.of(Tree.build(words, tags, [(0, len(words), self.vocabulary.root)]))


def gold_labels(lengths: NDArray[np.int32], gold: Sequence[ChartGold]) -> NDArray[np.int32]:
    """Gold label of every packed cell."""
    offsets = cell_offsets(lengths)
    labels = np.zeros(offsets[-1], dtype=np.int32)
    for offset, spans in zip(offsets.tolist(), gold, strict=False):
        labels[offset + spans.cells] = spans.labels
    return labels
