"""A machine that loses the shared folder while it trains: its runs go on on another one."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from spmrl_bench.experiments.plan import make_runs
from spmrl_bench.experiments.train import train_all
from spmrl_bench.process.executors.backend import Backend
from tests.conftest import PATIENCE
from tests.laboratory import Laboratory
from tests.process.executors.observing import ROOT

distributed = pytest.importorskip("distributed")

pytestmark = [
    pytest.mark.campaign,
    pytest.mark.skipif(
        os.geteuid() != 0 or shutil.which("nsenter") is None,
        reason="only root can take a folder away from one process",
    ),
]

_LONGER = {"train.max_epochs": "40", "train.stop_patience": "100", "train.batch_size": "8"}


@contextlib.contextmanager
def worker(scheduler: str, *before: str) -> Iterator[subprocess.Popen[bytes]]:
    """A worker of one thread; what stands before its command is of another one that starts it."""
    command = [sys.executable, "-P", "-m", "distributed.cli.dask_worker", scheduler, "--no-nanny"]
    process = subprocess.Popen(
        [*before, *command, "--nthreads", "1", "--no-dashboard"],
        stderr=subprocess.DEVNULL,
        env=os.environ | {"PYTHONPATH": str(ROOT), "DASK_DISTRIBUTED__WORKER__DAEMON": "False"},
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def test_a_run_goes_on_elsewhere(
    laboratory: Laboratory, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "2")  # one for each of two runs
    there, here = Path("there"), Path("here")
    runs = make_runs(
        str(laboratory.recipe), treebank="tiny-open", variants=["charlstm"], seeds=[1, 2],
        settings=_LONGER, runs_dir=there,
    )  # fmt: skip
    there.mkdir()
    folders = [run.folder for run in runs]

    def take_away(pid: int) -> None:
        until = time.monotonic() + PATIENCE
        events = [folder / "events.jsonl" for folder in folders]
        while not all(e.exists() and '"evaluation"' in e.read_text("utf-8") for e in events):
            assert time.monotonic() < until
            time.sleep(0.02)
        mount = ["mount", "-t", "tmpfs", "-o", "ro", "none", str(there.absolute())]
        subprocess.run(["nsenter", "-t", str(pid), "-m", *mount], check=True, timeout=PATIENCE)

    alone = ("unshare", "--mount", "--propagation", "private")
    with contextlib.ExitStack() as stack:
        cluster = stack.enter_context(
            distributed.LocalCluster(n_workers=0, dashboard_address="127.0.0.1:0")
        )
        address = cluster.scheduler_address
        unlucky = stack.enter_context(worker(address, *alone))
        stack.enter_context(worker(address))
        with distributed.Client(address, set_as_default=False) as client:
            client.wait_for_workers(2, timeout=PATIENCE)
        taking = threading.Thread(target=take_away, args=(unlucky.pid,))
        taking.start()
        train_all(runs, device="cpu", on=Backend("dask", address))
        taking.join()
    said = capfd.readouterr().err
    assert "any more. It gets no work before that is in order" in said
    assert "any more; it is started again" in said
    others = [replace(run, folder=here / run.folder.relative_to(there)) for run in runs]
    train_all(others, device="cpu", jobs=2)
    for folder in folders:
        weights = folder / "best" / "weights.safetensors"
        assert weights.read_bytes() == (here / weights.relative_to(there)).read_bytes()
        assert not list(folder.parent.glob(".*"))
