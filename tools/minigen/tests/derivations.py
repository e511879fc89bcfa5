"""Derivations through every rule of a grammar, which sampling may take years to draw."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tools.minigen.ground import GroundGrammar, Option
from tools.minigen.links import Links, Part, join

#: A number of a node, its option, the row of it.
_Step = tuple[int, Option, int]
#: The key of the rule; heads and relations of the words; the spans that have a head.
Derived = tuple[str, list[int], list[str], list[tuple[int, int]]]


def derivations(source: GroundGrammar) -> Iterator[Derived]:
    """A derivation, as small as can be, through each rule with each of its links."""
    nodes = source.nodes
    above: dict[int, tuple[_Step, int]] = {0: ((0, nodes[0].options[0], 0), -1)}
    targets: dict[tuple[str, Links], _Step] = {}
    todo = [0]
    for number in todo:  # breadth first, so that the way from the root is short
        for option in nodes[number].options:
            for row, children in enumerate(option.rows):
                if option.links:
                    targets.setdefault((option.rule.key, option.links[row]), (number, option, row))
                for place, child in enumerate(children):
                    if child not in above:
                        above[child] = ((number, option, row), place)
                        todo.append(child)
    for (key, _), step in targets.items():
        steps, places = [step], list[int]()
        while steps[-1][0]:
            before, place = above[steps[-1][0]]
            steps.append(before)
            places.append(place)
        way = {
            tuple(places[len(places) - depth :][::-1]): taken
            for depth, taken in enumerate(reversed(steps))
        }
        yield (key, *_expanded(source, way))


def _expanded(
    source: GroundGrammar, way: Mapping[tuple[int, ...], _Step]
) -> tuple[list[int], list[str], list[tuple[int, int]]]:
    """The derivation that takes these steps at these places and the smallest ones elsewhere."""
    nodes, symbols = source.nodes, source.grammar.symbols
    heads: list[int] = []
    relations: list[str] = []
    headed: list[tuple[int, int]] = []

    def expand(number: int, at: tuple[int, ...]) -> Part:
        start = len(heads)
        if symbols[nodes[number].symbol].kind != "phrase":
            heads.append(0)
            relations.append("root")
            return Part(start + 1)
        _, option, row = way.get(at) or _smallest(source, number)
        parts = [expand(child, (*at, place)) for place, child in enumerate(option.rows[row])]
        if option.links[row].head >= 0 and len(heads) > start:
            headed.append((start, len(heads)))
        return join(option.links[row], parts, heads, relations)

    expand(0, ())
    return heads, relations, headed


def _smallest(source: GroundGrammar, number: int) -> _Step:
    option = min(source.nodes[number].options, key=lambda known: known.height)
    heights = [max([source.nodes[c].height for c in row], default=0) for row in option.rows]
    return number, option, heights.index(min(heights))
