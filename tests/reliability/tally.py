"""How many cases each property was tried with: counted by the tests, written by the run itself.

A test that holds a property asks for the fixture ``tally`` and says what it tries::

    def test_kills(tally):
        held = tally("R14", "kill points of a save")
        for point in ...:
            held.add()  # tried
            assert ...

The counts travel with pytest's reports, so processes of pytest-xdist may share the work. At the
end they are printed, and ``--reliability-report FILE`` writes them into the part of a Markdown
file between the two marks below, a row a property, and all of them into a CSV file beside it. A
test that fails counts as one failure beside what it tried.
"""

from __future__ import annotations

import csv
import platform
import re
from collections import defaultdict
from collections.abc import Callable
from datetime import date
from pathlib import Path

import pytest

from tests.reliability.properties import PROPERTIES

BEGIN, END = "<!-- counts: written by make campaign -->", "<!-- end of counts -->"
_NAME = "reliability"


class Held:
    """How often one thing was tried by one test; lies in the test's report."""

    def __init__(self, item: pytest.Item, number: str, what: str) -> None:
        assert number in PROPERTIES, f"no property {number}: see tests/reliability/properties.py"
        self._item, self._number, self._what = item, number, what
        self._place = len(item.user_properties)
        item.user_properties.append((_NAME, [number, what, 0]))

    def add(self, tried: int = 1) -> None:
        """Count cases that were tried, before what they give is looked at."""
        before = self._item.user_properties[self._place][1][2]
        self._item.user_properties[self._place] = (
            _NAME,
            [self._number, self._what, before + tried],
        )


Tally = Callable[[str, str], Held]


@pytest.fixture
def tally(request: pytest.FixtureRequest) -> Tally:
    """``tally("R14", "kill points")`` gives a :class:`Held` that counts for that property."""
    return lambda number, what: Held(request.node, number, what)


class Report:
    """Adds up what the tests of a run, in whatever processes, have counted."""

    def __init__(self, path: Path | None, marks: str) -> None:
        self._path = path
        self._run = "The quick tests" if marks == "not campaign" else "The campaign"
        self.counts: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0])
        self.files: dict[tuple[str, str], set[str]] = defaultdict(set)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when != "call" or report.skipped:
            return
        for name, value in report.user_properties:
            if name == _NAME:
                number, what, tried = value
                count = self.counts[number, what]
                count[0] += tried
                count[1] += report.failed
                self.files[number, what].add(report.nodeid.partition("::")[0])

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self._path is None:
            return
        terminalreporter.section("properties held")
        terminalreporter.write_line(self.table())
        text = self._path.read_text(encoding="utf-8")
        marked = re.compile(f"{re.escape(BEGIN)}.*{re.escape(END)}", re.DOTALL)
        assert marked.search(text), f"{self._path}: no lines {BEGIN!r} and {END!r}"
        written = f"{BEGIN}\n\n{self.table()}\n\n{END}"
        self._path.write_text(marked.sub(lambda _: written, text), encoding="utf-8")
        self.write_details(self._path.with_suffix(".csv"))

    def table(self) -> str:
        """The counts as a Markdown table, a row for each property."""
        lines = [
            f"{self._run} on {date.today()}, Python {platform.python_version()}, "
            f"{platform.system()} {platform.machine()}.",
            "",
            "| | property | things tried | cases | failed |",
            "|---|---|---:|---:|---:|",
        ]
        for number, title in PROPERTIES.items():
            own = [count for (of, _), count in self.counts.items() if of == number]
            if own:
                tried, failed = map(sum, zip(*own, strict=True))
                lines.append(f"| {number} | {title} | {len(own)} | {tried:,} | {failed} |")
        return "\n".join(lines)

    def write_details(self, path: Path) -> None:
        """A row of CSV for each thing that was tried, with the tests that tried it."""
        with path.open("w", encoding="utf-8", newline="") as file:
            rows = csv.writer(file, lineterminator="\n")
            rows.writerow(("property", "what was tried", "cases", "failed", "in"))
            for number in PROPERTIES:
                for (of, what), count in sorted(self.counts.items()):
                    if of == number:
                        rows.writerow((of, what, *count, " ".join(sorted(self.files[of, what]))))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--reliability-report",
        type=Path,
        metavar="FILE",
        help="write how often each property was tried into FILE, between its marks",
    )


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):  # the processes of pytest-xdist only send reports
        path, marks = map(config.getoption, ("--reliability-report", "-m"))
        config.pluginmanager.register(Report(path, marks))
