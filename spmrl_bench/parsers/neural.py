"""What parsers over an encoder have in common, whatever they read off the encoded tokens.

Sentences are indexed, put into batches of like lengths, embedded and encoded here, in training
and in parsing, with the vectors of word forms computed once for each form. A kind of parser adds
what it computes of the encoded tokens: the loss of a batch, and the parses of one.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, Self, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from spmrl_bench.errors import TreeError
from spmrl_bench.nn.initialisation import initialise
from spmrl_bench.nn.inputs import CodedInput
from spmrl_bench.nn.tagger import Tagger
from spmrl_bench.parsers.base import MAX_TOKENS, Parser, Words
from spmrl_bench.parsers.batches import Batch, Indexer, Pool, Sentence, length_problem
from spmrl_bench.parsers.building import build_encoder
from spmrl_bench.parsers.form_cache import FormCache, form_vectors
from spmrl_bench.parsers.lengths import Search
from spmrl_bench.parsers.lexicon import build_lexical_model
from spmrl_bench.parsers.neural_config import NeuralParserConfig
from spmrl_bench.parsers.parsing import Found, Tags, parse_stream
from spmrl_bench.parsers.processor import give_memory_back
from spmrl_bench.parsers.registry import kind_named
from spmrl_bench.parsers.saved import load_saved, save_parser
from spmrl_bench.parsers.streams import WINDOW_SENTENCES
from spmrl_bench.parsers.trained import TrainedParser
from spmrl_bench.parsers.vocabulary import FIRST_TAG, Vocabulary
from spmrl_bench.parsers.word_start import start_from_vectors
from spmrl_bench.trees.head_driven import SUB_HEAD
from spmrl_bench.trees.parse import Parse

#: Sentences after which memory that malloc keeps is given back: it takes some milliseconds.
TIDY_EVERY = 2 * WINDOW_SENTENCES


class Encoded(NamedTuple):
    """Some sentences of a window, encoded."""

    places: list[int]
    """Which sentences of the window these are."""
    batch: Batch
    tokens: Tensor
    """``[tokens, encoder.d_out]``, START and STOP among them."""
    tags: list[list[str] | None]
    """Tags that the parser predicts for each sentence; None if it does not."""


class NeuralParser(TrainedParser):
    """Lexical inputs and encoder, with the vocabulary they were built for.

    Attributes:
        config: its settings.
        vocabulary: of the training sentences, with as many words as the settings allow.
        training_indexer: of the sentences that are learnt; None before there are any.
    """

    config: NeuralParserConfig

    def __init__(
        self, config: NeuralParserConfig, vocabulary: Vocabulary, assets: Path | None = None
    ) -> None:
        """Inputs and encoder with random weights.

        Args:
            config: settings.
            vocabulary: of the training sentences.
            assets: folder of a saved parser, where an input may find what it needs again.

        Raises:
            PretrainedError: a file that an input needs is missing, broken or does not fit.
        """
        super().__init__()
        self.config = config
        self.vocabulary = vocabulary = vocabulary.limited(config.max_words)
        # In this order, which the random numbers of their weights follow.
        self.lexical = build_lexical_model(config, vocabulary, assets)
        labels = sum(label not in ((), (SUB_HEAD,)) for label in vocabulary.labels)
        self.encoder = build_encoder(config, labels)
        self.tagger: Tagger | None = None
        self.training_indexer: Indexer | None = None

    def _add_tagger(self) -> None:
        """Give the parser its tagger, if the settings want one; the last of its layers."""
        if self.config.predict_tags:
            config = self.config
            tags = len(self.vocabulary.tags)
            self.tagger = Tagger(self.encoder.d_out, config.d_tag_hidden, tags)

    @classmethod
    def build(cls, config: Any, examples: Sequence[Parse]) -> Self:
        return cls.fresh(config, Vocabulary.of(examples))

    @classmethod
    def fresh(cls, config: Any, vocabulary: Vocabulary) -> Self:
        """A parser to be trained: its weights begin as the settings ask for.

        Every kind's ``build`` ends here. A parser that is loaded has no use for such weights.

        Raises:
            PretrainedError: a file of weights cannot be read or does not fit.
        """
        parser = cls(config, vocabulary)
        initialise(parser, config.initialisation, parser.pretrained_parameters())
        if config.word_vectors is not None and parser.lexical.words is not None:
            path = Path(config.word_vectors)
            start_from_vectors(parser.lexical.words, vocabulary.word_ids, path)
        return parser

    @property
    def device(self) -> torch.device:
        return next(self.parameters()).device

    @property
    def reads_tags(self) -> bool:
        return "tag" in self.config.lexical

    @property
    def predicts_tags(self) -> bool:
        return self.tagger is not None

    @property
    def _coded(self) -> Mapping[str, CodedInput]:
        return cast("Mapping[str, CodedInput]", self.lexical.coded)

    def pretrained_parameters(self) -> list[nn.Parameter]:
        return [weight for module in self._coded.values() for weight in module.pretrained()]

    @property
    def max_positions(self) -> int | None:
        """Tokens that a sentence may have, START and STOP among them; None for any."""
        return self.config.max_positions

    def indexer(self) -> Indexer:
        """A fresh indexer for this parser's vocabulary, position table and inputs."""
        return Indexer(self.vocabulary, self.max_positions, self._coded)

    def length_problem(self, words: Words) -> str:
        problem = length_problem(words, self.max_positions)
        problem = problem or self.search.problem(words, self._encoder_bytes)
        return problem if problem or not self._coded else self.indexer().problem(words)

    def memory(self, words: int) -> int:
        """Bytes that a sentence of so many words takes beyond those of the parser, about."""
        return self.search.memory(words, self._encoder_bytes)

    @property
    def _encoder_bytes(self) -> int:
        """Memory of the encoder for a word: some vectors in float32."""
        return 4 * (8 * self.config.d_model + 2 * self.config.d_ff)

    # What a kind adds -----------------------------------------------------------------

    @property
    @abstractmethod
    def search(self) -> Search:
        """What is searched in a sentence, and in how long a one."""

    @abstractmethod
    def gold(self, example: Parse) -> Any:
        """What is learnt of a sentence, as :meth:`loss` takes it.

        Raises:
            TreeError: it cannot be learnt.
        """

    @abstractmethod
    def loss(self, tokens: Tensor, batch: Batch, gold: Sequence[Any]) -> Tensor | None:
        """Sum over sentences of the loss, without the tagger's.

        Args:
            tokens: encoded, ``[tokens, encoder.d_out]``.
            batch: of these sentences.
            gold: of each, as of :meth:`gold`.

        Returns:
            A number with a gradient; None where there is nothing to learn from the batch.
        """

    @abstractmethod
    def found_by(self, group: Sequence[Encoded], members: Sequence[Self]) -> Iterable[Found]:
        """What is read off the same sentences as several parsers have encoded them, in their order.

        The mean of the parsers' scores decides, in the order of this parser's inventories.

        Args:
            group: of each parser.
            members: these parsers of its kind, with the same inventories in any order; this one
                is the first.
        """

    # Encoding -------------------------------------------------------------------------

    def form_vectors(self, indexer: Indexer, forms: NDArray[np.int64]) -> Tensor:
        """CharLSTM output of distinct forms, ``[forms, width]`` (no rows if unused)."""
        char_lstm = self.lexical.char_lstm
        if char_lstm is None:
            return torch.empty(0, self.config.d_content, device=self.device)
        return form_vectors(char_lstm, indexer, forms, self.device)

    def encode(self, batch: Batch, forms: Tensor) -> Tensor:
        """Encoded tokens ``[tokens, encoder.d_out]``, START and STOP among them."""
        encoded: Tensor = self.encoder(self.lexical(batch.tokens, forms), batch.layout)
        return encoded

    # Training -------------------------------------------------------------------------

    def index(self, examples: Iterable[Parse]) -> Iterator[Sentence]:
        if self.training_indexer is None:
            self.training_indexer = self.indexer()
        indexer = self.training_indexer
        for example in examples:
            sentence = indexer.sentence(example.words, example.tags)
            yield replace(sentence, gold=self.gold(example))

    def gradients(
        self, batch: Sequence[Sentence], random: np.random.Generator, max_tokens: int
    ) -> float:
        """As of :class:`TrainedParser`.

        The batch is worked through in length-sorted sub-batches, but the CharLSTM runs once
        over its distinct forms: sub-batches send their gradients to the form vectors, and
        one backward pass takes the sum through the LSTM.
        """
        indexer = self.training_indexer
        if indexer is None:
            raise ValueError("nothing was indexed for training")
        pool = Pool(batch, indexer)
        pool.replace_by_unk(indexer.unk_probability, random)
        vectors = self.form_vectors(indexer, pool.forms)
        leaf = vectors.detach().requires_grad_(vectors.requires_grad)
        per_word = len(batch) / max(1, sum(map(len, batch)))
        total = 0.0
        with self.encoder.steady_weights():
            for group, part in pool.batches(max_tokens, self.device):
                gold = [batch[k].gold for k in group]
                loss = self.whole_loss(part, leaf, gold, per_word)
                if loss is not None:
                    (loss / len(batch)).backward()
                    total += loss.item()
        if leaf.grad is not None:
            vectors.backward(leaf.grad)
        return total / len(batch)

    def whole_loss(
        self, batch: Batch, forms: Tensor, gold: Sequence[Any], per_word: float
    ) -> Tensor | None:
        """Sum over sentences of the kind's loss and, if the parser tags, the tagger's.

        Of a batch, the one's mean over its sentences and the other's over its words count (the
        released code of Kitaev, Cao & Klein 2019).

        Args:
            batch, forms: as of :meth:`encode`.
            gold: of each sentence.
            per_word: sentences of the whole batch by its words.

        Returns:
            None where there is nothing to learn from the batch.
        """
        tokens = self.encode(batch, forms)
        loss = self.loss(tokens, batch, gold)
        if self.tagger is None:
            return loss
        tagging = self.config.tag_loss_weight * per_word * self.tag_loss(tokens, batch)
        return tagging if loss is None else loss + tagging

    def tag_loss(self, tokens: Tensor, batch: Batch) -> Tensor:
        """Sum over words of the cross-entropy of the gold tag."""
        assert self.tagger is not None
        gold = batch.tokens.tags
        words = (gold >= FIRST_TAG).nonzero().squeeze(1)
        scores = self.tagger(tokens.index_select(0, words))
        return nn.functional.cross_entropy(scores, gold[words] - FIRST_TAG, reduction="sum")

    # Parsing --------------------------------------------------------------------------

    def session(self, max_tokens: int = MAX_TOKENS) -> JointSession:
        return JointSession(
            [self], lambda group: self.found_by(group, [self]), self.length_problem, max_tokens
        )

    @classmethod
    def combined(cls, members: Sequence[NeuralParser]) -> Parser:
        from spmrl_bench.parsers.ensemble import Ensemble

        return Ensemble(members)

    @torch.no_grad()
    def encoded(
        self, window: Sequence[Words], tags: Tags, max_tokens: int, forms: FormCache | None
    ) -> Iterator[Encoded]:
        """The sentences of a window, encoded in groups of like lengths.

        Which sentences form a group follows from their lengths and ``max_tokens`` alone; one
        without words is in none.

        Args:
            window: sentences.
            tags: of each, where the parser reads them.
            max_tokens: bound on a group.
            forms: cache of this parser's form vectors, if it uses them.

        Raises:
            TreeError: the parser reads tags and none are given.
        """
        places = [k for k, words in enumerate(window) if words]
        if not places:
            return
        if self.reads_tags and tags is None:
            raise TreeError(
                "this parser reads tags, but none are given: give the tags of each sentence "
                "('spmrl-bench parse' takes them with --input brackets or conllu), or train a "
                "parser that needs none (lexical inputs without 'tag', or "
                "model.predict_tags = true)"
            )
        indexer = self.indexer()
        pool = Pool(
            [indexer.sentence(window[k], None if tags is None else tags[k]) for k in places],
            indexer,
        )
        was_training = self.training
        self.eval()
        try:
            own_forms = self.form_vectors if forms is None else forms.vectors
            vectors = own_forms(indexer, pool.forms)
            with self.encoder.steady_weights():
                for group, batch in pool.batches(max_tokens, self.device):
                    tokens = self.encode(batch, vectors)
                    own = self._predicted_tags(tokens, batch)
                    yield Encoded([places[k] for k in group], batch, tokens, own)
        finally:
            self.train(was_training)

    def _predicted_tags(self, tokens: Tensor, batch: Batch) -> list[list[str] | None]:
        """The tagger's tags of the words of each sentence, None without a tagger."""
        if self.tagger is None:
            return [None] * len(batch.lengths)
        found = self.tagger(tokens).argmax(dim=1).tolist()
        rows: list[list[str] | None] = []
        first = 0
        for n in batch.lengths.tolist():
            rows.append([self.vocabulary.tags[tag] for tag in found[first + 1 : first + 1 + n]])
            first += n + 2
        return rows

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
        return load_saved(
            folder,
            kind_named(cls.kind).config_class,
            lambda config, description: cls(
                config, Vocabulary.from_json(description["vocabulary"]), assets=folder
            ),
        )

    def is_like(self, other: Self) -> bool:
        return self.config == other.config and self.vocabulary == other.vocabulary


class JointSession:
    """Parses what one parser or several encode, with the form vectors of earlier calls."""

    def __init__(
        self,
        parsers: Sequence[NeuralParser],
        found: Callable[[Sequence[Encoded]], Iterable[Found]],
        length_problem: Callable[[Words], str],
        max_tokens: int,
    ) -> None:
        """A session.

        Args:
            parsers: that encode each sentence.
            found: what is read off the same sentences as each parser has encoded them.
            length_problem: what is wrong with the length of a sentence; empty if nothing is.
            max_tokens: bound on a batch.
        """
        self._parsers = parsers
        self._found = found
        self._length_problem = length_problem
        self._max_tokens = max_tokens
        self._untidied = 0  # sentences since memory was given back
        lstms = [parser.lexical.char_lstm for parser in parsers]
        self._forms = [None if lstm is None else FormCache(lstm) for lstm in lstms]

    def parse(
        self, sentences: Iterable[Words], tags: Iterable[Words] | None = None
    ) -> Iterator[Parse]:
        return parse_stream(sentences, tags, self._parse_window, self._length_problem)

    def _parse_window(self, window: Sequence[Words], tags: Tags) -> Iterator[Found]:
        self._untidied += len(window)
        if self._untidied > TIDY_EVERY:
            self._untidied = len(window)
            give_memory_back()
        results = [Found() for _ in window]
        encoded = [
            parser.encoded(window, tags, self._max_tokens, forms)
            for parser, forms in zip(self._parsers, self._forms, strict=True)
        ]
        # Groups follow from the lengths of the sentences, so they are the same for all parsers.
        for group in zip(*encoded, strict=True):
            for k, found in zip(group[0].places, self._found(group), strict=True):
                results[k] = found
        yield from results


def predicted_tags(group: Sequence[Encoded]) -> list[list[str] | None]:
    """The tags of the first parser that predicts some."""
    return next((each.tags for each in group if None not in each.tags), group[0].tags)
