"""Parsers for folders: one of trees, and one of dependencies that has no weights and is quick."""

from __future__ import annotations

from pathlib import Path

import pytest

from spmrl_bench.bulk import shards, worker
from spmrl_bench.parsers.baselines import AttachNeighbour
from tests.builders import tiny

#: Words of the longest sentence that the parser of trees takes.
LIMIT = 8


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("parser")
    tiny(seed=3, max_positions=LIMIT + 2).save(path)
    return path


@pytest.fixture(scope="session")
def neighbours(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every word hangs from the next."""
    path = tmp_path_factory.mktemp("neighbours")
    counted = {"side": "right", "root": "root", "any": "dep", "by_tag": {"D": "det"}}
    AttachNeighbour(counted).save(path)
    return path


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shards of 10 sentences, and no waiting."""
    monkeypatch.setattr(shards, "SHARD_SENTENCES", 10)
    monkeypatch.setattr(worker, "PAUSE", 0.01)
