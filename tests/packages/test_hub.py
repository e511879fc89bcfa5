"""Packages on the hub: pinned, only what belongs, checked, and there without a network."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from spmrl_bench.errors import CheckpointError, PackageError
from spmrl_bench.parsing.models import load_parser
from spmrl_bench.parsing.packages import PACKAGE, located
from tests.packages.hub_server import Hub

MODEL = "elves/parser"
WORDS = ["the", "dog", "sees", "a", "ring"]


def found(model: str) -> str:
    return str(next(load_parser(model, "cpu").parse([WORDS])))


def test_a_pinned_name_gives_the_package_and_nothing_else(
    hub: Hub, package: Path, tmp_path: Path
) -> None:
    (package / "evil.py").write_text("raise SystemExit")
    (package / "pytorch_model.bin").write_bytes(b"\x80\x04.")
    commit = hub.push(MODEL, package)
    (package / "evil.py").unlink()
    assert found(f"{MODEL}@{commit}") == found(str(package))
    asked = {line.rpartition("/")[2] for line in hub.asked if MODEL in line}
    assert asked == {PACKAGE, "parser.json", "weights.safetensors"}
    folder = located(f"{MODEL}@{commit}")
    assert folder.is_relative_to(tmp_path / "cache")
    assert {path.name for path in folder.iterdir()} == asked


def test_what_is_there_needs_no_network(
    hub: Hub, package: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"{MODEL}@{hub.push(MODEL, package)}"
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(PackageError, match=r"package\.json cannot be had from the hub \(.*offline"):
        located(name)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    expected = found(name)
    hub.asked.clear()
    assert found(name) == expected
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    assert found(name) == expected
    assert not any(MODEL in line for line in hub.asked)


def test_what_may_change_is_refused(hub: Hub, package: Path) -> None:
    hub.push(MODEL, package)
    for revision in ("main", ""):
        with pytest.raises(PackageError, match=r"is no commit.* Give the 40 hexadecimal digits"):
            located(f"{MODEL}@{revision}")
    assert hub.asked == []
    with pytest.raises(PackageError, match=r"package\.json cannot be had .*Check name, commit"):
        located(f"{MODEL}@{'0' * 40}")


def test_nobody_is_asked_without_an_at_or_the_library(
    hub: Hub, package: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.push(MODEL, package)
    with pytest.raises(CheckpointError, match="OWNER/NAME@COMMIT"):
        load_parser(MODEL, "cpu")
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(PackageError, match=r"pip install 'spmrl-bench\[hub\]'"):
        located(f"{MODEL}@{'0' * 40}")
    assert hub.asked == []


def test_a_file_that_is_not_the_listed_one_is_refused(hub: Hub, package: Path) -> None:
    name = f"{MODEL}@{hub.push(MODEL, package)}"
    copy = (located(name) / "weights.safetensors").resolve()
    copy.write_bytes(copy.read_bytes()[:-1])
    with pytest.raises(PackageError, match=r"If the copy .*weights\.safetensors was damaged here"):
        located(name)

    weights = package / "weights.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"\1")
    name = f"{MODEL}@{hub.push(MODEL, package)}"
    with pytest.raises(PackageError, match=r"weights\.safetensors: its SHA-256 .* hub is broken"):
        located(name)

    weights.write_bytes(b"")
    hub.claims["weights.safetensors"] = 1 << 40
    name = f"{MODEL}@{hub.push(MODEL, package)}"
    hub.asked.clear()
    with pytest.raises(PackageError, match="the hub says 1099511627776 bytes, where at most"):
        located(name)
    assert not any(line.startswith("GET") and "weights" in line for line in hub.asked)


def test_a_repository_that_is_no_package(hub: Hub, package: Path) -> None:
    (package / PACKAGE).write_text(json.dumps({"format": 1, "files": {"../x.json": {}}}))
    with pytest.raises(PackageError, match=r"has the part '\.\.'"):
        located(f"{MODEL}@{hub.push(MODEL, package)}")
