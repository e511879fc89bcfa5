"""The system that the tests of this folder train and run."""

from __future__ import annotations

import pytest

from spmrl_bench.systems.description import SystemDescription
from tests.laboratory import Laboratory
from tests.systems.flat import DESCRIPTION, DRIVER


@pytest.fixture
def flat(laboratory: Laboratory) -> SystemDescription:
    """A system whose trees have two constituents."""
    (laboratory.folder / "flat.py").write_text(DRIVER)
    path = laboratory.folder / "flat.toml"
    path.write_text(DESCRIPTION)
    return SystemDescription.read(path)
