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


@pytest.mark.parametrize("processes", ["0", pytest.param("2", marks=pytest.mark.campaign)])
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
    assert "| R14 | a checkpoint survives a kill at any moment | 1 | 34 | 1 |" in text
    assert "| R18 | many processes share one store of records | 2 | 6,402 | 0 |" in text
    details = doc.with_suffix(".csv").read_text().splitlines()
    assert [line.rsplit(",", 1)[0] for line in details[1:]] == [
        "R14,kill points,34,1", "R18,readers,2,0", "R18,records,6400,0"
    ]  # fmt: skip
