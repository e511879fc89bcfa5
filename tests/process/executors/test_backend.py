"""What ``--on`` says, and the executor that it names."""

from __future__ import annotations

from pathlib import Path

import pytest

from spmrl_bench.errors import RecipeError
from spmrl_bench.process.executors.backend import LOCAL, Backend, executor_for, parse_backend
from spmrl_bench.process.executors.local import InProcess, LocalExecutor


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SPMRL_BENCH_HOME", str(tmp_path))
    return tmp_path / "config.toml"


def test_where_units_are_done(config: Path) -> None:
    assert parse_backend(None) == parse_backend("local") == LOCAL
    assert parse_backend("dask://host:8786") == Backend("dask", "tcp://host:8786")
    assert parse_backend("tls://host:1") == Backend("dask", "tls://host:1")
    assert parse_backend("slurm") == Backend("slurm")
    config.write_text('[slurm]\npartition = "gpu"\ncpus = 4\n', encoding="utf-8")
    expected = {"partition": "cpu", "cpus": 4, "minutes": "9"}
    assert parse_backend("slurm:partition=cpu, minutes = 9") == Backend("slurm", settings=expected)
    executors = [executor_for(LOCAL, jobs, device="cpu", shared=config, log=str) for jobs in (1, 2)]
    assert [type(each) for each in executors] == [InProcess, LocalExecutor]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("dask", "dask://HOST:PORT"),
        ("dask://", "unknown place to work"),
        ("slrum", "Did you mean slurm"),
        ("slurm:gpu", "'gpu' is not KEY=VALUE"),
    ],
)
def test_what_is_no_place(config: Path, text: str, problem: str) -> None:
    with pytest.raises(RecipeError, match=problem):
        parse_backend(text)
    config.write_text("slurm = 3", encoding="utf-8")
    with pytest.raises(RecipeError, match=r"config\.toml: slurm is 3; expected a section"):
        parse_backend("slurm")
    on = Backend("slurm", settings={"cluster": "local"})
    with pytest.raises(RecipeError, match=r"the settings of SLURM.*cluster"):
        executor_for(on, 1, device="cpu", shared=config, log=str)
