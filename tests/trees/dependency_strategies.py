"""Hypothesis strategies for dependency trees: any shape, any text that CoNLL can hold."""

from __future__ import annotations

from hypothesis import strategies as st

from spmrl_bench.readers.conll import TagColumn, conll_lines
from spmrl_bench.trees.dependencies import DependencyTree, Roots


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
def dependency_trees(
    draw: st.DrawFn, texts: st.SearchStrategy[str] = TEXTS, roots: Roots = "one"
) -> DependencyTree:
    """A tree of one to seven words."""
    n = draw(st.integers(1, 7))
    words, tags, relations = (draw(st.lists(texts, min_size=n, max_size=n)) for _ in range(3))
    return DependencyTree.build(words, tags, draw(head_lists(n, roots)), relations, roots=roots)


def write_conll(tree: DependencyTree, *, tags: TagColumn = "xpos") -> str:
    """A tree as CoNLL, its tags in one column."""
    heads = map(str, tree.heads.tolist())
    return conll_lines(tree.words, tree.tags, heads, tree.relations, tag_column=tags)
