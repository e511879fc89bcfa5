"""A store that many processes write to: nothing is lost, nothing torn, nothing seen half."""

from __future__ import annotations

from multiprocessing import get_context
from multiprocessing.synchronize import Barrier
from pathlib import Path

import pytest

from spmrl_bench.leaderboard.documents import files_of, read_document, write_document
from spmrl_bench.leaderboard.record import Record
from tests.builders import records_in
from tests.reliability.tally import Tally

COMMON = -1
PATIENCE = 600.0  # seconds; the other processes start faster without what conftest imports
GOLDEN = records_in(Path(__file__).parent / "golden")[0]  # larger than what is written at once


def record(process: int, number: int) -> Record:
    return GOLDEN.model_copy(update={"variant": str(process), "seed": number})


def write(folder: Path, process: int, records: int, together: Barrier) -> None:
    """The work of one process; each tenth record is one that all of them write."""
    together.wait(PATIENCE)
    for number in range(records):
        write_document(record(process, number), folder)
        if number % 10 == 0:
            write_document(record(COMMON, number), folder)


@pytest.mark.parametrize(
    ("processes", "records"), [(4, 100), pytest.param(64, 1000, marks=pytest.mark.campaign)]
)
def test_processes_that_write_at_once_lose_nothing(
    tmp_path: Path, processes: int, records: int, tally: Tally
) -> None:
    written = tally("R18", "records that processes write at once: none lost, torn or twice")
    looked = tally("R18", "records read while others are written: none seen in part")
    context = get_context("spawn")
    together = context.Barrier(processes + 1)
    writers = [
        context.Process(target=write, args=(tmp_path, process, records, together), daemon=True)
        for process in range(processes)
    ]
    for writer in writers:
        writer.start()
    together.wait(PATIENCE)
    seen: set[Path] = set()
    while any(writer.is_alive() for writer in writers):
        there = set(files_of(tmp_path, ".json"))
        assert seen <= there
        for path in there - seen:
            looked.add()
            read_document(Record, path)  # raises where a record is not whole
        seen = there
    assert [writer.exitcode for writer in writers] == [0] * processes
    expected = {(str(process), number) for process in range(processes) for number in range(records)}
    expected |= {(str(COMMON), number) for number in range(0, records, 10)}
    written.add(processes * records)
    kept = [(one.variant, one.seed) for one in records_in(tmp_path)]
    assert len(kept) == len(expected)
    assert set(kept) == expected
    assert len(list(tmp_path.iterdir())) == len(kept)
