"""A signal ends what goes on, but lets modules be imported to their end."""

from __future__ import annotations

import importlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from spmrl_bench.process.signals import INTERRUPTED, Interrupted, exit_status, interrupt, on_signals
from tests.conftest import PATIENCE

ROOT = Path(__file__).resolve().parents[2]
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


def python(code: str) -> tuple[int, str]:
    """How a program ends, and what it says."""
    ended = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
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
