"""Two trees of a sentence side by side as text, with the constituents marked that differ.

Constituents that fit into the rest of a line stand on it whole; the children of others stand below
each other. Nothing recurses, so that trees may be of any depth.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from itertools import zip_longest

from spmrl_bench.parsers.base import Margin
from spmrl_bench.trees.dependencies import DependencyTree
from spmrl_bench.trees.tree import Tree, collapsed_spans

#: Stands before the label of a constituent that the other tree has not, or has with another label.
MARK = "*"

Span = tuple[int, int]


@dataclass
class Node:
    """A constituent, unary chains as one and joined by ``+``; marked, if it differs.

    Above all others, where they have no root, the label is empty. Children are nodes and, for
    words, their numbers from 0.
    """

    start: int
    end: int
    label: str
    marked: bool
    children: list[Node | int] = field(default_factory=list)


def nodes(tree: Tree, marked: Collection[Span]) -> list[Node]:
    """The constituents in pre-order; the first is over all words and has no label of its own."""
    top = Node(0, len(tree), "", False)
    found, open_nodes = [top], [top]
    done = 0  # words that have been put somewhere

    def close(until: int) -> None:
        nonlocal done
        while len(open_nodes) > 1 and open_nodes[-1].end <= until:
            node = open_nodes.pop()
            node.children += range(done, node.end)
            done = max(done, node.end)

    for start, end, label in collapsed_spans(tree):
        close(start)
        open_nodes[-1].children += range(done, start)
        done = start
        node = Node(start, end, "+".join(label), (start, end) in marked)
        open_nodes[-1].children.append(node)
        open_nodes.append(node)
        found.append(node)
    close(len(tree))
    top.children += range(done, len(tree))
    return found


def tree_lines(tree: Tree, marked: Collection[Span], width: int) -> list[str]:
    """A tree in brackets on lines of a width, if words and depth allow it."""
    found = nodes(tree, marked)
    flat: dict[int, str] = {}
    for node in reversed(found):
        parts = [
            tree.words[child] if isinstance(child, int) else flat[id(child)]
            for child in node.children
        ]
        inside = " ".join(parts)
        flat[id(node)] = f"{_opening(node)} {inside})" if node.label else inside
    lines: list[str] = []
    # What is to be written: a node or word, its indentation, and the brackets that close after it.
    waiting: list[tuple[Node | int, int, str]] = [(found[0], 0, "")]
    while waiting:
        item, indent, closing = waiting.pop()
        text = tree.words[item] if isinstance(item, int) else flat[id(item)]
        if isinstance(item, int) or indent + columns(text) + len(closing) <= width:
            lines.append(f"{' ' * indent}{text}{closing}")
            continue
        if item.label:
            lines.append(f"{' ' * indent}{_opening(item)}")
            indent, closing = indent + 2, ")" + closing
        last = len(item.children) - 1
        for k in range(last, -1, -1):
            waiting.append((item.children[k], indent, closing if k == last else ""))
    return lines


def _opening(node: Node) -> str:
    return f"({MARK * node.marked}{node.label}"


def side_by_side(gold: Tree, parser: Tree, marked: Collection[Span], width: int) -> Iterator[str]:
    """Lines with the gold tree on the left and the parser's on the right.

    Where one is too wide for that, they stand below each other.
    """
    half = (width - 3) // 2
    left, right = (tree_lines(tree, marked, half) for tree in (gold, parser))
    if max(map(columns, left), default=0) > half:
        yield from ("gold", *tree_lines(gold, marked, width))
        yield from ("parser", *tree_lines(parser, marked, width))
        return
    for one, other in zip_longest(["gold", *left], ["parser", *right], fillvalue=""):
        yield f"{_padded(one, half)} | {other}".rstrip()


def arcs_side_by_side(
    gold: DependencyTree, parser: DependencyTree, differences: Collection[Margin]
) -> Iterator[str]:
    """A line for each word with its head and relation in both trees."""
    margins = {one.start: one.margin for one in differences}
    rows = [("", "word", "gold", "parser", "margin")]
    for k, word in enumerate(gold.words):
        own = f"{gold.relations[k]} {head_text(gold, k)}"
        found, margin = "", ""
        if k in margins:
            found, margin = f"{parser.relations[k]} {head_text(parser, k)}", f"{margins[k]:.2f}"
        rows.append((MARK if k in margins else "", f"{k + 1} {word}", own, found, margin))
    widths = [max(map(columns, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [_padded(cell, wide) for cell, wide in zip(row, widths, strict=True)]
        yield "  ".join(cells).rstrip()


def head_text(tree: DependencyTree, word: int) -> str:
    """Number and word of the head of a word, counted from 0."""
    head = int(tree.heads[word])
    return f"{head} {tree.words[head - 1]}" if head else "0"


def columns(text: str) -> int:
    """Columns of a terminal that a text takes: two for an ideograph, none for what combines."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(c) else 1 + (unicodedata.east_asian_width(c) in "WF")
        for c in text
    )


def _padded(text: str, width: int) -> str:
    return text + " " * (width - columns(text))
