"""Threads change nothing but the time: not results, not errors, not whether a process ends."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from spmrl_bench import chart
from spmrl_bench.chart import kernels, packing, threads
from spmrl_bench.chart.kernels import Kernel
from spmrl_bench.chart.threads import WORTH_A_TEAM, default_threads, team_size
from tests.chart.charts import Batch, decode_on, random_batch
from tests.conftest import PATIENCE
from tests.twins import assert_same_bits, needs

needs_compiled = needs("labels")
augmented = pytest.mark.parametrize("gold", [False, True], ids=["plain", "augmented"])


@needs_compiled
@augmented
def test_any_number_of_threads_finds_the_labels_of_the_twin(gold: bool) -> None:
    batch = random_batch(np.random.default_rng(4), [2, 9, 1], 20, gold=gold, ties=True)

    def maxima(kernel: Kernel, team: int) -> tuple[bytes, bytes]:
        values, labels = np.empty(len(batch.scores)), np.empty(len(batch.scores), dtype=np.int32)
        assert kernel.label_maxima(batch.scores, batch.gold, values, labels, team)
        return values.tobytes(), labels.tobytes()

    from spmrl_bench.chart import _cky

    expected = maxima(kernels.PYTHON, 1)
    for team in (1, 2, 3, 1000):
        assert maxima(kernels.compiled(_cky), team) == expected


@needs_compiled
@pytest.mark.parametrize("team", [1, 2, 3])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("columns", [3, 40])
def test_scores_that_are_not_finite_are_found_everywhere(
    value: float, team: int, columns: int
) -> None:
    lengths = [4, 1, 9]
    cells = int(packing.cell_offsets(lengths)[-1])
    rng = np.random.default_rng(6)
    for cell, column in [(0, 0), (10, columns - 1), (cells - 1, columns // 2)]:
        scores = rng.standard_normal((cells, columns)).astype(np.float32)
        scores[cell, column] = value
        gold = rng.integers(0, columns + 1, cells)
        for targets in (None, gold):
            with pytest.raises(chart.NotFiniteError, match=rf"scores\[{cell}, {column}\]"):
                chart.decode(scores, lengths, targets, threads=team)


@needs_compiled
@pytest.mark.parametrize("columns", [3, 40])
def test_large_scores_are_not_taken_for_infinite_ones(columns: int) -> None:
    """Their sum overflows, as it does when one of them is infinite."""
    lengths = np.array([5, 2, 3], dtype=np.int32)
    scores = np.full((packing.cell_offsets(lengths)[-1], columns), np.finfo(np.float32).max)
    scores[::2] *= -1
    batch = Batch(scores, lengths, None)
    expected = decode_on("python", batch)
    for team in (1, 3):
        assert_same_bits(decode_on("cython", batch, team), expected)


# Who gets how many ------------------------------------------------------------------------


def kernel_with(openmp: int) -> Kernel:
    return kernels.PYTHON._replace(openmp_threads=lambda: openmp)


def test_default_is_what_openmp_says() -> None:
    assert default_threads(kernel_with(4)) == 4
    assert team_size(kernel_with(4), None, 5, WORTH_A_TEAM) == 4


def test_little_work_and_single_parts_are_not_shared() -> None:
    assert team_size(kernel_with(4), None, 5, WORTH_A_TEAM - 1) == 1
    for asked in (None, 8):
        assert team_size(kernel_with(4), asked, 1, WORTH_A_TEAM) == 1
    assert team_size(kernel_with(4), 8, 5, 1) == 5


def test_without_openmp_there_is_one_thread() -> None:
    assert default_threads(kernel_with(0)) == default_threads(kernels.PYTHON) == 1


def test_a_forked_process_starts_no_openmp_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "_forked", True)
    assert default_threads(kernel_with(4)) == 1
    for asked in (None, 2):
        assert team_size(kernel_with(4), asked, 5, WORTH_A_TEAM) == 1


# Other processes, and torch in this one ---------------------------------------------------

SCRIPT = """\
import multiprocessing, os, sys
import numpy as np

LENGTHS = [3, 40, 17, 1, 28, 9] * 4

def decode(threads=None):
    from spmrl_bench import chart
    rng = np.random.default_rng(1)
    scores = rng.standard_normal((sum(n * (n + 1) // 2 for n in LENGTHS), 50), dtype=np.float32)
    decoded = chart.decode(scores, LENGTHS, threads=threads)
    return decoded.cells.tobytes() + decoded.labels.tobytes() + decoded.scores.tobytes()

def multiply():
    import torch
    torch.set_num_threads(2)
    square = torch.ones(600, 600)
    assert float((square @ square)[5, 7]) == 600

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
        else:
            found += children(step)
    assert found and set(found) == {decode(1)}
    print("done")
"""


def run_script(path: Any, text: str, *arguments: str) -> str:
    path.write_text(text, encoding="utf-8")
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
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_children_of_a_process_that_decoded_can_decode(tmp_path: Any, method: str) -> None:
    """GNU OpenMP hangs in a forked process whose parent had a team."""
    if not hasattr(os, "fork") and method == "fork":
        pytest.skip("no fork here")
    assert run_script(tmp_path / "script.py", SCRIPT, "decode", method, "decode") == "done"


@needs_compiled
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.parametrize(
    "steps",
    [
        ("multiply", "fork", "decode", "fork", "multiply", "decode"),
        ("decode", "multiply", "fork", "decode", "multiply"),
    ],
    ids=["torch first", "kernel first"],
)
def test_torch_and_the_kernel_share_a_process(tmp_path: Any, steps: tuple[str, ...]) -> None:
    """The first children of the first case load the kernel after torch's team was forked."""
    assert run_script(tmp_path / "script.py", SCRIPT, *steps) == "done"


SETTING = """\
import torch
from spmrl_bench.chart import _cky

libraries = set()
for line in open("/proc/self/maps"):
    name = line.rpartition("/")[2].strip()
    if name.startswith(("libgomp", "libomp", "libiomp")):
        libraries.add(line.split(maxsplit=5)[5].strip())
torch.set_num_threads(1)
one = _cky.openmp_threads()
torch.set_num_threads(3)
print(len(libraries), one, _cky.openmp_threads())
"""


@needs_compiled
@pytest.mark.skipif(not os.path.exists("/proc/self/maps"), reason="libraries cannot be listed")
def test_the_default_follows_torch_where_both_use_one_library(tmp_path: Any) -> None:
    libraries, *found = run_script(tmp_path / "script.py", SETTING).split()
    if libraries != "1" or found == ["0", "0"]:
        pytest.skip("torch brings an OpenMP library of its own, or the kernel has none")
    assert found == ["1", "3"]
