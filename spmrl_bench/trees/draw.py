"""Trees for pages in HTML: boxes within boxes. All that is from files is escaped."""

from __future__ import annotations

from collections.abc import Collection
from html import escape

from spmrl_bench.trees.dependencies import DependencyTree
from spmrl_bench.trees.tree import Tree, collapsed_spans


def boxes(tree: Tree, marked: Collection[tuple[int, int]], side: str, title: str = "") -> str:
    """A tree under a title, or the name of the side that it is of; marked spans stand out."""
    parts: list[str] = []
    ends: list[int] = []  # of the boxes that are open
    done = 0

    def write(until: int) -> None:
        nonlocal done
        words = (escape(word) for word in tree.words[done:until])
        parts.extend(f'<span class="word">{word}</span>' for word in words)
        done = max(done, until)

    def close(place: int) -> None:
        while ends and ends[-1] <= place:
            write(ends.pop())
            parts.append("</span>")
        write(place)

    for start, end, label in collapsed_spans(tree):
        close(start)
        mark = " mark" if (start, end) in marked else ""
        parts.append(f'<span class="node{mark}"><b>{escape("+".join(label))}</b>')
        ends.append(end)
    close(len(tree))
    heading = escape(title or side)
    return f'<div class="side {side}" dir="auto"><h3>{heading}</h3>{"".join(parts)}</div>'


def head_text(tree: DependencyTree, word: int) -> str:
    """Number and word of the head of a word, counted from 0; ``0`` for the root."""
    head = int(tree.heads[word])
    return f"{head} {tree.words[head - 1]}" if head else "0"
