"""Where the C programs crash, leave out or print no number, a sentence has a value here.

Each size is scored from text and from trees, in the kernel and in plain Python, and printed in the
programs' own form; situations that users of EVALB ask about are lines of ``rows.tsv``, too.
"""

from __future__ import annotations

import pytest

from spmrl_bench.errors import ScoreError
from spmrl_bench.scoring import (
    Parameters,
    Policy,
    Status,
    count_brackets,
    load_prm,
    score_texts,
    score_trees,
)
from spmrl_bench.scoring.bracket_metric import BRACKETS, BracketRules
from spmrl_bench.scoring.official import as_evalb
from tests.reliability.tally import Tally
from tests.scoring.hostile import as_trees

SPMRL = load_prm("spmrl")
COLLINS = load_prm("COLLINS")


def flat(n: int, label: str = "S") -> str:
    return f"({label} {' '.join(f'(NN w{i})' for i in range(n))})"


def chain(depth: int, label: str = "X") -> str:
    return f"{f'({label} ' * depth}(NN w){')' * depth}"


def right(depth: int) -> str:
    """One word more at each level: (S (NN w0) (S (NN w1) ...))."""
    return "".join(f"(S (NN w{i}) " for i in range(depth)) + "(NN w)" + ")" * depth


def left(depth: int) -> str:
    """The same words, branching to the left."""
    return "(S " * depth + "(NN w0)" + "".join(f" (NN w{i}))" for i in range(1, depth)) + " (NN w))"


LONG = "L" * 10_000
# Gold, test; matched, gold, test, crossing, words.
SIZES = {
    **{f"{n} words": (flat(n), flat(n), (1, 1, 1, 0, n)) for n in (1, 2, 201, 1001, 10_000)},
    "unary chains of 5,000": (chain(5000), chain(4999, "X-Y"), (4999, 5000, 4999, 0, 1)),
    "depth of 5,000": (right(5000), right(5000), (5000, 5000, 5000, 0, 5001)),
    # All but the shortest and the longest of the test brackets cross one of gold.
    "5,000 crossing": (right(5000), left(5000), (1, 5000, 5000, 4999, 5001)),
    "labels of 10,000 characters": (flat(2, LONG), flat(2, LONG + "-X"), (1, 1, 1, 0, 2)),
    "labels that differ at the end": (flat(2, LONG + "a"), flat(2, LONG + "b"), (0, 1, 1, 0, 2)),
    "a word of 10,000 characters": (f"(S (NN {LONG}))", f"(S (NN {LONG}))", (1, 1, 1, 0, 1)),
}


@pytest.mark.parametrize("prm", [SPMRL, COLLINS], ids=["spmrl", "COLLINS"])
@pytest.mark.parametrize("size", SIZES)
def test_any_size_is_scored(size: str, prm: Parameters, tally: Tally) -> None:
    tally("R2", "sizes beyond the room of the C programs").add()
    gold, test, counted = SIZES[size]
    expected = (counted[-1], 0, *counted, counted[-1])
    assert score_texts(gold, test, prm).rows.tolist() == [list(expected)]
    one, other = as_trees([gold, test])
    counts = score_trees([one], [other], prm)
    assert counts.rows.tolist() == [list(expected)]
    assert count_brackets(one, other, prm) == expected
    printed = as_evalb(lambda: ([one], [other]), counts, prm, Policy())
    assert f"{counted[-1]:4}" in printed.splitlines()[3]


@pytest.mark.parametrize("most", [300, pytest.param(10_000, marks=pytest.mark.campaign)])
def test_every_length(most: int, tally: Tally) -> None:
    held = tally("R2", "sentences of each length from 1 word on")
    for start in range(1, most + 1, 300):
        lengths = range(start, min(start + 300, most + 1))
        held.add(len(lengths))
        text = "\n".join(map(flat, lengths))
        counts = score_texts(text, text, SPMRL)
        assert counts.rows.tolist() == [[n, 0, 1, 1, 1, 0, n, n] for n in lengths]
        assert counts.up_to(70).valid == sum(n <= 70 for n in lengths)


GOLD = "(TOP (S (NP (NN a)) (VP (VB b)) (. .)))"


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
        as_evalb(lambda: (gold, test), counts, prm, Policy())
