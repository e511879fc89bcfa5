"""What a record says of the program and the machine."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import torch

from spmrl_bench import __version__
from spmrl_bench.leaderboard.environment import find_commit, find_hardware, find_versions


def test_versions_and_hardware_are_those_in_use() -> None:
    expected = {"torch": torch.__version__, "numpy": np.__version__, "spmrl_bench": __version__}
    assert find_versions().items() >= expected.items()
    hardware = find_hardware(torch.device("cpu"))
    assert (hardware.device, hardware.threads) == ("cpu", torch.get_num_threads())


def git(folder: Path, *arguments: str) -> str:
    command = ["git", "-c", "user.name=a", "-c", "user.email=a@b", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout


def test_commit_says_whether_files_changed(tmp_path: Path) -> None:
    assert find_commit(tmp_path) is None
    git(tmp_path, "init", "-q")
    (tmp_path / "file").write_text("a", encoding="utf-8")
    git(tmp_path, "add", "file")
    git(tmp_path, "commit", "-qm", "first")
    git(tmp_path, "tag", "-am", "release", "v1")
    commit = git(tmp_path, "rev-parse", "HEAD").strip()
    assert find_commit(tmp_path) == commit
    (tmp_path / "file").write_text("b", encoding="utf-8")
    assert find_commit(tmp_path) == f"{commit}-dirty"
