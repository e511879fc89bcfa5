"""Hypothesis strategies for trees: any shape, any Unicode words, tags and labels."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import strategies as st

from spmrl_bench.readers.conll import TagColumn, conll_lines
from spmrl_bench.trees import Tree
from spmrl_bench.trees.dependencies import DependencyTree, Roots

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


def _holdable(text: str) -> bool:
    return text != "" and text == text.strip(" ") and not set("\t\r\n") & set(text)


#: Words, tags and relations, often such as could be taken for something else.
TEXTS = st.one_of(
    st.sampled_from(["_", "#", "# sent_id = x", "1", "1-2", "1.1", "``", ".", "PU", "a b", "a:b"]),
    st.text(st.sampled_from("\ufeff\u2028\x85\x0b\x0c\xa0\u3000 ab:#-"), max_size=4),
    st.text(max_size=6),
).filter(_holdable)


@st.composite
def head_lists(draw: st.DrawFn, n: int, roots: Roots = "one") -> list[int]:
    """Heads of a tree over ``n`` words: each new word hangs from one that is already there."""
    order = draw(st.permutations(range(1, n + 1)))
    heads = [0] * n
    for place, word in enumerate(order):
        candidates = list(order[:place])
        if roots == "several":
            candidates.append(0)
        heads[word - 1] = draw(st.sampled_from(candidates)) if candidates else 0
    return heads


@st.composite
def dependency_trees(draw: st.DrawFn, roots: Roots = "one") -> DependencyTree:
    """A tree of one to seven words."""
    n = draw(st.integers(1, 7))
    words, tags, relations = (draw(st.lists(TEXTS, min_size=n, max_size=n)) for _ in range(3))
    return DependencyTree.build(words, tags, draw(head_lists(n, roots)), relations, roots=roots)


def write_conll(tree: DependencyTree, *, tags: TagColumn = "xpos") -> str:
    """A tree as CoNLL, its tags in one column."""
    heads = map(str, tree.heads.tolist())
    return conll_lines(tree.words, tree.tags, heads, tree.relations, tag_column=tags)
