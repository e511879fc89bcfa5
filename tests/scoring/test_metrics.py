"""Corpus figures as functions of counts, what holds of every metric, reports and breakdowns."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from itertools import product

import pytest

from spmrl_bench import __version__
from spmrl_bench.errors import ScoreError
from spmrl_bench.readers.brackets import parse_brackets
from spmrl_bench.scoring import (
    BracketCounts,
    Column,
    MissingParse,
    Policy,
    Punctuation,
    Status,
    load_prm,
)
from spmrl_bench.scoring.attachment import ATTACHMENT, Attachment, AttachmentRules
from spmrl_bench.scoring.bracket_metric import (
    BRACKETS,
    BracketRules,
    by_sentence_length,
    left_out,
    require_all,
)
from spmrl_bench.scoring.counts import AttachmentCounts
from spmrl_bench.scoring.metric import METRICS, BreakdownRow, SelectionMetric, metric_named
from spmrl_bench.scoring.signature import sign
from spmrl_bench.trees import Tree
from spmrl_bench.trees.dependencies import DependencyTree
from spmrl_bench.trees.parse import Parse
from tests.builders import chained
from tests.scoring.hostile import as_trees, hostile_trees

ROWS = [
    # length, status, matched, gold, test, crossing, words, matched tags
    (10, Status.VALID, 6, 8, 7, 1, 9, 9),
    (50, Status.VALID, 20, 20, 20, 0, 45, 40),
    (12, Status.LENGTH_UNMATCH, 0, 0, 0, 0, 0, 0),
    (41, Status.VALID, 3, 22, 13, 3, 36, 35),
    (7, Status.NO_WORDS, 0, 0, 0, 0, 0, 0),
]


def test_figures_of_a_corpus() -> None:
    counts = BracketCounts.from_rows(ROWS)
    assert (len(counts), counts.valid, counts.skipped) == (5, 3, 2)
    assert counts.recall == 100 * 29 / 50
    assert counts.precision == 100 * 29 / 40
    assert counts.f1 == pytest.approx(100 * 2 * 29 / 90)
    assert counts.complete_match == pytest.approx(100 / 3)
    assert counts.average_crossing == 4 / 3
    assert counts.no_crossing == pytest.approx(100 / 3)
    assert counts.two_or_less_crossing == pytest.approx(200 / 3)
    assert counts.tagging_accuracy == 100 * 84 / 90
    assert counts.total(Column.GOLD) == 50
    assert counts.sentences_with(Status.NO_WORDS).tolist() == [4]


def test_no_parse_is_no_complete_match() -> None:
    """Not even of a sentence in which gold has no bracket either."""
    row = (1, Status.VALID, 0, 0, 0, 0, 1, 1)
    assert BracketCounts.from_rows([row]).complete_match == 100
    missed = (1, Status.MISSED, *row[2:])
    assert BracketCounts.from_rows([row, missed]).complete_match == 50


def test_length_limit_includes_the_limit() -> None:
    counts = BracketCounts.from_rows(ROWS)
    assert len(counts.up_to(41)) == 4
    assert counts.up_to(40).recall == 75.0
    assert counts.up_to(40).skipped == 2
    assert len(counts.up_to(6)) == 0


def test_nothing_scored_gives_no_figures() -> None:
    for rows in [[], ROWS[2:3]]:
        counts = BracketCounts.from_rows(rows)
        numbers = {"sentences": len(rows), "scored": 0, "skipped": len(rows)}
        assert BRACKETS.values(counts) == dict.fromkeys(BRACKETS.figures) | numbers


def test_f1_where_nothing_matches() -> None:
    for brackets, figures in [
        ((0, 0, 0), (None, None, None)),
        ((0, 3, 0), (0.0, None, 0.0)),
        ((0, 0, 3), (None, 0.0, 0.0)),
        ((0, 3, 2), (0.0, 0.0, 0.0)),
    ]:
        counts = BracketCounts.from_rows([(5, Status.VALID, *brackets, 0, 5, 5)])
        assert (counts.recall, counts.precision, counts.f1) == figures


def test_rows_cannot_change() -> None:
    arcs = AttachmentCounts.from_rows(ARCS)
    for counts in (BracketCounts.from_rows(ROWS), arcs, arcs.with_punctuation()):
        with pytest.raises(ValueError, match="read-only"):
            counts.rows[0, 2] = 99


def test_rows_of_something_else_are_refused() -> None:
    with pytest.raises(ScoreError, match="row 2 holds no bracket counts"):
        BracketCounts.from_rows([ROWS[0], (1, 9, 0, 0, 0, 0, 0, 0)])


def test_columns_are_read_back() -> None:
    counts = BracketCounts.from_rows(ROWS)
    columns = counts.to_columns()
    assert columns["matched_tags"] == [9, 40, 0, 35, 0]
    assert BracketCounts.from_columns(columns | {"later": [1]}).rows.tolist() == list(
        map(list, ROWS)
    )


def test_columns_that_cannot_be() -> None:
    for change, message in [
        ({"gold": None}, "of one length; missing: gold$"),
        ({"gold": None, "words": None}, "missing: gold, words$"),
        ({"gold": [1, 2]}, "counts need the columns length, .*matched_tags, all of one length"),
        ({"status": [0, 9, 0, 0, 0]}, "row 2 holds no bracket counts"),
        ({"test": [7, 20, 0, 13, -1]}, "row 5 holds no bracket counts"),
    ]:
        columns = BracketCounts.from_rows(ROWS).to_columns() | change
        given = {name: values for name, values in columns.items() if values is not None}
        with pytest.raises(ScoreError, match=message):
            BracketCounts.from_columns(given)


# Attachment ----------------------------------------------------------------------------------

# Five words, one of them punctuation; two words, both right; punctuation only.
ARCS = [(4, 3, 2, 2, 5, 3, 3, 2), (2, 2, 2, 2, 2, 2, 2, 2), (0, 0, 0, 0, 1, 1, 0, 0)]


def test_rows_that_contradict_themselves() -> None:
    for row in [
        (1, 2, 1, 1, 2, 2, 1, 1),  # more right heads than words
        (2, 1, 1, 2, 2, 1, 1, 2),  # both right more often than one
        (2, 2, 2, 1, 2, 2, 2, 1),  # two right heads and relations of two words, but not both
        (2, 1, 1, 1, 1, 1, 1, 1),  # more words scored than there are
        (2, 2, 2, 2, 3, 1, 1, 1),  # fewer right heads of all words than of the scored ones
        (1, 0, 0, 0, 2, 2, 2, 2),  # two right heads among one other word
        (-1, 0, 0, 0, 1, 0, 0, 0),
    ]:
        with pytest.raises(ScoreError, match="row 2 holds no attachment counts"):
            AttachmentCounts.from_rows([ARCS[0], row])


# Metrics ---------------------------------------------------------------------------------------

USUAL = {"brackets": {"prm": "spmrl"}, "attachment": {"punctuation": "unicode"}}


def with_mistakes(parse: Parse) -> Parse:
    """Another label of the first noun phrase; every word hangs from the first."""
    heads, n = [0, *[1] * (len(parse) - 1)], len(parse)
    arcs = DependencyTree.build(parse.words, parse.tags, heads, ["root", *["dep"] * (n - 1)])
    return Parse.of(parse_brackets(str(parse.tree).replace("(NP", "(X", 1)), arcs)


@pytest.mark.parametrize("name", METRICS.names())
def test_what_holds_of_every_metric(name: str) -> None:
    metric = metric_named(name)
    rules = metric.rules(USUAL[name])
    gold = chained()
    test = list(map(with_mistakes, gold))
    counts = metric.count(gold, test, rules)
    values = metric.values(counts)
    assert metric.name == name
    assert 0 < values[metric.headline] < 100
    assert {metric.headline, *metric.tabled} <= metric.figures.keys()
    # The counts are all that is needed, and the ratios are the figures of their names.
    again = metric.counts.from_columns(counts.to_columns())
    assert metric.values(again) == values
    ratios = metric.ratios(counts)
    assert ratios[0].name == metric.headline
    assert {ratio.name: ratio.value for ratio in ratios} == {
        ratio.name: values[ratio.name] and pytest.approx(values[ratio.name]) for ratio in ratios
    }
    assert metric.lengths(counts) == [len(parse) for parse in gold]
    assert all(metric.title(figure) in metric.report(counts, rules) for figure in values)
    for how in metric.breakdowns:
        parts = metric.break_down(how, counts, gold, test, rules)
        assert {part.name: part.figures() for part in parts}["all"]["f1"] == values["f1"]
    with pytest.raises(ScoreError, match=f"metric {name} has no breakdown by the weather"):
        metric.break_down("the weather", counts, gold, test, rules)


def test_a_layer_that_is_not_there_is_no_mistake_of_the_parser() -> None:
    tree = Parse.of(Tree.build(["a"], ["N"], [(0, 1, "S")]))
    arcs = Parse.of(None, DependencyTree.build(["a"], ["N"], [0], ["root"]))
    with pytest.raises(ScoreError, match="test sentence 2: has no dependencies to score"):
        ATTACHMENT.count([arcs, arcs], [arcs, tree], AttachmentRules())


class WithKeysOfItsOwn(Attachment):
    """A metric that says more of how it counts."""

    name = "weighted"

    def counting(self, rules: AttachmentRules) -> dict[str, str | None]:
        return super().counting(rules) | {"weights": "idf", "alpha": "0.5", "beta": None}


def test_keys_of_a_metric_stand_behind_those_that_all_have() -> None:
    metric, rules = WithKeysOfItsOwn(), AttachmentRules()
    counts = metric.counts.from_rows([(1, 1, 1, 1) * 2])
    signature = sign(metric, counts, rules, treebank="t", seed="3", scorer="another")
    assert signature.long() == (
        "scorer:another|match:attachment|punctuation:none|relations:whole|roots:one"
        f"|weights:idf|alpha:0.5|treebank:t|sentences:1|skipped:0|seed:3|version:{__version__}"
    )
    assert "|root:one|weights:idf|alpha:0.5|tb:t|" in signature.short()


# What selects ------------------------------------------------------------------------------


def test_what_selects_is_read_and_written() -> None:
    for text, written, title, metrics in (
        ("brackets", "brackets.f1", "F1", ("brackets",)),
        ("attachment", "attachment.las", "LAS", ("attachment",)),
        (" brackets.recall ", "brackets.recall", "recall", ("brackets",)),
        (
            "attachment.uas + brackets+attachment.las",
            "attachment.uas + brackets.f1 + attachment.las",
            "UAS + F1 + LAS",
            ("attachment", "brackets"),
        ),
    ):
        select = SelectionMetric.parse(text)
        assert (str(select), select.title, select.metrics) == (written, title, metrics)
        assert SelectionMetric.parse(written) == select


def test_figures_are_summed() -> None:
    select = SelectionMetric.parse("brackets.f1 + attachment.las")
    figures = {"brackets": {"f1": 90.5, "recall": 1}, "attachment": {"las": 80, "uas": 2}}
    assert select.score(figures) == 170.5
    # What is not there counts nothing.
    assert select.score({"brackets": {"f1": None}, "attachment": {"las": 80}}) == 80
    assert select.score({"attachment": {"uas": 2}}) == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("bracket.f1", r"unknown metric 'bracket'. Did you mean brackets\?"),
        ("", "unknown metric ''"),
        ("brackets.f1 + ", "unknown metric ''"),
        ("brackets.las", r"'brackets.las': metric brackets has no figure 'las'; it has sentences,"),
        ("attachment.las.x", r"metric attachment has no figure 'las.x'; it has sentences, words"),
    ],
)
def test_what_cannot_select(text: str, message: str) -> None:
    with pytest.raises(ScoreError, match=message):
        SelectionMetric.parse(text)


# Reports of bracket scores ---------------------------------------------------------------------

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
        with pytest.raises(ScoreError, match=problem):
            BRACKETS.rules(options)
    BRACKETS.rules({"prm": "spmrl"})


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


GOLD_LINES = [
    "(S (NP (DT the) (NN dog)) (VP (VBZ sees) (NP (DT a) (NN cat))))",
    "(S (NP (NP (NN rain))) (VP (VBZ falls)))",
    "(S (ADVP (RB here)))",
]
TEST_LINES = [
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
    assert of_lines("label", GOLD_LINES, TEST_LINES) == [
        BreakdownRow("NP", 2, matched=2, gold=4, test=3),
        BreakdownRow("S", 2, matched=2, gold=2, test=2),
        BreakdownRow("VP", 2, matched=0, gold=2, test=1),
        BreakdownRow("NX", 1, matched=0, gold=0, test=1),
        *whole,
    ]
    assert of_lines("span", GOLD_LINES, TEST_LINES) == [
        BreakdownRow("1", 2, matched=1, gold=3, test=3),
        BreakdownRow("2", 2, matched=2, gold=3, test=3),
        BreakdownRow("3", 1, matched=0, gold=1, test=0),
        BreakdownRow("5", 1, matched=1, gold=1, test=1),
        *whole,
    ]


def test_labels_in_order_and_equal_labels_as_one() -> None:
    rows = of_lines("label", ["(S (NN a) (NN b))"], ["(S (A (NN a)) (B (B (NN b))))"])
    assert [(b.name, b.gold, b.test) for b in rows[:-2]] == [("S", 1, 1), ("B", 0, 2), ("A", 0, 1)]
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
