"""Hidden states of a pretrained encoder whose lower layers, or all, stay as they are.

What is frozen is computed once for each sentence and kept (:mod:`spmrl_bench.nn.inputs.kept`), so
that training reads it for next to nothing; only layers that are tuned are run again. States of
several layers are normalised and mixed with learned weights, as ELMo's (Peters et al. 2018, section
3.2), which with frozen weights is worth points over the last layer alone (docs/notebook.md), then
mapped to the width of the parser.

Sentences are not padded, but for attention.
"""

from __future__ import annotations

import copy
import weakref
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional

from spmrl_bench.errors import PretrainedError
from spmrl_bench.nn.inputs import Boundary, Codes, Tokens, sub_batches
from spmrl_bench.nn.inputs.kept import KeptStates
from spmrl_bench.nn.inputs.pretrained import first_position, located, read_config, read_encoder
from spmrl_bench.nn.inputs.transformer import EncoderInput, Pieces, ids_of, layout_of, pooled
from spmrl_bench.nn.kernels import autocast
from spmrl_bench.nn.ragged import Ragged, SentenceDropout
from spmrl_bench.nn.settings import Layers, Precision, Rate
from spmrl_bench.nn.vocabulary import Vocabulary
from spmrl_bench.storage.digests import digest, digests
from spmrl_bench.storage.paths import cache_folder

#: Encoders with the layers of BERT.
KINDS = ("bert", "ernie", "camembert", "roberta", "xlm-roberta")
#: Sub-words that are read at once.
AT_ONCE = 1 << 12
#: Sentences that are not kept, but remembered for the other members of an ensemble.
REMEMBERED = 1 << 9


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
    kept: KeptStates
    _encoder: Any = None
    _recent: dict[bytes, Tensor] = field(default_factory=dict)

    @classmethod
    def of(
        cls, folder: Path, wanted: Sequence[int], pooling: str | None, precision: Precision
    ) -> FrozenLayers:
        """Return that which gives these layers' states, 0 being the embeddings, of an encoder: of
        tokens, or without a ``pooling`` of their sub-words."""
        content = digests({"weights": str(folder)}), [*wanted], pooling, precision
        name, cache = digest(content)[:24], cache_folder()
        kept = KeptStates(cache and cache / "states" / name)
        return _shared.setdefault(name, cls(folder, wanted, pooling, precision, kept))

    def __deepcopy__(self, _: object) -> FrozenLayers:
        return self

    def states(self, sentences: Sequence[Pieces], device: torch.device) -> Tensor:
        """Return the states of some sentences, bf16 ``[rows, layers, width]``; those of tokens are
        normalised."""
        keys = [each.key for each in sentences]
        known = self.kept.states, self._recent
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

    def encoder(self, device: torch.device) -> Any:
        """The whole encoder, which is read when it is first needed."""
        if self._encoder is None:
            encoder = read_encoder(self.folder, read_config(self.folder)).float().eval()
            self._encoder = encoder.requires_grad_(False)
        return self._encoder.to(device)

    def release(self) -> None:
        """Give back the memory of the encoder until it is needed again."""
        self._encoder = None


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
        self.dropout = SentenceDropout(config.dropout)

    def pretrained(self) -> list[nn.Parameter]:
        return list(self.tuned.parameters())

    def keep(self, sentences: Iterable[Sequence[str]], device: torch.device) -> None:
        start, stop = map(self.codes, Boundary)
        known: dict[str, NDArray[np.int64]] = {}
        for word in {word for words in sentences for word in words}:
            known[word] = self.codes(word)
        found = [self.pieces([start, *map(known.__getitem__, words), stop]) for words in sentences]
        self._keys = [each.key for each in found]
        distinct = dict(zip(self._keys, found, strict=True))
        self.frozen.kept.keep(distinct, lambda some: self.frozen.compute(some, device))
        self.frozen.release()

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
                states = self.frozen.kept.states[self._keys[number]]
                parts += [states[:1]] if first == 0 else []
                parts.append(states[place + 1 : place + 1 + last - first])
            parts.append(states[-1:])
        return torch.cat(parts)
