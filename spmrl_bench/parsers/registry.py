"""Which parser a saved folder holds, and how to load it.

A saved parser is a folder with ``parser.json`` (kind, configuration, vocabulary) and
``weights.safetensors``. Nothing is unpickled, so loading runs no code from the file. The
kind is checked before the weights are opened, and every tensor must be there with the
declared shape.
"""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import TYPE_CHECKING

from spmrl_bench.errors import CheckpointError, unknown_name

if TYPE_CHECKING:
    from spmrl_bench.parsers.chart_parser import ChartParser

# Kind to "module:class"; imported when first used, since a parser brings torch along.
KINDS = {"chart": "spmrl_bench.parsers.chart_parser:ChartParser"}


def parser_kinds() -> list[str]:
    """Names of the parser kinds that can be trained and loaded."""
    return sorted(KINDS)


def load_parser(folder: str | Path, device: str = "auto") -> ChartParser:
    """Load a trained parser, ready to parse.

    Args:
        folder: a folder written by :meth:`ChartParser.save`, or a run folder of ``train``,
            whose best parser is then taken.
        device: ``auto`` (CUDA when present), ``cpu``, ``cuda`` or ``cuda:N``.

    Raises:
        CheckpointError: not a parser folder, an unknown kind, or weights that do not fit.
    """
    folder = Path(folder)
    place = folder / "best" if (folder / "best" / "parser.json").is_file() else folder
    description_path = place / "parser.json"
    try:
        description = json.loads(description_path.read_text(encoding="utf-8"))
        kind = str(description["kind"])
    except (FileNotFoundError, NotADirectoryError):
        raise CheckpointError(
            f"{folder}: no trained parser here (no parser.json, no best/parser.json). "
            "Give a run folder written by 'spmrl-bench train'"
        ) from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CheckpointError(f"{description_path}: not a parser description ({error})") from None
    if kind not in KINDS:
        raise CheckpointError(f"{description_path}: {unknown_name('parser kind', kind, KINDS)}")
    module, name = KINDS[kind].split(":")
    parser: ChartParser = getattr(importlib.import_module(module), name).load(place)
    from spmrl_bench.parsers.device import choose_device

    return parser.to(choose_device(device)).eval()
