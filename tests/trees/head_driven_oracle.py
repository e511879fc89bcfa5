"""What a head-driven chart can find, from the definition of the chart and nothing else.

Two neighbouring parts combine if the head word of one is the head of that of the other; the
dependent part is one word or a labelled span. Here a part without a label may be a dependent, too,
at a price of 1: that is the sub-head it would need.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations, pairwise, product

from spmrl_bench.trees import Tree
from spmrl_bench.trees.dependencies import DependencyTree, Roots, head_fault

Span = tuple[int, int]


def fewest_sub_heads(spans: Iterable[Span], heads: Sequence[int]) -> int | None:
    """How many labels a structure of exactly these heads lacks that has all these spans as nodes.

    ``heads`` are numbered from 1, and 0 is the root. None if there is no such structure.
    """
    labelled = set(spans)
    n = len(heads)
    # By span, the least price for each head word.
    prices: dict[Span, dict[int, int]] = {}
    for length in range(1, n + 1):
        for start in range(n - length + 1):
            end = start + length
            # A binary tree has every span as a node whose nodes cross none of them.
            if any(a < start < b < end or start < a < end < b for a, b in labelled):
                continue
            found: dict[int, int] = {end: 0} if length == 1 else {}
            for middle in range(start + 1, end):
                left, right = (start, middle), (middle, end)
                for above, below in ((left, right), (right, left)):
                    free = below in labelled or below[1] - below[0] == 1
                    for word, price in prices.get(below, {}).items():
                        target = heads[word - 1]
                        if target in prices.get(above, {}):
                            price += prices[above][target] + (not free)
                            found[target] = min(price, found.get(target, price))
            if found:
                prices[start, end] = found
    return prices.get((0, n), {}).get(heads.index(0) + 1)


def bracketings(n: int) -> Iterator[list[Span]]:
    """All trees over ``n`` words with nodes of two children and more, in pre-order."""

    def over(start: int, end: int) -> list[list[Span]]:
        if end - start == 1:
            return [[]]
        found = []
        for size in range(1, end - start):
            for cuts in combinations(range(start + 1, end), size):
                fences = pairwise([start, *cuts, end])
                for below in product(*(over(a, b) for a, b in fences)):
                    found.append([(start, end), *(span for part in below for span in part)])
        return found

    yield from over(0, n)


def head_lists(n: int, roots: Roots = "one") -> Iterator[list[int]]:
    """The heads of all dependency trees of ``n`` words."""
    for heads in product(range(n + 1), repeat=n):
        if head_fault(heads, roots) is None:
            yield list(heads)


def tree_of(spans: Iterable[Span], n: int) -> Tree:
    """A tree with these spans, labelled by their place."""
    names = [f"w{i}" for i in range(n)]
    return Tree.build(names, ["T"] * n, [(*span, f"X{i}") for i, span in enumerate(spans)])


def dependencies_of(heads: Sequence[int]) -> DependencyTree:
    """A dependency tree over the words of :func:`tree_of`; it may have several roots."""
    n = len(heads)
    names = [f"w{i}" for i in range(n)]
    relations = [f"r{i}" for i in range(n)]
    return DependencyTree.build(names, ["T"] * n, heads, relations, roots="several")
