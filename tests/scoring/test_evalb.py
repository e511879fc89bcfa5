"""Counts of single sentences, as the C programs give them.

Each row under the published policy is what EVALB or EVALB_SPMRL prints for the pair, but for the
statuses of EVALB_SPMRL on sentences of different length (see :mod:`spmrl_bench.scoring.evalb`).
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from spmrl_bench.readers.brackets import parse_brackets
from spmrl_bench.scoring import (
    MissingParse,
    Parameters,
    Policy,
    Punctuation,
    Status,
    count_brackets,
    load_prm,
)
from tests.builders import cli_process
from tests.reliability.tally import Tally
from tests.scoring.hostile import as_trees

COLLINS = load_prm("COLLINS")
QUOTING = replace(COLLINS, quote_labels=frozenset(["``", "''", "POS"]))
UNLABELLED = replace(COLLINS, labeled=False)
SAME_WORDS = replace(COLLINS, eq_words=frozenset([("a", "z")]))

SETS = {"quoting": QUOTING, "unlabelled": UNLABELLED, "same words": SAME_WORDS}
POLICIES = {
    "": Policy(),
    "count": Policy(missing_parse=MissingParse.COUNT),
    "by-gold": Policy(punctuation=Punctuation.BY_GOLD),
}


class Case(NamedTuple):
    """A line of ``rows.tsv``: a pair of trees and the row that it is counted as."""

    name: str
    prm: Parameters
    policy: Policy
    gold: str
    test: str
    row: tuple[int, ...]


def read_cases() -> list[Case]:
    lines = Path(__file__).with_name("rows.tsv").read_text(encoding="utf-8").splitlines()
    cases = []
    for line in lines[1:]:
        name, prm, policy, gold, test, length, status, *counts = line.split("\t")
        row = (int(length), Status[status.upper()], *map(int, counts))
        cases.append(Case(name, SETS.get(prm) or load_prm(prm), POLICIES[policy], gold, test, row))
    return cases


CASES = read_cases()


def test_rows_are_those_of_the_c_programs(tally: Tally) -> None:
    tally("R2", "situations that users ask about").add(len(CASES))
    wrong = []
    for case in CASES:
        if count_brackets(*as_trees([case.gold, case.test]), case.prm, case.policy) != case.row:
            wrong.append(case.name)
    assert wrong == []


def test_none_is_a_sentence_without_a_parse() -> None:
    tree = parse_brackets("(TOP (S (NN a)))")
    for pair, status in (((tree, None), Status.NO_WORDS), ((None, tree), Status.LENGTH_UNMATCH)):
        row = count_brackets(*pair, COLLINS)
        assert row[1:] == (status, 0, 0, 0, 0, 0, 0)


def test_scoring_needs_neither_torch_nor_pandas() -> None:
    program = "import sys, spmrl_bench.scoring; print({'torch', 'pandas'} & set(sys.modules))"
    done = cli_process(code=program)
    assert (done.returncode, done.stdout) == (0, "set()\n"), done.stderr
