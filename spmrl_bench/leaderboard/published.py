"""Published figures to set beside a run, each with its source.

They are data (``published/*.csv``), not code, so that a figure can be checked and a new
paper added without touching the program.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from spmrl_bench.data import data_dir
from spmrl_bench.errors import RecordError

COLUMNS = ("system", "language", "treebank", "variant", "split", "metric", "value", "source")


@dataclass(frozen=True, slots=True)
class Figure:
    """One published number.

    Attributes:
        system: short name of the paper, such as ``K&K18``.
        language: as in the manifests, such as ``german``.
        treebank: name of the manifest of the treebank it was measured on.
        variant: lexical variant, named as in the recipes.
        split: ``dev`` or ``test``.
        metric: ``recall``, ``precision`` or ``f1``.
        value: in percent.
        source: paper and table.
    """

    system: str
    language: str
    treebank: str
    variant: str
    split: str
    metric: str
    value: float
    source: str


def read_figures(path: Path | None = None) -> list[Figure]:
    """The figures of one file; by default those of Kitaev & Klein 2018.

    Raises:
        RecordError: the file cannot be read, a column is missing, or a value is no percentage.
    """
    path = path or data_dir("published") / "kk18.csv"
    try:
        with path.open(encoding="utf-8", newline="") as stream:
            reader = csv.DictReader(stream)
            if tuple(reader.fieldnames or ()) != COLUMNS:
                raise RecordError(
                    f"{path}:1: columns are {','.join(reader.fieldnames or ())}; "
                    f"needed: {','.join(COLUMNS)}"
                )
            return [_figure(row, path, reader.line_num) for row in reader]
    except (OSError, UnicodeDecodeError) as error:
        raise RecordError(f"{path}: cannot read published figures: {error}") from error


def _figure(row: dict[str, str], path: Path, line: int) -> Figure:
    if None in row.values() or None in row:
        raise RecordError(f"{path}:{line}: needs {len(COLUMNS)} fields: {','.join(COLUMNS)}")
    try:
        value = float(row["value"])
    except ValueError:
        value = -1.0
    if not 0 <= value <= 100:
        raise RecordError(f"{path}:{line}: value '{row['value']}' is not a percentage")
    return Figure(**{**row, "value": value})  # type: ignore[arg-type]


def find_figure(
    figures: Iterable[Figure], *, language: str, variant: str, split: str, metric: str = "f1"
) -> Figure | None:
    """The figure for a language, variant and split, or None where none was published."""
    wanted = (language, variant, split, metric)
    for figure in figures:
        if (figure.language, figure.variant, figure.split, figure.metric) == wanted:
            return figure
    return None
