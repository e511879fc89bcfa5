"""Joint decoding against the enumeration of all structures, ties included."""

from __future__ import annotations

from math import comb

import numpy as np
import pytest

from tests.chart.batches import JointBatch, joint_on, of_sentence, random_joint, score_of, spans_of
from tests.chart.joint_enumeration import structures
from tests.reliability.tally import Tally
from tests.twins import assert_same_bits, kernels_of, needs

every_kernel = pytest.mark.parametrize("kernel", kernels_of("joint"))
JOINT = "charts of spans and heads against all trees and choices of heads"
SEEDS = {False: 19, True: 20}


def check_against_enumeration(batch: JointBatch, kernel: str, *, ties: bool) -> None:
    """Every score is the best of all; of integers, the structure is the one that is preferred."""
    decoded = joint_on(kernel, batch)
    for b, n in enumerate(batch.lengths.tolist()):
        alone, found = batch.sentence(b), of_sentence(decoded, batch.lengths, b)
        every = structures(n)
        scores = every.scores(alone.values, alone.arcs)
        assert found.scores[0] == pytest.approx(scores.max(), abs=1e-9)
        assert score_of(found, alone) == pytest.approx(scores.max(), abs=1e-9)
        if ties:
            best = int(scores.argmax())
            assert spans_of(found.cells, n) == [(node.i, node.j) for node in every.trees[best]]
            assert tuple(found.heads.tolist()) == every.heads[best]


@pytest.mark.parametrize("ties", [False, True], ids=["floats", "integers"])
@every_kernel
def test_decoding_is_the_best_of_all_structures(kernel: str, ties: bool, tally: Tally) -> None:
    """1,000 charts of each kind for the compiled kernel, 200 for the twin."""
    rng = np.random.default_rng(SEEDS[ties])
    times = 4 if kernel == "python" else 20
    lengths = [1, 2, 2, *[3] * 4, *[4] * 6, *[5] * 17, *[6] * 20] * times
    tally("R6", JOINT).add(len(lengths))
    check_against_enumeration(random_joint(rng, lengths, ties=ties), kernel, ties=ties)


def test_enumeration_knows_every_structure() -> None:
    """Binary trees are counted by Catalan numbers, and each inner node chooses between two."""
    for n in range(1, 7):
        every = structures(n)
        assert len(every.trees) == comb(2 * n - 2, n - 1) // n * 2 ** (n - 1)
        assert len(set(zip(every.trees, every.heads, strict=True))) == len(every.trees)


@pytest.mark.campaign
@needs("joint")
def test_five_thousand_charts(tally: Tally) -> None:
    """5,000 charts with n <= 7: the kernel, plain Python and enumeration agree."""
    best, alike = tally("R6", JOINT), tally("R9", "joint charts decoded by kernels and their twin")
    rng = np.random.default_rng(2019)
    for turn in range(200):
        ties = bool(turn % 2)
        batch = random_joint(rng, rng.integers(1, 8, 25).tolist(), ties=ties)
        best.add(25)
        alike.add(25)
        check_against_enumeration(batch, "cython", ties=ties)
        assert_same_bits(joint_on("cython", batch), joint_on("python", batch))
