"""What a tree is: frozen span arrays, and named transforms between trees."""

from spmrl_bench.trees.parse import LAYERS, Layer, Parse
from spmrl_bench.trees.tree import Tree

__all__ = ["LAYERS", "Layer", "Parse", "Tree"]
