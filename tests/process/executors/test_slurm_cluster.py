"""Jobs of a real SLURM; ``tests/process/executors/slurm/start.sh`` sets one up on this machine."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from spmrl_bench.errors import SpmrlError
from spmrl_bench.experiments.plan import make_runs
from spmrl_bench.experiments.train import train_all
from spmrl_bench.process.executors.base import Unit, run_units
from spmrl_bench.process.executors.slurm import SlurmExecutor, SlurmSettings
from tests.conftest import PATIENCE
from tests.laboratory import Laboratory
from tests.process.executors.observing import ROOT, all_of, ask, needs_slurm, observe, queue
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


class Slurm(SlurmExecutor):
    """One that notes what it says."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        self.said: list[str] = []
        place = folder / ".slurm"
        super().__init__(SlurmSettings(memory_gb=1, **settings), place, log=self.said.append)


def wait_for_an_empty_queue() -> None:
    until = time.monotonic() + PATIENCE
    while queue():
        assert time.monotonic() < until
        time.sleep(0.2)


def held(tmp_path: Path, name: str) -> Unit:
    """A unit that ends when it is told."""
    paths = (str(tmp_path / f"{name}-begun"), str(tmp_path / "go"))
    return Unit(name, until_told, paths, folder=tmp_path / name)


def test_units_end_in_their_own_ways(tmp_path: Path) -> None:
    executor = Slurm(tmp_path)
    units = [
        Unit("note", note, (str(tmp_path / "noted"),)),
        Unit("diverge", diverge, ()),
        Unit("refuse", refuse, ()),
        Unit("die", die, ()),
    ]
    for unit in units:
        executor.start(unit)
    found = all_of(executor, len(units))
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
    wait_for_an_empty_queue()


def test_one_that_is_told_to_stop_is_to_be_started_again(tmp_path: Path) -> None:
    executor, begun = Slurm(tmp_path), tmp_path / "begun"
    unit = Unit("a", at_the_second_try, (str(begun),))
    executor.start(unit)
    observe(executor, begun.exists)
    ask("scancel", "--signal=TERM", *queue("RUNNING"))
    (ended,) = all_of(executor, 1).values()
    assert (ended.status, str(ended.error)) == ("stopped", "its job was told to stop")
    executor.start(unit)
    assert all_of(executor, 1)["a"].status == "done"
    executor.close()


def test_one_whose_time_is_over_is_to_be_started_again(tmp_path: Path) -> None:
    executor, begun = Slurm(tmp_path, minutes=1), tmp_path / "begun"
    executor.start(Unit("a", wait, (str(begun),)))
    (ended,) = all_of(executor, 1).values()
    executor.close()
    assert (ended.status, str(ended.error)) == ("stopped", "its job came near its time limit")


def begin_again_now(job: str) -> None:
    """SLURM waits for two minutes otherwise, until what ended the first try cannot hit another."""
    until = time.monotonic() + PATIENCE
    while job not in queue("PENDING"):
        assert time.monotonic() < until
        time.sleep(0.2)
    time.sleep(5)
    ask("scontrol", "update", f"JobId={job}", "StartTime=now")


def test_one_that_slurm_itself_begins_again_is_waited_for(tmp_path: Path) -> None:
    executor, begun = Slurm(tmp_path), tmp_path / "begun"
    executor.start(Unit("a", at_the_second_try, (str(begun),)))
    observe(executor, begun.exists)
    (job,) = queue("RUNNING")
    ask("scontrol", "requeue", job)
    result = next((tmp_path / ".slurm").glob(f"*/{job}_submitted.pkl")).with_name(
        f"{job}_0_result.pkl"
    )
    observe(executor, result.exists)  # of the first try, which is not that of the unit
    observe(executor, lambda: job in queue("PENDING"))
    begin_again_now(job)
    assert all_of(executor, 1)["a"].status == "done"
    executor.close()


def test_one_that_makes_room_for_another_is_to_be_started_again(tmp_path: Path) -> None:
    executor = Slurm(tmp_path, partition="scavenger", cpus=os.cpu_count())
    begun = tmp_path / "begun"
    unit = Unit("a", at_the_second_try, (str(begun),))
    executor.start(unit)
    observe(executor, begun.exists)
    ask("sbatch", "--output=/dev/null", "--wrap=sleep 1", "--partition=normal", "--mem=100M")
    (ended,) = all_of(executor, 1).values()
    assert (ended.status, str(ended.error)) == ("stopped", "its job was told to stop")
    executor.start(unit)
    assert all_of(executor, 1)["a"].status == "done"
    executor.close()


DRIVER = """
import sys
from pathlib import Path
from tests.process.executors.test_slurm_cluster import Slurm, held
place = Path(sys.argv[1])
executor = Slurm(place, at_once=1)
for name in "ab":
    executor.start(held(place, name))
while True:
    executor.outcomes(1.0)
"""


def test_jobs_of_a_driver_that_was_killed_go_on(tmp_path: Path) -> None:
    """Another one hands its own units over beside them."""
    driver = subprocess.Popen([sys.executable, "-c", DRIVER, str(tmp_path)])
    try:
        until = time.monotonic() + PATIENCE
        while not (tmp_path / "a-begun").exists():
            assert time.monotonic() < until
            time.sleep(0.1)
    finally:
        driver.kill()
        driver.wait()
    assert len(queue()) == 2
    executor = Slurm(tmp_path)
    executor.start(held(tmp_path, "b"))
    observe(executor, lambda: len(queue()) == 3)
    (tmp_path / "go").touch()
    assert {each.status for each in all_of(executor, 1).values()} == {"done"}
    executor.close()
    wait_for_an_empty_queue()


def test_those_that_run_and_those_that_wait_can_be_asked_to_stop(tmp_path: Path) -> None:
    executor = Slurm(tmp_path, at_once=1)
    for name in "ab":
        executor.start(held(tmp_path, name))
    observe(executor, (tmp_path / "a-begun").exists)
    executor.ask_to_stop()
    executor.start(held(tmp_path, "c"))
    found = all_of(executor, 3)
    executor.close()
    assert {each.status for each in found.values()} == {"stopped"}
    assert str(found["a"].error) == "its job was told to stop"
    assert str(found["b"].error).endswith("is CANCELLED before it began")
    wait_for_an_empty_queue()


def test_closing_leaves_nothing_in_the_queue_but_the_jobs_of_others(tmp_path: Path) -> None:
    command = ("sbatch", "--parsable", "--output=/dev/null", "--mem=100M", "--wrap=sleep 60")
    other = ask(*command).strip()
    try:
        executor = Slurm(tmp_path, at_once=1)
        for name in "ab":
            executor.start(held(tmp_path, name))
        observe(executor, (tmp_path / "a-begun").exists)
        executor.close()
        until = time.monotonic() + PATIENCE
        while queue() != [other]:
            assert time.monotonic() < until
            time.sleep(0.2)
    finally:
        ask("scancel", other)
    wait_for_an_empty_queue()


def test_what_slurm_does_not_take_is_one_error(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    executor = Slurm(tmp_path, partition="nowhere")
    executor.start(held(tmp_path, "a"))
    with pytest.raises(SpmrlError, match=r"Invalid partition.*settings of \[slurm\]"):
        executor.outcomes(1.0)
    executor.close()
    assert capfd.readouterr() == ("", "")
    assert list((tmp_path / ".slurm").iterdir()) == []


def test_runs_that_were_told_to_stop_give_the_weights_that_they_give_on_this_machine(
    laboratory: Laboratory, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    longer = {"train.max_epochs": "40", "train.stop_patience": "100"}
    there, here = tmp_path / "there", tmp_path / "here"
    runs = make_runs(
        str(laboratory.recipe),
        treebank="tiny-open",
        variants=["charlstm"],
        seeds=[1, 2],
        settings=longer,
        runs_dir=there,
    )

    def tell_both() -> None:
        for run in runs:
            events = run.folder / "events.jsonl"
            until = time.monotonic() + PATIENCE
            while not events.exists() or '"evaluation"' not in events.read_text(encoding="utf-8"):
                assert time.monotonic() < until
                time.sleep(0.05)
        ask("scancel", "--state=RUNNING", "--signal=TERM", "--me")

    telling = threading.Thread(target=tell_both)
    telling.start()
    said: list[str] = []
    units = [Unit(run.title, run.train, (None,), run.folder) for run in runs]
    assert run_units(units, Slurm(there, minutes=30), log=said.append) == []
    telling.join()
    assert any(line.endswith("its job was told to stop; it is started again") for line in said)
    monkeypatch.setenv("OMP_NUM_THREADS", "2")  # of both runs together
    others = [replace(run, folder=here / run.folder.relative_to(there)) for run in runs]
    train_all(others, jobs=2)
    for run in runs:
        weights = run.folder / "best" / "weights.safetensors"
        assert weights.read_bytes() == (here / weights.relative_to(there)).read_bytes()
    assert list((there / ".slurm").iterdir()) == []
