"""Commands for parsers of others: installed, trained and run here, or entered by their answers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from spmrl_bench.cli.app import systems as group
from spmrl_bench.cli.options import (
    ResultsFolder,
    SaveParses,
    StrictFiles,
    name_left_out,
    print_rows,
    say_line,
)
from spmrl_bench.errors import SpmrlError

TreebankArgument = Annotated[
    str, typer.Argument(metavar="TREEBANK", help="As 'spmrl-bench treebanks list' lists it.")
]
Split = Annotated[Literal["dev", "test"], typer.Option(help="Which sentences.")]


@group.command()
def task(
    treebank: TreebankArgument,
    split: Split = "dev",
    to: Annotated[Path, typer.Option(metavar="DIR", help="Where to write the files.")] = Path(),
    tags: Annotated[
        bool, typer.Option("--tags", help="Give the treebank's tags too, in the column XPOS.")
    ] = False,
) -> None:
    """Write the words of a split for another parser.

    No gold structure is written. The words are those that our parsers read: one sentence a line in
    'TREEBANK.SPLIT.txt' (a space inside a word is _), one word a line in
    'TREEBANK.SPLIT.conllu'. What the other parser makes of them is entered with 'spmrl-bench
    systems enter'.

    Example:

        spmrl-bench systems task german-mini --split dev --to outside
    """
    from spmrl_bench.systems.entry import write_task
    from spmrl_bench.treebanks.treebank import open_treebank

    for path in write_task(open_treebank(treebank), split, to, tags=tags):
        typer.echo(f"wrote {path}")


@group.command()
def enter(
    treebank: Annotated[str, typer.Option(help="The treebank that was parsed.")],
    system: Annotated[str, typer.Option(help="Name of the parser, such as Stanza.")],
    dev: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="Its parses of dev: brackets or CoNLL-U; or both."),
    ] = None,
    test: Annotated[
        list[Path] | None, typer.Option(metavar="FILE", help="Its parses of test.")
    ] = None,
    version: Annotated[str, typer.Option(help="Of the parser or of its model.")] = "",
    url: Annotated[str, typer.Option(help="Where it is found.")] = "",
    paper: Annotated[str, typer.Option(help="Where it is described.")] = "",
    training_data: Annotated[str, typer.Option(help="What it was trained on.")] = "",
    notes: Annotated[str, typer.Option(help="What else a reader should know.")] = "",
    tags: Annotated[
        bool, typer.Option("--tags", help="It read the treebank's tags (of 'task --tags').")
    ] = False,
    faults: Annotated[
        Literal["refuse", "missing", "repair"],
        typer.Option(
            help="Answers that cannot be scored: 'refuse' the file; count them as 'missing' "
            "parses, of which nothing is right; 'repair' brackets that are not closed or have text "
            "around them, and count the rest as missing."
        ),
    ] = "refuse",
    encoding: Annotated[str, typer.Option(help="Encoding of the file.")] = "utf-8",
    results: ResultsFolder = Path("results"),
    save_parses: SaveParses = False,
    strict: StrictFiles = False,
) -> None:
    """Score the parses of another parser, and keep a record.

    A file has an answer for each sentence, in their order: trees in brackets, one a line or laid
    out over lines (words escaped as usual, '-LRB-' for an opening bracket), or CoNLL-U. Words must
    be those of 'spmrl-bench systems task'; tags are not scored, and the treebank's take their
    place. Parses of dev and test, and of both layers, come together in one record of the system's
    version, which 'results table' and 'compare' take as they take runs.

    Examples:

        spmrl-bench systems enter --dev dev.mrg --treebank german-mini --system Stanza

        spmrl-bench systems enter --test out.txt --treebank german-mini --system GPT --faults repair
    """
    from spmrl_bench.leaderboard.record import System, load_records
    from spmrl_bench.leaderboard.tables import results_markdown
    from spmrl_bench.systems.entry import enter as enter_files
    from spmrl_bench.treebanks.treebank import open_treebank

    files = {name: paths for name, paths in (("dev", dev), ("test", test)) if paths}
    if not files:
        raise SpmrlError("nothing to enter: give a file of parses with --dev, --test or both")
    name_left_out(load_records(results / "runs")[1], strict)
    record, path = enter_files(
        files,
        open_treebank(treebank),
        System(
            name=system,
            version=version,
            url=url,
            paper=paper,
            training_data=training_data,
            notes=notes,
            outputs={},
        ),
        results,
        policy=faults,
        tags=tags,
        encoding=encoding,
        save_parses=save_parses,
    )
    for name, output in record.system.outputs.items() if record.system else ():
        for kind, number in output.handled.items():
            typer.echo(f"{name}: {kind}: {number:,} answers", err=True)
    typer.echo(f"wrote {path}", err=True)
    typer.echo(results_markdown([record], []), nl=False)


@group.command("list")
def listing() -> None:
    """List the external parsers that can be trained or run here.

    Each is described by a file systems/NAME.toml, of the program or in your own folder
    ($SPMRL_BENCH_HOME, else ~/.spmrl_bench). 'train' and 'eval' take their names with --system.

    Example:

        spmrl-bench systems list
    """
    from spmrl_bench.systems.description import load_system, system_paths
    from spmrl_bench.systems.install import is_installed, version_of

    rows = []
    for name in system_paths():
        known = load_system(name)
        state = version_of(known) if is_installed(known) else "not installed"
        how = "trained here" if known.train else f"trained on {known.training_data}"
        rows.append((name, known.title, known.layer, how, state))
    print_rows(("name", "system", "answers", "", "version here"), rows)


@group.command()
def install(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="As 'spmrl-bench systems list' lists it.")
    ],
    python: Annotated[
        str | None,
        typer.Option(
            metavar="PROGRAM",
            help="Interpreter of the environment. Default: the one that runs this program.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Install an external parser in an environment of its own.

    The environment is under your own folder and has the versions that its description names.

    Example:

        spmrl-bench systems install udpipe
    """
    from spmrl_bench.systems.description import load_system
    from spmrl_bench.systems.install import install as install_system

    install_system(load_system(name), python, say_line)
