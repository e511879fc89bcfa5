"""What makes heads a tree that agrees with constituents, and derivations through every rule."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from spmrl_bench.treebanks.mini.ground import GroundGrammar, Option
from spmrl_bench.treebanks.mini.links import Links
from spmrl_bench.trees.parse import Parse

RELATIONS = """
acl advcl advmod amod appos aux case cc ccomp clf compound conj cop csubj dep det discourse
dislocated expl fixed flat goeswith iobj list mark nmod nsubj nummod obj obl orphan parataxis punct
reparandum root vocative xcomp
"""
#: The relations of Universal Dependencies, without subtypes.
UNIVERSAL = set(RELATIONS.split())


def written(parse: Parse) -> str:
    """The words with relation and head, without the constituents."""
    return str(Parse.of(dependencies=parse.dependencies))


def projective(heads: Sequence[int]) -> bool:
    """Whether all words between a word and its head are below that head."""
    return all(
        head in chain(heads, between)
        for word, head in enumerate(heads, start=1)
        for between in range(min(word, head) + 1, max(word, head))
    )


def chain(heads: Sequence[int], word: int) -> list[int]:
    """A word, its head, the head of that, and so on; ends with 0."""
    found = [word]
    while found[-1] and len(found) <= len(heads) + 1:
        found.append(heads[found[-1] - 1])
    return found


def outside(heads: Sequence[int], start: int, end: int) -> int:
    """How many words of a span (fenceposts) have a head that is not in it."""
    return sum(not start < heads[place] <= end for place in range(start, end))


@dataclass
class Derivation:
    """What the sampler records of a derivation, and the spans of phrases with a head."""

    parents: list[int]
    links: list[Links | None]
    headed: list[tuple[int, int]]


Step = tuple[int, Option, int]  # node, its option, the row


def derivations(source: GroundGrammar) -> Iterator[tuple[str, Derivation]]:
    """A derivation, as small as can be, through each rule with each of its links."""
    nodes = source.nodes
    above: dict[int, tuple[Step, int]] = {0: ((0, nodes[0].options[0], 0), -1)}
    targets: dict[tuple[str, Links], Step] = {}
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
        way: dict[tuple[int, ...], Step] = {}
        places: list[int] = []
        steps = [step]
        while steps[-1][0]:
            before, place = above[steps[-1][0]]
            steps.append(before)
            places.append(place)
        for depth, taken in enumerate(reversed(steps)):
            way[tuple(places[len(places) - depth :][::-1])] = taken
        yield key, expanded(source, way)


def expanded(source: GroundGrammar, way: dict[tuple[int, ...], Step]) -> Derivation:
    """The derivation that takes these steps at these places and the smallest ones elsewhere."""
    nodes, symbols = source.nodes, source.grammar.symbols
    result = Derivation([], [], [])
    words = 0

    def expand(number: int, parent: int, at: tuple[int, ...]) -> None:
        nonlocal words
        unit = len(result.parents)
        result.parents.append(parent)
        if symbols[nodes[number].symbol].kind != "phrase":
            result.links.append(None)
            words += 1
            return
        if at in way:
            _, option, row = way[at]
        else:
            option = min(nodes[number].options, key=lambda known: known.height)
            row = min(
                range(len(option.rows)),
                key=lambda known: max((nodes[c].height for c in option.rows[known]), default=0),
            )
        start = words
        result.links.append(option.links[row])
        for place, child in enumerate(option.rows[row]):
            expand(child, unit, (*at, place))
        if option.links[row].head >= 0 and words > start:
            result.headed.append((start, words))

    expand(0, -1, ())
    return result
