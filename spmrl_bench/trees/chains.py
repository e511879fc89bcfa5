"""Unary chains as single labels: what a chart, which has one label for a span, sees of a tree.

A tree may have several constituents over one span, each the only child of the one before. A
chart has one cell there, so the chain is one decision: its label is the tuple of nonterminals,
top to bottom. Tags are never part of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from spmrl_bench.trees.tree import Constituent, Tree

Label = tuple[str, ...]
#: ``(start, end, label)`` of a labelled span.
LabelRow = tuple[int, int, Label]


def label_rows(tree: Tree) -> Iterator[LabelRow]:
    """``(start, end, label)`` of every labelled span, unary chains collapsed, in pre-order."""
    span: tuple[int, int] | None = None
    chain: list[str] = []
    for start, end, name in tree.constituents():
        if span is not None and span != (start, end):
            yield *span, tuple(chain)
            chain = []
        span = (start, end)
        chain.append(name)
    if span is not None:
        yield *span, tuple(chain)


def written_out(rows: Iterable[LabelRow]) -> Iterator[Constituent]:
    """The constituents of labelled spans, chains written out; the inverse of :func:`label_rows`."""
    for start, end, label in rows:
        for name in label:
            yield start, end, name
