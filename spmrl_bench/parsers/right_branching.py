"""The right-branching baseline: what a score is worth without a parser.

Final punctuation hangs from the root, as treebanks have it, and every shorter suffix of the
rest, the body of the sentence, is a constituent. The whole sentence, the body and the shorter
suffixes get the label that such a span has most often in training; the body is left out where
it mostly is no constituent. So the baseline knows the most useful facts about a treebank and
nothing about the sentence.
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
        body: Counter[Label] = Counter()
        inner: Counter[Label] = Counter()
        for tree in trees:
            body_span = (0, body_end(tree.words))
            label_of_body: Label = ()
            for start, end, label in label_rows(tree):
                if end - start == len(tree):
                    whole[label] += 1
                elif (start, end) == body_span:
                    label_of_body = label
                else:
                    inner[label] += 1
            if body_span[1] < len(tree):
                body[label_of_body] += 1
        self.whole, self.body, self.inner = map(_most_frequent, (whole, body, inner))

    def parse(self, words: Sequence[str], tags: Sequence[str]) -> Tree:
        """The baseline's tree; ``words`` has at least one word."""
        n, end = len(words), body_end(words)
        rows = [(0, n, name) for name in self.whole]
        if end < n:
            rows += [(0, end, name) for name in self.body]
        rows += [(start, end, name) for start in range(1, end - 1) for name in self.inner]
        return Tree.build(words, tags, rows)


def body_end(words: Sequence[str]) -> int:
    """End of the sentence without its final punctuation (words without letter or digit).

    A sentence of punctuation alone is all body.
    """
    end = len(words)
    while end and not any(character.isalnum() for character in words[end - 1]):
        end -= 1
    return end or len(words)


def _most_frequent(labels: Counter[Label]) -> Label:
    """The first seen of the most frequent; empty if there is none."""
    return max(labels, key=lambda label: labels[label], default=())
