"""The output of the C programs, byte for byte, and where there is none to copy.

It is compared with what the programs printed: for the pairs in ``printed`` (each ``.out`` with that
parameter set and ``-c 3``; ``_X``: with ``-X``; ``nothing.out`` is of the second pair with a blank
parse) and, where the programs are (:mod:`tests.scoring.programs`), for many thousands of hostile
pairs. Digests of what they print for the first of these stand in ``test_planted_mistakes``.
"""

from __future__ import annotations

import subprocess
from dataclasses import replace
from itertools import islice, zip_longest
from pathlib import Path

import pytest

from spmrl_bench.errors import ScoreError
from spmrl_bench.scoring import (
    MissingParse,
    Parameters,
    Policy,
    Punctuation,
    load_prm,
    score_texts,
    score_trees,
)
from spmrl_bench.scoring.official import as_evalb
from spmrl_bench.scoring.texts import read_sides
from spmrl_bench.trees import Tree
from tests.reliability.tally import Tally
from tests.scoring.hostile import as_trees, hostile_pairs
from tests.scoring.programs import program

PRINTED = Path(__file__).parent / "printed"
COUNT = Policy(MissingParse.COUNT)


def form(gold: list[Tree], test: list[Tree], prm: Parameters, policy: Policy) -> str:
    """The output, from trees and their counts."""
    counts = score_trees(gold, test, prm, policy)
    return as_evalb(lambda: (gold, test), counts, prm, policy)


def options(name: str) -> tuple[Parameters, Policy]:
    """Those of an output such as ``spmrl_X``."""
    return load_prm(name.removesuffix("_X")), COUNT if name.endswith("_X") else Policy()


@pytest.mark.parametrize(
    "name", ["COLLINS", "new", "nk", "spmrl", "spmrl_X", "spmrl_hebrew", "spmrl_hebrew_X"]
)
def test_output_byte_for_byte(name: str) -> None:
    gold, test = read_sides(PRINTED / "gold.mrg", PRINTED / "test.mrg")
    prm, policy = options(name)
    output = form(gold, test, replace(prm, cutoff_len=3), policy)
    assert output.encode() == (PRINTED / f"{name}.out").read_bytes()


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
def test_it_gives_up_where_the_program_does() -> None:
    for name, gold, test, is_error in [
        ("COLLINS", "(S (NN a) (NN b))", "(S (NN a))", True),
        ("COLLINS", "(S (NN a))", "(S (NN a) (NN b))", True),
        ("COLLINS", "(S (NN a))", "", False),
        ("spmrl", "(S (NN a) (NN b))", "(S (NN a))", True),
        ("spmrl", "(S (NN a))", "(S (NN b))", True),
        ("spmrl", "(S (NN a))", "(S (NN a) (NN b))", False),
        ("spmrl", "(S (NN a))", "(S (NN b) (NN b))", True),
        ("spmrl", "(S (NN a))", "", False),
    ]:
        prm = replace(load_prm(name), max_error=2)
        one, other = as_trees([gold] * 4), as_trees([test] * 4)
        assert "Number of sentence" in form(one[:3], other[:3], prm, Policy())
        if is_error:
            with pytest.raises(ScoreError, match=r"gives up after 3 sentences .* and here are 4"):
                form(one, other, prm, Policy())
        else:
            assert "Number of sentence" in form(one, other, prm, Policy())


AT_ONCE = 20_000
NO_END = 1_000_000  # errors after which the programs give up
OPTIONS = {MissingParse.SKIP: "", MissingParse.COUNT: " and -X"}

SETS = [
    *((name, MissingParse.SKIP) for name in ("COLLINS", "new", "nk", "spmrl", "spmrl_hebrew")),
    *((name, MissingParse.COUNT) for name in ("spmrl", "spmrl_hebrew")),
]


def run_program(name: str, missing: MissingParse, folder: Path) -> str:
    """What the program prints for the files ``gold`` and ``test`` of a folder."""
    prm = load_prm(name)
    binary = program(prm.program)
    # EVALB and EVALB_SPMRL read what they need of our parameter files; the rest is comments.
    shipped = Path(__file__).parents[2] / "evalb" / f"{name}.prm"
    more = OPTIONS[missing].split()[1:]
    command = [binary, *more, "-p", str(shipped), "-e", str(NO_END), "gold", "test"]
    done = subprocess.run(command, cwd=folder, capture_output=True, check=True, timeout=600)
    return done.stdout.decode()


@pytest.mark.parametrize("pairs", [2_000, pytest.param(100_000, marks=pytest.mark.campaign)])
@pytest.mark.parametrize(("name", "missing"), SETS, ids=["-".join(pair) for pair in SETS])
def test_every_sentence_and_column(
    name: str, missing: MissingParse, pairs: int, tmp_path: Path, tally: Tally
) -> None:
    program(load_prm(name).program)  # else the test is skipped
    held = tally("R1", f"pairs of trees with {name}.prm{OPTIONS[missing]}, row by row")
    seed = 4 + SETS.index((name, missing))
    hostile = hostile_pairs(pairs, seed)
    while some := list(islice(hostile, AT_ONCE)):
        held.add(len(some))
        sides = [[pair[side] for pair in some] for side in (0, 1)]
        for side, file in zip(sides, ("gold", "test"), strict=True):
            (tmp_path / file).write_text("".join(f"{line}\n" for line in side), encoding="utf-8")
        printed = run_program(name, missing, tmp_path).splitlines()
        gold, test = map(as_trees, sides)
        prm, policy = replace(load_prm(name), max_error=NO_END), Policy(missing)
        ours = form(gold, test, prm, policy).splitlines()
        different = [both for both in zip_longest(ours, printed) if both[0] != both[1]]
        assert list(islice(different, 3)) == []
        # From text, without trees in between, the counts are the same.
        counts = score_trees(gold, test, prm, policy)
        texts = ("".join(f"{line}\n" for line in side) for side in sides)
        assert score_texts(*texts, prm, policy).rows.tolist() == counts.rows.tolist()
