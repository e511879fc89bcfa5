"""The self-attentive chart parser of Kitaev & Klein 2018.

A factored self-attentive encoder gives a vector per token; spans are scored from fencepost
differences; the tree with the highest sum of label scores is found by a chart algorithm.
Training is max-margin: the predicted tree is searched with every wrong label one point
better, and the loss is its lead over the gold tree.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from spmrl_bench.chart import Decoded
from spmrl_bench.chart.packing import cell_offsets, cell_spans, node_offsets
from spmrl_bench.errors import CheckpointError, SentenceTooLongError, TreeError
from spmrl_bench.nn.span_scorer import SpanScorer, fenceposts
from spmrl_bench.parsers.batches import (
    Batch,
    Indexer,
    Pool,
    Sentence,
    length_problem,
    sub_batches,
    windows,
)
from spmrl_bench.parsers.building import build_encoder, d_content
from spmrl_bench.parsers.config import ChartParserConfig
from spmrl_bench.parsers.decoding import decode_blocks
from spmrl_bench.parsers.form_cache import FormCache
from spmrl_bench.parsers.lexicon import build_lexical_model
from spmrl_bench.parsers.vocabulary import (
    EMPTY,
    Vocabulary,
)
from spmrl_bench.trees import Tree

# Tag given to words in a parse of bare tokens; the Penn Treebank's "unknown" tag.
NO_TAG = "XX"
# Sentences looked at together when parsing a stream, so that batches are of like length.
WINDOW = 1000
# Characters of a batch's distinct forms whose way through the LSTM is kept for the way back.
CHARACTERS = 1 << 15


class ChartParser(nn.Module):
    """Encoder, span scorer and chart, with the vocabulary they were built for."""

    kind = "chart"

    def __init__(self, config: ChartParserConfig, vocabulary: Vocabulary) -> None:
        super().__init__()
        self.config = config
        self.vocabulary = vocabulary
        # In this order, which the random numbers of their weights follow.
        self.lexical = build_lexical_model(config, vocabulary)
        self.encoder = build_encoder(config)
        self.scorer = SpanScorer(
            config.d_model, config.d_label_hidden, len(vocabulary.labels), config.layer_norm
        )

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return self.scorer.first.weight.device

    def indexer(self) -> Indexer:
        """A fresh indexer for this parser's vocabulary and position table."""
        return Indexer(self.vocabulary, self.config.max_positions)

    # Scores ---------------------------------------------------------------------------

    def form_vectors(self, indexer: Indexer, forms: NDArray[np.int64]) -> Tensor:
        """CharLSTM output of distinct forms, ``[forms, width]`` (no rows if unused)."""
        char_lstm = self.lexical.char_lstm
        if char_lstm is None:
            return torch.empty(0, d_content(self.config), device=self.device)
        lengths = [len(indexer.spelling(form)) for form in forms.tolist()]
        if sum(lengths) <= CHARACTERS:
            vectors: Tensor = char_lstm(*indexer.spellings(forms, self.device))
            return vectors
        # Too much to keep for the way back, where each part is therefore computed again.
        from torch.utils.checkpoint import checkpoint

        def part(_: Tensor, characters: Tensor, of_form: Tensor) -> Tensor:
            vectors: Tensor = char_lstm(characters, of_form)
            return vectors

        groups = list(sub_batches(lengths, CHARACTERS))
        # Without an input that has a gradient, checkpoint would give none.
        some = torch.zeros((), requires_grad=True)
        parts = [
            checkpoint(
                part, some, *indexer.spellings(forms[group], self.device), use_reentrant=True
            )
            for group in groups
        ]
        order = np.argsort([place for group in groups for place in group])
        return torch.cat(parts).index_select(0, torch.from_numpy(order).to(self.device))

    def form_cache(self) -> FormCache | None:
        """An empty cache of form vectors; None if the parser does not use them."""
        char_lstm = self.lexical.char_lstm
        return FormCache(char_lstm) if char_lstm is not None else None

    def projected_posts(self, batch: Batch, forms: Tensor) -> Tensor:
        """The span scorer's first linear map of all fenceposts, ``[fenceposts, hidden]``.

        A sentence of ``n`` words has ``n + 1`` fenceposts, sentence after sentence.
        """
        content = self.lexical(batch.words, batch.form_rows, forms, batch.layout)
        encoded = self.encoder(content, batch.layout)
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
        pool = Pool(sentences)
        pool.replace_by_unk(indexer.unk_probability, random)
        vectors = self.form_vectors(indexer, pool.forms)
        leaf = vectors.detach().requires_grad_(vectors.requires_grad)
        total = 0.0
        with self.encoder.steady_weights():
            for group, batch in pool.batches(max_tokens, self.device):
                loss = self.margin_loss(batch, leaf, [sentences[k] for k in group])
                if loss is not None:
                    (loss / len(sentences)).backward()
                    total += loss.item()
        if leaf.grad is not None:
            vectors.backward(leaf.grad)
        return total / len(sentences)

    def margin_loss(
        self, batch: Batch, forms: Tensor, sentences: Sequence[Sentence]
    ) -> Tensor | None:
        """Sum over sentences of the lead of the loss-augmented best tree over the gold tree.

        The lead is ``s(predicted) + errors - s(gold)``, where errors counts the nodes of the
        predicted binarised tree (empty ones too) whose label differs from the cell's gold
        label. It is never negative, because the gold tree competes with no errors. Cells on
        which both trees agree cancel, so only the others are scored with a gradient; None
        when there are no others.
        """
        projected = self.projected_posts(batch, forms)
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
            tags: tags to carry into the trees (the parser does not read them); without
                them every word is tagged ``XX``.
            max_tokens: bound on a batch, see :func:`sub_batches`.
            forms: cache of this parser's form vectors, to be used by several calls; without
                it each call has its own.

        Raises:
            SentenceTooLongError: a sentence has more words than the position table allows;
                the trees of all sentences before it have been given by then.
            TreeError: ``tags`` ends before ``sentences``, or a row does not fit its words.
        """
        tag_stream = iter(tags) if tags is not None else None
        forms = self.form_cache() if forms is None else forms
        done = 0
        for window in windows(sentences, WINDOW):
            # What comes before a sentence that is too long is answered before the error.
            limit = next((k for k, words in enumerate(window) if self._too_long(words)), None)
            ready = window[:limit]
            for words, rows in zip(
                ready, self._parse_window(ready, max_tokens, forms), strict=True
            ):
                given: Sequence[str] | None = [NO_TAG] * len(words)
                if tag_stream is not None:
                    given = next(tag_stream, None)
                if given is None:
                    raise TreeError(
                        "there are fewer rows of tags than sentences; the first without tags "
                        f"begins: {' '.join(words[:8])}"
                    )
                yield Tree.build(words, given, rows)
            done += len(ready)
            if limit is not None:
                raise SentenceTooLongError(f"sentence {done + 1}: {self._too_long(window[limit])}")

    def _too_long(self, words: Sequence[str]) -> str:
        """What is wrong with the length of a sentence; empty if nothing is."""
        return length_problem(words, self.config.max_positions)

    @torch.no_grad()
    def _parse_window(
        self, window: Sequence[Sequence[str]], max_tokens: int, forms: FormCache | None
    ) -> list[list[tuple[int, int, str]]]:
        """Constituents ``(start, end, label)`` in pre-order of each sentence of a window."""
        results: list[list[tuple[int, int, str]]] = [[] for _ in window]
        places = [k for k, words in enumerate(window) if words]
        if not places:
            return results
        indexer = self.indexer()
        pool = Pool([indexer.sentence(window[k]) for k in places])
        was_training = self.training
        self.eval()
        if forms is not None:
            vectors = forms.vectors(indexer, pool.forms)
        else:
            vectors = self.form_vectors(indexer, pool.forms)
        with self.encoder.steady_weights():
            for group, batch in pool.batches(max_tokens, self.device):
                projected = self.projected_posts(batch, vectors)
                blocks = self.scorer.blocks(projected, *self.span_rows(batch.lengths))
                found = decode_blocks(blocks, batch.lengths)
                for k, constituents in zip(group, self._constituents(found, batch), strict=True):
                    results[places[k]] = constituents
        self.train(was_training)
        return results

    def _constituents(self, found: Decoded, batch: Batch) -> Iterator[list[tuple[int, int, str]]]:
        """Labelled nodes of each decoded tree with unary chains written out."""
        _, start, end = cell_spans(batch.lengths)
        for low, high in zip(*_pairs(node_offsets(batch.lengths)), strict=True):
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
        """Write ``parser.json`` and ``weights.safetensors`` into an existing folder."""
        description = {
            "kind": self.kind,
            "config": self.config.model_dump(mode="json"),
            "vocabulary": self.vocabulary.to_json(),
        }
        text = json.dumps(description, ensure_ascii=False, separators=(",", ":"))
        (folder / "parser.json").write_text(text + "\n", encoding="utf-8")
        weights = {name: tensor.contiguous() for name, tensor in self.state_dict().items()}
        save_file(weights, folder / "weights.safetensors")

    @classmethod
    def load(cls, folder: Path) -> Self:
        """The inverse of :meth:`save`; see :func:`spmrl_bench.parsers.load_parser`."""
        path = folder / "parser.json"
        try:
            description = json.loads(path.read_text(encoding="utf-8"))
            config = ChartParserConfig.model_validate(description["config"])
            vocabulary = Vocabulary.from_json(description["vocabulary"])
            with _Unfilled():
                parser = cls(config, vocabulary)
        except (OSError, ValueError, KeyError, TypeError, RuntimeError) as error:
            raise CheckpointError(
                f"{path}: not a parser description ({error}). "
                "Train again, or copy the whole folder anew"
            ) from None
        weights_path = folder / "weights.safetensors"
        try:
            # What was read is used as it lies in the file, which is mapped into memory.
            parser.load_state_dict(load_file(weights_path), assign=True)
        except FileNotFoundError:
            raise CheckpointError(
                f"{weights_path}: missing. Train again, or copy the whole folder anew"
            ) from None
        except (OSError, SafetensorError, RuntimeError) as error:
            reason = " ".join(str(error).split())[:300]
            raise CheckpointError(
                f"{weights_path}: does not fit {path.name}: {reason}. Was it cut short or "
                "replaced? Train again, or copy the whole folder anew"
            ) from None
        return parser


class _Unfilled(TorchFunctionMode):
    """Within it, no random numbers are drawn for weights that will be replaced.

    Memory that is not filled is not taken either. (The device ``meta`` would do as much, but
    draws random numbers by way of the compiler, whose modules take a second to load.)
    """

    def __torch_function__(
        self,
        func: Callable[..., object],
        types: object,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> object:
        kwargs = kwargs or {}
        if func in (Tensor.normal_, Tensor.uniform_):
            return args[0]
        if getattr(func, "__module__", "") == nn.init.__name__:
            return kwargs["tensor"] if "tensor" in kwargs else args[0]
        return func(*args, **kwargs)


def _pairs(offsets: NDArray[np.int64]) -> tuple[list[int], list[int]]:
    """Starts and ends of the slices between consecutive offsets."""
    bounds = offsets.tolist()
    return bounds[:-1], bounds[1:]
