"""A tree as boxes within boxes, for whoever looks at it in a page."""

from __future__ import annotations

from collections.abc import Collection
from html import escape

from spmrl_bench.trees.tree import Tree, collapsed_spans


def boxes(tree: Tree, marked: Collection[tuple[int, int]] = ()) -> str:
    """The tree as HTML, of any depth; words and labels are escaped.

    A constituent is a ``span`` of the class ``node``, with its label in ``b`` and unary chains
    joined by ``+``; those whose spans ``[start, end)`` are marked have the class ``mark`` too. A
    word is a ``span`` of the class ``word``.
    """
    opened, closed = [""] * len(tree), [""] * len(tree)
    for start, end, label in collapsed_spans(tree):
        if any(label):  # the root of some treebanks has no label
            mark = " mark" if (start, end) in marked else ""
            opened[start] += f'<span class="node{mark}"><b>{escape("+".join(label))}</b>'
            closed[end - 1] += "</span>"
    words = (f'<span class="word">{escape(word)}</span>' for word in tree.words)
    return "".join(map("".join, zip(opened, words, closed, strict=True)))
