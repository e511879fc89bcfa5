"""The parses behind a score, where they are kept; and two entries sentence by sentence.

The files of kept parses are known by the name of a run only, so they are believed where they give
the counts of the record, sentence by sentence, and not otherwise. Figures that follow from them
may be told of any treebank, their words of those alone that may show sentences.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from markupsafe import Markup

from spmrl_bench.errors import SpmrlError
from spmrl_bench.leaderboard.board import Entry, Sums, View
from spmrl_bench.leaderboard.saved_parses import SavedParses
from spmrl_bench.scoring.metric import metric_named
from spmrl_bench.site.parts import Cell, Table, Value
from spmrl_bench.treebanks.manifest import Manifest
from spmrl_bench.trees.dependencies import DependencyTree
from spmrl_bench.trees.draw import boxes, head_text
from spmrl_bench.trees.parse import Parse
from spmrl_bench.trees.tree import Tree, collapsed_spans

MOST_SENTENCES = 10


class KeptParses(NamedTuple):
    """Parses of one run on a split."""

    gold: Sequence[Parse]
    parses: Sequence[Parse]
    # Gold brackets and F1 by label, the most frequent first; empty where the metric has no labels.
    labels: Mapping[str, tuple[int, float | None]]


def kept_parses(entry: Entry, view: View, manifest: Manifest | None) -> KeptParses | None:
    """Those of the first of an entry's runs that has any; None where none are believed."""
    metric, options = metric_named(view[0]), manifest.rules.get(view[0]) if manifest else None
    if manifest is None or options is None or len(metric.layers) != 1:
        return None
    for one in entry.runs:
        try:
            rules: Any = metric.rules(options)
            saved = SavedParses.of_record(one.results, one.record)
            gold, parses = saved.read(view[1], metric.layers[0])
            counts = metric.count(gold, parses, rules)
            result = one.record.result(view[1])
            if not result or counts.to_columns() != result.counts(view[0]).to_columns():
                continue
            labels = {}
            if "label" in metric.breakdowns:
                # The last two are of all labels, and without labels.
                parts = metric.break_down("label", counts, gold, parses, rules)[:-2]
                labels = {
                    part.name: (part.gold, part.figures()["f1"]) for part in parts if part.gold
                }
        except SpmrlError:  # not kept, not readable, or not of the same sentences
            continue
        return KeptParses(gold, parses, labels)
    return None


class Comparison(NamedTuple):
    """On how many sentences the first makes fewer errors, more, or as many; and where most."""

    better: int
    worse: int
    equal: int
    # Number of the sentence, from 1; its words, if known; errors of both, brackets or words that
    # are missing or wrong, as means over the runs of an entry.
    differing: Sequence[tuple[int, int | None, float, float]]


def compared(one: Sums, other: Sums) -> Comparison:
    """Two entries of the same sentences, with those in which they differ most."""
    first, second = (
        (side.ratio.denominator - side.ratio.numerator) / side.runs for side in (one, other)
    )
    difference = np.where(one.scored, first - second, 0.0)
    order = np.argsort(-np.abs(difference), kind="stable")[:MOST_SENTENCES]
    differing = [
        (k + 1, one.lengths[k] if one.lengths else None, first[k].item(), second[k].item())
        for k in order.tolist()
        if difference[k]
    ]
    better, worse = int((difference < 0).sum()), int((difference > 0).sum())
    return Comparison(better, worse, int(one.scored.sum()) - better - worse, differing)


def side_by_side(
    number: int, split: str, names: Sequence[str], one: KeptParses, other: KeptParses
) -> Markup | Table:
    """Gold and both parses of a sentence: trees as boxes, arcs as a table."""
    gold, *found = (side[number - 1] for side in (one.gold, one.parses, other.parses))
    if gold.tree:
        trees = [parse.tree for parse in found if parse.tree]
        return Markup("".join(_boxes(gold.tree, trees, names)))
    arcs = [parse.dependencies for parse in (gold, *found) if parse.dependencies]
    rows: list[list[Value]] = []
    for k, word in enumerate(gold.words):
        right, *own = (_arc(tree, k) for tree in arcs)
        cells = (Cell(arc, tag="" if arc == right else "wrong") for arc in own)
        rows.append([f"{k + 1} {word}", right, *cells])
    caption = f"Relation and head of each word, sentence {number} of {split}"
    return Table(f"arcs-{split}-{number}", caption, ["word", "gold", *names], rows, fixed=True)


def _boxes(gold: Tree, trees: Sequence[Tree], names: Sequence[str]) -> Iterator[str]:
    right, *found = ({span[:2]: span[2] for span in collapsed_spans(one)} for one in (gold, *trees))
    missed = {at for at in right if any(own.get(at) != right[at] for own in found)}
    yield boxes(gold, missed, "gold")
    for tree, own, name in zip(trees, found, names, strict=True):
        yield boxes(tree, {at for at in own if right.get(at) != own[at]}, "parser", name)


def _arc(tree: DependencyTree, word: int) -> str:
    if tree.heads[word] < 0:  # of an answer that could not be scored
        return "no answer"
    return f"{tree.relations[word]} {head_text(tree, word)}"
