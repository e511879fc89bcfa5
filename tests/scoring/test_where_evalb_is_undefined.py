"""What the C programs leave out, read beyond their arrays for, or call not a number has a value.

Each situation that users of EVALB ask about stands here with the row that it is counted as: words
and status of the sentence; matched, gold, test and crossing brackets; words compared and matching
tags. Both ways of counting give it: the one from text and the plain one from trees.
"""

from __future__ import annotations

from typing import NamedTuple

import pytest

from spmrl_bench.errors import ReadError, ScoreError
from spmrl_bench.scoring import (
    BracketCounts,
    MissingParse,
    Policy,
    Punctuation,
    Status,
    load_prm,
    score_texts,
    score_trees,
)
from spmrl_bench.scoring.bracket_metric import BRACKETS, BracketRules
from spmrl_bench.scoring.evalb_format import as_evalb
from tests.reliability.tally import Tally
from tests.scoring.hostile import as_trees

BY_GOLD = Policy(punctuation=Punctuation.BY_GOLD)
COUNTED = Policy(MissingParse.COUNT)
PUBLISHED = Policy()
OK, LENGTH, WORDS, NONE, MISSED = Status
GOLD = "(TOP (S (NP (NN a)) (VP (VB b)) (. .)))"
LONG_WORD, LONG_LABEL = "w" * 1000, "L" * 400


class Case(NamedTuple):
    prm: str
    gold: str
    test: str
    row: tuple[int, ...]
    policy: Policy = PUBLISHED


CASES = {
    "full stop mistagged, removed by tag": Case(
        "COLLINS", GOLD, GOLD.replace("(. .)", "(NN .)"), (3, LENGTH, 0, 0, 0, 0, 0, 0)
    ),
    "full stop mistagged, removed by gold": Case(
        "COLLINS", GOLD, GOLD.replace("(. .)", "(NN .)"), (3, OK, 3, 3, 3, 0, 2, 2), BY_GOLD
    ),
    "word mistagged as full stop, by gold": Case(
        "nk", GOLD, GOLD.replace("NN a", ". a"), (3, OK, 3, 3, 3, 0, 2, 1), BY_GOLD
    ),
    "full stop mistagged, none removed": Case(
        "spmrl", GOLD, GOLD.replace("(. .)", "(NN .)"), (3, OK, 3, 3, 3, 0, 3, 2)
    ),
    "blank line": Case("spmrl", GOLD, "", (3, NONE, 0, 0, 0, 0, 0, 0)),
    "(())": Case("COLLINS", GOLD, "(())", (3, NONE, 0, 0, 0, 0, 0, 0)),
    "blank line, counted as missed": Case(
        "spmrl", GOLD, "", (3, MISSED, 0, 3, 0, 0, 3, 0), COUNTED
    ),
    "(()), counted as missed": Case(
        "COLLINS", GOLD, "(())", (3, MISSED, 0, 3, 0, 0, 2, 0), COUNTED
    ),
    "another word": Case("spmrl", GOLD, GOLD.replace("NN a", "NN z"), (3, WORDS, *6 * (0,))),
    "a word less": Case("spmrl", GOLD, GOLD.replace("(NN a)", "(NN)"), (3, LENGTH, *6 * (0,))),
    "only punctuation": Case("COLLINS", "(TOP (X (. .)))", "(TOP (X (. .)))", (1, NONE, *6 * (0,))),
    "only punctuation that counts": Case(
        "spmrl", "(TOP (X (. .)))", "(TOP (X (. .)))", (1, OK, 1, 1, 1, 0, 1, 1)
    ),
    "root without label against TOP": Case(
        "spmrl", f"({GOLD[4:]}", GOLD, (3, OK, 3, 3, 3, 0, 3, 3)
    ),
    # EVALB takes such a root for a bracket, EVALB_SPMRL does not.
    "root without label on both sides": Case(
        "COLLINS", f"({GOLD[4:]}", f"({GOLD[4:]}", (3, OK, 4, 4, 4, 0, 2, 2)
    ),
    "several children of the root": Case(
        "spmrl",
        "(TOP (NP (NN a)) (VP (VB b)) (. .))",
        "(TOP (NP (NN a)) (VP (VB b) (. .)))",
        (3, OK, 1, 2, 2, 0, 3, 3),
    ),
    "function": Case("spmrl", GOLD.replace("NP", "NP-SBJ-1"), GOLD, (3, OK, 3, 3, 3, 0, 3, 3)),
    "gap": Case("COLLINS", GOLD.replace("NP", "NP=2"), GOLD, (3, OK, 3, 3, 3, 0, 2, 2)),
    "features": Case(
        "spmrl", GOLD.replace("NP", "NP##n=s|c=g##"), GOLD, (3, OK, 3, 3, 3, 0, 3, 3)
    ),
    "one bracket twice": Case(
        "spmrl", "(TOP (NP (NP (NN a) (NN b))))", "(TOP (NP (NP (NN a) (NN b))))",
        (2, OK, 2, 2, 2, 0, 2, 2),
    ),
    "one bracket twice in gold": Case(
        "spmrl", "(TOP (NP (NP (NN a) (NN b))))", "(TOP (NP (NN a) (NN b)))",
        (2, OK, 1, 2, 1, 0, 2, 2),
    ),
    "ADVP for PRT in COLLINS": Case(
        "COLLINS", "(TOP (VP (VB a) (PRT (RP b))))", "(TOP (VP (VB a) (ADVP (RP b))))",
        (2, OK, 2, 2, 2, 0, 2, 2),
    ),
    "ADVP for PRT in spmrl": Case(
        "spmrl", "(TOP (VP (VB a) (PRT (RP b))))", "(TOP (VP (VB a) (ADVP (RP b))))",
        (2, OK, 1, 2, 2, 0, 2, 2),
    ),
    "layer of tags in Hebrew": Case(
        "spmrl_hebrew", "(TOP (NP (SYN_NN (NN a))))", "(TOP (NP (SYN_VB (NN a))))",
        (1, OK, 1, 1, 1, 0, 1, 1),
    ),
    "layer of tags elsewhere": Case(
        "spmrl", "(TOP (NP (SYN_NN (NN a))))", "(TOP (NP (SYN_VB (NN a))))",
        (1, OK, 1, 2, 2, 0, 1, 1),
    ),
    "a trace": Case(
        "COLLINS", "(TOP (S (NP (-NONE- *T*-1)) (VP (VB b))))", "(TOP (S (VP (VB b))))",
        (1, OK, 2, 2, 2, 0, 1, 1),
    ),
    "a word of 1,000 characters": Case(
        "COLLINS", f"(TOP (S (NN {LONG_WORD})))", f"(TOP (S (NN {LONG_WORD})))",
        (1, OK, 1, 1, 1, 0, 1, 1),
    ),
    "a label of 400 characters": Case(
        "spmrl", f"(TOP ({LONG_LABEL} (NN a)))", f"(TOP ({LONG_LABEL}X (NN a)))",
        (1, OK, 0, 1, 1, 0, 1, 1),
    ),
    "a single word without a bracket": Case(
        "spmrl", "(TOP (NN a))", "(TOP (NN a))", (1, OK, 0, 0, 0, 0, 1, 1)
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_every_situation_has_a_value(name: str, tally: Tally) -> None:
    tally("R2", "situations that users ask about").add()
    prm, gold, test, row, policy = CASES[name]
    parameters = load_prm(prm)
    around = "(TOP (S (NN x)))"
    # Between two others, so that neither a file's end nor an earlier result plays a part.
    texts = ["\n".join((around, side, around)) + "\n" for side in (gold, test)]
    counts = score_texts(*texts, parameters, policy)
    assert tuple(counts.rows[1].tolist()) == row
    assert counts.rows[0].tolist() == counts.rows[2].tolist() == [1, OK, 1, 1, 1, 0, 1, 1]
    sides = [as_trees([around, side, around]) for side in (gold, test)]
    assert score_trees(*sides, parameters, policy).rows.tolist() == counts.rows.tolist()


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
        as_evalb(lambda: (gold, test), counts, prm, PUBLISHED)


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
