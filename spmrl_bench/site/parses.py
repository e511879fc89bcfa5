"""The parses of an entry, where they are at hand and are the ones that were scored.

``eval --save-parses`` keeps parses and gold trees among the results. Their files are known by the
name of a run only, so they are believed where they give the counts of the record, sentence by
sentence, and not otherwise. Aggregates of them (scores by label) may be told of any treebank; the
sentences themselves only where :mod:`~spmrl_bench.site.licences` says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from spmrl_bench.errors import SpmrlError
from spmrl_bench.leaderboard.board import Entry, View
from spmrl_bench.leaderboard.frame import StoredRecord
from spmrl_bench.leaderboard.saved_parses import SavedParses
from spmrl_bench.scoring.metric import BreakdownRow, metric_named
from spmrl_bench.site.licences import Facts
from spmrl_bench.trees.parse import Layer, Parse

_BY = "label"


@dataclass(frozen=True)
class AtHand:
    """The parses of one run on one split.

    Attributes:
        run: which of the runs of an entry it is, in words; empty where there is one.
        layer: of annotation.
        gold, parses: of each sentence.
    """

    run: str
    layer: Layer
    gold: Sequence[Parse]
    parses: Sequence[Parse]


def parses_of(entry: Entry, view: View, facts: Facts | None) -> AtHand | None:
    """The parses of the first of an entry's runs that has them; None where none is believed."""
    metric, split = view
    if entry.kind == "baseline" or facts is None:
        return None
    for one in entry.stored:
        found = _read(one, metric, split, facts)
        if found is not None:
            run = f"seed {one.record.seed}" if len(entry.stored) > 1 else ""
            return AtHand(run, metric_named(metric).layers[0], *found)
    return None


def label_parts(at_hand: AtHand, view: View, facts: Facts) -> list[BreakdownRow]:
    """The score by label, the most frequent in gold first; nothing where there is no such thing."""
    metric = metric_named(view[0])
    rules = facts.rules.get(metric.name)
    if _BY not in metric.breakdowns or rules is None:
        return []
    counts = metric.count(at_hand.gold, at_hand.parses, rules)
    # The last two are of all labels, and without labels.
    return list(metric.break_down(_BY, counts, at_hand.gold, at_hand.parses, rules))[:-2]


def _read(
    one: StoredRecord, metric: str, split: str, facts: Facts
) -> tuple[list[Parse], list[Parse]] | None:
    record, rules = one.record, facts.rules.get(metric)
    result = record.result(split)
    scorer = metric_named(metric)
    if result is None or metric not in result.metrics or rules is None or len(scorer.layers) != 1:
        return None
    try:
        found = SavedParses.of_record(one.results, record).read(split, scorer.layers[0])
        counts = scorer.count(*found, rules)
    except SpmrlError:
        return None
    return found if counts.to_columns() == result.metrics[metric].counts else None
