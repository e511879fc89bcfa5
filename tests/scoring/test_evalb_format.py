"""The output of the C programs for the pairs in ``printed``, and where there is none to copy.

Each ``.out`` is what the program printed for ``gold.mrg`` and ``test.mrg`` with that parameter
set and ``-c 3`` (``_X``: with ``-X``); ``nothing.out`` is of the second pair with a blank parse.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from spmrl_bench.errors import ScoreError
from spmrl_bench.scoring import (
    MissingParse,
    Parameters,
    Policy,
    Punctuation,
    load_prm,
    score_trees,
)
from spmrl_bench.scoring.evalb_format import as_evalb
from spmrl_bench.scoring.texts import read_sides
from spmrl_bench.trees import Tree
from tests.scoring.hostile import as_trees

PRINTED = Path(__file__).parent / "printed"
COUNT = Policy(MissingParse.COUNT)


def form(gold: list[Tree], test: list[Tree], prm: Parameters, policy: Policy) -> str:
    """The output, from trees and their counts."""
    counts = score_trees(gold, test, prm, policy)
    return as_evalb(lambda: (gold, test), counts, prm, policy)


@pytest.mark.parametrize(
    "name", ["COLLINS", "new", "nk", "spmrl", "spmrl_X", "spmrl_hebrew", "spmrl_hebrew_X"]
)
def test_output_byte_for_byte(name: str) -> None:
    gold, test = read_sides(PRINTED / "gold.mrg", PRINTED / "test.mrg")
    prm = replace(load_prm(name.removesuffix("_X")), cutoff_len=3)
    policy = Policy(MissingParse.COUNT if name.endswith("_X") else MissingParse.SKIP)
    expected = (PRINTED / f"{name}.out").read_bytes()
    assert form(gold, test, prm, policy).encode() == expected


def test_nothing_scored() -> None:
    gold = as_trees((PRINTED / "gold.mrg").read_text().splitlines()[1:2])
    prm = replace(load_prm("new"), cutoff_len=3)
    expected = (PRINTED / "nothing.out").read_bytes()
    assert form(gold, as_trees([""]), prm, Policy()).encode() == expected


def test_what_the_program_cannot_do() -> None:
    trees = as_trees(["(S (NN a))"])
    for prm, policy, message in (
        (load_prm("nk"), COUNT, "-X is an option of EVALB_SPMRL"),
        (load_prm("nk"), Policy(punctuation=Punctuation.BY_GOLD), "EVALB removes punct.* by tag"),
        (replace(load_prm("spmrl"), debug=1), Policy(), "with DEBUG 1, EVALB_SPMRL prints"),
    ):
        with pytest.raises(ScoreError, match=message):
            form(trees, trees, prm, policy)


# The programs give up at the second error beyond MAX_ERROR. An error of EVALB_SPMRL is a
# sentence of other words, or of another length if gold has two words at least.
@pytest.mark.parametrize(
    ("name", "gold", "test", "is_error"),
    [
        ("COLLINS", "(S (NN a) (NN b))", "(S (NN a))", True),
        ("COLLINS", "(S (NN a))", "(S (NN a) (NN b))", True),
        ("COLLINS", "(S (NN a))", "", False),
        ("spmrl", "(S (NN a) (NN b))", "(S (NN a))", True),
        ("spmrl", "(S (NN a))", "(S (NN b))", True),
        ("spmrl", "(S (NN a))", "(S (NN a) (NN b))", False),
        ("spmrl", "(S (NN a))", "(S (NN b) (NN b))", True),
        ("spmrl", "(S (NN a))", "", False),
    ],
)
def test_it_gives_up_where_the_program_does(
    name: str, gold: str, test: str, is_error: bool
) -> None:
    prm = replace(load_prm(name), max_error=2)
    one, other = as_trees([gold] * 4), as_trees([test] * 4)
    assert "Number of sentence" in form(one[:3], other[:3], prm, Policy())
    if is_error:
        with pytest.raises(ScoreError, match=r"gives up after 3 sentences .* and here are 4"):
            form(one, other, prm, Policy())
    else:
        assert "Number of sentence" in form(one, other, prm, Policy())
