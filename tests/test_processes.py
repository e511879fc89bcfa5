"""Processes that share a machine: they end without a word of their own."""

from __future__ import annotations

import subprocess
import sys

CODE = """
from spmrl_bench.processes import worker_pool
from joblib.externals.loky.backend import resource_tracker

pool = worker_pool(1, 1)
assert pool.submit(abs, -3).result() == 3
# As after an interrupt between the removal of a name and the note of it.
resource_tracker.register("/loky-0-removed", "semlock")
pool.shutdown(kill_workers=True)
"""


def test_names_that_were_not_cleaned_up_in_time_are_no_users_business() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", CODE], check=True, capture_output=True, text=True, timeout=300
    )
    assert (ended.stdout, ended.stderr) == ("", "")
