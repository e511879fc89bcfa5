"""A study as data: which systems it compares, what was published of them, and where.

A study is a TOML file under ``recipes/studies``: a title, its source, and one row for each
system. A row says how its run differs from the recipe (settings of the model or of training,
lexical inputs), how the attention of the trained parser is limited before it is scored, and
what the paper reports. What all rows share stands above them, under ``shared``.
"""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, Field, model_validator

from spmrl_bench.errors import RecipeError, unknown_name
from spmrl_bench.experiments.recipe import Inputs, SettingsLayer
from spmrl_bench.parsers.legacy import FLAT, dotted
from spmrl_bench.scoring.metric import SelectionMetric
from spmrl_bench.storage.paths import data_dirs
from spmrl_bench.storage.toml import read_toml, validated

_SHARES = {"half": Fraction(1, 2), "3/4": Fraction(3, 4)}
LAYERS = ("all", "none", *(f"{end} {share}" for share in _SHARES for end in ("first", "last")))


def _layers(value: object) -> object:
    """One message for a value that is neither a name nor a list of numbers."""
    if isinstance(value, str) and value in LAYERS:
        return value
    if isinstance(value, list | tuple) and all(type(n) is int and n >= 0 for n in value):
        return tuple(value)
    raise ValueError(f"layers are {', '.join(map(repr, LAYERS))}, or a list of numbers from 0 on")


#: ``all`` and ``none``, a share of a stack of any height (a paper's "first four of eight layers" is
#: the first half), or layers by number, the first of which is 0.
Layers = Annotated[str | tuple[int, ...], BeforeValidator(_layers)]
Metric = Annotated[SelectionMetric, BeforeValidator(lambda text: SelectionMetric.parse(str(text)))]
SomeInputs = Annotated[Inputs, Field(min_length=1)]
Text = Annotated[str, Field(min_length=1)]


def layer_numbers(key: str, layers: str | tuple[int, ...], count: int) -> tuple[int, ...]:
    """The layers of a stack of ``count`` that the value of a key stands for, in ascending order. A
    share that is no whole number of layers is rounded up: the first half of five is three. Raise a
    RecipeError if a number is that of no layer."""
    if not isinstance(layers, str):
        for number in layers:
            if number >= count:
                known = f"the layers are 0 to {count - 1}" if count else "there are no layers"
                raise RecipeError(f"{key}: layer {number}: {known}")
        return tuple(sorted(set(layers)))
    if layers in ("all", "none"):
        return tuple(range(count)) if layers == "all" else ()
    end, _, share = layers.partition(" ")
    taken = math.ceil(_SHARES[share] * count)
    return tuple(range(taken) if end == "first" else range(count - taken, count))


class AttentionLimits(BaseModel, extra="forbid", frozen=True):
    """What is taken from the attention of a trained parser before it is scored."""

    content: Layers = "all"  # layers in which the product of contents counts
    position: Layers = "all"  # likewise of positions
    window: Annotated[int, Field(ge=0)] | None = None  # largest distance of tokens that see another
    relaxed: bool = False  # whether the first two and the last two tokens are free of it
    layers: Layers = "all"  # that the window is for

    @model_validator(mode="after")
    def _relaxes_a_window(self) -> AttentionLimits:
        if self.window is None and (self.relaxed or self.layers != "all"):
            raise ValueError("relaxed and layers say something of a window, but there is none")
        return self


class Shared(SettingsLayer):
    """What all rows of a study have in common; a row's own settings win."""

    lexical: SomeInputs | None = None  # inputs; neither here nor in the row: charlstm
    variant: Text | None = None  # of the recipes, in place of the inputs

    @model_validator(mode="after")
    def _inputs_or_a_variant(self) -> Shared:
        if self.lexical is not None and self.variant is not None:
            raise ValueError("lexical and variant stand together, but a variant has its inputs")
        return self


class StudyRow(Shared):
    """One system of a study."""

    name: Text
    position_only: Layers = "none"  # queries and keys from positions alone, in training too
    limit: AttentionLimits = AttentionLimits()  # of the trained parser's attention
    # Settings that decide nothing but how a trained parser parses, such as `beam`.
    parsing: dict[str, int | float] = Field(default_factory=dict)
    published: Annotated[float, Field(ge=0, le=100)] | None = None  # in percent
    source: Text | None = None  # of the figure, if not that of the study


class Study(BaseModel, extra="forbid", frozen=True):
    """A study: systems that are scored alike, and their published figures."""

    name: Text  # of its file
    title: Text
    source: Text  # paper, and the table or section with the published figures
    measured: Text  # what the published figures were measured on
    metric: Metric  # of dev, by which the systems are compared
    beside: tuple[Metric, ...] = ()  # shown of rows that are scored by them
    # How it is drawn: one line for each system, or curves over the one setting of parsing in which
    # the rows differ.
    figure: Literal["systems", "parsing"] = "systems"
    size: Literal["published", "small"] | None = None  # of the model, if it is of one only
    reference: Text  # name of the row that the others are compared with
    shared: Shared = Field(default_factory=Shared)
    # Settings that are not its subject: its user may change them for rows without their own.
    free: tuple[Text, ...] = ()
    rows: tuple[StudyRow, ...]

    @model_validator(mode="after")
    def _rows_fit_together(self) -> Study:
        names = [row.name for row in self.rows]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"several rows are called '{twice[0]}'; give each its own name")
        if self.reference not in names:
            raise ValueError(f"reference: {unknown_name('row', self.reference, names)}")
        of_parsing = {tuple(row.parsing) for row in self.rows}
        if self.figure == "parsing" and list(map(len, of_parsing)) != [1]:
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
    """A study by its name, or a user's by the path of its TOML file. Raise a RecipeError if there
    is no such study, or the file has mistakes (all of them, one a line)."""
    path = Path(name) if name.endswith(".toml") else _study_paths().get(name)
    if path is None:
        raise RecipeError(unknown_name("study", name, study_names()))
    return validated(Study, {"name": path.stem, **read_toml(path, RecipeError)}, path, RecipeError)


def _study_paths() -> dict[str, Path]:
    """The files of the studies by name; a user's own cannot replace one of the program's."""
    folders = [folder / "studies" for folder in reversed(data_dirs("recipes"))]
    return {path.stem: path for folder in folders for path in sorted(folder.glob("*.toml"))}
