"""spmrl_bench: train, select and score neural parsers over many treebanks.

The top-level package imports nothing heavy: reading trees and scoring them needs
neither torch nor a model.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from spmrl_bench.parsing.models import load_parser

__all__ = ["load_parser"]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    if name != "load_parser":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from spmrl_bench.parsing.models import load_parser

    return load_parser
