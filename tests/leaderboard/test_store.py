"""A store that many processes write to: nothing is lost, nothing torn, nothing seen half."""

from __future__ import annotations

from datetime import UTC, datetime
from multiprocessing import get_context
from multiprocessing.synchronize import Barrier
from pathlib import Path

import pytest

from spmrl_bench.leaderboard.record import (
    Hardware,
    MetricResult,
    Record,
    SplitResult,
    Training,
    TreebankInfo,
    read_records,
    write_record,
)

COMMON = -1
PATIENCE = 600.0  # seconds; the other processes start faster without what conftest imports
SENTENCES = 2000  # so that a file is larger than what is written at once


def record(process: int, number: int) -> Record:
    toy = MetricResult(
        counts={"words": [number] * SENTENCES}, figures={}, signature="", signature_long=""
    )
    dev = SplitResult(sentences=SENTENCES, metrics={"toy": toy})
    training = Training(epochs=1, updates=1, parameters=1, wall_seconds=1, tokens_per_second=1)
    hardware = Hardware(device="cpu", platform="", processor="", cpu_count=1, threads=1)
    return Record(
        finished=datetime(2020, 5, 1, tzinfo=UTC),
        lang="german",
        treebank=TreebankInfo(name="some", track="mini", language="german", fingerprints={}),
        variant=str(process),
        size="small",
        seed=number,
        selected=False,
        weights="",
        recipe={},
        dev=dev,
        training=training,
        hardware=hardware,
        versions={},
    )


def write(folder: Path, process: int, records: int, together: Barrier) -> None:
    """The work of one process; the last record is the same in all of them."""
    together.wait(PATIENCE)
    for number in range(records):
        write_record(record(process, number), folder)
    write_record(record(COMMON, 0), folder)


@pytest.mark.parametrize(
    ("processes", "records"), [(4, 25), pytest.param(64, 100, marks=pytest.mark.campaign)]
)
def test_processes_that_write_at_once_lose_nothing(
    tmp_path: Path, processes: int, records: int
) -> None:
    context = get_context("spawn")
    together = context.Barrier(processes + 1)
    writers = [
        context.Process(target=write, args=(tmp_path, process, records, together), daemon=True)
        for process in range(processes)
    ]
    for writer in writers:
        writer.start()
    together.wait(PATIENCE)
    seen: set[tuple[str, int]] = set()
    looks = 0
    while any(writer.is_alive() for writer in writers):
        # Raises where a record is not whole.
        found = {(one.variant, one.seed) for one in read_records(tmp_path)}
        assert seen <= found
        seen, looks = found, looks + 1
    assert [writer.exitcode for writer in writers] == [0] * processes
    expected = {(str(process), number) for process in range(processes) for number in range(records)}
    kept = [(one.variant, one.seed) for one in read_records(tmp_path)]
    assert len(kept) == processes * records + 1
    assert set(kept) == expected | {(str(COMMON), 0)}
    assert len(list(tmp_path.iterdir())) == len(kept)
    print(f"{processes} processes: {len(kept)} records, read {looks} times meanwhile")
