"""Trees for pages in HTML: boxes within boxes. All that is from files is escaped."""

from __future__ import annotations

from collections.abc import Collection
from html import escape

from spmrl_bench.trees.dependencies import DependencyTree
from spmrl_bench.trees.tree import Tree, collapsed_spans


def boxes(tree: Tree, marked: Collection[tuple[int, int]], side: str, title: str = "") -> str:
    """A tree under a title, or the name of the side that it is of; marked spans stand out."""
    opened: list[list[str]] = [[] for _ in tree.words]  # boxes in front of each word
    closed = [0] * (len(tree) + 1)  # how many end at each fencepost
    for start, end, label in collapsed_spans(tree):
        mark = " mark" if (start, end) in marked else ""
        opened[start].append(f'<span class="node{mark}"><b>{escape("+".join(label))}</b>')
        closed[end] += 1
    parts = (
        f'{"".join(before)}<span class="word">{escape(word)}</span>{"</span>" * ends}'
        for before, word, ends in zip(opened, tree.words, closed[1:], strict=True)
    )
    heading = escape(title or side)
    return f'<div class="side {side}" dir="auto"><h3>{heading}</h3>{"".join(parts)}</div>'


def head_text(tree: DependencyTree, word: int) -> str:
    """Number and word of the head of a word, counted from 0; ``0`` for the root."""
    head = int(tree.heads[word])
    return f"{head} {tree.words[head - 1]}" if head else "0"
