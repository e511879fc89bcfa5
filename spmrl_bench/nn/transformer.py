"""Pre-trained encoders of the library transformers as a lexical input: BERT, XLNet and their kin.

As in Kitaev, Cao & Klein 2019 (section 2) the encoder reads the sub-words of a sentence between
its special tokens, the vector of a word is that of its last sub-word (or the first, or the mean),
START and STOP take those of the special tokens, a linear map without bias leads to the content,
and all of it is trained with the parser, unless the encoder is frozen.

It differs from their code in what a word alone cannot show: they join ``n't`` to the word before
it as ``don 't``; here every form is split by itself. Nor are typographic quotes and dashes
replaced by plain ones, which current vocabularies have.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from spmrl_bench.errors import PretrainedError
from spmrl_bench.nn.choices import SubwordPooling
from spmrl_bench.nn.inputs import Boundary, CodedInput, Codes, Frozen
from spmrl_bench.nn.precision import FLOAT32, Precision, products
from spmrl_bench.nn.ragged import Ragged, SentenceDropout
from spmrl_bench.nn.subwords import Rectangle, Subwords
from spmrl_bench.pretrained import transformer_files

#: Folder, within that of a saved parser, of what the encoder needs beside its weights.
ASSETS = "transformer"


class Transformer(CodedInput):
    """A pre-trained encoder over sub-words, and a linear map of the vectors of words.

    Args:
        name: of the encoder, for messages.
        encoder, subwords: model of the library, and its tokenizer.
        d_content: width of the result.
        pooling: which sub-words of a word make its vector.
        frozen: whether training leaves the encoder as it is; it is not saved then.
        dropout: on the result, one mask for each sentence.
        precision: of the large products.

    Raises:
        PretrainedError: the model says no width of its vectors.
    """

    def __init__(
        self,
        name: str,
        encoder: nn.Module,
        subwords: Subwords,
        d_content: int,
        pooling: SubwordPooling,
        frozen: bool,
        dropout: float,
        precision: Precision = FLOAT32,
    ) -> None:
        super().__init__()
        config: Any = encoder.config
        self.name = name
        self.pooling = pooling
        self.precision = precision
        self.subwords = subwords
        self.limit = transformer_files.positions(encoder, config)
        self._config = config
        accepted = inspect.signature(encoder.forward).parameters
        self._typed = subwords.specials.typed and "token_type_ids" in accepted
        self.encoder = Frozen(encoder) if frozen else encoder
        width: int = _usable(name, lambda: config.hidden_size)
        self.projection = nn.Linear(width, d_content, bias=False)
        self.dropout = SentenceDropout(dropout)

    @classmethod
    def read(
        cls,
        name: str,
        revision: str | None,
        d_content: int,
        pooling: SubwordPooling,
        frozen: bool,
        dropout: float,
        assets: Path | None = None,
        precision: Precision = FLOAT32,
    ) -> Transformer:
        """The input with the encoder of a folder or of the hub.

        Args:
            name: a folder with ``config.json``, ``model.safetensors`` and a tokenizer, or a name
                on the hub.
            revision: commit of the hub, 40 hexadecimal digits; None for a folder.
            d_content, pooling, frozen, dropout, precision: see the class.
            assets: folder of a saved parser, see :meth:`save_assets`; the configuration and the
                tokenizer are then read from there. Weights that were trained are the parser's,
                so that here they do not matter; frozen ones are read from ``name`` again.

        Raises:
            PretrainedError: something is missing, broken or does not fit.
        """
        transformer_files.package()
        source: Path | None
        if assets is None:
            source = folder = transformer_files.locate(name, revision)
        else:
            source = _frozen_source(name, revision, assets) if frozen else None
            folder = assets / ASSETS
        config = transformer_files.read_config(folder)
        subwords = Subwords(folder, getattr(config, "pad_token_id", None))
        if source is None:
            encoder = transformer_files.empty_encoder(folder, config)
        else:
            encoder = transformer_files.read_encoder(source, config)
        module = cls(name, encoder, subwords, d_content, pooling, frozen, dropout, precision)
        module._check_fit(encoder, filled=source is not None)
        return module

    def _check_fit(self, encoder: Any, filled: bool) -> None:
        """Make sure that tokenizer and encoder fit, and that its weights are of use.

        Weights that will be replaced (not ``filled``) can be any numbers.
        """
        rows = _usable(self.name, lambda: encoder.get_input_embeddings().weight.shape[0])
        if self.subwords.size > rows:
            raise PretrainedError(
                f"{self.name}: its tokenizer has ids up to {self.subwords.size - 1}, but the "
                f"encoder has {rows} embeddings. Copy the tokenizer and the weights from one and "
                "the same encoder"
            )
        if filled:
            _usable(self.name, lambda: self._try_out(encoder))

    @torch.no_grad()
    def _try_out(self, encoder: Any) -> None:
        """Read a sentence of one word, alone and filled up, which must make no difference."""
        specials = self.subwords.specials
        alone = torch.tensor([[*specials.start, specials.unknown, *specials.stop]])
        length = alone.shape[1]
        both = nn.functional.pad(alone, (0, 2), value=specials.padding)
        filled = torch.arange(length + 2)[None] < length
        states = [
            self._states(encoder, ids, torch.zeros_like(ids), filled[:, : ids.shape[1]])
            for ids in (alone, both)
        ]
        wanted = (*alone.shape, self._config.hidden_size)
        if states[0].shape != wanted:
            raise ValueError(f"{length} tokens give {list(states[0].shape)} numbers")
        difference = (states[1][:, :length] - states[0]).abs().max()
        if difference > 0.01 * states[0].abs().max():
            raise ValueError("what it gives a sentence depends on the sentences beside it")

    def _states(self, encoder: Any, ids: Tensor, types: Tensor, filled: Tensor) -> Tensor:
        more = {"token_type_ids": types} if self._typed else {}
        result = encoder(input_ids=ids, attention_mask=filled.long(), return_dict=True, **more)
        states: Tensor = result.last_hidden_state
        return states

    def codes(self, form: str | Boundary) -> NDArray[np.int64]:
        """The ids of the sub-words; see :mod:`spmrl_bench.nn.subwords`."""
        return self.subwords.codes(form)

    def check(self, lengths: NDArray[np.int64]) -> str:
        """What is wrong with a sentence, START and STOP included, that has too many sub-words."""
        total = int(lengths.sum())
        if self.limit is None or total <= self.limit:
            return ""
        return (
            f"a sentence of {len(lengths) - 2} words, which are {total} sub-words with the special "
            f"tokens around them, but the encoder {self.name} reads at most {self.limit}. Split "
            "the sentence, leave it out, or use an encoder without a limit, such as XLNet"
        )

    def pretrained(self) -> list[nn.Parameter]:
        """The weights of the encoder, unless it is frozen."""
        return list(self.encoder.parameters())

    def forward(self, codes: Codes, layout: Ragged) -> Tensor:
        """``[tokens, d_content]``; see :class:`CodedInput`."""
        rectangle = Rectangle.of(codes, layout, self.subwords.specials)
        with products(self.precision, rectangle.ids.device):
            states = self._states(self.encoder, rectangle.ids, rectangle.types, rectangle.filled)
            words = self.projection(self._pooled(states, rectangle))
        return self.dropout(words.to(self.projection.weight.dtype), layout)

    def _pooled(self, states: Tensor, rectangle: Rectangle) -> Tensor:
        """``[tokens, width]``, one vector for each token."""
        flat = states.flatten(end_dim=1)
        if self.pooling == "first":
            return flat.index_select(0, rectangle.first)
        if self.pooling == "last":
            return flat.index_select(0, rectangle.first + rectangle.counts - 1)
        return torch.segment_reduce(
            flat.index_select(0, rectangle.cells).float(), "mean", lengths=rectangle.counts
        )

    def save_assets(self, folder: Path) -> None:
        """Write the configuration and the tokenizer into the folder ``transformer`` of a folder.

        Raises:
            OSError: they cannot be written.
        """
        kept = folder / ASSETS
        kept.mkdir(exist_ok=True)
        self._config.save_pretrained(str(kept))
        self.subwords.save(kept)


def _usable(name: str, action: Callable[[], Any]) -> Any:
    """The result of something that only the right kind of model can do."""
    return transformer_files.attempt(
        f"{name}: no encoder that gives each sub-word a vector",
        action,
        "Use one such as bert, roberta, xlm-roberta, xlnet, electra or deberta-v2",
    )


def _frozen_source(name: str, revision: str | None, assets: Path) -> Path:
    try:
        return transformer_files.locate(name, revision)
    except PretrainedError as error:
        raise PretrainedError(
            f"{error}. The parser in {assets} uses this encoder as it is, without a copy of its "
            "weights, so it has to be where it was"
        ) from None
