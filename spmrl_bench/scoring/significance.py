"""Whether the difference between two systems can be chance, and how precise one score is.

F1 of a corpus is no mean of sentence scores, so both tests work on the counts of each sentence
and keep the sentences of the two systems in pairs. *Approximate randomisation* (Noreen 1989; Yeh
2000, section 4): how often does swapping the outputs of sentences by coin give a difference as
large as the one seen? Few sentences are swapped in every way; p is then exact. *Paired
bootstrap* (Efron & Tibshirani 1993, section 16.4): how often do sentences drawn with replacement
give a difference that is as far from the one seen as that is from zero? Both are two-sided, and a
p that was sampled is (hits + 1) / (trials + 1) (Davison & Hinkley 1997, section 4.2.1). Published
p-values depend on the streams of random numbers: do not change how they are drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb

import numpy as np
from numpy.typing import NDArray

from spmrl_bench.errors import ScoreError
from spmrl_bench.scoring.counts import percent

TRIALS = 10_000
LEVEL = 95.0  # of confidence intervals, in per cent

_RANDOMISATION, _BOOTSTRAP = 0, 1  # independent streams of random numbers of one seed
_ELEMENTS = 2**20  # trials x sentences in memory at a time
# Differences (in points) this close are equal; rounding must not break ties.
_TIE = 1e-10

Matrix = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Ratio:
    """A figure of a corpus, such as ``f1``, as a ratio of two sums over its sentences."""

    name: str
    numerator: NDArray[np.int64]  # [sentences]
    denominator: NDArray[np.int64]  # [sentences]

    def __len__(self) -> int:
        """Number of sentences."""
        return len(self.numerator)

    @property
    def value(self) -> float | None:
        """The figure in per cent; None for 0 of 0."""
        return percent(int(self.numerator.sum()), int(self.denominator.sum()))


def summed(ratios: Sequence[Ratio], times: int = 1) -> Ratio:
    """Return a figure of several runs together, counted so many times over."""
    above = times * np.sum([one.numerator for one in ratios], axis=0)
    return Ratio(ratios[0].name, above, times * np.sum([one.denominator for one in ratios], axis=0))


@dataclass(frozen=True, slots=True)
class Interval:
    """A confidence interval in per cent (or, of a difference, in points)."""

    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two systems compared by one figure; values in per cent, differences in points."""

    name: str  # of the figure
    one: float  # value of the first system
    other: float  # and of the second
    one_interval: Interval
    other_interval: Interval
    difference: float  # second minus first
    interval: Interval  # of the difference
    p_randomisation: float
    p_bootstrap: float
    exact: bool  # whether the randomisation test went through all swaps
    better: int  # sentences on which the second system is better by itself
    worse: int  # sentences on which it is worse; 0 of 0 counts as all right


def confidence_intervals(
    ratios: Sequence[Ratio], *, trials: int = TRIALS, seed: int = 0
) -> list[Interval]:
    """Return percentile bootstrap intervals of one system (Efron & Tibshirani, chapter 13).

    ``ratios`` are figures over the same sentences, which are drawn with replacement ``trials``
    times; draws that leave nothing to divide are passed over. Raise a ScoreError if a figure is 0
    of 0, lengths differ, or an option is out of range.
    """
    _check([ratios], trials, seed)
    sums = _resampled(_columns(ratios), trials, seed)
    return [_interval(_figure(sums, k)) for k in range(len(ratios))]


def compare(
    one: Sequence[Ratio], other: Sequence[Ratio], *, trials: int = TRIALS, seed: int = 0
) -> list[Comparison]:
    """Compare two systems on the same sentences, one result per figure.

    Both have the same figures over the same sentences in the same order. ``trials`` are the random
    swaps, and the draws of the bootstrap; where there are at most that many ways to swap the
    sentences that differ, all are gone through. Raise a ScoreError if the figures or their lengths
    differ, one is 0 of 0, or an option is out of range.
    """
    _check([one, other], trials, seed)
    first, second = _columns(one), _columns(other)
    swapped, exact = _swapped(first, second, trials, seed)
    drawn = _resampled(np.hstack([first, second]), trials, seed)
    width = first.shape[1]
    results = []
    for k, (left, right) in enumerate(zip(one, other, strict=True)):
        value, other_value = _total(first, k), _total(second, k)
        difference = other_value - value
        swaps = _figure(swapped[1], k) - _figure(swapped[0], k)
        draws = _figure(drawn[:, :width], k), _figure(drawn[:, width:], k)
        drawn_differences = draws[1] - draws[0]
        better, worse = _wins(left, right)
        results.append(
            Comparison(
                name=left.name,
                one=value,
                other=other_value,
                one_interval=_interval(draws[0]),
                other_interval=_interval(draws[1]),
                difference=difference,
                interval=_interval(drawn_differences),
                p_randomisation=_randomised(swaps, difference, exact),
                p_bootstrap=_p(drawn_differences - difference, difference),
                exact=exact,
                better=better,
                worse=worse,
            )
        )
    return results


def randomisation(one: Ratio, other: Ratio, *, trials: int = TRIALS, seed: int = 0) -> float:
    """Return p of the randomisation test alone, as :func:`compare` gives it for this figure.

    It takes a tenth of the time of the whole comparison, where many systems are compared. Raise a
    ScoreError as :func:`compare`.
    """
    _check([[one], [other]], trials, seed)
    first, second = _columns([one]), _columns([other])
    swapped, exact = _swapped(first, second, trials, seed)
    seen = _total(second, 0) - _total(first, 0)
    return _randomised(_figure(swapped[1], 0) - _figure(swapped[0], 0), seen, exact)


def permutation(
    one: Sequence[float], other: Sequence[float], *, trials: int = TRIALS, seed: int = 0
) -> float:
    """Return the p of the difference of the means of two systems over their seeds, two-sided.

    How often does dividing the scores of all seeds anew give means as far apart (Noreen 1989)?
    Few seeds are divided in every way; the smallest p of two seeds each is 1/3.
    """
    values, size = np.array([*one, *other]), len(one)
    seen = values[:size].mean() - values[size:].mean()
    exact = comb(len(values), size) <= trials
    if exact:
        chosen = np.array(list(combinations(range(len(values)), size)))
    else:
        random = np.random.default_rng(seed)
        chosen = random.permuted(np.tile(np.arange(len(values)), (trials, 1)), axis=1)[:, :size]
    sums = values[chosen].sum(axis=1)
    differences = sums / size - (values.sum() - sums) / (len(values) - size)
    return _randomised(differences, float(seen), exact)


def _check(systems: Sequence[Sequence[Ratio]], trials: int, seed: int) -> None:
    if trials < 1:
        raise ScoreError(f"trials must be at least 1, found {trials}")
    if seed < 0:
        raise ScoreError(f"the seed must not be negative, found {seed}")
    names = [[ratio.name for ratio in ratios] for ratios in systems]
    if not names[0] or any(listed != names[0] for listed in names):
        shown = " and ".join(", ".join(listed) or "none" for listed in names)
        raise ScoreError(f"both systems need the same figures, found {shown}")
    every = [ratio for ratios in systems for ratio in ratios]
    if len(lengths := {len(ratio) for ratio in every}) > 1:
        found = ", ".join(map(str, sorted(lengths)))
        raise ScoreError(f"figures must be of the same sentences; found {found} sentences")
    for ratio in every:
        if ratio.value is None:
            raise ScoreError(f"{ratio.name} is 0 of 0, which no test can compare")


def _columns(ratios: Sequence[Ratio]) -> Matrix:
    """Float64 ``[sentences, 2 * ratios]``: numerator and denominator of each. The sums stay whole
    numbers below 2**53, so floating point adds them without error."""
    parts = [part for ratio in ratios for part in (ratio.numerator, ratio.denominator)]
    return np.stack(parts, axis=1).astype(np.float64)


def _figure(sums: Matrix, k: int) -> Matrix:
    """Figure ``k`` in per cent of each row of sums; NaN for 0 of 0."""
    above, below = sums[:, 2 * k], sums[:, 2 * k + 1]
    return np.divide(100.0 * above, below, out=np.full_like(above, np.nan), where=below != 0)


def _total(columns: Matrix, k: int) -> float:
    """Figure ``k`` of all sentences."""
    return float(_figure(columns.sum(axis=0)[None], k)[0])


def _in_chunks(
    trials: int, sentences: int, weights: Callable[[int, int], Matrix]
) -> Iterator[Matrix]:
    """Weights ``[some trials, sentences]`` for all trials, a bounded number at a time."""
    step = max(1, _ELEMENTS // max(1, sentences))
    for start in range(0, trials, step):
        yield weights(start, min(step, trials - start))


def _swapped(
    one: Matrix, other: Matrix, trials: int, seed: int
) -> tuple[tuple[Matrix, Matrix], bool]:
    """Sums of both systems with sentences swapped, ``[trials, columns]`` each; whether all ways. A
    sentence with the same counts on both sides is the same swapped or not, so it has no coin."""
    change = other - one
    change = change[change.any(axis=1)]
    sentences = len(change)
    exact = sentences < 63 and 2**sentences <= trials
    random = np.random.default_rng((seed, _RANDOMISATION))
    four_bytes = -(-sentences // 32)

    def every(start: int, size: int) -> Matrix:
        numbers = np.arange(start, start + size)[:, None]
        return (numbers >> np.arange(sentences) & 1).astype(np.float64)

    def coins(_: int, size: int) -> Matrix:
        data = np.frombuffer(random.bytes(4 * four_bytes * size), dtype=np.uint8)
        bits = np.unpackbits(data.reshape(size, -1), axis=1, count=sentences)
        return bits.astype(np.float64)

    number = 2**sentences if exact else trials
    chosen = _in_chunks(number, sentences, every if exact else coins)
    moved = np.concatenate([chunk @ change for chunk in chosen])
    return (one.sum(axis=0) + moved, other.sum(axis=0) - moved), exact


def _resampled(columns: Matrix, trials: int, seed: int) -> Matrix:
    """Sums ``[trials, columns]`` over sentences drawn with replacement."""
    sentences = len(columns)
    random = np.random.default_rng((seed, _BOOTSTRAP))

    def times_drawn(_: int, size: int) -> Matrix:
        draws = random.integers(0, sentences, size=(size, sentences))
        draws += np.arange(size)[:, None] * sentences
        times = np.bincount(draws.ravel(), minlength=size * sentences)
        return times.reshape(size, sentences).astype(np.float64)

    return np.concatenate([chunk @ columns for chunk in _in_chunks(trials, sentences, times_drawn)])


def _extreme(differences: Matrix, seen: float) -> NDArray[np.bool_]:
    """Which differences are at least as large as the one seen; an undefined one counts."""
    return ~(np.abs(differences) < abs(seen) - _TIE)


def _p(differences: Matrix, seen: float) -> float:
    return (int(_extreme(differences, seen).sum()) + 1) / (len(differences) + 1)


def _randomised(swaps: Matrix, seen: float, exact: bool) -> float:
    # Going through all swaps includes the one that was seen.
    return float(_extreme(swaps, seen).mean()) if exact else _p(swaps, seen)


def _interval(values: Matrix) -> Interval:
    tail = (1 - LEVEL / 100) / 2
    low, high = np.nanquantile(values, (tail, 1 - tail))
    return Interval(float(low), float(high))


def _wins(one: Ratio, other: Ratio) -> tuple[int, int]:
    """Numbers of sentences on which the second system is better, and worse."""
    sides = []
    for ratio in (one, other):
        nothing = ratio.denominator == 0
        sides.append((ratio.numerator + nothing, ratio.denominator + nothing))
    (above, below), (other_above, other_below) = sides
    lead = other_above * below - above * other_below
    return int((lead > 0).sum()), int((lead < 0).sum())
