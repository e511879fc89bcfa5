"""What a tree is: read-only arrays of spans or heads, graphs, and named transforms between them."""

from spmrl_bench.trees.dependencies import DependencyTree
from spmrl_bench.trees.parse import LAYERS, Layer, Parse
from spmrl_bench.trees.tree import Tree

__all__ = ["LAYERS", "DependencyTree", "Layer", "Parse", "Tree"]
