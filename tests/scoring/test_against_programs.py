"""Our output against that of the C programs themselves, for many thousands of hostile pairs.

Every column of every sentence is compared, then the summaries, so that no mistake hides behind
another. Each way of counting has pairs of its own. Where the programs are is told in
:mod:`tests.scoring.programs`; digests of what they print for the first pairs stand in
``test_planted_mistakes``, for those who have not got them.
"""

from __future__ import annotations

import subprocess
from dataclasses import replace
from functools import partial
from itertools import islice, zip_longest
from pathlib import Path

import pytest

from spmrl_bench.scoring import MissingParse, Policy, load_prm, score_texts, score_trees
from spmrl_bench.scoring.evalb_format import as_evalb
from spmrl_bench.trees import Tree
from tests.reliability.tally import Tally
from tests.scoring.hostile import as_trees, hostile_pairs
from tests.scoring.programs import program

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
    command = [
        binary,
        *OPTIONS[missing].split()[1:],
        "-p",
        str(shipped),
        "-e",
        str(NO_END),
        "gold",
        "test",
    ]
    done = subprocess.run(command, cwd=folder, capture_output=True, check=True, timeout=600)
    return done.stdout.decode()


@pytest.mark.parametrize("pairs", [2_000, pytest.param(100_000, marks=pytest.mark.campaign)])
@pytest.mark.parametrize(("name", "missing"), SETS, ids=["-".join(pair) for pair in SETS])
def test_every_sentence_and_column(
    name: str, missing: MissingParse, pairs: int, tmp_path: Path, tally: Tally
) -> None:
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
        counts = score_trees(gold, test, prm, policy)
        ours = as_evalb(partial(trees, gold, test), counts, prm, policy).splitlines()
        different = [both for both in zip_longest(ours, printed) if both[0] != both[1]]
        assert list(islice(different, 3)) == []
        # From text, without trees in between, the counts are the same.
        texts = ("".join(f"{line}\n" for line in side) for side in sides)
        assert score_texts(*texts, prm, policy).rows.tolist() == counts.rows.tolist()


def trees(gold: list[Tree], test: list[Tree]) -> tuple[list[Tree], list[Tree]]:
    return gold, test
