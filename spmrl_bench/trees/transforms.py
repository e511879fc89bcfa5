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
from spmrl_bench.trees.labels import LABEL_TRANSFORMS
from spmrl_bench.trees.structure import STRUCTURE_TRANSFORMS
from spmrl_bench.trees.tree import Tree

Stage = Literal["text", "graph", "tree"]


def strip_features(text: str) -> str:
    """Remove morphological features between pairs of ##, as the SPMRL releases write them.

    Done on the text because features may contain spaces. A pair stands within one line.
    """
    return _FEATURES.sub("", text)


_FEATURES = re.compile(r"##.*?##")


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
    found = [Transform("strip-features", "text", strip_features)]
    found += [Transform(name, "graph", apply) for name, apply in GRAPH_TRANSFORMS.items()]
    trees: list[Callable[[Tree], Tree | None]] = [*STRUCTURE_TRANSFORMS, *LABEL_TRANSFORMS]
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
