"""The command ``spmrl-bench``: a thin layer of words over the package.

Every command parses its arguments, calls one function of the package and prints what it returns:
results on standard output, all else on standard error. What it needs is imported when it runs, so
that ``--help`` answers at once and only the commands that train or parse load torch.
"""

from __future__ import annotations

# Importing a module of commands registers them with the application, in the order of its help.
# isort: off
from spmrl_bench.cli import training, parsing, scoring  # noqa: F401
from spmrl_bench.cli import model, recipes, results, runs, studies, systems, treebanks  # noqa: F401

# isort: on
from spmrl_bench.cli.app import app
from spmrl_bench.entry import main

__all__ = ["app", "main"]
