"""The command ``spmrl-bench``: a thin layer of words over the package.

Every command parses its arguments, calls one function of the package and prints what it
returns: results on standard output, everything else on standard error. What a command needs
is imported when it runs, so that ``--help`` answers at once and only the commands that train
or parse load torch.
"""

from __future__ import annotations

import os

# Importing a module of commands registers them with the application.
from spmrl_bench.cli import (  # noqa: F401
    attention,
    bench,
    comparisons,
    dependencies,
    heads,
    listings,
    multilingual,
    parsing,
    runs,
    scores,
    study,
    treebanks,
)
from spmrl_bench.cli.app import FAILED, app
from spmrl_bench.cli.standard_streams import standard_streams

__all__ = ["app", "main"]


def main() -> None:
    """Entry point: the command line, whatever its standard streams are."""
    # GNU OpenMP threads spin while they wait. When another program needs a core, that slows
    # training down twentyfold; a short spin keeps most of the speed of an idle machine.
    os.environ.setdefault("GOMP_SPINCOUNT", "10000")
    with standard_streams(FAILED):
        app(prog_name="spmrl-bench")
