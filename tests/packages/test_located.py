"""Every way to name a model leads to the same parser, and none runs what came with it."""

from __future__ import annotations

import importlib
import json
import shutil
import sys
import zipfile
from pathlib import Path

import pytest

from spmrl_bench import load_parser
from spmrl_bench.errors import CheckpointError, PackageError
from spmrl_bench.packages.description import PACKAGE
from spmrl_bench.packages.located import installed_models, located
from tests.builders import cli
from tests.packages.conftest import NAME

WORDS = ["the", "dog", "sees", "a", "ring"]


def found(model: str | Path) -> str:
    return str(next(load_parser(model, "cpu").parse([WORDS])))


@pytest.fixture
def expected(packages: Path) -> str:
    return found(packages / NAME)


@pytest.fixture
def installed(packages: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of installed packages with the wheel, whose module cannot be imported."""
    site = tmp_path / "site"
    (wheel,) = packages.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    (site / NAME / "__init__.py").write_text("raise SystemExit('imported')")
    monkeypatch.syspath_prepend(site)
    return site


def test_zip_files_and_wheels_are_unpacked_once(
    packages: Path, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPMRL_BENCH_HOME", str(tmp_path))
    for archive in (*packages.glob("*.zip"), *packages.glob("*.whl")):
        assert found(archive) == found(str(archive)) == expected
        folder = located(archive)
        assert {path.name for path in folder.iterdir()} == {
            PACKAGE,
            "parser.json",
            "weights.safetensors",
        }
    assert len(list((tmp_path / "models").iterdir())) == 2


def test_an_archive_made_by_hand(
    package: Path, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPMRL_BENCH_HOME", str(tmp_path / "home"))
    (package / "notes.py").write_text("raise SystemExit")
    flat = shutil.make_archive(str(tmp_path / "flat"), "zip", package)
    inside = shutil.make_archive(str(tmp_path / "inside"), "zip", package.parent, NAME)
    assert found(flat) == found(inside) == expected
    assert not list((tmp_path / "home").rglob("notes.py"))


def test_an_installed_model_is_found_without_an_import(installed: Path, expected: str) -> None:
    assert installed_models() == [NAME]
    assert located(NAME) == located(NAME.replace("_", "-")) == installed / NAME
    assert found(NAME) == expected
    assert NAME not in sys.modules
    (installed / NAME / PACKAGE).unlink()
    with pytest.raises(PackageError, match="Install it again"):
        located(NAME)


def test_the_module_of_a_wheel_loads_its_parser(
    packages: Path, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (wheel,) = packages.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    try:
        module = importlib.import_module(NAME)
        assert str(next(module.load("cpu").parse([WORDS]))) == expected
        assert module.__version__ == "1.2"
        assert Path(module.__file__ or "").parent == module.FOLDER == tmp_path / NAME
    finally:
        sys.modules.pop(NAME, None)


def test_what_lies_here_comes_first(
    installed: Path, package: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(package.parent)
    assert located(NAME) == Path(NAME)
    monkeypatch.chdir(installed.parent / "site")
    assert located(NAME.replace("_", "-")) == installed / NAME


def test_the_command_and_nltk_take_all_of_them(
    packages: Path, installed: Path, expected: str
) -> None:
    from spmrl_bench.integrations.nltk_parser import NltkParser

    (archive,) = packages.glob("*.zip")
    text = " ".join(WORDS)
    for model in (str(packages / NAME), str(archive), NAME):
        options = ["parse", "--device", "cpu", "--model", model]
        result = cli(*options, stdin=text)
        assert (result.exit_code, result.stdout.strip()) == (0, expected), result.stderr
        assert NltkParser(model, device="cpu").parse_one(WORDS).leaves() == WORDS
    bracketed = ["parse", "--device", "cpu", "--model", NAME, "--input", "brackets"]
    result = cli(*bracketed, stdin="(S (DT the) (NN dog))")
    assert result.exit_code == 0, result.stderr
    assert "(DT the)" in result.stdout


def test_what_is_not_there(tmp_path: Path) -> None:
    for name in ("nothing", "nothing/here", "spmrl_bench_nothing"):
        assert located(name) == Path(name)
        with pytest.raises(CheckpointError, match=f"{name}: no trained parser here.*@COMMIT"):
            load_parser(name, "cpu")
    file = tmp_path / "file"
    file.write_text("text")
    with pytest.raises(PackageError, match="a file, and no zip archive of a package"):
        load_parser(file, "cpu")


def test_an_unpacked_copy_that_was_touched(
    packages: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPMRL_BENCH_HOME", str(tmp_path))
    (archive,) = packages.glob("*.zip")
    folder = located(archive)
    content = json.loads((folder / "parser.json").read_text())
    (folder / "parser.json").write_text(json.dumps(content))
    with pytest.raises(PackageError, match=f"not the one that was made. Remove {folder}"):
        load_parser(archive, "cpu")
    shutil.rmtree(folder)
    load_parser(archive, "cpu")


def test_a_home_that_cannot_be_written(
    packages: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPMRL_BENCH_HOME", str(tmp_path))
    (tmp_path / "models").write_text("in the way")
    (archive,) = packages.glob("*.zip")
    with pytest.raises(PackageError, match="cannot be unpacked there"):
        load_parser(archive, "cpu")
