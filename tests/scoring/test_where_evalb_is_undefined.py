"""What the C programs leave out, read beyond their arrays for, or call not a number has a value.

Each situation that users of EVALB ask about stands in ``rows.tsv`` with the row that it is counted
as, from text and from trees.
"""

from __future__ import annotations

import pytest

from spmrl_bench.errors import ReadError, ScoreError
from spmrl_bench.scoring import (
    BracketCounts,
    MissingParse,
    Policy,
    Status,
    load_prm,
    score_texts,
    score_trees,
)
from spmrl_bench.scoring.bracket_metric import BRACKETS, BracketRules
from spmrl_bench.scoring.evalb_format import as_evalb
from tests.reliability.tally import Tally
from tests.scoring.hostile import as_trees
from tests.scoring.test_evalb import CASES

COUNTED = Policy(MissingParse.COUNT)
GOLD = "(TOP (S (NP (NN a)) (VP (VB b)) (. .)))"


def test_every_situation_has_a_value(tally: Tally) -> None:
    around = "(TOP (S (NN x)))"
    usual = [1, Status.VALID, 1, 1, 1, 0, 1, 1]
    for case in CASES:
        tally("R2", "situations that users ask about").add()
        # Between two others, so that neither a file's end nor an earlier result plays a part.
        sides = [[around, side, around] for side in (case.gold, case.test)]
        texts = ("\n".join(side) + "\n" for side in sides)
        expected = [usual, list(case.row), usual]
        counts = score_texts(*texts, case.prm, case.policy)
        assert counts.rows.tolist() == expected, case.name
        of_trees = score_trees(*map(as_trees, sides), case.prm, case.policy)
        assert of_trees.rows.tolist() == expected, case.name


@pytest.mark.parametrize("lines", [1, 3])
def test_files_of_different_length_have_no_score(lines: int, tally: Tally) -> None:
    tally("R2", "situations that users ask about").add()
    gold = f"{GOLD}\n" * 2
    with pytest.raises(ScoreError, match=rf"2 .*{lines}"):
        score_texts(gold, f"{GOLD}\n" * lines, load_prm("spmrl"))


def test_more_errors_than_evalb_bears_are_all_counted(tally: Tally) -> None:
    tally("R2", "situations that users ask about").add()
    prm = load_prm("COLLINS")
    text, wrong = f"{GOLD}\n" * 40, f"{GOLD.replace('(. .)', '(NN .)')}\n" * 39 + f"{GOLD}\n"
    counts = score_texts(text, wrong, prm)
    assert prm.max_error == 10
    assert len(counts.sentences_with(Status.LENGTH_UNMATCH)) == 39
    assert (counts.valid, counts.skipped, counts.f1) == (1, 39, 100.0)
    assert "39 of 40 sentences" in BRACKETS.report(counts, BracketRules(prm))
    gold, test = as_trees(text.splitlines()), as_trees(wrong.splitlines())
    with pytest.raises(ScoreError, match="gives up after 11"):
        as_evalb(lambda: (gold, test), counts, prm, Policy())


def test_a_score_of_nothing_is_no_number(tally: Tally) -> None:
    tally("R2", "situations that users ask about").add()
    counts = score_texts(f"{GOLD}\n", "(())\n", load_prm("spmrl"))
    assert (counts.f1, counts.recall, counts.precision, counts.complete_match) == (None,) * 4
    assert "n/a" in BRACKETS.report(counts, BracketRules(load_prm("spmrl")))
    missed = score_texts(f"{GOLD}\n", "(())\n", load_prm("spmrl"), COUNTED)
    assert (missed.f1, missed.recall, missed.precision) == (0.0, 0.0, None)


def test_a_broken_tree_stops_with_its_place(tally: Tally) -> None:
    tally("R2", "situations that users ask about").add()
    with pytest.raises(ReadError, match=r"<test>:2"):
        score_texts(f"{GOLD}\n" * 3, f"{GOLD}\n{GOLD[:-3]}\n{GOLD}\n", load_prm("spmrl"))


def test_no_counts_are_counts(tally: Tally) -> None:
    tally("R2", "situations that users ask about").add()
    empty = BracketCounts.from_rows([])
    assert (empty.f1, empty.average_crossing, empty.skipped) == (None, None, 0)
