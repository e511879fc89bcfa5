"""Whoever is killed, whenever: all runs finish with the weights of undisturbed ones."""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from spmrl_bench.experiments.campaign import train_all
from spmrl_bench.experiments.plan import Plan, make_plan
from tests.conftest import PATIENCE
from tests.laboratory import Laboratory
from tests.reliability.tally import Tally

ROOT = Path(__file__).resolve().parents[2]
SETTINGS = {"train.max_epochs": "30", "train.stop_patience": "100", "train.batch_size": "8"}
RUNS = Path("runs")


@pytest.fixture
def work(laboratory: Laboratory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Plan:
    """Two runs of some seconds, and their weights in the folder ``undisturbed``."""
    home = tmp_path / "home"
    home.mkdir()
    (home / "treebanks").symlink_to(laboratory.manifests)
    monkeypatch.setenv("SPMRL_BENCH_HOME", str(home))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("OMP_NUM_THREADS", "2")  # one for each of two runs
    plan = make_plan(
        str(laboratory.recipe), treebank="tiny-open", variants=["charlstm"], seeds=[1, 2],
        settings=SETTINGS,
    )  # fmt: skip
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    train_all([plan], runs_dir=Path("undisturbed"), device="cpu", jobs=1)
    torch.set_num_threads(before)
    return plan


@contextlib.contextmanager
def driver(recipe: Path, on: str) -> Iterator[subprocess.Popen[bytes]]:
    """The command, in a session of its own; whatever is left of it in the end is told."""
    options = [part for key, value in SETTINGS.items() for part in ("--set", f"{key}={value}")]
    with Path("log").open("ab") as log:
        process = subprocess.Popen(
            [
                *(sys.executable, "-P", "-m", "spmrl_bench", "train", str(recipe)),
                *(
                    "--treebank",
                    "tiny-open",
                    "--variant",
                    "charlstm",
                    "--seeds",
                    "2",
                    "--jobs",
                    "2",
                ),
                *("--device", "cpu", "--on", on, *options),
            ],
            stdout=subprocess.DEVNULL,
            stderr=log,
            start_new_session=True,
        )
    try:
        yield process
        process.wait(PATIENCE)
        until = time.monotonic() + PATIENCE
        while left := session_of(process.pid):
            assert time.monotonic() < until, f"left behind: {left}"
            time.sleep(0.05)
    finally:
        for pid in session_of(process.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        process.wait()


def session_of(leader: int) -> dict[int, str]:
    """The processes of a session that have not ended, with their command lines."""
    found = {}
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, ProcessLookupError):
            fields = (path / "stat").read_text().rpartition(")")[2].split()
            if int(fields[3]) == leader and fields[0] not in "ZX":
                found[int(path.name)] = (
                    (path / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                )
    return found


def is_worker(command: str) -> bool:
    """Whether a command line is that of a process that works, and not of joblib's bookkeeping."""
    return bool(re.search(r"loky.backend.popen|multiprocessing.spawn", command))


def kill_one(process: subprocess.Popen[bytes], whom: str) -> None:
    """Kill the driver, one of the processes that it has started, or both."""
    workers = [pid for pid, command in session_of(process.pid).items() if is_worker(command)]
    victims = [process.pid] if whom != "worker" else []
    if whom != "driver" and workers:
        victims.append(random.choice(workers))
    for pid in victims:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
@pytest.mark.parametrize("on", ["local", "dask"])
@pytest.mark.parametrize("whom", ["worker", "driver", "both"])
@pytest.mark.parametrize("rounds", [pytest.param(20, marks=pytest.mark.campaign)])
def test_killed_runs_go_on_to_the_same_weights(
    work: Plan, laboratory: Laboratory, on: str, whom: str, rounds: int, tally: Tally
) -> None:
    held = tally("R15", f"kills of {whom}, on {on}")
    if on == "dask":
        pytest.importorskip("distributed")
    random.seed(f"{on} {whom}")
    for number in range(rounds):
        runs = RUNS.rename(f"runs{number}") if RUNS.exists() else None
        assert runs is None or runs.exists()
        for tries in range(6):
            with driver(laboratory.recipe, on) as process:
                deadline = time.monotonic() + random.uniform(0.5, 12.0)
                while process.poll() is None and time.monotonic() < deadline:
                    time.sleep(0.01)
                if tries < 2:
                    kill_one(process, whom)
            if process.returncode == 0:
                break
        held.add()
        log = Path("log").read_text(encoding="utf-8")
        assert process.returncode == 0, log[-3000:]
        for config in work.configs:
            folder, other = (work.folder(place, config) for place in (RUNS, Path("undisturbed")))
            file = "best/weights.safetensors"
            assert (folder / file).read_bytes() == (other / file).read_bytes(), number
            lines = (folder / "events.jsonl").read_text(encoding="utf-8").splitlines()
            events = [json.loads(line)["event"] for line in lines]
            assert events.count("stop") == 1, events
            assert not list(folder.parent.glob(".*")), list(folder.parent.glob(".*"))
