"""Text that is no list of words is noticed, once, and parsed all the same."""

from __future__ import annotations

import pytest

from spmrl_bench.parsers.streams import Given
from spmrl_bench.parsers.text_checks import LOOKED_AT, text_problem, watched

ROWS = [f"{n}\t{w}\t{w}\tN\tN\t_\t{h}\tr\t_\t_" for n, w, h in ((1, "a", 2), (2, "b", 0))]
TEXTS = {
    "CoNLL-U": (["# text = a b", *ROWS, "", *ROWS], "--input conllu"),
    "CoNLL-X of 8 columns": ([row.rpartition("\t")[0] for row in ROWS], "--input conllu"),
    "trees": (["(S (NP (N a)) (V b))", "( (S (N a)))"], "--input brackets"),
    "full stops": (["Der Hund schläft.", "Wer bellt?", "Komm her !"], "such as 'schläft.'"),
    "quoted full stops": (['Er sagt : "Komm."', "Sie kommt.)"], "words and punctuation apart"),
    "words": (["Der Hund schläft .", "Wer bellt ?", "3 Hunde (", "( x )"], ""),
    "numbers": (["1 2 3 4 5 6 7 8 9", "Es sind 4 ."], ""),
    "abbreviations at times": (["Es kommt aus den U.S.", "Es geht .", "Nein"], ""),
    "full stops alone": (["a ...", "b ?!"], ""),
    "nothing": ([], ""),
}


@pytest.mark.parametrize("name", TEXTS)
def test_what_is_noticed(name: str) -> None:
    lines, problem = TEXTS[name]
    found = text_problem([line.split() for line in lines if line])
    assert problem in found
    assert bool(problem) == bool(found)


@pytest.mark.parametrize("number", [1, LOOKED_AT - 1, LOOKED_AT, 3 * LOOKED_AT])
def test_it_is_told_once_and_nothing_is_lost(number: int) -> None:
    given = [Given(["Er", "schläft."], None, str(n)) for n in range(number)]
    told: list[str] = []
    assert list(watched(given, told.append)) == given
    assert len(told) == 1


def test_it_is_told_as_soon_as_it_is_known() -> None:
    told: list[str] = []
    stream = watched((Given(["schläft."], None, "") for _ in iter(int, 1)), told.append)
    for _ in range(LOOKED_AT):
        next(stream)
    assert told == []
    next(stream)
    assert len(told) == 1
