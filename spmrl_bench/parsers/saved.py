"""A parser as two files: what it is (JSON) and its weights (safetensors).

Weights that training leaves as they are lie in files of their own, which may be large and are
not copied. The description has their names and SHA-256, and they must be there again, unchanged.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from spmrl_bench.errors import CheckpointError, PretrainedError
from spmrl_bench.files import put
from spmrl_bench.parsers.base import not_a_parser, read_description
from spmrl_bench.parsers.config import ParserConfig
from spmrl_bench.pretrained.digests import file_digest
from spmrl_bench.tensors import safetensors_bytes

Parser = TypeVar("Parser", bound=nn.Module)


def save_parser(
    parser: nn.Module, description: Mapping[str, Any], config: ParserConfig, folder: Path
) -> None:
    """Write ``parser.json`` and ``weights.safetensors`` into a folder without them."""
    files = {str(path): file_digest(path) for path in pretrained_files(config)}
    content = {**description, **({"pretrained": files} if files else {})}
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    put(folder / "parser.json", [f"{text}\n".encode()])
    put(folder / "weights.safetensors", safetensors_bytes(parser.state_dict()))


def load_saved(folder: Path, build: Callable[[Mapping[str, Any]], Parser]) -> Parser:
    """The parser of a folder.

    Args:
        folder: that :func:`save_parser` has written to.
        build: makes a parser, whose weights do not matter, of its description.

    Raises:
        CheckpointError: the files are missing, broken, or do not fit each other.
        PretrainedError: a file that the parser was trained with is missing or has changed.
    """
    path = folder / "parser.json"
    description = read_description(folder)
    try:
        _check_pretrained(path, description.get("pretrained", {}))
        with _Unfilled():
            parser = build(description)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RuntimeError) as error:
        raise not_a_parser(path, error) from None
    weights_path = folder / "weights.safetensors"
    try:
        # What was read is used as it lies in the file, which is mapped into memory.
        parser.load_state_dict(load_file(weights_path), assign=True)
    except FileNotFoundError:
        raise CheckpointError(
            f"{weights_path}: missing. Train again, or copy the whole folder anew"
        ) from None
    except (OSError, SafetensorError, RuntimeError) as error:
        reason = " ".join(str(error).split())[:300]
        raise CheckpointError(
            f"{weights_path}: does not fit {path.name}: {reason}. Was it cut short or "
            "replaced? Train again, or copy the whole folder anew"
        ) from None
    return parser


def pretrained_files(config: ParserConfig) -> Iterator[Path]:
    """Files with weights that training does not change and that are not saved."""
    for key, place in config.pretrained().items():
        if key != "transformer":
            yield Path(place)
        elif getattr(config, "transformer_frozen", False):
            yield from sorted(Path(place).glob("*.safetensors"))


def _check_pretrained(path: Path, files: Mapping[str, str]) -> None:
    for name, digest in files.items():
        file = Path(name)
        if not file.is_file():
            raise PretrainedError(
                f"{file}: missing; the parser described by {path} was trained with it. Put it back"
            )
        if file_digest(file) != digest:
            raise PretrainedError(
                f"{file}: has changed since the parser described by {path} was trained with it "
                f"(its SHA-256 was {digest}). Put the file of that time back"
            )


class _Unfilled(TorchFunctionMode):
    """Within it, no random numbers are drawn for weights that will be replaced.

    Memory that is not filled is not taken either. (The device ``meta`` would do as much, but
    draws random numbers by way of the compiler, whose modules take a second to load.)
    """

    def __torch_function__(
        self,
        func: Callable[..., object],
        types: object,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> object:
        kwargs = kwargs or {}
        if func in (Tensor.normal_, Tensor.uniform_):
            return args[0]
        if getattr(func, "__module__", "") == nn.init.__name__:
            return kwargs["tensor"] if "tensor" in kwargs else args[0]
        return func(*args, **kwargs)
