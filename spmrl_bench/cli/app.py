"""The application: one message and a status for what the user caused, a traceback for a defect."""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperGroup

from spmrl_bench.errors import SpmrlError
from spmrl_bench.interrupts import exit_status

FAILED = 1


# As --help lists them: the way of a run first.
ORDER = (
    "train",
    "eval",
    "multilingual",
    "table",
    "study",
    "attention",
    "heads",
    "trace",
    "parse",
    "score",
    "score-dependencies",
    "compare",
    "explain",
    "recipes",
    "treebanks",
    "validate",
    "new-treebank",
    "bench",
)


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
        except KeyboardInterrupt as interrupt:
            message = str(interrupt) or "interrupted"
            if ctx.invoked_subcommand in ("train", "eval", "multilingual", "study"):
                message += "; give the same command again (without --fresh) to continue"
            typer.echo(f"\nspmrl-bench: {message}", err=True)
            raise typer.Exit(exit_status(interrupt)) from None


app = typer.Typer(
    cls=_Commands,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Train, select and score neural parsers over many treebanks.\n\n"
    "Start with `spmrl-bench train german`, then `spmrl-bench eval german`.",
)
