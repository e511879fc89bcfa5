"""Processes that share a machine end, whatever looks after them does, and without a word."""

from __future__ import annotations

import subprocess
import sys
import time
from multiprocessing import active_children

import pytest

from spmrl_bench.process.pools import end_pool, worker_pool


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
    assert not started & set(active_children())
    assert not any(process.is_alive() for process in started)


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
    ended = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert (ended.stdout, ended.stderr) == ("", "")


def test_peak_memory_is_that_of_the_process_in_bytes() -> None:
    """Not that of the process which started it."""
    held = bytearray(1 << 28)  # a quarter of a gigabyte
    code = "from spmrl_bench.process.pools import peak_memory_bytes\nprint(peak_memory_bytes())"
    small, large = (
        int(subprocess.check_output([sys.executable, "-c", extra + code]))
        for extra in ("", "held = bytearray(1 << 28)\n")
    )
    del held
    assert large - small == pytest.approx(1 << 28, rel=0.1)
