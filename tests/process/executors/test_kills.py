"""Whoever is killed, whenever: all runs finish with the weights of undisturbed ones.

Where a SLURM is (``slurm/start.sh`` beside), its jobs are killed and told to stop too.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from spmrl_bench.experiments.plan import Run, make_runs
from spmrl_bench.experiments.train import train_all
from tests.conftest import PATIENCE, until
from tests.laboratory import Laboratory
from tests.reliability.tally import Tally
from tests.twins import torch_threads

SETTINGS = {
    "train.max_epochs": "30",
    "train.stop_patience": "100",
    "train.batch_size": "8",
    "train.checkpoint_minutes": "0.005",  # some in each run, to go on from
}
RUNS, LOG = Path("runs"), Path("log")
#: The disturbances that each test makes.
DISTURBANCES = 20
#: The command, which asks SLURM more often than it usually does.
COMMAND = """
from spmrl_bench.entry import main
from spmrl_bench.process.executors.slurm import SlurmExecutor

if __name__ == "__main__":
    SlurmExecutor.interval, SlurmExecutor.grace = 0.5, 3.0
    main()
"""


@pytest.fixture
def work(laboratory: Laboratory, monkeypatch: pytest.MonkeyPatch) -> list[Run]:
    """Two runs of some seconds, and their weights in the folder ``undisturbed``."""
    laboratory.in_use_by_processes(monkeypatch)
    monkeypatch.setenv("OMP_NUM_THREADS", "2")  # one for each of two runs
    runs = make_runs(
        str(laboratory.recipe), treebank="tiny-open", variants=["charlstm"], seeds=[1, 2],
        settings=SETTINGS,
    )  # fmt: skip
    others = [replace(run, folder="undisturbed" / run.folder.relative_to(RUNS)) for run in runs]
    with torch_threads(1):
        train_all(others, device="cpu", jobs=1)
    return runs


@contextlib.contextmanager
def session(*command: str) -> Iterator[subprocess.Popen[bytes]]:
    """A Python program in a session of its own, of which nothing is left in the end."""
    with LOG.open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-P", *command],
            stdout=subprocess.DEVNULL,
            stderr=log,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        for pid in processes_of(process.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        process.wait()


@pytest.fixture
def cluster(work: list[Run]) -> Iterator[int]:
    """A cluster of two workers; gives the session of these, whose scheduler is in a file."""
    options = ("--scheduler-file", "scheduler.json", "--no-dashboard")
    with session("-m", "distributed.cli.dask_scheduler", "--port", "0", *options):
        until(Path("scheduler.json").exists)
        workers = ("distributed.cli.dask_worker", "--nworkers", "2", "--nthreads", "1")
        with session("-m", *workers, *options) as process:
            yield process.pid


@contextlib.contextmanager
def driver(recipe: Path, on: str) -> Iterator[subprocess.Popen[bytes]]:
    """The command; whatever is left of it in the end is told."""
    where = f"{on}:memory_gb=1,minutes=30" if on == "slurm" else on
    if on == "dask":
        where = json.loads(Path("scheduler.json").read_text(encoding="utf-8"))["address"]
    options = [part for key, value in SETTINGS.items() for part in ("--set", f"{key}={value}")]
    options += ["--seeds", "2", "--jobs", "2", "--device", "cpu", "--on", where]
    command = ["train", str(recipe), "--treebank", "tiny-open", "--variant", "charlstm"]
    Path("command.py").write_text(COMMAND, encoding="utf-8")
    with session("command.py", *command, *options) as process:
        yield process
        process.wait(PATIENCE)
        until(lambda: not processes_of(process.pid))


def processes_of(session: int | None = None) -> dict[int, str]:
    """The processes of a session, or all, that have not ended, with their command lines."""
    found = {}
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, ProcessLookupError):
            fields = (path / "stat").read_text().rpartition(")")[2].split()
            if (session is None or int(fields[3]) == session) and fields[0] not in "ZX":
                line = (path / "cmdline").read_bytes().replace(b"\0", b" ")
                found[int(path.name)] = line.decode(errors="replace")
    return found


def workers_of(session: int, on: str) -> list[int]:
    """The processes of a session that train, and not those of joblib's or SLURM's bookkeeping."""
    if on == "slurm":
        job = re.compile(rf"\S*python\S* .*submitit\S* {re.escape(str(Path.cwd()))}/")
        return [pid for pid, line in processes_of().items() if job.match(line)]
    worker = re.compile(r"loky.backend.popen|multiprocessing.spawn")
    return [pid for pid, line in processes_of(session).items() if worker.search(line)]


def ask(*command: str) -> str:
    """What a command of SLURM prints."""
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout


def queue(states: str = "PENDING,RUNNING,COMPLETING") -> list[str]:
    """The jobs of this user in some states."""
    return ask("squeue", "-h", "-r", f"--states={states}", "--format=%i", "--me").split()


def disturb(process: subprocess.Popen[bytes], session: int, on: str, whom: str) -> bool:
    """Kill the driver, a process that trains, or both, or tell SLURM's jobs to stop, if there."""
    if whom == "jobs told":
        running = queue("RUNNING")
        if running:
            ask("scancel", "--signal=TERM", *running)
        return bool(running)
    workers = [] if whom == "driver" else workers_of(session, on)
    victims = ([] if whom == "worker" else [process.pid]) + random.sample(workers, bool(workers))
    there = process.poll() is None and (whom == "driver" or bool(workers))
    for pid in victims:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return there


def finish(recipe: Path, on: str, whom: str, seconds: float, cluster: int | None) -> int:
    """Give the command, of so many seconds, until it succeeds; returns how often it was disturbed.

    ``cluster`` is the session of Dask's workers.
    """
    disturbed = 0
    for tries in range(6):
        with driver(recipe, on) as process:
            deadline = time.monotonic() + random.uniform(0.1, 1.0) * seconds
            while process.poll() is None and time.monotonic() < deadline:
                time.sleep(0.01)
            if tries < 2:
                disturbed += disturb(process, cluster or process.pid, on, whom)
        if process.returncode == 0:
            return disturbed
    raise AssertionError(LOG.read_text(encoding="utf-8")[-3000:])


def check(runs: list[Run]) -> int:
    """Check that all runs are as the undisturbed ones; returns how often one was gone on with."""
    resumed = 0
    for run in runs:
        folder, other = run.folder, "undisturbed" / run.folder.relative_to(RUNS)
        file = "best/weights.safetensors"
        assert (folder / file).read_bytes() == (other / file).read_bytes(), run.title
        lines = (folder / "events.jsonl").read_text(encoding="utf-8").splitlines()
        events = [json.loads(line)["event"] for line in lines]
        assert events.count("stop") == 1, events
        resumed += events.count("resume")
        # A worker of Dask's that went on when its driver was killed may just be ending.
        until(lambda where=folder.parent: not list(where.glob(".*")))
    return resumed


@pytest.mark.campaign
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
@pytest.mark.parametrize(
    ("on", "whom"),
    [
        pytest.param(on, whom, marks=pytest.mark.xdist_group(on))
        for on in ("local", "dask", "slurm")
        for whom in ("worker", "driver", "both", "jobs told")
        if on == "slurm" or whom != "jobs told"
    ],
)
def test_killed_runs_go_on_to_the_same_weights(
    work: list[Run], laboratory: Laboratory, on: str, whom: str, tally: Tally,
    request: pytest.FixtureRequest,
) -> None:  # fmt: skip
    held = tally("R15", f"kills of {whom}, on {on}" if whom != "jobs told" else f"{whom} to stop")
    cluster = None
    if on == "dask":
        pytest.importorskip("distributed")
        cluster = request.getfixturevalue("cluster")
    if on == "slurm" and shutil.which("sinfo") is None:
        pytest.skip("no SLURM (tests/process/executors/slurm/start.sh start)")
    random.seed(f"{on} {whom}")
    disturbed = resumed = 0
    for number in range(4 * DISTURBANCES):
        begun = time.monotonic()
        if number == 0:
            with driver(laboratory.recipe, on) as process:
                process.wait(PATIENCE)
            seconds = time.monotonic() - begun
        elif (found := finish(laboratory.recipe, on, whom, seconds, cluster)) > 0:
            disturbed += found
            held.add(found)
        resumed += check(work)
        if on == "slurm":
            until(lambda: not queue() and not workers_of(0, on))
        if disturbed >= DISTURBANCES:
            # Jobs of SLURM and of Dask's workers go on when the command is killed.
            assert resumed or (on != "local" and whom == "driver")
            print(f"{resumed} times a run went on from a checkpoint")
            return
        RUNS.rename(f"runs{number}")
    pytest.fail(f"only {disturbed} of {DISTURBANCES} moments were within the work")
