"""The counts in the docs are those of the tests that ran."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.reliability.tally import BEGIN, END

pytest_plugins = ["pytester"]

TESTS = """
import pytest

@pytest.mark.parametrize("points", [3, 40])
def test_kills(tally, points):
    held = tally("R14", "kill points")
    for point in range(points):
        held.add()
        assert point < 30

def test_records(tally):
    tally("R18", "records").add(6400)
    tally("R18", "readers").add(2)

def test_skipped(tally):
    tally("R18", "records").add(1)
    pytest.skip("no disk")
"""


@pytest.mark.parametrize("processes", ["0", "2"])
def test_counts_of_all_processes_are_added_up(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, processes: str
) -> None:
    root = Path(__file__).parents[2]
    monkeypatch.setenv("PYTHONPATH", str(root))
    pytester.makepyfile(TESTS)
    doc = pytester.path / "reliability.md"
    doc.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    result = pytester.runpytest_subprocess(
        "-p", "tests.reliability.tally", "-n", processes, f"--reliability-report={doc}"
    )
    result.assert_outcomes(passed=2, failed=1, skipped=1)
    text = doc.read_text()
    assert "old" not in text
    assert text.startswith("before\n")
    assert text.endswith("\nafter\n")
    rows = [line for line in text.splitlines() if line.startswith("| ") and ".py" in line]
    assert "| kill points | 34 | 1 |" in rows[0]
    assert "| readers | 2 | 0 |" in rows[1]
    assert rows[1].startswith("| R18 |")
    assert "| records | 6,400 | 0 |" in rows[2]
    assert rows[2].startswith("|  |  |")
