"""Breakdowns: they add up to the score, agree with other ways of counting, and say which part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from spmrl_bench.errors import ScoreError
from spmrl_bench.readers.brackets import parse_brackets
from spmrl_bench.scoring import BracketCounts, Column, Status, load_prm, score_trees
from spmrl_bench.scoring.breakdown import (
    BracketTable,
    Part,
    by_label,
    by_sentence_length,
    by_span_length,
    labelled,
    tabulate_brackets,
    unlabelled,
)
from spmrl_bench.scoring.policy import MissingParse, Policy, Punctuation
from spmrl_bench.trees import Tree
from tests.scoring.hostile import hostile_trees

PRMS = ("COLLINS", "new", "nk", "spmrl", "spmrl_hebrew")
POLICIES = (Policy(), Policy(MissingParse.COUNT, Punctuation.BY_GOLD))


def table_of(gold: Sequence[str], test: Sequence[str], prm: str = "spmrl") -> BracketTable:
    sides = ([parse_brackets(text, blank="tree") for text in side] for side in (gold, test))
    return tabulate_brackets(*sides, load_prm(prm))


def totals(parts: Sequence[Part]) -> list[int]:
    return [sum(getattr(part, name) for part in parts) for name in ("matched", "gold", "test")]


@pytest.fixture(scope="module")
def hostile() -> tuple[list[Tree], list[Tree]]:
    return hostile_trees(400, seed=11)


@pytest.mark.parametrize("policy", POLICIES, ids=["published", "lenient"])
@pytest.mark.parametrize("name", PRMS)
def test_tables_agree_with_the_counts(
    hostile: tuple[list[Tree], list[Tree]], name: str, policy: Policy
) -> None:
    prm = load_prm(name)
    counts = score_trees(*hostile, prm, policy)
    table = tabulate_brackets(*hostile, prm, policy)
    columns = [Column.MATCHED, Column.GOLD, Column.TEST]
    assert np.array_equal(table.by_sentence(), counts.rows[:, columns])
    whole = [counts.total(column) for column in columns]
    assert whole[0] > 100
    for parts in (
        [labelled(table)],
        by_label(table),
        by_span_length(table),
        by_sentence_length(counts),
    ):
        assert totals(parts) == whole
    assert labelled(table).f1 == counts.f1
    assert sum(part.sentences for part in by_sentence_length(counts)) == counts.valid

    ignored = score_trees(*hostile, replace(prm, labeled=False), policy)
    assert totals([unlabelled(table)]) == [ignored.total(column) for column in columns]
    assert unlabelled(table).f1 == ignored.f1
    assert ignored.total(Column.MATCHED) > counts.total(Column.MATCHED)


GOLD = [
    "(S (NP (DT the) (NN dog)) (VP (VBZ sees) (NP (DT a) (NN cat))))",
    "(S (NP (NP (NN rain))) (VP (VBZ falls)))",
    "(S (ADVP (RB here)))",
]
TEST = [
    "(S (NP (DT the) (NN dog)) (VP (VBZ sees)) (NX (DT a) (NN cat)))",
    "(S (NP (NN rain)) (NP (VBZ falls)))",
    "(())",
]


def test_parts_of_a_small_corpus() -> None:
    table = table_of(GOLD, TEST)
    assert table.sentences == 3
    assert by_label(table) == [
        Part("NP", 2, matched=2, gold=4, test=3),
        Part("S", 2, matched=2, gold=2, test=2),
        Part("VP", 2, matched=0, gold=2, test=1),
        Part("NX", 1, matched=0, gold=0, test=1),
    ]
    assert by_span_length(table) == [
        Part("1", 2, matched=1, gold=3, test=3),
        Part("2", 2, matched=2, gold=3, test=3),
        Part("3", 1, matched=0, gold=1, test=0),
        Part("5", 1, matched=1, gold=1, test=1),
    ]
    # NX has the span of an NP, and the second NP that of a VP.
    assert unlabelled(table) == Part("unlabelled", 2, matched=6, gold=8, test=7)
    assert labelled(table) == Part("all", 2, matched=4, gold=8, test=7)


def test_labels_that_gold_lacks_come_last_by_their_number() -> None:
    table = table_of(["(S (NN a) (NN b))"], ["(S (A (NN a)) (B (B (NN b))))"])
    assert [(part.name, part.gold, part.test) for part in by_label(table)] == [
        ("S", 1, 1),
        ("B", 0, 2),
        ("A", 0, 1),
    ]


def test_percentages_of_a_part() -> None:
    assert Part("NP", 1, matched=2, gold=4, test=3).recall == 50.0
    assert Part("NP", 1, matched=2, gold=4, test=3).precision == pytest.approx(200 / 3)
    assert Part("NP", 1, matched=2, gold=4, test=3).f1 == pytest.approx(400 / 7)
    nothing = Part("NX", 1, matched=0, gold=0, test=1)
    assert (nothing.recall, nothing.precision, nothing.f1) == (None, 0.0, 0.0)


def test_labels_that_are_equal_are_one_part() -> None:
    table = table_of(["(S (PRT (RP up)) (NN x))"], ["(S (ADVP (RP up)) (NN x))"], "COLLINS")
    assert by_label(table)[0] == Part("ADVP", 1, matched=1, gold=1, test=1)


def test_classes_of_sentence_length_include_their_bounds() -> None:
    counts = BracketCounts.from_rows(
        (length, status, 1, 2, 2, 0, length, 0)
        for length, status in (
            *((1, Status.VALID), (10, Status.VALID), (11, Status.MISSED), (20, Status.VALID)),
            *((40, Status.NO_WORDS), (51, Status.VALID)),
        )
    )
    parts = by_sentence_length(counts)
    assert [(part.name, part.sentences, part.gold) for part in parts] == [
        ("up to 10", 2, 4),
        ("11-20", 2, 4),
        ("over 50", 1, 2),
    ]


def test_nothing_that_counts_has_no_parts() -> None:
    table = table_of(["(NN dog)"], ["(())"])
    assert by_label(table) == by_span_length(table) == []
    assert unlabelled(table).f1 is None
    assert table.by_sentence().tolist() == [[0, 0, 0]]


def test_sides_of_different_length_are_refused() -> None:
    with pytest.raises(ScoreError, match="gold has 3 sentences, test has 1"):
        table_of(GOLD, TEST[:1])
