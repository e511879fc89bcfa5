"""A trained and scored run of each kind of treebank, and packages of it, which the tests share."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from spmrl_bench.experiments.packaging import package_run
from spmrl_bench.experiments.plan import make_runs
from spmrl_bench.experiments.score import KnownRecords, evaluate_all
from spmrl_bench.experiments.train import train_all
from tests.laboratory import Laboratory, build_laboratory
from tests.packages.hub_server import Hub, serving

NAME = "spmrl_bench_tiny_mini"


@pytest.fixture(scope="session")
def scored(tmp_path_factory: pytest.TempPathFactory) -> Laboratory:
    """A laboratory with a run on ``tiny-mini`` in ``runs`` and its record in ``results``."""
    laboratory = build_laboratory(tmp_path_factory.mktemp("scored"))
    with pytest.MonkeyPatch.context() as patch:
        in_use(laboratory, patch)
        runs = make_runs(
            str(laboratory.recipe),
            runs_dir=laboratory.folder / "runs",
            track="mini",
            variants=["word-charlstm"],
        )
        train_all(runs, device="cpu")
        _, errors = evaluate_all(runs, KnownRecords(laboratory.folder / "results"))
        assert not errors
    return laboratory


def in_use(laboratory: Laboratory, patch: pytest.MonkeyPatch) -> None:
    """Have the program find the treebanks of a laboratory."""
    patch.setattr("spmrl_bench.treebanks.catalogue.data_dirs", lambda _: [laboratory.manifests])
    patch.setenv("TREEBANKS", str(laboratory.treebanks))


def run_of(laboratory: Laboratory) -> Path:
    """The folder of its run."""
    (folder,) = (laboratory.folder / "runs" / "tiny-mini").glob("*seed1")
    return folder


@pytest.fixture(scope="session")
def packages(scored: Laboratory) -> Path:
    """A folder with a package of the run, which no test changes."""
    to = scored.folder / "packages"
    with pytest.MonkeyPatch.context() as patch:
        in_use(scored, patch)
        results = scored.folder / "results"
        package_run(run_of(scored), to, results=results)
    return to


@pytest.fixture
def package(packages: Path, tmp_path: Path) -> Path:
    """A copy of the package's folder."""
    return Path(shutil.copytree(packages / NAME, tmp_path / NAME))


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """A hub of the test's own, and an empty cache of what comes from it."""
    constants = pytest.importorskip("huggingface_hub.constants")
    with serving() as server:
        monkeypatch.setattr(constants, "ENDPOINT", server.url)
        template = f"{server.url}/{{repo_id}}/resolve/{{revision}}/{{filename}}"
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
        monkeypatch.setattr(constants, "HF_HUB_DISABLE_IMPLICIT_TOKEN", True)
        yield server
