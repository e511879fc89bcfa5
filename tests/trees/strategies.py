"""Hypothesis strategies for trees: any shape, any Unicode words, tags and labels."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import strategies as st

from spmrl_bench.trees import Tree

#: Text that is likely to look like an escape, a bracket, white space or an empty element.
TRICKY = st.lists(
    st.one_of(
        st.sampled_from(["-LRB-", "-LRB", "RRB-", "-LCB-", "x20", "-NONE-"]),
        st.sampled_from(" \t\n\r\x0b\xa0\u3000\x85\u2028-()[}\\/*0ßa"),
    ),
    max_size=6,
).map("".join)

ANY_TEXT = st.one_of(TRICKY, st.text(max_size=8))


@st.composite
def trees(draw: st.DrawFn, max_words: int = 7) -> Tree:
    """A tree with one constituent over all words, or a single bare word."""
    rows: list[tuple[int, int, str]] = []

    def grow(start: int, end: int, depth: int) -> None:
        chain = draw(st.integers(1 if depth == 0 and end - start > 1 else 0, 3))
        for _ in range(chain):
            rows.append((start, end, draw(ANY_TEXT)))
        if end - start < 2:
            return
        cuts = draw(st.sets(st.integers(start + 1, end - 1), min_size=1))
        fences = [start, *sorted(cuts), end]
        for left, right in pairwise(fences):
            grow(left, right, depth + 1)

    n = draw(st.integers(1, max_words))
    words = draw(st.lists(ANY_TEXT, min_size=n, max_size=n))
    tags = draw(st.lists(ANY_TEXT, min_size=n, max_size=n))
    grow(0, n, 0)
    return Tree.build(words, tags, rows)
