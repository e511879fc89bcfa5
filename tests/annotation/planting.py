"""Errors of annotation, planted at random in places that are known: the same ones in every run.

They are such as annotators make: a phrase or a word that is attached one step too high or too low,
and a label or a relation that is taken for another one of the treebank.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from spmrl_bench.errors import TreeError
from spmrl_bench.trees.dependencies import DependencyTree, head_fault
from spmrl_bench.trees.parse import Layer, Parse
from spmrl_bench.trees.tree import Tree, readonly_int32


class Planted(NamedTuple):
    """An error.

    Attributes:
        sentence: from 0.
        start, end: fenceposts of the constituent, or of the word.
        what: ``label`` or ``attachment``.
    """

    sentence: int
    start: int
    end: int
    what: str


def plant(
    sentences: Sequence[Parse], number: int, seed: int, layer: Layer
) -> tuple[list[Parse], list[Planted]]:
    """Sentences with errors, one in each of so many of them; every other one moves something."""
    choose = random.Random(seed)
    names = _labels(sentences, layer)
    if len(names) < 2:
        raise ValueError(f"the {layer} have the label {', '.join(names)} only: none can be swapped")
    changed, planted = list(sentences), []
    order = list(range(len(sentences)))
    choose.shuffle(order)
    for place in order:
        if len(planted) == number:
            break
        what = ("attachment", "label")[len(planted) % 2]
        if layer == "constituents":
            found = _in_tree(sentences[place].tree, what, names, choose)
        else:
            found = _in_heads(sentences[place].dependencies, what, names, choose)
        if found is not None:
            start, end, layer_value = found
            parse = sentences[place]
            changed[place] = (
                replace(parse, tree=layer_value)
                if isinstance(layer_value, Tree)
                else replace(parse, dependencies=layer_value)
            )
            planted.append(Planted(place, start, end, what))
    assert len(planted) == number, "there are too few sentences in which an error can be planted"
    return changed, planted


def _labels(sentences: Sequence[Parse], layer: Layer) -> dict[str, int]:
    """The labels of a layer that are not rare, with their frequencies."""
    counts: Counter[str] = Counter()
    for parse in sentences:
        if layer == "constituents" and parse.tree is not None:
            counts.update(parse.tree.labels[1:])
        elif layer == "dependencies" and parse.dependencies is not None:
            tree = parse.dependencies
            counts.update(
                name for head, name in zip(tree.heads, tree.relations, strict=True) if head
            )
    return {name: count for name, count in counts.items() if 100 * count >= counts.total()}


def _other(name: str, names: dict[str, int], choose: random.Random) -> str:
    others = sorted(names.keys() - {name})
    return choose.choices(others, [names[other] for other in others])[0]


def _in_tree(
    tree: Tree | None, what: str, names: dict[str, int], choose: random.Random
) -> tuple[int, int, Tree] | None:
    """The tree with another label, or with a constituent that ends one child later or earlier."""
    rows = list(tree.constituents())
    spans = Counter(row[:2] for row in rows)
    places = [k for k in range(1, len(rows)) if rows[k][2] in names and spans[rows[k][:2]] == 1]
    choose.shuffle(places)
    for place in places:
        start, end, label = rows[place]
        if what == "label":
            rows[place] = (start, end, _other(label, names, choose))
            return start, end, Tree.build(tree.words, tree.tags, rows)
        ends = _ends(rows, place)
        choose.shuffle(ends)
        for other in ends:
            moved = [*rows[:place], (start, other, label), *rows[place + 1 :]]
            moved.sort(key=lambda row: (row[0], -row[1]))
            try:
                found = Tree.build(tree.words, tree.tags, moved)
            except TreeError:
                continue
            if (start, other) not in spans:
                return start, max(end, other), found
    return None


def _ends(rows: list[tuple[int, int, str]], place: int) -> list[int]:
    """Where a constituent would end without its last child, or with its right sister.

    Only phrases of several words are moved: where a comma belongs is another question.
    """
    start, end, _ = rows[place]
    if end - start < 2:
        return []
    inside = [row for row in rows[place + 1 :] if start <= row[0] and row[1] <= end]
    last = [row for row in inside if row[1] == end and row[1] - row[0] > 1]
    ends = [min(row[0] for row in last)] if last else []
    ends = [other for other in ends if other - start > 1]
    sisters = [row for row in rows if row[0] == end and row[1] - row[0] > 1]
    return [*ends, max(row[1] for row in sisters)] if sisters else ends


def _in_heads(
    tree: DependencyTree | None, what: str, names: dict[str, int], choose: random.Random
) -> tuple[int, int, DependencyTree] | None:
    """The tree with another relation, or a word that hangs from its head's head or a sister."""
    heads = tree.heads.tolist()
    words = [word for word in range(1, len(heads) + 1) if heads[word - 1]]
    words = [word for word in words if tree.relations[word - 1] in names]
    choose.shuffle(words)
    for word in words:
        if what == "label":
            relations = list(tree.relations)
            relations[word - 1] = _other(relations[word - 1], names, choose)
            return word - 1, word, replace(tree, relations=tuple(relations))
        head = heads[word - 1]
        sisters = [other for other, own in enumerate(heads, start=1) if own == head != other]
        others = [other for other in (heads[head - 1], *sisters) if other not in (0, word)]
        choose.shuffle(others)
        for other in others:
            moved = [*heads[: word - 1], other, *heads[word:]]
            if head_fault(moved) is None and _projective(moved):
                return word - 1, word, replace(tree, heads=readonly_int32(moved))
    return None


def _projective(heads: list[int]) -> bool:
    arcs = [tuple(sorted(arc)) for arc in enumerate(heads, start=1)]
    return not any(one[0] < other[0] < one[1] < other[1] for one in arcs for other in arcs)
