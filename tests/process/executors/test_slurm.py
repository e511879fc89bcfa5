"""Jobs of submitit as processes of this machine, and what is made of what SLURM says.

SLURM is played by shell scripts here; ``test_slurm_cluster.py`` has a real one.
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
import time
from multiprocessing import active_children
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from spmrl_bench.errors import SpmrlError
from spmrl_bench.experiments.run_folder import run_lock
from spmrl_bench.process.executors import slurm, slurm_queue
from spmrl_bench.process.executors.base import Outcome, Unit
from spmrl_bench.process.executors.slurm import SlurmExecutor
from spmrl_bench.process.executors.slurm_job import Answer, Order, do_unit
from spmrl_bench.process.executors.slurm_queue import SlurmQueue
from spmrl_bench.process.executors.slurm_settings import SlurmSettings
from spmrl_bench.process.executors.slurm_submission import JobsRefusedError
from spmrl_bench.process.signals import on_signals
from spmrl_bench.storage.living import is_dead
from tests.conftest import PATIENCE
from tests.process.executors.observing import ROOT, all_of, observe
from tests.process.executors.work import Slow, die, diverge, note, refuse, stumble, until_told


@pytest.fixture(autouse=True)
def _this_checkout(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Jobs import what the tests do, and are begun in a folder of their own."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.chdir(tmp_path)


def local(folder: Path, **settings: Any) -> SlurmExecutor:
    return SlurmExecutor(SlurmSettings(cluster="local", **settings), folder / ".slurm")


def held(folder: Path, name: str) -> Unit:
    """A unit that ends when it is told, which it never is here."""
    return Unit(name, until_told, (str(folder / f"{name}-begun"), str(folder / "go")))


def one(executor: SlurmExecutor) -> Outcome:
    (ended,) = all_of(executor, 1).values()
    return ended


def test_units_end_in_their_own_ways(tmp_path: Path) -> None:
    executor = local(tmp_path, cpus=2)
    units = [
        Unit("note", note, (str(tmp_path / "noted"),)),
        Unit("diverge", diverge, ()),
        Unit("stumble", stumble, ()),
        Unit("refuse", refuse, ()),
        Unit("die", die, ()),
    ]
    for unit in units:
        executor.start(unit)
    found = all_of(executor, len(units))
    executor.close()
    lost = found.pop("die")
    assert lost.status == "lost"
    assert "ended and left no result; its log " in str(lost.error)
    assert {title: (each.status, str(each.error)) for title, each in found.items()} == {
        "note": ("done", "None"),
        "diverge": ("failed", "diverged"),
        "stumble": ("failed", "1"),
        "refuse": ("locked", "process 7 trains here"),
    }
    assert (tmp_path / "noted").read_text(encoding="utf-8") == "cpu 2"
    defect = found["stumble"].error
    assert isinstance(defect, KeyError)
    assert "in stumble" in defect.__notes__[0]
    # What was done is not kept, what failed is.
    left = {path.name.partition("_")[2] for path in (tmp_path / ".slurm").glob("*/*.err")}
    assert left == {"0_log.err"}
    assert len(list((tmp_path / ".slurm").glob("*/*.err"))) == 3


def children(pid: int) -> list[int]:
    return [*map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())]


@pytest.mark.parametrize("way", ["ask", "close"])
def test_units_in_work_can_be_asked_to_stop_or_ended(tmp_path: Path, way: str) -> None:
    before = set(children(os.getpid()))
    executor = local(tmp_path)
    for name in "ab":
        executor.start(held(tmp_path, name))
    observe(executor, lambda: all((tmp_path / f"{name}-begun").exists() for name in "ab"))
    watching = set(children(os.getpid())) - before
    doing = [child for pid in watching for child in children(pid)]
    assert len(doing) == 2
    if way == "ask":
        executor.ask_to_stop()
        found = all_of(executor, 2)
        ends = {(each.status, str(each.error)) for each in found.values()}
        assert ends == {("stopped", "its job was told to stop")}
    executor.close()
    until = time.monotonic() + PATIENCE
    while not all(is_dead(pid, "") for pid in doing):
        assert time.monotonic() < until
        time.sleep(0.02)
    assert active_children() == []


def test_one_that_is_asked_while_it_imports_what_it_needs_says_so(tmp_path: Path) -> None:
    executor, begun = local(tmp_path), tmp_path / "begun"
    executor.start(Unit("a", note, (Slow(str(begun)),)))
    observe(executor, begun.exists)
    executor.ask_to_stop()
    ended = one(executor)
    executor.close()
    assert (ended.status, str(ended.error)) == ("stopped", "its job was told to stop")


def test_what_an_earlier_try_of_a_job_left_is_not_its_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"EXECUTOR": "local", "FOLDER": str(tmp_path), "LOCAL_JOB_ID": "7"}.items():
        monkeypatch.setenv(f"SUBMITIT_{name}", value)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    earlier = [tmp_path / "7_0_result.pkl", tmp_path / "7_0_result.pkl.save_tmp"]
    for path in earlier:
        path.touch()
    unit = Unit("note", note, (str(tmp_path / "noted"),))
    with on_signals(signal.SIG_IGN, signal.SIGTERM, signal.SIGUSR2, signal.SIGCONT):  # type: ignore[arg-type]
        assert do_unit(Order("", "", pickle.dumps(unit), "cpu", 1)) == Answer("done")
    assert not any(path.exists() for path in earlier)
    assert (tmp_path / "noted").exists()


# A SLURM of shell scripts ---------------------------------------------------------------------


class Played(SlurmExecutor):
    """An executor on a SLURM that does what files say, and what it said."""

    def __init__(self, place: Path, **settings: Any) -> None:
        self.place, self.said = place, list[str]()
        super().__init__(SlurmSettings(**settings), place / ".slurm", say=self.said.append)

    def says(self, *rows: str) -> None:
        """What ``squeue`` prints."""
        (self.place / "queue").write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")

    def answers(self, job: str, *answer: object) -> None:
        """What a job leaves as its result."""
        (folder,) = (self.place / ".slurm").iterdir()
        (folder / f"{job}_0_result.pkl").write_bytes(pickle.dumps(("success", answer)))

    def calls(self, command: str) -> list[str]:
        lines = (self.place / "calls").read_text(encoding="utf-8").splitlines()
        return [line for line in lines if line.startswith(command)]


@pytest.fixture
def played(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a SLURM that says what ``queue`` holds, and ``refusal`` where there is one."""
    programs = tmp_path / "bin"
    programs.mkdir()
    answers = {
        "squeue": "cat queue || exit 1",
        "sbatch": (
            'if [ -e refusal ]; then cat refusal >&2; exit 1; fi; cp "$1" script; '
            "echo Submitted batch job 77"
        ),
        "scancel": ":",
        "srun": ":",
    }
    for name, answer in answers.items():
        script = f'#!/bin/sh\ncd {tmp_path}\necho {name} "$@" >>calls\n{answer}\n'
        (programs / name).write_text(script, encoding="utf-8")
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    monkeypatch.setattr(SlurmQueue, "interval", 0.0)
    (tmp_path / "queue").touch()
    return tmp_path


@pytest.fixture
def hasty(played: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same, where results are not waited for as long as they usually are."""
    monkeypatch.setattr(SlurmQueue, "grace", 0.3)
    return played


def test_units_that_are_collected_are_one_array_and_the_queue_is_read_once(
    played: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    executor = Played(played, at_once=7, partition="fast", minutes=90, extra={"mail-type": "END"})
    for number in range(20):
        executor.start(held(played, str(number)))
    executor.says(*(f"77_{number}|RUNNING|0:01|None" for number in range(20)))
    assert executor.outcomes(0.0) == []
    monkeypatch.setattr(executor._queue, "interval", 60.0)
    for _ in range(5):
        assert executor.outcomes(0.0) == []
    assert len(executor.calls("sbatch")) == 1
    assert len(executor.calls("squeue")) == 2  # before they were handed over, and after
    script = (played / "script").read_text(encoding="utf-8")
    for option in ("array=0-19%7", "partition=fast", "time=90", "mail-type=END", "mem=8192M"):
        assert f"#SBATCH --{option}\n" in script
    assert "#SBATCH --requeue\n" in script
    assert "--cpus-per-task=1 env OMP_NUM_THREADS=1 " in script
    executor.close()
    (call,) = executor.calls("scancel")
    assert call.split()[2:] == [f"77_{number}" for number in range(20)]


@pytest.mark.parametrize(
    ("row", "how", "problem"),
    [
        (None, "lost", "is no longer listed and left no result; it has no log"),
        ("TIMEOUT|10:00|None", "lost", "ran out of its time (minutes) and left no result"),
        ("NODE_FAIL|10:00|None", "lost", "lost its node and left no result"),
        ("PREEMPTED|10:00|None", "stopped", "made room for another and left no result"),
        ("CANCELLED|10:00|None", "lost", "was cancelled and left no result"),
    ],
)
def test_a_job_that_is_over_without_a_result(
    hasty: Path, row: str | None, how: str, problem: str
) -> None:
    executor = Played(hasty)
    executor.start(held(hasty, "a"))
    executor.says("77|RUNNING|0:01|None")
    assert executor.outcomes(0.1) == []
    executor.says(*([] if row is None else [f"77|{row}"]))
    begun = time.monotonic()
    ended = one(executor)
    assert (ended.status, f"SLURM job 77 {problem}" in str(ended.error)) == (how, True), ended.error
    assert time.monotonic() - begun >= SlurmQueue.grace  # a slow file system


def test_a_job_that_never_began_has_no_result_to_wait_for(played: Path) -> None:
    executor = Played(played)
    executor.start(held(played, "a"))
    executor.says("77|CANCELLED|0:00|None")
    begun = time.monotonic()
    ended = one(executor)
    assert time.monotonic() - begun < SlurmQueue.grace
    assert ended.status == "lost"
    assert "SLURM job 77 was cancelled before it began" in str(ended.error)


def test_a_result_that_is_late_is_waited_for(played: Path) -> None:
    executor = Played(played)
    executor.start(held(played, "a"))
    assert executor.outcomes(0.1) == []
    executor.answers("77", "done", None)
    assert one(executor).status == "done"


def test_a_job_that_slurm_begins_again_has_time_for_its_result_again(hasty: Path) -> None:
    executor = Played(hasty)
    executor.start(held(hasty, "a"))
    for state in ("RUNNING", "NODE_FAIL", "RUNNING"):
        executor.says(f"77|{state}|0:01|None")
        assert executor.outcomes(0.0) == []
    time.sleep(SlurmQueue.grace)
    executor.says("77|COMPLETED|0:01|None")
    assert executor.outcomes(0.0) == []
    executor.answers("77", "done", None)
    assert one(executor).status == "done"


def test_a_job_whose_end_another_driver_has_seen_is_not_lost(hasty: Path) -> None:
    executor = Played(hasty)
    executor.start(held(hasty, "a"))
    executor.says("77|RUNNING|0:01|None")
    assert executor.outcomes(0.1) == []
    executor.says("77|COMPLETED|0:01|None")
    next((hasty / ".slurm").glob("*/77_submitted.pkl")).unlink()
    ended = one(executor)
    problem = "SLURM job 77 has ended, as another call has seen"
    assert (ended.status, str(ended.error)) == ("stopped", problem)


def test_one_that_preemptible_is_not_over_before_slurm_says_so(played: Path) -> None:
    executor = Played(played)
    executor.start(held(played, "a"))
    assert executor.outcomes(0.0) == []
    executor.answers("77", "stopped", None)
    for state in ("COMPLETING", "PENDING", "RUNNING"):
        executor.says(f"77|{state}|0:00|BeginTime")
        assert executor.outcomes(0.0) == []
    executor.says("77|COMPLETED|0:01|None")
    assert one(executor).status == "stopped"


def test_closing_cancels_what_is_in_the_queue_though_its_unit_has_ended(played: Path) -> None:
    executor = Played(played)
    for name in "abc":
        executor.start(held(played, name))
    assert executor.outcomes(0.0) == []
    for job in ("77_0", "77_1"):
        executor.answers(job, "done", None)
    states = {"77_0": "COMPLETING", "77_1": "RUNNING", "77_2": "RUNNING"}
    executor.says(*(f"{job}|{state}|0:01|None" for job, state in states.items()))
    assert len(executor.outcomes(0.0)) == 2
    executor.says("77_0|COMPLETED|0:01|None", *(f"77_{k}|RUNNING|0:01|None" for k in (1, 2)))
    executor.close()
    (call,) = executor.calls("scancel")
    assert call.split()[-2:] == ["77_1", "77_2"]
    assert "77_0" not in call


def test_why_jobs_do_not_begin_is_said_once(played: Path) -> None:
    executor = Played(played)
    for name in "abc":
        executor.start(held(played, name))
    reasons = ["Resources", "launch failed requeued held", "PartitionConfig"]
    for shift in range(3):
        rows = zip("012", reasons[shift:] + reasons[:shift], strict=True)
        executor.says(*(f"77_{job}|PENDING|0:00|{reason}" for job, reason in rows))
        assert executor.outcomes(0.1) == []
    assert executor.said == [
        "b: SLURM job 77_1 waits, and maybe others: launch failed requeued held ('scontrol release "
        "77_1' lets it begin)",
        "c: SLURM job 77_2 waits, and maybe others: PartitionConfig (see 'man squeue')",
    ]


def test_what_another_process_has_in_work_is_not_handed_over(played: Path) -> None:
    executor, folder = Played(played), played / "run"
    executor.start(Unit("a", note, (), folder=folder))
    with run_lock(folder):
        ended = one(executor)
        assert (ended.status, f"process {os.getpid()} " in str(ended.error)) == ("locked", True)
    assert executor.calls("sbatch") == []


def test_a_silent_controller_is_waited_for_but_not_for_ever(
    hasty: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    executor = Played(hasty)
    executor.start(held(hasty, "a"))
    assert executor.outcomes(0.0) == []
    (hasty / "queue").unlink()
    assert executor.outcomes(0.5) == []  # longer than a job may be without a result
    executor.says("77|RUNNING|0:01|None")
    assert executor.outcomes(0.0) == []
    (hasty / "queue").unlink()
    monkeypatch.setattr(slurm_queue, "PATIENCE", 0.0)
    with pytest.raises(SpmrlError, match=r"SLURM has not answered .*give the same command again"):
        executor.outcomes(0.0)


def test_units_that_slurm_does_not_take_are_one_error(
    played: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    said = "sbatch: error: invalid partition specified: fats\nsbatch: error: Batch job failed"
    (played / "refusal").write_text(said, encoding="utf-8")
    executor = Played(played, partition="fats")
    executor.start(held(played, "a"))
    with pytest.raises(JobsRefusedError) as caught:
        executor.outcomes(0.0)
    assert str(caught.value).startswith(
        "SLURM takes no jobs (invalid partition specified: fats; Batch job failed). Look at the "
        "settings of [slurm]: partition, account, "
    )
    assert capfd.readouterr() == ("", "")
    assert list((played / ".slurm").iterdir()) == []


@pytest.mark.parametrize("taken", [True, False])
def test_units_are_handed_over_later_where_that_may_help(
    played: Path, taken: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slurm, "_AGAIN", 0.0)
    executor = Played(played)
    refusal = "sbatch: error: Unable to contact slurm controller"
    if taken:  # others are, so that this one may be when these have ended
        executor.start(held(played, "a"))
        executor.says("77|RUNNING|0:01|None")
        assert executor.outcomes(0.0) == []
        refusal = "sbatch: error: AssocMaxSubmitJobLimit"
    (played / "refusal").write_text(refusal, encoding="utf-8")
    executor.start(held(played, "b"))
    for _ in range(3):
        assert executor.outcomes(0.0) == []
    assert len(executor.said) == 1
    assert refusal.partition("error: ")[2] in executor.said[0]
    (played / "refusal").unlink()
    before = len(executor.calls("sbatch"))
    for _ in range(2):
        executor.outcomes(0.0)
    assert len(executor.calls("sbatch")) == before + 1


def test_what_is_missing_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setenv("PATH", str(tmp_path))
        with pytest.raises(SpmrlError, match=r"no program 'sbatch' here.* slurm:cluster=local"):
            SlurmExecutor(SlurmSettings(), tmp_path)
    monkeypatch.setitem(sys.modules, "submitit", None)
    with pytest.raises(SpmrlError, match=r"pip install 'spmrl-bench\[slurm\]'"):
        SlurmExecutor(SlurmSettings(), tmp_path)


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"gpus": 2}, "less than or equal to 1"),
        ({"minutes": 0}, "greater than or equal to 1"),
        ({"extra": {"output": "x"}}, "output: set by the program itself"),
        ({"extra": {"exclusive": False}}, "exclusive"),
        ({"nodes": 2}, "Extra inputs"),
    ],
)
def test_settings_that_cannot_be_are_refused(settings: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValidationError, match=problem):
        SlurmSettings.model_validate(settings)


def test_a_card_is_used_where_one_is_asked_for(played: Path) -> None:
    for settings, device, expected in (
        ({}, "auto", "cpu"),
        ({"gpus": 1}, "auto", "cuda"),
        ({"gpus": 1}, "cpu", "cpu"),
    ):
        place = SlurmSettings.model_validate(settings)
        assert SlurmExecutor(place, played, device)._device == expected
