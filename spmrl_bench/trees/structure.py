"""What constituents lose or gain before training: empty elements, outer brackets, roots.

An empty element is a token with the tag ``-NONE-``, in every tree; readers of formats that
write them in another way give them that tag.
"""

from __future__ import annotations

import numpy as np

from spmrl_bench.trees.tree import Tree


def drop_traces(tree: Tree) -> Tree | None:
    """Remove empty elements (tag -NONE-) and the constituents that they leave empty."""
    if "-NONE-" not in tree.tags:
        return tree
    overt = [tag != "-NONE-" for tag in tree.tags]
    if not any(overt):
        return None
    fences = np.zeros(len(overt) + 1, dtype=np.int32)  # the new position of every old fencepost
    np.cumsum(overt, out=fences[1:])
    spans = fences[tree.spans]
    kept = spans[:, 0] < spans[:, 1]
    spans = spans[kept]
    spans.flags.writeable = False
    return Tree(
        tuple(word for word, here in zip(tree.words, overt, strict=True) if here),
        tuple(tag for tag, here in zip(tree.tags, overt, strict=True) if here),
        tuple(label for label, here in zip(tree.labels, kept.tolist(), strict=True) if here),
        spans,
    )


def strip_root(tree: Tree) -> Tree:
    """Drop the outer bracket (unlabelled, TOP, ROOT or S1) around a single constituent.

    One that holds several constituents or a bare word stays, named TOP where it has no label,
    and a sentence that is a bare word gets it: every tree has a labelled root.
    """
    labels, spans, n = tree.labels, tree.spans, len(tree)
    outer = 0
    while (
        outer + 1 < len(labels)
        and labels[outer] in _OUTER
        and spans[outer + 1, 0] == 0
        and spans[outer + 1, 1] == n
    ):
        outer += 1
    if outer:
        labels, spans = labels[outer:], spans[outer:]
    if not labels or spans[0, 0] != 0 or spans[0, 1] != n:
        return Tree.build(
            tree.words, tree.tags, [(0, n, "TOP"), *list(tree.constituents())[outer:]]
        )
    if labels[0] == "":
        labels = ("TOP", *labels[1:])
    return tree if labels is tree.labels else Tree(tree.words, tree.tags, labels, spans)


_OUTER = frozenset({"", "TOP", "ROOT", "S1"})

#: Every transform of constituents; the name is the function's, with hyphens.
STRUCTURE_TRANSFORMS = (drop_traces, strip_root)
