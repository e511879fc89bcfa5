"""A parser as two files: what it is (JSON) and its weights (safetensors).

The weights' file has, as a note, a digest of what the description says of their meaning: nothing
else could tell that a vocabulary is in another order. The description has a digest of the numbers:
with a flipped bit a parser would go on parsing. Weights that training leaves as they are lie in
files of others; the description has their SHA-256, and they must be there again, unchanged.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, TypeVar

import torch
from pydantic import BaseModel, Field, ValidationError
from safetensors.torch import save
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from spmrl_bench.errors import CheckpointError, PretrainedError, SpmrlError
from spmrl_bench.nn.inputs.pretrained import encoder_folder
from spmrl_bench.parsers.base import Description, ParserConfig, not_a_parser
from spmrl_bench.parsers.legacy import FLAT, current_name, leaves, nested
from spmrl_bench.storage.digests import digest, file_digest
from spmrl_bench.storage.files import LIMIT, write_new, write_text
from spmrl_bench.storage.garbage import no_collection
from spmrl_bench.storage.json import read_json
from spmrl_bench.storage.tensors import check_state, content_digest, read_tensors
from spmrl_bench.storage.toml import UNKNOWN, describe_mistake, validated

Parser = TypeVar("Parser", bound=nn.Module)

#: The file with the temperature, of parsers that have one.
TEMPERATURE = "temperature.json"
#: The note of the weights' file that has the digest.
_NOTE = "description"


def save_parser(parser: Any, config: ParserConfig, vocabulary: object, folder: Path) -> None:
    """Write ``parser.json``, with a vocabulary in JSON, and ``weights.safetensors`` into a folder
    without them; CheckpointError if the description is larger than one that is read."""
    content = {"kind": parser.kind, "config": config.model_dump(mode="json")}
    weights = {name: tensor.contiguous() for name, tensor in parser.state_dict().items()}
    content |= {"vocabulary": vocabulary, "weights": content_digest(weights)}
    if files := dict(_pretrained_files(config)):
        content["pretrained"] = {
            name: {"sha256": file_digest(path), "bytes": path.stat().st_size}
            for name, path in files.items()
        }
    data = f"{json.dumps(content, ensure_ascii=False, separators=(',', ':'))}\n".encode()
    if len(data) > LIMIT:
        raise CheckpointError(
            f"{folder / 'parser.json'}: would have {len(data)} bytes, and at most {LIMIT} are "
            "read. Train on fewer different words"
        )
    write_new(folder / "parser.json", data)
    # One note alone: the library writes several in any order. A description whose bytes are those
    # that were written needs no look into it.
    note = f"{hashlib.sha256(data).hexdigest()} {_digest_of(content, config)}"
    write_new(folder / "weights.safetensors", save(weights, {_NOTE: note}))


def load_saved(
    folder: Path,
    description: Description | None,
    config_class: type[ParserConfig],
    build: Callable[[Any, Any], Parser],
) -> Parser:
    """Return the parser of a folder that :func:`save_parser` has written to, as
    :meth:`~spmrl_bench.parsers.base.Parser.load`.

    ``build`` makes it of its settings and its vocabulary in JSON, of tensors that nobody fills; the
    weights' file must have each of them. Parsers of early versions have no digest.
    """
    path, weights_path = folder / "parser.json", folder / "weights.safetensors"
    content, digest = description or Description.read(folder)
    with _reported(path, config_class):
        config = config_class.model_validate(nested(content["config"]))
        # Before anything is hashed or read that the description names.
        _check_pretrained(path, config, content.get("pretrained", {}))
    with _fitting(weights_path):
        mapped, notes = read_tensors(weights_path)
    # Of its own, since the file may be written over; those of packages may be rounded.
    weights = {
        current_name(name): tensor.float() if tensor.dtype == torch.bfloat16 else tensor.clone()
        for name, tensor in mapped.items()
    }
    with _reported(path, config_class):
        vocabulary, numbers = content["vocabulary"], sum(map(Tensor.numel, weights.values()))
        for part in ("labels", "relations"):  # of which each has weights
            if (count := len(vocabulary.get(part, ()))) > numbers:
                raise ValueError(f"{count} {part}, too large for weights of {numbers} numbers")
        with no_collection(), _Unfilled():
            parser = build(config, vocabulary)
    with _fitting(weights_path):
        check_state(weights, parser.state_dict())
        parser.load_state_dict(weights, assign=True)
    # Versions before had no digest of the weights.
    if "weights" in content and content["weights"] != content_digest(mapped):
        raise CheckpointError(
            f"{weights_path}: has changed since it was saved: its numbers are not those that "
            "training has left. Train again, or copy the whole folder anew"
        )
    whole, _, meaning = notes.get(_NOTE, "").partition(" ")
    if whole not in ("", digest) and meaning != _digest_of(content, config):
        raise CheckpointError(
            f"{path}: has changed since the weights beside it were saved: its inventories or "
            "settings are not those that they were trained with, or are in another order. Put "
            "the file of that time back, or copy the whole folder anew"
        )
    return parser


class _Temperature(BaseModel, allow_inf_nan=False, extra="ignore"):
    temperature: Annotated[float, Field(gt=0)]
    content: str  # a digest of it


def save_temperature(temperature: float, folder: Path) -> None:
    """Write the temperature of a parser beside its files, which it changes nothing of."""
    content = {"temperature": temperature}
    write_text(folder / TEMPERATURE, json.dumps(content | {"content": digest(content)}) + "\n")


def read_temperature(folder: Path) -> float | None:
    """Return that of a folder, None where it has none; CheckpointError if it is broken."""
    path = folder / TEMPERATURE
    if not path.exists():
        return None
    content = validated(_Temperature, read_json(path, CheckpointError), path, CheckpointError)
    if content.content != digest({"temperature": content.temperature}):
        raise CheckpointError(
            f"{path}: has changed since it was saved. Fit it anew: remove it, and "
            "'spmrl-bench model calibrate --fit'"
        )
    return content.temperature


@contextmanager
def _reported(path: Path, config_class: type[ParserConfig]) -> Iterator[None]:
    """Say in one line what is wrong with a description, whatever is built of it."""
    try:
        yield
    except ValidationError as error:
        mistakes = error.errors()
        reason = "; ".join(describe_mistake(config_class, each) for each in mistakes[:3])
        if any(each["type"] == UNKNOWN for each in mistakes):
            raise CheckpointError(f"{path}: {reason} Install the package that adds it") from None
        raise not_a_parser(path, reason) from None
    except SpmrlError:
        raise
    except KeyError as error:
        raise not_a_parser(path, f"no {error.args[0]}") from None
    except Exception as error:  # of any class: values have wrong types and sizes
        raise not_a_parser(path, _in_one_line(error) or type(error).__name__) from None


@contextmanager
def _fitting(path: Path) -> Iterator[None]:
    """Say in one line what is wrong with the weights."""
    try:
        yield
    except FileNotFoundError:
        raise CheckpointError(
            f"{path}: missing. Train again, or copy the whole folder anew"
        ) from None
    except OSError as error:
        raise CheckpointError(f"{path}: cannot be read: {error.strerror or error}") from None
    except (ValueError, RuntimeError) as error:
        raise CheckpointError(
            f"{path}: does not fit parser.json: {_in_one_line(error)}. Was it cut short or "
            "replaced? Train again, or copy the whole folder anew"
        ) from None


def _in_one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:500]


class _Unfilled(TorchFunctionMode):
    """Within it no weights are drawn, and memory that is not filled is not taken."""

    def __torch_function__(
        self, func: Callable[..., object], types: object, args: Any = (), kwargs: Any = None
    ) -> object:
        given = kwargs or {}
        drawn = func in (Tensor.normal_, Tensor.uniform_)
        if drawn or getattr(func, "__module__", "") == nn.init.__name__:
            return given["tensor"] if "tensor" in given else args[0]
        return func(*args, **given)


def _digest_of(description: Mapping[str, Any], config: ParserConfig) -> str:
    """Digest what a description says of the meaning of its weights: the inventories, each in its
    order, and the settings, but for places of files and those that a trained parser may change."""
    files, settings = config.files().keys(), description["config"]
    free = {"precision", *config.free, *files}
    if "lexical" in settings:  # under old names
        free |= {key for key, places in FLAT.items() if not files.isdisjoint(places)}
    else:
        settings = leaves(settings)
    settings = {key: value for key, value in settings.items() if key not in free}
    content = {key: description[key] for key in ("kind", "vocabulary")} | {"config": settings}
    text = json.dumps(content, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _pretrained_files(config: ParserConfig) -> Iterator[tuple[str, Path]]:
    """Yield the files with weights that training does not change and that are not saved, under the
    names that are noted: of an encoder that has one, wherever it lies on this machine."""
    for place in config.outside().values():
        if (folder := encoder_folder(place)) is not None:
            yield f"{place}/model.safetensors", folder / "model.safetensors"
            continue
        path = Path(place)
        files = sorted(path.glob("*.safetensors")) if path.is_dir() else [path]
        yield from ((str(file), file) for file in files)


def _check_pretrained(path: Path, config: ParserConfig, noted: Mapping[str, Any]) -> None:
    """Check that the files of others are there, unchanged; of another size, none is read."""
    files = dict(_pretrained_files(config))
    for name, note in noted.items():
        file = files.get(name, Path(name))
        # In the past only the digest was noted.
        digest, size = (note["sha256"], note["bytes"]) if isinstance(note, dict) else (note, None)
        if not isinstance(digest, str):
            raise TypeError(f"pretrained: the digest of {name} is no text")
        if not file.is_file():
            raise PretrainedError(
                f"{file}: missing; the parser described by {path} was trained with it. Put it back"
            )
        if name not in files:
            raise ValueError(f"pretrained: {name} is no file that the settings name")
        if size not in (None, file.stat().st_size) or file_digest(file) != digest:
            raise PretrainedError(
                f"{file}: has changed since the parser described by {path} was trained with it "
                f"(its SHA-256 was {digest}). Put the file of that time back"
            )
