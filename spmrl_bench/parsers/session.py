"""From a stream of sentences to a stream of parses, a window at a time, with what can be kept.

Sentences of a window are parsed together, in batches of like lengths; the parses come out in their
order. Most words of a window have been seen in an earlier one: codes and vectors of forms are kept
in two generations, of which the older goes when the younger is full.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice, repeat
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from spmrl_bench.errors import SentenceTooLongError, SpmrlError, TokensError, TreeError
from spmrl_bench.nn.device import trim_memory
from spmrl_bench.nn.inputs import sub_batches
from spmrl_bench.parsers.base import Prediction, Words
from spmrl_bench.parsers.batches import Encoded, Group, Indexer, first_words
from spmrl_bench.trees.given import Given
from spmrl_bench.trees.parse import Parse, Probabilities

if TYPE_CHECKING:
    from spmrl_bench.parsers.neural import NeuralParser

T = TypeVar("T")
#: A sentence and its tags, None where none are given.
Tagged = tuple[Words, Words | None]
#: The number of sentences before a window, its own, and its groups of like lengths, as each of
#: several parsers encodes them.
Window = tuple[int, list[Tagged], Iterable[tuple[Encoded, ...]]]

#: Bounds of a window: sentences, and words of all of them.
WINDOW_SENTENCES = 1000
WINDOW_WORDS = 40_000
#: Characters of a sentence that count as a word, where it has longer words than text has.
_PER_WORD = 64

#: Bounds of a generation: forms, and bytes of the vectors of each input.
MAX_FORMS = 1 << 15
_MAX_BYTES = 16 << 20
#: Bound on forms times the longest that vectors are computed of at once: what a cache can hold of
#: an LSTM's gates is worked on faster than memory, and much faster than memory used first.
CHARACTERS = 1 << 13
#: Codes of a batch's distinct forms whose way through an input is kept for the way back.
KEPT_CHARACTERS = 1 << 15


# Windows ------------------------------------------------------------------------------


def weight(words: Words) -> int:
    """Return how much of a window a sentence takes, in words of usual lengths."""
    return max(len(words), sum(map(len, words)) // _PER_WORD)


def windows(
    sentences: Iterable[T], words_of: Callable[[T], int], most: int = WINDOW_SENTENCES
) -> Iterator[list[T]]:
    """Yield consecutive lists of sentences, each within the bounds or of one sentence.

    Whatever goes wrong with the next sentence, those before it have been yielded.
    """
    window: list[T] = []
    words = 0
    try:
        for sentence in sentences:
            window.append(sentence)
            words += words_of(sentence)
            if len(window) >= most or words >= WINDOW_WORDS:
                yield window
                window, words = [], 0
    except SpmrlError:
        if window:
            yield window
        raise
    if window:
        yield window


def with_tags(sentences: Iterable[Words], tags: Iterable[Words] | None) -> Iterator[Tagged]:
    """Yield sentences with their tags. Raise a TokensError if a sentence or a row of tags is a
    text, whose letters would be the words, a TreeError if there are too few rows of tags."""
    rows = None if tags is None else iter(tags)
    for number, words in enumerate(sentences, start=1):
        row = None if rows is None else next(rows, None)
        for what, given in (("words", words), ("tags", row)):
            if isinstance(given, (str, bytes)):
                raise TokensError(
                    f"sentence {number}: expected a list of {what}, such as ['Der', 'Hund'], found "
                    f"the text {given[:40]!r}: parse([words, ...]) takes sentences, and "
                    "text.split() makes one of words with spaces between them"
                )
        if rows is not None and row is None:
            raise TreeError(
                "there are fewer rows of tags than sentences; the first without tags begins: "
                f"{first_words(words)}"
            )
        yield words, row


# Vectors of forms -----------------------------------------------------------------------


def form_vectors(name: str, indexer: Indexer, rows: Sequence[int], device: torch.device) -> Tensor:
    """Return an input's vectors of distinct forms, ``[forms, width]``, of one at least: without a
    gradient computed in groups of like lengths, with one all at once, or in groups which are
    computed again on the way back where there is too much to keep."""
    module, lengths = indexer.lexical.shared[name], indexer.lengths(name, rows).tolist()

    def of_group(group: list[int], _: Tensor) -> Tensor:
        return module.forms(indexer.codes(name, [rows[k] for k in group], device))

    groups, compute = [[*range(len(rows))]], of_group
    if not torch.is_grad_enabled():
        groups = list(sub_batches(lengths, CHARACTERS))
    elif sum(lengths) > KEPT_CHARACTERS:
        groups = list(sub_batches(lengths, KEPT_CHARACTERS))
        compute = partial(checkpoint, of_group, use_reentrant=True)
    some = torch.zeros((), requires_grad=True)  # without an input that has one, no gradient comes
    order = torch.from_numpy(np.argsort(np.concatenate(groups))).to(device)
    return torch.cat([compute(group, some) for group in groups]).index_select(0, order)


class FormTable:
    """One generation of the forms that a parser, whose weights do not change meanwhile, has met:
    their rows and codes, and vectors of those that were needed."""

    def __init__(self, parser: NeuralParser, older: FormTable | None = None) -> None:
        self.indexer = parser.indexer()
        self.older = older
        self._parser = parser
        self._vectors: dict[str, Tensor] = {}  # by input [at least as many as are done, width]
        self._done = 0  # rows with vectors

    def latest(self) -> FormTable:
        """Return this or, if it is full, a new table that looks things up in this."""
        rows = len(self.indexer.forms)
        size = rows * max((each[0].nbytes for each in self._vectors.values()), default=0)
        if rows <= MAX_FORMS and size <= _MAX_BYTES:
            return self
        self.older = None
        return FormTable(self._parser, self)

    @torch.no_grad()
    def vectors(self, rows: NDArray[np.int64]) -> dict[str, Tensor]:
        """Return vectors of these rows by input, ``[rows, width]``."""
        if len(self.indexer.forms) > self._done:
            self._extend(range(self._done, len(self.indexer.forms)))
        index = torch.from_numpy(rows).to(self._parser.device)
        return {name: table.index_select(0, index) for name, table in self._vectors.items()}

    def _extend(self, rows: range) -> None:
        known = {}
        if (older := self.older) is not None:
            found = ((row, older.indexer.rows.get(self.indexer.forms[row], -1)) for row in rows)
            known = {row: old for row, old in found if 0 <= old < older._done}
        missing = [row for row in rows if row not in known]
        for name in self._parser.lexical.shared:
            if missing:  # START and STOP are in no older table, so that there are some at first
                vectors = form_vectors(name, self.indexer, missing, self._parser.device)
                self._vectors.setdefault(name, vectors.new_empty(0, vectors.shape[1]))
            table = self._vectors[name]
            if len(table) < rows.stop:
                table.resize_(2 * rows.stop, table.shape[1])  # what it holds stays
            if missing:
                table[missing] = vectors
            if older is not None and known:
                table[list(known)] = older._vectors[name][list(known.values())]
        self._done = rows.stop


@torch.no_grad()
def tag_probabilities(group: Group) -> Sequence[Sequence[float] | None]:
    """Return those of the tags of each sentence that the first parser that tags has predicted; None
    where they are not asked for."""
    for each, own in zip(group.encoded, group.members, strict=True):
        if group.scored and own.tagger is not None:
            scores = own.tagger(each.tokens[each.batch.layout.words]).float()
            best = iter(scores.softmax(dim=1).amax(dim=1).tolist())
            return [[*islice(best, n)] for n in group.lengths.tolist()]
    return [None] * len(group.lengths)


def predictions(group: Group) -> Iterator[Prediction]:
    """Yield the parse of each sentence, with the tags that are predicted."""
    columns = group.members[0].predict(group), group.tags, tag_probabilities(group)
    for one, tags, sure in zip(*columns, strict=True):
        known = one.probabilities and replace(one.probabilities, tags=sure)
        yield with_chances(one._replace(tags=tags, probabilities=known), group.temperature)


def with_chances(found: Prediction, temperature: float) -> Prediction:
    """Return a prediction in which each of the best parses is as likely as its score says, or the
    logarithm that it comes with, of which the differences count."""
    if found.probabilities is None or not found.best:
        return found

    def logarithm(score: float, one: Prediction) -> float:
        return score / temperature if one.probabilities is None else one.probabilities.log_tree

    more = found.probabilities.log_tree - logarithm(*found.best[0])
    likely = [Probabilities(min(more + logarithm(*each), 0.0)) for each in found.best]
    pairs = zip(found.best, likely, strict=True)
    best = [(score, one._replace(probabilities=own)) for (score, one), own in pairs]
    return found._replace(best=best)


class NeuralSession:
    """Parses with one parser or several of a kind, and the forms of earlier calls."""

    def __init__(
        self,
        parsers: Sequence[NeuralParser],
        max_tokens: int,
        *,
        scored: bool = False,
        best: int = 1,
    ) -> None:
        self._parsers, self._max_tokens = parsers, max_tokens
        self._asked = scored, best
        self._untidied = 0  # sentences since memory was given back
        self._tables = [FormTable(parser) for parser in parsers]

    def parse(
        self,
        sentences: Iterable[Words],
        tags: Iterable[Words] | None = None,
        given: Iterable[Given | None] | None = None,
    ) -> Iterator[Parse]:
        return self.decoded(self.encoded(with_tags(sentences, tags)), given)

    def decoded(
        self, windows: Iterable[Window], given: Iterable[Given | None] | None = None
    ) -> Iterator[Parse]:
        """Yield the parses of what :meth:`encoded` has yielded."""
        rows = repeat(None) if given is None else iter(given)
        for _, window, groups in windows:
            found = [Prediction()] * len(window)
            held = [*islice(rows, len(window))]
            for (words, _), one in zip(window, held, strict=True):
                if one is not None and (problem := one.problem(len(words))):
                    raise TreeError(f"{problem} (the sentence begins: {first_words(words)})")
            for group in groups:
                own = [held[place] or Given() for place in group[0].places] if any(held) else []
                asked = predictions(Group(group, self._parsers, own, *self._asked))
                for place, prediction in zip(group[0].places, asked, strict=True):
                    found[place] = prediction
            for pair, prediction, one in zip(window, found, held, strict=True):
                parse = prediction.parse(*pair)
                if one is not None and (part := one.unmet(parse)):
                    raise TreeError(
                        f"no parse of this parser holds {part}: it finds nothing of the kind, has "
                        "not learnt the name, or what is given contradicts itself (it begins: "
                        f"{first_words(pair[0])})"
                    )
                yield parse

    def encoded(self, sentences: Iterable[Tagged]) -> Iterator[Window]:
        """Yield windows; sentences without words are in no group. All before one with which
        something is wrong have been yielded."""
        done = 0
        for window in windows(sentences, lambda pair: weight(pair[0]), WINDOW_SENTENCES):
            self._untidied += len(window)
            if self._untidied > WINDOW_SENTENCES:  # it takes some milliseconds
                self._untidied = len(window)
                trim_memory()
            tables = self._tables = [table.latest() for table in self._tables]
            indexed, problem = [], None
            for given in window:
                try:
                    indexed.append([table.indexer.sentence(*given) for table in tables])
                except SpmrlError as error:
                    problem = error
                    break
            columns = zip(*indexed, strict=True)
            # Groups follow from the lengths of the sentences, so they are the same for all parsers.
            encoded = [
                parser.encoded_sentences(column, table, self._max_tokens)
                for parser, table, column in zip(self._parsers, tables, columns, strict=False)
            ]
            yield done, window[: len(indexed)], zip(*encoded, strict=True)
            done += len(indexed)
            # What the first lacks, such as tags, all may lack.
            if isinstance(problem, SentenceTooLongError) or (problem is not None and done):
                raise type(problem)(f"sentence {done + 1}: {problem}") from None
            if problem is not None:
                raise problem
