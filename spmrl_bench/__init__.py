"""spmrl_bench: train, select and score parsers over many treebanks.

What a program needs of it, imported when it is used: trees are read and scored without torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from spmrl_bench.errors import SpmrlError
    from spmrl_bench.experiments.plan import evaluate, train
    from spmrl_bench.leaderboard.board import results_frame
    from spmrl_bench.parsers.base import Parser
    from spmrl_bench.parsing.models import load_parser as load
    from spmrl_bench.readers.brackets import read_brackets_file as read_trees
    from spmrl_bench.readers.conll import read_dependencies
    from spmrl_bench.scoring.attachment import score_dependencies
    from spmrl_bench.scoring.texts import score_trees
    from spmrl_bench.treebanks.treebank import open_treebank
    from spmrl_bench.trees.dependencies import DependencyTree
    from spmrl_bench.trees.parse import Parse
    from spmrl_bench.trees.tree import Tree

__all__ = [
    "DependencyTree", "Parse", "Parser", "SpmrlError", "Tree", "evaluate", "load", "open_treebank",
    "read_dependencies", "read_trees", "results_frame", "score_dependencies", "score_trees",
    "train",
]  # fmt: skip
__version__ = "0.1.0"

_PLACES = {
    "DependencyTree": "trees.dependencies:DependencyTree",
    "Parse": "trees.parse:Parse",
    "Parser": "parsers.base:Parser",
    "SpmrlError": "errors:SpmrlError",
    "Tree": "trees.tree:Tree",
    "evaluate": "experiments.plan:evaluate",
    "load": "parsing.models:load_parser",
    "open_treebank": "treebanks.treebank:open_treebank",
    "read_dependencies": "readers.conll:read_dependencies",
    "read_trees": "readers.brackets:read_brackets_file",
    "results_frame": "leaderboard.board:results_frame",
    "score_dependencies": "scoring.attachment:score_dependencies",
    "score_trees": "scoring.texts:score_trees",
    "train": "experiments.plan:train",
}


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, _, attribute = _PLACES[name].partition(":")
    return getattr(import_module(f"{__name__}.{module}"), attribute)
