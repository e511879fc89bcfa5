"""Derivations through every rule of a grammar, which sampling may take years to draw."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tools.minigen.ground import GroundGrammar, Option
from tools.minigen.links import Links

#: A number of a node, its option, the row of it.
_Step = tuple[int, Option, int]
#: The key of the rule; parents and links as the sampler records them; the spans that have a head.
Derived = tuple[str, list[int], list[Links | None], list[tuple[int, int]]]


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
) -> tuple[list[int], list[Links | None], list[tuple[int, int]]]:
    """The derivation that takes these steps at these places and the smallest ones elsewhere."""
    nodes, symbols = source.nodes, source.grammar.symbols
    parents: list[int] = []
    links: list[Links | None] = []
    headed: list[tuple[int, int]] = []

    def expand(number: int, parent: int, at: tuple[int, ...]) -> int:
        """How many words there are in it."""
        unit = len(parents)
        parents.append(parent)
        if symbols[nodes[number].symbol].kind != "phrase":
            links.append(None)
            return 1
        _, option, row = way.get(at) or _smallest(source, number)
        start = links.count(None)
        links.append(option.links[row])
        children = enumerate(option.rows[row])
        words = sum(expand(child, unit, (*at, place)) for place, child in children)
        if option.links[row].head >= 0 and words:
            headed.append((start, start + words))
        return words

    expand(0, -1, ())
    return parents, links, headed


def _smallest(source: GroundGrammar, number: int) -> _Step:
    option = min(source.nodes[number].options, key=lambda known: known.height)
    heights = [max([source.nodes[c].height for c in row], default=0) for row in option.rows]
    return number, option, heights.index(min(heights))
