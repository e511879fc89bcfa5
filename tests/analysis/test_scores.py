"""Scores that are kept: found by what they follow from, and by nothing less."""

from __future__ import annotations

from pathlib import Path

import pytest

from spmrl_bench.analysis.scores import ScoreFile, limits_key
from spmrl_bench.errors import RecordError
from spmrl_bench.nn.limits import Limit
from tests.analysis.examples import score


def test_a_score_is_found_by_its_whole_key(tmp_path: Path) -> None:
    path = tmp_path / "some.json"
    limits = limits_key({3: Limit(window=5), 1: Limit(content=False)})
    assert [limit.layer for limit in limits] == [1, 3]
    kept = score(80.0, 1, limits=limits)
    ScoreFile(path).add(kept)
    again = ScoreFile(path)
    assert again.find(kept.key) == kept
    for other in (
        {"limits": ()},
        {"limits": limits_key({3: Limit(window=6), 1: Limit(content=False)})},
        {"limits": limits, "weights": "2"},
        {"limits": limits, "fingerprint": "g"},
        {"limits": limits, "prm": "q"},
        {"limits": limits, "split": "test"},
    ):
        assert again.find(score(80.0, 1, **other).key) is None


def test_scores_are_added_to_those_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "some.json"
    for seed in (1, 2):
        ScoreFile(path).add(score(None, seed))
    found = ScoreFile(path)
    assert all(found.find(score(None, seed).key) for seed in (1, 2))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"{", "not the scores of a study: the file: Invalid JSON"),
        (b'{"version": 1, "scores": [{}]}', "not the scores of a study: scores.0.key: Field req"),
        (b'{"version": 2, "scores": []}', "version 2; this program reads version 1"),
        (b"\xff", "cannot be read"),
    ],
)
def test_a_broken_file_is_named(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "some.json"
    path.write_bytes(content)
    with pytest.raises(RecordError) as caught:
        ScoreFile(path)
    assert str(caught.value).startswith(f"{path}: {message}")
    assert "\n" not in str(caught.value)


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "folder").write_text("not a folder")
    with pytest.raises(RecordError, match=r"some\.json: cannot be"):
        ScoreFile(tmp_path / "folder" / "some.json").add(score(1.0, 1))
