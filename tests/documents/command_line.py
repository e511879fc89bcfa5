"""Whether a command of a document is one that the program takes, without running it."""

from __future__ import annotations

import importlib.util
import re
import shlex
import tomllib
from collections.abc import Sequence
from functools import cache
from typing import Any

import click
import typer

from spmrl_bench.analysis.study import study_names
from spmrl_bench.cli import app
from spmrl_bench.experiments.model_settings import read_overrides
from spmrl_bench.experiments.recipe import TrainLayer, load_recipe
from spmrl_bench.experiments.reference import run_settings
from spmrl_bench.experiments.search import probes, read_space
from spmrl_bench.scoring import load_prm
from spmrl_bench.systems.description import SENTENCES
from spmrl_bench.treebanks.catalogue import is_known
from tests.builders import process
from tests.documents.blocks import ROOT, Command

#: Names such as NAME and RUN_A, in whose place users have theirs.
_PLACEHOLDER = re.compile(r"(.*/)?[A-Z_]+")


@cache
def _program() -> Any:
    return typer.main.get_command(app)


def parsed(arguments: Sequence[str]) -> Any:
    """The context in which ``spmrl-bench`` would run these arguments.

    Raises:
        click.UsageError: it would not.
    """
    command, rest = _program(), list(arguments)
    while rest and rest[0] in getattr(command, "commands", {}):
        command = command.commands[rest.pop(0)]
    if command is _program():
        raise click.UsageError(f"no command {rest[:1]}")
    return command.make_context(command.name, rest)


def options_of(words: Sequence[str]) -> set[str]:
    """The options of the command that these words begin with.

    Raises:
        KeyError: there is none of that name.
    """
    command = _program().commands[words[0]]
    command = getattr(command, "commands", {}).get("".join(words[1:2]), command)
    return {"--help", *(option for param in command.params for option in param.opts)}


def check(command: Command, made: Sequence[str] = ()) -> None:
    """Fail where a command would be refused for what it says; the page has made these treebanks
    and recipes before."""
    if command.program == "spmrl-bench":
        _check_own(command.arguments, made)
    elif command.program == "make":
        status, calls, errors = make(*command.arguments)
        assert status == 0, errors
        for arguments in calls:
            _check_own(arguments, made)
    elif command.program == "pip":
        for word in command.arguments:
            for extra in re.findall(r"\[([\w,]+)\]", word):
                assert set(extra.split(",")) <= _extras(), word
            assert ".txt" not in word or (ROOT / word).is_file(), word
    elif command.program == "python":
        option, module, *_ = command.arguments
        assert option == "-m"
        assert importlib.util.find_spec(module), module
    else:
        for word in command.arguments:
            assert "/" not in word or (ROOT / word).exists(), word


def make(*arguments: str) -> tuple[int, list[list[str]], str]:
    """Status of make, the arguments of each call of ``spmrl-bench`` it would do, and its errors."""
    command = ("make", "--no-print-directory", "-n", "VENV=unmade")
    done = process(*command, *arguments, cwd=ROOT)
    program = "'unmade/bin/spmrl-bench' "
    lines = [one for one in done.stdout.splitlines() if one.startswith(program)]
    calls = [shlex.split(line)[1:] for line in lines]
    return done.returncode, calls, done.stderr


def _extras() -> set[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return set(project["optional-dependencies"])


def _check_own(arguments: Sequence[str], made: Sequence[str]) -> None:
    context = parsed(arguments)
    values = {name: value for name, value in context.params.items() if value not in (None, ())}
    recipe = "english"
    for name, value in values.items():
        listed = list(value) if isinstance(value, list | tuple) else [value]
        for one in (str(one) for one in listed):
            if _PLACEHOLDER.fullmatch(one) or one in made:
                continue
            if name == "lang":
                recipe = one
                load_recipe(one)
            elif name == "treebank" or (context.command.name, name) == ("check", "names"):
                assert is_known(one) or one == "all", one
            elif name == "variant":
                load_recipe(recipe).variant(one)
            elif name == "size":
                load_recipe(recipe).size_of("open", one)
            elif name == "settings":
                for pair in _tried(one) if context.command.name == "search" else [one]:
                    _check_setting(pair)
            elif name == "prm":
                load_prm(one)
            elif (context.command.name, name) == ("run", "name"):
                assert one in study_names(), one


@cache
def _known_settings() -> set[str]:
    return {key for setting in run_settings() for key in (setting.key, *setting.short)}


def _tried(pair: str) -> list[str]:
    """The ends of a range and all choices of a setting that is searched; any other as it is."""
    key, _, text = pair.partition("=")
    # A space has to have something: the second is searched whatever the first is.
    parameter = read_space({key: text, "another": "1|2"})[1].get(key)
    return [f"{key}={value}" for value in probes(parameter)] if parameter else [pair]


def _check_setting(pair: str) -> None:
    key, equals, text = pair.partition("=")
    assert equals, pair
    if key == SENTENCES:
        return  # of any external parser
    assert key in _known_settings()
    _, train, mistakes = read_overrides({key: text})
    assert not mistakes
    TrainLayer(**train)
