"""The kernels' own tests, on kernels whose every read and write of memory is watched.

A copy of the checkout is built with the compiler's sanitizers (see setup.py), or so that every
index of an array is checked. A finding ends the program, and so the tests that it runs.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.builders import ROOT, process
from tests.conftest import PATIENCE
from tests.reliability.tally import Tally

GCC = shutil.which("gcc")

pytestmark = pytest.mark.skipif(
    GCC is None or sys.platform != "linux", reason="needs gcc and its sanitizers on Linux"
)

#: What is watched: the kernels of a folder, and tests that call all of their functions.
SUITES = {
    "chart": "tests/chart",
    "scoring": "tests/scoring/test_texts.py",
    "gates": "tests/reliability/test_kernel_gates.py",
    "nn": "tests/nn/kernels",
}
#: Of those, thousands of cases of the same; a few of each kind are enough to be watched.
FEWER = ["-k", "not every_shape"]

#: A kernel that writes behind the end of its room if asked for enough, and shifts too far.
PLANTED = """
from libc.stdlib cimport free, malloc

def counted(int count):
    cdef int* room = <int*>malloc(512 * sizeof(int))
    cdef int i
    for i in range(count):
        room[i] = i
    i = room[count - 1]
    free(room)
    return i + 1

def shifted(int by):
    return 1 << by
"""


def library(name: str) -> str:
    """The path of a library of the compiler."""
    asked = [str(GCC), f"-print-file-name={name}"]
    found = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
    if not Path(found).is_absolute():
        pytest.skip(f"gcc has no {name}")
    return found


def build(folder: Path, switches: Mapping[str, str]) -> None:
    """Compile the kernels of a copy of the checkout in place."""
    command = (sys.executable, "setup.py", "build_ext", "--inplace")
    built = process(*command, cwd=folder, env=os.environ | switches, timeout=3 * PATIENCE)
    assert built.returncode == 0, built.stderr[-4000:]


def run(folder: Path, arguments: list[str], *, watched: bool) -> subprocess.CompletedProcess[str]:
    """Python in a copy of the checkout, with the sanitizers' libraries or without."""
    paths = os.pathsep.join(map(str, (folder, ROOT)))  # in the copy, or beside it
    environment = os.environ | {"PYTHONPATH": paths, "OMP_NUM_THREADS": "2"}
    if watched:
        # What throws exceptions of C++ must be known before the sanitizer looks for it.
        environment["LD_PRELOAD"] = f"{library('libasan.so')} {library('libstdc++.so')}"
        environment["ASAN_OPTIONS"] = "detect_leaks=0"  # Python keeps memory on purpose
        environment["UBSAN_OPTIONS"] = "print_stacktrace=1"
    command = (sys.executable, "-P", *arguments)
    return process(*command, cwd=folder, env=environment, timeout=3 * PATIENCE)


@pytest.fixture(scope="session")
def checkouts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Copies of the checkout by the switch that they were built with; built when asked for."""
    return {"": tmp_path_factory.mktemp("checkouts")}


def checkout(checkouts: dict[str, Path], switch: str, value: str) -> Path:
    """A copy of the checkout whose kernels were built with a switch."""
    if switch not in checkouts:
        folder = checkouts[""] / switch
        folder.mkdir()
        kept_out = shutil.ignore_patterns("*.so", "*.c", "__pycache__", "results", "runs", "build")
        for part in ("spmrl_bench", "tests", "evalb", "treebanks", "recipes", "published"):
            shutil.copytree(ROOT / part, folder / part, ignore=kept_out)
        for file in ("setup.py", "pyproject.toml", "README.md", "LICENSE"):
            shutil.copy(ROOT / file, folder)
        build(folder, {switch: value})
        checkouts[switch] = folder
    return checkouts[switch]


def passed(done: subprocess.CompletedProcess[str]) -> int:
    """How many tests passed, if all did and nothing was found."""
    assert done.returncode == 0, (done.stdout + done.stderr)[-6000:]
    assert "Sanitizer" not in done.stderr
    assert "runtime error" not in done.stderr
    return int(re.findall(r"(\d+) passed", done.stdout)[-1])


BUILDS = [("SPMRL_BENCH_SANITIZE", "address,undefined"), ("SPMRL_BENCH_BOUNDS_CHECKS", "1")]


@pytest.mark.campaign
@pytest.mark.parametrize(("switch", "value"), BUILDS, ids=["sanitizers", "bounds"])
@pytest.mark.parametrize("suite", SUITES)
def test_kernels_touch_their_own_memory_alone(
    checkouts: dict[str, Path], suite: str, switch: str, value: str, tally: Tally
) -> None:
    held = tally("R9", f"tests of kernels built with {switch}")
    folder = checkout(checkouts, switch, value)
    watched = switch == "SPMRL_BENCH_SANITIZE"
    code = "import spmrl_bench.chart._spans as kernel; print(kernel.__file__)"
    done = run(folder, ["-c", code], watched=watched)
    assert str(folder) in done.stdout, done.stderr
    options = ["-m", "pytest", "-q", "-n0", "-p", "no:randomly", "-p", "no:cacheprovider", *FEWER]
    held.add(passed(run(folder, [*options, *SUITES[suite].split()], watched=watched)))


@pytest.mark.parametrize(
    ("call", "finding"),
    [
        ("planted.counted(9)", None),
        ("planted.counted(900)", "heap-buffer-overflow|insufficient space for an object"),
        ("planted.shifted(3)", None),
        ("planted.shifted(40)", "shift exponent 40 is too large"),
    ],
)
def test_what_is_planted_is_found(
    planted: Path, call: str, finding: str | None, tally: Tally
) -> None:
    tally("R9", "mistakes planted into kernels, for the sanitizers to find").add(bool(finding))
    done = run(planted, ["-c", f"import planted; print({call})"], watched=True)
    if finding is None:
        assert done.returncode == 0, done.stderr
        assert done.stdout.strip() in ("9", "8")
    else:
        assert done.returncode != 0
        assert re.search(finding, done.stderr), done.stderr


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A kernel with mistakes, built by the setup.py of the checkout."""
    pytest.importorskip("Cython")
    library("libasan.so")
    folder = tmp_path_factory.mktemp("planted")
    (folder / "planted.pyx").write_text(PLANTED, encoding="utf-8")
    setup = (ROOT / "setup.py").read_text(encoding="utf-8")
    own = 'ext_modules=[Extension("planted", ["planted.pyx"])],\n)\n'
    shortened = re.sub(r"ext_modules=\[.*\Z", lambda _: own, setup, flags=re.DOTALL)
    assert own in shortened
    (folder / "setup.py").write_text(shortened, encoding="utf-8")
    build(folder, {"SPMRL_BENCH_SANITIZE": "address,undefined"})
    return folder
