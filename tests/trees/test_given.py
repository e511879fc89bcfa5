"""What may be given of a sentence."""

from __future__ import annotations

import pytest

from spmrl_bench.trees.given import Given


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (Given(), ""),
        (
            Given(
                [(0, 3, "S"), (0, 2, None), (0, 2, "NP")],
                [(1, 3, None), (0, 2, "XP")],
                [(1, 2, None)],
            ),
            "",
        ),
        (Given([(2, 2, None)]), r"[2, 2] is no span of 4 words: 0 <= start < end <= 4"),
        (Given((), [(3, 5, None)]), "[3, 5] is no span of 4 words"),
        (Given([(0, 2, "NP"), (1, 3, None)]), "[0, 2] and [1, 3] cross"),
        (Given([(1, 3, "X")], [(1, 3, None)]), "[1, 3] is to be a constituent, and is to be none"),
        (Given([(1, 3, "X")], [(1, 3, "X")]), "[1, 3] is to be X, and is to be none"),
        (Given((), (), [(0, 2, None)]), "arc [0, 2]: words are 1 to 4"),
        (Given((), (), [(1, 5, None)]), "arc [1, 5]: words are 1 to 4"),
        (Given((), (), [(1, 2, None), (1, 3, "x")]), "word 1 is given two heads, 2 and 3"),
        (Given((), (), [(1, 0, None), (3, 0, "x")]), "words 1 and 3 are both given as the root"),
        (Given((), (), [(1, 3, None), (3, 1, None), (4, 1, None)]), "words 1, 3 make a circle"),
        (Given((), (), [(2, 2, None)]), "words 2 make a circle"),
    ],
)
def test_contradictions_are_told(given: Given, problem: str) -> None:
    found = given.problem(4)
    assert problem in found
    assert bool(found) == bool(problem)
