"""The same sentence alone, in any batch, in any order: one parse."""

from __future__ import annotations

import numpy as np
import pytest

from tests.reliability.parsers import KINDS, examples, parser_of
from tests.reliability.tally import Tally


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("count", "batches"), [(12, 3), pytest.param(40, 500, marks=pytest.mark.campaign)]
)
def test_batches_and_order_change_no_parse(
    kind: str, count: int, batches: int, tally: Tally
) -> None:
    held = tally("R10", "random batches of parsers of every kind")
    given = examples(count)
    parser = parser_of(kind, given)
    words = [example.words for example in given]
    alone = [next(iter(parser.parse([each]))) for each in words]
    assert len(set(map(str, alone))) > count / 2
    rng = np.random.default_rng(7)
    for _ in range(batches):
        held.add()
        chosen = rng.permutation(len(words))[: rng.integers(2, 13)].tolist()
        bound = int(rng.choice([20, 50, 2_000]))
        found = list(parser.parse([words[k] for k in chosen], max_tokens=bound))
        assert found == [alone[k] for k in chosen]
