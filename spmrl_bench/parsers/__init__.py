"""Whole parsers out of layers and chart, and the one registry of parser kinds."""

from spmrl_bench.parsers.registry import load_parser, parser_kinds

__all__ = ["load_parser", "parser_kinds"]
