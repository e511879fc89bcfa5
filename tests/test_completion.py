"""Shells complete commands and options once they have been told how."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import PATIENCE

ROOT = Path(__file__).resolve().parents[1]
# Bash calls the function with the command, the word that is completed and the one in front of it.
ASKED = """
. ~/.bashrc
COMP_WORDS=(spmrl-bench "$@") COMP_CWORD=$#
_spmrl_bench_completion spmrl-bench
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash")
def test_bash_completes_after_installation(tmp_path: Path) -> None:
    program = tmp_path / "bin" / "spmrl-bench"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -P -m spmrl_bench "$@"\n')
    program.chmod(0o755)
    environment = os.environ | {
        "HOME": str(tmp_path),
        "PATH": os.pathsep.join([str(program.parent), os.environ["PATH"]]),
        "PYTHONPATH": str(ROOT),
    }

    def run(*command: str) -> str:
        return subprocess.run(
            command,
            env=environment,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=True,
            timeout=PATIENCE,
        ).stdout

    # The program looks at what started it; bash itself must, not a process that replaced it.
    told = run("bash", "--norc", "-c", "spmrl-bench --install-completion; true")
    assert "bash completion installed" in told
    for words, expected in (
        (["score"], ["score", "score-dependencies"]),
        (["runs", "clean", "--dr"], ["--dry-run"]),
        (["runs", "c"], ["cancel", "clean"]),
    ):
        assert run("bash", "--norc", "-c", ASKED, "bash", *words).split() == expected
