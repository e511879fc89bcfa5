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

from spmrl_bench.process import signals as interrupts
from spmrl_bench.process.signals import (
    INTERRUPTED,
    Interrupted,
    exit_status,
    interrupt,
    on_signals,
)
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

    with on_signals(interrupt, signal.SIGTERM):
        with pytest.raises(Interrupted) as caught:
            work()
        time.sleep(3 * interrupts._AGAIN)  # it does not come again
    assert sys.modules.pop("asks_to_stop").done
    assert exit_status(caught.value) == 143
    assert exit_status(KeyboardInterrupt()) == 130


def python(code: str, *path: Path) -> tuple[int, str]:
    """How a program ends, and what it says."""
    ended = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(map(str, (ROOT, *path)))},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    return ended.returncode, ended.stdout + ended.stderr


def test_an_import_without_end_is_left_in_words(tmp_path: Path) -> None:
    (tmp_path / "endless.py").write_text("import time\ntime.sleep(600)\n", encoding="utf-8")
    code = (
        "import os, signal, threading\n"
        "from spmrl_bench.process import signals as interrupts\n"
        "interrupts.PATIENCE = 0.2\n"
        "signal.signal(signal.SIGINT, interrupts.interrupt)\n"
        "threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()\n"
        "import endless\n"
    )
    assert python(code, tmp_path) == (130, f"{INTERRUPTED}\n")


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


@pytest.mark.parametrize(
    ("number", "moment"), [(signal.SIGINT, "make_context"), (signal.SIGTERM, "invoke")]
)
def test_a_signal_while_the_command_line_is_read_is_told(number: int, moment: str) -> None:
    """Before a command has begun, or when it has ended."""
    code = (
        "import os, signal, sys, time\n"
        "from spmrl_bench.cli.app import _Commands\n"
        f"plain = _Commands.{moment}\n"
        f"def {moment}(*arguments, **more):\n"
        "    found = plain(*arguments, **more)\n"
        f"    os.kill(os.getpid(), {int(number)})\n"
        "    time.sleep(60)\n"
        "    return found\n"
        f"_Commands.{moment} = {moment}\n"
        "from spmrl_bench.entry import main\n"
        "sys.argv = ['spmrl-bench', 'recipes']\n"
        "main()\n"
    )
    status, said = python(code)
    assert status == 128 + number
    assert said.endswith(f"{INTERRUPTED}\n")
