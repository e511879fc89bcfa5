"""Which records compare, and what differs between two of them."""

from __future__ import annotations

import pytest

from spmrl_bench.errors import ScoreError
from spmrl_bench.leaderboard.compare import common_metric, comparable_counts, record_differences
from spmrl_bench.leaderboard.record import Record
from tests.builders import (
    HALF,
    LOOSE,
    PERFECT,
    SKIPPED,
    joined,
    make_record,
    make_result,
    make_treebank,
)


def test_what_the_run_was_is_what_one_compares() -> None:
    run = {"variant": "word-charlstm", "seed": "2", "settings": "matrices=full", "ensemble": "5"}
    one, other = make_record(), make_record(dev=make_result(PERFECT, HALF, version="0.2.0", **run))
    assert list(map(len, comparable_counts(one, other, "dev", "brackets"))) == [2, 2]
    assert ("dev.settings", "absent", "matrices=full") in record_differences(one, other)


NO_TEST = {"test": None, "baselines": {}}
UNSELECTED = {"selected": False, **NO_TEST}


def refusal(other: Record, split: str) -> list[str]:
    with pytest.raises(ScoreError) as caught:
        comparable_counts(make_record(), other, split, "brackets")
    return [line.strip() for line in str(caught.value).splitlines()]


def test_what_does_not_compare_is_refused_with_every_key() -> None:
    dev = make_result(PERFECT, HALF, prm="COLLINS", punctuation="by-gold")
    other = make_record(treebank=make_treebank(fingerprint="cd" * 32), dev=dev)
    assert refusal(other, "dev") == [
        "the scores on dev do not compare:",
        "prm: spmrl in the first, COLLINS in the second",
        f"fingerprint: {'ab' * 32} in the first, {'cd' * 32} in the second",
        "punctuation: absent in the first, by-gold in the second",
    ]
    for changes, split, message in (
        (UNSELECTED, "test", "the second record has no scores on test: test is scored for the var"),
        ({"dev": make_result(PERFECT, PERFECT)}, "dev", "the scores on dev are not of the same se"),
    ):
        assert refusal(make_record(**changes), split)[0].startswith(message)


def test_other_sentences_left_out_are_refused_though_equally_many() -> None:
    left_out = [(row[0], *SKIPPED[1:]) for row in (PERFECT, HALF)]
    one = make_record(dev=make_result(left_out[0], HALF, HALF))
    other = make_record(dev=make_result(PERFECT, left_out[1], HALF))
    with pytest.raises(ScoreError, match="on dev leave out different sentences"):
        comparable_counts(one, other, "dev", "brackets")


def test_differences_are_of_ingredients_and_not_of_results() -> None:
    one = make_record()
    other = make_record(
        dev=make_result(PERFECT, PERFECT, prm="COLLINS"),
        weights="ef" * 32,
        recipe={"variant": "charlstm", "learning_rate": 0.002, "model": {"layers": 8}},
        versions={"spmrl_bench": "0.1.0", "torch": "2.4"},
    )
    assert record_differences(one, one) == []
    assert record_differences(one, make_record(**UNSELECTED)) == [("test", "scored", "absent")]
    assert record_differences(one, other) == [
        ("dev.prm", "spmrl", "COLLINS"),
        ("recipe.learning_rate", "0.0008", "0.002"),
        ("recipe.model.layers", "absent", "8"),
        ("versions.torch", "absent", "2.4"),
    ]


def test_metrics_compare_one_by_one() -> None:
    brackets, attached = make_result(PERFECT, HALF), make_result(LOOSE, LOOSE, metric="attachment")
    chart = make_record(dev=brackets)
    whole = make_record(dev=joined(attached, brackets), **NO_TEST)
    links = make_record(dev=attached, **NO_TEST)
    assert common_metric(chart, whole) == "brackets"
    assert common_metric(links, whole) == "attachment"
    assert len(comparable_counts(links, whole, "dev", "attachment")[0]) == 2
    with pytest.raises(ScoreError, match=r"no metric in common: .* by brackets, .* by attachment"):
        common_metric(chart, links)
    with pytest.raises(ScoreError, match="the first record has no scores by attachment; it has br"):
        comparable_counts(chart, whole, "dev", "attachment")
    # The layers that a metric compares are those whose fingerprints count.
    bank = make_treebank().model_copy(
        update={"fingerprints": {"constituents": "ab" * 32, "dependencies": "ef" * 32}}
    )
    other = make_record(treebank=bank, dev=joined(attached, brackets), **NO_TEST)
    comparable_counts(whole, other, "dev", "brackets")
    with pytest.raises(ScoreError, match=r"fingerprint: (ba)+ in .*, (ef)+ in"):
        comparable_counts(whole, other, "dev", "attachment")
    assert ("dev.attachment.match", "absent", "attachment") in record_differences(chart, other)
