"""A study as data: which systems it compares, what was published of them, and where.

A study is a TOML file under ``recipes/studies``: a title, its source, and one row for each
system. A row says how its run differs from the recipe (settings of the model or of training,
lexical inputs), how the attention of the trained parser is limited before it is scored, and
what the paper reports. What all rows share stands above them, under ``shared``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    model_validator,
)

from spmrl_bench.analysis.layers import Layers
from spmrl_bench.errors import RecipeError, ScoreError, unknown_name
from spmrl_bench.experiments.recipe import Inputs, SettingsLayer
from spmrl_bench.parsers.legacy import FLAT, dotted
from spmrl_bench.scoring.metric import SelectionMetric
from spmrl_bench.storage.paths import data_dirs
from spmrl_bench.storage.toml import read_toml, validated


def _some(inputs: tuple[str, ...]) -> tuple[str, ...]:
    if not inputs:
        raise ValueError("name one input or more")
    return inputs


def _criterion(text: object) -> SelectionMetric:
    try:
        # Studies were written "dev F1" when there was nothing else to measure by.
        return SelectionMetric.parse("brackets.f1" if text == "dev F1" else str(text))
    except ScoreError as error:
        raise ValueError(str(error)) from None


SomeInputs = Annotated[Inputs, AfterValidator(_some)]
Text = Annotated[str, Field(min_length=1)]


class AttentionLimits(BaseModel):
    """What is taken from the attention of a trained parser before it is scored."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    content: Layers = "all"
    """Layers whose attention sees the content; in the others its product does not count."""
    position: Layers = "all"
    """Layers whose attention sees the position."""
    window: Annotated[int, Field(ge=0)] | None = None
    """Largest distance of two tokens that see each other; without it any."""
    relaxed: bool = False
    """Whether the first two and the last two tokens are free of the window."""
    layers: Layers = "all"
    """Layers that the window is for."""

    @model_validator(mode="after")
    def _relaxes_a_window(self) -> AttentionLimits:
        if self.window is None and (self.relaxed or self.layers != "all"):
            raise ValueError("relaxed and layers say something of a window, but there is none")
        return self


class Shared(SettingsLayer):
    """What all rows of a study have in common; a row's own settings win."""

    lexical: SomeInputs | None = None
    """Lexical inputs; a row without any, and a study without, takes ``charlstm``."""
    variant: Text | None = None
    """A variant of the recipes, in place of the inputs; a row's own settings win over its."""


class StudyRow(SettingsLayer):
    """One system of a study."""

    name: Text
    lexical: SomeInputs | None = None
    variant: Text | None = None
    position_only: Layers = "none"
    """Layers whose queries and keys come from the positions alone, in training too."""
    limit: AttentionLimits = AttentionLimits()
    """Of the trained parser's attention."""
    parsing: dict[str, int | float] = Field(default_factory=dict)
    """Settings of the model that decide nothing but how a trained parser parses, such as ``beam``,
    if not those of its run."""
    published: Annotated[float, Field(ge=0, le=100)] | None = None
    """The figure of the source, in percent."""
    source: Text | None = None
    """Where the figure is, if not where the study says."""


class Study(BaseModel):
    """A study: systems that are scored alike, and their published figures."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Text
    """The name of its file."""
    title: Text
    source: Text
    """Paper, and the table or section with the published figures."""
    measured: Text
    """What the published figures were measured on."""
    metric: Annotated[SelectionMetric, BeforeValidator(_criterion)]
    """By which figure of dev the systems are compared, such as ``brackets.f1``, or sum of them."""
    beside: tuple[Annotated[SelectionMetric, BeforeValidator(_criterion)], ...] = ()
    """Other figures that the table shows of rows that are scored by them."""
    figure: Literal["systems", "windows", "parsing", "minutes"] = "systems"
    """How it is drawn: one line for each system, or curves over the size of a window, over the
    one setting of parsing in which the rows differ, or over the minutes of training."""
    size: Literal["published", "small"] | None = None
    """The only size of model that the study is of; by default the user's, or the track's."""
    minutes: tuple[Annotated[float, Field(gt=0)], ...] = ()
    """Times of training, dev scoring included, after which the best score so far is shown too."""
    reference: Text
    """Name of the row that the others are compared with."""
    shared: Shared = Field(default_factory=Shared)
    free: tuple[Text, ...] = ()
    """Settings that are not the study's subject, though some rows have their own: its user may
    change them for the other rows."""
    rows: tuple[StudyRow, ...]

    @model_validator(mode="after")
    def _rows_have_names_of_their_own(self) -> Study:
        names = [row.name for row in self.rows]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"several rows are called '{twice[0]}'; give each its own name")
        if self.reference not in names:
            raise ValueError(f"reference: {unknown_name('row', self.reference, names)}")
        layers: list[Shared | StudyRow] = [self.shared, *self.rows]
        for row in layers:
            if row.lexical is not None and row.variant is not None:
                raise ValueError("lexical and variant stand together, but a variant has its inputs")
        of_parsing = {tuple(row.parsing) for row in self.rows}
        if self.figure == "parsing" and (len(of_parsing) > 1 or len(next(iter(of_parsing))) != 1):
            raise ValueError(
                "figure = 'parsing' needs one and the same setting in the parsing of every row"
            )
        return self

    @property
    def measure(self) -> str:
        """What the figure is called in tables, such as ``dev F1``."""
        return f"dev {self.metric.title}"

    def published_difference(self, row: StudyRow) -> float | None:
        """What a row has more than the reference in the publication, in points."""
        (reference,) = (other for other in self.rows if other.name == self.reference)
        if row.published is None or reference.published is None or row.name == self.reference:
            return None
        return row.published - reference.published

    def inputs(self, row: StudyRow) -> tuple[str, ...]:
        """The lexical inputs of a row's run, if no variant decides them."""
        return row.lexical or self.shared.lexical or ("charlstm",)

    def variant(self, row: StudyRow) -> str:
        """The variant of a row's run: of the recipe, or inputs joined by ``-``."""
        named = row.variant or (None if row.lexical else self.shared.variant)
        return named or "-".join(self.inputs(row))

    def settings(self, row: StudyRow) -> dict[str, Any]:
        """``model.KEY`` and ``train.KEY`` that the study sets for a row's run."""
        found: dict[str, Any] = {}
        for layer in (self.shared, row):
            model, train = dotted(layer.model), layer.train.model_dump(exclude_unset=True)
            below = {f"model.{place}" for key in model for place in FLAT.get(key, ())}
            found = {key: value for key, value in found.items() if key not in below}
            found |= {f"model.{key}": value for key, value in model.items()}
            found |= {f"train.{key}": value for key, value in train.items()}
        return found


def study_names() -> list[str]:
    """Names of the studies of the program and of the user."""
    return sorted(_study_paths())


def load_study(name: str) -> Study:
    """A study by its name, or a user's by the path of its TOML file.

    Raises:
        RecipeError: there is no such study, or the file has mistakes (all of them, one a line).
    """
    path = Path(name) if name.endswith(".toml") else _study_paths().get(name)
    if path is None:
        raise RecipeError(unknown_name("study", name, study_names()))
    if not path.is_file():
        raise RecipeError(f"{name}: no such study file")
    content = read_toml(path, RecipeError)
    return validated(Study, {"name": path.stem, **content}, path, RecipeError)


def _study_paths() -> dict[str, Path]:
    """The files of the studies by name; a user's own cannot replace one of the program's."""
    folders = [folder / "studies" for folder in reversed(data_dirs("recipes"))]
    return {path.stem: path for folder in folders for path in sorted(folder.glob("*.toml"))}
