"""Corpus figures from rows, against sums worked out by hand and by Fraction."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spmrl_bench.errors import ScoreError
from spmrl_bench.scoring.attachment_counts import AttachmentColumn, AttachmentCounts

# Five words, one of them punctuation; two words, both right; punctuation only.
ROWS = [
    (4, 3, 2, 2, 5, 3, 3, 2),
    (2, 2, 2, 2, 2, 2, 2, 2),
    (0, 0, 0, 0, 1, 1, 0, 0),
]


def test_figures_worked_out_by_hand() -> None:
    counts = AttachmentCounts.from_rows(ROWS)
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


def test_nothing_to_score_is_no_figure() -> None:
    for counts in (AttachmentCounts.from_rows([]), AttachmentCounts.from_rows(ROWS[2:])):
        assert counts.sentences == 0
        assert {counts.uas, counts.las, counts.label_accuracy} == {None}
        assert {counts.unlabelled_match, counts.labelled_match} == {None}


@pytest.mark.parametrize(
    "row",
    [
        (1, 1, 1, 1),
        (1, 2, 1, 1, 2, 2, 1, 1),  # more right heads than words
        (2, 1, 1, 2, 2, 1, 1, 2),  # both right more often than one
        (2, 2, 2, 1, 2, 2, 2, 1),  # two right heads and relations of two words, but not both
        (2, 1, 1, 1, 1, 1, 1, 1),  # more words scored than there are
        (2, 2, 2, 2, 3, 1, 1, 1),  # fewer right heads of all words than of the scored ones
        (1, 0, 0, 0, 2, 2, 2, 2),  # two right heads among one other word
        (-1, 0, 0, 0, 1, 0, 0, 0),
    ],
)
def test_rows_that_contradict_themselves(row: tuple[int, ...]) -> None:
    with pytest.raises(ScoreError, match="row 2 holds no attachment counts"):
        AttachmentCounts.from_rows([ROWS[0], row])


words = st.lists(st.tuples(st.booleans(), st.booleans(), st.booleans()), min_size=1, max_size=6)


@given(st.lists(words, min_size=1, max_size=5))
def test_figures_of_any_corpus(corpus: list[list[tuple[bool, bool, bool]]]) -> None:
    """Each word is (scored, right head, right relation)."""
    rows = []
    for sentence in corpus:
        scored = [word for word in sentence if word[0]]
        rows.append(
            [
                count
                for part in (scored, sentence)
                for count in (
                    len(part),
                    sum(head for _, head, _ in part),
                    sum(label for _, _, label in part),
                    sum(head and label for _, head, label in part),
                )
            ]
        )
    counts = AttachmentCounts.from_rows(rows)
    for part, kept in ((counts, (True,)), (counts.with_punctuation(), (True, False))):
        chosen = [[word for word in sentence if word[0] in kept] for sentence in corpus]
        flat = [word for sentence in chosen for word in sentence]
        sentences = [sentence for sentence in chosen if sentence]
        expected = {
            "uas": [head for _, head, _ in flat],
            "label_accuracy": [label for _, _, label in flat],
            "las": [head and label for _, head, label in flat],
            "unlabelled_match": [all(head for _, head, _ in s) for s in sentences],
            "labelled_match": [all(head and label for _, head, label in s) for s in sentences],
        }
        for name, right in expected.items():
            figure = getattr(part, name)
            if right:
                assert figure == pytest.approx(float(Fraction(100 * sum(right), len(right))))
            else:
                assert figure is None


def test_rows_are_read_only() -> None:
    counts = AttachmentCounts.from_rows(ROWS)
    for rows in (counts.rows, counts.with_punctuation().rows):
        with pytest.raises(ValueError, match="read-only"):
            rows[0, AttachmentColumn.WORDS] = 9
