"""The scorer keeps its name as long as it counts alike, and loses it by itself when not."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from spmrl_bench.scoring.golden import FIRST_VERSION, counts_digest, scorer_version

from spmrl_bench.scoring import brackets, corpus, golden, punctuation
from spmrl_bench.scoring.attachment import PUNCTUATION_RULES, PunctuationRule
from spmrl_bench.storage.paths import data_dir


@pytest.fixture(autouse=True)
def _anew() -> Iterator[None]:
    scorer_version.cache_clear()
    brackets.rules_of.cache_clear()
    yield
    scorer_version.cache_clear()
    brackets.rules_of.cache_clear()


def test_every_parameter_set_and_rule_has_its_digest() -> None:
    shipped = {path.stem for path in data_dir("evalb").glob("*.prm")}
    assert set(FIRST_VERSION["brackets"]) == shipped
    assert set(FIRST_VERSION["attachment"]) == set(PUNCTUATION_RULES)
    for metric, digests in FIRST_VERSION.items():
        assert {name: counts_digest(metric, name) for name in digests} == digests
        assert scorer_version(metric) == "own"


def test_without_the_kernels_the_scorer_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corpus, "_load_kernels", lambda: None)
    assert scorer_version("brackets") == "own"


def test_a_metric_that_is_counted_elsewhere() -> None:
    assert scorer_version("words") == "own"


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("_crossing", lambda found: found + 1),
        ("_matched", lambda found: max(0, found - 1)),
        ("_kept_by_gold", lambda found: [True for _ in found]),
        ("_quotes", lambda found: []),
        ("_same_words", lambda found: True),
    ],
)
def test_brackets_counted_otherwise(
    name: str, change: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = getattr(brackets, name)
    monkeypatch.setattr(corpus, "_load_kernels", lambda: None)
    monkeypatch.setattr(brackets, name, lambda *args: change(original(*args)))
    assert re.fullmatch(r"own\([0-9a-f]{8}\)", scorer_version("brackets"))
    assert scorer_version("attachment") == "own"


@pytest.mark.parametrize("name", PUNCTUATION_RULES)
def test_another_rule_for_punctuation(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rule = PunctuationRule(lambda word, tag: word == "The", PUNCTUATION_RULES[name].foreign_tags)
    monkeypatch.setitem(punctuation.PUNCTUATION_RULES, name, rule)
    assert scorer_version("attachment") != "own"
    assert scorer_version("brackets") == "own"


def test_a_new_column_or_parameter_set_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(punctuation.PUNCTUATION_RULES, "new", PUNCTUATION_RULES["unicode"])
    assert scorer_version("attachment") == "own"
    original = golden.score_dependencies

    def wider(*args: Any) -> Any:
        import numpy as np

        rows = original(*args).rows
        return type("Counts", (), {"rows": np.hstack([rows, rows[:, :1]])})

    monkeypatch.setattr(golden, "score_dependencies", wider)
    scorer_version.cache_clear()
    assert scorer_version("attachment") == "own"
