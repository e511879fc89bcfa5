"""Whole parsers out of layers and chart, and the one registry of parser kinds."""

from spmrl_bench.parsers.registry import combine, load_parser

__all__ = ["combine", "load_parser"]
