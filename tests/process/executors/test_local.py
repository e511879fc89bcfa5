"""Processes of this machine: how each unit ends, and what is left of them."""

from __future__ import annotations

import os
import signal
from concurrent.futures import Future
from multiprocessing import active_children
from pathlib import Path
from typing import Any

import pytest

from spmrl_bench.process.executors import local
from spmrl_bench.process.executors.local import InProcess, LocalExecutor
from spmrl_bench.process.executors.units import Outcome, Unit, run_units
from spmrl_bench.process.signals import Interrupted
from tests.process.executors.observing import all_of, until, ways
from tests.process.executors.work import die, diverge, note, refuse, wait


def test_units_end_in_their_own_ways(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "9")
    executor = LocalExecutor(4, "cpu")
    units = [
        Unit("note", note, (str(tmp_path / "noted"),)),
        Unit("diverge", diverge, ()),
        Unit("refuse", refuse, ()),
        Unit("die", die, ()),
    ]
    assert [executor.start(unit) for unit in units] == [""] * 4
    found = all_of(executor, 4)
    executor.close()
    assert ways(found) == {
        "note": ("done", "None"),
        "diverge": ("failed", "diverged"),
        "refuse": ("locked", "process 7 trains here"),
        "die": (
            "lost",
            "its process was killed by SIGKILL "
            "(is there enough memory? Fewer --jobs or --workers need less)",
        ),
    }
    assert (tmp_path / "noted").read_text(encoding="utf-8") == "cpu 2"
    assert active_children() == []


@pytest.mark.parametrize("way", ["ask", "close"])
def test_units_in_work_can_be_asked_to_stop_or_ended(tmp_path: Path, way: str) -> None:
    executor = LocalExecutor(2, "cpu")
    begun = [tmp_path / "first", tmp_path / "second"]
    for path in begun:
        executor.start(Unit(path.name, wait, (str(path),)))
    until(lambda: all(path.exists() for path in begun))
    if way == "ask":
        executor.ask_to_stop()
        assert {each.status for each in all_of(executor, 2).values()} == {"stopped"}
    executor.close()
    assert active_children() == []


class Played:
    """A process that is nowhere, and has ended as soon as it is told to."""

    def __init__(self, unit: Unit, device: str, threads: int) -> None:
        self.unit, self.device = unit, device
        self.future: Future[None] = Future()

    def outcome(self) -> Outcome:
        return Outcome(self.unit, "done")


@pytest.mark.parametrize(
    ("device", "cards", "expected"),
    [
        ("auto", 2, ["cuda:0", "cuda:1", "cuda:0", "cuda:1"]),
        ("cuda", 3, ["cuda:0", "cuda:1", "cuda:2", "cuda:1"]),
        ("auto", 1, ["auto"] * 4),
        ("cuda:1", 2, ["cuda:1"] * 4),
    ],
)
def test_cards_take_turns_and_one_that_is_free_again_gets_the_next_unit(
    device: str, cards: int, expected: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local, "cards", lambda: cards)
    monkeypatch.setattr(local, "Job", Played)
    executor, unit = LocalExecutor(3, device), Unit("a", note, ())
    places = [executor.start(unit) for _ in range(3)]
    jobs: list[Any] = list(executor._jobs)
    jobs[1].future.set_result(None)
    assert len(executor.outcomes(0.0)) == 1
    places.append(executor.start(unit))
    assert [job.device for job in [*jobs, [*executor._jobs][-1]]] == expected
    assert places == ["" if device == each else f"on {each}" for each in expected]


def fail_or_note(path: str, number: int, *, device: str, console: object) -> None:
    with Path(path).open("a", encoding="utf-8") as file:
        file.write(f"{os.getpid()} {device} {console}\n")
    if number == 1:
        raise ValueError("a defect")
    if number == 2:
        signal.raise_signal(signal.SIGTERM)


def test_units_in_this_process_come_one_after_the_other(tmp_path: Path) -> None:
    """One that fails stops no other; a signal is that of the unit, and ends all."""
    path, log = tmp_path / "noted", list[str]()
    units = [Unit(str(k), fail_or_note, (str(path), k)) for k in range(4)]
    failed = run_units(units[:2], InProcess("cpu"), log=log.append)
    assert [(each.unit, str(each.error)) for each in failed] == [(units[1], "a defect")]
    assert log == ["1 of 2 done"]
    with pytest.raises(Interrupted) as caught:
        run_units(units[2:], InProcess("cpu"), log=log.append)
    assert caught.value.number == signal.SIGTERM
    assert path.read_text(encoding="utf-8") == f"{os.getpid()} cpu None\n" * 3
