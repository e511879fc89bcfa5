"""What make passes on, and that it ignores nothing that is given to it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.conftest import PATIENCE

ROOT = Path(__file__).resolve().parents[1]

pytestmark = pytest.mark.skipif(
    shutil.which("make") is None or not (ROOT / "Makefile").exists(),
    reason="no make, or no checkout",
)


def make(*arguments: str) -> tuple[int, str, str]:
    """Status, last line that would be run, and what is said."""
    found = subprocess.run(
        ["make", "--no-print-directory", "-n", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )
    lines = found.stdout.splitlines()
    return found.returncode, " ".join(lines[-1].split()) if lines else "", found.stderr


def test_options_are_passed_on() -> None:
    status, line, _ = make("lang=german", "seeds=5", "jobs=2", "ensemble=1", "eval")
    assert status == 0
    assert line == (".venv/bin/spmrl-bench eval german --seeds 5 --jobs 2 --ensemble")
    status, line, _ = make("lang=german", "set=model.precision=bf16 train.max_epochs=3", "train")
    assert line == (
        ".venv/bin/spmrl-bench train german --set model.precision=bf16 --set train.max_epochs=3"
    )
    status, line, _ = make("lang=german", "trials=3", "set=model.layers=int:1:4", "search")
    assert line == (".venv/bin/spmrl-bench search german --set model.layers=int:1:4 --trials 3")
    assert make("VENV=/tmp/else", "TREEBANKS=/tmp", "table")[1] == "/tmp/else/bin/spmrl-bench table"


@pytest.mark.parametrize("wrong", ["sed=2", "max_epochs=3", "set_=a b"])
def test_what_is_not_known_is_refused(wrong: str) -> None:
    status, line, said = make("lang=german", wrong, "train")
    name = wrong.partition("=")[0]
    assert (status, line) == (2, "")
    assert f"unknown: {name}. Known: lang treebank" in said
