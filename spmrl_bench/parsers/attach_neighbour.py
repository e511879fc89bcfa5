"""The baseline of dependencies: every word hangs from its neighbour.

Whether from the left or from the right one is decided once for a treebank: the side on which more
words of the training sentences have their neighbour as head. The root is the word at that end of
the sentence's body, and final punctuation hangs from the root. A word's relation is the one that
words with its tag have most often, without tags the most frequent of all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, Field

from spmrl_bench.parsers.base import Words
from spmrl_bench.parsers.baseline import Baseline, body_end
from spmrl_bench.parsers.parsing import Found
from spmrl_bench.trees.parse import Parse

_ROOT = "root"

Relation = Annotated[str, Field(pattern=r"^[^\t\r\n]+$")]
"""What a column of CoNLL can hold."""


class Attachments(BaseModel):
    """Where heads are, and the relations of the root, of any other word, and by its tag."""

    side: Literal["left", "right"]
    root: Relation
    any: Relation
    by_tag: dict[str, Relation]


class AttachNeighbour(Baseline):
    """Every head is a neighbour."""

    kind = "attach-neighbour"
    facts = Attachments
    reads_tags = True

    @classmethod
    def build(cls, config: Any, examples: Sequence[Parse]) -> Self:
        left = right = 0
        roots: Counter[str] = Counter()
        every: Counter[str] = Counter()
        by_tag: dict[str, Counter[str]] = {}
        for example in examples:
            if (tree := example.dependencies) is None:
                continue
            heads = tree.heads.tolist()
            for word, (head, relation) in enumerate(zip(heads, tree.relations, strict=True), 1):
                if head == 0:
                    roots[relation] += 1
                    continue
                left += head == word - 1
                right += head == word + 1
                every[relation] += 1
                by_tag.setdefault(example.tags[word - 1], Counter())[relation] += 1
        return cls(
            {
                "side": "left" if left > right else "right",
                "root": _most_frequent(roots),
                "any": _most_frequent(every),
                "by_tag": {tag: _most_frequent(found) for tag, found in by_tag.items()},
            }
        )

    def found(self, words: Words, tags: Words | None) -> Found:
        n, end = len(words), body_end(words)
        root = 1 if self.counted["side"] == "left" else end
        step = -1 if self.counted["side"] == "left" else 1
        heads = [root if word > end else word + step for word in range(1, n + 1)]
        heads[root - 1] = 0
        by_tag, usual = self.counted["by_tag"], self.counted["any"]
        relations = [by_tag.get(tag, usual) for tag in tags or [""] * n]
        relations[root - 1] = self.counted["root"]
        return Found(heads=heads, relations=relations)


def _most_frequent(relations: Counter[str]) -> str:
    """The first seen of the most frequent; ``root`` if there is none."""
    return max(relations, key=lambda name: relations[name], default=_ROOT)
