"""The application: one message and a status for what the user caused, a traceback for a defect."""

from __future__ import annotations

import errno
import os
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from spmrl_bench import __version__
from spmrl_bench.entry import FAILED
from spmrl_bench.errors import SpmrlError
from spmrl_bench.process.signals import exit_status

# What the system can run out of, whatever the program does.
_OUTSIDE = {errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.ENOMEM, errno.EMFILE, errno.ENFILE}


# As --help lists them: the way of a run first.
ORDER = (
    "train",
    "eval",
    "multilingual",
    "table",
    "site",
    "study",
    "search",
    "attention",
    "heads",
    "trace",
    "parse",
    "package",
    "score",
    "score-dependencies",
    "leaderboard",
    "systems",
    "task",
    "enter",
    "compare",
    "explain",
    "recipes",
    "settings",
    "treebanks",
    "validate",
    "new-treebank",
    "suspects",
    "runs",
)

# What goes on where it was interrupted.
_CONTINUED = ("train", "eval", "multilingual", "study", "search", "leaderboard")


class _Commands(TyperGroup):
    """Turns what the user caused into one message and a status; a defect keeps its traceback."""

    def list_commands(self, ctx: Any) -> list[str]:
        return sorted(self.commands, key=ORDER.index)

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except SpmrlError as error:
            typer.echo(f"spmrl-bench: {error}", err=True)
            raise typer.Exit(FAILED) from None
        except BrokenPipeError:
            raise
        except OSError as error:
            if not (problem := _outside(error)):
                raise
            typer.echo(f"spmrl-bench: {problem}", err=True)
            raise typer.Exit(FAILED) from None
        except KeyboardInterrupt as interrupt:
            message = str(interrupt) or "interrupted"
            if ctx.invoked_subcommand in _CONTINUED:
                message += "; give the same command again (without --fresh) to continue"
            typer.echo(f"\nspmrl-bench: {message}", err=True)
            raise typer.Exit(exit_status(interrupt)) from None


def _outside(error: OSError) -> str:
    """What the system refused to do with which file; empty if it is the program that is wrong."""
    try:
        os.getcwd()
    except OSError:
        return "the working directory is gone: change to one that is there"
    reason = error.strerror or str(error)
    if isinstance(error.filename, str | bytes):
        return f"{os.fsdecode(error.filename)}: {reason}"
    return reason if error.errno in _OUTSIDE else ""


app = typer.Typer(
    cls=_Commands,
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"spmrl-bench {__version__}")
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
    """Train, select and score neural parsers over many treebanks.

    Start with `spmrl-bench train german`, then `spmrl-bench eval german`.
    """
