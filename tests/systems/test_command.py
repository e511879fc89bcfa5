"""Commands of systems end when they are to, and run with what is theirs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from spmrl_bench.errors import TrainingError
from spmrl_bench.process.signals import Interrupted, interrupt, on_signals
from spmrl_bench.storage.living import is_dead, process_start_time
from spmrl_bench.systems import command
from spmrl_bench.systems.command import run
from tests.builders import environment
from tests.conftest import PATIENCE

LOG = Path("log")
SLEEPER = "import os, time\nopen('pid', 'w').write(str(os.getpid()))\ntime.sleep(600)\n"


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sleeper.py").write_text(SLEEPER)


def sleeping() -> tuple[int, str]:
    """The process of ``sleeper.py``, when it is there."""
    deadline = time.monotonic() + PATIENCE
    marker = Path("pid")
    while not (marker.exists() and marker.read_text()):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    pid = int(marker.read_text())
    return pid, process_start_time(pid) or ""


def test_libraries_threads_output_and_cost(monkeypatch: pytest.MonkeyPatch) -> None:
    """A module of the name of one of ours, where ours are found, is not what it imports."""
    planted = Path("site-packages")
    planted.mkdir()
    (planted / "planted_library.py").write_text("ours = True")
    monkeypatch.setenv("PYTHONPATH", str(planted.absolute()))
    code = (
        "import importlib.util, os; x = b'x' * 50_000_000\n"
        "found = importlib.util.find_spec('planted_library')\n"
        "print(found, os.environ['OMP_NUM_THREADS'], 'ä')"
    )
    usage = run([sys.executable, "-c", code], LOG, threads=3)
    assert LOG.read_text(encoding="utf-8") == "None 3 ä\n"
    assert 2**25 < usage.peak_memory_bytes < 2**28
    assert not usage.out_of_time


def test_it_ends_when_its_time_is_over_by_force_if_need_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "GRACE", 0.2)
    deaf = "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    Path("sleeper.py").write_text(deaf + SLEEPER)
    usage = run([sys.executable, "sleeper.py"], LOG, threads=1, seconds=1)
    assert usage.out_of_time
    assert 1 <= usage.seconds < PATIENCE
    assert is_dead(*sleeping())


def test_it_ends_with_an_interrupt_and_with_the_program() -> None:
    threading.Timer(0.7, os.kill, (os.getpid(), signal.SIGTERM)).start()
    with on_signals(interrupt, signal.SIGTERM), pytest.raises(Interrupted):
        run([sys.executable, "sleeper.py"], LOG, threads=1)
    if Path("pid").exists():
        assert is_dead(*sleeping())
        Path("pid").unlink()
    code = (
        "import sys; from pathlib import Path; from spmrl_bench.systems.command import run\n"
        "run([sys.executable, 'sleeper.py'], Path('log'), threads=1)\n"
    )
    program = subprocess.Popen([sys.executable, "-c", code], env=environment())
    process = sleeping()
    program.kill()
    program.wait()
    deadline = time.monotonic() + PATIENCE
    while not is_dead(*process):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_one_that_fails_or_is_not_there() -> None:
    with pytest.raises(TrainingError, match="no-such-program: cannot be run: no such program"):
        run(["no-such-program"], LOG, threads=1)
    for code, said in (
        ("print('one\\ntwo\\nthree'); raise SystemExit(3)", r"(?s)with status 3.*two\n  three$"),
        ("import os; os.kill(os.getpid(), 9)", "was ended by signal 9"),
    ):
        with pytest.raises(TrainingError, match=said):
            run([sys.executable, "-c", code], LOG, threads=1)
