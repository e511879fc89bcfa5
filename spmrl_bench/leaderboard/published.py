"""Published figures to set beside a run, each with its source.

They are data (``published/*.csv``), not code, so that a figure can be checked and a new paper
added without touching the program: one file for a paper or for a collection, in the order of
the tables. A figure of a model that a recipe has as a variant names the variant and the settings
that a run must have to be that model; only with such a run is it compared.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from spmrl_bench.data import data_dirs
from spmrl_bench.errors import RecordError, unknown_name
from spmrl_bench.leaderboard.comparison import SPLITS
from spmrl_bench.leaderboard.estimates import Key
from spmrl_bench.leaderboard.identity import defaults
from spmrl_bench.scoring.metric import METRICS, metric_named


@dataclass(frozen=True, slots=True)
class PublishedFigure:
    """One published number.

    Attributes:
        system: its name in tables, such as ``K&K18``.
        paper: authors, year and venue of the paper that the system is from.
        year: of that paper, or of the release.
        language: as in the manifests, such as ``german``.
        treebank: name of the manifest of the treebank it was measured on.
        setting: what to know about it, such as tags or pre-training; may be empty.
        variant: that a recipe has of this model; empty for other systems.
        recipe: settings that a run of the variant must have to be this model, as ``KEY=VALUE``
            with JSON values, separated by blanks; empty for other systems.
        split: ``dev`` or ``test``.
        metric: name of a metric of the program.
        figure: name of one of its figures.
        value: in percent.
        source: where the number was read, with the table.
    """

    system: str
    paper: str
    year: int
    language: str
    treebank: str
    setting: str
    variant: str
    recipe: str
    split: str
    metric: str
    figure: str
    value: float
    source: str

    @property
    def key(self) -> Key:
        """Split, metric and figure."""
        return self.split, self.metric, self.figure

    def is_of(self, settings: Mapping[str, Any]) -> bool:
        """Whether it is of a model with these resolved settings.

        Of what :attr:`recipe` does not name, the model has the defaults; its precision and the
        length of its training may be others.
        """
        usual = defaults(str(settings.get("kind", "chart")))
        model = {key: value for key, value in usual.items() if key.startswith("model.")}
        model.pop("model.precision", None)
        needed = model | _recipe(self.recipe)
        return bool(self.recipe) and all(
            settings.get(key, usual.get(key)) == value for key, value in needed.items()
        )


COLUMNS = tuple(field.name for field in fields(PublishedFigure))
_MAY_BE_EMPTY = ("setting", "variant", "recipe")


def read_published(path: Path | None = None) -> list[PublishedFigure]:
    """The figures of one file; by default of all that the program and the user have.

    Raises:
        RecordError: a file cannot be read, a column or a field is missing, or a value is no
            percentage.
    """
    if path is None:
        files = [file for folder in data_dirs("published") for file in sorted(folder.glob("*.csv"))]
        return [figure for file in files for figure in read_published(file)]
    try:
        with path.open(encoding="utf-8", newline="") as stream:
            reader = csv.DictReader(stream)
            if tuple(reader.fieldnames or ()) != COLUMNS:
                raise RecordError(
                    f"{path}:1: columns are {','.join(reader.fieldnames or ())}; "
                    f"needed: {','.join(COLUMNS)}"
                )
            read = [_figure(row, f"{path}:{reader.line_num}") for row in reader]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise RecordError(f"{path}: cannot read published figures: {error}") from error
    return read


def _figure(row: dict[str, str], place: str) -> PublishedFigure:
    if None in row.values() or None in row:
        raise RecordError(f"{place}: needs {len(COLUMNS)} fields: {','.join(COLUMNS)}")
    for name, text in row.items():
        if not text.strip() and name not in _MAY_BE_EMPTY:
            raise RecordError(f"{place}: {name} is empty")
    for name, known in (("split", SPLITS), ("metric", METRICS.names())):
        if row[name] not in known:
            raise RecordError(f"{place}: {unknown_name(name, row[name], known)}")
    figures = metric_named(row["metric"]).figures
    if row["figure"] not in figures:
        raise RecordError(f"{place}: {unknown_name('figure', row['figure'], figures)}")
    if not row["year"].isdecimal():
        raise RecordError(f"{place}: year '{row['year']}' is not a year")
    try:
        _recipe(row["recipe"])
    except ValueError:
        raise RecordError(f"{place}: recipe '{row['recipe']}' is not KEY=VALUE ...") from None
    values: dict[str, Any] = {
        **row,
        "year": int(row["year"]),
        "value": _percentage(row["value"], place),
    }
    return PublishedFigure(**values)


def _recipe(text: str) -> dict[str, Any]:
    """Settings by key.

    Raises:
        ValueError: a word is no ``KEY=VALUE``, or the value is no JSON.
    """
    pairs = (word.partition("=") for word in text.split())
    return {key: json.loads(value) for key, _, value in pairs}


def _percentage(text: str, place: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 100:
        raise RecordError(f"{place}: value '{text}' is not a percentage")
    return value
