"""Of the files of jobs only those of this user are read, since a pickle can do anything."""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import pytest

from spmrl_bench.process.executors import slurm_files
from spmrl_bench.process.executors.slurm_job import Order


class Submitted:
    """What submitit has of an order, as far as it is looked at."""

    def __init__(self, order: Order) -> None:
        self.args = (order,)


def test_orders_of_somebody_else_are_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    order = Order("runs/bank/run", "work", b"", "cpu", 1)
    (tmp_path / "one").mkdir()
    path = tmp_path / "one" / "7_0_submitted.pkl"
    path.write_bytes(pickle.dumps(Submitted(order)))
    assert slurm_files.orders_of(tmp_path, ["7_0"])["7_0"].order == order
    other = os.getuid() + 1
    monkeypatch.setattr(slurm_files.os, "getuid", lambda: other)
    assert slurm_files.orders_of(tmp_path, ["7_0"]) == {}
    with pytest.raises(PermissionError, match="belongs to somebody else"):
        slurm_files._unpickled(path)
