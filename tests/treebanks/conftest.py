"""Small treebanks of the test's own making."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests import laboratory
from tests.laboratory import toml

WriteManifest = Callable[..., Path]

MANIFEST = {key: toml(value) for key, value in laboratory.MANIFEST.items()} | {
    "path": '"tiny_data"',
    "transforms": '["drop-traces", "strip-root"]',
    "splits.train": '{ files = ["a_*.mrg"], sentences = 3, tokens = 5 }',
    "splits.dev": '{ files = ["d_{08..10}.mrg"], sentences = 3 }',
    "splits.test": '{ files = ["t.mrg"], sentences = 1 }',
}

FILES = {
    "a_1.mrg": "( (S (N a) (-NONE- *)))\n( (S (-NONE- *)))\n(S (N b) (N c))\n",
    "a_2.mrg": "( (S (N d) (N e)))\n",
    "d_08.mrg": "(S (N f))",
    "d_09.mrg": "(S (N g))",
    "d_10.mrg": "(S (N h))",
    "t.mrg": "(S (N i) (N -LRB-))",
}


@pytest.fixture
def manifests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> WriteManifest:
    """Writes ``<name>.toml`` with keys changed (or left out: None); only these are known."""
    folder = tmp_path / "manifests"
    folder.mkdir()
    monkeypatch.setattr("spmrl_bench.treebanks.catalogue.data_dirs", lambda kind: [folder])

    def write(file_name: str = "tiny", **changes: str | None) -> Path:
        fields = {**MANIFEST, "name": f'"{file_name}"', **changes}
        path = folder / f"{file_name}.toml"
        lines = [f"{key} = {value}\n" for key, value in fields.items() if value is not None]
        path.write_text("".join(lines), encoding="utf-8")
        return path

    return write


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A directory of treebanks with the files of the tiny one."""
    folder = tmp_path / "treebanks" / "tiny_data"
    folder.mkdir(parents=True)
    for name, text in FILES.items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder.parent
