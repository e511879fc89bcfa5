"""What parsers over an encoder have in common, whatever they read off the encoded tokens.

Sentences are indexed, put into batches of like lengths, embedded and encoded here. A kind of parser
adds layers, the loss of a batch, and the predictions for one.
"""

from __future__ import annotations

import os
import re
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, Self, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from spmrl_bench.errors import RecipeError, TreeError
from spmrl_bench.nn.encoders import ENCODERS, Encoder, Part
from spmrl_bench.nn.encoders.label_attention import LabelAttention
from spmrl_bench.nn.encoders.self_attention import AttentionMask
from spmrl_bench.nn.inputs import LexicalModel
from spmrl_bench.nn.inputs.vectors import WordEmbedding
from spmrl_bench.nn.layers import at_most, initialise
from spmrl_bench.nn.scorers import Tagger
from spmrl_bench.nn.vocabulary import FIRST_TAG, Vocabulary
from spmrl_bench.parsers.base import MAX_TOKENS, Description, Parser, Prediction, Words
from spmrl_bench.parsers.batches import (
    Batch,
    Encoded,
    Group,
    Indexer,
    Pool,
    Sentence,
    clipped,
    first_words,
)
from spmrl_bench.parsers.config import NeuralConfig
from spmrl_bench.parsers.saved import load_saved, read_temperature, save_parser, save_temperature
from spmrl_bench.parsers.session import (
    FormTable,
    NeuralSession,
    Tagged,
    form_vectors,
    predictions,
    with_tags,
)
from spmrl_bench.parsers.views import AttentionMaps, HeadOutputs, SpanHeads, inputs_of
from spmrl_bench.trees.head_driven import SUB_HEAD
from spmrl_bench.trees.parse import Parse

# Bytes of a weight in training: itself, its gradient, two moments, and as much for all else.
_TRAINED = 32


class TrainedParser(nn.Module, Parser):
    """A parser with weights that are trained by gradients: all that training knows of it."""

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return next(self.parameters()).device

    def pretrained_parameters(self) -> list[nn.Parameter]:
        """Return the weights that were trained elsewhere and are trained on here."""
        return []

    def keep(self, sentences: Sequence[Words]) -> None:
        """Compute what training never changes of sentences that come up again, if there is any;
        first of all those that are learnt, in their order."""

    @abstractmethod
    def index(self, examples: Iterable[Parse]) -> Iterator[Sized]:
        """Yield gold parses, one by one, as :meth:`gradients` takes them; their size is in words.
        Raise a SentenceTooLongError or a TreeError if one has no room or cannot be learnt."""

    def placed(self, sentence: Any, places: NDArray[np.int32]) -> Any:
        """Return a sentence of :meth:`index` whose words stand in those that :meth:`keep` was
        given, int32 ``[n, 2]``: the number of the sentence of each, and its place there."""
        return sentence

    @abstractmethod
    def gradients(
        self, batch: Sequence[Any], random: np.random.Generator, max_tokens: int
    ) -> float:
        """Add the gradient of the mean loss of a batch of :meth:`index`, and return that loss;
        ``random`` makes all random choices besides torch's own, ``max_tokens`` bounds what is
        worked on at once: sentences times the longest."""

    @abstractmethod
    def is_like(self, other: Self) -> bool:
        """Return whether another parser of the kind has the same settings and vocabulary."""


class NeuralParser(TrainedParser):
    """Lexical inputs, encoder and what a kind adds, with the vocabulary they were built for: that
    of the training sentences, with as many words as the settings allow."""

    config: Any
    longest: int = 5000
    """Words of a sentence that is parsed. Exact search takes time that grows with the cube of the
    length or faster: minutes for this one, hours for a whole file in a line."""
    temperature: float = 1.0
    """By which scores are divided where they stand for logarithms of probabilities."""

    def __init__(
        self, config: NeuralConfig, vocabulary: Vocabulary, assets: Path | None = None
    ) -> None:
        """Draw random weights; ``assets`` and errors are those of ``LexicalModel``."""
        super().__init__()
        self.config = config
        self.vocabulary = vocabulary = vocabulary.limited(
            getattr(config.inputs.get("word"), "max_words", None)
        )
        # In this order, which the random numbers of their weights follow.
        self.lexical = LexicalModel(
            config.inputs, vocabulary, config.d_content, config.join, config.precision, assets
        )
        name, own = config.own_encoder
        self.encoder: Encoder = ENCODERS.get(name)(
            own, config.d_model, config.d_content, config.precision
        )
        if (given := config.label_attention) is not None:
            labels = sum(label not in ((), (SUB_HEAD,)) for label in vocabulary.labels)
            self.encoder.label_attention = LabelAttention(
                given, config.d_model, labels, self.encoder.matrices
            )
        self.tagger: Tagger | None = None
        self.add_layers()

    @classmethod
    def fresh(cls, config: Any, vocabulary: Vocabulary) -> Self:
        """Return a parser to be trained, whose weights begin as the settings ask for; every kind's
        ``build`` ends here. A RecipeError says that this machine cannot train so large a one."""
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        error = RecipeError(
            f"the settings describe a parser of more than {memory // _TRAINED:,} weights; to train "
            f"one, {_TRAINED} bytes of memory are needed for each, and this machine has "
            f"{memory >> 30} GiB. Lower the largest of model.* (spmrl-bench recipes show)"
        )
        try:
            with at_most(memory / _TRAINED, error):
                parser = cls(config, vocabulary)
        except (RuntimeError, MemoryError) as problem:
            if re.search("memory|overflow", str(problem)) is None:
                raise
            raise error from None  # one tensor is beyond any memory
        initialise(parser, config.initialisation, parser.pretrained_parameters())
        for module in parser.lexical.inputs.values():
            module.start()
        return parser

    # What a kind adds -----------------------------------------------------------------

    @abstractmethod
    def add_layers(self) -> None:
        """Give the parser its layers, and its tagger where its random numbers are to be drawn."""

    def add_tagger(self) -> None:
        """Give the parser a tagger, if the settings want one."""
        if (settings := self.config.tagger) is not None:
            self.tagger = Tagger(settings, self.encoder.d_out, len(self.vocabulary.tags))

    @abstractmethod
    def gold(self, example: Parse) -> Any:
        """Return what is learnt of a sentence; TreeError if it cannot be learnt."""

    @abstractmethod
    def loss(self, tokens: Tensor, batch: Batch, gold: Sequence[Any]) -> Tensor | None:
        """Return the sum over sentences of the loss, without the tagger's; None for no loss.
        ``tokens`` are encoded, ``[tokens, encoder.d_out]``, and ``gold`` is of :meth:`gold`."""

    @abstractmethod
    def predict(self, group: Group) -> Iterable[Prediction]:
        """Yield the parse of each sentence, without tags, by the mean of the scores of the members
        of a group, of which this parser is the first."""

    # What it is -----------------------------------------------------------------------

    @property
    def reads_tags(self) -> bool:
        return "tag" in self.lexical

    @property
    def predicts_tags(self) -> bool:
        return self.tagger is not None

    def pretrained_parameters(self) -> list[nn.Parameter]:
        inputs = self.lexical.inputs.values()
        return [weight for module in inputs for weight in module.pretrained()]

    def is_like(self, other: Self) -> bool:
        return self.config == other.config and self.vocabulary == other.vocabulary

    def problem(self, words: Words) -> str:
        n, room, remedy = len(words), self.encoder.max_tokens, ""
        if room is not None and n + 2 > room:  # START and STOP have a row each
            bound = f"the parser's position table allows {room - 2}"
            remedy = f", or train with model.max_positions = {n + 2} or more"
        elif n > self.longest:
            bound = f"a parser of kind {self.kind} searches sentences of up to {self.longest}"
        else:
            return ""
        return (
            f"a sentence of {n} words, but {bound} (it begins: {first_words(words)} ...). Split "
            f"the sentence{remedy}"
        )

    def keep(self, sentences: Sequence[Words]) -> None:
        for module in self.lexical.inputs.values():
            module.keep([[*map(clipped, words)] for words in sentences], self.device)

    # Encoding -------------------------------------------------------------------------

    def indexer(self) -> Indexer:
        """Return a fresh indexer for this parser's vocabulary, inputs and lengths."""
        return Indexer(self.vocabulary, self.lexical, self.problem)

    def form_vectors(self, indexer: Indexer, forms: NDArray[np.int64]) -> dict[str, Tensor]:
        """Return shared vectors of the forms of some rows by input, ``[forms, width]``."""
        return {
            name: form_vectors(name, indexer, forms.tolist(), self.device)
            for name in self.lexical.shared
        }

    def encode(self, batch: Batch) -> Tensor:
        """Return encoded tokens ``[tokens, encoder.d_out]``, START and STOP among them."""
        return self.encoder(self.lexical(batch.tokens), batch.layout)

    @torch.no_grad()
    def encoded_sentences(
        self, sentences: Sequence[Sentence], forms: FormTable, max_tokens: int
    ) -> Iterator[Encoded]:
        """Yield sentences of a window, indexed by ``forms``, encoded in groups of like lengths:
        these follow from lengths and ``max_tokens`` alone. One without words is in none."""
        if not (places := [k for k, sentence in enumerate(sentences) if len(sentence)]):
            return
        pool = Pool([sentences[k] for k in places], forms.indexer)
        was_training = self.training
        self.eval()
        try:
            vectors = forms.vectors(pool.forms)
            with self.encoder.cached_weights():
                for group, batch in pool.batches(max_tokens, self.device, vectors):
                    tokens = self.encode(batch)
                    tags: list[list[str] | None] = [None] * len(group)
                    if self.tagger is not None:
                        best = self.tagger(tokens).argmax(dim=1)[batch.layout.words].tolist()
                        names = (self.vocabulary.tags[tag] for tag in best)
                        tags = [[*islice(names, n)] for n in batch.lengths.tolist()]
                    yield Encoded([places[k] for k in group], batch, tokens, tags)
        finally:
            self.train(was_training)

    def encoded(
        self, sentences: Iterable[Words], tags: Iterable[Words] | None = None
    ) -> Iterator[Encoded]:
        """Yield sentences of a window, encoded; within the loop nothing is dropped at random."""
        for _, _, groups in self.session().encoded(with_tags(sentences, tags)):
            yield from (encoded for (encoded,) in groups)

    # Training -------------------------------------------------------------------------

    @cached_property
    def training_indexer(self) -> Indexer:
        """Of the sentences that are learnt."""
        return self.indexer()

    def index(self, examples: Iterable[Parse]) -> Iterator[Sentence]:
        for example in examples:
            indexed = self.training_indexer.sentence(example.words, example.tags)
            yield replace(indexed, gold=self.gold(example))

    def placed(self, sentence: Sentence, places: NDArray[np.int32]) -> Sentence:
        return replace(sentence, places=places)

    def gradients(
        self, batch: Sequence[Sentence], random: np.random.Generator, max_tokens: int
    ) -> float:
        # Sub-batches send their gradients to vectors of the distinct forms, and one backward pass
        # takes the sum through each input that shares such.
        pool = Pool(batch, self.training_indexer)
        pool.replace_by_unk(self.training_indexer.unk_probability, random)
        forms = self.form_vectors(self.training_indexer, pool.forms)
        leaves = {
            name: vectors.detach().requires_grad_(vectors.requires_grad)
            for name, vectors in forms.items()
        }
        per_word = len(batch) / max(1, sum(map(len, batch)))
        total = 0.0
        with self.encoder.cached_weights():
            for group, part in pool.batches(max_tokens, self.device, leaves):
                loss = self.whole_loss(part, [batch[k].gold for k in group], per_word)
                if loss is not None:
                    (loss / len(batch)).backward()
                    total += loss.item()
        for name, leaf in leaves.items():
            if leaf.grad is not None:
                forms[name].backward(leaf.grad)
        return total / len(batch)

    def whole_loss(self, batch: Batch, gold: Sequence[Any], per_word: float) -> Tensor | None:
        """Return the sum over sentences of the kind's loss and, if the parser tags, the tagger's,
        which is a mean over words: ``per_word`` is the sentences of a whole batch by its words
        (released code of Kitaev, Cao & Klein 2019)."""
        tokens, tags = self.encode(batch), batch.tokens.tags
        loss = self.loss(tokens, batch, gold)
        if self.tagger is None:
            return loss
        words = (tags >= FIRST_TAG).nonzero().squeeze(1)
        scores = self.tagger(tokens.index_select(0, words))
        of_tags = nn.functional.cross_entropy(scores, tags[words] - FIRST_TAG, reduction="sum")
        tagging = self.config.tagger.loss_weight * per_word * of_tags
        return tagging if loss is None else loss + tagging

    # Parsing --------------------------------------------------------------------------

    def session(self, max_tokens: int = MAX_TOKENS) -> NeuralSession:
        return NeuralSession([self], max_tokens)

    def session_for(self, scored: bool, best: int, max_tokens: int = MAX_TOKENS) -> NeuralSession:
        return NeuralSession([self], max_tokens, scored=scored, best=best)

    # Attention ------------------------------------------------------------------------

    def attention(
        self, words: Words, tags: Words | None = None, part: Part = "combined"
    ) -> AttentionMaps:
        if not words:
            raise TreeError("a sentence without words has no attention to show")
        with inputs_of(self.encoder) as calls:
            for _ in self.encoded([words], None if tags is None else [tags]):
                content, layout = calls[0]
                weights = self.encoder.attention(content, layout, part)[0].float().cpu().numpy()
        return AttentionMaps(weights, self.encoder.attention_parts)

    def limited(self, masks: Mapping[int, AttentionMask]) -> AbstractContextManager[None]:
        return self.encoder.limited(masks)

    def head_outputs(
        self, sentences: Iterable[Tagged], *, max_tokens: int = MAX_TOKENS
    ) -> Iterator[HeadOutputs]:
        heads = SpanHeads(self.encoder, getattr(self, "scorer", None))
        labels, scores = self.vocabulary.labels, heads.label_scores
        with inputs_of(heads.layer) as calls:
            for done, window, groups in self.session(max_tokens).encoded(sentences):
                for (encoded,) in groups:
                    columns = (
                        predictions(Group([encoded], [self])),
                        *heads.of_sentences(*calls.pop()),
                    )
                    for k, one, weights, features in zip(encoded.places, *columns, strict=True):
                        parse = one.parse(*window[k])
                        yield HeadOutputs(done + k, parse, labels, weights, features, scores)

    # Files ----------------------------------------------------------------------------

    def save(self, folder: Path) -> None:
        save_parser(self, self.config, self.vocabulary.to_json(), folder)
        for module in self.lexical.inputs.values():
            module.save_assets(folder)
        if self.temperature != NeuralParser.temperature:
            save_temperature(self.temperature, folder)

    @classmethod
    def load(cls, folder: Path, description: Description | None = None) -> Self:
        parser = load_saved(
            folder,
            description,
            cls.Config,
            lambda config, vocabulary: cls(config, Vocabulary.from_json(vocabulary), assets=folder),
        )
        parser.temperature = read_temperature(folder) or parser.temperature
        return parser

    def prepare_for_sharing(self) -> None:
        """Number the words in the order of their characters: as they first occur, they tell the
        first sentences of the treebank. Forget folders of this machine."""
        before = self.vocabulary
        words = dict(sorted(before.words.items()))
        if "word" in self.lexical:
            table = cast(WordEmbedding, self.lexical["word"])
            table.reorder([before.word_ids[word] for word in words])
        self.vocabulary = replace(before, words=words)
        inputs = dict(self.config.inputs)
        for name, own in inputs.items():
            if getattr(own, "revision", None) is None:  # else a name of the hub
                names = {key: Path(place).name for key, place in own.files().items()}
                inputs[name] = own.model_copy(update=names)
        self.config = self.config.model_copy(update={"inputs": inputs})
