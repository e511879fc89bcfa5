"""Do the tests notice mistakes? Each of a list is planted in a copy of the program.

A claim of reliability is worth as much as the tests behind it, and these are worth what they
find. In the quick suite every mistake is only known to have its place in the program, so that the
list stays true; the campaign plants each and runs the quick tests that should notice it.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

from tests.builders import ROOT, environment, process
from tests.reliability.planted import BUGS, Bug
from tests.reliability.tally import Tally

pytestmark = pytest.mark.skipif(
    not (ROOT / "setup.py").is_file(), reason="the program's source is not there"
)


def test_every_mistake_has_its_place() -> None:
    for bug in BUGS:
        source = (ROOT / "spmrl_bench" / bug.file).read_text(encoding="utf-8")
        assert source.count(bug.right) == 1, bug.name
        for test in bug.tests.split():
            assert (ROOT / "tests" / test).exists(), bug.name
    assert len(BUGS) >= 30
    assert len({bug.name for bug in BUGS}) == len(BUGS)


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program with its compiled parts and its tests, to be changed."""
    folder = tmp_path_factory.mktemp("planted") / "program"
    ignore = shutil.ignore_patterns("__pycache__", "build", "runs", ".*", "*.egg-info")
    shutil.copytree(ROOT, folder, ignore=ignore)
    return folder


@pytest.mark.campaign
@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name.replace(" ", "-"))
def test_a_planted_mistake_is_noticed(bug: Bug, copy: Path, tally: Tally) -> None:
    held = tally("T1", "mistakes planted in the program")
    place = Path("spmrl_bench", bug.file)
    if place.suffix != ".pyx":
        # Without the mistake these tests pass, or their failure would say nothing. (Of kernels it
        # is known from the run of the tests themselves: each trial builds them anew.)
        assert _tests(copy, bug) == 0
    right = (ROOT / place).read_text(encoding="utf-8")
    (copy / place).write_text(right.replace(bug.right, bug.wrong), encoding="utf-8")
    try:
        if place.suffix == ".pyx":
            _build(copy, place)
        held.add()
        assert _tests(copy, bug) == 1, f"{bug.file}: nobody noticed that {bug.name}"
    finally:
        # With the times of the files, and what was compiled of them.
        for path in (ROOT / place.parent).glob(f"{place.stem}.*"):
            shutil.copy2(path, copy / place.parent)


def _build(copy: Path, place: Path) -> None:
    """Compile a kernel that was changed."""
    kernel = ".".join(place.relative_to("spmrl_bench").with_suffix("").parts)
    command = (sys.executable, "setup.py", "build_ext", "--inplace")
    built = process(*command, cwd=copy, env=os.environ | {"SPMRL_BENCH_KERNELS": kernel})
    assert built.returncode == 0, built.stderr


def _tests(copy: Path, bug: Bug) -> int:
    """Exit status of the quick tests of a mistake: 0 if all passed, 1 if one failed."""
    files = [f"tests/{name}" for name in bug.tests.split()]
    command = [sys.executable, "-B", "-m", "pytest", "-q", "-x", "-n0", "-p", "no:cacheprovider"]
    own = environment(PYTHONPATH=str(copy), OMP_NUM_THREADS="1")
    found = process(*command, *files, cwd=copy, env=own)
    assert found.returncode in (0, 1), found.stdout[-3000:] + found.stderr[-3000:]
    return found.returncode
