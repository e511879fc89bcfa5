"""Whether a parser is as often right as it says, and the temperature at which it is.

What is looked at are the decisions of its parses: each constituent, and the head of each word. The
*expected calibration error* is the mean, over the decisions in ten bins by probability, of how far
the mean probability of a bin is from the share of its decisions that are right (Guo et al. 2017,
section 2). The temperature is the one at which these decisions are most likely.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spmrl_bench.errors import CheckpointError, remedy
from spmrl_bench.parsers.neural import NeuralParser
from spmrl_bench.parsers.saved import save_temperature
from spmrl_bench.parsers.session import NeuralSession, Window, with_tags
from spmrl_bench.trees.parse import Parse

#: Bins of probabilities, and sentences that a temperature is fitted on.
BINS, SENTENCES = 10, 200
# Between which temperatures lies the best, and how often the interval is divided.
_BOUNDS, _STEPS = (0.15, 10.0), 10
_GOLDEN = (math.sqrt(5) - 1) / 2


class Bin(NamedTuple):
    """The decisions of about one probability."""

    decisions: int
    probability: float  # the mean
    right: float  # the share


class Decisions(NamedTuple):
    """The decisions of some parses: their probabilities, and whether they are those of gold."""

    probabilities: NDArray[np.float64]
    right: NDArray[np.bool_]

    @property
    def bins(self) -> list[Bin]:
        """Those in which there are some, by probability."""
        places = np.minimum((self.probabilities * BINS).astype(int), BINS - 1)
        each = [places == place for place in np.unique(places)]
        sums = ((own.sum(), self.probabilities[own].mean(), self.right[own].mean()) for own in each)
        return [Bin(int(number), float(sure), float(right)) for number, sure, right in sums]

    @property
    def error(self) -> float:
        """The expected calibration error, from 0 to 1."""
        gaps = sum(each.decisions * abs(each.probability - each.right) for each in self.bins)
        return gaps / max(1, len(self.right))

    @property
    def surprise(self) -> float:
        """The mean negative log-likelihood."""
        sure = self.probabilities.clip(1e-6, 1 - 1e-6)
        return float(-np.log(np.where(self.right, sure, 1 - sure)).mean())


def decisions_of(parser: NeuralParser, gold: Sequence[Parse]) -> Decisions:
    """Return the decisions of a parser on gold sentences, at its temperature. Raise an
    UnsupportedError if its kind tells no probabilities."""
    session = parser.session_for(True, 1)
    return _found(session.decoded(_read(parser, session, gold)), gold)


def _read(parser: NeuralParser, session: NeuralSession, gold: Sequence[Parse]) -> Iterator[Window]:
    tags = [each.tags for each in gold] if parser.reads_tags else None
    return session.encoded(with_tags([each.words for each in gold], tags))


def _found(parses: Iterable[Parse], gold: Sequence[Parse]) -> Decisions:
    rows = [pair for one, found in zip(gold, parses, strict=True) for pair in _decided(one, found)]
    probabilities, right = zip(*rows, strict=True) if rows else ((), ())
    return Decisions(np.array(probabilities, dtype=float), np.array(right, dtype=bool))


def fit_temperature(parser: NeuralParser, gold: Sequence[Parse]) -> None:
    """Give a parser the temperature that fits gold sentences best, of which it takes the first."""
    some, session = gold[:SENTENCES], parser.session_for(True, 1)
    parser.eval()  # what follows the encoder is to drop nothing at random either
    encoded = [(done, own, [*groups]) for done, own, groups in _read(parser, session, some)]

    def surprise(logarithm: float) -> float:
        parser.temperature = math.exp(logarithm)
        return _found(session.decoded(encoded), some).surprise

    # Golden-section search, which asks once for each division.
    low, high = map(math.log, _BOUNDS)
    inner = [high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)]
    values = [*map(surprise, inner)]
    for _ in range(_STEPS):
        if values[0] <= values[1]:
            high = inner[1]
            inner = [high - _GOLDEN * (high - low), inner[0]]
            values = [surprise(inner[0]), values[0]]
        else:
            low = inner[0]
            inner = [inner[1], low + _GOLDEN * (high - low)]
            values = [values[1], surprise(inner[1])]
    parser.temperature = float(f"{math.exp((low + high) / 2):.3g}")


def keep_temperature(parser: NeuralParser, gold: Sequence[Parse], folder: Path) -> None:
    """Fit the temperature of a parser, and write it into its folder; raise a CheckpointError if
    that cannot be written, and an UnsupportedError as :func:`decisions_of`."""
    fit_temperature(parser, gold)
    try:
        save_temperature(parser.temperature, folder)
    except OSError as error:
        problem = f"{folder}: its temperature cannot be written: {error.strerror}"
        raise CheckpointError(f"{problem}. {remedy(error)}") from None


def _decided(gold: Parse, found: Parse) -> Iterator[tuple[float, bool]]:
    known = found.probabilities
    assert known is not None, "it was asked"
    if found.tree is not None and gold.tree is not None and known.constituents is not None:
        right = set(gold.tree.constituents())
        for one in set(found.tree.constituents()):
            yield known.constituents.get(one, 0.0), one in right
    if found.dependencies is not None and gold.dependencies is not None and known.arcs is not None:
        heads = zip(
            found.dependencies.heads.tolist(), gold.dependencies.heads.tolist(), strict=True
        )
        for word, (own, other) in enumerate(heads, 1):
            yield known.arcs.get((word, own), 0.0), own == other
