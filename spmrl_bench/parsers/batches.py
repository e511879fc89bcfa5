"""From words to index tensors, and from sentences to batches of like lengths.

A sentence is indexed once, and a batch of any composition put together without looking at a string
again. Every distinct form gets a row, so that what depends on it alone is computed once. No word is
refused, but what models read of it is bounded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from spmrl_bench.errors import SentenceTooLongError, TreeError
from spmrl_bench.nn.inputs import Boundary, Codes, LexicalModel, Tokens, sub_batches
from spmrl_bench.nn.ragged import Ragged
from spmrl_bench.nn.vocabulary import START, STOP, UNK, Vocabulary
from spmrl_bench.parsers.base import Words
from spmrl_bench.trees.given import Given

#: Characters of a word that are read, half of them at either end, in training as in parsing.
LONGEST_WORD = 512
#: Words of a sentence that a message shows, and characters of each.
_SHOWN_WORDS, _SHOWN_CHARACTERS = 8, 40


def clipped(word: str) -> str:
    """Return what models read of a word: all of it, or the ends of one that is too long."""
    half = LONGEST_WORD // 2
    return word if len(word) <= LONGEST_WORD else word[:half] + word[-half:]


def first_words(words: Words) -> str:
    """Return the first words of a sentence, for a message."""
    return " ".join(
        word if len(word) <= _SHOWN_CHARACTERS else f"{word[:_SHOWN_CHARACTERS]}..."
        for word in words[:_SHOWN_WORDS]
    )


@dataclass(frozen=True, slots=True)
class Sentence:
    """One indexed sentence of ``n`` words: indices of START, the words, STOP, int64 ``[n + 2]``."""

    words: NDArray[np.int64]
    """In the vocabulary."""
    tags: NDArray[np.int64]
    """In the vocabulary; UNK where no tags are given."""
    forms: NDArray[np.int64]
    """In the indexer's table of forms."""
    gold: Any = None
    """What the kind of parser learns of it; None where it is only parsed."""
    places: NDArray[np.int32] | None = None
    """Of its words, as :class:`~spmrl_bench.nn.inputs.Tokens` has them."""

    def __len__(self) -> int:
        return len(self.words) - 2


class Indexer:
    """Turns words into :class:`Sentence` objects over one growing table of forms."""

    def __init__(
        self, vocabulary: Vocabulary, lexical: LexicalModel, too_long: Callable[[Words], str]
    ) -> None:
        """Begin a table; ``too_long`` says what is wrong with a sentence's length, or ''."""
        self.vocabulary, self.lexical = vocabulary, lexical
        self.forms: list[str | Boundary] = list(Boundary)  # START and STOP in the first two rows
        self.rows: dict[str | Boundary, int] = {}
        self._too_long = too_long
        self._inputs = lexical.inputs
        # As bytes of int64: arrays would leave holes in malloc's memory that nothing else fits.
        codes = {name: [self._read(name, form) for form in self.forms] for name in self._inputs}
        self._codes = {name: both for name, both in codes.items() if all(both)}

    @cached_property
    def unk_probability(self) -> NDArray[np.float64]:
        """That of becoming UNK in training, by word index; boundaries and UNK never do."""
        counts = np.array([0, 0, 0, *self.vocabulary.words.values()], dtype=np.float64)
        return np.where(counts > 0, 1 / (1 + counts), 0.0)

    def _read(self, name: str, form: str | Boundary) -> bytes:
        codes = self._inputs[name].codes(form)
        return b"" if codes is None else codes.tobytes()

    def _added(self, word: str) -> int:
        row = self.rows[word] = len(self.forms)
        self.forms.append(word)
        for name, codes in self._codes.items():
            codes.append(self._read(name, clipped(word)))
        return row

    def sentence(self, words: Words, tags: Words | None = None) -> Sentence:
        """Index words, and their tags where there are any; errors are those of
        :meth:`~spmrl_bench.parsers.base.Parser.parse`."""
        if problem := self._too_long(words):
            raise SentenceTooLongError(problem)
        if tags is None and words and "tag" in self.lexical:
            raise TreeError(
                "this parser reads tags, but none are given: give those of each sentence "
                "('spmrl-bench parse' takes them with --input brackets or conllu), or train a "
                "parser that needs none (no input 'tag', or model.predict_tags = true)"
            )
        if tags is not None and len(tags) != len(words):
            raise TreeError(f"{len(words)} words but {len(tags)} tags: {first_words(words)} ...")
        rows = self.rows
        forms = [0, *[rows[word] if word in rows else self._added(word) for word in words], 1]
        ids, tag_ids = self.vocabulary.word_ids, self.vocabulary.tag_ids
        numbers = [UNK] * len(words) if tags is None else [tag_ids.get(tag, UNK) for tag in tags]
        return Sentence(
            np.array([START, *[ids.get(word, UNK) for word in words], STOP], dtype=np.int64),
            np.array([START, *numbers, STOP], dtype=np.int64),
            np.array(forms, dtype=np.int64),
        )

    def lengths(self, name: str, forms: Sequence[int]) -> NDArray[np.int64]:
        """Return how many codes of an input the forms of these rows have."""
        codes = self._codes[name]
        return np.array([len(codes[row]) for row in forms], dtype=np.int64) // 8

    def codes(
        self,
        name: str,
        forms: Sequence[int],
        device: torch.device,
        rows: NDArray[np.int64] | None = None,
    ) -> Codes:
        """Return what an input reads of distinct forms; ``rows`` says which of them each token is,
        by default each another."""
        lengths = self.lengths(name, forms)
        within = np.arange(lengths.max()) < lengths[:, None]
        values = np.zeros(within.shape, dtype=np.int64)
        values[within] = np.frombuffer(b"".join(self._codes[name][row] for row in forms), np.int64)
        tokens = np.arange(len(forms)) if rows is None else rows
        return Codes(*(torch.from_numpy(each).to(device) for each in (values, lengths, tokens)))

    def of_tokens(self, forms: NDArray[np.int64], device: torch.device) -> dict[str, Codes]:
        """Return what each input reads of tokens, but for those whose vectors are shared."""
        names = self._codes.keys() - self.lexical.shared.keys()
        if not names:
            return {}
        distinct, rows = np.unique(forms, return_inverse=True)
        return {name: self.codes(name, distinct.tolist(), device, rows) for name in names}


class Batch(NamedTuple):
    """Several sentences as tensors."""

    tokens: Tokens
    """Words, START and STOP of all sentences; some words are UNK in training."""
    lengths: NDArray[np.int32]
    """``[sentences]``, words of each sentence."""

    @property
    def layout(self) -> Ragged:
        return self.tokens.layout


class Pool:
    """Sentences that are worked on together, and share vectors of ``forms``: int64 ``[distinct]``,
    the rows of those that occur."""

    def __init__(self, sentences: Sequence[Sentence], indexer: Indexer) -> None:
        self._indexer = indexer
        self._lengths = [*map(len, sentences)]
        columns = zip(*((each.words, each.tags, each.forms) for each in sentences), strict=True)
        self._words, self._tags, self._forms = map(np.concatenate, columns)
        self.forms, self._form_rows = np.unique(self._forms, return_inverse=True)
        ends = np.cumsum([len(sentence.words) for sentence in sentences])
        self._tokens = np.split(np.arange(ends[-1]), ends[:-1])
        self._places = [each.places for each in sentences]

    def replace_by_unk(self, probability: NDArray[np.float64], random: np.random.Generator) -> None:
        """Replace each word by UNK with the probability given for its vocabulary index."""
        chosen = random.random(len(self._words)) < probability[self._words]
        self._words = np.where(chosen, UNK, self._words)

    def batches(
        self, max_tokens: int, device: torch.device, forms: Mapping[str, Tensor]
    ) -> Iterator[tuple[list[int], Batch]]:
        """Yield the pool in batches of like lengths, each with the indices of its sentences.

        ``max_tokens`` bounds sentences times the longest, START and STOP included; ``forms`` are
        vectors of the pool's, by input.
        """
        for group in sub_batches(self._lengths, max_tokens):
            tokens = np.concatenate([self._tokens[k] for k in group])
            lengths = np.array([self._lengths[k] for k in group])
            words, tags, rows = (
                torch.from_numpy(numbers[tokens]).to(device)
                for numbers in (self._words, self._tags, self._form_rows)
            )
            codes = self._indexer.of_tokens(self._forms[tokens], device)
            layout = Ragged.of(lengths + 2, device)
            known = [own for k in group if (own := self._places[k]) is not None]
            places = np.concatenate(known) if len(known) == len(group) else None
            read = Tokens(layout, words, tags, rows, forms, codes, places)
            yield group, Batch(read, lengths.astype(np.int32))


class Encoded(NamedTuple):
    """Some sentences of a window, encoded."""

    places: list[int]
    """Which sentences of the window these are."""
    batch: Batch
    tokens: Tensor
    """``[tokens, encoder.d_out]``, START and STOP among them."""
    tags: list[list[str] | None]
    """That the parser predicts for each sentence; None if it does not."""


class Group(NamedTuple):
    """Sentences to parse together, as each of several parsers of a kind has encoded them; these
    have the same inventories in any order, of which the first one's counts."""

    encoded: Sequence[Encoded]
    members: Sequence[Any]
    given: Sequence[Given] = ()
    """What the parse of each sentence is to hold; nothing if it is empty."""
    scored: bool = False
    """Whether probabilities are asked for."""
    best: int = 1
    """How many of the best parses are asked for."""

    @property
    def lengths(self) -> NDArray[np.int32]:
        """Words of each sentence."""
        return self.encoded[0].batch.lengths

    @property
    def tags(self) -> list[list[str] | None]:
        """Those of the first parser that predicts some."""
        found = (each.tags for each in self.encoded if None not in each.tags)
        return next(found, self.encoded[0].tags)

    @property
    def temperature(self) -> float:
        """That of the mean of the scores."""
        return float(np.mean([each.temperature for each in self.members]))
