"""What is made of what SLURM says, which is played by shell scripts here.

``test_kills.py`` has a real one, where there is one.
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from spmrl_bench.errors import SpmrlError
from spmrl_bench.process.executors import slurm
from spmrl_bench.process.executors.slurm import SlurmExecutor, SlurmSettings, do_unit
from spmrl_bench.process.executors.units import Outcome, Unit
from spmrl_bench.process.signals import on_signals
from spmrl_bench.storage.locks import lock_of, locked
from tests.builders import refused
from tests.process.executors.test_local import all_of
from tests.process.executors.work import diverge, note, refuse, stumble, tell_oneself


def test_units_end_in_their_own_ways(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And what an earlier try of the job left is not its answer."""
    for name, value in {"EXECUTOR": "local", "FOLDER": str(tmp_path), "LOCAL_JOB_ID": "7"}.items():
        monkeypatch.setenv(f"SUBMITIT_{name}", value)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    earlier = [tmp_path / "7_0_result.pkl", tmp_path / "7_0_result.pkl.save_tmp"]
    noted, told = str(tmp_path / "noted"), "its job was told to stop, or its time is almost over"
    with on_signals(signal.SIG_IGN, signal.SIGTERM, signal.SIGUSR2, signal.SIGCONT):  # type: ignore[arg-type]
        for function, argument, how, problem in (
            (note, noted, "done", "None"),
            (diverge, None, "failed", "diverged"),
            (refuse, None, "locked", "process 7 trains here"),
            (tell_oneself, signal.SIGTERM, "stopped", told),
            (tell_oneself, signal.SIGUSR2, "stopped", told),
        ):
            for path in earlier:
                path.touch()
            arguments = () if argument is None else (argument,)
            status, error = do_unit(pickle.dumps(Unit("a", function, arguments)), "cpu", 1)
            assert (status, str(error)) == (how, problem)
            assert not any(path.exists() for path in earlier)
        with pytest.raises(KeyError):  # of which submitit notes the traceback
            do_unit(pickle.dumps(Unit("a", stumble, ())), "cpu", 1)
    assert Path(noted).read_text(encoding="utf-8") == "cpu 1"


class Played(SlurmExecutor):
    """An executor on a SLURM that does what files say."""

    def __init__(self, place: Path, **settings: Any) -> None:
        self.place = place
        super().__init__(SlurmSettings(**settings), place / ".slurm")

    def begin(self, name: str = "a") -> None:
        """Hand over a unit that is never begun here."""
        self.start(Unit(name, note, (str(self.place / name),)))
        assert self.outcomes(0.0) == []

    def seen(self, *rows: str) -> list[Outcome]:
        """What has ended when ``squeue`` prints this."""
        (self.place / "queue").write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
        return self.outcomes(0.0)

    def answers(self, *answer: object) -> None:
        """What job 77 leaves as its result."""
        (folder,) = (self.place / ".slurm").iterdir()
        (folder / "77_0_result.pkl").write_bytes(pickle.dumps(("success", answer)))

    def calls(self, command: str) -> list[str]:
        lines = (self.place / "calls").read_text(encoding="utf-8").splitlines()
        return [line for line in lines if line.startswith(command)]

    def one(self) -> Outcome:
        """How the only unit has ended."""
        return all_of(self, 1).popitem()[1]


@pytest.fixture
def played(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a SLURM that says what ``queue`` holds, and ``refusal`` where there is one."""
    programs = tmp_path / "bin"
    programs.mkdir()
    taken = 'cp "$1" script; echo Submitted batch job 77'
    answers = {
        "squeue": "cat queue || exit 1",
        "sbatch": f"if [ -e refusal ]; then cat refusal >&2; exit 1; fi; {taken}",
        **dict.fromkeys(("scancel", "srun"), ":"),
    }
    for name, answer in answers.items():
        script = f'#!/bin/sh\ncd {tmp_path}\necho {name} "$@" >>calls\n{answer}\n'
        (programs / name).write_text(script, encoding="utf-8")
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    monkeypatch.setattr(SlurmExecutor, "interval", 0.0)
    monkeypatch.setattr(SlurmExecutor, "grace", 0.3)
    (tmp_path / "queue").touch()
    return tmp_path


@pytest.fixture
def executor(played: Path) -> Played:
    """One that has a unit in work."""
    executor = Played(played)
    executor.begin()
    return executor


def test_units_that_are_collected_are_one_array_and_the_queue_is_read_once(
    played: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    executor = Played(played, at_once=7, partition="fast", minutes=90, extra={"mail-type": "END"})
    for number in range(20):
        executor.start(Unit(str(number), note, ("",)))
    assert executor.outcomes(0.0) == []
    monkeypatch.setattr(executor, "interval", 60.0)
    for _ in range(5):
        assert executor.seen(*(f"77_{number}|RUNNING" for number in range(20))) == []
    assert len(executor.calls("sbatch")) == len(executor.calls("squeue")) == 1
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
        ("", "lost", "no longer listed, without a result; it has no log"),
        ("77|TIMEOUT", "lost", "TIMEOUT, without a result"),
        ("77|PREEMPTED", "stopped", "PREEMPTED, without a result"),
        ("77|CANCELLED", "lost", "CANCELLED, without a result"),
    ],
)
def test_a_job_that_is_over_without_a_result(
    executor: Played, row: str, how: str, problem: str
) -> None:
    assert executor.seen("77|RUNNING") == []
    assert executor.seen(*filter(None, [row])) == []  # a slow file system may have its result
    ended = executor.one()
    assert ended.status == how
    assert f"SLURM job 77 is {problem}" in str(ended.error)


def test_a_job_that_slurm_begins_again_or_that_makes_room_is_not_over(
    executor: Played, played: Path
) -> None:
    """And has the time for its result once more."""
    for state in ("RUNNING", "NODE_FAIL", "RUNNING"):
        assert executor.seen(f"77|{state}") == []
    time.sleep(SlurmExecutor.grace)
    assert executor.seen("77|COMPLETED") == []
    executor.answers("stopped", None)
    for state in ("COMPLETING", "PENDING", "RUNNING"):
        assert executor.seen(f"77|{state}") == []
    executor.answers("done", None)
    assert [each.status for each in executor.seen("77|COMPLETED")] == ["done"]
    assert list((played / ".slurm").iterdir()) == []


def test_what_another_process_has_in_work_is_not_handed_over(played: Path) -> None:
    executor = Played(played)
    executor.start(Unit("a", note, (), folder=played / "run"))
    with locked(lock_of(played / "run")):
        assert executor.one().status == "locked"
    assert not (played / "calls").exists()


def test_those_that_run_and_those_that_wait_are_asked_to_stop(executor: Played) -> None:
    executor.start(Unit("b", note, ("",)))
    executor.ask_to_stop()
    assert [each.unit.title for each in executor.seen("77|RUNNING")] == ["b"]
    told = [call.split()[2:] for call in executor.calls("scancel")]
    assert told == [["--state=PENDING", "77"], ["--state=RUNNING", "--signal=TERM", "77"]]
    assert [each.status for each in executor.seen("77|CANCELLED")] == ["stopped"]


def test_a_silent_controller_is_waited_for_but_not_for_ever(
    executor: Played, played: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (played / "queue").unlink()
    assert executor.outcomes(0.0) == []
    monkeypatch.setattr(slurm, "PATIENCE", 0.0)
    with pytest.raises(SpmrlError, match=r"SLURM has not answered .*give the same command again"):
        executor.outcomes(0.0)


def test_units_that_slurm_does_not_take_are_an_error_unless_others_are_in_work(
    executor: Played, played: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    said = "sbatch: error: invalid partition specified: fats\nsbatch: error: Batch job failed"
    (played / "refusal").write_text(said, encoding="utf-8")
    executor.begin("b")
    assert executor.seen("77|RUNNING") == []
    (played / "refusal").unlink()
    assert executor.seen("77|RUNNING") == []
    assert len(executor.calls("sbatch")) == 4  # and now the second was taken
    (played / "refusal").write_text(said, encoding="utf-8")
    other = Played(played, partition="fats")
    with pytest.raises(SpmrlError) as caught:
        other.begin()
    assert str(caught.value).startswith(
        "SLURM takes no jobs (invalid partition specified: fats; Batch job failed). Look at the "
        "settings of [slurm]: partition, account, "
    )
    assert capfd.readouterr() == ("", "")


def test_an_answer_of_somebody_else_is_not_read(
    executor: Played, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Since a pickle can do anything."""
    executor.answers("done", None)
    other = os.getuid() + 1
    monkeypatch.setattr(slurm.os, "getuid", lambda: other)
    ended = executor.one()
    assert ended.status == "failed"
    assert str(ended.error).endswith(": it belongs to somebody else")


def test_what_is_missing_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SpmrlError, match=r"no program 'sbatch' here: .* machine of SLURM"):
        SlurmExecutor(SlurmSettings(), tmp_path)
    monkeypatch.setitem(sys.modules, "submitit", None)
    assert refused("train", "german", "--on", "slurm", "--runs", str(tmp_path / "runs")) == (
        "this needs submitit: pip install 'spmrl-bench[slurm]'"
    )


def test_options_that_the_program_sets_are_refused() -> None:
    with pytest.raises(ValidationError, match="output: set by the program itself"):
        SlurmSettings(extra={"--output": "x"})


def test_a_card_is_used_where_one_is_asked_for(played: Path) -> None:
    for gpus, device, expected in ((0, "auto", "cpu"), (1, "auto", "cuda"), (1, "cpu", "cpu")):
        assert SlurmExecutor(SlurmSettings(gpus=gpus), played, device)._device == expected
