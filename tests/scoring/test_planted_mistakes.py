"""Some thousand hostile pairs of trees give what the C programs print for them.

Digests of that stand here, so that no program is needed. The mistakes that scorers make are planted
in ours by :mod:`tests.reliability.test_planted_bugs`.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from functools import cache

import pytest

from spmrl_bench.scoring import BracketCounts, Policy, load_prm
from spmrl_bench.scoring.evalb import count_brackets
from spmrl_bench.scoring.official import as_evalb
from spmrl_bench.trees import Tree
from tests.reliability.tally import Tally
from tests.scoring.hostile import hostile_trees

# SHA-256 of the standard output of EVALB (COLLINS, new, nk) or EVALB_SPMRL (spmrl, spmrl_hebrew)
# for the first 2,000 pairs of seed 0, with ``-e 1000000`` so that it does not give up.
PAIRS = 2000
PRINTED = {
    "COLLINS": "e7dbdd253844cd19f9bbea2460051d17f61d258d7c69756c21cab36d1317a55f",
    "new": "774fe1e13a8ebac5984c96179c3d0a6e8021ffb5587065c0e4dece8b5e227e41",
    "nk": "774fe1e13a8ebac5984c96179c3d0a6e8021ffb5587065c0e4dece8b5e227e41",
    "spmrl": "e00092f97b13999a577e1a589a896114a378f1ac814ce65c3a76118615599c11",
    "spmrl_hebrew": "c2a77682c4db63ce0cfe0bda9c3c66064c9d733958d5ac341f3eb2aa3940fc16",
}


@cache
def pairs() -> tuple[list[Tree], list[Tree]]:
    return hostile_trees(PAIRS)


def output_is_right(name: str) -> bool:
    """Whether the hostile pairs, counted in plain Python, give what the program printed."""
    prm = replace(load_prm(name), max_error=1_000_000)
    gold, test = pairs()
    rows = [count_brackets(one, other, prm) for one, other in zip(gold, test, strict=True)]
    printed = as_evalb(lambda: (gold, test), BracketCounts.from_rows(rows), prm, Policy())
    return hashlib.sha256(printed.encode()).hexdigest() == PRINTED[name]


@pytest.mark.parametrize("name", PRINTED)
def test_hostile_pairs_give_what_the_programs_print(name: str, tally: Tally) -> None:
    tally("R1", f"pairs of trees with {name}.prm, by the digest of what was printed").add(PAIRS)
    assert output_is_right(name)
