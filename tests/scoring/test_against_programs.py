"""Our output against that of the C programs themselves, for tens of thousands of hostile pairs.

The environment variables ``EVALB`` and ``EVALB_SPMRL`` name the executable files.
"""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace
from itertools import islice, zip_longest
from pathlib import Path

import pytest

from spmrl_bench.scoring import MissingParse, Policy, load_prm, score_trees
from spmrl_bench.scoring.evalb_format import as_evalb
from tests.scoring.hostile import as_trees, hostile_pairs

PAIRS = 20_000
NO_END = 1_000_000  # errors after which the programs give up

SETS = [
    *((name, MissingParse.SKIP) for name in ("COLLINS", "new", "nk", "spmrl", "spmrl_hebrew")),
    *((name, MissingParse.COUNT) for name in ("spmrl", "spmrl_hebrew")),
]


def run_program(name: str, missing: MissingParse, folder: Path) -> str:
    """What the program prints for the files ``gold`` and ``test`` of a folder."""
    prm = load_prm(name)
    binary = os.environ.get(prm.program)
    if binary is None:
        pytest.skip(f"no {prm.program} binary (set the environment variable {prm.program})")
    # EVALB and EVALB_SPMRL read what they need of our parameter files; the rest is comments.
    shipped = Path(__file__).parents[2] / "evalb" / f"{name}.prm"
    options = ["-X"] if missing is MissingParse.COUNT else []
    command = [binary, *options, "-p", str(shipped), "-e", str(NO_END), "gold", "test"]
    done = subprocess.run(command, cwd=folder, capture_output=True, check=True, timeout=600)
    return done.stdout.decode()


@pytest.mark.campaign
@pytest.mark.parametrize(("name", "missing"), SETS, ids=["-".join(pair) for pair in SETS])
def test_every_sentence_and_column(name: str, missing: MissingParse, tmp_path: Path) -> None:
    pairs = list(hostile_pairs(PAIRS, seed=4))
    sides = [[pair[side] for pair in pairs] for side in (0, 1)]
    for side, file in zip(sides, ("gold", "test"), strict=True):
        (tmp_path / file).write_text("".join(f"{line}\n" for line in side), encoding="utf-8")
    printed = run_program(name, missing, tmp_path).splitlines()
    gold, test = map(as_trees, sides)
    prm, policy = replace(load_prm(name), max_error=NO_END), Policy(missing)
    counts = score_trees(gold, test, prm, policy)
    ours = as_evalb(lambda: (gold, test), counts, prm, policy).splitlines()
    different = [both for both in zip_longest(ours, printed) if both[0] != both[1]]
    assert list(islice(different, 3)) == []
