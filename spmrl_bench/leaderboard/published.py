"""Published figures to set beside a run, each with its source.

They are data (``published/*.csv``): one file for a paper or for a collection, in the order of the
tables. A figure of a model that a recipe has as a variant names the variant.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from typing import Annotated, Literal, Self

from pydantic import BaseModel, Field, ValidationError, model_validator

from spmrl_bench.errors import RecordError
from spmrl_bench.leaderboard.documents import file_bytes, files_of, problems
from spmrl_bench.scoring.metric import SelectionMetric, metric_named
from spmrl_bench.storage.paths import data_dirs

Text = Annotated[str, Field(min_length=1)]


class PublishedFigure(BaseModel, extra="forbid", frozen=True, str_strip_whitespace=True):
    """One published number; the fields are the columns of a file."""

    system: Text  # its name in tables, such as K&K18
    paper: Text  # authors, year and venue of the paper that the system is from
    year: int  # of that paper, or of the release
    language: Text  # as in the manifests, such as german
    treebank: Text  # name of the manifest of the treebank it was measured on
    setting: str = ""  # what to know about it, such as tags or pre-training
    variant: str = ""  # that a recipe has of this model; empty for other systems
    recipe: str = ""  # settings of this model, as KEY=VALUE with JSON values between blanks
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

    @model_validator(mode="after")
    def _check(self) -> Self:
        SelectionMetric.parse(f"{self.metric}.{self.figure}")
        return self


COLUMNS = tuple(PublishedFigure.model_fields)


def load_published() -> tuple[list[PublishedFigure], list[str]]:
    """All figures, and a message for each line that is none; a RecordError for a broken folder."""
    found: list[PublishedFigure] = []
    errors: list[str] = []
    for path in (path for folder in data_dirs("published") for path in files_of(folder, ".csv")):
        try:
            text = file_bytes(path, "published figures").decode()
            rows = csv.DictReader(io.StringIO(text, newline=""), restkey="further")
            columns = ",".join(rows.fieldnames or ())
            if columns != ",".join(COLUMNS):
                raise RecordError(
                    f"{path}:1: columns are {columns:.200}; needed: {','.join(COLUMNS)}"
                )
            # Where a file is no text or no CSV, its other lines are not to be trusted.
            lines = [(rows.line_num, row) for row in rows]
        except RecordError as error:
            errors.append(str(error))
            continue
        except (UnicodeDecodeError, csv.Error) as error:
            errors.append(f"{path}: cannot read published figures: {error}")
            continue
        for number, row in lines:
            try:
                found.append(PublishedFigure.model_validate(row))
            except ValidationError as error:
                errors.append(f"{path}:{number}: {problems(error)}")
    return found, errors


Beside = dict[tuple[str, str], dict[tuple[str, str, str], list[PublishedFigure]]]
"""By language and variant the headline figures of each system, treebank and setting."""


def by_variant(published: Iterable[PublishedFigure]) -> Beside:
    beside: Beside = {}
    for one in published:
        if one.variant and one.figure == metric_named(one.metric).headline:
            columns = beside.setdefault((one.language, one.variant), {})
            columns.setdefault((one.system, one.treebank, one.setting), []).append(one)
    return beside
