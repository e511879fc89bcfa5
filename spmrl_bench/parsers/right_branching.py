"""The right-branching baseline: what a score is worth without a parser.

Every suffix of the sentence is a constituent. The whole sentence gets the label that the
whole sentence has most often in training, every other suffix the label that inner
constituents have most often, so the baseline knows the two most useful facts about a
treebank and nothing else.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from spmrl_bench.parsers.vocabulary import Label, label_rows
from spmrl_bench.trees import Tree


class RightBranching:
    """Labels of the baseline, counted from training trees."""

    def __init__(self, trees: Iterable[Tree]) -> None:
        whole: Counter[Label] = Counter()
        inner: Counter[Label] = Counter()
        for tree in trees:
            for start, end, label in label_rows(tree):
                (whole if end - start == len(tree) else inner)[label] += 1
        self.whole: Label = max(whole, key=lambda label: whole[label], default=())
        self.inner: Label = max(inner, key=lambda label: inner[label], default=())

    def parse(self, words: Sequence[str], tags: Sequence[str]) -> Tree:
        """The baseline's tree; ``words`` has at least one word."""
        n = len(words)
        rows = [(0, n, name) for name in self.whole]
        rows += [(start, n, name) for start in range(1, n - 1) for name in self.inner]
        return Tree.build(words, tags, rows)
