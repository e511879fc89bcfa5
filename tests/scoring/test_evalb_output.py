"""Reading an output of EVALB; what is refused in one is tested in ``test_official.py``."""

from __future__ import annotations

from dataclasses import replace

import pytest

from spmrl_bench.errors import ScoreError
from spmrl_bench.scoring import load_prm
from spmrl_bench.scoring.evalb_output import read_output
from tests.scoring.official_examples import (
    OUTPUT,
    ROWS,
    SUMMARY,
    TWO_LEFT_OUT,
    TWO_LEFT_OUT_ERRORS,
)

COLLINS = load_prm("COLLINS")
UP_TO_2 = replace(COLLINS, cutoff_len=2)
#: Printed by EVALB for the third sentence, where nothing matches.
SUMMARY_UP_TO_2 = """\
Number of sentence        =      1
Number of Error sentence  =      0
Number of Skip  sentence  =      0
Number of Valid sentence  =      1
Bracketing Recall         =   0.00
Bracketing Precision      =   0.00
Bracketing FMeasure       =   -nan
Complete match            =   0.00
Average crossing          =   0.00
No crossing               = 100.00
2 or less crossing        = 100.00
Tagging accuracy          =  50.00
"""
OUTPUT_UP_TO_2 = OUTPUT[: OUTPUT.index("-- len")] + f"-- len<=2 --\n{SUMMARY_UP_TO_2}"


def test_the_second_summary_is_of_the_short_sentences() -> None:
    counts = read_output(OUTPUT_UP_TO_2.encode(), b"", 3, UP_TO_2)
    assert counts.rows.tolist() == ROWS
    of_all = OUTPUT_UP_TO_2.replace(SUMMARY_UP_TO_2, SUMMARY)
    with pytest.raises(ScoreError, match=r"'Number of sentence' of .*len<=2 --' is 3, .* give 1"):
        read_output(of_all.encode(), b"", 3, UP_TO_2)


def test_no_number_is_expected_where_no_bracket_matches() -> None:
    wrong = OUTPUT_UP_TO_2.replace("  -nan", "100.00")
    with pytest.raises(ScoreError, match=r"line 32: expected no number for 'Bracketing FMeasure'"):
        read_output(wrong.encode(), b"", 3, UP_TO_2)


def test_nothing_matches_at_all() -> None:
    output = OUTPUT.replace("100.00 100.00     4", "  0.00   0.00     0")
    output = output.replace(" 33.33  33.33     1", "  0.00   0.00     0")
    with pytest.raises(ScoreError, match="no bracket matches, so the program's F is not a number"):
        read_output(output.encode(), b"", 3, COLLINS)


@pytest.mark.parametrize(("sentence", "status"), [(2, 1), (3, 2)])
def test_a_sentence_that_was_left_out_has_no_counts(sentence: int, status: int) -> None:
    lines = TWO_LEFT_OUT.splitlines(keepends=True)
    row = lines[2 + sentence]
    lines[2 + sentence] = row.replace(
        "0.00   0.00     0      0    0", "0.00   0.00     0      1    0", 1
    )
    with pytest.raises(ScoreError, match=rf"{sentence} was left out \(status {status}\), but has"):
        read_output("".join(lines).encode(), TWO_LEFT_OUT_ERRORS.encode(), 3, COLLINS)
