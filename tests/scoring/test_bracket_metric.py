"""Reports and breakdowns of bracket scores: complete, and adding up to the score."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from itertools import product

import pytest

from spmrl_bench.errors import ScoreError
from spmrl_bench.scoring import (
    BracketCounts,
    Column,
    MissingParse,
    Policy,
    Punctuation,
    Status,
    load_prm,
)
from spmrl_bench.scoring.bracket_metric import (
    BRACKETS,
    BracketRules,
    by_sentence_length,
    left_out,
    require_all,
)
from spmrl_bench.scoring.metric import BreakdownRow
from spmrl_bench.trees.parse import Parse
from tests.scoring.hostile import as_trees, hostile_trees
from tests.scoring.test_counts import ROWS

COLLINS = BracketRules(load_prm("COLLINS"))
COUNTS = BracketCounts.from_rows(ROWS)
MISSED = (7, Status.MISSED, 0, 8, 0, 0, 7, 0)


def test_the_report_survives_json() -> None:
    report = BRACKETS.report_dict(COUNTS, COLLINS)
    assert json.loads(json.dumps(report, allow_nan=False)) == report
    assert report == {
        "prm": "COLLINS",
        "program": "EVALB",
        "all": BRACKETS.values(COUNTS),
        "cutoff_len": 40,
        "up_to_cutoff": BRACKETS.values(COUNTS.up_to(40)),
        "left_out": {"length_unmatch": [3], "no_words": [5]},
        "missed": [],
    }
    nothing = BRACKETS.report_dict(BracketCounts.from_rows([]), COLLINS)
    assert json.loads(json.dumps(nothing, allow_nan=False)) == nothing


def test_text_says_how_many_were_left_out_why_and_which() -> None:
    text = BRACKETS.report(COUNTS, COLLINS)
    assert "COLLINS, conventions of EVALB" in text
    rows = {line[:20].strip(): line[20:].split() for line in text.splitlines() if line}
    assert rows[""] == ["all", "length", "<=", "40"]
    assert rows["sentences"] == ["5", "3"]
    assert rows["left out"] == ["2", "2"]
    assert rows["recall"] == ["58.00", "75.00"]
    assert rows["F1"] == ["64.44", "80.00"]
    assert "LEFT OUT of every figure: 2 of 5 sentences\n" in text
    assert "  different number of words: 1 (sentence 3)\n" in text
    assert "  no parse, or no words to score: 1 (sentence 5)\n" in text
    row = (3, Status.WORDS_UNMATCH, 0, 0, 0, 0, 0, 0)
    text = BRACKETS.report(BracketCounts.from_rows([row] * 12), COLLINS)
    assert "different words: 12 (sentence 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, ...)" in text
    assert "n/a" in text
    assert "LEFT OUT" not in BRACKETS.report(BracketCounts.from_rows(ROWS[:2]), COLLINS)


def test_missed_parses_are_listed() -> None:
    counts = BracketCounts.from_rows([*ROWS[:2], MISSED])
    assert BRACKETS.report_dict(counts, COLLINS)["missed"] == [3]
    assert left_out(counts) == {}
    text = BRACKETS.report(counts, COLLINS)
    assert text.endswith("\nWithout a parse, all gold brackets missed: 1 (sentence 3)\n")


def test_strict_lists_the_first_sentences() -> None:
    require_all(BracketCounts.from_rows([*ROWS[:2], MISSED]))
    message = "2 of 5 .*: sentence 3: different number of words; sentence 5: no parse, or no words"
    with pytest.raises(ScoreError, match=message):
        require_all(COUNTS)
    with pytest.raises(ScoreError, match=r"^22 of 22 .*; sentence 10: [a-z ]+; \.\.\.$"):
        require_all(BracketCounts.from_rows([ROWS[4], ROWS[2]] * 11))


def test_rules_that_cannot_be() -> None:
    for options, problem in (
        ({}, "without a parameter set"),
        ({"prm": "COLINS"}, "Did you mean COLLINS"),
        ({"prm": "spmrl", "pmr": 1}, "'pmr'.*prm"),
    ):
        with pytest.raises(ValueError, match=problem):
            BRACKETS.check_rules(options)
    BRACKETS.check_rules({"prm": "spmrl"})


# Breakdowns ----------------------------------------------------------------------------------

PRMS = ("COLLINS", "new", "nk", "spmrl", "spmrl_hebrew")
POLICIES = (Policy(), Policy(MissingParse.COUNT, Punctuation.BY_GOLD))


def broken_down(
    how: str, gold: Sequence[Parse], test: Sequence[Parse], rules: BracketRules
) -> list[BreakdownRow]:
    return BRACKETS.break_down(how, BRACKETS.count(gold, test, rules), gold, test, rules)


def of_lines(how: str, gold: list[str], test: list[str], prm: str = "spmrl") -> list[BreakdownRow]:
    sides = (list(map(Parse.of, as_trees(lines))) for lines in (gold, test))
    return broken_down(how, *sides, BracketRules(load_prm(prm)))


@pytest.mark.parametrize("policy", POLICIES, ids=["published", "lenient"])
def test_rows_add_up_to_the_score(policy: Policy) -> None:
    gold, test = (list(map(Parse.of, side)) for side in hostile_trees(120, seed=11))
    for name, how in product(PRMS, BRACKETS.breakdowns):
        rules = BracketRules(load_prm(name), policy)
        *rows, every, unlabelled = broken_down(how, gold, test, rules)
        counts = BRACKETS.count(gold, test, rules)
        columns = [Column.MATCHED, Column.GOLD, Column.TEST]
        whole = [counts.total(column) for column in columns]
        assert whole[0] > 100
        sums = [
            sum(column) for column in zip(*((r.matched, r.gold, r.test) for r in rows), strict=True)
        ]
        assert sums == [every.matched, every.gold, every.test] == whole, (name, how)
        assert every.figures()["f1"] == counts.f1
        if how == "length":
            assert sum(row.sentences for row in rows) == counts.valid
        else:
            ignored = BracketRules(replace(rules.prm, labeled=False), policy)
            without = BRACKETS.count(gold, test, ignored)
            totals = [without.total(column) for column in columns]
            assert [unlabelled.matched, unlabelled.gold, unlabelled.test] == totals
            assert totals[0] > whole[0]


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


def test_rows_of_a_small_corpus() -> None:
    whole = [
        BreakdownRow("all", 2, matched=4, gold=8, test=7),
        # NX has the span of an NP, and the second NP that of a VP.
        BreakdownRow("unlabelled", 2, matched=6, gold=8, test=7),
    ]
    assert of_lines("label", GOLD, TEST) == [
        BreakdownRow("NP", 2, matched=2, gold=4, test=3),
        BreakdownRow("S", 2, matched=2, gold=2, test=2),
        BreakdownRow("VP", 2, matched=0, gold=2, test=1),
        BreakdownRow("NX", 1, matched=0, gold=0, test=1),
        *whole,
    ]
    assert of_lines("span", GOLD, TEST) == [
        BreakdownRow("1", 2, matched=1, gold=3, test=3),
        BreakdownRow("2", 2, matched=2, gold=3, test=3),
        BreakdownRow("3", 1, matched=0, gold=1, test=0),
        BreakdownRow("5", 1, matched=1, gold=1, test=1),
        *whole,
    ]


def test_labels_in_order_and_equal_labels_as_one() -> None:
    rows = of_lines("label", ["(S (NN a) (NN b))"], ["(S (A (NN a)) (B (B (NN b))))"])
    assert [(row.name, row.gold, row.test) for row in rows[:-2]] == [
        ("S", 1, 1),
        ("B", 0, 2),
        ("A", 0, 1),
    ]
    rows = of_lines("label", ["(S (PRT (RP up)) (NN x))"], ["(S (ADVP (RP up)) (NN x))"], "COLLINS")
    assert rows[0] == BreakdownRow("ADVP", 1, matched=1, gold=1, test=1)


def test_percentages_of_a_row() -> None:
    figures = BreakdownRow("NP", 1, matched=2, gold=4, test=3).figures()
    expected = {"recall": 50.0, "precision": 200 / 3, "f1": 400 / 7}
    assert {name: figures[name] for name in expected} == pytest.approx(expected)
    nothing = BreakdownRow("NX", 1, matched=0, gold=0, test=1).figures()
    assert (nothing["recall"], nothing["precision"], nothing["f1"]) == (None, 0.0, 0.0)


def test_classes_of_sentence_length_include_their_bounds() -> None:
    counts = BracketCounts.from_rows(
        (length, status, 1, 2, 2, 0, length, 0)
        for length, status in (
            *((1, Status.VALID), (10, Status.VALID), (11, Status.MISSED), (20, Status.VALID)),
            *((40, Status.NO_WORDS), (51, Status.VALID)),
        )
    )
    assert [(row.name, row.sentences, row.gold) for row in by_sentence_length(counts)] == [
        ("up to 10", 2, 4),
        ("11-20", 2, 4),
        ("over 50", 1, 2),
    ]


def test_nothing_that_counts_has_no_rows() -> None:
    for how in ("label", "span", "length"):
        assert [row.name for row in of_lines(how, ["(NN dog)"], ["(())"])] == ["all", "unlabelled"]
