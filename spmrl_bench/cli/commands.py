"""All commands: importing a module of them registers them with the application."""

from __future__ import annotations

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
from spmrl_bench.cli.app import app

__all__ = ["app"]
