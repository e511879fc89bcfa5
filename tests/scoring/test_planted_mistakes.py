"""The mistakes that scorers make, each planted in ours and each found.

What finds them is what tests the scorer: the rows that the C programs print for single pairs,
and digests of what they print for some thousand hostile ones.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace
from functools import cache

import pytest

from spmrl_bench.scoring import BracketCounts, Parameters, Policy, evalb, load_prm
from spmrl_bench.scoring.evalb import LabelRules, count_brackets
from spmrl_bench.scoring.evalb_format import as_evalb
from spmrl_bench.trees import Tree
from tests.reliability.tally import Tally
from tests.scoring.hostile import hostile_trees
from tests.scoring.test_evalb import wrong_cases

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


_Bracket = tuple[int, int, str]
_crossing, label_rules = evalb._crossing, evalb.label_rules


def as_sets(gold: list[_Bracket], test: list[_Bracket]) -> int:
    return len(set(gold) & set(test))


def no_quote_rule(*_: object) -> None:
    pass


def all_labels_differ(prm: Parameters) -> LabelRules:
    return label_rules(replace(prm, eq_labels=frozenset()))


def length_without_punctuation(prm: Parameters) -> LabelRules:
    return replace(label_rules(prm), not_in_length=prm.delete_labels)


def crossing_gold_brackets(gold: list[_Bracket], test: list[_Bracket]) -> int:
    return _crossing(test, gold)


@pytest.mark.parametrize(
    ("place", "mistake", "name"),
    [
        ("_matched", as_sets, "spmrl"),
        ("_put_back_quotes", no_quote_rule, "new"),
        ("label_rules", all_labels_differ, "COLLINS"),
        ("label_rules", length_without_punctuation, "COLLINS"),
        ("_crossing", crossing_gold_brackets, "spmrl"),
    ],
)
def test_each_mistake_is_found(
    monkeypatch: pytest.MonkeyPatch,
    place: str,
    mistake: Callable[..., object],
    name: str,
    tally: Tally,
) -> None:
    tally("R1", "mistakes planted in the scorer, each found").add()
    monkeypatch.setattr(evalb, place, mistake)
    assert wrong_cases() != []
    assert not output_is_right(name)
