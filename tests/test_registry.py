"""Parts by name: the program's own, and those of installed packages, which come by entry points."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from spmrl_bench.errors import RecipeError
from spmrl_bench.registry import Registry

ENTRY_POINTS = """\
[spmrl_bench.spices]
saffron = math:tau
cumin = math:pi
salt = math:inf
gone = no_such_module:x
empty = math:no_such_name
[spmrl_bench.herbs]
basil = math:pi
"""


@pytest.fixture
def spices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Registry[float]:
    """Where a package is installed that names five spices, of which one is the program's."""
    info = tmp_path / "spices-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: spices\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(ENTRY_POINTS)
    monkeypatch.syspath_prepend(str(tmp_path))
    return Registry("spice", "spmrl_bench.spices", {"salt": "math:e", "pepper": 3.0})


def test_packages_add_names_behind_the_programs_own_and_replace_none(
    spices: Registry[float],
) -> None:
    assert spices.names() == ["salt", "pepper", "cumin", "empty", "gone", "saffron"]
    found = [spices.get(name) for name in ("salt", "pepper", "cumin", "saffron")]
    assert found == [math.e, 3.0, math.pi, math.tau]


def test_unknown_names_have_near_ones(spices: Registry[float]) -> None:
    with pytest.raises(
        RecipeError,
        match=r"unknown spice 'cumni'. Did you mean cumin\? Known: cumin, empty, gone, p",
    ):
        spices.get("cumni", RecipeError)


def test_a_package_that_is_broken_is_named_when_it_is_asked_for(spices: Registry[float]) -> None:
    for name in ("gone", "empty"):
        with pytest.raises(RecipeError, match=rf"spice {name}: cannot import .*no_such_"):
            spices.get(name, RecipeError)
