"""Two entries sentence by sentence: where one makes fewer errors than the other, and its trees.

Errors of a sentence are what is wanting of a full score: brackets of either side that the other
has not, or words with a wrong head or relation. They are means over the runs of an entry, so that
an entry of five seeds stands beside one of a single seed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from markupsafe import Markup

from spmrl_bench.leaderboard.board import Sums
from spmrl_bench.site.parses import AtHand
from spmrl_bench.trees.dependencies import DependencyTree
from spmrl_bench.trees.draw import boxes, head_text
from spmrl_bench.trees.tree import Tree, collapsed_spans

#: Of so many sentences on each side the counts stand on a page; trees of a few.
MOST_ROWS = 20
MOST_TREES = 10


class Row(NamedTuple):
    """A sentence of which two entries do not make the same number of errors."""

    number: int
    words: int | None
    one: float
    other: float

    @property
    def difference(self) -> float:
        """Errors of the first less those of the second: positive where the second is better."""
        return self.one - self.other


class Sides(NamedTuple):
    """All sentences of two entries.

    Attributes:
        better, worse, equal: how many sentences the first does better on, worse, or as well.
        rows: those that differ, the largest differences first.
    """

    better: int
    worse: int
    equal: int
    rows: Sequence[Row]

    def most(self, number: int = MOST_ROWS) -> list[Row]:
        """The sentences with the largest differences in either direction."""
        ahead = [row for row in self.rows if row.difference < 0][:number]
        behind = [row for row in self.rows if row.difference > 0][:number]
        return sorted([*ahead, *behind], key=lambda row: (-abs(row.difference), row.number))


def sides(one: Sums, other: Sums) -> Sides:
    """Two entries of the same sentences side by side."""
    first, second = (
        (side.ratio.denominator - side.ratio.numerator) / side.runs for side in (one, other)
    )
    both = one.scored & other.scored
    difference = np.where(both, first - second, 0.0)
    order = np.lexsort((np.arange(len(difference)), -np.abs(difference)))
    rows = [
        Row(
            k + 1,
            one.lengths[k] if one.lengths is not None else None,
            float(first[k]),
            float(second[k]),
        )
        for k in order.tolist()
        if difference[k]
    ]
    better, worse = int((difference < 0).sum()), int((difference > 0).sum())
    return Sides(better, worse, int(both.sum()) - better - worse, rows)


# ---- Trees ----


class Drawn(NamedTuple):
    """The trees of a sentence as HTML."""

    row: Row
    boxes: Markup


def drawn(
    rows: Sequence[Row], one: AtHand, other: AtHand, names: tuple[str, str]
) -> Iterator[Drawn]:
    """Gold and both parses of the first sentences, side by side."""
    for row in rows[:MOST_TREES]:
        k = row.number - 1
        if one.layer == "constituents":
            trees = one.gold[k].tree, one.parses[k].tree, other.parses[k].tree
            text = "".join(_boxes(trees, names))
        else:
            arcs = (
                one.gold[k].dependencies,
                one.parses[k].dependencies,
                other.parses[k].dependencies,
            )
            text = _arcs(arcs, names, row.number)
        yield Drawn(row, Markup(text))


def _boxes(trees: Sequence[Tree | None], names: tuple[str, str]) -> Iterator[str]:
    gold, *found = (
        {(s, e): label for s, e, label in collapsed_spans(tree)} if tree else {} for tree in trees
    )
    missed = {span for span, label in gold.items() if any(own.get(span) != label for own in found)}
    if trees[0] is not None:
        yield boxes(trees[0], missed, "gold")
    for tree, own, name in zip(trees[1:], found, names, strict=True):
        if tree is not None:
            wrong = {span for span, label in own.items() if gold.get(span) != label}
            yield boxes(tree, wrong, "parser", name)


def _arcs(trees: Sequence[DependencyTree | None], names: tuple[str, str], number: int) -> str:
    gold, *found = trees
    if gold is None or any(tree is None for tree in found):
        return ""
    cell = Markup('<td dir="auto">{}</td>')
    wrong = Markup('<td dir="auto" class="wrong">{} <span class="unseen">(wrong)</span></td>')
    rows = []
    for k, word in enumerate(gold.words):
        right = _arc(gold, k)
        own = (_arc(tree, k) for tree in found if tree is not None)
        cells = Markup("").join(
            cell.format(arc) if arc == right else wrong.format(arc) for arc in own
        )
        head = Markup('<th scope="row" dir="auto">{} {}</th>').format(k + 1, word)
        rows.append(Markup("<tr>{}{}{}</tr>").format(head, cell.format(right), cells))
    heads = Markup("").join(
        Markup('<th scope="col">{}</th>').format(name) for name in ("word", "gold", *names)
    )
    title = f"Relation and head of each word, sentence {number}"
    body = Markup("\n").join(rows)
    return Markup(
        '<div class="wide" role="region" tabindex="0" aria-label="{}">\n<table>'
        "<caption><span>{}</span></caption><thead><tr>{}</tr></thead>\n"
        "<tbody>\n{}\n</tbody></table></div>"
    ).format(title, title, heads, body)


def _arc(tree: DependencyTree, word: int) -> str:
    if tree.heads[word] < 0:  # of an answer that could not be scored
        return "no answer"
    return f"{tree.relations[word]} {head_text(tree, word)}".strip()
