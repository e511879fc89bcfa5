"""Which scores compare, and what differs between two records.

The number of a score says nothing about how it was made; its signature and its record do. Two
scores compare where everything agrees that decides what is measured: scorer, parameter set,
treebank with the hash of its files, split, sentences, those left out, transforms, tags. Which
run it was (variant, settings, members of an ensemble, size, precision, seed, version of the
program) is what one compares.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from spmrl_bench.errors import ScoreError, unknown_name
from spmrl_bench.leaderboard.record import Record, SplitResult
from spmrl_bench.scoring.counts import Column

RUN_KEYS = frozenset({"variant", "settings", "ensemble", "size", "precision", "seed", "version"})
SPLITS = ("dev", "test")
ABSENT = "absent"

Difference = tuple[str, str, str]


def signature_parts(signature: str) -> dict[str, str]:
    """The ``key:value`` parts of a long signature, which ``|`` separates."""
    parts = (part.partition(":") for part in signature.split("|"))
    return {key: value for key, _, value in parts}


def score_key(record: Record, result: SplitResult) -> dict[str, str]:
    """Everything that decides what a score of a record measures."""
    parts = {
        key: value
        for key, value in signature_parts(result.signature_long).items()
        if key not in RUN_KEYS and key != "treebank"  # of the treebank, the whole hash counts
    }
    return parts | {"fingerprint": record.treebank.fingerprint}


def comparison_key(record: Record) -> tuple[tuple[str, str], ...]:
    """Everything two records must share for their scores to compare."""
    test_skipped = str(record.test.skipped if record.test else 0)
    parts = score_key(record, record.dev) | {"test skipped": test_skipped}
    return tuple(sorted(parts.items()))


def common_split(one: Record, other: Record) -> str:
    """``test`` where both records have scores on it, else ``dev``."""
    return "test" if one.test and other.test else "dev"


def comparable_results(one: Record, other: Record, split: str) -> tuple[SplitResult, SplitResult]:
    """The scores of two records on a split, of which sentence ``k`` is the same on both sides.

    Raises:
        ScoreError: a record has no scores on the split, or the scores do not compare; names
            every key that differs.
    """
    if split not in SPLITS:
        raise ScoreError(unknown_name("split", split, SPLITS))
    results = []
    for name, record in (("the first", one), ("the second", other)):
        result = record.test if split == "test" else record.dev
        if result is None:
            raise ScoreError(
                f"{name} record has no scores on test: test is scored for the variant that dev "
                "selected. Compare on dev (--split dev)"
            )
        results.append(result)
    first, second = results
    differing = _differences(score_key(one, first), score_key(other, second))
    if differing:
        listed = "".join(
            f"\n  {key}: {left} in the first, {right} in the second"
            for key, left, right in differing
        )
        raise ScoreError(f"the scores on {split} do not compare:{listed}")
    _check_sentences(first, second, split)
    return first, second


def _check_sentences(first: SplitResult, second: SplitResult, split: str) -> None:
    one, other = first.bracket_counts(), second.bracket_counts()
    lengths = one.column(Column.LENGTH) != other.column(Column.LENGTH)
    if lengths.any():
        raise ScoreError(
            f"the scores on {split} are not of the same sentences: {_which(lengths)} of different "
            "length"
        )
    left_out = [~counts.scored for counts in (one, other)]
    if (left_out[0] != left_out[1]).any():
        raise ScoreError(
            f"the scores on {split} leave out different sentences: "
            f"{_which(left_out[0] & ~left_out[1])} by the first only, "
            f"{_which(left_out[1] & ~left_out[0])} by the second only. A comparison of the "
            "others would reward failures"
        )


def _which(chosen: NDArray[np.bool_]) -> str:
    """How many sentences, and the first of them."""
    numbers = (np.flatnonzero(chosen) + 1).tolist()
    if not numbers:
        return "none"
    shown = ", ".join(map(str, numbers[:5])) + (", ..." if len(numbers) > 5 else "")
    return f"{len(numbers)} (sentence {shown})"


def record_differences(one: Record, other: Record) -> list[Difference]:
    """``(key, value in one, value in the other)`` of all that went into two records.

    The keys are those of the signatures of both splits, of the treebank, the resolved recipe,
    the versions, the commit and the hardware, with dots between their parts. A split that only
    one of them was scored on is one difference. Scores, costs and dates are none.
    """
    splits = [split for split in SPLITS if getattr(one, split) and getattr(other, split)]
    return _differences(_ingredients(one, splits), _ingredients(other, splits))


def _ingredients(record: Record, splits: Sequence[str]) -> dict[str, str]:
    content: dict[str, object] = {}
    for split in SPLITS:
        result: SplitResult | None = getattr(record, split)
        if result is not None:
            whole = split in splits
            content[split] = signature_parts(result.signature_long) if whole else "scored"
    stored = record.model_dump(mode="json")
    for part in ("treebank", "recipe", "versions", "commit", "hardware"):
        content[part] = stored[part]
    return dict(_flat(content))


def _flat(content: Mapping[str, object], at: str = "") -> Iterator[tuple[str, str]]:
    for key, value in content.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{at}{key}.")
        elif value is not None:
            shown = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            yield f"{at}{key}", shown


def _differences(one: Mapping[str, str], other: Mapping[str, str]) -> list[Difference]:
    """The keys whose values differ, in the order of the first."""
    keys = dict.fromkeys((*one, *other))
    rows = ((key, one.get(key, ABSENT), other.get(key, ABSENT)) for key in keys)
    return [row for row in rows if row[1] != row[2]]
