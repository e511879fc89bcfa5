"""A parser as two files: what it is (JSON) and its weights (safetensors).

The weights' file has, as a note, a digest of what the description says of their meaning: a
vocabulary in another order would give other words to the rows of a table, and nothing else could
tell.

Weights that training leaves as they are lie in files of their own, which may be large and are
not copied. The description has their names and SHA-256, and they must be there again, unchanged.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError
from safetensors.torch import save
from torch import nn

from spmrl_bench.bounded_files import LIMIT
from spmrl_bench.errors import CheckpointError, PretrainedError, SpmrlError
from spmrl_bench.files import put
from spmrl_bench.garbage import no_collection
from spmrl_bench.parsers.base import not_a_parser, read_whole_description
from spmrl_bench.parsers.config import ParserConfig
from spmrl_bench.pretrained.digests import file_digest
from spmrl_bench.storage.toml import describe_mistake
from spmrl_bench.tensor_budget import TensorBudget
from spmrl_bench.tensor_files import Stored, TensorFile, others

Parser = TypeVar("Parser", bound=nn.Module)

#: The note of the weights' file that has the digest.
_NOTE = "description"

# What comes of values that are of the wrong type or size, in whatever is built of them.
_OF_WRONG_VALUES = (
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    ArithmeticError,
    MemoryError,
)


def save_parser(
    parser: nn.Module, description: Mapping[str, Any], config: ParserConfig, folder: Path
) -> None:
    """Write ``parser.json`` and ``weights.safetensors`` into a folder without them.

    Raises:
        CheckpointError: the description is larger than one that is read.
    """
    files = {str(path): file_digest(path) for path in pretrained_files(config)}
    content = {**description, **({"pretrained": files} if files else {})}
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":")) + "\n"
    data = text.encode()
    if len(data) > LIMIT:
        raise CheckpointError(
            f"{folder / 'parser.json'}: would have {len(data)} bytes, and at most {LIMIT} are "
            "read. Train on fewer different words"
        )
    put(folder / "parser.json", [data])
    # One note alone: the library writes several in any order. Whoever finds the description as it
    # was written need not look into it.
    note = f"{hashlib.sha256(data).hexdigest()} {digest_of(content, config)}"
    weights = {name: tensor.contiguous() for name, tensor in parser.state_dict().items()}
    put(folder / "weights.safetensors", [save(weights, {_NOTE: note})])


def load_saved(
    folder: Path,
    config_class: type[ParserConfig],
    build: Callable[[Any, Mapping[str, Any]], Parser],
) -> Parser:
    """The parser of a folder.

    Nothing that the description says is believed before the header of the weights agrees: no more
    is built than has weights, and each tensor has to have its name, type and shape. Parsers saved
    before there were digests have none, so that nobody can tell whether a vocabulary was put into
    another order since.

    Args:
        folder: that :func:`save_parser` has written to.
        config_class: of its settings.
        build: makes a parser, whose weights do not matter, of its settings and its description.

    Raises:
        CheckpointError: the files are missing, broken, or do not fit each other.
        PretrainedError: a file that the parser was trained with is missing or has changed.
    """
    path, weights_path = folder / "parser.json", folder / "weights.safetensors"
    description, digest = read_whole_description(folder)
    try:
        config = config_class.model_validate(config_class.noted(description["config"]))
        # Before anything is hashed or read that the description names.
        _check_pretrained(path, description.get("pretrained", {}))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise not_a_parser(path, _in_words(error, config_class)) from None
    with _weights(weights_path, path) as weights:
        try:
            _check_inventories(description["vocabulary"], weights.numbers)
            with no_collection(), TensorBudget(len(weights.tensors), weights.numbers):
                parser = build(config, description)
        except SpmrlError:
            raise
        except (OSError, RuntimeError, *_OF_WRONG_VALUES) as error:
            raise not_a_parser(path, _in_words(error, config_class)) from None
        try:
            state = parser.state_dict()
            weights.check({name: Stored.of(tensor) for name, tensor in state.items()})
            parser.load_state_dict(weights.read(), assign=True)
        except (OSError, ValueError, RuntimeError) as error:
            raise _unfit(weights_path, path, error) from None
        whole, _, meaning = weights.notes.get(_NOTE, "").partition(" ")
        if whole not in ("", digest) and meaning != digest_of(description, config):
            raise CheckpointError(
                f"{path}: has changed since the weights beside it were saved: its inventories or "
                "settings are not those that they were trained with, or are in another order. Put "
                "the file of that time back, or copy the whole folder anew"
            )
    return parser


def _check_inventories(vocabulary: Mapping[str, Any], numbers: int) -> None:
    """Make sure that there are weights for the labels and relations, of which each has some."""
    for part in ("labels", "relations"):
        if len(vocabulary.get(part, ())) > numbers:
            raise ValueError(
                f"{len(vocabulary[part])} {part}, which is too large for the weights, which are "
                f"{numbers} numbers"
            )


def digest_of(description: Mapping[str, Any], config: ParserConfig) -> str:
    """SHA-256 of what a description says of the meaning of its weights, in hex.

    These are all inventories, each in its order, and the settings, but for those that may be
    changed in a trained parser: how it searches, in which precision, and where files are that lie
    beside it (of which the description has a digest each).
    """
    free = {"precision", *config.parsing_settings, *config.pretrained()}
    settings = {key: value for key, value in description["config"].items() if key not in free}
    content = {key: description[key] for key in ("kind", "vocabulary")} | {"config": settings}
    text = json.dumps(content, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


@contextmanager
def _weights(path: Path, description: Path) -> Iterator[TensorFile]:
    """The open file of the weights."""
    try:
        file = TensorFile(path)
    except FileNotFoundError:
        raise CheckpointError(
            f"{path}: missing. Train again, or copy the whole folder anew"
        ) from None
    except (OSError, ValueError) as error:
        raise _unfit(path, description, error) from None
    with file:
        yield file


def _unfit(path: Path, description: Path, error: Exception) -> CheckpointError:
    reason = getattr(error, "strerror", None) or " ".join(str(error).split())[:500]
    return CheckpointError(
        f"{path}: does not fit {description.name}: {reason}. Was it cut short or replaced? "
        "Train again, or copy the whole folder anew"
    )


def _in_words(error: Exception, config_class: type[ParserConfig]) -> str:
    """What is wrong with a description, in one line."""
    if isinstance(error, ValidationError):
        mistakes = [describe_mistake(config_class, item) for item in error.errors()]
        return "; ".join(mistakes[:3]) + others(len(mistakes) - 3)
    if isinstance(error, KeyError):
        return f"no {error.args[0]}"
    return " ".join(str(error).split())[:500] or type(error).__name__


def pretrained_files(config: ParserConfig) -> Iterator[Path]:
    """Files with weights that training does not change and that are not saved."""
    for key, place in config.pretrained().items():
        if key == "word_vectors":
            continue  # training changes what it begins with
        if key != "transformer":
            yield Path(place)
        elif getattr(config, "transformer_frozen", False):
            yield from sorted(Path(place).glob("*.safetensors"))


def _check_pretrained(path: Path, files: Mapping[str, str]) -> None:
    for name, digest in files.items():
        file = Path(name)
        if not isinstance(digest, str):
            raise TypeError(f"pretrained: the digest of {name} is no text")
        if not file.is_file():
            raise PretrainedError(
                f"{file}: missing; the parser described by {path} was trained with it. Put it back"
            )
        if file_digest(file) != digest:
            raise PretrainedError(
                f"{file}: has changed since the parser described by {path} was trained with it "
                f"(its SHA-256 was {digest}). Put the file of that time back"
            )
