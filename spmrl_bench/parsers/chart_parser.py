"""The self-attentive chart parser of Kitaev & Klein 2018.

A factored self-attentive encoder gives a vector per token; spans are scored from fencepost
differences; the tree with the highest sum of label scores is found by a chart algorithm.
Training is max-margin: the predicted tree is searched with every wrong label one point
better, and the loss is its lead over the gold tree.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Self, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from spmrl_bench.chart import Decoded
from spmrl_bench.chart.packing import cell_offsets, cell_spans, node_offsets
from spmrl_bench.errors import TreeError
from spmrl_bench.nn.inputs import CodedInput
from spmrl_bench.nn.span_scorer import SpanScorer, fenceposts
from spmrl_bench.nn.tagger import Tagger
from spmrl_bench.parsers.batches import (
    Batch,
    Indexer,
    Pool,
    Sentence,
    length_problem,
)
from spmrl_bench.parsers.building import build_encoder, d_content
from spmrl_bench.parsers.config import ChartParserConfig
from spmrl_bench.parsers.decoding import decode_blocks
from spmrl_bench.parsers.form_cache import FormCache, form_vectors
from spmrl_bench.parsers.lexicon import build_lexical_model
from spmrl_bench.parsers.parsing import Parsed, Scored, Tags, parse_stream
from spmrl_bench.parsers.saved import load_saved, save_parser
from spmrl_bench.parsers.vocabulary import EMPTY, FIRST_TAG, Vocabulary
from spmrl_bench.trees import Tree


class ChartParser(nn.Module):
    """Encoder, span scorer and chart, with the vocabulary they were built for."""

    kind = "chart"

    def __init__(
        self, config: ChartParserConfig, vocabulary: Vocabulary, assets: Path | None = None
    ) -> None:
        """A parser with random weights.

        Args:
            config: its settings.
            vocabulary: of the training trees.
            assets: folder of a saved parser, where an input may find what it needs again.

        Raises:
            PretrainedError: a file that an input needs is missing, broken or does not fit.
        """
        super().__init__()
        self.config = config
        self.vocabulary = vocabulary
        # In this order, which the random numbers of their weights follow.
        self.lexical = build_lexical_model(config, vocabulary, assets)
        self.encoder = build_encoder(config)
        self.scorer = SpanScorer(
            config.d_model, config.d_label_hidden, len(vocabulary.labels), config.layer_norm
        )
        self.tagger: Tagger | None = None
        if config.predict_tags:
            self.tagger = Tagger(config.d_model, config.d_tag_hidden, len(vocabulary.tags))

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return self.scorer.first.weight.device

    @property
    def reads_tags(self) -> bool:
        """Whether a sentence can be parsed only with its tags."""
        return "tag" in self.config.lexical

    @property
    def predicts_tags(self) -> bool:
        """Whether the trees of sentences without tags have tags that the parser found."""
        return self.tagger is not None

    @property
    def _coded(self) -> Mapping[str, CodedInput]:
        return cast("Mapping[str, CodedInput]", self.lexical.coded)

    def pretrained_parameters(self) -> list[nn.Parameter]:
        """Weights that were trained elsewhere and are trained on here."""
        return [weight for module in self._coded.values() for weight in module.pretrained()]

    def indexer(self) -> Indexer:
        """A fresh indexer for this parser's vocabulary, position table and inputs."""
        return Indexer(self.vocabulary, self.config.max_positions, self._coded)

    # Scores ---------------------------------------------------------------------------

    def form_vectors(self, indexer: Indexer, forms: NDArray[np.int64]) -> Tensor:
        """CharLSTM output of distinct forms, ``[forms, width]`` (no rows if unused)."""
        char_lstm = self.lexical.char_lstm
        if char_lstm is None:
            return torch.empty(0, d_content(self.config), device=self.device)
        return form_vectors(char_lstm, indexer, forms, self.device)

    def form_cache(self) -> FormCache | None:
        """An empty cache of form vectors; None if the parser does not use them."""
        char_lstm = self.lexical.char_lstm
        return FormCache(char_lstm) if char_lstm is not None else None

    def encode(self, batch: Batch, forms: Tensor) -> Tensor:
        """Encoded tokens ``[tokens, d_model]``, START and STOP among them."""
        encoded: Tensor = self.encoder(self.lexical(batch.tokens, forms), batch.layout)
        return encoded

    def projected_posts(self, encoded: Tensor, batch: Batch) -> Tensor:
        """The span scorer's first linear map of all fenceposts, ``[fenceposts, hidden]``.

        A sentence of ``n`` words has ``n + 1`` fenceposts, sentence after sentence.
        """
        lengths = batch.layout.lengths
        # Fencepost k of a sentence lies right of its token k; STOP has none to its right.
        last = lengths.cumsum(0) - 1
        left = torch.ones(len(encoded), dtype=torch.bool, device=encoded.device)
        left[last] = False
        return self.scorer.project(fenceposts(encoded, left.nonzero().squeeze(1)))

    def span_rows(self, lengths: NDArray[np.int32]) -> tuple[Tensor, Tensor]:
        """Rows of the start and end fencepost of every packed chart cell, int64 ``[cells]``."""
        sentence, start, end = cell_spans(lengths)
        first = np.concatenate(([0], np.cumsum(lengths.astype(np.int64) + 1)[:-1]))[sentence]
        return (
            torch.from_numpy(first + start).to(self.device),
            torch.from_numpy(first + end).to(self.device),
        )

    # Training -------------------------------------------------------------------------

    def accumulate_gradients(
        self,
        sentences: Sequence[Sentence],
        indexer: Indexer,
        random: np.random.Generator,
        max_tokens: int,
    ) -> float:
        """Add the gradient of the mean loss of a batch to the parameters' gradients.

        The batch is worked through in length-sorted sub-batches, but the CharLSTM runs once
        over its distinct forms: sub-batches send their gradients to the form vectors, and
        one backward pass takes the sum through the LSTM.

        Args:
            sentences: indexed gold sentences, one optimiser step's worth.
            indexer: the indexer that made them.
            random: source of the UNK replacements.
            max_tokens: bound on a sub-batch, see :func:`sub_batches`.

        Returns:
            The mean loss per sentence.
        """
        pool = Pool(sentences, indexer)
        pool.replace_by_unk(indexer.unk_probability, random)
        vectors = self.form_vectors(indexer, pool.forms)
        leaf = vectors.detach().requires_grad_(vectors.requires_grad)
        total = 0.0
        with self.encoder.steady_weights():
            for group, batch in pool.batches(max_tokens, self.device):
                loss = self.loss(batch, leaf, [sentences[k] for k in group])
                if loss is not None:
                    (loss / len(sentences)).backward()
                    total += loss.item()
        if leaf.grad is not None:
            vectors.backward(leaf.grad)
        return total / len(sentences)

    def loss(self, batch: Batch, forms: Tensor, sentences: Sequence[Sentence]) -> Tensor | None:
        """Sum over sentences of the margin loss and, if the parser tags, the tagger's loss.

        None where there is nothing to learn from the batch.
        """
        encoded = self.encode(batch, forms)
        loss = self.margin_loss(encoded, batch, sentences)
        if self.tagger is None:
            return loss
        tagging = self.config.tag_loss_weight * self.tag_loss(encoded, batch)
        return tagging if loss is None else loss + tagging

    def tag_loss(self, encoded: Tensor, batch: Batch) -> Tensor:
        """Sum over words of the cross-entropy of the gold tag."""
        assert self.tagger is not None
        gold = batch.tokens.tags
        words = (gold >= FIRST_TAG).nonzero().squeeze(1)
        scores = self.tagger(encoded.index_select(0, words))
        return nn.functional.cross_entropy(scores, gold[words] - FIRST_TAG, reduction="sum")

    def margin_loss(
        self, encoded: Tensor, batch: Batch, sentences: Sequence[Sentence]
    ) -> Tensor | None:
        """Sum over sentences of the lead of the loss-augmented best tree over the gold tree.

        The lead is ``s(predicted) + errors - s(gold)``, where errors counts the nodes of the
        predicted binarised tree (empty ones too) whose label differs from the cell's gold
        label. It is never negative, because the gold tree competes with no errors. Cells on
        which both trees agree cancel, so only the others are scored with a gradient; None
        when there are no others.
        """
        projected = self.projected_posts(encoded, batch)
        start, end = self.span_rows(batch.lengths)
        gold = self._gold_labels(batch.lengths, sentences)
        blocks = self.scorer.blocks(projected.detach(), start, end)
        predicted = decode_blocks(blocks, batch.lengths, gold)
        wrong = predicted.labels != gold[predicted.cells]
        if not wrong.any():
            return None
        shown = wrong & (predicted.labels != EMPTY)
        found = np.zeros(len(gold), dtype=bool)
        found[predicted.cells[~wrong]] = True
        missed = np.flatnonzero((gold != EMPTY) & ~found)
        cells = torch.from_numpy(np.concatenate((predicted.cells[shown], missed)))
        labels = torch.from_numpy(np.concatenate((predicted.labels[shown], gold[missed])))
        cells, labels = cells.to(self.device), labels.to(self.device).long()
        chosen = self.scorer.chosen_scores(projected, start[cells], end[cells], labels)
        predicted_count = int(shown.sum())
        return chosen[:predicted_count].sum() - chosen[predicted_count:].sum() + int(wrong.sum())

    @staticmethod
    def _gold_labels(
        lengths: NDArray[np.int32], sentences: Sequence[Sentence]
    ) -> NDArray[np.int32]:
        """Gold label of every packed cell."""
        offsets = cell_offsets(lengths)
        gold = np.zeros(offsets[-1], dtype=np.int32)
        for offset, sentence in zip(offsets.tolist(), sentences, strict=False):
            gold[offset + sentence.cells] = sentence.labels
        return gold

    # Parsing --------------------------------------------------------------------------

    def parse(
        self,
        sentences: Iterable[Sequence[str]],
        tags: Iterable[Sequence[str]] | None = None,
        *,
        max_tokens: int = 2000,
        forms: FormCache | None = None,
    ) -> Iterator[Tree]:
        """Best trees of tokenised sentences, lazily and in input order.

        Args:
            sentences: words of each sentence; one without words gives a tree without words.
            tags: tags to carry into the trees, which the parser reads if it was trained with
                them; without them every word has the tag that the parser predicts, or ``XX``.
            max_tokens: bound on a batch, see :func:`sub_batches`.
            forms: cache of this parser's form vectors, to be used by several calls; without
                it each call has its own.

        Raises:
            SentenceTooLongError: a sentence has more words than the position table allows;
                the trees of all sentences before it have been given by then.
            TreeError: ``tags`` ends before ``sentences``, or a row does not fit its words, or
                the parser reads tags and none are given.
        """
        forms = self.form_cache() if forms is None else forms

        def parse_window(window: Sequence[Sequence[str]], given: Tags) -> Iterator[Parsed]:
            return self._parse_window(window, given, max_tokens, forms)

        return parse_stream(sentences, tags, parse_window, self.length_problem)

    def length_problem(self, words: Sequence[str]) -> str:
        """What is wrong with the length of a sentence; empty if nothing is."""
        problem = length_problem(words, self.config.max_positions)
        return problem if problem or not self._coded else self.indexer().problem(words)

    def _parse_window(
        self,
        window: Sequence[Sequence[str]],
        tags: Tags,
        max_tokens: int,
        forms: FormCache | None,
    ) -> Iterator[Parsed]:
        results: list[Parsed] = [Parsed([], None) for _ in window]
        for scored in self.scored(window, tags, max_tokens=max_tokens, forms=forms):
            found = decode_blocks(scored.blocks, scored.lengths)
            for k, constituents, own in zip(
                scored.places,
                self.constituents(found, scored.lengths),
                scored.tags,
                strict=True,
            ):
                results[k] = Parsed(constituents, own)
        yield from results

    @torch.no_grad()
    def scored(
        self,
        window: Sequence[Sequence[str]],
        tags: Sequence[Sequence[str]] | None = None,
        *,
        max_tokens: int = 2000,
        forms: FormCache | None = None,
    ) -> Iterator[Scored]:
        """Label scores of the sentences of a window, in groups of like lengths.

        The blocks of a group are to be used up before the next group is asked for. Which
        sentences form a group follows from their lengths and ``max_tokens`` alone; one without
        words is in none.

        Raises:
            TreeError: the parser reads tags and none are given.
        """
        places = [k for k, words in enumerate(window) if words]
        if not places:
            return
        if self.reads_tags and tags is None:
            raise TreeError(
                "this parser reads tags, but none are given: give the tags of each sentence "
                "('spmrl-bench parse --input brackets' takes them from trees), or train a parser "
                "that needs none (lexical inputs without 'tag', or model.predict_tags = true)"
            )
        indexer = self.indexer()
        pool = Pool(
            [indexer.sentence(window[k], None if tags is None else tags[k]) for k in places],
            indexer,
        )
        was_training = self.training
        self.eval()
        try:
            if forms is not None:
                vectors = forms.vectors(indexer, pool.forms)
            else:
                vectors = self.form_vectors(indexer, pool.forms)
            with self.encoder.steady_weights():
                for group, batch in pool.batches(max_tokens, self.device):
                    encoded = self.encode(batch, vectors)
                    projected = self.projected_posts(encoded, batch)
                    blocks = self.scorer.blocks(projected, *self.span_rows(batch.lengths))
                    own = self._predicted_tags(encoded, batch)
                    yield Scored([places[k] for k in group], batch.lengths, blocks, own)
        finally:
            self.train(was_training)

    def _predicted_tags(self, encoded: Tensor, batch: Batch) -> list[list[str] | None]:
        """The tagger's tags of the words of each sentence, None without a tagger."""
        if self.tagger is None:
            return [None] * len(batch.lengths)
        found = self.tagger(encoded).argmax(dim=1).tolist()
        rows: list[list[str] | None] = []
        first = 0
        for n in batch.lengths.tolist():
            rows.append([self.vocabulary.tags[tag] for tag in found[first + 1 : first + 1 + n]])
            first += n + 2
        return rows

    def constituents(
        self, found: Decoded, lengths: NDArray[np.int32]
    ) -> Iterator[list[tuple[int, int, str]]]:
        """Labelled nodes of each decoded tree with unary chains written out, in pre-order."""
        _, start, end = cell_spans(lengths)
        for low, high in zip(*_pairs(node_offsets(lengths)), strict=True):
            labels = found.labels[low:high]
            kept = labels != EMPTY
            cells = found.cells[low:high][kept]
            yield [
                (i, j, name)
                for i, j, label in zip(
                    start[cells].tolist(), end[cells].tolist(), labels[kept].tolist(), strict=True
                )
                for name in self.vocabulary.labels[label]
            ]

    # Files ----------------------------------------------------------------------------

    def save(self, folder: Path) -> None:
        """Write ``parser.json``, ``weights.safetensors`` and what inputs need into a folder."""
        description = {
            "kind": self.kind,
            "config": self.config.model_dump(mode="json"),
            "vocabulary": self.vocabulary.to_json(),
        }
        save_parser(self, description, self.config, folder)
        for module in self._coded.values():
            module.save_assets(folder)

    @classmethod
    def load(cls, folder: Path) -> Self:
        """The inverse of :meth:`save`; see :func:`spmrl_bench.parsers.load_parser`.

        Raises:
            CheckpointError: the files are missing, broken, or do not fit each other.
            PretrainedError: a file that the parser was trained with is missing or has changed.
        """

        return load_saved(
            folder,
            lambda description: cls(
                ChartParserConfig.model_validate(description["config"]),
                Vocabulary.from_json(description["vocabulary"]),
                assets=folder,
            ),
        )


def _pairs(offsets: NDArray[np.int64]) -> tuple[list[int], list[int]]:
    """Starts and ends of the slices between consecutive offsets."""
    bounds = offsets.tolist()
    return bounds[:-1], bounds[1:]
