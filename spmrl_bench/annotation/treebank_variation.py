"""Variation in the tags, constituents or dependencies of a treebank's sentences.

What stands for a word, and what is compared around it, may be the words, as in the papers, or the
tags: of a small treebank few stretches of words occur twice, but most stretches of tags do. The
more is left out of the words, the more places look alike that are not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from spmrl_bench.annotation.variation import Row, Suspicion, find_variation
from spmrl_bench.errors import TreebankError
from spmrl_bench.trees.parse import Layer, Parse
from spmrl_bench.trees.tree import collapsed_spans

#: What is annotated.
Annotation = Literal["tags", "constituents", "dependencies"]
ANNOTATIONS: tuple[Annotation, ...] = get_args(Annotation)
#: By what words are told apart.
Units = Literal["words", "tags"]
UNITS: tuple[Units, ...] = get_args(Units)


@dataclass(frozen=True, slots=True)
class Suspect:
    """A sentence, by its number in the split from 1, with suspicious places, the worst first."""

    number: int
    suspicions: tuple[Suspicion, ...]


def layer_of(annotation: Annotation, layers: Sequence[Layer]) -> Layer:
    """The layer that an annotation is read from; tags are in each.

    Raises:
        TreebankError: it is not among the layers of a treebank.
    """
    for layer in layers:
        if annotation in ("tags", layer):
            return layer
    raise TreebankError(f"the treebank has {' and '.join(layers)} only, no {annotation}")


def suspects(
    sentences: Sequence[Parse],
    annotation: Annotation,
    *,
    nucleus: Units = "words",
    context: Units = "words",
    min_length: int = 3,
    fringe: bool = False,
) -> list[Suspect]:
    """The sentences in which a place is annotated otherwise than elsewhere, the worst first.

    Args:
        sentences: with the layer of the annotation.
        annotation: what is looked at.
        nucleus, context: by what the words of a nucleus, and those around it, are told apart.
        min_length, fringe: as of :func:`~spmrl_bench.annotation.variation.find_variation`.
    """
    units = {unit: [_units(parse, unit) for parse in sentences] for unit in (nucleus, context)}
    found = find_variation(
        units[nucleus],
        map(_ROWS[annotation], sentences),
        around=None if context == nucleus else units[context],
        min_length=min_length,
        fringe=fringe,
    )
    found.sort(key=lambda one: (-one.score, -one.length, one.place))
    by_sentence: dict[int, list[Suspicion]] = {}
    for one in found:
        by_sentence.setdefault(one.place.sentence, []).append(one)
    return [Suspect(number, tuple(own)) for number, own in by_sentence.items()]


def _units(parse: Parse, unit: Units) -> Sequence[str]:
    return parse.words if unit == "words" else parse.tags


def _tags(parse: Parse) -> Iterator[Row]:
    for place, tag in enumerate(parse.tags):
        yield place, place + 1, tag


def _constituents(parse: Parse) -> Iterator[Row]:
    if parse.tree is not None:
        for start, end, label in collapsed_spans(parse.tree):
            yield start, end, "+".join(label)


def _dependencies(parse: Parse) -> Iterator[Row]:
    """From the first to the last word of each arc: the relation, and where the head is."""
    tree = parse.dependencies
    if tree is None:
        return
    for word, (head, relation) in enumerate(zip(tree.heads, tree.relations, strict=True), 1):
        if head:
            side = "<" if word < head else ">"  # the arrow points to the dependent
            yield min(word, int(head)) - 1, max(word, int(head)), f"{side}{relation}"


_ROWS: dict[Annotation, Callable[[Parse], Iterator[Row]]] = {
    "tags": _tags,
    "constituents": _constituents,
    "dependencies": _dependencies,
}
