"""Scores that are kept: found by what they follow from, and by nothing less."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from spmrl_bench.analysis.definition import load_study, study_names
from spmrl_bench.analysis.scores import ScoreKey, readable_scores, write_score
from spmrl_bench.errors import RecordError
from spmrl_bench.nn.encoders.attention import AttentionMask
from tests.analysis.examples import result

SHIPPED = Path(__file__).resolve().parents[2] / "results" / "studies"


def key(**changes: Any) -> ScoreKey:
    whole = {"weights": "1", "fingerprint": "f", "split": "dev", "rules": "prm:p", "limits": ()}
    return ScoreKey(**(whole | changes))


def test_a_score_is_found_by_its_whole_key(tmp_path: Path) -> None:
    limits = ((1, AttentionMask(content=False)), (3, AttentionMask(window=5)))
    kept = key(limits=limits)
    write_score(kept, result(80.0, 1), tmp_path)
    found = readable_scores(tmp_path)[0]
    assert found == {kept: result(80.0, 1)}
    for other in (
        {"limits": ()},
        {"limits": ((1, AttentionMask(content=False)), (3, AttentionMask(window=6)))},
        {"limits": limits, "weights": "2"},
        {"limits": limits, "fingerprint": "g"},
        {"limits": limits, "rules": "prm:q"},
        {"limits": limits, "split": "test"},
    ):
        assert key(**other) not in found


def test_scores_are_added_to_those_that_are_there(tmp_path: Path) -> None:
    scores = {key(weights=str(seed)): result(seed / 10, seed) for seed in (1, 2, 3)}
    for one, its in scores.items():
        write_score(one, its, tmp_path / "some")
    assert readable_scores(tmp_path / "some")[0] == scores
    assert readable_scores(tmp_path / "absent")[0] == {}


# Files of version 1 ---------------------------------------------------------------------


def test_every_score_of_version_1_is_found_as_it_was_written() -> None:
    known, errors = readable_scores(SHIPPED)
    assert not errors
    scores = [
        score
        for path in SHIPPED.glob("*.json")
        for score in json.loads(path.read_text(encoding="utf-8"))["scores"]
    ]
    assert len(scores) == 85
    for score in scores:
        old = score["key"]
        limits = tuple(
            (
                one["layer"],
                AttentionMask(one["content"], one["position"], one["window"], one["relaxed"]),
            )
            for one in old["limits"]
        )
        found = known[
            ScoreKey(
                weights=old["weights"],
                fingerprint=old["fingerprint"],
                split="dev",
                rules=f"scorer:own|match:labelled|prm:{old['prm']}",
                limits=limits,
            )
        ]
        assert found.sentences == score["sentences"]
        for figure in ("recall", "precision", "f1", "complete_match", "skipped"):
            assert found.figure("brackets", figure) == score[figure]
        # Rows of several studies share their runs, whose settings are in the signature.
        theirs = found.metrics["brackets"].signature_long
        assert theirs.split("|settings")[0] == score["signature"].split("|settings")[0]


def test_the_tables_that_are_shipped_show_scores_that_are_shipped() -> None:
    results = readable_scores(SHIPPED)[0].values()
    for path in SHIPPED.glob("*.csv"):
        name = max((one for one in study_names() if path.stem.startswith(f"{one}-")), key=len)
        metric = load_study(name).metric
        scored = [one for one in results if set(metric.metrics) <= set(one.metrics)]
        known = {result.score(metric) for result in scored}
        with path.open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        shown = {
            float(cell)
            for row in rows
            for name, cell in row.items()
            if name.startswith("dev_") and "_seed" in name and cell
        }
        assert len(shown) >= len(rows)
        assert shown <= known


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"{", "not the scores of a study: "),
        (b'{"version": 1, "scores": [{}]}', "not the scores of a study: KeyError('key')"),
        (b'{"version": 2, "scores": []}', "not the scores of a study: ValueError('version 2 is"),
        (b"[]", "not the scores of a study: TypeError"),
        (b"\xff", "not the scores of a study: "),
    ],
)
def test_a_broken_file_is_named(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "some.json"
    path.write_bytes(content)
    _, (error,) = readable_scores(tmp_path)
    assert error.startswith(f"{path}: {message}")
    assert "\n" not in error


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "scores").write_text("not a folder")
    with pytest.raises(RecordError, match=r"scores.*cannot write the score of a study"):
        write_score(key(), result(1.0, 1), tmp_path)
