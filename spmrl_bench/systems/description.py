"""A parser of somebody else as data: what it is, and with which commands it learns and parses.

A file ``systems/NAME.toml`` says that, what the files of the system look like, and what has to be
installed for it. Commands are lists of arguments, never a line for a shell; what changes from run
to run stands in them as ``{placeholder}``.

It is installed in a virtual environment of its own, made by pip under the user's own folder, which
has what the system requires and nothing else; systems that require the same share one. A file
written last says that it is whole, and its versions.
"""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib import metadata
from itertools import chain
from pathlib import Path
from string import Formatter
from subprocess import CalledProcessError
from typing import Annotated, Any, Literal, NamedTuple, Self

from pydantic import BaseModel, Field, PositiveInt, PrivateAttr, TypeAdapter, model_validator

from spmrl_bench.errors import RecipeError, SpmrlError, remedy, unknown_name
from spmrl_bench.experiments.recipe import Size
from spmrl_bench.leaderboard.environment import find_versions
from spmrl_bench.process.console import say
from spmrl_bench.storage.files import remove_folder, write_text
from spmrl_bench.storage.json import parse_json
from spmrl_bench.storage.paths import data_dirs, home
from spmrl_bench.storage.toml import read_toml, validated
from spmrl_bench.systems.enter import Policy
from spmrl_bench.trees.parse import Layer

Value = str | int | float | bool

#: What all commands may name: the interpreter of the system's environment, the folder of its
#: description, the folder of its model, and what else is the same for training and parsing.
COMMON = ("python", "here", "model", "seed", "threads", "device", "encoder")
TRAINING, PARSING = ("train", "dev", "seconds"), ("input", "output")
#: A setting of every system that is trained here, as `train.sentences` is of ours.
SENTENCES = "sentences"

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,39}")
_WHOLE = "versions.json"
#: Before a requirement whose own are among the others, since it pins one that is too old.
_ALONE = "--no-deps "

Command = Annotated[list[str], Field(min_length=1)]


class Frozen(BaseModel, extra="forbid", frozen=True): ...


class TrainCommand(Frozen):
    command: Command
    format: Literal["brackets", "conllu"]  # of the training and dev files
    tags: Literal["treebank", "none"] = "none"  # in these
    product: str
    """The file in ``{model}`` that is there when there is something to parse with."""
    epoch: str = ""
    """A regular expression that finds the number of an epoch in a line of its log."""
    continues: bool = False
    """Whether the command goes on with what an interrupted one left in ``{model}``."""


class ParseCommand(Frozen):
    command: Command
    input: Literal["words", "conllu", "brackets"]
    """A sentence a line; a word a line; trees without constituents."""
    tags: Literal["treebank", "none"] = "none"
    faults: Policy = "missing"
    """What becomes of answers that cannot be scored."""


class SystemDescription(Frozen):
    like: Annotated[str, Field(pattern=f"^({_NAME.pattern})?$")] = ""
    """Another description beside this one, whose keys and settings hold where this has none."""
    title: str = Field(min_length=1)
    url: str = ""
    paper: str = ""
    adapted: str = ""  # what had to be done so that it runs
    training_data: str = ""  # of a system that is not trained here
    layer: Layer
    encoder: str = ""
    """A pretrained encoder that it reads, by its name; ``{encoder}`` is its folder."""
    environment: Literal["own", "program"] = "own"
    """A virtual environment with its ``requirements``, or that of this program."""
    requirements: list[str] = []
    """What pip installs; the first is the system, and says its version."""
    settings: dict[str, Value] = {}
    sizes: dict[Size, dict[str, Value]] = {}  # other settings at these sizes
    train: TrainCommand | None = None
    parse: ParseCommand
    _path: Path = PrivateAttr()

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read a description; a RecipeError names all its mistakes."""
        if not _NAME.fullmatch(path.stem):
            raise RecipeError(
                f"{path}: the name of a system has lower-case letters, digits, - and _, 40 at most"
            )
        content = read_toml(path, RecipeError)
        like = content.get("like", "")
        if isinstance(like, str) and _NAME.fullmatch(like):  # else it is refused below
            whole = read_toml(path.with_stem(like), RecipeError)
            for table in ("settings", "sizes"):
                content[table] = {**whole.get(table, {}), **content.get(table, {})}
            content = {**whole, **content}
        system = validated(cls, content, path, RecipeError)
        system._path = path
        return system

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.environment == "own" and not self.requirements:
            raise ValueError("requirements: an environment of its own needs one at least")
        if (self.train is None) == (not self.training_data):
            raise ValueError(
                "train, training_data: one of the two; a system that is not trained here says on "
                "what it was trained"
            )
        if reserved := {*COMMON, *TRAINING, *PARSING, SENTENCES} & self.settings.keys():
            raise ValueError(f"settings: {', '.join(sorted(reserved))} mean something already")
        for size, values in self.sizes.items():
            if unknown := values.keys() - self.settings.keys():
                raise ValueError(f"sizes.{size}: {', '.join(sorted(unknown))}: not in settings")
        for section, own in (("train", TRAINING), ("parse", PARSING)):
            known = {*COMMON, *own, *self.settings}
            fields = map(Formatter().parse, self._command(section))
            try:
                names = {name for _, name, _, _ in chain.from_iterable(fields)}
                if others := names - {None, *known}:
                    raise ValueError(unknown_name("placeholder", min(map(str, others)), known))
            except ValueError as error:
                raise ValueError(f"{section}.command: {error}; write {{{{ for a brace") from None
        return self

    @property
    def learns(self) -> str:
        """What it learns beside its layer, as signatures say it."""
        tagged = self.train is not None and (self.train.tags, self.parse.tags)
        return "tags" if tagged == ("treebank", "none") else ""

    def _command(self, section: str) -> Sequence[str]:
        return getattr(getattr(self, section), "command", ())

    @property
    def path(self) -> Path:
        return self._path

    @property
    def name(self) -> str:
        return self._path.stem

    @property
    def digest(self) -> str:
        """16 digits of a hash of the description and the scripts that it names in ``{here}``."""
        named = dict.fromkeys((*self._command("parse"), *self._command("train")))
        drivers = [self.path.parent / one[7:] for one in named if one.startswith("{here}/")]
        like = [self.path.with_stem(self.like)] if self.like else []
        content = b"\0".join(file.read_bytes() for file in (self.path, *like, *drivers))
        return hashlib.sha256(content).hexdigest()[:16]

    def chosen(self, size: Size, changes: Mapping[str, str]) -> dict[str, Value]:
        """The settings at a size, with what the command line changed, checked; without a change
        :data:`SENTENCES` is not among them."""
        values = self.settings | self.sizes.get(size, {})
        for key, text in changes.items():
            known = values | ({SENTENCES: 125} if self.train else {})
            if key not in known:
                raise RecipeError(f"{self.title}: {unknown_name('setting', key, known)}")
            kind: Any = PositiveInt if key == SENTENCES else type(known[key])
            try:
                values[key] = TypeAdapter(kind).validate_strings(text)
            except ValueError:
                problem = f"'{text}', expected a value such as {known[key]}"
                raise RecipeError(f"{self.title}: --set {key}: {problem}") from None
        return values


def system_paths() -> dict[str, Path]:
    found = {path.stem: path for folder in data_dirs("systems") for path in folder.glob("*.toml")}
    return dict(sorted(found.items()))


def load_system(name: str) -> SystemDescription:
    """The system of that name, or of the TOML file of that path; a RecipeError if there is none."""
    if name.endswith(".toml"):
        return SystemDescription.read(Path(name).absolute())
    paths = system_paths()
    if name not in paths:
        raise RecipeError(unknown_name("system", name, paths))
    return SystemDescription.read(paths[name])


# Installation ---------------------------------------------------------------------------------


class Environment(NamedTuple):
    python: str  # the interpreter that runs a system
    versions: dict[str, str]  # of its packages, by name


def environment_of(system: SystemDescription) -> Environment:
    """Where the system runs; a RecipeError if it is not installed, or its interpreter is gone."""
    command = f"spmrl-bench systems install {system.name}"
    try:
        if system.environment == "program":
            required = " ".join(f'"{one}"' for one in system.requirements)
            command = f"{sys.executable} -m pip install {required}"
            own = {name: metadata.version(name) for name in map(_distribution, system.requirements)}
            return Environment(sys.executable, find_versions() | own)
        python = _folder(system) / "bin/python"
        subprocess.run([python, "-c", ""], check=True, capture_output=True)
        noted = parse_json((_folder(system) / _WHOLE).read_bytes())["versions"]
        return Environment(str(python), {str(name): str(noted[name]) for name in noted})
    except (OSError, ValueError, LookupError, TypeError, ImportError, CalledProcessError):
        problem = f"system {system.name} is not installed here: install it with '{command}'"
        raise RecipeError(problem) from None


def version_of(system: SystemDescription) -> str:
    """That of the first of its requirements; a RecipeError if it is not installed."""
    names = [*map(_distribution, system.requirements), "spmrl_bench"]
    return environment_of(system).versions.get(names[0], "")


def is_installed(system: SystemDescription) -> bool:
    try:
        version_of(system)
    except RecipeError:
        return False
    return True


def install_system(system: SystemDescription, python: str | None) -> None:
    """Make the environment of a system with an interpreter, by default that of this program."""
    folder, required = _folder(system), system.requirements
    if system.environment == "program":
        version_of(system)
        say(f"{system.name} runs in the environment of this program: nothing to install")
        return
    if is_installed(system):
        say(f"{folder}: has {', '.join(required)} already")
        return
    say(f"{folder}: installing {', '.join(required)}")
    try:
        remove_folder(folder)
        _call([python or sys.executable, "-m", "venv", str(folder)])
        pip = [str(folder / "bin/python"), "-m", "pip", "--disable-pip-version-check"]
        alone = [one for one in required if one.startswith(_ALONE)]
        _call([*pip, "install", "--quiet", *(one for one in required if one not in alone)])
        for one in alone:
            _call([*pip, "install", "--quiet", *one.split()])
        found = json.loads(_call([*pip, "list", "--format", "json"]))
        versions = {_distribution(each["name"]): each["version"] for each in found}
        text = json.dumps({"requirements": required, "versions": versions}, indent=1)
        write_text(folder / _WHOLE, text + "\n")
    except OSError as error:
        raise SpmrlError(
            f"{folder}: cannot be written: {error.strerror}. {remedy(error)}, or name another "
            "folder in SPMRL_BENCH_HOME"
        ) from None


def _folder(system: SystemDescription) -> Path:
    digest = hashlib.sha256("\n".join(system.requirements).encode()).hexdigest()[:8]
    return home() / "environments" / f"{_distribution(system.requirements[0])}-{digest}"


def _call(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        said = "\n  ".join((done.stderr or done.stdout).splitlines()[-5:])
        raise SpmrlError(f"{' '.join(command)}\nfailed:\n  {said}")
    return done.stdout


def _distribution(requirement: str) -> str:
    """The normal form of the name in ``name[extra]==1.0``."""
    name = re.split(r"[^\w.-]", requirement.removeprefix(_ALONE), maxsplit=1)[0]
    return name.lower().replace("_", "-").replace(".", "-")
