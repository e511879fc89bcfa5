"""What constituents lose or gain before training: empty elements, outer brackets, chains.

An empty element is a token with the tag ``-NONE-``, in every tree; readers of formats that
write them in another way give them that tag.
"""

from __future__ import annotations

from itertools import accumulate, compress

import numpy as np
from numpy.typing import NDArray

from spmrl_bench.trees.tree import Tree, frozen


def drop_traces(tree: Tree) -> Tree | None:
    """Remove empty elements (tag -NONE-) and the constituents that they leave empty."""
    if "-NONE-" not in tree.tags:
        return tree
    overt = [tag != "-NONE-" for tag in tree.tags]
    tags = tuple(compress(tree.tags, overt))
    if not tags:
        return None
    # The new position of every old fencepost.
    fences = np.fromiter(accumulate(overt, initial=0), dtype=np.int32, count=len(overt) + 1)
    spans = fences[tree.spans]
    kept = spans[:, 0] < spans[:, 1]
    return Tree(
        tuple(compress(tree.words, overt)),
        tags,
        tuple(compress(tree.labels, kept.tolist())),
        frozen(spans[kept]),
    )


def strip_root(tree: Tree) -> Tree:
    """Drop the outer bracket (unlabelled, TOP, ROOT or S1) around a single constituent.

    One that holds several constituents or a bare word stays, named TOP where it has no label,
    and a sentence that is a bare word gets it: every tree has a labelled root.
    """
    outer = 0
    while _is_whole(tree, outer + 1) and tree.labels[outer] in _OUTER:
        outer += 1
    labels, spans = tree.labels[outer:], tree.spans[outer:]
    if not _is_whole(tree, outer):
        return _under_top(tree.words, tree.tags, labels, spans)
    if labels[0] == "":
        labels = ("TOP", *labels[1:])
    return tree if labels == tree.labels else Tree(tree.words, tree.tags, labels, spans)


_OUTER = frozenset({"", "TOP", "ROOT", "S1"})


def ensure_top(tree: Tree) -> Tree:
    """Give every sentence the one outer bracket TOP, above all its constituents.

    An outer bracket that is there already (unlabelled, TOP, ROOT, S1 or VROOT) takes that name;
    several of them become one.
    """
    outer = 0
    while _is_whole(tree, outer) and tree.labels[outer] in OUTER_BRACKETS:
        outer += 1
    if outer == 1 and tree.labels[0] == "TOP":
        return tree
    return _under_top(tree.words, tree.tags, tree.labels[outer:], tree.spans[outer:])


#: What releases call the bracket around a sentence.
OUTER_BRACKETS = _OUTER | {"VROOT"}


def vroot_over_words(tree: Tree) -> Tree:
    """Put VROOT above a sentence that is a bare word, or a word in unlabelled brackets.

    So in the German release, where a root may be a preterminal; any other sentence stays.
    """
    if len(tree) != 1 or any(tree.labels):
        return tree
    return Tree(tree.words, tree.tags, ("VROOT",), frozen([[0, 1]]))


def merge_x_over_x(tree: Tree) -> Tree:
    """Merge a constituent into the only child of the same label: (NP (NP ...)) to (NP ...).

    Labels are compared whole, functions included, and chains of any length become one node.
    """
    labels, spans = tree.labels, tree.spans
    if len(labels) < 2:
        return tree
    same = (spans[1:] == spans[:-1]).all(axis=1).tolist()
    kept = [True]
    kept += [
        not (equal and label == above)
        for equal, label, above in zip(same, labels[1:], labels, strict=False)
    ]
    if all(kept):
        return tree
    return Tree(tree.words, tree.tags, tuple(compress(labels, kept)), frozen(spans[kept]))


def _is_whole(tree: Tree, row: int) -> bool:
    """Whether there is such a constituent, and it is over all words."""
    spans = tree.spans
    return row < len(spans) and spans[row, 0] == 0 and bool(spans[row, 1] == len(tree))


def _under_top(
    words: tuple[str, ...], tags: tuple[str, ...], labels: tuple[str, ...], spans: NDArray[np.int32]
) -> Tree:
    """The constituents below a new TOP over all words."""
    return Tree(words, tags, ("TOP", *labels), frozen(np.vstack([[[0, len(words)]], spans])))


#: Every transform of constituents; the name is the function's, with hyphens.
STRUCTURE_TRANSFORMS = (drop_traces, strip_root, ensure_top, vroot_over_words, merge_x_over_x)
