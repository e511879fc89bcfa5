"""Signals let imports end; processes that share a machine end, whatever looks after them does."""

from __future__ import annotations

import importlib
import os
import signal
import sys
import time
from multiprocessing import active_children
from pathlib import Path

import pytest

from spmrl_bench.process.pools import end_pool, worker_pool
from spmrl_bench.process.signals import INTERRUPTED, Interrupted, exit_status, interrupt, on_signals
from tests.builders import cli_process
from tests.conftest import PATIENCE

MODULE = """
import os, signal, time
os.kill(os.getpid(), signal.SIGTERM)
time.sleep(0.1)
done = True
"""


def test_an_import_is_finished_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "asks_to_stop.py").write_text(MODULE, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)

    def work() -> None:
        importlib.import_module("asks_to_stop")
        time.sleep(PATIENCE)

    with on_signals(interrupt, signal.SIGTERM), pytest.raises(Interrupted) as caught:
        work()
    assert sys.modules.pop("asks_to_stop").done
    assert exit_status(caught.value) == 143
    assert exit_status(KeyboardInterrupt()) == 130


def test_what_a_handler_belongs_to_is_not_written_out() -> None:
    class Training:
        asked = 0

        def __repr__(self) -> str:
            raise AssertionError("sentences and weights would be written out")

        def ask(self, number: int, frame: object) -> None:
            self.asked = number

    training = Training()
    with on_signals(training.ask, signal.SIGTERM):
        signal.raise_signal(signal.SIGTERM)
    assert training.asked == signal.SIGTERM


def python(code: str) -> tuple[int, str]:
    """How a program ends, and what it says."""
    ended = cli_process(code=code)
    return ended.returncode, ended.stdout + ended.stderr


def test_nothing_heavy_is_imported_before_the_handler_is_in_place() -> None:
    code = (
        "import sys, signal, spmrl_bench.entry as entry\n"
        "heavy = {'torch', 'numpy', 'typer', 'pydantic', 'rich', 'multiprocessing'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
        "import builtins\n"
        "real = builtins.__import__\n"
        "def imported(name, *rest, **more):\n"
        "    if name == 'spmrl_bench.cli':\n"
        "        signal.raise_signal(signal.SIGTERM)\n"
        "    return real(name, *rest, **more)\n"
        "builtins.__import__ = imported\n"
        "entry.main()\n"
    )
    assert python(code) == (143, f"{INTERRUPTED}\n")


def test_a_signal_when_a_command_has_ended_is_told() -> None:
    code = (
        "import os, signal, sys, time\n"
        "from spmrl_bench.cli.app import Commands\n"
        "plain = Commands.invoke\n"
        "def invoke(*arguments, **more):\n"
        "    plain(*arguments, **more)\n"
        "    os.kill(os.getpid(), signal.SIGTERM)\n"
        "    time.sleep(60)\n"
        "Commands.invoke = invoke\n"
        "from spmrl_bench.entry import main\n"
        "sys.argv = ['spmrl-bench', 'recipes', 'list']\n"
        "main()\n"
    )
    status, said = python(code)
    assert status == 143
    assert said.endswith(f"{INTERRUPTED}\n")


@pytest.mark.parametrize("stumbles", [False, True])
def test_no_process_of_a_pool_is_left(stumbles: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    before = active_children()
    pool = worker_pool(2, 1)
    assert pool.submit(abs, -1).result() == 1
    pool.submit(time.sleep, 600)
    started = set(active_children()) - set(before)
    assert len(started) == 2
    if stumbles:
        monkeypatch.setattr(type(pool), "shutdown", lambda self, **options: None)
    end_pool(pool, before)
    for process in started:  # of which joblib's thread may be about to note how it ended
        with pytest.raises(ProcessLookupError):
            os.kill(process.pid or 0, 0)


def test_workers_run_no_code_of_the_working_directory(tmp_path: Path) -> None:
    for name in ("joblib", "pickle", "random", "signal", "torch"):
        (tmp_path / f"{name}.py").write_text("open('ran', 'a').write(__name__)\n")
    code = (
        "import os, sys\n"
        "sys.path.remove('')\n"
        f"os.chdir({str(tmp_path)!r})\n"
        "from spmrl_bench.process.pools import interrupts_blocked, worker_pool\n"
        "with interrupts_blocked():\n"
        "    pool = worker_pool(1, 1)\n"
        "    assert pool.submit(os.getenv, 'PYTHONSAFEPATH', '').result() == ''\n"
        "pool.shutdown()\n"
    )
    assert python(code) == (0, "")
    assert not (tmp_path / "ran").exists()


def test_what_nohup_ignores_stays_ignored() -> None:
    code = (
        "import os, signal\n"
        "from spmrl_bench.process.signals import STOPPING, interrupt, on_signals\n"
        "signal.signal(signal.SIGHUP, signal.SIG_IGN)\n"
        "with on_signals(interrupt, *STOPPING):\n"
        "    os.kill(os.getpid(), signal.SIGHUP)\n"
    )
    assert python(code) == (0, "")


def test_names_that_were_not_cleaned_up_in_time_are_no_users_business() -> None:
    """As after an interrupt between the removal of a name and the note of it."""
    code = (
        "from spmrl_bench.process.pools import worker_pool\n"
        "from joblib.externals.loky.backend import resource_tracker\n"
        "pool = worker_pool(1, 1)\n"
        "assert pool.submit(abs, -3).result() == 3\n"
        "resource_tracker.register('/loky-0-removed', 'semlock')\n"
        "pool.shutdown(kill_workers=True)\n"
    )
    assert python(code) == (0, "")


def test_peak_memory_is_that_of_the_process_in_bytes() -> None:
    """Not that of the process which started it."""
    held = bytearray(1 << 28)  # a quarter of a gigabyte
    code = "from spmrl_bench.process.pools import peak_memory_bytes\nprint(peak_memory_bytes())"
    small, large = (int(python(extra + code)[1]) for extra in ("", "held = bytearray(1 << 28)\n"))
    del held
    assert large - small == pytest.approx(1 << 28, rel=0.1)
