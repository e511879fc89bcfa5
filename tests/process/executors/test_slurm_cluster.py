"""Jobs of a real SLURM; ``tests/process/executors/slurm/start.sh`` sets one up on this machine."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from spmrl_bench.errors import SpmrlError
from spmrl_bench.process.executors.base import Unit
from spmrl_bench.process.executors.slurm import SlurmExecutor, SlurmSettings
from tests.process.executors.observing import ROOT, all_of, ask, needs_slurm, observe, queue, until
from tests.process.executors.work import (
    at_the_second_try,
    die,
    diverge,
    note,
    refuse,
    until_told,
    wait,
)

pytestmark = [
    pytest.mark.campaign,
    pytest.mark.xdist_group("slurm"),  # one after the other, for they look at the whole queue
]


@pytest.fixture(autouse=True)
def _hurried(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    needs_slurm()
    monkeypatch.setattr(SlurmExecutor, "interval", 0.5)
    monkeypatch.setattr(SlurmExecutor, "grace", 3.0)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.chdir(tmp_path)


def slurm(folder: Path, **settings: Any) -> SlurmExecutor:
    return SlurmExecutor(SlurmSettings(memory_gb=1, **settings), folder / ".slurm")


def held(tmp_path: Path, name: str) -> Unit:
    """A unit that ends when it is told."""
    paths = (str(tmp_path / f"{name}-begun"), str(tmp_path / "go"))
    return Unit(name, until_told, paths, folder=tmp_path / name)


def test_units_end_in_their_own_ways(tmp_path: Path) -> None:
    executor = slurm(tmp_path)
    for unit in (
        Unit("note", note, (str(tmp_path / "noted"),)),
        Unit("diverge", diverge, ()),
        Unit("refuse", refuse, ()),
        Unit("die", die, ()),
    ):
        executor.start(unit)
    found = all_of(executor, 4)
    executor.close()
    lost = found.pop("die")
    assert lost.status == "lost"
    assert "is FAILED, without a result; its log " in str(lost.error)
    assert "Killed" in str(lost.error)
    assert {title: (each.status, str(each.error)) for title, each in found.items()} == {
        "note": ("done", "None"),
        "diverge": ("failed", "diverged"),
        "refuse": ("locked", "process 7 trains here"),
    }
    assert (tmp_path / "noted").read_text(encoding="utf-8") == "cpu 1"
    until(lambda: not queue())


@pytest.mark.parametrize("way", ["told", "preempted", "out of time"])
def test_one_that_has_to_stop_is_to_be_started_again(tmp_path: Path, way: str) -> None:
    settings: dict[str, Any] = {
        "told": {},
        "preempted": {"partition": "scavenger", "cpus": os.cpu_count()},
        "out of time": {"minutes": 1},
    }[way]
    executor, begun = slurm(tmp_path, **settings), tmp_path / "begun"
    function = wait if way == "out of time" else at_the_second_try
    unit = Unit("a", function, (str(begun),))
    executor.start(unit)
    observe(executor, begun.exists)
    if way == "told":
        ask("scancel", "--signal=TERM", *queue("RUNNING"))
    elif way == "preempted":
        ask("sbatch", "--output=/dev/null", "--wrap=sleep 1", "--partition=normal", "--mem=100M")
    (ended,) = all_of(executor, 1).values()
    why = "came near its time limit" if way == "out of time" else "was told to stop"
    assert (ended.status, str(ended.error)) == ("stopped", f"its job {why}")
    if way != "out of time":
        executor.start(unit)
        assert all_of(executor, 1)["a"].status == "done"
    executor.close()


def test_one_that_slurm_itself_begins_again_is_waited_for(tmp_path: Path) -> None:
    executor, begun = slurm(tmp_path), tmp_path / "begun"
    executor.start(Unit("a", at_the_second_try, (str(begun),)))
    observe(executor, begun.exists)
    (job,) = queue("RUNNING")
    ask("scontrol", "requeue", job)
    submitted = next((tmp_path / ".slurm").glob(f"*/{job}_submitted.pkl"))
    # The result of the first try is not that of the unit.
    observe(executor, submitted.with_name(f"{job}_0_result.pkl").exists)
    observe(executor, lambda: job in queue("PENDING"))
    time.sleep(5)
    # SLURM waits for two minutes otherwise, until what ended the first try cannot hit another.
    ask("scontrol", "update", f"JobId={job}", "StartTime=now")
    assert all_of(executor, 1)["a"].status == "done"
    executor.close()


DRIVER = """
import sys
from pathlib import Path
from tests.process.executors.test_slurm_cluster import held, slurm
place = Path(sys.argv[1])
executor = slurm(place, at_once=1)
for name in "ab":
    executor.start(held(place, name))
while True:
    executor.outcomes(1.0)
"""


def test_jobs_of_a_driver_that_was_killed_go_on(tmp_path: Path) -> None:
    """Another one hands its own units over beside them."""
    driver = subprocess.Popen([sys.executable, "-c", DRIVER, str(tmp_path)])
    try:
        until((tmp_path / "a-begun").exists)
    finally:
        driver.kill()
        driver.wait()
    assert len(queue()) == 2
    executor = slurm(tmp_path)
    executor.start(held(tmp_path, "b"))
    observe(executor, lambda: len(queue()) == 3)
    (tmp_path / "go").touch()
    assert {each.status for each in all_of(executor, 1).values()} == {"done"}
    executor.close()
    until(lambda: not queue())


@pytest.mark.parametrize("way", ["ask", "close"])
def test_those_that_run_and_those_that_wait_stop_and_jobs_of_others_stay(
    tmp_path: Path, way: str
) -> None:
    command = ("sbatch", "--parsable", "--output=/dev/null", "--mem=100M", "--wrap=sleep 60")
    other = ask(*command).strip()
    try:
        executor = slurm(tmp_path, at_once=1)
        for name in "ab":
            executor.start(held(tmp_path, name))
        observe(executor, (tmp_path / "a-begun").exists)
        if way == "ask":
            executor.ask_to_stop()
            found = all_of(executor, 2)
            assert {each.status for each in found.values()} == {"stopped"}
            assert str(found["a"].error) == "its job was told to stop"
            assert str(found["b"].error).endswith("is CANCELLED before it began")
        executor.close()
        until(lambda: queue() == [other])
    finally:
        ask("scancel", other)
    until(lambda: not queue())


def test_what_slurm_does_not_take_is_one_error(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    executor = slurm(tmp_path, partition="nowhere")
    executor.start(held(tmp_path, "a"))
    with pytest.raises(SpmrlError, match=r"Invalid partition.*settings of \[slurm\]"):
        executor.outcomes(1.0)
    executor.close()
    assert capfd.readouterr() == ("", "")
    assert list((tmp_path / ".slurm").iterdir()) == []
