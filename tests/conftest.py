"""What several test modules share: settings of all tests, and the way to the shared data."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, settings

from spmrl_bench.parsers.baselines import AttachNeighbour
from spmrl_bench.treebanks.treebank import Treebank
from tests.laboratory import Laboratory, build_laboratory

pytest_plugins = ["tests.reliability.tally"]

# Generated examples are the same in every run, and a busy machine is no failure.
COMMON = {
    "derandomize": True, "deadline": None, "suppress_health_check": [HealthCheck.too_slow],
}  # fmt: skip
settings.register_profile("quick", max_examples=25, **COMMON)
settings.register_profile("campaign", max_examples=100, **COMMON)


def pytest_configure(config: pytest.Config) -> None:
    settings.load_profile("quick" if config.option.markexpr == "not campaign" else "campaign")


# The terminal of whoever runs the tests does not decide how wide and colourful messages are.
for name in ("FORCE_COLOR", "GITHUB_ACTIONS", "PY_COLORS", "TTY_COMPATIBLE", "TERMINAL_WIDTH"):
    os.environ.pop(name, None)
os.environ["COLUMNS"] = "80"

# Background jobs of a shell and of nohup ignore these, and so would programs that tests start.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)

PATIENCE = 600.0
"""Seconds that a test waits for another process: only one that hangs can need as many."""


def until(happened: Callable[[], object]) -> None:
    """Wait for something."""
    end = time.monotonic() + PATIENCE
    while not happened():
        assert time.monotonic() < end
        time.sleep(0.05)


def shared_data(relative: str) -> Path:
    """Path of a file or folder of the shared data, e.g. ``shared_data("treebanks/squoia_de")``.

    The data are under the directory that ``SHARED_DATA`` names, or in ``shared`` beside the
    checkout. The test, or the module when called at its top, is skipped where they are absent.
    """
    default = Path(__file__).resolve().parents[2] / "shared"
    path = Path(os.environ.get("SHARED_DATA", default)) / relative
    if not path.exists():
        pytest.skip(f"no shared data at {path} (set SHARED_DATA)", allow_module_level=True)
    return path


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Bytes are called after their parameter: what they hold may be long or compressed."""
    return argname if isinstance(val, bytes) else None


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """Torch is as it was, with the same random numbers, whichever tests ran before."""
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("highest")


@pytest.fixture(scope="session", autouse=True)
def _own_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Manifests, recipes and stored treebanks of whoever runs the tests play no part in them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPMRL_BENCH_HOME", str(tmp_path_factory.mktemp("home")))
        patch.delenv("SPMRL_BENCH_CACHE", raising=False)
        patch.delenv("TREEBANKS", raising=False)
        yield


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's own folder, where nothing is yet."""
    monkeypatch.setenv("SPMRL_BENCH_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture(scope="session")
def neighbours(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A saved parser of dependencies without weights: every word hangs from the next."""
    path = tmp_path_factory.mktemp("neighbours")
    counted = {"side": "right", "root": "root", "any": "dep", "by_tag": {"D": "det"}}
    AttachNeighbour(counted).save(path)
    return path


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A saved parser of trees that takes eight words."""
    from tests.builders import tiny  # which imports this module

    path = tmp_path_factory.mktemp("parser")
    tiny(seed=3, max_positions=10).save(path)
    return path


@pytest.fixture
def laboratory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Laboratory:
    """Tiny treebanks and a recipe, in use; the working directory is a folder of its own."""
    laboratory = build_laboratory(tmp_path / "laboratory")
    laboratory.in_use(monkeypatch)
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    return laboratory


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The splits whose sentences were read, in order."""
    splits: list[str] = []
    real = Treebank.data

    def noted(bank: Treebank, split: str, *rest: object) -> object:
        splits.append(split)
        return real(bank, split, *rest)

    monkeypatch.setattr(Treebank, "data", noted)
    return splits
