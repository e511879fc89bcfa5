"""Records: what may stand in one, and that a file is whole, unchanged and readable or refused."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from spmrl_bench.errors import RecordError, ScoreError
from spmrl_bench.leaderboard.documents import document_name
from spmrl_bench.leaderboard.record import SplitResult, read_record, read_records, write_record
from tests.builders import (
    HALF,
    PERFECT,
    make_record,
    make_result,
)


def test_written_record_reads_back_equal(tmp_path: Path) -> None:
    record = make_record()
    path = write_record(record, tmp_path / "results" / "runs")
    assert read_record(path) == record
    assert path.stem == hashlib.sha256(path.read_bytes()).hexdigest()[:16]
    assert write_record(record, path.parent) == path
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def changed_result(**changes: Any) -> dict[str, Any]:
    """The content of a result with a part of it, or of what its metric says, changed."""
    content = make_result(PERFECT, HALF).model_dump()
    scored = content["metrics"]["brackets"]
    for key, value in changes.items():
        place = scored["figures"] if key in scored["figures"] else scored
        if key == "counts":
            value = scored["counts"] | value
        (content if key in ("sentences", "extra") else place)[key] = value
    return content


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"f1": 99.0}, "f1 is 99.0, but the counts give 75.0"),
        ({"skipped": 1}, "skipped is 1, but the counts give 0"),
        ({"sentences": 3}, "has 2 entries for 3 sentences"),
        ({"counts": {"length": [3]}}, "has 1 entries for 2 sentences"),
        ({"counts": {"status": [0, 9]}}, "holds no bracket counts"),
        ({"recall": float("nan")}, "finite number"),
        ({"extra": 1}, "Extra inputs"),
    ],
)
def test_results_that_contradict_themselves_are_refused(
    changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValidationError, match=message):
        SplitResult.model_validate(changed_result(**changes))


def test_a_result_outlives_the_figures_and_columns_of_its_metric() -> None:
    stored = changed_result()
    scored = stored["metrics"]["brackets"]
    del scored["figures"]["tagging_accuracy"], scored["counts"]["matched_tags"]
    scored["figures"]["forgotten"] = 1.0
    result = SplitResult.model_validate(stored)
    assert result.figure("brackets", "forgotten") == 1.0
    with pytest.raises(ScoreError, match="missing: matched_tags"):
        result.counts("brackets")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"selected": False}, "did not select"),
        ({"test": None}, "baselines without test"),
        ({"ensemble": ["ab" * 32]}, "an ensemble of one member"),
    ],
)
def test_records_that_contradict_themselves_are_refused(
    changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValidationError, match=message):
        make_record(**changes)


def write_content(folder: Path, content: object) -> Path:
    data = json.dumps(content).encode()
    path = folder / document_name(data)
    path.write_bytes(data)
    return path


def test_all_problems_of_a_record_are_listed(tmp_path: Path) -> None:
    content = make_record().model_dump(mode="json") | {"seed": "one", "novelty": 1}
    del content["training"]["epochs"]
    with pytest.raises(RecordError) as caught:
        read_record(write_content(tmp_path, content))
    for place in ("seed:", "novelty:", "training.epochs:"):
        assert place in str(caught.value)


def test_folder_reads_oldest_first_and_names_every_wrong_file(tmp_path: Path) -> None:
    assert read_records(tmp_path / "absent") == []
    old, new = make_record(), make_record(finished="2021-01-01T00:00:00Z")
    for record in (new, old):
        write_record(record, tmp_path)
    (tmp_path / ".record-half.tmp").write_bytes(b"{")
    assert read_records(tmp_path) == [old, new]
    for name in ("a.json", "b.json"):
        (tmp_path / name).write_bytes(b"{")
    with pytest.raises(RecordError, match=r"(?s)a\.json: .*b\.json: "):
        read_records(tmp_path)
