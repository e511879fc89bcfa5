"""What labels and tags lose before training: functions, indices, agreement, marks.

Releases write more into a label than its category. Each named cut here takes one kind of
addition off, so that a manifest can say exactly what its scores were made on.
"""

from __future__ import annotations

import re
from functools import lru_cache

from spmrl_bench.trees.tree import Tree


def strip_functions(tree: Tree) -> Tree:
    """Cut labels of constituents to their category: NP-SBJ-1 and NP=2 to NP, ADVP|PRT to ADVP.

    A label is cut at its first hyphen, equals sign or bar after the first character, unless
    hyphens enclose all of it (-LRB-).
    """
    return _with_labels(tree, tuple(map(_category, tree.labels)))


def strip_tag_functions(tree: Tree) -> Tree:
    """Cut part-of-speech tags to their category, as strip-functions does with labels: CLS-SUJ."""
    return _with_tags(tree, tuple(map(_category, tree.tags)))


def _with_labels(tree: Tree, labels: tuple[str, ...]) -> Tree:
    return tree if labels == tree.labels else Tree(tree.words, tree.tags, labels, tree.spans)


def _with_tags(tree: Tree, tags: tuple[str, ...]) -> Tree:
    return tree if tags == tree.tags else Tree(tree.words, tags, tree.labels, tree.spans)


@lru_cache(maxsize=1 << 16)
def _category(label: str) -> str:
    if label.startswith("-") and label.endswith("-"):
        return label
    return label[:1] + _FUNCTION.split(label[1:], maxsplit=1)[0]


_FUNCTION = re.compile("[-=|]")

#: Every transform of labels and tags; the name is the function's, with hyphens.
LABEL_TRANSFORMS = (strip_functions, strip_tag_functions)
