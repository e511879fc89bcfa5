"""How many lines the program has, room by room, and whether that is within its limits.

Size is a feature: the limits, ``[tool.size]`` in pyproject.toml, are lowered by whoever deletes
and raised by nobody. Counted are the lines of all files that people write, blank ones included.

usage: size.py            print the table; status 1 above a limit
"""

from __future__ import annotations

import sys
import tomllib
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WRITTEN = {".css", ".h", ".jinja", ".js", ".pxi", ".py", ".pyx"}


def lines_of(folder: Path) -> Counter[str]:
    """Lines by the folder below it that a file is in, ``"."`` for those in none."""
    found: Counter[str] = Counter()
    for path in folder.rglob("*"):
        if path.suffix in WRITTEN and path.is_file():
            room = path.relative_to(folder).parts[0]
            found[room if room != path.name else "."] += path.read_bytes().count(b"\n")
    return found


def main() -> int:
    """Print the table; return the exit status."""
    limits: dict[str, int] = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["size"]
    package, tests = lines_of(ROOT / "spmrl_bench"), lines_of(ROOT / "tests")
    print(f"{'room':<14}{'lines':>8}{'tests':>8}")
    for room in sorted(package.keys() | tests.keys(), key=lambda room: -package[room]):
        print(f"{room:<14}{package[room]:>8,}{tests[room]:>8,}")
    status = 0
    sums = {"spmrl_bench": package.total(), "tests": tests.total()}
    for folder, limit in limits.items():
        kept = sums[folder] <= limit
        status |= not kept
        verdict = "" if kept else ": too many"
        print(f"{folder}: {sums[folder]:,} lines, {limit:,} allowed{verdict}")
    return status


if __name__ == "__main__":
    sys.exit(main())
