"""What several tests of executors need."""

from __future__ import annotations

import pytest

from spmrl_bench.process.executors import units


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is said while units are done."""
    lines: list[str] = []
    monkeypatch.setattr(units, "say", lines.append)
    return lines
