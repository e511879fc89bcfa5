"""The command ``spmrl-bench``: a thin layer of words over the package.

Every command parses its arguments, calls one function of the package and prints what it
returns: results on standard output, everything else on standard error. What a command needs
is imported when it runs, so that ``--help`` answers at once and only the commands that train
or parse load torch.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from spmrl_bench.errors import SpmrlError, unknown_name

INTERRUPTED = 130  # exit status of a program stopped by Ctrl-C: 128 + SIGINT
FAILED = 1


class _Commands(TyperGroup):
    """Turns what the user caused into one message and a status; a defect keeps its traceback."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except SpmrlError as error:
            typer.echo(f"spmrl-bench: {error}", err=True)
            raise typer.Exit(FAILED) from None
        except KeyboardInterrupt as interrupt:
            message = str(interrupt) or "interrupted"
            if ctx.invoked_subcommand in ("train", "eval"):
                message += "; give the same command again (without --fresh) to continue"
            typer.echo(f"\nspmrl-bench: {message}", err=True)
            raise typer.Exit(INTERRUPTED) from None


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

Lang = Annotated[
    str | None,
    typer.Argument(
        metavar="LANG", help="A language, as `spmrl-bench recipes` lists it, or a recipe file."
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
    typer.Option(help="`published` or `small`. Default: what the recipe says for the track."),
]
Seed = Annotated[int, typer.Option(min=0, help="Seed of all random choices.")]
Device = Annotated[str, typer.Option(help="`auto` (CUDA when present), `cpu`, `cuda`, `cuda:1`.")]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Change one setting of the recipe, such as `train.max_epochs=5`; may be repeated.",
    ),
]
RunsFolder = Annotated[Path, typer.Option("--runs", help="Folder of the training runs.")]
ResultsFolder = Annotated[
    Path, typer.Option("--results", help="Folder of the result records (in `runs/`) and tables.")
]
Model = Annotated[
    Path, typer.Option(help="A run folder of `train`, or the folder of a saved parser.")
]


@app.command()
def train(
    lang: Lang = None,
    treebank: TreebankName = None,
    track: Track = None,
    variant: Variant = None,
    size: Size = None,
    seed: Seed = 1,
    device: Device = "auto",
    settings: Settings = None,
    runs: RunsFolder = Path("runs"),
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Delete what the run folders hold and start anew.")
    ] = False,
) -> None:
    """Train the variants of a language's recipe on its first treebank that is present.

    A run that was interrupted continues where it stopped when the same command is given
    again; a finished one is not trained twice.

    Examples:

        spmrl-bench train german

        spmrl-bench train german --track mini --variant charlstm --seed 2
    """
    from spmrl_bench.experiments.plan import make_plan
    from spmrl_bench.experiments.run import train as run_train

    work = make_plan(
        _required_lang(lang),
        treebank=treebank,
        track=track,
        variants=variant,
        size=size,
        seed=seed,
        settings=_settings(settings),
    )
    run_train(work, runs_dir=runs, device=device, fresh=fresh)


@app.command("eval")
def evaluate(
    lang: Lang = None,
    treebank: TreebankName = None,
    track: Track = None,
    variant: Variant = None,
    size: Size = None,
    seed: Seed = 1,
    device: Device = "auto",
    settings: Settings = None,
    runs: RunsFolder = Path("runs"),
    results: ResultsFolder = Path("results"),
) -> None:
    """Select the variant with the best dev F1, score it on test, and print the table.

    Takes the same options as `train` and scores what it trained. The test split is scored
    for the selected variant only. Each run leaves a record in the results folder.

    Examples:

        spmrl-bench eval german

        spmrl-bench eval german --track mini --variant charlstm --seed 2
    """
    from spmrl_bench.experiments.plan import make_plan
    from spmrl_bench.experiments.run import evaluate as run_evaluate
    from spmrl_bench.leaderboard.published import read_figures
    from spmrl_bench.leaderboard.record import read_records
    from spmrl_bench.leaderboard.table import group_records, to_markdown

    work = make_plan(
        _required_lang(lang),
        treebank=treebank,
        track=track,
        variants=variant,
        size=size,
        seed=seed,
        settings=_settings(settings),
    )
    run_evaluate(work, runs_dir=runs, results_dir=results, device=device)
    bank = work.treebank.name
    records = [one for one in read_records(results / "runs") if one.treebank.name == bank]
    typer.echo(to_markdown(group_records(records), read_figures()), nl=False)


@app.command()
def table(
    results: ResultsFolder = Path("results"),
    form: Annotated[
        str, typer.Option("--format", help="What to print: `markdown` or `csv`.")
    ] = "markdown",
) -> None:
    """Print the tables of all result records, and write them to table.md and table.csv.

    Scores of different treebanks or tracks, or scores counted in different ways, never share
    a table. Of several records of one run the newest is shown.

    Examples:

        spmrl-bench table

        spmrl-bench table --format csv > scores.csv
    """
    from spmrl_bench.files import write_text
    from spmrl_bench.leaderboard.published import read_figures
    from spmrl_bench.leaderboard.record import read_records
    from spmrl_bench.leaderboard.table import group_records, table_frame, to_csv, to_markdown

    _check_choice("format", form, ("markdown", "csv"))
    records = read_records(results / "runs")
    if not records:
        raise SpmrlError(
            f"no records in {results / 'runs'}: 'spmrl-bench eval LANG' writes them "
            "(after 'spmrl-bench train LANG')"
        )
    groups, figures = group_records(records), read_figures()
    texts = {
        "markdown": to_markdown(groups, figures),
        "csv": to_csv(table_frame(groups, figures)),
    }
    try:
        for kind, name in (("markdown", "table.md"), ("csv", "table.csv")):
            write_text(results / name, texts[kind])
    except OSError as error:
        raise SpmrlError(f"{results}: cannot write the tables: {error.strerror}") from error
    typer.echo(texts[form], nl=False)


@app.command()
def parse(
    model: Model,
    form: Annotated[
        str, typer.Option("--input", help="What is read: `tokens` or `brackets` (trees).")
    ] = "tokens",
    device: Device = "auto",
) -> None:
    """Parse standard input and write one tree per line to standard output, in the same order.

    With `--input tokens` every line is a sentence, its words separated by white space; an
    empty line gives an empty line. With `--input brackets` the words and tags of bracketed
    trees are read, and the trees themselves are parsed anew. Text is UTF-8.

    Examples:

        echo "Der Hund schläft ." | spmrl-bench parse --model runs/NAME

        spmrl-bench parse --model runs/NAME --input brackets < gold.mrg > parses.mrg
    """
    _check_choice("input", form, ("tokens", "brackets"))
    from spmrl_bench.parsers import load_parser
    from spmrl_bench.parsers.streams import parse_brackets, parse_tokens

    parse_stream = parse_tokens if form == "tokens" else parse_brackets
    for line in parse_stream(sys.stdin.buffer, load_parser(model, device=device)):
        sys.stdout.write(f"{line}\n")


@app.command()
def score(
    gold: Annotated[Path, typer.Argument(help="Bracketed gold trees.")],
    test: Annotated[Path, typer.Argument(help="Bracketed parses of the same sentences.")],
    prm: Annotated[
        str,
        typer.Option(help="Parameter set (`spmrl`, `COLLINS`), or an evalb parameter file."),
    ] = "spmrl",
    program: Annotated[
        str | None,
        typer.Option(
            help="`EVALB` or `EVALB_SPMRL`: whose conventions a parameter file follows that "
            "does not say so itself."
        ),
    ] = None,
    encoding: Annotated[str, typer.Option(help="Encoding of both files.")] = "utf-8",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")] = False,
) -> None:
    """Score a file of parses against gold trees, with the conventions of EVALB.

    Both files hold the same sentences in the same order. A sentence whose words differ is
    left out of every figure, and the report says so.

    Examples:

        spmrl-bench score gold.mrg parses.mrg

        spmrl-bench score gold.mrg parses.mrg --prm COLLINS --json
    """
    import json

    from spmrl_bench.scoring import load_prm, score_files
    from spmrl_bench.scoring.report import as_dict, as_text
    from spmrl_bench.scoring.signature import sign

    parameters = load_prm(prm, program)
    counts = score_files(gold, test, parameters, encoding=encoding)
    signature = sign(counts, parameters)
    if as_json:
        report = as_dict(counts, parameters) | {"signature": signature.as_dict()}
        typer.echo(json.dumps(report, indent=2))
    else:
        typer.echo(f"{as_text(counts, parameters)}\n{signature.long()}")


@app.command()
def recipes() -> None:
    """List the languages that can be trained, with their treebanks in order of preference.

    Example:

        spmrl-bench recipes
    """
    from spmrl_bench.experiments.recipe import list_recipes, load_recipe
    from spmrl_bench.treebanks.treebank import treebank_status

    present = {status.name for status in treebank_status() if status.present}
    rows = []
    for name in list_recipes():
        recipe = load_recipe(name)
        banks = recipe.language.treebanks
        used = next((bank for bank in banks if bank in present), "none is present")
        rows.append((name, used, ", ".join(banks), ", ".join(recipe.base.variants)))
    _print_rows(("language", "uses", "treebanks by preference", "variants"), rows)


@app.command()
def treebanks() -> None:
    """List the treebanks the program knows, which are present, and where it looked.

    Treebanks other than the mini ones are read from the directory that the environment
    variable TREEBANKS names.

    Example:

        TREEBANKS=~/treebanks spmrl-bench treebanks
    """
    from spmrl_bench.treebanks.treebank import treebank_status

    rows = [
        (
            status.name,
            status.track,
            " / ".join(f"{count:,}" for count in status.sentences.values()),
            "present" if status.present else "absent",
            status.where,
            _first_of(status.missing),
        )
        for status in treebank_status()
    ]
    headings = ("treebank", "track", "train / dev / test", "state", "looked in", "missing")
    _print_rows(headings, rows)


def _required_lang(lang: str | None) -> str:
    if lang is None:
        from spmrl_bench.experiments.recipe import list_recipes

        known = ", ".join(list_recipes())
        raise SpmrlError(f"name a language (with make: lang=german). Known: {known}")
    return lang


def _settings(pairs: list[str] | None) -> dict[str, str]:
    settings = {}
    for pair in pairs or []:
        key, equals, value = pair.partition("=")
        if not equals:
            raise SpmrlError(f"--set {pair}: expected KEY=VALUE, such as train.max_epochs=5")
        settings[key.strip()] = value.strip()
    return settings


def _first_of(names: tuple[str, ...]) -> str:
    """The first three names, and how many more there are."""
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more


def _check_choice(option: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise SpmrlError(f"--{option}: {unknown_name(option, value, allowed)}")


def _print_rows(headings: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> None:
    from tabulate import tabulate

    typer.echo(tabulate(rows, headers=headings, tablefmt="simple", disable_numparse=True))


def main() -> None:
    """Entry point: the command line, with UTF-8 output and quiet when a reader goes away."""
    # GNU OpenMP threads spin while they wait. When another program needs a core, that slows
    # training down twentyfold; a short spin keeps most of the speed of an idle machine.
    os.environ.setdefault("GOMP_SPINCOUNT", "2000")
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(encoding="utf-8")  # type: ignore[union-attr]
    try:
        try:
            app(prog_name="spmrl-bench")
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        # Python flushes once more at exit; give it a place where that succeeds.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(FAILED)
