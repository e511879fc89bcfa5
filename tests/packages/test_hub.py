"""Packages on the hub: pinned, only what belongs, checked, and there without a network."""

from __future__ import annotations

import inspect
import json
import sys
from pathlib import Path

import pytest

from spmrl_bench.errors import CheckpointError, PackageError
from spmrl_bench.parsing.models import PACKAGE, load_parser, located
from tests.packages.conftest import Hub

MODEL = "elves/parser"
WORDS = ["the", "dog", "sees", "a", "ring"]


def found(model: str) -> str:
    return str(next(load_parser(model, "cpu").parse([WORDS])))


def test_a_pinned_name_gives_the_package_and_nothing_else_and_asks_once(
    hub: Hub, package: Path, tmp_path: Path
) -> None:
    (package / "evil.py").write_text("raise SystemExit")
    (package / "pytorch_model.bin").write_bytes(b"\x80\x04.")
    name = hub.push(MODEL, package)
    assert found(name) == found(str(package))
    files = {PACKAGE, "parser.json", "temperature.json", "weights.safetensors"}
    assert {line.rpartition(" ")[2] for line in hub.asked} == files
    folder = located(name)
    assert folder.is_relative_to(tmp_path / "cache")
    assert {path.name for path in folder.iterdir()} == files
    hub.asked.clear()
    assert found(name) == found(str(package))
    assert hub.asked == []


def test_the_library_is_called_as_it_wants_to_be() -> None:
    library = pytest.importorskip("huggingface_hub")
    for name, function in vars(Hub).items():
        if name.startswith(("try_", "hf_", "get_")):
            parameters = inspect.signature(getattr(library, name)).parameters
            assert inspect.signature(function).parameters.keys() - {"self"} <= parameters.keys()


def test_what_may_change_or_is_not_there_is_refused(
    hub: Hub, package: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.push(MODEL, package)
    for revision in ("main", ""):
        with pytest.raises(PackageError, match=r"is no commit.* Give the 40 hexadecimal digits"):
            located(f"{MODEL}@{revision}")
    with pytest.raises(CheckpointError, match="OWNER/NAME@COMMIT"):
        load_parser(MODEL, "cpu")
    assert hub.asked == []
    with pytest.raises(PackageError, match=r"package\.json cannot be had .*Check name, commit"):
        located(f"{MODEL}@{'0' * 40}")
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "huggingface_hub", None)
        with pytest.raises(PackageError, match=r"pip install 'spmrl-bench\[hub\]'"):
            located(f"{MODEL}@{'0' * 40}")
    (package / PACKAGE).write_text(json.dumps({"format": 1, "files": {"../x.json": {}}}))
    with pytest.raises(PackageError, match=r"has the part '\.\.'"):
        located(hub.push(MODEL, package))


def test_a_file_that_is_not_the_listed_one_is_refused(hub: Hub, package: Path) -> None:
    name = hub.push(MODEL, package)
    copy = located(name) / "weights.safetensors"
    copy.write_bytes(copy.read_bytes()[:-1])
    with pytest.raises(PackageError, match=r"If the copy .*weights\.safetensors was damaged here"):
        located(name)

    weights = package / "weights.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"\1")
    with pytest.raises(PackageError, match=r"weights\.safetensors: its SHA-256 .* hub is broken"):
        located(hub.push(MODEL, package))

    weights.write_bytes(b"")
    hub.claims["weights.safetensors"] = 1 << 40
    hub.asked.clear()
    with pytest.raises(PackageError, match="the hub says 1099511627776 bytes, where at most"):
        located(hub.push(MODEL, package))
    assert not any(line.startswith("file") and "weights" in line for line in hub.asked)
