"""Scores among which the best parse is one that holds what is given.

What is given scores so much more that nothing makes up for it, and the best parse and the
distribution over all are among those which hold it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import repeat
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from spmrl_bench.chart.arrays import arc_offsets, cell_index, cell_offsets
from spmrl_bench.trees.given import Given
from spmrl_bench.trees.tree import Label

#: More than what any scores of a sentence differ by, of which sums are still exact to nine digits.
CERTAIN = 1e6


def hold_constituents(
    blocks: Iterable[Tensor],
    labels: Sequence[Label],
    lengths: NDArray[np.int32],
    given: Sequence[Given],
) -> tuple[Iterable[Tensor], NDArray[np.float64] | float]:
    """Return label scores in which what is excluded by brackets scores less than none, and what
    cells [cells] gain. ``labels`` are the constituents that labels of the parser stand for."""
    if not given:
        return blocks, 0.0
    scores = torch.cat([*blocks]).float()
    gains, offsets = np.zeros(len(scores)), cell_offsets(lengths)
    for one, n, first in zip(given, lengths.tolist(), offsets.tolist(), strict=False):
        wanted, unwanted = defaultdict[Any, set[Any]](set), defaultdict[Any, set[Any]](set)
        for rows, found in ((one.constituents, wanted), (one.not_constituents, unwanted)):
            for start, end, label in rows:
                found[first + cell_index(start, end, n)].add(label)
        for cell in wanted.keys() | unwanted.keys():
            # Any label is there where one is.
            holds = ({*own, *([None] if own else [])} for own in labels[1:])
            wrong = [
                k for k, own in enumerate(holds) if not wanted[cell] <= own or unwanted[cell] & own
            ]
            scores[cell, wrong] -= CERTAIN
            gains[cell] = CERTAIN if wanted[cell] else 0.0
    return [scores], gains


def hold_arcs(
    arcs: NDArray[np.float64], lengths: NDArray[np.int32], given: Sequence[Given]
) -> NDArray[np.float64]:
    """Return packed scores of arcs in which heads that are given have no rivals."""
    held, offsets = arcs.copy(), arc_offsets(lengths)
    for one, n, first in zip(given, lengths.tolist(), offsets.tolist(), strict=False):
        for word, head, _ in one.arcs:
            if head is not None:
                row = held[first + (word - 1) * (n + 1) : first + word * (n + 1)]
                row[np.arange(n + 1) != head] -= CERTAIN
    return held


def hold_relations(
    relations: Sequence[list[str]], given: Sequence[Given], known: Sequence[str]
) -> Iterator[list[str]]:
    """Yield relations of words, with those that are given if the parser has learnt them."""
    for row, one in zip(relations, given or repeat(Given()), strict=False):
        for word, _, name in one.arcs:
            if name is not None and name in known:
                row[word - 1] = name
        yield row
