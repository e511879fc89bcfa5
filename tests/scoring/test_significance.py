"""Significance tests against enumeration in exact arithmetic, and under a true null hypothesis."""

from __future__ import annotations

import random
from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

from spmrl_bench.errors import ScoreError
from spmrl_bench.scoring import BracketCounts, Status
from spmrl_bench.scoring.attachment import ATTACHMENT
from spmrl_bench.scoring.bracket_metric import BRACKETS
from spmrl_bench.scoring.counts import AttachmentCounts
from spmrl_bench.scoring.significance import (
    Interval,
    Ratio,
    compare,
    confidence_intervals,
    randomisation,
)
from tests.reliability.tally import Tally

Sentence = tuple[int, int, int]  # matched, gold, test


def corpus(sentences: Sequence[Sentence]) -> BracketCounts:
    return BracketCounts.from_rows(
        (9, Status.VALID, matched, gold, test, 0, 9, 9) for matched, gold, test in sentences
    )


def ratio(name: str, numerator: Sequence[int], denominator: Sequence[int]) -> Ratio:
    return Ratio(name, np.array(numerator), np.array(denominator))


def made_up(sentences: int, seed: int) -> tuple[list[Sentence], list[Sentence]]:
    """Two systems on the same sentences; the second is somewhat better."""
    choose = random.Random(seed)
    one, other = [], []
    for _ in range(sentences):
        gold = choose.randint(3, 12)
        for system, lost in ((one, 4), (other, 3)):
            matched = gold - min(gold, choose.randint(0, lost))
            system.append((matched, gold, matched + choose.randint(0, 3)))
    return one, other


def f1(sentences: Sequence[Sentence]) -> Fraction:
    """In points, without rounding."""
    matched, gold, test = (sum(column) for column in zip(*sentences, strict=True))
    return Fraction(200 * matched, gold + test)


def p_of_all_swaps(one: Sequence[Sentence], other: Sequence[Sentence]) -> Fraction:
    """Share of the ways to swap pairs whose difference is at least as large as the one seen."""
    seen = abs(f1(other) - f1(one))
    hits = 0
    for swap in product((False, True), repeat=len(one)):
        pairs = [(b, a) if s else (a, b) for a, b, s in zip(one, other, swap, strict=True)]
        left, right = zip(*pairs, strict=True)
        hits += abs(f1(right) - f1(left)) >= seen
    return Fraction(hits, 2 ** len(one))


@pytest.mark.parametrize(
    ("sentences", "pairs"),
    [
        *((n, 3) for n in (1, 2, 3, 5, 8, 10)),
        *(pytest.param(n, 40, marks=pytest.mark.campaign) for n in range(1, 13)),
    ],
)
def test_few_sentences_agree_with_the_full_permutation(
    sentences: int, pairs: int, tally: Tally
) -> None:
    held = tally("R26", "pairs of systems on 1 to 12 sentences: p of all permutations")
    for seed in range(pairs):
        held.add()
        one, other = made_up(sentences, seed)
        expected = p_of_all_swaps(one, other)
        # F1 alone: a system without brackets has no precision.
        ratios = (BRACKETS.ratios(corpus(side))[:1] for side in (one, other))
        (exact,) = compare(*ratios, trials=2**sentences)
        assert exact.exact
        assert exact.p_randomisation == pytest.approx(float(expected), rel=1e-12)
        assert exact.difference == pytest.approx(float(f1(other) - f1(one)), abs=1e-12)


def test_sampled_swaps_come_close_to_the_full_permutation() -> None:
    one, other = made_up(15, seed=3)
    assert sum(a != b for a, b in zip(one, other, strict=True)) == 15
    expected = float(p_of_all_swaps(one, other))
    assert 0.05 < expected < 0.95
    ratios = BRACKETS.ratios(corpus(one)), BRACKETS.ratios(corpus(other))
    sampled = compare(*ratios, trials=20_000)[0]
    assert not sampled.exact
    standard_error = (expected * (1 - expected) / 20_000) ** 0.5
    assert abs(sampled.p_randomisation - expected) < 3 * standard_error
    assert compare(*ratios, trials=2**15)[0].p_randomisation == expected


def all_resamples(
    one: Sequence[Sentence], other: Sequence[Sentence]
) -> tuple[list[Fraction], list[Fraction]]:
    """F1 of both systems on every way to draw as many sentences with replacement."""
    draws = list(product(range(len(one)), repeat=len(one)))
    left, right = ([f1([side[k] for k in draw]) for draw in draws] for side in (one, other))
    return left, right


def test_bootstrap_comes_close_to_all_resamples() -> None:
    one, other = made_up(5, seed=1)
    seen = f1(other) - f1(one)
    left, right = all_resamples(one, other)
    hits = sum(abs(b - a - seen) >= abs(seen) for a, b in zip(left, right, strict=True))
    expected = hits / 5**5
    assert 0.05 < expected < 0.95
    ratios = BRACKETS.ratios(corpus(one)), BRACKETS.ratios(corpus(other))
    sampled = compare(*ratios, trials=40_000)[0]
    standard_error = (expected * (1 - expected) / 40_000) ** 0.5
    assert abs(sampled.p_bootstrap - expected) < 3 * standard_error
    differences = [b - a for a, b in zip(left, right, strict=True)]
    for interval, population in (
        (sampled.one_interval, left),
        (sampled.other_interval, right),
        (sampled.interval, differences),
    ):
        for bound, share in ((interval.low, 0.025), (interval.high, 0.975)):
            ordered = [float(value) for value in sorted(population)]
            low, high = (ordered[int(share * 5**5) + off] for off in (-25, 25))
            assert low - 1e-9 <= bound <= high + 1e-9


def test_rounding_breaks_no_ties() -> None:
    # The systems differ in one of seven sentences. A draw is as far from that difference as zero
    # is where it has this sentence not at all or at least twice.
    one, other = (ratio("las", [n, *[3] * 6], [7] * 7) for n in (3, 4))
    expected = 1 - 7 * (1 / 7) * (6 / 7) ** 6
    (sampled,) = compare([one], [other], trials=10_000)
    standard_error = (expected * (1 - expected) / 10_000) ** 0.5
    assert abs(sampled.p_bootstrap - expected) < 3 * standard_error
    assert (sampled.p_randomisation, sampled.exact) == (1.0, True)


def test_difference_figures_and_wins() -> None:
    one = [(2, 4, 4), (3, 3, 3), (0, 0, 0), (1, 2, 3)]
    other = [(3, 4, 4), (2, 3, 3), (0, 0, 1), (1, 2, 2)]
    f1_, recall, precision = compare(BRACKETS.ratios(corpus(one)), BRACKETS.ratios(corpus(other)))
    assert (f1_.name, recall.name, precision.name) == ("f1", "recall", "precision")
    assert (recall.one, recall.other) == (pytest.approx(600 / 9), pytest.approx(600 / 9))
    assert recall.difference == 0.0
    assert (recall.p_randomisation, recall.p_bootstrap) == (1.0, 1.0)
    # Without gold brackets, one bracket is worse than none; fewer wrong ones are better.
    assert (f1_.better, f1_.worse) == (2, 2)
    assert (precision.better, precision.worse) == (2, 2)
    assert (recall.better, recall.worse) == (1, 1)


def test_attachment_scores_are_compared_by_words() -> None:
    # words, heads, labels, both; twice, since there is no punctuation
    one = AttachmentCounts.from_rows([(4, 2, 3, 2) * 2, (6, 6, 5, 5) * 2, (2, 1, 1, 0) * 2])
    other = AttachmentCounts.from_rows([(4, 4, 3, 3) * 2, (6, 5, 5, 5) * 2, (2, 2, 2, 2) * 2])
    results = compare(ATTACHMENT.ratios(one), ATTACHMENT.ratios(other))
    for result in results:
        assert result.one == getattr(one, result.name)
        assert result.other == getattr(other, result.name)
    las, uas, label_accuracy = results
    assert (las.name, uas.name, label_accuracy.name) == ("las", "uas", "label_accuracy")
    assert (uas.better, uas.worse, label_accuracy.better, label_accuracy.worse) == (2, 1, 1, 0)
    # 9 and 11 heads: swaps change the difference of 2 by -4 or 0, +2 or 0, -2 or 0.
    assert (
        uas.p_randomisation
        == sum(abs(2 - 4 * a + 2 * b - 2 * c) >= 2 for a, b, c in product((0, 1), repeat=3)) / 8
    )


def test_equal_systems_are_not_different() -> None:
    ratios = BRACKETS.ratios(corpus(made_up(50, seed=1)[0]))
    for result in compare(ratios, ratios):
        assert (result.p_randomisation, result.p_bootstrap, result.exact) == (1.0, 1.0, True)
        assert result.interval == Interval(0.0, 0.0)
        assert (result.better, result.worse) == (0, 0)


def test_order_of_the_systems_only_changes_signs() -> None:
    one, other = (BRACKETS.ratios(corpus(side)) for side in made_up(200, seed=4))
    there, back = compare(one, other, trials=500)[0], compare(other, one, trials=500)[0]
    assert there.difference == -back.difference
    assert there.interval.low == pytest.approx(-back.interval.high, abs=1e-9)
    assert (there.p_randomisation, there.p_bootstrap) == (back.p_randomisation, back.p_bootstrap)
    assert (there.better, there.worse) == (back.worse, back.better)


def test_result_depends_on_the_seed_and_not_on_the_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    ratios = [BRACKETS.ratios(corpus(side)) for side in made_up(70, seed=6)]
    first = compare(*ratios, trials=300, seed=1)
    assert compare(*ratios, trials=300, seed=1) == first
    second = compare(*ratios, trials=300, seed=2)
    assert [one.p_randomisation for one in second] != [one.p_randomisation for one in first]
    assert [one.p_bootstrap for one in second] != [one.p_bootstrap for one in first]
    few, other = made_up(8, seed=2)
    for elements in (70 * 11, 8 * 7, 1):
        monkeypatch.setattr("spmrl_bench.scoring.significance._ELEMENTS", elements)
        assert compare(*ratios, trials=300, seed=1) == first
        exact = compare(BRACKETS.ratios(corpus(few)), BRACKETS.ratios(corpus(other)))[0]
        assert exact.p_randomisation == float(p_of_all_swaps(few, other))


def test_the_streams_of_random_numbers_stay() -> None:
    """Published p-values and intervals were drawn from them."""
    one, other = (BRACKETS.ratios(corpus(side))[:1] for side in made_up(40, seed=1))
    (result,) = compare(one, other, trials=1000)
    assert (1001 * result.p_randomisation, 1001 * result.p_bootstrap) == (296, 265)
    assert result.interval.low == pytest.approx(-1.8994176056932244, abs=1e-9)
    assert result.interval.high == pytest.approx(7.298788698172309, abs=1e-9)
    assert randomisation(one[0], other[0], trials=1000) == result.p_randomisation
    assert confidence_intervals(one, trials=1000) == [result.one_interval]


def test_draws_without_anything_to_divide_count_as_hits_and_not_for_intervals() -> None:
    # One of three sentences has brackets; (2/3)**3 of the draws miss it.
    one, other = [(1, 2, 2), (0, 0, 0), (0, 0, 0)], [(2, 2, 2), (0, 0, 0), (0, 0, 0)]
    result = compare(BRACKETS.ratios(corpus(one)), BRACKETS.ratios(corpus(other)), trials=2000)[0]
    assert result.p_bootstrap == pytest.approx(8 / 27, abs=0.04)
    assert result.one_interval == Interval(50.0, 50.0)


SINGLE = ratio("f1", [1, 2], [2, 2])


def test_what_cannot_be_compared_is_refused() -> None:
    cases: list[tuple[list[Ratio], list[Ratio], dict[str, Any], str]] = [
        ([SINGLE], [ratio("f1", [1], [2])], {}, "same sentences; found 1, 2 sentences"),
        ([SINGLE], [ratio("recall", [1, 2], [2, 2])], {}, "same figures, found f1 and recall"),
        ([], [], {}, "same figures, found none and none"),
        ([SINGLE], [ratio("f1", [0, 0], [0, 0])], {}, "f1 is 0 of 0"),
        ([SINGLE], [SINGLE], {"trials": 0}, "trials must be at least 1, found 0"),
        ([SINGLE], [SINGLE], {"seed": -1}, "seed must not be negative, found -1"),
    ]
    for one, other, options, message in cases:
        with pytest.raises(ScoreError, match=message):
            compare(one, other, **options)


def simulated(
    generator: np.random.Generator, sentences: int, error_rates: tuple[float, float]
) -> list[list[Ratio]]:
    """F1 of two systems that fail independently of each other on sentences they find equally hard.

    Sentences differ in length and difficulty, so the counts of the systems correlate as those
    of real parsers do. With equal error rates the null hypothesis is true.
    """
    gold = 1 + generator.poisson(generator.gamma(4, 5, sentences))
    difficulty = generator.beta(2, 6, sentences) * 4
    systems = []
    for rate in error_rates:
        matched = generator.binomial(gold, 1 - np.minimum(rate * difficulty, 1))
        test = matched + generator.binomial(gold, np.minimum(rate * difficulty, 1))
        systems.append([Ratio("f1", 2 * matched, gold + test)])
    return systems


def rejections(
    pairs: int, sentences: int, trials: int, error_rates: tuple[float, float] = (0.1, 0.1)
) -> tuple[float, float]:
    """Per cent of simulated pairs that each test calls different at 5 %.

    With 199 or 399 trials, p <= 0.05 has exactly the chance 0.05 where no differences tie.
    """
    generator = np.random.default_rng(7)
    rejected = np.zeros(2, dtype=int)
    for pair in range(pairs):
        systems = simulated(generator, sentences, error_rates)
        (result,) = compare(*systems, trials=trials, seed=pair)
        rejected += np.array([result.p_randomisation, result.p_bootstrap]) <= 0.05
    randomisation, bootstrap = 100 * rejected / pairs
    return float(randomisation), float(bootstrap)


def test_true_null_hypotheses_are_rarely_rejected_and_false_ones_often(tally: Tally) -> None:
    tally("R26", "simulated pairs of equal systems: rejected at 5 %").add(300)
    # 300 pairs: 5 % is 15 rejections with a standard deviation of 3.8.
    for rate in rejections(300, 200, trials=199):
        assert 1.5 < rate < 9
    for rate in rejections(50, 200, trials=199, error_rates=(0.1, 0.13)):
        assert rate > 90


@pytest.mark.campaign
def test_rejection_of_10000_true_null_hypotheses_is_5_per_cent(tally: Tally) -> None:
    tally("R26", "simulated pairs of equal systems: rejected at 5 %").add(10_000)
    # The standard deviation of both rates is 0.22 points.
    for rate in rejections(10_000, 400, trials=199):
        assert 4.4 <= rate <= 5.6
