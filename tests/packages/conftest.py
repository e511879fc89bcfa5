"""A trained and scored run of each kind of treebank, and packages of it, which the tests share."""

from __future__ import annotations

import hashlib
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from spmrl_bench.experiments.packaging import package_run
from spmrl_bench.experiments.plan import make_runs
from spmrl_bench.experiments.score import KnownRecords, evaluate_all
from spmrl_bench.experiments.train import train_all
from tests.laboratory import Laboratory, build_laboratory

NAME = "spmrl_bench_tiny_mini"


@pytest.fixture(scope="session")
def scored(tmp_path_factory: pytest.TempPathFactory) -> Laboratory:
    """A laboratory with a run on ``tiny-mini`` in ``runs`` and its record in ``results``."""
    laboratory = build_laboratory(tmp_path_factory.mktemp("scored"))
    with pytest.MonkeyPatch.context() as patch:
        laboratory.in_use(patch)
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


def run_of(laboratory: Laboratory) -> Path:
    """The folder of its run."""
    (folder,) = (laboratory.folder / "runs" / "tiny-mini").glob("*seed1")
    return folder


@pytest.fixture(scope="session")
def packages(scored: Laboratory) -> Path:
    """A folder with a package of the run, which no test changes."""
    to = scored.folder / "packages"
    with pytest.MonkeyPatch.context() as patch:
        scored.in_use(patch)
        package_run(run_of(scored), to, results=scored.folder / "results")
    return to


@pytest.fixture
def package(packages: Path, tmp_path: Path) -> Path:
    """A copy of the package's folder."""
    return Path(shutil.copytree(packages / NAME, tmp_path / NAME))


class Hub:
    """Stands in for huggingface_hub: what is asked for comes from the hub or from the cache."""

    def __init__(self, cache: Path) -> None:
        self.cache = cache
        self.repositories: dict[str, dict[str, bytes]] = {}  # files by path, of NAME@COMMIT
        self.claims: dict[str, int] = {}  # sizes by path that are said in place of the true ones
        self.asked: list[str] = []

    def push(self, name: str, folder: Path) -> str:
        """Store a folder as a new commit; returns name and commit."""
        paths = sorted(path for path in folder.rglob("*") if path.is_file())
        files = {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}
        pinned = f"{name}@{hashlib.sha1(b''.join(files.values())).hexdigest()}"
        self.repositories[pinned] = files
        return pinned

    def _kept(self, repo_id: str, filename: str, revision: str) -> Path:
        return self.cache / repo_id / revision / filename

    def try_to_load_from_cache(self, repo_id: str, filename: str, *, revision: str) -> str | None:
        path = self._kept(repo_id, filename, revision)
        return str(path) if path.exists() else None

    def hf_hub_url(self, repo_id: str, filename: str, *, revision: str) -> str:
        return f"{repo_id}@{revision} {filename}"

    def get_hf_file_metadata(self, url: str) -> SimpleNamespace:
        self.asked.append(f"size {url}")
        name, _, filename = url.partition(" ")
        data = self.repositories[name][filename]
        return SimpleNamespace(size=self.claims.get(filename, len(data)))

    def hf_hub_download(self, repo_id: str, filename: str, *, revision: str) -> str:
        path = self._kept(repo_id, filename, revision)
        if not path.exists():
            self.asked.append(f"file {repo_id}@{revision} {filename}")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(self.repositories[f"{repo_id}@{revision}"][filename])
        return str(path)


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Hub:
    """A hub of the test's own, and an empty cache of what comes from it."""
    found = Hub(tmp_path / "cache")
    monkeypatch.setitem(sys.modules, "huggingface_hub", found)  # type: ignore[arg-type]
    return found
