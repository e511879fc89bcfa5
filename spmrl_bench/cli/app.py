"""The application: its groups of commands, and one line and a status for what the user caused.

A defect of the program keeps its traceback. No command is known: each registers itself.
"""

from __future__ import annotations

import errno
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

from spmrl_bench import __version__
from spmrl_bench.errors import SpmrlError
from spmrl_bench.process.console import echo
from spmrl_bench.process.signals import exit_status

FAILED = 1  # the command did not do what it was asked for
MISUSED = 2  # it was not understood

# What the system can run out of, whatever the program does.
_OUTSIDE = {errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.ENOMEM, errno.EMFILE, errno.ENFILE}
# As torch says it, of the processor and of cards.
_NO_MEMORY = "can't allocate memory|out of memory"
_GONE = "the working directory is gone: change to one that is there"
# Which extras bring what.
_TRAIN = ("jinja2", "joblib", "pandas", "pydantic", "requests", "safetensors", "torch")
_EXTRAS = {**dict.fromkeys(_TRAIN, "train"), "distributed": "dask", "submitit": "slurm"}
# Click's usage error, which some versions of typer bring along under a name of their own.
_UsageError: Any = typer.BadParameter.__bases__[0]

# Commands that go on where they were interrupted.
_CONTINUED = ("train", "eval", "run", "search")


class Commands(TyperGroup):
    """Turns what the user caused into one line and a status; a defect keeps its traceback."""

    def __init__(self, *args: Any, **extra: Any) -> None:
        super().__init__(*args, **extra)
        for command in self.commands.values():  # each example is a paragraph of the help
            about, heading, examples = (command.help or "").partition("\n\nExample")
            command.help = about + heading + examples.replace("\n", "\n\n")

    def list_commands(self, ctx: Any) -> list[str]:
        return sorted(self.commands, key=lambda name: hasattr(self.commands[name], "commands"))

    def make_context(self, *args: Any, **extra: Any) -> Any:
        with _one_line():
            return super().make_context(*args, **extra)

    def invoke(self, ctx: Any) -> Any:
        with _one_line(ctx):
            if _nowhere():  # where importing torch ends the process
                sys.modules["torch"] = None  # type: ignore[assignment]
            return super().invoke(ctx)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        groups = {name: getattr(own, "commands", ()) for name, own in self.commands.items()}
        places = [name for name, own in groups.items() if args and args[0] in own]
        if places and args[0] not in self.commands:  # as it was named before there were groups
            raise _UsageError(f"'{args[0]}' is now 'spmrl-bench {places[0]} {args[0]}'", ctx)
        return super().resolve_command(ctx, args)


@contextmanager
def _one_line(ctx: Any = None) -> Iterator[None]:
    try:
        yield
    except _UsageError as error:
        message = error.format_message().replace("Value error, ", "")  # of pydantic
        path = error.ctx.command_path if error.ctx else "spmrl-bench"
        # Without a command, the message is the help.
        _fail(message if message.startswith("Usage:") else f"{path}: {message}", MISUSED)
    except SpmrlError as error:
        _fail(f"spmrl-bench: {error}")
    except ModuleNotFoundError as error:
        extra = _EXTRAS.get((error.name or "").partition(".")[0])
        if extra is None:
            raise
        if _nowhere():
            _fail(f"spmrl-bench: {_GONE}")
        _fail(f"spmrl-bench: this needs {error.name}: pip install 'spmrl-bench[{extra}]'")
    except (MemoryError, RuntimeError) as error:
        if not isinstance(error, MemoryError) and not re.search(_NO_MEMORY, str(error)):
            raise
        _fail("spmrl-bench: out of memory; fewer --jobs or --workers and smaller batches need less")
    except OSError as error:
        reason = error.strerror or str(error)
        if _nowhere():
            reason = _GONE
        elif isinstance(error.filename, str | bytes):
            reason = f"{os.fsdecode(error.filename)}: {reason}"
        elif error.errno not in _OUTSIDE:  # the program is wrong
            raise
        _fail(f"spmrl-bench: {reason}")
    except KeyboardInterrupt as interrupt:
        message = str(interrupt) or "interrupted"
        if ctx is not None and ctx.invoked_subcommand in _CONTINUED:
            message += "; give the same command again (without --fresh) to continue"
        _fail(f"\nspmrl-bench: {message}", exit_status(interrupt))


def _fail(message: str, status: int = FAILED) -> NoReturn:
    echo(message, err=True)
    raise typer.Exit(status) from None


def _nowhere() -> bool:
    try:
        os.getcwd()
    except OSError:
        return True
    return False


def _group(name: str, about: str) -> typer.Typer:
    """A group of commands; without one of them it prints its help."""
    made = typer.Typer(cls=Commands, help=about, no_args_is_help=True, **_PLAIN)
    app.add_typer(made, name=name)
    return made


# One column of plain text, for any terminal and any pager.
_PLAIN: dict[str, Any] = {"rich_markup_mode": None, "add_completion": False}
app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    **_PLAIN,
)


def _version(asked: bool) -> None:
    if asked:
        echo(f"spmrl-bench {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """Train, select and score parsers over many treebanks.

    Start with 'spmrl-bench train german', then 'spmrl-bench eval german'.
    """


treebanks = _group("treebanks", "List, fetch, check, add treebanks, find suspect annotation")
runs = _group("runs", "List training runs, print their logs, free room")
results = _group("results", "Print the tables of all results, or build their pages")
systems = _group("systems", "Install external parsers, or enter their parses")
study = _group("study", "Repeat the experiments of the papers, or search for settings")
model = _group("model", "Fetch an encoder; package a trained parser, or look into it")
recipes = _group("recipes", "List what can be trained, and what can be set")
