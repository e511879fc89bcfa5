"""From word forms to the sub-words of a pre-trained encoder, and from sub-words to its batches.

A form is split as it would be in the middle of a sentence, after a space: byte-level BPE and
sentencepiece mark the beginning of a word by it, WordPiece does without. What comes before or
after the form does not matter, so each form is split once.

- A form of which nothing is left (a zero-width character, say) becomes the unknown token.
- Words are data: a form that reads like a special token (``[SEP]``, ``<s>``) is split like any
  other, and where its pieces are special tokens still, they become the unknown token.
- The quotes of the Penn Treebank's transcription are turned into plain ones, since no encoder has
  read the former in its training. Brackets are real ones in a tree anyway.

START and STOP are the tokens that the encoder itself puts around a text: ``[CLS]`` and ``[SEP]``,
``<s>`` and ``</s>``. XLNet puts both at the end, ``<sep> <cls>``; there STOP is ``<sep>`` and
START is ``<cls>``, at the end of the sentence and in a segment of its own, as in its training.
(It was trained on texts filled up on the left. Its positions are distances, so the side on which
the shorter sentences of a batch are filled up makes no difference.)
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from spmrl_bench.errors import PretrainedError
from spmrl_bench.nn.inputs import Boundary, Codes
from spmrl_bench.nn.ragged import Ragged
from spmrl_bench.pretrained.transformer_files import (
    attempt,
    check_has_tokenizer,
    from_folder,
    quiet,
    reason,
)

#: What transcriptions write for quotes, and what encoders have read.
PLAIN_QUOTES = {"``": '"', "''": '"', "`": "'"}
# A vocabulary made of lower-cased text has next to no capitals.
_CAPITALS = 0.05


@dataclass(frozen=True, slots=True)
class Specials:
    """The sub-words that are not of words.

    Attributes:
        start: ids of START, 1 or more; stop: of STOP.
        start_last: whether START stands behind STOP.
        start_type, word_type, stop_type: segment that the encoder is told of each.
        unknown: id of the unknown token.
        padding: id that fills sentences up to the longest.
    """

    start: tuple[int, ...]
    stop: tuple[int, ...]
    start_last: bool
    start_type: int
    word_type: int
    stop_type: int
    unknown: int
    padding: int

    @property
    def typed(self) -> bool:
        """Whether there is more than one segment, of which the encoder has to be told."""
        return any((self.start_type, self.word_type, self.stop_type))


class Subwords:
    """The tokenizer of an encoder, read from its folder.

    ``padding`` is the id of the padding where the encoder's configuration names one.

    Raises:
        PretrainedError: it is missing or broken, cannot tell words apart, or has no tokens for
            START and STOP.
    """

    def __init__(self, folder: Path, padding: int | None = None) -> None:
        check_has_tokenizer(folder)
        tokenizer = attempt(
            f"{folder}: its tokenizer cannot be read",
            lambda: from_folder("AutoTokenizer", folder),
            "Copy the tokenizer's files anew, tokenizer.json among them",
        )
        self._folder = folder
        self._tokenizer = tokenizer
        if not getattr(tokenizer, "is_fast", False):
            raise PretrainedError(
                f"{folder}: its tokenizer ({type(tokenizer).__name__}) is none of the library "
                "tokenizers. Choose an encoder that has tokenizer.json"
            )
        self._backend = tokenizer.backend_tokenizer
        self._backend.no_padding()
        self._backend.no_truncation()
        self._check_vocabulary()
        self.specials = self._found_specials(padding)
        self._read_specials_as_text()
        self._reserved = np.array(
            sorted(set(tokenizer.all_special_ids) - {self.specials.unknown}), dtype=np.int64
        )

    def _read_specials_as_text(self) -> None:
        self._backend = self._tokenizer.backend_tokenizer
        self._backend.encode_special_tokens = True

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Of a copy; the library does not copy that setting."""
        self.__dict__.update(state)
        self._read_specials_as_text()

    def _check_vocabulary(self) -> None:
        words = set(self._backend.get_vocab()) - set(self._tokenizer.all_special_tokens)
        if not words:
            raise PretrainedError(
                f"{self._folder}: its tokenizer ({type(self._tokenizer).__name__}) finds no "
                "vocabulary in the files that are there. Copy the tokenizer's files of this encoder"
            )
        normalizer = self._backend.normalizer
        if normalizer is not None and "A" not in normalizer.normalize_str("A"):
            capitals = sum(any(map(str.isupper, word)) for word in words)
            if capitals > _CAPITALS * len(words):
                raise PretrainedError(
                    f"{self._folder}: its tokenizer turns words into lower case, but {capitals} of "
                    f"the {len(words)} entries of its vocabulary have capitals. Set do_lower_case "
                    "to false in tokenizer_config.json"
                )

    def _found_specials(self, padding: int | None) -> Specials:
        probe = self._backend.encode(" a")
        mask = probe.special_tokens_mask
        if 0 not in mask:
            raise PretrainedError(f"{self._folder}: its tokenizer makes nothing of the word 'a'")
        before, after = mask.index(0), mask[::-1].index(0)
        front, back = probe.ids[:before], probe.ids[len(mask) - after :]
        types = probe.type_ids
        start_last = not front and len(back) > 1
        if start_last:
            start, stop, start_type, stop_type = back[-1:], back[:-1], types[-1], types[-after]
        elif front and back:
            start, stop, start_type, stop_type = front, back, types[0], types[-1]
        else:
            raise PretrainedError(
                f"{self._folder}: its tokenizer puts {len(mask) - mask.count(0)} special tokens "
                "around a sentence; the parser needs two, for START and STOP"
            )
        unknown = self._tokenizer.unk_token_id
        if unknown is None:
            raise PretrainedError(
                f"{self._folder}: its tokenizer has no unknown token. Name one in "
                "tokenizer_config.json (unk_token)"
            )
        if padding is None:
            padding = self._tokenizer.pad_token_id
        return Specials(
            start=tuple(start),
            stop=tuple(stop),
            start_last=start_last,
            start_type=start_type,
            word_type=types[before],
            stop_type=stop_type,
            unknown=unknown,
            padding=unknown if padding is None else padding,
        )

    @property
    def size(self) -> int:
        """One more than the largest id."""
        return 1 + max(self._backend.get_vocab().values())

    def codes(self, form: str | Boundary) -> NDArray[np.int64]:
        """The ids of a form or of START or STOP, int64 ``[1 or more]``."""
        if isinstance(form, Boundary):
            start = form is Boundary.START
            return np.array(self.specials.start if start else self.specials.stop, dtype=np.int64)
        text = " " + PLAIN_QUOTES.get(form, form)
        ids = np.array(self._backend.encode(text, add_special_tokens=False).ids, dtype=np.int64)
        if not len(ids):
            return np.array([self.specials.unknown], dtype=np.int64)
        return np.where(np.isin(ids, self._reserved), self.specials.unknown, ids)

    def save(self, folder: Path) -> None:
        """Write the files that :meth:`read` needs into an existing folder.

        Raises:
            OSError: they cannot be written.
        """
        try:
            with quiet():
                self._tokenizer.save_pretrained(str(folder))
        except OSError:
            raise
        except Exception as error:  # the library's own for a full disk
            raise OSError(reason(error)) from None


@dataclass(frozen=True, slots=True)
class Rectangle:
    """The sub-words of a batch, a sentence in each row, filled up at the end.

    Attributes:
        ids: int64 ``[sentences, longest]``.
        types: int64 ``[sentences, longest]``, segment of each.
        filled: bool ``[sentences, longest]``, which cells hold a sub-word.
        counts: int64 ``[tokens]``, sub-words of each token.
        first: int64 ``[tokens]``, cell of the first of them in the flattened rectangle.
        cells: int64 ``[sub-words]``, cell of each, token after token.
    """

    ids: Tensor
    types: Tensor
    filled: Tensor
    counts: Tensor
    first: Tensor
    cells: Tensor

    @classmethod
    def of(cls, codes: Codes, layout: Ragged, specials: Specials) -> Rectangle:
        """Put the sub-words of each sentence side by side."""
        counts = codes.lengths.index_select(0, codes.rows)
        ends = counts.cumsum(0)
        last = layout.lengths.cumsum(0) - 1
        widths = ends[last].diff(prepend=ends.new_zeros(1))
        place = ends - counts - (ends[last] - widths)[layout.sentence]
        is_start = layout.position == 0
        if specials.start_last:
            start = counts[last - layout.lengths + 1]
            place = torch.where(
                is_start, (widths - start)[layout.sentence], place - start[layout.sentence]
            )
        longest = int(widths.max())
        first = layout.sentence * longest + place

        token = torch.repeat_interleave(counts)
        within = torch.arange(len(token), device=token.device) - (ends - counts)[token]
        cells = first[token] + within
        values = codes.values[codes.rows[token], within]
        types = torch.full_like(counts, specials.word_type)
        types[is_start] = specials.start_type
        types[last] = specials.stop_type

        shape = (len(widths), longest)
        flat = counts.new_full((shape[0] * longest,), specials.padding)
        columns = torch.arange(longest, device=counts.device)
        return cls(
            ids=flat.index_copy(0, cells, values).view(shape),
            types=flat.new_zeros(len(flat)).index_copy(0, cells, types[token]).view(shape),
            filled=columns < widths[:, None],
            counts=counts,
            first=first,
            cells=cells,
        )
