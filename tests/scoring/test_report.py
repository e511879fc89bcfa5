"""A report is complete: every figure, and every sentence that no figure includes."""

from __future__ import annotations

import json

import pytest

from spmrl_bench.errors import ScoreError
from spmrl_bench.scoring import BracketCounts, Status, load_prm
from spmrl_bench.scoring.report import as_dict, as_text, figures, left_out, require_all
from tests.scoring.test_counts import ROWS

COLLINS = load_prm("COLLINS")
COUNTS = BracketCounts.from_rows(ROWS)


def test_dict_survives_json() -> None:
    report = as_dict(COUNTS, COLLINS)
    assert json.loads(json.dumps(report, allow_nan=False)) == report
    assert report["prm"] == "COLLINS"
    assert report["program"] == "EVALB"
    assert report["cutoff_len"] == 40
    assert report["all"] == figures(COUNTS)
    assert report["up_to_cutoff"] == figures(COUNTS.up_to(40))
    assert report["left_out"] == {"length_unmatch": [3], "no_words": [5]}


def test_dict_of_nothing_is_json_too() -> None:
    report = as_dict(BracketCounts.from_rows([]), COLLINS)
    assert json.loads(json.dumps(report, allow_nan=False)) == report


def test_text_says_how_many_were_left_out_why_and_which() -> None:
    text = as_text(COUNTS, COLLINS)
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


def test_text_lists_the_first_ten() -> None:
    row = (3, Status.WORDS_UNMATCH, 0, 0, 0, 0, 0, 0)
    text = as_text(BracketCounts.from_rows([row] * 12), COLLINS)
    assert "different words: 12 (sentence 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, ...)" in text
    assert "n/a" in text


def test_whole_scores_have_no_such_line() -> None:
    counts = BracketCounts.from_rows(ROWS[:2])
    assert left_out(counts) == {}
    assert "LEFT OUT" not in as_text(counts, COLLINS)


MISSED = (7, Status.MISSED, 0, 8, 0, 0, 7, 0)


def test_missed_parses_are_listed() -> None:
    counts = BracketCounts.from_rows([*ROWS[:2], MISSED])
    assert as_dict(counts, COLLINS)["missed"] == [3]
    assert left_out(counts) == {}
    text = as_text(counts, COLLINS)
    assert text.endswith("\nWithout a parse, all gold brackets missed: 1 (sentence 3)\n")


def test_strict_lists_the_first_sentences() -> None:
    require_all(BracketCounts.from_rows([*ROWS[:2], MISSED]))
    message = (
        "2 of 5 sentences cannot be scored: sentence 3: different number of words; "
        "sentence 5: no parse, or no words to score"
    )
    with pytest.raises(ScoreError, match=f"^{message}$"):
        require_all(COUNTS)
    with pytest.raises(ScoreError, match=r"^22 of 22 .*; sentence 10: [a-z ]+; \.\.\.$"):
        require_all(BracketCounts.from_rows([ROWS[4], ROWS[2]] * 11))
