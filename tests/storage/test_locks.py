"""A lock has one owner at a time, and an owner that is gone has no successor but one."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from spmrl_bench.process.signals import Interrupted, interrupt, on_signals
from spmrl_bench.storage import locks
from spmrl_bench.storage.locks import SILENCE, LockedError, holder, in_turn, lock_of, locked
from tests.builders import environment
from tests.conftest import PATIENCE, until

LOCK = lock_of(Path("run"))
OWNER = """
import sys, time
from pathlib import Path
from spmrl_bench.storage.locks import locked
with locked(Path(sys.argv[1])):
    print("mine", flush=True)
    time.sleep(600)
"""


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@contextlib.contextmanager
def another_owner() -> Iterator[subprocess.Popen[str]]:
    """A process that has the lock until it is killed, which leaves it behind."""
    command = [sys.executable, "-c", OWNER, str(LOCK)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment()) as process:
        assert process.stdout.readline() == "mine\n"
        try:
            yield process
        finally:
            process.kill()


@pytest.fixture(scope="module")
def lock_of_a_dead_process(tmp_path_factory: pytest.TempPathFactory) -> str:
    with contextlib.chdir(tmp_path_factory.mktemp("dead")), another_owner():
        return LOCK.read_text(encoding="utf-8")


@pytest.fixture
def left_behind(lock_of_a_dead_process: str) -> None:
    """The lock is there, and its owner is gone."""
    LOCK.write_text(lock_of_a_dead_process, encoding="utf-8")


def names() -> list[str]:
    return sorted(path.name for path in Path().iterdir())


def said() -> dict[str, Any]:
    return dict(json.loads(LOCK.read_text(encoding="utf-8")))


def change(**values: Any) -> None:
    """Change what the lock says."""
    LOCK.write_text(json.dumps(said() | values), encoding="utf-8")


def age(seconds: float) -> None:
    """Let the owner have given its last sign of life so long ago."""
    then = time.time() - seconds
    os.utime(LOCK, (then, then))


def take() -> None:
    """Have the lock for a moment, and leave nothing behind."""
    with locked(LOCK):
        assert holder(LOCK) is not None
        assert names() == [LOCK.name]
    assert names() == []


@pytest.mark.parametrize("end", [None, ValueError, KeyboardInterrupt])
def test_a_lock_is_held_until_the_end_however_it_comes(end: type[BaseException] | None) -> None:
    assert holder(LOCK) is None
    with contextlib.suppress(ValueError, KeyboardInterrupt), locked(LOCK):
        with pytest.raises(LockedError, match=rf"^{LOCK}: process {os.getpid()} on ") as caught:
            locked(LOCK).__enter__()
        assert holder(LOCK) == caught.value.owner
        with locked(lock_of(Path("other"))):  # which is another's business
            pass
        if end is not None:
            raise end
    take()


def test_each_in_its_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks, "_GLANCE", 0.01)
    inside: list[int] = []

    def work(number: int) -> int:
        with in_turn(LOCK):
            inside.append(number)
            time.sleep(0.02)
            found = len(inside)
            return found if inside.pop() == number else 0

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(work, range(8))) == [1] * 8


def test_the_death_of_an_owner_is_noticed() -> None:
    with another_owner() as other:
        with pytest.raises(LockedError, match=f"process {other.pid} on "):
            locked(LOCK).__enter__()
        other.kill()
        # It is gone even while its parent has not asked how it ended.
        os.waitid(os.P_PID, other.pid, os.WEXITED | os.WNOWAIT)
        assert holder(LOCK) is None
        text = LOCK.read_text(encoding="utf-8")
        take()
    LOCK.write_text(text, encoding="utf-8")
    change(pid=os.getpid())  # a number that came again: it lives, but did not start then
    take()


def test_the_owner_on_another_machine_is_gone_when_it_is_silent(left_behind: None) -> None:
    change(machine="elsewhere boot space", cancellable=True)  # as versions before said
    age(SILENCE - 60)
    with pytest.raises(LockedError, match=r"on elsewhere has it"):
        locked(LOCK).__enter__()
    age(SILENCE + 60)
    take()


def test_what_names_no_process_is_unreadable(
    left_behind: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It counts by its age alone, as one that was never written whole; nobody is signalled."""
    text, kill, asked = LOCK.read_text(encoding="utf-8"), os.kill, set[Any]()
    monkeypatch.setattr(os, "kill", lambda pid, number: asked.add(pid) or kill(pid, number))
    pids = (0, -1, 2**31, 10**30, True, 7.0, "7", None)
    for content in (*(json.dumps(said() | {"pid": pid}) for pid in pids), text[:20], ""):
        LOCK.write_text(content, encoding="utf-8")
        with pytest.raises(LockedError, match="process 0 on unknown has it"):
            locked(LOCK).__enter__()
    assert asked == {os.getpid()}
    age(SILENCE + 60)
    take()


def test_the_owner_gives_signs_of_life(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks, "BEAT", 0.01)
    with locked(LOCK):
        age(1000)
        until(lambda: time.time() - LOCK.stat().st_mtime < 500)


@pytest.mark.parametrize("taken", [True, False], ids=["taken", "taken and left"])
def test_the_owner_that_was_silent_too_long_ends(
    taken: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """And gives no sign of life for the one that has taken the lock since, or had it."""
    monkeypatch.setattr(locks, "BEAT", 0.1)

    def sleep() -> None:
        with locked(LOCK):
            other = Path("other")
            other.write_text(json.dumps(said() | {"token": "0123abcd"}), encoding="utf-8")
            os.utime(other, (0, 0))
            other.replace(LOCK)
            if not taken:
                LOCK.unlink()
            time.sleep(PATIENCE)

    with on_signals(interrupt, signal.SIGTERM), pytest.raises(Interrupted):
        sleep()
    assert f"{LOCK}: another process has taken it over" in capsys.readouterr().err
    if taken:
        assert said()["token"] == "0123abcd"
        assert LOCK.stat().st_mtime == 0


def test_of_two_that_find_a_lock_left_behind_one_wins(
    left_behind: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other takes it between a look at the lock and what follows from it."""
    alive, rival, holding = os.kill, locked(LOCK), []

    def overtaken(pid: int, number: int) -> None:
        if not holding:
            holding.append(rival)
            rival.__enter__()
        alive(pid, number)

    # Whether a process lives is asked once, after the lock was read.
    gone = said()["pid"]
    monkeypatch.setattr(os, "kill", lambda pid, n: (overtaken if pid == gone else alive)(pid, n))
    with pytest.raises(LockedError, match=rf"process {os.getpid()} on "):
        locked(LOCK).__enter__()
    assert holding
    assert names() == [LOCK.name]
    rival.__exit__(None, None, None)
    assert names() == []


def test_the_right_to_replace_a_lock_is_a_lock_too(left_behind: None) -> None:
    lock, claim = said(), LOCK.with_name(f"{LOCK.name}.{said()['token']}")
    with locked(lock_of(Path("other"))):
        claim.write_bytes(lock_of(Path("other")).read_bytes())
        with pytest.raises(LockedError, match=rf"process {os.getpid()} on "):
            locked(LOCK).__enter__()
    claim.write_text(json.dumps(lock | {"token": "0123abcd"}), encoding="utf-8")  # left behind
    take()
