"""What a parser of somebody else is, how it is trained and how it parses, as data.

A file ``systems/NAME.toml`` says with which commands a parser learns and parses, what its files
look like, and what has to be installed for it. Commands are lists of arguments, never a shell's
line; what changes from run to run stands in them as ``{placeholder}``. So a new system is one file,
and all that a run does with it is written down in it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from string import Formatter
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from spmrl_bench.errors import RecipeError, unknown_name
from spmrl_bench.experiments.recipe import Size
from spmrl_bench.storage.paths import data_dirs
from spmrl_bench.storage.toml import read_toml, validated
from spmrl_bench.systems.predictions import Policy
from spmrl_bench.trees.parse import Layer

Value = str | int | float | bool

#: What commands may name: the interpreter of the system's environment, the folder of its
#: description, the folder of its model, and what else is the same for training and parsing.
COMMON = ("python", "here", "model", "seed", "threads", "device")
#: Files of both splits, and the seconds that training may take.
TRAINING = ("train", "dev", "seconds")
#: Files of a parse: sentences that are given, and where the answers are to be written.
PARSING = ("input", "output")

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,39}")


def _without_braces(command: list[str]) -> list[str]:
    """Refuse what is no placeholder."""
    for argument in command:
        try:
            fields = list(Formatter().parse(argument))
        except ValueError as error:
            raise ValueError(f"'{argument}': {error}; write {{{{ for a brace") from None
        for _, name, spec, conversion in fields:
            if name is not None and (spec or conversion or not name.isidentifier()):
                raise ValueError(f"'{argument}': a placeholder is a name in braces, no more")
    return command


Command = Annotated[list[str], Field(min_length=1), AfterValidator(_without_braces)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Train(_Part):
    """How the system learns."""

    command: Command
    format: Literal["brackets", "conllu"] = Field(description="Of the training and dev files.")
    tags: Literal["treebank", "none"] = Field(
        default="none", description="Whether these have the treebank's tags."
    )
    product: str = Field(
        description="The file in the folder {model} that is there when there is something to parse "
        "with; what is stopped by the clock counts if it has it."
    )
    continues: bool = Field(
        default=False,
        description="Whether the command goes on with what an interrupted one left in {model}.",
    )


class Answering(_Part):
    """How the system parses."""

    command: Command
    input: Literal["words", "conllu", "brackets"] = Field(
        description="A sentence a line; a word a line; trees without constituents."
    )
    tags: Literal["treebank", "none"] = Field(
        default="none", description="Whether the sentences have the treebank's tags."
    )
    faults: Policy = Field(
        default="missing", description="What becomes of answers that cannot be scored."
    )


class Description(_Part):
    """A parser of somebody else."""

    title: str = Field(min_length=1, description="Such as Stanza.")
    url: str = ""
    paper: str = ""
    adapted: str = Field(default="", description="What had to be done so that it runs.")
    training_data: str = Field(
        default="", description="Of a system that is not trained here: what it was trained on."
    )
    layer: Layer = Field(description="What it learns and answers.")
    environment: Literal["own", "program"] = Field(
        default="own",
        description="`own`: a virtual environment with its `requirements`; `program`: that of this "
        "program.",
    )
    requirements: list[str] = Field(
        default=[], description="What pip installs; the first is the system, and says its version."
    )
    settings: dict[str, Value] = Field(default={}, description="Placeholders and their values.")
    sizes: dict[Size, dict[str, Value]] = Field(
        default={}, description="Other values at these sizes."
    )
    train: Train | None = None
    parse: Answering

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.environment == "own" and not self.requirements:
            raise ValueError("requirements: an environment of its own needs one at least")
        if (self.train is None) == (not self.training_data):
            raise ValueError(
                "train, training_data: one of the two; a system that is not trained here says on "
                "what it was trained"
            )
        reserved = {*COMMON, *TRAINING, *PARSING} & self.settings.keys()
        if reserved:
            raise ValueError(f"settings: {', '.join(sorted(reserved))} mean something already")
        for size, values in self.sizes.items():
            if unknown := values.keys() - self.settings.keys():
                raise ValueError(f"sizes.{size}: {', '.join(sorted(unknown))}: not in settings")
        for section, command, own in self._commands():
            known = {*COMMON, *own, *self.settings}
            for name in placeholders(command):
                if name not in known:
                    raise ValueError(
                        f"{section}.command: {unknown_name('placeholder', name, known)}"
                    )
        return self

    def _commands(self) -> list[tuple[str, Sequence[str], Sequence[str]]]:
        found: list[tuple[str, Sequence[str], Sequence[str]]] = [
            ("parse", self.parse.command, PARSING)
        ]
        if self.train is not None:
            found.append(("train", self.train.command, TRAINING))
        return found

    def chosen(self, size: Size, changes: Mapping[str, str]) -> dict[str, Value]:
        """The settings at a size, with what the command line changed.

        Raises:
            RecipeError: an unknown setting, or a value of another type.
        """
        values = self.settings | self.sizes.get(size, {})
        for key, text in changes.items():
            if key not in values:
                raise RecipeError(f"{self.title}: {unknown_name('setting', key, values)}")
            values[key] = _as(type(values[key]), text, f"{self.title}: --set {key}")
        return values


def placeholders(command: Sequence[str]) -> list[str]:
    """The placeholders of a command, in their order."""
    parts = (part for argument in command for part in Formatter().parse(argument))
    return [name for _, name, _, _ in parts if name is not None]


def filled(command: Sequence[str], values: Mapping[str, Any]) -> list[str]:
    """The command with values in the place of placeholders."""
    return [argument.format_map(values) for argument in command]


def _as(kind: type, text: str, place: str) -> Value:
    allowed = {bool: "true or false", int: "a whole number", float: "a number"}
    try:
        if kind is bool:
            return {"true": True, "false": False}[text.lower()]
        found: Value = kind(text)
        return found
    except (KeyError, ValueError):
        raise RecipeError(f"{place}: '{text}' is not {allowed[kind]}") from None


class Known:
    """A description and where it was found."""

    def __init__(self, path: Path) -> None:
        """Read a description.

        Raises:
            RecipeError: it is not TOML or has mistakes; all of them are named.
        """
        if not _NAME.fullmatch(path.stem):
            raise RecipeError(
                f"{path}: the name of a system has lower-case letters, digits, - and _, 40 at most"
            )
        self.path = path
        self.description = validated(Description, read_toml(path, RecipeError), path, RecipeError)

    @property
    def name(self) -> str:
        """As it is asked for."""
        return self.path.stem

    @cached_property
    def digest(self) -> str:
        """What stands for all that the description and its drivers say: 16 digits of a hash."""
        files = [self.path, *self.drivers]
        return hashlib.sha256(b"\0".join(file.read_bytes() for file in files)).hexdigest()[:16]

    @property
    def drivers(self) -> list[Path]:
        """Files beside the description that its commands name as ``{here}/...``."""
        arguments = [
            argument.removeprefix("{here}/")
            for _, command, _ in self.description._commands()
            for argument in command
            if argument.startswith("{here}/")
        ]
        return [self.path.parent / argument for argument in dict.fromkeys(arguments)]


def system_paths() -> dict[str, Path]:
    """The descriptions that come with the program and the user's own, by name, sorted."""
    found = {path.stem: path for folder in data_dirs("systems") for path in folder.glob("*.toml")}
    return dict(sorted(found.items()))


def load_system(name: str) -> Known:
    """The system of that name, or described by the TOML file of that path.

    Raises:
        RecipeError: there is none, or its description has mistakes.
    """
    if name.endswith(".toml"):
        return Known(Path(name).absolute())
    paths = system_paths()
    if name not in paths:
        raise RecipeError(unknown_name("system", name, paths))
    return Known(paths[name])
