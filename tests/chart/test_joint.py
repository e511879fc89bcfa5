"""Joint decoding: structures are legal at any length, and bad input is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from spmrl_bench.chart.joint import decode_joint
from spmrl_bench.errors import NotFiniteError
from tests.chart.batches import random_joint, score_of


@pytest.mark.parametrize("n", [1, 2, 3, 20, 150])
def test_structures_are_legal_and_have_their_scores(n: int) -> None:
    batch = random_joint(np.random.default_rng(n), [n], ties=False)
    decoded = decode_joint(*batch)
    assert decoded.scores[0] == pytest.approx(score_of(decoded, batch), rel=1e-12)


VALUES, ARCS = np.zeros(9), np.zeros(18)


def changed(array: Any, place: int, value: float) -> Any:
    copy = array.copy()
    copy[place] = value
    return copy


def test_bad_input_is_refused() -> None:
    decode_joint(VALUES, ARCS, [3, 2])
    for values, arcs, lengths, message in (
        (VALUES.astype(np.float16), ARCS, [3, 2], "values has dtype float16"),
        (VALUES, ARCS.astype(np.int64), [3, 2], "arcs has dtype int64"),
        (VALUES, ARCS.reshape(9, 2), [3, 2], r"arcs has dtype float64 and shape \(9, 2\)"),
        (VALUES, ARCS[:17], [3, 2], "arcs has 17 entries; the batch needs 18"),
        (VALUES, ARCS, [3, 3], "values has 9 entries; the batch needs 12"),
        (VALUES, ARCS, [3, 0], r"lengths\[1\] is 0; a sentence has at least 1 word"),
        (changed(VALUES, 7, 1e301), ARCS, [3, 2], r"values\[7\] \(sentence 1, span \[0, 2\)\) is"),
        (VALUES, changed(ARCS, 3, -1e301), [3, 2], r"arcs\[3\] .*to 1e\+300 can be added"),
    ):
        with pytest.raises(ValueError, match=message):
            decode_joint(values, arcs, lengths)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_the_place_of_a_score_that_is_not_finite_is_named(value: float) -> None:
    message = (
        r"values\[4\] \(sentence 0, span \[1, 3\)\) is -?(nan|inf); every score must be finite"
    )
    with pytest.raises(NotFiniteError, match=message):
        decode_joint(changed(VALUES, 4, value), ARCS, [3, 2])
    for place, words in [
        (0, "sentence 0, dependent 1, head 0"),
        (10, "sentence 0, dependent 3, head 2"),
        (14, "sentence 1, dependent 1, head 2"),
        (16, "sentence 1, dependent 2, head 1"),
    ]:
        arcs = changed(changed(ARCS, 1, value), place, value)  # entry 1 is a word's own head
        with pytest.raises(NotFiniteError, match=rf"arcs\[{place}\] \({words}\) is"):
            decode_joint(VALUES, arcs, [3, 2])
