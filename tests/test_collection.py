"""The tests that exist: the same ones at any time and on any host."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[1]


def collected(**environment: str) -> list[str]:
    """Ids of all tests, those of the campaign too, as a process of its own finds them."""
    options = ["--collect-only", "-q", "-m", "", "--assert=plain", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options],
        cwd=CHECKOUT,
        env=os.environ | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return [line for line in done.stdout.splitlines() if "::" in line]


def test_ids_are_the_same_at_another_time_and_place() -> None:
    """Processes that run the tests together must agree on them.

    The second collection begins when the first has ended, so that each module is read seconds
    later: clocks of whole seconds, as in the headers of archives, have moved on.
    """
    ids = collected(PYTHONHASHSEED="1", TZ="UTC", HOSTNAME="one")
    assert len(ids) > 1000
    assert collected(PYTHONHASHSEED="2", TZ="Asia/Tokyo", HOSTNAME="two") == ids
