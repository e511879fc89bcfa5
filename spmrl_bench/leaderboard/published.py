"""Published figures to set beside a run, each with its source.

They are data (``published/*.csv``), not code, so that a figure can be checked and a new
paper added without touching the program. The figures of the paper that is reproduced belong to
variants of our recipes (``kk18.csv``); those of other systems stand by themselves
(``prior_work.csv``, whose order is that of the tables).
"""

from __future__ import annotations

import csv
from collections.abc import Iterable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TypeVar

from spmrl_bench.data import data_dir
from spmrl_bench.errors import RecordError


@dataclass(frozen=True, slots=True)
class Figure:
    """One published number of a model that the recipes have as a variant.

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


@dataclass(frozen=True, slots=True)
class PriorFigure:
    """One published number of another system.

    Attributes:
        system: its name in tables.
        paper: authors, year and venue of the paper that the system is from.
        year: of that paper, or of the release.
        language: as in the manifests.
        treebank: name of the manifest of the treebank it was measured on.
        setting: what to know about it, such as tags or pre-training; may be empty.
        split: ``dev`` or ``test``.
        metric: ``recall``, ``precision`` or ``f1``.
        value: in percent.
        source: where the number was read, with the table.
    """

    system: str
    paper: str
    year: int
    language: str
    treebank: str
    setting: str
    split: str
    metric: str
    value: float
    source: str


COLUMNS = tuple(field.name for field in fields(Figure))
PRIOR_COLUMNS = tuple(field.name for field in fields(PriorFigure))
_MAY_BE_EMPTY = "setting"
_ALLOWED = {"split": ("dev", "test"), "metric": ("recall", "precision", "f1")}

_Row = TypeVar("_Row", Figure, PriorFigure)


def read_figures(path: Path | None = None) -> list[Figure]:
    """The figures of one file; by default those of Kitaev & Klein 2018.

    Raises:
        RecordError: the file cannot be read, a column or a field is missing, or a value is no
            percentage.
    """
    return _read(Figure, path or data_dir("published") / "kk18.csv")


def read_prior_work(path: Path | None = None) -> list[PriorFigure]:
    """Figures of other systems, in the order of the file; by default those of the program.

    Raises:
        RecordError: as :func:`read_figures`.
    """
    return _read(PriorFigure, path or data_dir("published") / "prior_work.csv")


def _read(kind: type[_Row], path: Path) -> list[_Row]:
    columns = [field.name for field in fields(kind)]
    try:
        with path.open(encoding="utf-8", newline="") as stream:
            reader = csv.DictReader(stream)
            if list(reader.fieldnames or ()) != columns:
                raise RecordError(
                    f"{path}:1: columns are {','.join(reader.fieldnames or ())}; "
                    f"needed: {','.join(columns)}"
                )
            return [_figure(kind, row, columns, f"{path}:{reader.line_num}") for row in reader]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise RecordError(f"{path}: cannot read published figures: {error}") from error


def _figure(kind: type[_Row], row: dict[str, str], columns: list[str], place: str) -> _Row:
    if None in row.values() or None in row:
        raise RecordError(f"{place}: needs {len(columns)} fields: {','.join(columns)}")
    for name, text in row.items():
        if not text.strip() and name != _MAY_BE_EMPTY:
            raise RecordError(f"{place}: {name} is empty")
        allowed = _ALLOWED.get(name)
        if allowed and text not in allowed:
            raise RecordError(f"{place}: {name} '{text}'; allowed: {', '.join(allowed)}")
    values: dict[str, object] = {**row, "value": _percentage(row["value"], place)}
    if "year" in row:
        if not row["year"].isdecimal():
            raise RecordError(f"{place}: year '{row['year']}' is not a year")
        values["year"] = int(row["year"])
    return kind(**values)  # type: ignore[arg-type]


def _percentage(text: str, place: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 100:
        raise RecordError(f"{place}: value '{text}' is not a percentage")
    return value


def find_figure(
    figures: Iterable[Figure], *, language: str, variant: str, split: str, metric: str = "f1"
) -> Figure | None:
    """The figure for a language, variant and split, or None where none was published."""
    wanted = (language, variant, split, metric)
    for figure in figures:
        if (figure.language, figure.variant, figure.split, figure.metric) == wanted:
            return figure
    return None
