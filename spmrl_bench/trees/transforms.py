"""The named changes between a treebank as released and the trees that are trained on and scored.

Two scores compare only if the same things were stripped, dropped and raised before. Each such
change is therefore a function with a name; a manifest lists the names in the order in which
they apply, and they are part of a treebank's fingerprint. They apply at one of three stages:
to the text of a file before it is split into brackets, to a graph that may have crossing
branches, or to a tree. A tree transform returns None for a tree that it leaves without words.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from spmrl_bench.errors import SpmrlError, unknown_name
from spmrl_bench.trees.graph import GRAPH_TRANSFORMS, Graph
from spmrl_bench.trees.tree import Tree

Stage = Literal["text", "graph", "tree"]


def strip_features(text: str) -> str:
    """Remove morphological features between pairs of ##, as the SPMRL releases write them.

    Done on the text because features may contain spaces. A pair stands within one line.
    """
    return _FEATURES.sub("", text)


_FEATURES = re.compile(r"##.*?##")


def strip_functions(tree: Tree) -> Tree:
    """Cut labels of constituents to their category: NP-SBJ-1 and NP=2 to NP, ADVP|PRT to ADVP.

    A label is cut at its first hyphen, equals sign or bar after the first character, unless
    hyphens enclose all of it (-LRB-).
    """
    labels = tuple(_category(label) for label in tree.labels)
    return Tree(tree.words, tree.tags, labels, tree.spans)


def strip_tag_functions(tree: Tree) -> Tree:
    """Cut part-of-speech tags to their category, as strip-functions does with labels: CLS-SUJ."""
    tags = tuple(_category(tag) for tag in tree.tags)
    return Tree(tree.words, tags, tree.labels, tree.spans)


def _category(label: str) -> str:
    if label.startswith("-") and label.endswith("-"):
        return label
    return label[:1] + _FUNCTION.split(label[1:], maxsplit=1)[0]


_FUNCTION = re.compile("[-=|]")


def drop_traces(tree: Tree) -> Tree | None:
    """Remove the empty elements of the Penn Treebank (tag -NONE-) and constituents left empty."""
    if "-NONE-" not in tree.tags:
        return tree
    kept = [i for i, tag in enumerate(tree.tags) if tag != "-NONE-"]
    if not kept:
        return None
    fences = [0]  # the new position of every old fencepost
    for tag in tree.tags:
        fences.append(fences[-1] + (tag != "-NONE-"))
    rows = [
        (fences[start], fences[end], label)
        for start, end, label in tree.constituents()
        if fences[start] < fences[end]
    ]
    return Tree.build([tree.words[i] for i in kept], [tree.tags[i] for i in kept], rows)


def strip_root(tree: Tree) -> Tree:
    """Drop the outer bracket (unlabelled, TOP, ROOT or S1) around a single constituent.

    One that holds several constituents or a bare word stays, named TOP where it has no label,
    and a sentence that is a bare word gets it: every tree has a labelled root.
    """
    rows = list(tree.constituents())
    n = len(tree)
    outer = 0
    while outer + 1 < len(rows) and rows[outer][2] in _OUTER and rows[outer + 1][:2] == (0, n):
        outer += 1
    rows = rows[outer:]
    if not rows or rows[0][:2] != (0, n):
        rows.insert(0, (0, n, "TOP"))
    elif rows[0][2] == "":
        rows[0] = (0, n, "TOP")
    return Tree.build(tree.words, tree.tags, rows)


_OUTER = frozenset({"", "TOP", "ROOT", "S1"})


@dataclass(frozen=True, slots=True)
class Transform:
    """A named change; ``apply`` takes and returns what its stage is about.

    At the stages text and graph it is ``str -> str`` and ``Graph -> Graph``, at the stage tree
    ``Tree -> Tree | None``.
    """

    name: str
    stage: Stage
    apply: Callable[..., str | Graph | Tree | None]

    @property
    def description(self) -> str:
        """The rule, for users."""
        return inspect.getdoc(self.apply) or ""


def _registry() -> dict[str, Transform]:
    trees: tuple[Callable[[Tree], Tree | None], ...] = (
        drop_traces,
        strip_functions,
        strip_tag_functions,
        strip_root,
    )
    found = [Transform("strip-features", "text", strip_features)]
    found += [Transform(name, "graph", apply) for name, apply in GRAPH_TRANSFORMS.items()]
    found += [Transform(apply.__name__.replace("_", "-"), "tree", apply) for apply in trees]
    return {transform.name: transform for transform in found}


#: Every transform by its name.
TRANSFORMS: Mapping[str, Transform] = _registry()


def transform_named(name: str) -> Transform:
    """The transform of a name.

    Raises:
        SpmrlError: there is none of that name.
    """
    try:
        return TRANSFORMS[name]
    except KeyError:
        raise SpmrlError(unknown_name("transform", name, TRANSFORMS)) from None
