"""The C programs EVALB and EVALB_SPMRL, for tests that ask them.

The environment variables ``EVALB`` and ``EVALB_SPMRL`` name the executable files, or the source
``evalb.c``. A program that is built here has its memory watched: where it would read beyond an
array, it ends with a report instead of a figure that depends on what lies there.
"""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

import pytest

from spmrl_bench.scoring import Program

WATCHED = ("-O1", "-g", "-w", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
PLAIN = ("-O1", "-w")


def program(name: Program) -> str:
    """Path of the executable; skips the test where there is none."""
    given = os.environ.get(name)
    if not given:
        pytest.skip(f"no {name} (set the environment variable {name} to its binary or source)")
    return _built(given) if given.endswith(".c") else given


@cache
def _built(source: str) -> str:
    compiler = next(filter(shutil.which, ("cc", "gcc", "clang")), None)
    if compiler is None:
        pytest.skip("no C compiler to build it with")
    folder = tempfile.mkdtemp(prefix="spmrl-bench-tests-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    binary = Path(folder) / "evalb"
    for options in (WATCHED, PLAIN):  # not every compiler comes with what watches memory
        command = [compiler, *options, "-o", str(binary), source, "-lm"]
        if subprocess.run(command, capture_output=True, check=False).returncode == 0:
            os.environ.setdefault("ASAN_OPTIONS", "detect_leaks=0")
            return str(binary)
    pytest.skip(f"{source} cannot be built")
