"""Pretrained encoders of the library transformers as an input: BERT, XLNet and their kin.

As in Kitaev, Cao & Klein 2019 (section 2) the encoder reads the sub-words of a sentence between
its special tokens, the vector of a word is that of its last sub-word (or the first, or the mean),
START and STOP take those of the special tokens, a linear map without bias leads to the content,
and all of it is trained with the parser, unless the encoder is frozen. Unlike in their code each
form is split by itself (they join ``n't`` to the word before it as ``don 't``), and typographic
quotes and dashes stay.

The library makes up weights that are missing or do not fit, and downloads whatever a name stands
for today. Here a folder is read whole or not at all, and silently.
"""

from __future__ import annotations

import contextlib
import logging
import re
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from spmrl_bench.errors import PretrainedError
from spmrl_bench.nn.inputs import Boundary, Codes, Frozen, LexicalInput, Tokens
from spmrl_bench.nn.inputs.pretrained import encoder_folder, encoder_paths
from spmrl_bench.nn.kernels import autocast
from spmrl_bench.nn.layers import at_most
from spmrl_bench.nn.ragged import Ragged, SentenceDropout
from spmrl_bench.nn.settings import InputSettings, Rate
from spmrl_bench.nn.vocabulary import Vocabulary
from spmrl_bench.storage.files import check_regular, check_stored
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
#: Bytes that a file beside the weights may have.
LARGEST = 64 << 20
#: What transcriptions write for quotes, and what encoders have read.
PLAIN_QUOTES = {"``": '"', "''": '"', "`": "'"}

_COMMIT = re.compile(r"[0-9a-f]{40}")
# Kept by old files beside the weights, but computed today.
_COMPUTED = "position_ids", "token_type_ids"
_ANEW = "Copy all files of the tokenizer anew, tokenizer.json among them"
_SAME = "Copy config.json, the weights and the tokenizer from one and the same encoder"
# A vocabulary made of lower-cased text has next to no capitals.
_CAPITALS = 0.05
# Numbers that an encoder may have beside one for each byte of its weights.
_SPARE = 1 << 20


class Transformer(LexicalInput):
    """The vectors of words, mapped to the width of the input."""

    class Config(InputSettings):
        """Settings of the input ``transformer``."""

        name: str
        """Pretrained encoder: its name (``spmrl-bench model fetch``), folder or hub name."""
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

    def __init__(self, config: Config, vocabulary: Vocabulary, width: int, **options: Any) -> None:
        """Read an encoder; a PretrainedError says what is missing, broken or does not fit. A saved
        parser has its configuration and tokenizer, and weights unless they are frozen."""
        super().__init__(config, vocabulary, width, **options)
        assets: Path | None = options.get("assets")
        own = None if config.frozen else assets  # folder of a parser that has the weights
        weights = own or located(config.name, config.revision)
        folder = weights if assets is None else assets / ASSETS
        self._library_config = library_config = read_config(folder)
        if own is None:
            encoder = read_encoder(weights, library_config)
        else:
            with _explained(f"{folder / 'config.json'}: no encoder can be built", _SAME):
                _check_size(library_config, own.glob("*.safetensors"))
                encoder = _unfilled(library_config)
        self.subwords = Subwords(folder, library_config.pad_token_id)
        encoder = encoder.float().eval()
        encoder.pooler = None  # which is for tasks with one answer for a text
        rows = encoder.get_input_embeddings().num_embeddings
        if self.subwords.largest >= rows:
            raise PretrainedError(
                f"{config.name}: its tokenizer has ids up to {self.subwords.largest}, but the "
                f"encoder has {rows} embeddings. {_SAME}"
            )
        self.limit = _positions(encoder, library_config)
        self.encoder = Frozen(encoder) if config.frozen else encoder
        self.projection = nn.Linear(library_config.hidden_size, width, bias=False)
        self.dropout = SentenceDropout(config.dropout)

    def codes(self, form: str | Boundary) -> NDArray[np.int64]:
        return self.subwords.codes(form)

    def problem(self, lengths: NDArray[np.int64]) -> str:
        total = int(lengths.sum())
        if self.limit is None or total <= self.limit:
            return ""
        return (
            f"a sentence of {len(lengths) - 2} words, which are {total} sub-words with the special "
            f"tokens around them, but the encoder {self.config.name} reads at most {self.limit}. "
            "Split the sentence, leave it out, or use an encoder without a limit, such as XLNet"
        )

    def pretrained(self) -> list[nn.Parameter]:
        return list(self.encoder.parameters())  # none if it is frozen

    def forward(self, tokens: Tokens, codes: Codes | None) -> Tensor:
        assert codes is not None
        layout, sentence = tokens.layout, tokens.layout.sentence
        stops = layout.lengths.cumsum(0) - 1
        starts = stops + 1 - layout.lengths
        # Sub-words of each token and how many there are before it, and of each sub-word its token.
        counts = codes.lengths.index_select(0, codes.rows)
        before = counts.cumsum(0) - counts
        owner = torch.repeat_interleave(counts)
        within = torch.arange(len(owner), device=owner.device) - before[owner]
        widths = before[stops] + counts[stops] - before[starts]
        column = before - before[starts][sentence]
        if self.subwords.start_last:
            column = (column - counts[starts][sentence]) % widths[sentence]
        inner = Ragged(widths, sentence[owner], column[owner] + within, int(widths.max()))
        ids = inner.pad(codes.values[codes.rows[owner], within, None])[..., 0]
        given = {
            "input_ids": ids.masked_fill(~inner.mask, self.subwords.padding),
            "attention_mask": inner.mask.long(),
        }
        if any(self.subwords.types):
            start, word, stop = self.subwords.types
            types = torch.full_like(counts, word)
            types[starts], types[stops] = start, stop
            given["token_type_ids"] = inner.pad(types[owner, None])[..., 0]
        with autocast(self.precision, counts.device):
            states = inner.unpad(self.encoder(**given, return_dict=True).last_hidden_state)
            if self.config.pooling == "mean":
                words = torch.segment_reduce(states.float(), "mean", lengths=counts)
            else:
                last = self.config.pooling == "last"
                words = states.index_select(0, before + counts - 1 if last else before)
            words = self.projection(words)
        return self.dropout(words.to(self.projection.weight.dtype), layout)

    def save_assets(self, folder: Path) -> None:
        kept = folder / ASSETS
        kept.mkdir(exist_ok=True)
        with _explained(f"{kept}: cannot be written", "Is there room on the disk?"):
            self._library_config.save_pretrained(kept)
            self.subwords.tokenizer.save_pretrained(kept)


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
        with _explained(f"{folder}: its tokenizer cannot be used", _ANEW):
            self.tokenizer = _from_folder("AutoTokenizer", folder)
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
            mask, types = probe.special_tokens_mask, probe.type_ids
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
        # Segments that the encoder is told of START, of words and of STOP.
        self.types = types[-1 if self.start_last else 0], types[word], types[stop]
        candidates = padding, self.tokenizer.pad_token_id, unknown
        self.padding: int = next(each for each in candidates if each is not None)
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


# Folders --------------------------------------------------------------------------------


@contextlib.contextmanager
def _explained(what: str, remedy: str) -> Iterator[None]:
    """The library is silent, takes no random numbers, and its errors say what could not be done."""
    try:
        import transformers.initialization  # since version 5
    except ImportError as error:
        raise PretrainedError(
            "the input 'transformer' needs the package transformers of version 5 or later "
            f"({error}). Install it: pip install 'spmrl-bench[pretrained]'"
        ) from None
    output = transformers.utils.logging
    drawn, level = output.is_progress_bar_enabled(), output.get_verbosity()
    output.disable_progress_bar()
    output.set_verbosity(logging.CRITICAL)
    try:
        with (
            warnings.catch_warnings(action="ignore"),
            torch.random.fork_rng(devices=[]),
            torch.device("cpu"),
        ):
            yield
    except Exception as error:
        reason = " ".join(str(error).split())[:300] or type(error).__name__
        if isinstance(error, OSError) and error.strerror:
            reason = f"{error.filename}: {error.strerror}"
        raise PretrainedError(f"{what} ({reason}). {remedy}") from None
    finally:
        output.set_verbosity(level)
        if drawn:
            output.enable_progress_bar()


def _from_folder(auto: str, folder: Path, **options: Any) -> Any:
    """What a class of the library reads from a folder, without a network or code of others."""
    import transformers

    for path in sorted(folder.glob("*")):
        if any(map(path.match, WANTED)) and not path.is_dir():
            status = path.stat()
            check_regular(status, path)
            if path.suffix != ".safetensors" and status.st_size > LARGEST:
                raise ValueError(f"{path}: {status.st_size} bytes, at most {LARGEST} are read")
    options |= {"trust_remote_code": False, "local_files_only": True}
    return getattr(transformers, auto).from_pretrained(folder, **options)


def located(name: str, revision: str | None) -> Path:
    """Return the folder of an encoder; what is missing of one of the hub is fetched."""
    if revision is None and (folder := encoder_folder(name)) is not None:
        return folder
    if Path(name).is_dir():
        if revision is None:
            return Path(name)
        raise PretrainedError(f"{name}: a folder, but a revision is set ({revision}). Leave it out")
    if revision is None or not _COMMIT.fullmatch(revision):
        raise PretrainedError(
            f"{name}: no encoder that can be fetched ({', '.join(encoder_paths())}), no folder (of "
            "config.json, model.safetensors and a tokenizer), and for an "
            f"encoder of the hub (ORGANISATION/NAME) the revision is {revision!r}. Set it to the "
            "40 hexadecimal digits of a commit, so that the name always stands for the same weights"
        )
    with _explained(
        f"{name}: no folder, and revision {revision} cannot be fetched from the hub",
        "Check the name, the revision and the connection, or name the encoder's folder if it is "
        "on this machine",
    ):
        from huggingface_hub import snapshot_download

        options: Any = {"allow_patterns": list(WANTED), "ignore_patterns": ["*/*"]}
        return Path(snapshot_download(name, revision=revision, **options))


def read_config(folder: Path) -> Any:
    """Return the library's configuration of an encoder."""
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


def read_encoder(folder: Path, config: Any) -> Any:
    """Return the encoder of a folder, of which the configuration has been read."""
    with _explained(f"{folder}: its weights cannot be read", _SAME):
        _check_size(config, folder.glob("*.safetensors"))
        encoder, report = _from_folder(
            "AutoModel",
            folder,
            config=config,
            use_safetensors=True,
            output_loading_info=True,
            ignore_mismatched_sizes=True,  # to be told of all of them
        )
    weights = encoder.state_dict()
    parts = {name.partition(".")[0] for name in weights} - {"pooler"}  # heads do not count
    unexpected = report["unexpected_keys"]
    found = {
        "missing": report["missing_keys"],
        "of another shape": [key for key, *_ in report["mismatched_keys"]],
        "without a place": [key for key in unexpected if not key.endswith(_COMPUTED)],
        "not finite": [name for name, weight in weights.items() if not weight.isfinite().all()],
    }
    faults = [
        f"{key} ({fault})"
        for fault, keys in found.items()
        for key in sorted(keys)
        if key.removeprefix(f"{encoder.base_model_prefix}.").partition(".")[0] in parts
    ]
    if faults:
        raise PretrainedError(
            f"{folder}: {len(faults)} weights do not fit the encoder that config.json describes: "
            f"{', '.join(faults[:3])}. {_SAME}"
        )
    return encoder


def _check_size(config: Any, files: Iterable[Path]) -> None:
    """Make sure that an encoder is not much larger than its files, before any of it is made."""
    room = _SPARE
    for path in files:
        status = path.stat()
        check_stored(status, path)
        room += status.st_size
    problem = ValueError("config.json describes an encoder that is too large for the weights")
    with at_most(room, problem), torch.device("meta"):
        _unfilled(config)


def _unfilled(config: Any) -> Any:
    """An encoder for whose weights no numbers are drawn, which takes long."""
    from transformers import AutoModel
    from transformers.initialization import no_init_weights

    with no_init_weights():
        return AutoModel.from_config(config, trust_remote_code=False)


def _positions(encoder: nn.Module, config: Any) -> int | None:
    """How many sub-words an encoder can read at once; None if any number."""
    for name, module in encoder.named_modules():
        table = name.rpartition(".")[2] == "position_embeddings"
        if table and isinstance(module, nn.Embedding) and module.padding_idx is not None:
            # RoBERTa and its kin count from the row after that of the padding.
            return module.num_embeddings - module.padding_idx - 1
    stated = getattr(config, "max_position_embeddings", None)
    return stated if isinstance(stated, int) and stated > 0 else None
