"""What runs cost that cost nothing themselves: ten thousand of them, two at a time."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path

import pytest

from spmrl_bench.process.executors.base import Executor, Unit, run_units
from spmrl_bench.process.executors.local import LocalExecutor
from spmrl_bench.process.pools import peak_memory_bytes
from tests.process.executors.work import idle

UNITS = 10_000
#: What a unit may take of the driver: some times what was measured (docs/scaling.md), so that
#: what grows with the number of units fails. How long all take says more of the machine.
DRIVER_SECONDS, DRIVER_BYTES = 0.04, 16_000


def executor(on: str, folder: Path, stack: contextlib.ExitStack) -> Executor:
    if on == "local":
        return LocalExecutor(2, "cpu")
    distributed = pytest.importorskip("distributed")
    from spmrl_bench.process.executors.dask import DaskExecutor

    cluster = stack.enter_context(
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, memory_limit=0, dashboard_address="127.0.0.1:0"
        )
    )
    return DaskExecutor(cluster.scheduler_address, folder, device="cpu")


@pytest.mark.campaign
@pytest.mark.parametrize("on", ["local", "dask"])
def test_a_sweep_costs_a_driver_little(on: str, tmp_path: Path) -> None:
    units = [Unit(f"unit {k}", idle, (), folder=tmp_path / str(k)) for k in range(UNITS)]
    said: list[str] = []
    with contextlib.ExitStack() as stack:
        where = executor(on, tmp_path / "shared", stack)
        memory, begun, worked = peak_memory_bytes(), time.monotonic(), time.process_time()
        assert run_units(units, where, log=said.append) == []
        seconds, worked = time.monotonic() - begun, time.process_time() - worked
    grown = peak_memory_bytes() - memory
    print(
        f"{on}: {1e3 * seconds / UNITS:.0f} ms a unit, {1e3 * worked / UNITS:.1f} of the driver; "
        f"memory {memory / 2**20:.0f} MiB and {grown / 2**20:.0f} more"
    )
    assert len(said) >= UNITS
    assert worked < DRIVER_SECONDS * UNITS
    assert grown < DRIVER_BYTES * UNITS
