"""Sub-words of words, as encoders of the library transformers read them: BERT, XLNet and their kin.

As in Kitaev, Cao & Klein 2019 (section 2) the encoder reads the sub-words of a sentence between
its special tokens, the vector of a word is that of its last sub-word (or the first, or the mean),
START and STOP take those of the special tokens. Unlike in their code each form is split by itself
(they join ``n't`` to the word before it as ``don 't``), and typographic quotes and dashes stay.

A sentence with more sub-words than the encoder has positions is read in windows that overlap by
half; a word has the states of the window in which it is farther from an end. Of a form that would
fill a quarter of a window the middle is left out.

Trained with the parser, all of it, an encoder is the input ``transformer``;
:mod:`spmrl_bench.nn.inputs.hidden_states` has what stays as it is.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from spmrl_bench.errors import PretrainedError
from spmrl_bench.nn.inputs import Boundary, Codes, Frozen, LexicalInput, Tokens
from spmrl_bench.nn.inputs.pretrained import (
    SAME,
    explained,
    from_folder,
    located,
    most_subwords,
    read_config,
    read_encoder,
    unfilled_encoder,
)
from spmrl_bench.nn.kernels import autocast
from spmrl_bench.nn.ragged import Ragged
from spmrl_bench.nn.settings import InputSettings, Rate
from spmrl_bench.nn.vocabulary import Vocabulary

#: Folder, within that of a saved parser, of what the encoder needs beside its weights.
ASSETS = "transformer"
#: What transcriptions write for quotes, and what encoders have read.
PLAIN_QUOTES = {"``": '"', "''": '"', "`": "'"}

#: Bytes of what tells what an encoder has read of a sentence.
KEY = 16

_ANEW = "Copy all files of the tokenizer anew, tokenizer.json among them"
# A vocabulary made of lower-cased text has next to no capitals.
_CAPITALS = 0.05


class Pieces(NamedTuple):
    """The sub-words of a sentence as an encoder reads them."""

    ids: NDArray[np.int64]
    """Of all windows, one after the other, each between the encoder's START and STOP."""
    windows: list[int]
    """Sub-words of each."""
    starts: NDArray[np.int64]
    """``[tokens]``, which is the first of each token's, START and STOP among the tokens."""
    counts: NDArray[np.int64]
    """``[tokens]``, how many each has."""

    @property
    def key(self) -> bytes:
        parts = (part.tobytes() for part in (self.ids, self.starts, self.counts))
        return hashlib.blake2b(b"\0".join(parts), digest_size=KEY).digest()


def in_windows(
    codes: Sequence[NDArray[np.int64]], limit: int | None, *, start_last: bool = False
) -> Pieces:
    """Return the sub-words of a sentence of tokens, the first START and the last STOP, none with
    more than a quarter of a window, in windows of at most ``limit``; without one, in one window.
    There START stands in front or, if ``start_last``, behind STOP."""
    start, *words, stop = codes
    lead = 0 if start_last else len(start)
    room = (limit or sum(map(len, codes))) - len(start) - len(stop)
    counts = np.array([len(word) for word in words], dtype=np.int64)
    ends = counts.cumsum()
    ids, windows, starts = [], [], np.zeros(len(words), dtype=np.int64)
    margin = np.full(len(words), -1)
    first = done = 0
    while True:
        before = int(ends[first - 1]) if first else 0
        last = int(np.searchsorted(ends, before + room, side="right"))
        inside = np.arange(first, last)
        left = ends[first:last] - counts[first:last] - before
        ends_at = int(ends[last - 1]) if last else 0
        # At the ends of a sentence nothing is missing.
        to_left = np.where(first == 0, room, left)
        to_right = np.where(last == len(words), room, ends_at - ends[first:last])
        nearest = np.minimum(to_left, to_right)
        better = inside[nearest > margin[first:last]]
        margin[better] = nearest[better - first]
        starts[better] = done + lead + left[better - first]
        inner = words[first:last]
        ids += [*inner, stop, start] if start_last else [start, *inner, stop]
        windows.append(len(start) + ends_at - before + len(stop))
        done += windows[-1]
        if last == len(words):
            break
        first = max(first + 1, int(np.searchsorted(ends, before + room // 2, side="right")))
    at_start = done - len(start) if start_last else 0
    at_stop = done - len(stop) - len(start) + lead
    return Pieces(
        np.concatenate(ids),
        windows,
        np.array([at_start, *starts, at_stop], dtype=np.int64),
        np.array([len(start), *counts, len(stop)], dtype=np.int64),
    )


def ids_of(sentences: Sequence[Pieces], device: torch.device) -> Tensor:
    """Return the sub-words of all windows of some sentences, ``[sub-words]``."""
    return torch.from_numpy(np.concatenate([each.ids for each in sentences])).to(device)


def layout_of(sentences: Sequence[Pieces], device: torch.device) -> Ragged:
    """Return the layout of these windows."""
    return Ragged.of(np.array([n for each in sentences for n in each.windows]), device)


def pooled(rows: Tensor, sentences: Sequence[Pieces], pooling: str) -> Tensor:
    """Return the states of tokens, ``[tokens, ...]``, of those of the sub-words of sentences."""
    before = np.cumsum([0, *(len(each.ids) for each in sentences[:-1])])
    starts, counts = (
        torch.from_numpy(np.concatenate(parts)).to(rows.device)
        for parts in ([each.starts + n for each, n in zip(sentences, before, strict=True)],
                      [each.counts for each in sentences])
    )  # fmt: skip
    if pooling != "mean":
        return rows.index_select(0, starts if pooling == "first" else starts + counts - 1)
    within = torch.arange(int(counts.sum()), device=rows.device)
    within -= torch.repeat_interleave(counts.cumsum(0) - counts, counts)
    owned = rows.index_select(0, torch.repeat_interleave(starts, counts) + within)
    return torch.segment_reduce(owned.flatten(1).float(), "mean", lengths=counts).view(
        len(counts), *rows.shape[1:]
    )


class Subwords:
    """The tokenizer of an encoder: from word forms to sub-words.

    A form is split as in the middle of a sentence, after a space. One of which nothing is left (a
    zero-width character, say) becomes the unknown token, and so do pieces that are special tokens.

    START and STOP are the tokens that the encoder puts around a text: ``[CLS]`` and ``[SEP]``,
    ``<s>`` and ``</s>``. XLNet puts both at the end: STOP, ``<sep>``, and START, ``<cls>``, in a
    segment of its own.
    """

    def __init__(self, folder: Path, padding: int | None) -> None:
        """Read the tokenizer of a folder; ``padding`` is the id that the encoder's config names."""
        with explained(f"{folder}: its tokenizer cannot be used", _ANEW):
            self.tokenizer = from_folder("AutoTokenizer", folder)
            backend = self.tokenizer.backend_tokenizer
            backend.no_padding()
            backend.no_truncation()
            ids = backend.get_vocab()
            words = ids.keys() - set(self.tokenizer.all_special_tokens)
            if not words:
                raise ValueError(f"{type(self.tokenizer).__name__} finds no vocabulary")
            lowers = backend.normalizer and backend.normalizer.normalize_str("A") == "a"
            if lowers and sum(word != word.lower() for word in words) > _CAPITALS * len(words):
                raise ValueError(
                    "it turns words into lower case, but its vocabulary has capitals; set "
                    "do_lower_case to false in tokenizer_config.json"
                )
            probe = backend.encode(" a")
            unknown = self.tokenizer.unk_token_id
            mask = probe.special_tokens_mask
            if 0 not in mask or mask[-1] == 0 or sum(mask) < 2 or unknown is None:
                raise ValueError(
                    f"it splits the word 'a' into {probe.tokens}, but special tokens around it, "
                    "for START and STOP, and an unknown token (unk_token) are needed"
                )
        word, stop = mask.index(0), len(mask) - mask[::-1].index(0)
        self.start_last = word == 0  # START stands behind STOP
        before, behind = probe.ids[:word], probe.ids[stop:]
        start, end = (behind[-1:], behind[:-1]) if self.start_last else (before, behind)
        self._ends = {Boundary.START: start, Boundary.STOP: end}
        # The segments of START and STOP that the encoder is told of, where they are not 0.
        pairs = zip(probe.ids, probe.type_ids, strict=True)
        self.types = {number: segment for number, segment in pairs if segment}
        self.padding: int = unknown if padding is None else padding  # masked, so any will do
        self.largest = max(ids.values())  # of all ids
        self._unknown = unknown
        self._special = set(self.tokenizer.all_special_ids)

    def codes(self, form: str | Boundary) -> NDArray[np.int64]:
        """As of :meth:`LexicalInput.codes`."""
        if isinstance(form, Boundary):
            return np.array(self._ends[form], dtype=np.int64)
        backend = self.tokenizer.backend_tokenizer
        backend.encode_special_tokens = True  # which a copy of it forgets
        ids = backend.encode(f" {PLAIN_QUOTES.get(form, form)}", add_special_tokens=False).ids
        found = [self._unknown if each in self._special else each for each in ids]
        return np.array(found or [self._unknown], dtype=np.int64)


class EncoderInput(LexicalInput):
    """An input that reads words by an encoder of others."""

    class Config(InputSettings):
        """Settings of all such inputs."""

        name: str
        """Pretrained encoder: its name (``spmrl-bench model fetch``), folder or hub name."""
        revision: str | None = None
        """Which revision of a hub's encoder; required for a hub name."""
        pooling: Literal["first", "last", "mean"] = "last"
        """Which sub-words of a word make its vector: the first, the last, or the mean of all."""
        dropout: Rate
        """Dropout of the mapped vectors, for each sentence and feature."""

        def files(self) -> dict[str, str]:
            return {"name": self.name}

    def __init__(
        self, config: Any, vocabulary: Vocabulary, width: int, folder: Path, **options: Any
    ) -> None:
        """Read the configuration and the tokenizer of a folder."""
        super().__init__(config, vocabulary, width, **options)
        self.described = read_config(folder)
        self.subwords = Subwords(folder, self.described.pad_token_id)
        self.limit = most_subwords(self.described)

    def codes(self, form: str | Boundary) -> NDArray[np.int64]:
        found = self.subwords.codes(form)
        half = len(found) if self.limit is None else self.limit // 8
        return found if len(found) <= 2 * half else np.concatenate((found[:half], found[-half:]))

    def pieces(self, tokens: Sequence[NDArray[np.int64]]) -> Pieces:
        """Return the sub-words of a sentence of tokens with these codes."""
        return in_windows(tokens, self.limit, start_last=self.subwords.start_last)

    def sentences(self, tokens: Tokens, codes: Codes) -> list[Pieces]:
        """Return the sub-words of each sentence of a batch."""
        values, lengths = codes.values.cpu().numpy(), codes.lengths.tolist()
        forms = [row[:length] for row, length in zip(values, lengths, strict=True)]
        rows = iter(codes.rows.tolist())
        counts = tokens.layout.lengths.tolist()
        return [self.pieces([forms[row] for row in islice(rows, n)]) for n in counts]


class Transformer(EncoderInput):
    """The vectors of words, mapped to the width of the input."""

    class Config(EncoderInput.Config):
        """Settings of the input ``transformer``."""

        frozen: bool = False
        """Whether training leaves the pretrained weights as they are."""

        def outside(self) -> dict[str, str]:
            return self.files() if self.frozen and self.revision is None else {}

    def __init__(self, config: Config, vocabulary: Vocabulary, width: int, **options: Any) -> None:
        """Read an encoder; a PretrainedError says what is missing, broken or does not fit. A saved
        parser has its configuration and tokenizer, and weights unless they are frozen."""
        assets: Path | None = options.get("assets")
        own = None if config.frozen else assets  # folder of a parser that has the weights
        weights = own or located(config.name, config.revision)
        folder = weights if assets is None else assets / ASSETS
        super().__init__(config, vocabulary, width, folder, **options)
        made = read_encoder if own is None else unfilled_encoder
        encoder = made(weights, self.described).float().eval()
        encoder.pooler = None  # which is for tasks with one answer for a text
        rows = encoder.get_input_embeddings().num_embeddings
        if self.subwords.largest >= rows:
            raise PretrainedError(
                f"{config.name}: its tokenizer has ids up to {self.subwords.largest}, but the "
                f"encoder has {rows} embeddings. {SAME}"
            )
        self.encoder = Frozen(encoder) if config.frozen else encoder
        self.projection = nn.Linear(self.described.hidden_size, width, bias=False)

    def pretrained(self) -> list[nn.Parameter]:
        return list(self.encoder.parameters())  # none if it is frozen

    def forward(self, tokens: Tokens, codes: Codes | None) -> Tensor:
        assert codes is not None
        sentences, device = self.sentences(tokens, codes), tokens.words.device
        layout, ids = layout_of(sentences, device), ids_of(sentences, device)
        padded = layout.pad(ids[:, None])[..., 0].masked_fill(~layout.mask, self.subwords.padding)
        given = {"input_ids": padded, "attention_mask": layout.mask.long()}
        if self.subwords.types:
            given["token_type_ids"] = types = torch.zeros_like(padded)
            for each, kind in self.subwords.types.items():
                types[(padded == each) & layout.mask] = kind
        with autocast(self.precision, device):
            states = layout.unpad(self.encoder(**given, return_dict=True).last_hidden_state)
            words = self.projection(pooled(states, sentences, self.config.pooling))
        return self.dropout(words.to(self.projection.weight.dtype), tokens.layout)

    def save_assets(self, folder: Path) -> None:
        kept = folder / ASSETS
        kept.mkdir(exist_ok=True)
        with explained(f"{kept}: cannot be written", "Is there room on the disk?"):
            self.described.save_pretrained(kept)
            self.subwords.tokenizer.save_pretrained(kept)
