"""Options that several commands share, and what they do with them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

from typer import Argument, Option

from spmrl_bench.errors import RecordError, SpmrlError
from spmrl_bench.process.console import echo

if TYPE_CHECKING:
    from spmrl_bench.parsers.base import Parser

T = TypeVar("T")

Lang = Annotated[
    str | None, Argument(metavar="LANG", help="As 'spmrl-bench recipes list' has it, or a file.")
]
TreebankName = Annotated[str | None, Option(help="Default: the first of the recipe's here.")]
Track = Annotated[
    str | None, Option(help="The treebank of this track: spmrl, ptb, ctb, open or mini.")
]
Variants = Annotated[
    list[str] | None, Option("--variant", help="Of the recipe; may be repeated. Default: all.")
]
Size = Annotated[
    str | None, Option(help="'published' or 'small'. Default: what the recipe has for the track.")
]
Seed = Annotated[int | None, Option(min=0, help="Seed of all random choices. Default: 1.")]
Seeds = Annotated[int | None, Option(min=1, max=1000, help="Runs of each variant: seeds 1, 2, ...")]
Jobs = Annotated[
    int | None,
    Option(min=1, help="Runs trained at once. Default: one a graphics card, or for small models "
           "one a thread."),
]  # fmt: skip
On = Annotated[
    str | None,
    Option("--on", metavar="WHERE", help="Where the runs are done: 'local', 'dask://HOST:PORT', "
           "'slurm' or 'slurm:KEY=VALUE,...'. All but the first want a folder of runs that all "
           "machines share. Default: local."),
]  # fmt: skip
Device = Annotated[str, Option(help="'auto' (CUDA when present), 'cpu', 'cuda', 'cuda:1'.")]
Settings = Annotated[
    list[str] | None,
    Option("--set", metavar="KEY=VALUE", help="Change one setting of the recipe; may be repeated."),
]
Minutes = Annotated[
    float | None,
    Option(min=1e-6, help="End each training before its threads have worked so long; more go on."),
]
RunsFolder = Annotated[Path, Option("--runs", help="Folder of the training runs.")]
ResultsFolder = Annotated[Path, Option("--results", help="Folder of the records and tables.")]
SaveParses = Annotated[
    bool, Option("--save-parses", help="Keep parses and gold trees in 'parses' of the results.")
]
Model = Annotated[
    Path, Option(help="A run of 'train', a saved parser, a package, or 'OWNER/NAME@COMMIT'.")
]
Encoding = Annotated[str, Option(help="Text encoding of the files.")]
StrictFiles = Annotated[
    bool, Option("--strict", help="Fail if a file of results or published figures is unreadable.")
]

_SHOWN = 50  # mistakes that are listed


def name_left_out(mistakes: Sequence[str], strict: bool) -> None:
    """Say which files or lines a table goes without; RecordError if it shall have all."""
    if not mistakes:
        return
    listed = "".join(f"{mistake}\n" for mistake in mistakes[:_SHOWN])
    listed += "" if len(mistakes) <= _SHOWN else f"and {len(mistakes) - _SHOWN:,} more\n"
    number = "1 file or line" if len(mistakes) == 1 else f"{len(mistakes)} files or lines"
    if strict:
        raise RecordError(f"{listed}{number} cannot be read, so there is no table (--strict)")
    echo(f"{listed}spmrl-bench: LEFT OUT: {number} that cannot be read", err=True)


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


#: Write a line of a log, on standard error.
say_line = partial(echo, err=True)


def loaded_parser(model: Path, device: str) -> Parser:
    from spmrl_bench.nn.device import prepare_process
    from spmrl_bench.parsing.models import load_parser

    prepare_process(device)
    return load_parser(model, device)


def print_rows(headings: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> None:
    from tabulate import tabulate

    echo(tabulate(rows, headers=headings, tablefmt="simple", disable_numparse=True))


def loaded_all(
    load: Callable[[str], T], names: Iterable[str]
) -> tuple[dict[str, T], list[SpmrlError]]:
    """What is loaded of each name, and the errors of the others, which hide none."""
    found, errors = dict[str, T](), list[SpmrlError]()
    for name in names:
        try:
            found[name] = load(name)
        except SpmrlError as error:
            errors.append(error)
    return found, errors


def raise_all(errors: Sequence[SpmrlError]) -> None:
    """Name what a list had to leave out, if it is anything; status 1."""
    if errors:
        raise SpmrlError("\n".join(map(str, errors)))
