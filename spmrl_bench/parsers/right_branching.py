"""The right-branching baseline: what a score of constituents is worth without a parser.

Final punctuation hangs from the root, as treebanks have it, and every shorter suffix of the
rest, the body of the sentence, is a constituent. The whole sentence, the body and the shorter
suffixes get the label that such a span has most often in training; the body is left out where
it mostly is no constituent. So the baseline knows the most useful facts about a treebank and
nothing about the sentence.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Annotated, Any, Self

from pydantic import BaseModel, Field

from spmrl_bench.parsers.base import Words
from spmrl_bench.parsers.baseline import Baseline, body_end
from spmrl_bench.parsers.parsing import Found
from spmrl_bench.parsers.vocabulary import LONGEST_CHAIN
from spmrl_bench.trees.parse import Parse
from spmrl_bench.trees.tree import Label, collapsed_spans

Chain = Annotated[list[str], Field(max_length=LONGEST_CHAIN)]


class Labels(BaseModel):
    """The labels of the whole sentence, of its body, and of spans inside."""

    whole: Chain
    body: Chain
    inner: Chain


class RightBranching(Baseline):
    """Every suffix is a constituent."""

    kind = "right-branching"
    facts = Labels

    @classmethod
    def build(cls, config: Any, examples: Sequence[Parse]) -> Self:
        whole: Counter[Label] = Counter()
        body: Counter[Label] = Counter()
        inner: Counter[Label] = Counter()
        for example in examples:
            if example.tree is None:
                continue
            tree = example.tree
            body_span = (0, body_end(tree.words))
            label_of_body: Label = ()
            for start, end, label in collapsed_spans(tree):
                if end - start == len(tree):
                    whole[label] += 1
                elif (start, end) == body_span:
                    label_of_body = label
                else:
                    inner[label] += 1
            if body_span[1] < len(tree):
                body[label_of_body] += 1
        counters = {"whole": whole, "body": body, "inner": inner}
        return cls({name: list(_most_frequent(labels)) for name, labels in counters.items()})

    def found(self, words: Words, tags: Words | None) -> Found:
        n, end = len(words), body_end(words)
        rows = [(0, n, name) for name in self.counted["whole"]]
        if end < n:
            rows += [(0, end, name) for name in self.counted["body"]]
        rows += [
            (start, end, name) for start in range(1, end - 1) for name in self.counted["inner"]
        ]
        return Found(rows)


def _most_frequent(labels: Counter[Label]) -> Label:
    """The first seen of the most frequent; empty if there is none."""
    return max(labels, key=lambda label: labels[label], default=())
