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
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from spmrl_bench.errors import SpmrlError, unknown_name
from spmrl_bench.trees.crossing import CROSSING_TRANSFORMS
from spmrl_bench.trees.dependencies import DependencyTree
from spmrl_bench.trees.graph import GRAPH_TRANSFORMS, Graph
from spmrl_bench.trees.labels import LABEL_TRANSFORMS
from spmrl_bench.trees.structure import STRUCTURE_TRANSFORMS
from spmrl_bench.trees.transliteration import WORD_TRANSFORMS
from spmrl_bench.trees.tree import Tree

Stage = Literal["text", "graph", "tree"]


def strip_features(text: str) -> str:
    """Remove morphological features between pairs of ##, as the SPMRL releases write them.

    Done on the text because features may contain spaces. A pair stands within one line.
    """
    return _FEATURES.sub("", text) if "##" in text else text


_FEATURES = re.compile(r"##.*?##")


def strip_markup(text: str) -> str:
    """Empty the lines that hold only SGML, as <S ID=7> and </S> in the Chinese Treebank.

    Such a line begins with < and ends with >, white space aside. The line itself stays, so that
    errors name the right one.
    """
    return _MARKUP.sub("", text) if "<" in text else text


# Only \n and \r end lines here. In MULTILINE ^ and $ mean \n alone, hence the looking around.
_MARKUP = re.compile(r"(?:(?<=[\n\r])|\A)[ \t]*<[^\n\r]*>[ \t]*(?=[\n\r]|\Z)")

#: Every transform of text; the name is the function's, with hyphens.
TEXT_TRANSFORMS = (strip_features, strip_markup)


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


def _found() -> Iterator[Transform]:
    stages: dict[Stage, tuple[Callable[..., str | Graph | Tree | None], ...]] = {
        "text": TEXT_TRANSFORMS,
        "graph": (*GRAPH_TRANSFORMS, *CROSSING_TRANSFORMS),
        "tree": (*STRUCTURE_TRANSFORMS, *LABEL_TRANSFORMS, *WORD_TRANSFORMS),
    }
    for stage, functions in stages.items():
        for apply in functions:
            yield Transform(apply.__name__.replace("_", "-"), stage, apply)


#: Every transform by its name.
TRANSFORMS: Mapping[str, Transform] = {transform.name: transform for transform in _found()}


def word_transforms(names: Iterable[str]) -> list[Callable[[DependencyTree], DependencyTree]]:
    """Those of the transforms named that change words alone, for trees of dependencies.

    Raises:
        SpmrlError: a name is unknown.
    """
    applied = [transform_named(name).apply for name in names]
    return [function for function in WORD_TRANSFORMS if function in applied]


def transform_named(name: str) -> Transform:
    """The transform of a name.

    Raises:
        SpmrlError: there is none of that name.
    """
    try:
        return TRANSFORMS[name]
    except KeyError:
        raise SpmrlError(unknown_name("transform", name, TRANSFORMS)) from None
