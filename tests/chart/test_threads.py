"""Threads change nothing but the time: not results, not errors, not whether a process ends."""

from __future__ import annotations

import os
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from spmrl_bench.chart import kernels
from spmrl_bench.chart.kernels import WORTH_A_TEAM, threads_for
from tests.conftest import PATIENCE
from tests.twins import needs

needs_compiled = needs("labels")


def kernel_with(openmp: int) -> Any:
    return SimpleNamespace(openmp_threads=lambda: openmp)


def test_who_gets_how_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """OpenMP's number, but one for little work, without OpenMP and in a forked process."""
    four, none, five = kernel_with(4), kernel_with(0), np.ones(5, np.int32)
    assert threads_for(four, None, five, WORTH_A_TEAM) == 4
    assert threads_for(four, 8, five, 1) == 5
    assert threads_for(four, None, five, WORTH_A_TEAM - 1) == 1
    for asked in (None, 8):
        assert threads_for(four, asked, five[:1], WORTH_A_TEAM) == 1
        assert threads_for(None, asked, five, WORTH_A_TEAM) == 1
    assert threads_for(none, None, five, WORTH_A_TEAM) == 1
    monkeypatch.setattr(kernels, "_forked", True)
    for asked in (None, 2):
        assert threads_for(four, asked, five, WORTH_A_TEAM) == 1


# Other processes, and torch in this one ---------------------------------------------------

SCRIPT = """\
import multiprocessing, os, sys
import numpy as np

LENGTHS = [3, 40, 17, 1, 28, 9] * 4

def decode(threads=None):
    from spmrl_bench.chart.spans import best_labels, decode_spans
    rng = np.random.default_rng(1)
    scores = rng.standard_normal((sum(n * (n + 1) // 2 for n in LENGTHS), 50), dtype=np.float32)
    decoded = decode_spans(*best_labels(scores), LENGTHS, threads=threads)
    return decoded.cells.tobytes() + decoded.labels.tobytes() + decoded.scores.tobytes()

def multiply():
    import torch
    torch.set_num_threads(2)
    square = torch.ones(600, 600)
    assert float((square @ square)[5, 7]) == 600

def follow():
    # The default follows torch where both use one library.
    import torch
    from spmrl_bench.chart import _spans
    libraries = set()
    for line in open("/proc/self/maps") if os.path.exists("/proc/self/maps") else ():
        name = line.rpartition("/")[2].strip()
        if name.startswith(("libgomp", "libomp", "libiomp")):
            libraries.add(line.split(maxsplit=5)[5].strip())
    found = []
    for number in (1, 3):
        torch.set_num_threads(number)
        found.append(_spans.openmp_threads())
    assert len(libraries) != 1 or found in ([1, 3], [0, 0]), found

def children(method):
    context = multiprocessing.get_context(method)
    with context.Pool(2) as pool:
        # A child that waits for ever is an error, not a test without an end.
        return pool.map_async(decode, [None, 2]).get(timeout=300)

if __name__ == "__main__":
    found = []
    for step in sys.argv[1:]:
        if step == "decode":
            found += [decode(2), decode()]
        elif step == "multiply":
            multiply()
        elif step == "follow":
            follow()
        else:
            found += children(step)
    assert found and set(found) == {decode(1)}
    print("done")
"""


def run_script(path: Any, *arguments: str) -> str:
    path.write_text(SCRIPT, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(path), *arguments],
        env={**os.environ, "OMP_NUM_THREADS": "2"},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@needs_compiled
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.parametrize(
    "steps",
    [
        ("multiply", "fork", "decode", "fork", "multiply", "decode", "spawn"),
        ("decode", "fork", "decode", "multiply", "fork", "decode", "multiply", "follow"),
    ],
    ids=["torch first", "kernel first"],
)
def test_torch_and_the_kernel_share_a_process(tmp_path: Any, steps: tuple[str, ...]) -> None:
    """GNU OpenMP hangs in a forked process whose parent had a team. The first children of the
    first case load the kernel after torch's team was forked."""
    assert run_script(tmp_path / "script.py", *steps) == "done"
