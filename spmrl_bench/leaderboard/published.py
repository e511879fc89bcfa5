"""Published figures to set beside a run, each with its source.

They are data (``published/*.csv``), not code, so that a figure can be checked and a new paper
added without touching the program: one file for a paper or for a collection, in the order of
the tables. A figure of a model that a recipe has as a variant names the variant and the settings
that a run must have to be that model; only with such a run is it compared.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from spmrl_bench.errors import RecordError, ScoreError
from spmrl_bench.leaderboard.identity import agrees
from spmrl_bench.leaderboard.store import file_bytes, files_of, problems
from spmrl_bench.scoring.metric import SelectionMetric, metric_named
from spmrl_bench.storage.json import parse_json
from spmrl_bench.storage.paths import data_dirs

Text = Annotated[str, Field(min_length=1)]


class PublishedFigure(BaseModel):
    """One published number; the fields are the columns of a file."""

    model_config = ConfigDict(extra="forbid", frozen=True, str_strip_whitespace=True)

    system: Text  # its name in tables, such as K&K18
    paper: Text  # authors, year and venue of the paper that the system is from
    year: int  # of that paper, or of the release
    language: Text  # as in the manifests, such as german
    treebank: Text  # name of the manifest of the treebank it was measured on
    setting: str = ""  # what to know about it, such as tags or pre-training
    variant: str = ""  # that a recipe has of this model; empty for other systems
    # Settings that a run of the variant must have to be this model, as KEY=VALUE with JSON values,
    # separated by blanks.
    recipe: str = ""
    split: Literal["dev", "test"]
    metric: Text  # name of a metric of the program
    figure: Text  # name of one of its figures
    value: Annotated[float, Field(ge=0, le=100)]  # in percent
    source: Text  # where the number was read, with the table

    @property
    def key(self) -> tuple[str, str, str]:
        return self.split, self.metric, self.figure

    @property
    def family(self) -> str:
        """Of treebanks, which follows the language in the name of this one."""
        language, _, rest = self.treebank.partition("-")
        return rest.partition("-")[0] or language

    @property
    def needed(self) -> dict[str, Any]:
        """The settings of :attr:`recipe` by key."""
        pairs = (word.partition("=") for word in self.recipe.split())
        return {key: parse_json(value.encode()) for key, _, value in pairs}

    @model_validator(mode="after")
    def _check(self) -> Self:
        try:
            SelectionMetric.parse(f"{self.metric}.{self.figure}")
            _ = self.needed
        except ScoreError as error:
            raise ValueError(error) from None
        except (ValueError, RecursionError):
            raise ValueError(f"recipe '{self.recipe:.80}' is not KEY=VALUE ...") from None
        return self

    def is_of(self, settings: Mapping[str, Any]) -> bool:
        """Whether it is of a model with these resolved settings.

        Of what :attr:`recipe` does not name, the model has the defaults; its precision and the
        length of its training may be others. What it says of parts that the model does not have
        is left aside.
        """
        return bool(self.recipe) and agrees(settings, self.needed)


COLUMNS = tuple(PublishedFigure.model_fields)


def load_published() -> tuple[list[PublishedFigure], list[str]]:
    """All figures that the program and the user have, and why others cannot be read.

    Raises:
        RecordError: a folder cannot be read.
    """
    paths = [path for folder in data_dirs("published") for path in files_of(folder, ".csv")]
    read = [_read(path) for path in paths]
    return [one for found, _ in read for one in found], [
        text for _, wrong in read for text in wrong
    ]


def read_published(path: Path | None = None) -> list[PublishedFigure]:
    """The figures of one file; by default of all that the program and the user have.

    Raises:
        RecordError: a file cannot be read, a column or a field is missing, or a value is no
            percentage; names every line that is wrong.
    """
    found, errors = load_published() if path is None else _read(path)
    if errors:
        raise RecordError("\n".join(errors))
    return found


def _read(path: Path) -> tuple[list[PublishedFigure], list[str]]:
    """The figures of a file, and a message for each line, or for the file, that holds none."""
    found: list[PublishedFigure] = []
    errors: list[str] = []
    try:
        text = file_bytes(path, "published figures").decode()
        reader = csv.DictReader(io.StringIO(text, newline=""))
        columns = ",".join(reader.fieldnames or ())
        if columns != ",".join(COLUMNS):
            return [], [f"{path}:1: columns are {columns:.200}; needed: {','.join(COLUMNS)}"]
        for row in reader:
            place = f"{path}:{reader.line_num}"
            if None in row or None in row.values():
                errors.append(f"{place}: needs {len(COLUMNS)} fields: {','.join(COLUMNS)}")
                continue
            try:
                found.append(PublishedFigure.model_validate(row))
            except ValidationError as error:
                errors.append(f"{place}: {problems(error)}")
    except RecordError as error:
        return [], [str(error)]
    except (UnicodeDecodeError, csv.Error) as error:
        # Where a file is no text or no CSV, its other lines are not to be trusted.
        return [], [f"{path}: cannot read published figures: {error}"]
    return found, errors


Beside = dict[tuple[str, str], list[list[PublishedFigure]]]
"""By language and variant the headline figures of each system, treebank and setting."""


def by_variant(published: Iterable[PublishedFigure]) -> Beside:
    """What stands beside the scores of a variant of a language."""
    found: dict[tuple[str, ...], list[PublishedFigure]] = {}
    for one in published:
        if one.variant and one.figure == metric_named(one.metric).headline:
            place = one.language, one.variant, one.system, one.treebank, one.setting
            found.setdefault(place, []).append(one)
    beside: Beside = {}
    for (language, variant, *_), figures in found.items():
        beside.setdefault((language, variant), []).append(figures)
    return beside
