"""Where machines share no folder: what goes there, what comes back, and what never travels."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from spmrl_bench.errors import RecipeError, SpmrlError
from spmrl_bench.executors import sending
from spmrl_bench.executors.where import LOCAL, Where
from spmrl_bench.experiments.campaign import train_all
from spmrl_bench.experiments.plan import Plan, make_plan
from spmrl_bench.experiments.run import evaluate
from spmrl_bench.files import names_in
from spmrl_bench.treebanks.columns import from_bytes
from tests.laboratory import Laboratory

distributed = pytest.importorskip("distributed")


@pytest.fixture(scope="module")
def away(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The user's folder on the other machine."""
    return tmp_path_factory.mktemp("away")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, away: Path) -> Iterator[str]:
    """A cluster of one worker that has another home."""
    import dask

    with (
        dask.config.set({"temporary-directory": str(tmp_path_factory.mktemp("dask"))}),
        distributed.LocalCluster(
            n_workers=1,
            threads_per_worker=1,
            memory_limit=0,
            dashboard_address="127.0.0.1:0",
            env={"SPMRL_BENCH_HOME": str(away)},
        ) as cluster,
    ):
        yield cluster.scheduler_address


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Also one thread here, as the worker has."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    monkeypatch.setattr(sending, "BLOCK", 1000)
    yield
    torch.set_num_threads(threads)


def plan(laboratory: Laboratory, **options: Any) -> Plan:
    options = {"treebank": "tiny-open", "variants": ["charlstm"]} | options
    return make_plan(str(laboratory.recipe), **options)


def test_a_run_that_was_sent_comes_back_as_if_trained_here(
    cluster: str, away: Path, laboratory: Laboratory
) -> None:
    work = plan(laboratory)
    (config,) = work.configs
    train_all([work], runs_dir=Path("there"), device="cpu", on=Where("dask", cluster, send="open"))
    train_all([work], runs_dir=Path("here"), device="cpu", on=LOCAL, jobs=1)
    folders = [work.folder(Path(name), config) for name in ("there", "here")]
    weights = [(folder / "best" / "weights.safetensors").read_bytes() for folder in folders]
    assert weights[0] == weights[1]
    (record,) = evaluate(
        work, runs_dir=Path("there"), results_dir=Path("results"), device="cpu",
        on=Where("dask", cluster, send="open"),
    )  # fmt: skip
    assert record.test is not None
    assert not list((away / "sent" / "runs").iterdir())
    # The sentences of training and dev were there, those of test were not.
    sent = [from_bytes(path.read_bytes())[0] for path in (away / "sent" / "files").iterdir()]
    bank = work.treebank.with_test()
    assert sorted(map(len, sent)) == sorted(len(bank.examples(name)) for name in ("train", "dev"))
    test = {str(parse) for parse in bank.examples("test")}
    assert not test & {str(parse) for sentences in sent for parse in sentences}


def test_what_was_begun_here_goes_on_there(cluster: str, laboratory: Laboratory) -> None:
    short = plan(laboratory, settings={"train.max_epochs": "2", "train.max_minutes": "0.00001"})
    long = plan(laboratory, settings={"train.max_epochs": "2"})
    (config,) = long.configs
    folder = long.folder(Path("runs"), config)
    assert folder == short.folder(Path("runs"), short.configs[0])
    train_all([short], runs_dir=Path("runs"), device="cpu", jobs=1)
    train_all([long], runs_dir=Path("runs"), device="cpu", on=Where("dask", cluster, send="open"))
    train_all([long], runs_dir=Path("whole"), device="cpu", jobs=1)
    whole = long.folder(Path("whole"), config)
    assert '"resume"' in (folder / "events.jsonl").read_text(encoding="utf-8")
    file = "best/weights.safetensors"
    assert (folder / file).read_bytes() == (whole / file).read_bytes()


def test_licensed_sentences_stay_unless_the_user_says_so(
    cluster: str, away: Path, laboratory: Laboratory, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = plan(laboratory)
    for module in ("experiments.sent_run", "treebanks.travelling"):
        monkeypatch.setattr(f"spmrl_bench.{module}.FREE", ("mini",))
    runs = Path("runs")
    files = away / "sent" / "files"
    before = names_in(files)  # of the tests before this one
    with pytest.raises(SpmrlError, match=r"tiny-open is of the track open, whose .* send=all"):
        train_all([work], runs_dir=runs, device="cpu", on=Where("dask", cluster, send="open"))
    assert set(names_in(files)) == set(before)
    for name in before:
        (files / name).unlink()
    train_all([work], runs_dir=runs, device="cpu", on=Where("dask", cluster, send="all"))
    assert work.folder(runs, work.configs[0]).exists()
    assert not list(files.iterdir())


def test_what_does_not_arrive_is_fetched_again(
    cluster: str, laboratory: Laboratory, monkeypatch: pytest.MonkeyPatch, capfd: Any
) -> None:
    get, calls = sending._get, []

    def damaged(*arguments: Any) -> bytes:
        return get(*arguments)[:-1] + b"?"

    def on(self: Any, worker: str, function: Any, *arguments: Any) -> Any:
        if function is get and not calls:
            calls.append(arguments)
            function = damaged
        return plain(self, worker, function, *arguments)

    plain = sending.SendingExecutor._on
    monkeypatch.setattr(sending.SendingExecutor, "_on", on)
    work = plan(laboratory, seeds=[2])
    train_all([work], runs_dir=Path("runs"), device="cpu", on=Where("dask", cluster, send="open"))
    assert calls
    errors = capfd.readouterr().err
    assert "did not arrive whole; it is started again" in errors
    folder = work.folder(Path("runs"), work.configs[0])
    events = (folder / "events.jsonl").read_text(encoding="utf-8")
    assert events.count('"event": "start"') == 1  # it was not trained again
    assert (folder / "best" / "weights.safetensors").exists()


@pytest.mark.parametrize("name", ["../run.json", "/etc/passwd", "best/../../x", "a\nb", ""])
def test_a_worker_cannot_name_a_file_outside_the_folder(name: str) -> None:
    with pytest.raises(sending._BrokenError, match="is not of a run"):
        sending._inside(name)


def test_what_is_said_of_sending(monkeypatch: pytest.MonkeyPatch) -> None:
    from spmrl_bench.executors.where import parse_where

    assert parse_where("dask://host:1,send=all") == Where("dask", "tcp://host:1", send="all")
    assert parse_where("dask://host:1").send == ""
    with pytest.raises(RecipeError, match=r"unknown option 'send=al'. Did you mean send=all"):
        parse_where("dask://host:1,send=al")
