"""Corpus figures as functions of the rows, also where there is nothing to divide."""

from __future__ import annotations

import numpy as np
import pytest

from spmrl_bench.errors import ScoreError
from spmrl_bench.scoring.bracket_metric import BRACKETS
from spmrl_bench.scoring.counts import AttachmentCounts, BracketCounts, Column, Status

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
    for row in [(1, 0, 0), (1, 9, 0, 0, 0, 0, 0, 0)]:
        with pytest.raises(ScoreError, match="row 2 holds no bracket counts"):
            BracketCounts.from_rows([ROWS[0], row])


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


def test_attachment_figures_worked_out_by_hand() -> None:
    counts = AttachmentCounts.from_rows(ARCS)
    assert (len(counts), counts.sentences, counts.words) == (3, 2, 6)
    assert counts.uas == pytest.approx(100 * 5 / 6)
    assert counts.las == pytest.approx(100 * 4 / 6)
    assert counts.label_accuracy == pytest.approx(100 * 4 / 6)
    assert counts.unlabelled_match == 50
    assert counts.labelled_match == 50
    whole = counts.with_punctuation()
    assert (len(whole), whole.sentences, whole.words) == (3, 3, 8)
    assert whole.uas == pytest.approx(100 * 6 / 8)
    assert whole.las == pytest.approx(100 * 4 / 8)
    assert whole.label_accuracy == pytest.approx(100 * 5 / 8)
    assert whole.unlabelled_match == pytest.approx(100 * 2 / 3)
    assert whole.labelled_match == pytest.approx(100 / 3)
    assert np.array_equal(whole.with_punctuation().rows, whole.rows)


def test_no_word_to_score_is_no_figure() -> None:
    for counts in (AttachmentCounts.from_rows([]), AttachmentCounts.from_rows(ARCS[2:])):
        assert counts.sentences == 0
        assert {counts.uas, counts.las, counts.label_accuracy} == {None}
        assert {counts.unlabelled_match, counts.labelled_match} == {None}


def test_rows_that_contradict_themselves() -> None:
    for row in [
        (1, 1, 1, 1),
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
