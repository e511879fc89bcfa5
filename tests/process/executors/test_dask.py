"""Workers of a Dask cluster: how each unit ends, who is let in, and what is left of them."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from spmrl_bench.errors import SpmrlError
from spmrl_bench.experiments.plan import make_runs
from spmrl_bench.experiments.train import train_all
from spmrl_bench.parsers.baselines import AttachNeighbour
from spmrl_bench.parsing.bulk import ParseOptions
from spmrl_bench.process.executors import dask as module
from spmrl_bench.process.executors.backend import LOCAL, Backend
from spmrl_bench.process.executors.dask import DaskExecutor
from spmrl_bench.process.executors.units import Unit, run_units
from spmrl_bench.storage.living import process_start_time
from tests.builders import cli
from tests.conftest import PATIENCE, until
from tests.laboratory import Laboratory
from tests.parsing.test_folders import left_over, results, streamed, tokens, write
from tests.process.executors.test_local import ENDS, all_of, of_all_ends, ways
from tests.process.executors.work import fail_below, steps, wait

distributed = pytest.importorskip("distributed")


@pytest.fixture(scope="module")
def scheduler(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a cluster of two workers that others have set up."""
    import dask

    with (
        dask.config.set({"temporary-directory": str(tmp_path_factory.mktemp("dask"))}),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, memory_limit=0, dashboard_address="127.0.0.1:0"
        ) as cluster,
    ):
        yield cluster.scheduler_address


@pytest.fixture
def cluster(scheduler: str) -> str:
    """The same, with both workers, of which a test before this one may have killed one."""
    with distributed.Client(scheduler, set_as_default=False) as client:
        client.wait_for_workers(2, timeout=PATIENCE)
    return scheduler


@pytest.fixture
def executor(cluster: str, tmp_path: Path) -> Iterator[DaskExecutor]:
    executor = DaskExecutor(cluster, tmp_path / "runs", device="cpu")
    yield executor
    executor.close()
    assert list((tmp_path / "runs").iterdir()) == []


def test_units_end_in_their_own_ways(executor: DaskExecutor, tmp_path: Path) -> None:
    assert executor.capacity == 2
    units = of_all_ends(tmp_path / "noted")
    places = [executor.start(unit) for unit in units[:2]]
    assert len(set(places)) == 2
    assert all(place.startswith("on worker 127.0.0.1:") for place in places)
    found = all_of(executor, 2)
    executor.start(units[2])
    assert ways(found | all_of(executor, 1)) == ENDS
    assert (tmp_path / "noted").read_text(encoding="utf-8") == "cpu 1"


def test_what_is_in_work_is_asked_to_stop_or_ended_with_the_executor(
    executor: DaskExecutor, tmp_path: Path
) -> None:
    assert executor.capacity == 2
    paths = [tmp_path / name for name in ("first", "second", "third")]
    units = [Unit(path.name, wait, (str(path),)) for path in paths]
    for unit in units[:2]:
        executor.start(unit)
    until(lambda: paths[0].exists() and paths[1].exists())
    executor.ask_to_stop()
    assert {each.status for each in all_of(executor, 2).values()} == {"stopped"}
    other = DaskExecutor(executor._client.scheduler.address, tmp_path / "runs", device="cpu")
    assert other.capacity == 2
    other.start(units[2])
    until(paths[2].exists)
    other.close()
    pid = int(paths[2].read_text(encoding="utf-8"))
    until(lambda: process_start_time(pid) is None)


def test_a_unit_whose_worker_is_killed_goes_on_with_another(
    executor: DaskExecutor, tmp_path: Path, said: list[str]
) -> None:
    """The first one that begins it kills its worker."""
    unit = Unit("hard", steps, (str(tmp_path / "steps"), 2, "parent"))
    assert run_units([unit], executor) == []
    assert (tmp_path / "steps").read_text(encoding="utf-8") == "12"
    gone = [line for line in said if line.endswith("is gone; it is started again")]
    assert len(gone) == 1


def test_a_worker_that_sees_other_folders_or_has_another_version_is_refused(
    cluster: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for problem in ("does not see .*--runs", r"here they are 0\.0\.0 and .*: install the same"):
        executor = DaskExecutor(cluster, tmp_path, device="cpu")
        executor._sign = tmp_path / "elsewhere" / "sign"
        with pytest.raises(SpmrlError, match=rf"worker 127\.0\.0\.1:\d+: .* {problem}"):
            _ = executor.capacity
        executor.close()
        monkeypatch.setattr(module, "__version__", "0.0.0")


def see(yes: bool, real: Callable[[str], bool] = module._sees) -> None:
    """Have this worker see what is shared, or nothing of it."""
    module._sees = real if yes else lambda _: False


@pytest.mark.campaign
def test_a_unit_whose_worker_loses_the_folder_goes_on_with_another(
    cluster: str, tmp_path: Path, said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the worker gets nothing before it sees the folder again."""
    monkeypatch.setattr(module, "_LOOK", 0.1)
    monkeypatch.setattr(module, "say", said.append)
    executor = DaskExecutor(cluster, tmp_path, device="cpu")
    assert executor.capacity == 2
    address, other = executor._threads
    with distributed.Client(cluster, set_as_default=False) as client:
        pid = client.run(os.getpid, workers=[address])[address]
        client.run(see, False, workers=[address])
        try:
            assert run_units([Unit("a", fail_below, (str(pid),))], executor) == []
            assert executor._threads == {address: 0, other: 1}
        finally:
            client.run(see, True, workers=[address])
    blind = f"{socket.gethostname()} does not see {tmp_path}"
    assert said[1:] == [
        f"a: its worker on {blind} any more; it is started again",
        f"worker {module._short(address)}: {blind}: workers need the runs in a folder that all "
        "machines share; name one with --runs. It gets no work before that is in order",
    ]
    executor = DaskExecutor(cluster, tmp_path, device="cpu")
    assert executor.capacity == 2
    (failed,) = run_units([Unit("b", fail_below, (str(pid),))], executor)
    assert str(failed.error) == "it cannot be written"


def test_without_a_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_PATIENCE", 0.5)
    with pytest.raises(SpmrlError, match=r"--on dask://localhost:1: no answer .*'dask scheduler'"):
        DaskExecutor("tcp://localhost:1", tmp_path, device="cpu")


def test_runs_on_a_cluster_have_the_weights_of_runs_here(
    cluster: str, laboratory: Laboratory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    weights = []
    for name, on in (("there", Backend("dask", cluster)), ("here", LOCAL)):
        (run,) = make_runs(
            str(laboratory.recipe), treebank="tiny-open", variants=["charlstm"], runs_dir=Path(name)
        )
        train_all([run], device="cpu", jobs=1, on=on)
        weights.append((run.folder / "best" / "weights.safetensors").read_bytes())
    assert weights[0] == weights[1]


@pytest.mark.campaign
def test_a_folder_is_parsed_on_a_cluster(cluster: str, tmp_path: Path) -> None:
    """With the bytes that ``parse`` writes here; given again, nothing is left."""
    model, outputs = tmp_path / "model", tmp_path / "out"
    AttachNeighbour({"side": "right", "root": "root", "any": "dep", "by_tag": {}}).save(model)
    texts = {"a.txt": tokens(11_000), "deep/b.txt.gz": tokens(6_000, 100), "c.txt": b""}
    write(tmp_path / "in", texts)
    command = ["parse", "--model", str(model), "--to", str(outputs), str(tmp_path / "in")]
    command += ["--on", f"dask://{cluster.removeprefix('tcp://')}", "--workers", "2"]
    done = cli(*command)
    assert done.exit_code == 0, done.output
    for number in (1, 2):
        assert f"worker {number} of 2: started on worker 127.0.0.1:" in done.stderr
    assert results(outputs) == {
        name: streamed(model, data, "tokens", ParseOptions()) for name, data in texts.items()
    }
    assert left_over(outputs) == []
    assert "3 of 3 files parsed" in done.stderr
    assert "all 3 files are parsed" in cli(*command).stderr
