"""Data folders are found beside the package, or inside it when installed from a wheel."""

from __future__ import annotations

from pathlib import Path

import pytest

from spmrl_bench.errors import SpmrlError
from spmrl_bench.storage import paths as data


def test_checkout_folder_is_found() -> None:
    assert data.data_dir("treebanks") == Path(__file__).resolve().parents[2] / "treebanks"


def test_folder_inside_the_package_comes_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "spmrl_bench"
    (package / "_data" / "recipes").mkdir(parents=True)
    (tmp_path / "recipes").mkdir()
    monkeypatch.setattr(data, "_PACKAGE", package)
    assert data.data_dir("recipes") == package / "_data" / "recipes"


def test_unknown_kind_names_near_matches() -> None:
    with pytest.raises(SpmrlError, match=r"unknown kind of data 'recipe'\. Did you mean recipes"):
        data.data_dir("recipe")  # type: ignore[arg-type]


def test_absent_folder_says_where_it_looked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(data, "_PACKAGE", tmp_path / "spmrl_bench")
    with pytest.raises(SpmrlError, match=r"no folder of evalb: looked in .*_data/evalb and "):
        data.data_dir("evalb")
