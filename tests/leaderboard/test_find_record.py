"""Naming a record: by its file, by the beginning of its name, by its run folder."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

import pytest

from spmrl_bench.errors import CheckpointError, RecordError
from spmrl_bench.leaderboard.compare import find_record
from spmrl_bench.leaderboard.record import Record, write_record
from tests.builders import make_record

WEIGHTS = b"weights"
RECORD = make_record(weights=hashlib.sha256(WEIGHTS).hexdigest())


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of results, with the records of another run in it."""
    monkeypatch.chdir(tmp_path)
    for seed in (2, 3):
        keep(make_record(seed=seed))
    return Path("results")


def keep(record: Record) -> Path:
    return write_record(record, Path("results/runs"))


def make_run(weights: bytes = WEIGHTS) -> Path:
    best = Path("runs/german-mini/small-charlstm-seed1/best")
    best.mkdir(parents=True)
    (best / "weights.safetensors").write_bytes(weights)
    return best.parent


def test_a_record_is_found_by_file_and_by_name(results: Path) -> None:
    path = keep(RECORD)
    for wanted in (path, path.name, path.stem, path.stem[:6]):
        assert find_record(str(wanted), results) == RECORD


def test_a_run_folder_stands_for_the_newest_record_of_its_weights(results: Path) -> None:
    newer = RECORD.model_copy(update={"finished": datetime(2020, 5, 2, tzinfo=UTC)})
    for record in (newer, RECORD):
        keep(record)
    assert find_record(str(make_run()), results) == newer


def test_a_run_without_record_or_parser_says_so(results: Path) -> None:
    with pytest.raises(RecordError, match=r"seed1: no record of its best parser in results.runs"):
        find_record(str(make_run(b"other")), results)
    with pytest.raises(CheckpointError, match="results/best: no weights"):
        find_record("results", results)
    Path("results/best").mkdir()
    Path("results/best/weights.safetensors").write_bytes(WEIGHTS)
    Path("results/run.json").write_text('{"system": "udpipe"}')
    with pytest.raises(CheckpointError, match="results: the folder of a system; name it as the t"):
        find_record("results", results)


@pytest.mark.parametrize("wanted", [".json", "zzz", "runs/0", "gone/0123456789abcdef.json"])
def test_what_names_no_record_is_refused(results: Path, wanted: str) -> None:
    with pytest.raises(RecordError, match=f"^{wanted}: no record; expected the file of a record"):
        find_record(wanted, results)


def test_an_ambiguous_beginning_is_refused(results: Path) -> None:
    for seed in range(4, 24):  # more records than hexadecimal digits
        keep(make_record(seed=seed))
    names = sorted(path.stem for path in (results / "runs").glob("*.json"))
    digit = next(one[0] for one, other in pairwise(names) if one[0] == other[0])
    with pytest.raises(RecordError, match=f"^{digit}: begins the names of several records in"):
        find_record(digit, results)
