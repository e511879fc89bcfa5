"""The numbers of a page for other programs: the same rows as CSV and as JSON.

Numbers are unrounded. Nothing here is of a sentence but its number, its length and its counts.
"""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

Row = Mapping[Any, Any]
Files = dict[str, bytes]
"""Content by address."""


def as_files(address: str, rows: Sequence[Row]) -> Files:
    """``ADDRESS.csv`` and ``ADDRESS.json``; the columns are those of any row, in their order."""
    columns = list(dict.fromkeys(key for row in rows for key in row))
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([_plain(row.get(key)) for key in columns] for row in rows)
    return {f"{address}.csv": text.getvalue().encode(), f"{address}.json": as_json(rows)}


def as_json(content: Any) -> bytes:
    """JSON with a row on each line, where it is a list; NaN is null."""
    if isinstance(content, Sequence) and not isinstance(content, str):
        lines = ",\n".join(_dumped(dict(row)) for row in content)
        return f"[\n{lines}\n]\n".encode() if lines else b"[]\n"
    return f"{_dumped(content)}\n".encode()


def links(address: str) -> list[tuple[str, str]]:
    """Formats and addresses of both files."""
    return [("CSV", f"{address}.csv"), ("JSON", f"{address}.json")]


def _dumped(content: Any) -> str:
    if isinstance(content, dict):
        content = {key: None if _missing(value) else value for key, value in content.items()}
    return json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _plain(value: Any) -> Any:
    return "" if _missing(value) else value


def _missing(value: Any) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))
