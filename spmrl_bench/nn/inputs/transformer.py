"""Pretrained encoders of the library transformers as an input: BERT, XLNet and their kin.

As in Kitaev, Cao & Klein 2019 (section 2) the encoder reads the sub-words of a sentence between
its special tokens, the vector of a word is that of its last sub-word (or the first, or the mean),
START and STOP take those of the special tokens, a linear map without bias leads to the content,
and all of it is trained with the parser, unless the encoder is frozen. Unlike in their code each
form is split by itself (they join ``n't`` to the word before it as ``don 't``), and typographic
quotes and dashes stay, which current vocabularies have.

The library only warns of weights that are missing or do not fit and then makes them up, takes a
tokenizer without words, downloads whatever a name on the hub stands for today, and draws progress
bars. Here a folder is read whole or not at all, and silently.
"""

from __future__ import annotations

import contextlib
import logging
import math
import re
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import safe_open
from torch import Tensor, nn
from torch.nn.modules.module import (
    register_module_buffer_registration_hook,
    register_module_parameter_registration_hook,
)

from spmrl_bench.errors import PretrainedError
from spmrl_bench.nn.inputs import Boundary, Codes, Frozen, LexicalInput, Tokens
from spmrl_bench.nn.kernels import autocast
from spmrl_bench.nn.ragged import Ragged, SentenceDropout
from spmrl_bench.nn.settings import InputSettings, Rate
from spmrl_bench.nn.vocabulary import Vocabulary
from spmrl_bench.storage.files import check_regular
from spmrl_bench.storage.json import read_json

#: Encoders that give each sub-word a vector, whatever fills up the sentences of a batch.
KINDS = (
    *("albert", "bert", "camembert", "deberta", "deberta-v2", "distilbert", "electra", "ernie"),
    *("eurobert", "flaubert", "modernbert", "mpnet", "rembert", "roberta", "roformer", "xlm"),
    *("xlm-roberta", "xlm-roberta-xl", "xlnet"),
)
#: Folder, within that of a saved parser, of what the encoder needs beside its weights.
ASSETS = "transformer"
#: What is read of a folder or the hub: no pickled weights, and nothing made for other programs.
WANTED = ("*.json", "*.txt", "*.model", "*.safetensors")
#: Bytes of the largest file beside the weights.
LARGEST = 64 << 20
#: What transcriptions write for quotes, and what encoders have read.
PLAIN_QUOTES = {"``": '"', "''": '"', "`": "'"}

_HUB_NAME = re.compile(r"[\w.-]+(/[\w.-]+)?", re.ASCII)
_COMMIT = re.compile(r"[0-9a-f]{40}")
# Kept by old files beside the weights, but computed today.
_COMPUTED = re.compile(r"(^|\.)(position_ids|token_type_ids)$")
_SAME = "Copy config.json, the weights and the tokenizer from one and the same encoder"
# A vocabulary made of lower-cased text has next to no capitals.
_CAPITALS = 0.05
# Tensors and numbers that an encoder may have beside twice those of its files.
_SPARE = 500, 1 << 20


class Transformer(LexicalInput):
    """A pretrained encoder over sub-words, and a linear map of the vectors of words."""

    class Config(InputSettings):
        """Settings of the input ``transformer``."""

        name: str
        """Folder or hub name of a pretrained encoder."""
        revision: str | None = None
        """Which revision of a hub's encoder; required for a hub name."""
        pooling: Literal["first", "last", "mean"] = "last"
        """Which sub-words of a word make its vector: the first, the last, or the mean of all."""
        frozen: bool = False
        """Whether training leaves the pretrained weights as they are."""
        dropout: Rate
        """Dropout of the mapped vectors."""

        def files(self) -> dict[str, str]:
            return {"name": self.name}

        def outside(self) -> dict[str, str]:
            return self.files() if self.frozen and self.revision is None else {}

    def __init__(
        self,
        config: Config,
        vocabulary: Vocabulary,
        width: int,
        *,
        assets: Path | None = None,
        **options: Any,
    ) -> None:
        """Read an encoder.

        With ``assets`` its configuration and tokenizer are those of the saved parser. Weights that
        were trained are the parser's then, so that here they do not matter; frozen ones are read
        again from where they were.

        Raises:
            PretrainedError: something is missing, broken or does not fit.
        """
        super().__init__(config, vocabulary, width, assets=assets, **options)
        self.name = config.name
        weights = None
        if assets is None or config.frozen:
            weights = _located(config.name, config.revision)
        folder = assets / ASSETS if assets is not None else weights
        assert folder is not None
        self._library_config = _read_config(folder)
        self.subwords = Subwords(folder, self._library_config.pad_token_id)
        if weights is not None:
            encoder = _read_encoder(weights, self._library_config)
        else:
            with _explained(f"{folder / 'config.json'}: no encoder can be built", _SAME):
                _check_size(self._library_config, folder.parent.glob("*.safetensors"))
                encoder = _unfilled(self._library_config)
        encoder = encoder.float().eval()
        encoder.pooler = None  # which is for tasks with one answer for a text
        rows = encoder.get_input_embeddings().num_embeddings
        if self.subwords.largest >= rows:
            raise PretrainedError(
                f"{self.name}: its tokenizer has ids up to {self.subwords.largest}, but the "
                f"encoder has {rows} embeddings. {_SAME}"
            )
        self.limit = _positions(encoder, self._library_config)
        self.encoder = Frozen(encoder) if config.frozen else encoder
        self.projection = nn.Linear(self._library_config.hidden_size, width, bias=False)
        self.dropout = SentenceDropout(config.dropout)

    def codes(self, form: str | Boundary) -> NDArray[np.int64]:
        return self.subwords.codes(form)

    def problem(self, lengths: NDArray[np.int64]) -> str:
        total = int(lengths.sum())
        if self.limit is None or total <= self.limit:
            return ""
        return (
            f"a sentence of {len(lengths) - 2} words, which are {total} sub-words with the special "
            f"tokens around them, but the encoder {self.name} reads at most {self.limit}. Split "
            "the sentence, leave it out, or use an encoder without a limit, such as XLNet"
        )

    def pretrained(self) -> list[nn.Parameter]:
        return list(self.encoder.parameters())  # none if it is frozen

    def forward(self, tokens: Tokens, codes: Codes | None) -> Tensor:
        assert codes is not None
        padded = Padded.of(codes, tokens.layout, self.subwords)
        given = {"input_ids": padded.ids, "attention_mask": padded.filled.long()}
        if any(self.subwords.types):
            given["token_type_ids"] = padded.types
        with autocast(self.precision, padded.ids.device):
            states = self.encoder(**given, return_dict=True).last_hidden_state
            words = self.projection(self._pooled(states.flatten(end_dim=1), padded))
        return self.dropout(words.to(self.projection.weight.dtype), tokens.layout)

    def _pooled(self, states: Tensor, padded: Padded) -> Tensor:
        if self.config.pooling == "first":
            return states.index_select(0, padded.first)
        if self.config.pooling == "last":
            return states.index_select(0, padded.first + padded.counts - 1)
        each = states.index_select(0, padded.cells).float()
        return torch.segment_reduce(each, "mean", lengths=padded.counts)

    def save_assets(self, folder: Path) -> None:
        """Write the configuration and the tokenizer into ``transformer`` of an existing folder."""
        kept = folder / ASSETS
        kept.mkdir(exist_ok=True)
        with _explained(f"{kept}: cannot be written", "Is there room on the disk?"):
            self._library_config.save_pretrained(str(kept))
            self.subwords.tokenizer.save_pretrained(str(kept))


# Sub-words ------------------------------------------------------------------------------


class Subwords:
    """The tokenizer of an encoder: from word forms to sub-words.

    A form is split as it would be in the middle of a sentence, after a space, by which byte-level
    BPE and sentencepiece mark the beginning of a word. One of which nothing is left (a zero-width
    character, say) becomes the unknown token. A form that reads like a special token (``[SEP]``,
    ``<s>``) is split like any other; pieces that are special tokens still become the unknown token.
    The quotes of the Penn Treebank's transcription are turned into plain ones, since no encoder
    has read the former in its training.

    START and STOP are the tokens that the encoder itself puts around a text: ``[CLS]`` and
    ``[SEP]``, ``<s>`` and ``</s>``. XLNet puts both at the end, ``<sep> <cls>``; there STOP is
    ``<sep>`` and START is ``<cls>``, in a segment of its own, as in its training (which filled up
    on the left; that makes no difference where positions are distances).

    Attributes:
        start, stop: ids of START and of STOP, 1 or more each.
        unknown, padding, largest: id of an unknown token, of what fills up, the largest of all.
        start_last: whether START stands behind STOP.
        types: segment that the encoder is told of START, of words and of STOP.
    """

    def __init__(self, folder: Path, padding: int | None) -> None:
        """Read the tokenizer of a folder; ``padding`` is the id that the encoder's config names."""
        remedy = "Copy all files of the tokenizer anew, tokenizer.json among them"
        with _explained(f"{folder}: its tokenizer cannot be used", remedy):
            self.tokenizer = _from_folder("AutoTokenizer", folder)
            kind = type(self.tokenizer).__name__
            if not getattr(self.tokenizer, "is_fast", False):
                raise ValueError(f"{kind} is none of the library tokenizers")
            self._backend.no_padding()
            self._backend.no_truncation()
            self._backend.encode_special_tokens = True
            ids = self._backend.get_vocab()
            words = ids.keys() - set(self.tokenizer.all_special_tokens)
            if not words:
                raise ValueError(f"{kind} finds no vocabulary")
            lowers = self._backend.normalizer and self._backend.normalizer.normalize_str("A") == "a"
            if lowers and sum(word != word.lower() for word in words) > _CAPITALS * len(words):
                raise ValueError(
                    "it turns words into lower case, but its vocabulary has capitals; set "
                    "do_lower_case to false in tokenizer_config.json"
                )
            self.largest = max(ids.values())
            probe = self._backend.encode(" a")
            self.unknown: int = self.tokenizer.unk_token_id
            mask, types = probe.special_tokens_mask, probe.type_ids
            if 0 not in mask or mask[-1] == 0 or sum(mask) < 2 or self.unknown is None:
                raise ValueError(
                    f"it splits the word 'a' into {probe.tokens}, but special tokens around it, "
                    "for START and STOP, and an unknown token (unk_token) are needed"
                )
        word, stop = mask.index(0), len(mask) - mask[::-1].index(0)
        self.start_last = word == 0
        cut = slice(-1, None) if self.start_last else slice(word)
        self.start, self.stop = probe.ids[cut], probe.ids[stop : -1 if self.start_last else None]
        self.types = types[cut][0], types[word], types[stop]
        candidates = padding, self.tokenizer.pad_token_id, self.unknown
        self.padding: int = next(each for each in candidates if each is not None)
        special_ids = set(self.tokenizer.all_special_ids) - {self.unknown}
        self._reserved = np.array(sorted(special_ids), dtype=np.int64)

    @property
    def _backend(self) -> Any:
        return self.tokenizer.backend_tokenizer

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Of a copy; the library does not copy that setting."""
        self.__dict__.update(state)
        self._backend.encode_special_tokens = True

    def codes(self, form: str | Boundary) -> NDArray[np.int64]:
        """Return the ids of a form or of START or STOP, int64 ``[1 or more]``."""
        if isinstance(form, Boundary):
            return np.array(self.start if form is Boundary.START else self.stop, dtype=np.int64)
        text = " " + PLAIN_QUOTES.get(form, form)
        ids = self._backend.encode(text, add_special_tokens=False).ids or [self.unknown]
        return np.where(np.isin(ids, self._reserved), self.unknown, np.array(ids, dtype=np.int64))


class Padded(NamedTuple):
    """The sub-words of a batch, a sentence in each row, filled up at the end."""

    ids: Tensor
    """int64 ``[sentences, longest]``, like their segments, ``types``."""
    types: Tensor
    filled: Tensor
    """bool, of the same shape, which cells hold a sub-word."""
    counts: Tensor
    """int64 ``[tokens]``, sub-words of each; ``first`` is the cell of the first of them, flat."""
    first: Tensor
    cells: Tensor
    """int64 ``[sub-words]``, cell of each, token after token."""

    @classmethod
    def of(cls, codes: Codes, layout: Ragged, subwords: Subwords) -> Padded:
        """Put the sub-words of each sentence side by side."""
        sentence, length = layout.sentence, layout.lengths.index_select(0, layout.sentence)
        counts = codes.lengths.index_select(0, codes.rows)
        column = (layout.position - 1) % length if subwords.start_last else layout.position
        table = counts.new_zeros(len(layout.lengths), layout.longest)
        table[sentence, column] = counts
        ends = table.cumsum(1)
        widths = ends[:, -1]
        longest = int(widths.max())
        first = sentence * longest + (ends - table)[sentence, column]

        token = torch.repeat_interleave(counts)
        within = torch.arange(len(token), device=token.device) - (counts.cumsum(0) - counts)[token]
        cells = first[token] + within
        start, word, stop = subwords.types
        types = torch.full_like(counts, word)
        types[layout.position == 0] = start
        types[layout.position == length - 1] = stop
        flat = counts.new_full((len(widths) * longest,), subwords.padding)
        shape = len(widths), longest
        return cls(
            ids=flat.index_copy(0, cells, codes.values[codes.rows[token], within]).view(shape),
            types=flat.new_zeros(len(flat)).index_copy(0, cells, types[token]).view(shape),
            filled=torch.arange(longest, device=counts.device) < widths[:, None],
            counts=counts,
            first=first,
            cells=cells,
        )


# Folders --------------------------------------------------------------------------------


def _library() -> Any:
    """The package ``transformers``, which takes seconds to load; an error without it."""
    try:
        import transformers
        import transformers.initialization  # since version 5
    except ImportError as error:
        raise PretrainedError(
            f"the input 'transformer' needs the package transformers of version 5 or later "
            f"({error}). Install it: pip install 'spmrl-bench[pretrained]'"
        ) from None
    return transformers


@contextlib.contextmanager
def _explained(what: str, remedy: str) -> Iterator[None]:
    """Within it, the library is silent, and its errors, of any class, say what could not be done.

    What it makes up, a pooler say, does not shift the parser's random numbers.
    """
    progress = _library().utils.logging
    drawn, level = progress.is_progress_bar_enabled(), progress.get_verbosity()
    progress.disable_progress_bar()
    progress.set_verbosity(logging.CRITICAL)
    try:
        with (
            warnings.catch_warnings(action="ignore"),
            torch.random.fork_rng(devices=[]),
            torch.device("cpu"),
        ):
            yield
    except PretrainedError:
        raise
    except Exception as error:
        raise PretrainedError(f"{what} ({_reason(error)}). {remedy}") from None
    finally:
        progress.set_verbosity(level)
        if drawn:
            progress.enable_progress_bar()


def _reason(error: Exception) -> str:
    """The message of a library in one line, cut where it becomes a lecture."""
    text = getattr(error, "strerror", None) or " ".join(str(error).split())
    return text[:300] or type(error).__name__


def _from_folder(auto: str, folder: Path, **options: Any) -> Any:
    """What a class of the library reads from a folder, without a network or code of others."""
    options |= {"trust_remote_code": False, "local_files_only": True}
    return getattr(_library(), auto).from_pretrained(str(folder), **options)


def _located(name: str, revision: str | None) -> Path:
    """The folder of an encoder; one of the hub is fetched unless all of it is there."""
    path = Path(name)
    if path.is_dir():
        if revision is None:
            return path
        problem = f"a folder, which has no revisions; found the revision {revision}. Leave it out"
    elif path.exists() or not _HUB_NAME.fullmatch(name):
        problem = (
            f"{'a file' if path.exists() else 'no such folder'}. Name a folder with config.json, "
            "model.safetensors and a tokenizer, or an encoder of the hub, such as ORGANISATION/NAME"
        )
    elif revision is None or not _COMMIT.fullmatch(revision):
        problem = (
            "no such folder, and for an encoder of the hub the revision is "
            f"{'not set' if revision is None else repr(revision)}. Set it to the 40 hexadecimal "
            "digits of a commit, so that the name always stands for the same weights"
        )
    else:
        _library()
        from huggingface_hub import snapshot_download

        with _explained(
            f"{name}: revision {revision} cannot be fetched from the hub",
            "Check the name, the revision and the connection; or copy the encoder's folder to this "
            "machine and name its path",
        ):
            return Path(
                snapshot_download(
                    name,
                    revision=revision,
                    allow_patterns=list(WANTED),
                    ignore_patterns=["*/*"],  # folders of the repository
                )
            )
    raise PretrainedError(f"{name}: {problem}")


def _check_files(folder: Path) -> None:
    """Make sure that what the library may read of a folder are files, and none of any size."""
    for path in sorted(folder.glob("*")):
        if path.is_dir() or not any(map(path.match, WANTED)):
            continue
        try:
            status = path.stat()
            check_regular(status, path)
            if path.suffix != ".safetensors" and status.st_size > LARGEST:
                raise ValueError(f"{status.st_size} bytes, where at most {LARGEST} are read")
        except (OSError, ValueError) as error:
            raise PretrainedError(f"{path}: cannot be read ({_reason(error)})") from None


def _read_config(folder: Path) -> Any:
    """The library's configuration of an encoder."""
    _check_files(folder)
    path = folder / "config.json"
    content = read_json(path, PretrainedError)
    kind = content.get("model_type") if isinstance(content, dict) else None
    if kind not in KINDS:
        raise PretrainedError(
            f"{path}: model_type is {kind!r}, expected one of {', '.join(KINDS)}. Choose an "
            "encoder that reads a sentence in both directions"
        )
    if content.get("is_decoder"):
        raise PretrainedError(f"{path}: is_decoder is true, expected an encoder alone")
    with _explained(f"{path}: cannot be read", "Copy the file anew"):
        return _from_folder("AutoConfig", folder)


def _read_encoder(folder: Path, config: Any) -> Any:
    """The encoder of a folder, of which the configuration has been read."""
    _check_files(folder)
    files = sorted(folder.glob("*.safetensors"))
    if not files:
        raise PretrainedError(
            f"{folder}: no weights in safetensors (others, which may run code, are not read). "
            "Copy the whole folder of the encoder"
        )
    where = str(files[0]) if len(files) == 1 else f"{folder}/*.safetensors"
    with _explained(f"{where}: cannot be read", _SAME):
        _check_size(config, files)
        encoder, report = _from_folder(
            "AutoModel",
            folder,
            config=config,
            use_safetensors=True,
            output_loading_info=True,
            ignore_mismatched_sizes=True,  # to be told of all of them
        )
    parts = {name.partition(".")[0] for name in encoder.state_dict()} - {"pooler"}
    faults = [
        f"{key} ({fault})"
        for fault, keys in {
            "missing": report["missing_keys"],
            "of another shape": {key for key, *_ in report["mismatched_keys"]},
            "without a place": report["unexpected_keys"],
        }.items()
        for key in sorted(keys)  # heads do not count
        if key.removeprefix(f"{encoder.base_model_prefix}.").partition(".")[0] in parts
        if not _COMPUTED.search(key)
    ]
    faults += [
        f"{name} (not finite)"
        for name, weight in encoder.state_dict().items()
        if not weight.isfinite().all()
    ]
    if faults:
        raise PretrainedError(
            f"{where}: {len(faults)} weights do not fit the encoder that config.json describes: "
            f"{', '.join(faults[:3])}. {_SAME}"
        )
    return encoder


def _check_size(config: Any, files: Iterable[Path]) -> None:
    """Make sure that an encoder is not much larger than its files, before any of it is made."""
    tensors, numbers = _SPARE
    for path in files:
        with safe_open(path, framework="pt") as file:
            for name in file.keys():  # noqa: SIM118, it is no dictionary
                tensors += 2
                numbers += 2 * math.prod(file.get_slice(name).get_shape())

    def count(module: nn.Module, name: str, tensor: Tensor | None) -> None:
        nonlocal tensors, numbers
        tensors -= 1
        numbers -= 0 if tensor is None else tensor.numel()
        if min(tensors, numbers) < 0:
            raise ValueError("config.json describes an encoder that is too large for the weights")

    with (
        register_module_parameter_registration_hook(count),
        register_module_buffer_registration_hook(count),
        torch.device("meta"),
    ):
        _unfilled(config)


def _unfilled(config: Any) -> Any:
    """An encoder for whose weights no numbers are drawn, which takes long."""
    from transformers.initialization import no_init_weights

    with no_init_weights():
        return _library().AutoModel.from_config(config, trust_remote_code=False)


def _positions(encoder: nn.Module, config: Any) -> int | None:
    """How many sub-words an encoder can read at once; None if any number."""
    for name, module in encoder.named_modules():
        table = name.rpartition(".")[2] == "position_embeddings"
        if table and isinstance(module, nn.Embedding) and module.padding_idx is not None:
            # RoBERTa and its kin count from the row after that of the padding.
            return module.num_embeddings - module.padding_idx - 1
    stated = getattr(config, "max_position_embeddings", None)
    return stated if isinstance(stated, int) and stated > 0 else None
