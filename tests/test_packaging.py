"""Packaging: what make installs is what pyproject.toml asks for, and a wheel works anywhere."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
import venv
import zipfile
from datetime import date
from pathlib import Path
from typing import Any, get_args

import pytest

from spmrl_bench import __version__
from spmrl_bench.experiments.packaging import SOFTWARE
from spmrl_bench.storage.paths import DataKind
from tests.builders import ROOT, process

KEPT_OUT = shutil.ignore_patterns(".*", "build", "dist", "*.egg-info", "*.so")


@pytest.fixture(scope="module")
def project() -> dict[str, Any]:
    with (ROOT / "pyproject.toml").open("rb") as stream:
        table: dict[str, Any] = tomllib.load(stream)
    return table["project"]


def test_constraints_pin_every_requirement(project: dict[str, Any]) -> None:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = [line for line in lines if line and not line.startswith("#")]
    assert [pin for pin in pins if not re.fullmatch(r"[a-z0-9.-]+==[0-9][0-9a-z.]*", pin)] == []
    pinned = {pin.partition("==")[0] for pin in pins}
    extras = project["optional-dependencies"]
    asked = project["dependencies"] + extras["dev"] + extras["docs"] + extras["notebook"]
    names = {re.split(r"[<>=\[ ]", requirement)[0] for requirement in asked}
    assert names - pinned == set()


def test_command_exists(project: dict[str, Any]) -> None:
    module, _, function = project["scripts"]["spmrl-bench"].partition(":")
    imported = __import__(module, fromlist=[function])
    assert callable(getattr(imported, function))


def test_citation_has_the_version_of_the_package() -> None:
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {__version__}\n" in citation
    released = re.search(r'^date-released: "(.+)"$', citation, re.MULTILINE)
    assert date.fromisoformat(released[1]) >= date(2026, 11, 20)


def test_cards_of_models_cite_the_program_as_its_citation_does() -> None:
    cited = SOFTWARE.format(version=__version__)
    assert cited.count("{") == cited.count("}") == 7
    title = re.search(r"title += {{(.+)}}", cited)
    assert f'title: "{title[1]}"' in (ROOT / "CITATION.cff").read_text(encoding="utf-8")


def test_a_source_archive_carries_the_data() -> None:
    lines = (ROOT / "MANIFEST.in").read_text(encoding="utf-8").splitlines()
    assert set(get_args(DataKind)) <= {line.partition(" ")[2] for line in lines}


@pytest.mark.skipif(shutil.which("make") is None, reason="no make")
def test_make_builds_a_changed_kernel_again(tmp_path: Path) -> None:
    done = tmp_path / ".core"
    done.touch()  # later than every source
    kernel = next((ROOT / "spmrl_bench" / "nn").rglob("*.pyx")).relative_to(ROOT)
    for changed, installs in ((), False), (("-W", str(kernel)), True):
        make = ["make", "-n", "LOCK=", f"VENV={tmp_path}", *changed, "table"]
        done_by_make = subprocess.run(make, cwd=ROOT, capture_output=True, text=True, check=True)
        assert ("pip install" in done_by_make.stdout) is installs


@pytest.mark.campaign
def test_a_changed_kernel_is_built_alone(tmp_path: Path) -> None:
    source = shutil.copytree(ROOT / "spmrl_bench", tmp_path / "spmrl_bench", ignore=KEPT_OUT)
    for name in ("setup.py", "pyproject.toml", "README.md"):
        shutil.copy(ROOT / name, tmp_path)
    named = {"SPMRL_BENCH_KERNELS": "chart._spans,chart._joint"}

    def built() -> dict[str, int]:
        build = [sys.executable, "setup.py", "-q", "build_ext", "--inplace"]
        subprocess.run(build, cwd=tmp_path, env=os.environ | named, check=True)
        return {path.name[:6]: path.stat().st_mtime_ns for path in source.rglob("*.so")}

    first = built()
    (source / "chart" / "_spans.pyx").touch()
    second = built()
    assert first.keys() == {"_spans", "_joint"}
    assert second["_joint"] == first["_joint"]
    assert second["_spans"] > first["_spans"]


@pytest.mark.campaign
def test_wheel_carries_the_data_and_works_outside_a_checkout(tmp_path: Path) -> None:
    # A copy, since a build leaves files beside the sources and takes up what it finds there.
    source = shutil.copytree(ROOT, tmp_path / "source", ignore=KEPT_OUT)
    build = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "-q"]
    subprocess.run([*build, "-w", str(tmp_path), str(source)], check=True)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        carried = {Path(name) for name in archive.namelist()}
    for kind in get_args(DataKind):
        files = {path for path in (ROOT / kind).rglob("*") if path.is_file()}
        assert files
        data = Path("spmrl_bench/_data")
        assert {data / path.relative_to(ROOT) for path in files} <= carried

    # The libraries come from this environment, the package from the wheel alone.
    venv.create(tmp_path / "venv", system_site_packages=False, with_pip=False)
    site = next((tmp_path / "venv").glob("lib/python*/site-packages"))
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    libraries = [path for path in sys.path if path.endswith("site-packages")]
    (site / "libraries.pth").write_text("\n".join(libraries) + "\n", encoding="utf-8")
    code = "from spmrl_bench import cli; print(cli.__file__); cli.main()"
    for command in ("recipes list", "treebanks list", "results table"):
        program = tmp_path / "venv" / "bin" / "python"
        result = process(program, "-Ic", code, *command.split(), cwd=tmp_path)
        assert str(site) in result.stdout, result.stderr
        assert "german-mini" in result.stdout
