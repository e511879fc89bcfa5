"""spmrl_bench: train, select and score neural parsers over many treebanks.

The top-level package imports nothing heavy: reading trees and scoring them needs
neither torch nor a model.
"""

__version__ = "0.1.0"
