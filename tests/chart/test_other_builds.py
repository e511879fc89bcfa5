"""The kernel as other compilers would build it: without OpenMP, without vectors of their own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

COMPILER = """\
#!/bin/sh
for argument; do
  if [ "$argument" = -fopenmp ]; then echo "unknown option -fopenmp" >&2; exit 1; fi
done
exec {compiler} -U__SSE2__ "$@"
"""

CHECK = """\
import numpy as np
from spmrl_bench import chart
from spmrl_bench.chart.kernels import load_dependency_kernel, load_kernel
from tests.twins import assert_same_bits
from tests.chart import arcs, joint_charts
from tests.chart.charts import decode_on, random_batch

assert chart.__file__.startswith({root!r}), chart.__file__
assert chart.kernel_name() == "cython"
assert load_kernel().openmp_threads() == 0
for columns in (1, 7, 15, 16, 17, 40):
    for gold in (False, True):
        rng = np.random.default_rng(columns)
        batch = random_batch(rng, [1, 33, 2, 9, 18], columns, gold=gold, ties=True)
        for threads in (None, 1, 3):
            assert_same_bits(decode_on("cython", batch, threads), decode_on("python", batch))
assert load_dependency_kernel().name == "cython"
assert load_dependency_kernel().openmp_threads() == 0
for shape in ("integers", "floats", "nested"):
    lengths = [1, 33, 2, 9, 18]
    scores = arcs.random_batch(np.random.default_rng(1), lengths, shape)
    for projective in (False, True):
        expected = arcs.decode_on("python", scores, lengths, projective)
        for threads in (None, 1, 3):
            found = arcs.decode_on("cython", scores, lengths, projective, threads)
            arcs.assert_same_bits(found, expected)
for ties in (False, True):
    batch = joint_charts.random_batch(np.random.default_rng(1), [1, 33, 2, 9, 18], ties=ties)
    expected = joint_charts.decode_on("python", batch)
    for kernel in ("two lanes", "cython"):
        joint_charts.assert_same_bits(joint_charts.decode_on(kernel, batch), expected)
print("done")
"""


@pytest.mark.campaign
@pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc")
def test_without_openmp_and_without_sse(tmp_path: Path) -> None:
    kept_out = shutil.ignore_patterns("*.so", "__pycache__")
    for package in ("spmrl_bench", "tests"):
        shutil.copytree(ROOT / package, tmp_path / package, ignore=kept_out)
    for file in ("setup.py", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / file, tmp_path)
    compiler = tmp_path / "compiler"
    compiler.write_text(COMPILER.format(compiler=shutil.which("gcc")), encoding="ascii")
    compiler.chmod(0o755)
    environment = {**os.environ, "CC": str(compiler), "PYTHONPATH": str(tmp_path)}
    build = [sys.executable, "setup.py", "build_ext", "--inplace"]
    built = subprocess.run(
        build, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    )
    assert "no OpenMP here" in built.stdout
    code = CHECK.format(root=str(tmp_path))
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "done\n", done.stderr
