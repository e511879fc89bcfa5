"""Branches that the tests reach, room by room, and whether that is as many as CI holds.

The limits, ``[tool.coverage_of_rooms]`` in pyproject.toml, are raised by whoever reaches more.

usage: coverage.py REPORT          of `pytest --cov --cov-branch --cov-report=json:REPORT`
"""

from __future__ import annotations

import json
import sys
import tomllib
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def main() -> int:
    """Print the table; return the exit status."""
    limits = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["coverage_of_rooms"]
    report = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    reached: Counter[str] = Counter()
    there: Counter[str] = Counter()
    for name, file in report["files"].items():
        parts = Path(name).parts
        room = parts[1] if len(parts) > 2 else "."
        found = file["summary"]
        reached[room] += found["covered_branches"]
        there[room] += found["num_branches"]
    status = 0
    print(f"{'room':<14}{'branches':>10}{'reached':>10}")
    for room in sorted(filter(there.get, there)):
        share = 100 * reached[room] / there[room]
        kept = share >= limits.get(room, 0.0)
        status |= not kept
        verdict = "" if kept else f"  too few: {limits[room]:g} % are held"
        print(f"{room:<14}{there[room]:>10,}{share:>9.1f}%{verdict}")
    return status


if __name__ == "__main__":
    sys.exit(main())
