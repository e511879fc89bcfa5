"""Hidden states of a pretrained encoder whose lower layers, or all, stay as they are.

An encoder takes a hundred times as long for a sentence as the layers on top of it. What is frozen
is computed once for each sentence and kept, on disk, mapped into memory, for all to use, under a
hash of what the encoder read. Files appear under their names only when they are whole, and carry a
digest; processes that need the same states take turns, and those that were stopped have lost the
last file alone. All of it may be removed at any time. In training only layers that are tuned are
run again.

States of several layers are normalised and mixed with learned weights, as ELMo's (Peters et al.
2018, section 3.2), which with frozen weights is worth points over the last layer alone
(docs/notebook.md), then mapped to the width of the parser. Sentences are not padded, but for
attention.
"""

from __future__ import annotations

import copy
import hashlib
import logging
import os
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.nn import functional

from spmrl_bench.errors import PretrainedError
from spmrl_bench.nn.inputs import Boundary, Codes, Tokens, sub_batches
from spmrl_bench.nn.inputs.pretrained import first_position, located, read_config, read_encoder
from spmrl_bench.nn.inputs.transformer import KEY, EncoderInput, Pieces, ids_of, layout_of, pooled
from spmrl_bench.nn.kernels import autocast
from spmrl_bench.nn.ragged import Ragged
from spmrl_bench.nn.settings import Layers, Precision, Rate
from spmrl_bench.nn.vocabulary import Vocabulary
from spmrl_bench.storage.digests import digest, digests
from spmrl_bench.storage.files import write_file
from spmrl_bench.storage.locks import in_turn, lock_of
from spmrl_bench.storage.paths import cache_folder
from spmrl_bench.storage.tensors import content_digest, read_tensors

#: Encoders with the layers of BERT.
KINDS = ("bert", "ernie", "camembert", "roberta", "xlm-roberta")
#: Sub-words that are read at once.
AT_ONCE = 1 << 12
#: Sentences that are not kept, but remembered for the other members of an ensemble.
REMEMBERED = 1 << 9
#: Bytes of a file of states, unless one sentence has more.
FILE = 1 << 28
_DIGEST = "digest"

_log = logging.getLogger(__name__)


def run_layer(layer: Any, rows: Tensor, layout: Ragged) -> Tensor:
    """Return the states after a layer of BERT, ``[sub-words, width]`` as before it."""
    attention = layer.attention.self
    query, key, value = (
        layout.pad(part(rows)).unflatten(2, (attention.num_attention_heads, -1)).transpose(1, 2)
        for part in (attention.query, attention.key, attention.value)
    )
    p = attention.dropout.p if layer.training else 0.0
    mask = layout.mask[:, None, None, :]
    found = functional.scaled_dot_product_attention(query, key, value, mask, p)
    context = layout.unpad(found.transpose(1, 2).flatten(2))
    rows = layer.attention.output(context, rows)
    return layer.output(layer.intermediate(rows), rows)


@dataclass(eq=False)
class FrozenLayers:
    """The embeddings and lower layers of an encoder, and what they gave: one for all parsers of a
    process that read the same states. It has no weights that a parser would train or save."""

    folder: Path
    wanted: Sequence[int]
    pooling: str | None
    precision: Precision
    cache: Path | None  # folder of what is kept
    kept: dict[bytes, Tensor] = field(default_factory=dict)  # by the keys of sentences
    _read: set[Path] = field(default_factory=set)
    _recent: dict[bytes, Tensor] = field(default_factory=dict)
    _encoder: Any = None

    @classmethod
    def of(
        cls, folder: Path, wanted: Sequence[int], pooling: str | None, precision: Precision
    ) -> FrozenLayers:
        """Return that which gives these layers' states, 0 being the embeddings, of an encoder: of
        tokens, or without a ``pooling`` of their sub-words."""
        content = digests({"weights": str(folder)}), [*wanted], pooling, precision
        name, cache = digest(content)[:24], cache_folder()
        place = cache and cache / "states" / name
        return _shared.setdefault(name, cls(folder, wanted, pooling, precision, place))

    def __deepcopy__(self, _: object) -> FrozenLayers:
        return self

    def states(self, sentences: Sequence[Pieces], device: torch.device) -> Tensor:
        """Return the states of some sentences, bf16 ``[rows, layers, width]``; those of tokens are
        normalised."""
        keys = [each.key for each in sentences]
        known = self.kept, self._recent
        found = {key: states[key] for states in known for key in keys if key in states}
        missing = [each for each in sentences if each.key not in found]
        for key, states in self.compute(missing, device):
            found[key] = self._recent[key] = states
        while len(self._recent) > REMEMBERED:  # the oldest first
            del self._recent[next(iter(self._recent))]
        return torch.cat([found[key] for key in keys]).to(device)

    @torch.no_grad()
    def compute(
        self, sentences: Sequence[Pieces], device: torch.device
    ) -> Iterator[tuple[bytes, Tensor]]:
        """Yield the states of sentences with their keys, those of like lengths together."""
        for group in sub_batches([len(each.ids) for each in sentences], AT_ONCE):
            pieces = [sentences[k] for k in group]
            layout = layout_of(pieces, device)
            encoder = self.encoder(device)
            ids = ids_of(pieces, device)[None]
            positions = (layout.position + first_position(encoder.config))[None]
            with autocast(self.precision, device):
                rows = encoder.embeddings(
                    input_ids=ids, position_ids=positions, token_type_ids=torch.zeros_like(ids)
                )[0]
                found = [rows] if 0 in self.wanted else []
                for number, layer in enumerate(encoder.encoder.layer[: max(self.wanted)], start=1):
                    rows = run_layer(layer, rows, layout)
                    found += [rows] if number in self.wanted else []
            states = torch.stack(found, 1)
            if self.pooling:
                states = pooled(normalised(states), pieces, self.pooling)
            lengths = [len(each.starts if self.pooling else each.ids) for each in pieces]
            parts = states.to("cpu", torch.bfloat16).split(lengths)
            yield from ((each.key, part.clone()) for each, part in zip(pieces, parts, strict=True))

    def keep(self, sentences: Mapping[bytes, Pieces], device: torch.device) -> None:
        """Have the states of sentences, by their keys, from the cache or else computed. A folder
        that cannot be written costs time only."""
        folder = self.cache
        try:
            if folder is not None:
                folder.mkdir(parents=True, exist_ok=True)
            with nullcontext() if folder is None else in_turn(lock_of(folder)):
                there = () if folder is None else folder.glob("*.safetensors")
                for path in sorted({*there} - self._read):  # which others have written
                    self._take(path)
                found: dict[bytes, Tensor] = {}
                size = 0
                for key, states in self.compute(self._missing(sentences), device):
                    self.kept[key] = found[key] = states
                    size += states.nbytes
                    if size >= FILE:
                        self._write(found)
                        found, size = {}, 0
                self._write(found)
        except OSError as error:
            _log.warning("cannot keep the states of an encoder for the next time: %s", error)
            self.kept |= self.compute(self._missing(sentences), device)
        self._encoder = None  # until it is needed again

    def _missing(self, sentences: Mapping[bytes, Pieces]) -> list[Pieces]:
        return [each for key, each in sentences.items() if key not in self.kept]

    def _take(self, path: Path) -> None:
        try:
            tensors, notes = read_tensors(path)
            if notes.get(_DIGEST) != content_digest(tensors):
                raise ValueError("its digest is another")
            keys, ends = tensors["keys"].numpy(), tensors["ends"].tolist()
            parts = map(slice, [0, *ends], ends)
            self.kept |= {
                key.tobytes(): tensors["states"][part]
                for key, part in zip(keys, parts, strict=True)
            }
            self._read.add(path)
        except (OSError, ValueError, KeyError) as error:
            _log.warning("%s: damaged, and computed again (%s)", path, error)

    def _write(self, found: dict[bytes, Tensor]) -> None:
        if not found or self.cache is None:
            return
        keys = torch.frombuffer(bytearray(b"".join(found)), dtype=torch.uint8).view(-1, KEY)
        ends = torch.tensor([len(states) for states in found.values()]).cumsum(0)
        tensors = {"keys": keys, "ends": ends, "states": torch.cat(list(found.values()))}
        name = hashlib.blake2b(b"\0".join(sorted(found)), digest_size=KEY).hexdigest()
        path = self.cache / f"{name}.safetensors"
        notes = {_DIGEST: content_digest(tensors)}
        write_file(path, lambda new: save_file(tensors, new, notes))
        os.chmod(path, 0o644)
        self._take(path)  # mapped, in place of what was computed

    def encoder(self, device: torch.device) -> Any:
        """The whole encoder, which is read when it is first needed."""
        if self._encoder is None:
            encoder = read_encoder(self.folder, read_config(self.folder)).float().eval()
            self._encoder = encoder.requires_grad_(False)
        return self._encoder.to(device)


_shared = weakref.WeakValueDictionary[str, FrozenLayers]()


def normalised(states: Tensor) -> Tensor:
    return functional.layer_norm(states.float(), states.shape[-1:])


class HiddenStates(EncoderInput):
    """States of layers of an encoder, mixed and mapped to the width of the input."""

    class Config(EncoderInput.Config):
        """Settings of the input ``hidden_states``."""

        layers: Annotated[tuple[Layers, ...], Field(min_length=1)]
        """Layers whose states are mixed, 0 being the embeddings."""
        tuned: Layers = 0
        """How many of the upper layers are trained with the parser."""
        mix_dropout: Rate = 0.0
        """Dropout of the mix of states, for each of its numbers."""

        def outside(self) -> dict[str, str]:
            return self.files() if self.revision is None else {}

    def __init__(self, config: Config, vocabulary: Vocabulary, width: int, **options: Any) -> None:
        """Read the description of an encoder, and its weights if some are tuned; a PretrainedError
        says what is missing, broken or does not fit."""
        folder = located(config.name, config.revision)
        super().__init__(config, vocabulary, width, folder, **options)
        kind, depth = self.described.model_type, self.described.num_hidden_layers
        if kind not in KINDS:
            raise PretrainedError(
                f"{config.name}: an encoder of the kind {kind}, but the input hidden_states takes "
                f"{', '.join(KINDS)}. The input transformer takes it"
            )
        border = depth - config.tuned
        if max(config.layers) > depth or border < 0:
            raise PretrainedError(
                f"{config.name}: has {depth} layers, but hidden_states.layers = "
                f"{[*config.layers]} and tuned = {config.tuned}"
            )
        lower = {layer for layer in config.layers if layer <= border}
        self._lower = sorted(lower | {border} if config.tuned else lower)
        self._border = border
        pooling = None if config.tuned else config.pooling
        self.frozen = FrozenLayers.of(folder, self._lower, pooling, self.precision)
        self.tuned = nn.ModuleList()
        if config.tuned:
            own = self.frozen.encoder(torch.device("cpu")).encoder.layer[border:]
            self.tuned = copy.deepcopy(own).requires_grad_(True)
        self._keys: list[bytes] = []  # of the sentences that are kept
        self.mix = nn.Parameter(torch.zeros(len(set(config.layers))))
        self.projection = nn.Linear(self.described.hidden_size, width, bias=False)
        self.mix_dropout = nn.Dropout(config.mix_dropout)

    def pretrained(self) -> list[nn.Parameter]:
        return list(self.tuned.parameters())

    def keep(self, sentences: Iterable[Sequence[str]], device: torch.device) -> None:
        start, stop = map(self.codes, Boundary)
        known: dict[str, NDArray[np.int64]] = {}
        for word in {word for words in sentences for word in words}:
            known[word] = self.codes(word)
        found = [self.pieces([start, *map(known.__getitem__, words), stop]) for words in sentences]
        self._keys = [each.key for each in found]
        self.frozen.keep(dict(zip(self._keys, found, strict=True)), device)

    def forward(self, tokens: Tokens, codes: Codes | None) -> Tensor:
        assert codes is not None
        device, places = tokens.words.device, tokens.places
        if self.training and not self.tuned and self._keys and places is not None:
            states = self._gathered(places, tokens.layout.lengths.tolist()).to(device)
        else:
            pieces = self.sentences(tokens, codes)
            states = self.frozen.states(pieces, device)
        found = dict(zip(self._lower, states.unbind(1), strict=True))
        if self.tuned:
            layout, rows = layout_of(pieces, device), found[self._border].float()
            with autocast(self.precision, device):
                for number, layer in enumerate(self.tuned, start=self._border + 1):
                    found[number] = rows = run_layer(layer, rows, layout)
            pooling = self.config.pooling
            found = {
                number: normalised(pooled(found[number].float(), pieces, pooling))
                for number in self.config.layers
            }
        weights = self.mix.softmax(0)
        chosen = sorted(set(self.config.layers))
        mixed = sum(w * found[layer].float() for w, layer in zip(weights, chosen, strict=True))
        mapped = self.projection(self.mix_dropout(mixed))
        return self.dropout(mapped, tokens.layout)

    def _gathered(self, places: NDArray[np.int32], lengths: Sequence[int]) -> Tensor:
        """The states of tokens whose words stand in sentences that are kept; START is that of the
        sentence of the first word, STOP that of the last one's."""
        parts: list[Tensor] = []
        start = 0
        for length in lengths:
            own = places[start : start + length - 2]
            start += length - 2
            # A word that does not follow the one before it begins another part.
            cuts = np.flatnonzero((np.diff(own, axis=0) != (0, 1)).any(axis=1)) + 1
            for first, last in pairwise([0, *cuts.tolist(), len(own)]):
                number, place = own[first].tolist()
                states = self.frozen.kept[self._keys[number]]
                parts += [states[:1]] if first == 0 else []
                parts.append(states[place + 1 : place + 1 + last - first])
            parts.append(states[-1:])
        return torch.cat(parts)
