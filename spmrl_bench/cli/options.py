"""Options that several commands share, and the checks of their values."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated

import typer

from spmrl_bench.errors import RecordError, SpmrlError, unknown_name

Lang = Annotated[
    str | None,
    typer.Argument(
        metavar="LANG", help="A language, as 'spmrl-bench recipes list' lists it, or a recipe file."
    ),
]
TreebankName = Annotated[
    str | None,
    typer.Option(help="Treebank to use instead of the first one present in the recipe."),
]
Track = Annotated[
    str | None,
    typer.Option(help="Use the recipe's treebank of this track: spmrl, ptb, ctb, open or mini."),
]
Variant = Annotated[
    list[str] | None,
    typer.Option(help="Only this variant of the recipe; may be repeated. Default: all."),
]
Size = Annotated[
    str | None,
    typer.Option(help="'published' or 'small'. Default: what the recipe says for the track."),
]
Seed = Annotated[
    int | None, typer.Option(min=0, help="Seed of all random choices.", show_default="1")
]
Seeds = Annotated[
    int | None,
    typer.Option(min=1, help="So many runs of each variant, with the seeds 1, 2, ..."),
]
Jobs = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Runs trained at once, each with its share of the threads, on all graphics cards in "
        "turn. Default: as many as there are cards, or threads for models of the small size on a "
        "CPU, else 1.",
        show_default=False,
    ),
]
On = Annotated[
    str | None,
    typer.Option(
        "--on",
        metavar="WHERE",
        help="Where the runs are done: 'local'; 'dask://HOST:PORT', a cluster whose scheduler is "
        "there; 'slurm', or 'slurm:KEY=VALUE,...' with settings of its jobs. All but "
        "the first want the runs in a folder that all machines share.",
        show_default="local",
    ),
]
Device = Annotated[str, typer.Option(help="'auto' (CUDA when present), 'cpu', 'cuda', 'cuda:1'.")]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Change one setting of the recipe, such as 'train.max_epochs=5'; may be repeated.",
    ),
]
Minutes = Annotated[
    float | None,
    typer.Option(
        min=0,
        help="End each training, evaluation included, before so many minutes are over; the same "
        "command with more goes on with it. ('--set train.max_minutes=N'.)",
        show_default=False,
    ),
]
RunsFolder = Annotated[Path, typer.Option("--runs", help="Folder of the training runs.")]
ResultsFolder = Annotated[
    Path, typer.Option("--results", help="Folder of the result records (in 'runs/') and tables.")
]
SaveParses = Annotated[
    bool,
    typer.Option(
        "--save-parses",
        help="Keep the scored parses, and the gold trees that they were compared with, in the "
        "folder 'parses' of the results.",
    ),
]
Model = Annotated[
    Path,
    typer.Option(
        help="A run folder of 'train', the folder of a saved parser or of a package, or on the hub "
        "'OWNER/NAME@COMMIT'."
    ),
]
StrictFiles = Annotated[
    bool,
    typer.Option(
        "--strict", help="Fail if a file of results or of published figures cannot be read."
    ),
]


def name_left_out(mistakes: Sequence[str], strict: bool) -> None:
    """Say which files or lines a table goes without, and how many they are.

    Raises:
        RecordError: the user wants a table of all or none.
    """
    if not mistakes:
        return
    listed = "".join(f"{mistake}\n" for mistake in mistakes)
    number = "1 file or line" if len(mistakes) == 1 else f"{len(mistakes)} files or lines"
    if strict:
        raise RecordError(f"{listed}{number} cannot be read, so there is no table (--strict)")
    typer.echo(f"{listed}spmrl-bench: LEFT OUT: {number} that cannot be read", err=True)


def required_lang(lang: str | None) -> str:
    if lang is None:
        from spmrl_bench.experiments.recipe import list_recipes

        known = ", ".join(list_recipes())
        raise SpmrlError(f"name a language (with make: lang=german). Known: {known}")
    return lang


def parse_settings(pairs: list[str] | None, minutes: float | None = None) -> dict[str, str]:
    settings = {} if minutes is None else {"train.max_minutes": str(minutes)}
    for pair in pairs or []:
        key, equals, value = pair.partition("=")
        if not equals:
            raise SpmrlError(f"--set {pair}: expected KEY=VALUE, such as train.max_epochs=5")
        settings[key.strip()] = value.strip()
    return settings


def say_line(text: str) -> None:
    """A line of a log, on standard error."""
    typer.echo(text, err=True)


def chosen_seeds(seed: int | None, seeds: int | None) -> list[int]:
    """The seeds that --seed or --seeds asks for; 1 if neither is given."""
    if seed is not None and seeds is not None:
        raise SpmrlError(
            f"--seed {seed} and --seeds {seeds}: give one of the two; --seeds {seeds} takes the "
            f"seeds 1 to {seeds}"
        )
    return list(range(1, seeds + 1)) if seeds is not None else [1 if seed is None else seed]


def check_choice(option: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise SpmrlError(f"--{option}: {unknown_name(option, value, allowed)}")


def print_rows(headings: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> None:
    from tabulate import tabulate

    typer.echo(tabulate(rows, headers=headings, tablefmt="simple", disable_numparse=True))


def raise_all(errors: Sequence[SpmrlError]) -> None:
    """Name what a list had to leave out, if it is anything; status 1."""
    if errors:
        raise SpmrlError("\n".join(map(str, errors)))
