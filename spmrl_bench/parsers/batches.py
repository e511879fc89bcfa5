"""From words to index tensors, and from sentences to batches of like lengths.

A corpus is indexed once. Every distinct form gets a row, so that per-form computations run
once however often the form occurs. A batch of any composition is then put together from these
without looking at a string again. What a kind of parser learns of a sentence lies beside it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from spmrl_bench.errors import SentenceTooLongError, TreeError
from spmrl_bench.nn.inputs import Boundary, CodedInput, Codes, Tokens
from spmrl_bench.nn.ragged import Ragged
from spmrl_bench.parsers.lengths import beginning, read_part
from spmrl_bench.parsers.vocabulary import (
    BOUNDARY_CHARACTERS,
    CHAR_START,
    CHAR_STOP,
    CHAR_UNK,
    CHAR_WORD_START,
    CHAR_WORD_STOP,
    START,
    STOP,
    UNK,
    Vocabulary,
)


@dataclass(frozen=True, slots=True)
class Sentence:
    """One indexed sentence of ``n`` words.

    Attributes:
        words: int64 ``[n + 2]``, vocabulary index of START, the words, STOP.
        tags: int64 ``[n + 2]``, tag index of each; UNK where no tags are given.
        forms: int64 ``[n + 2]``, row of each in the indexer's form table.
        gold: what the kind of parser learns of it; None where it is only parsed.
    """

    words: NDArray[np.int64]
    tags: NDArray[np.int64]
    forms: NDArray[np.int64]
    gold: Any = None

    def __len__(self) -> int:
        """Number of words."""
        return len(self.words) - 2


def length_problem(words: Sequence[str], max_positions: int | None) -> str:
    """What to tell the user of a sentence too long for a position table; empty if it fits."""
    if max_positions is None:
        return ""
    allowed = max_positions - 2  # START and STOP have a row each
    if len(words) <= allowed:
        return ""
    return (
        f"a sentence of {len(words)} words, but the parser's position table allows {allowed} "
        f"(it begins: {beginning(words)} ...). Split the sentence, or train with "
        f"model.max_positions = {len(words) + 2} or more"
    )


class Indexer:
    """Turns words into :class:`Sentence` objects over one growing form table.

    Args:
        vocabulary: of the parser.
        max_positions: tokens that a sentence may have; None for any.
        coded: the inputs that read codes of their own, by name.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        max_positions: int | None,
        coded: Mapping[str, CodedInput] | None = None,
    ) -> None:
        self.vocabulary = vocabulary
        self.max_positions = max_positions
        self._coded = dict(coded or {})
        self._codes = {
            name: [module.codes(Boundary.START), module.codes(Boundary.STOP)]
            for name, module in self._coded.items()
        }
        self._rows: dict[str, int] = {}
        boundary = [CHAR_START, CHAR_STOP]
        self._spellings = [
            np.array([CHAR_WORD_START, *[c] * BOUNDARY_CHARACTERS, CHAR_WORD_STOP], dtype=np.int64)
            for c in boundary
        ]

    @cached_property
    def unk_probability(self) -> NDArray[np.float64]:
        """That of becoming UNK in training, by word index; boundaries and UNK never do."""
        counts = np.array([0, 0, 0, *self.vocabulary.words.values()], dtype=np.float64)
        return np.where(counts > 0, 1 / (1 + counts), 0.0)

    def _form(self, word: str) -> int:
        row = self._rows.get(word)
        if row is None:
            row = self._rows[word] = len(self._spellings)
            ids = self.vocabulary.character_ids
            read = read_part(word)
            inner = [ids.get(character, CHAR_UNK) for character in read]
            self._spellings.append(
                np.array([CHAR_WORD_START, *inner, CHAR_WORD_STOP], dtype=np.int64)
            )
            for name, module in self._coded.items():
                self._codes[name].append(module.codes(read))
        return row

    def problem(self, words: Sequence[str]) -> str:
        """What is wrong with the length of a sentence; empty if nothing is."""
        if problem := length_problem(words, self.max_positions):
            return problem
        for name, module in self._coded.items():
            codes = self._codes[name]
            rows = [0, *map(self._form, words), 1]
            if problem := module.check(np.array([len(codes[row]) for row in rows])):
                return problem
        return ""

    def sentence(self, words: Sequence[str], tags: Sequence[str] | None = None) -> Sentence:
        """Index words, and their tags where there are any.

        Raises:
            SentenceTooLongError: the position table or an input has no room for the sentence.
            TreeError: the tags are not as many as the words.
        """
        if problem := self.problem(words):
            raise SentenceTooLongError(problem)
        if tags is not None and len(tags) != len(words):
            raise TreeError(f"{len(tags)} tags for {len(words)} words: {beginning(words)} ...")
        ids, tag_ids = self.vocabulary.word_ids, self.vocabulary.tag_ids
        numbers = [UNK] * len(words) if tags is None else [tag_ids.get(tag, UNK) for tag in tags]
        return Sentence(
            np.array([START, *(ids.get(word, UNK) for word in words), STOP], dtype=np.int64),
            np.array([START, *numbers, STOP], dtype=np.int64),
            np.array([0, *map(self._form, words), 1], dtype=np.int64),
        )

    def spelling(self, form: int) -> NDArray[np.int64]:
        """Characters of one form with its start and end marks, int64."""
        return self._spellings[form]

    def spellings(self, forms: NDArray[np.int64], device: torch.device) -> tuple[Tensor, Tensor]:
        """Characters of the given forms: ids ``[longest, forms]`` and CPU lengths ``[forms]``."""
        characters, lengths = _filled([self._spellings[row] for row in forms.tolist()])
        transposed = torch.from_numpy(np.ascontiguousarray(characters.T))
        return transposed.to(device), torch.from_numpy(lengths)

    def codes(self, forms: NDArray[np.int64], device: torch.device) -> dict[str, Codes]:
        """What each input with codes of its own reads of tokens whose form-table rows are given."""
        if not self._coded:
            return {}
        distinct, rows = np.unique(forms, return_inverse=True)
        found = {}
        for name, codes in self._codes.items():
            values, lengths = _filled([codes[row] for row in distinct.tolist()])
            tensors = (torch.from_numpy(array).to(device) for array in (values, lengths, rows))
            found[name] = Codes(*tensors)
        return found


def _filled(chosen: Sequence[NDArray[np.int64]]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows of numbers as ``[rows, longest]``, filled up with 0, and their lengths."""
    lengths = np.array([len(numbers) for numbers in chosen], dtype=np.int64)
    within = np.arange(lengths.max())[None, :] < lengths[:, None]
    values = np.zeros(within.shape, dtype=np.int64)
    values[within] = np.concatenate(chosen)
    return values, lengths


@dataclass(frozen=True, slots=True)
class Batch:
    """Several sentences as tensors.

    Attributes:
        tokens: words, START and STOP of all sentences; some words are UNK in training.
        lengths: int32 ``[sentences]``, words of each sentence (NumPy, for the chart).
    """

    tokens: Tokens
    lengths: NDArray[np.int32]

    @property
    def layout(self) -> Ragged:
        """Which tokens form a sentence."""
        return self.tokens.layout


def sub_batches(lengths: Sequence[int], max_tokens: int) -> Iterator[list[int]]:
    """Length-sorted groups of sentence indices whose padded size keeps within a bound.

    Args:
        lengths: words of each sentence.
        max_tokens: bound on sentences times the longest (START and STOP included) of a
            group; a single sentence beyond it forms a group of its own.
    """
    group: list[int] = []
    for index in sorted(range(len(lengths)), key=lambda k: lengths[k]):
        # Sorted upwards, so the newcomer is the longest of its group.
        if group and (len(group) + 1) * (lengths[index] + 2) > max_tokens:
            yield group
            group = []
        group.append(index)
    if group:
        yield group


class Pool:
    """Sentences that are worked on together and share one vector per distinct form.

    Attributes:
        forms: int64 ``[distinct]``, form-table rows of the forms that occur.
    """

    def __init__(self, sentences: Sequence[Sentence], indexer: Indexer) -> None:
        self._indexer = indexer
        self._lengths = [len(sentence) for sentence in sentences]
        self._words = np.concatenate([sentence.words for sentence in sentences])
        self._tags = np.concatenate([sentence.tags for sentence in sentences])
        self._forms = np.concatenate([sentence.forms for sentence in sentences])
        self.forms, self._form_rows = np.unique(self._forms, return_inverse=True)
        self._bounds = np.cumsum([0, *(len(sentence.words) for sentence in sentences)])

    def replace_by_unk(self, probability: NDArray[np.float64], random: np.random.Generator) -> None:
        """Replace each word by UNK with the probability given for its vocabulary index."""
        chosen = random.random(len(self._words)) < probability[self._words]
        self._words = np.where(chosen, UNK, self._words)

    def batches(self, max_tokens: int, device: torch.device) -> Iterator[tuple[list[int], Batch]]:
        """The pool in batches of like lengths, each with the indices of its sentences."""
        for group in sub_batches(self._lengths, max_tokens):
            tokens = np.concatenate(
                [np.arange(self._bounds[k], self._bounds[k + 1]) for k in group]
            )
            lengths = np.array([self._lengths[k] for k in group], dtype=np.int32)
            words, tags, rows = (
                torch.from_numpy(numbers[tokens]).to(device)
                for numbers in (self._words, self._tags, self._form_rows)
            )
            layout = Ragged.of(lengths.astype(np.int64) + 2, device)
            codes = self._indexer.codes(self._forms[tokens], device)
            yield group, Batch(Tokens(layout, words, tags, rows, codes), lengths)
