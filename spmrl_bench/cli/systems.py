"""Commands for parsers of others: installed, trained and run here, or entered by their answers."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from typer import Argument, Option

from spmrl_bench.cli import options
from spmrl_bench.cli.app import systems as group
from spmrl_bench.errors import SpmrlError
from spmrl_bench.process.console import echo


@group.command("list")
def listing() -> None:
    """List the external parsers that can be trained or run here.

    Each is described by a file systems/NAME.toml, of the program or in your own folder
    ($SPMRL_BENCH_HOME, else ~/.spmrl_bench). 'train' and 'eval' take their names with --system.

    Example:
        spmrl-bench systems list
    """
    from spmrl_bench.systems.description import is_installed, load_system, system_paths, version_of

    systems, wrong = options.loaded_all(load_system, system_paths())
    rows = []
    for name, known in systems.items():
        state = version_of(known) if is_installed(known) else "not installed"
        how = "trained here" if known.train else f"trained on {known.training_data}"
        rows.append((name, known.title, known.layer, how, state))
    options.print_rows(("name", "system", "answers", "", "version here"), rows)
    options.raise_all(wrong)


@group.command()
def install(
    name: str = Argument(..., metavar="NAME", help="As 'spmrl-bench systems list' has it."),
    python: str | None = Option(
        None, metavar="PROGRAM", help="Interpreter. Default: the one that runs this program."
    ),
) -> None:
    """Install an external parser in an environment of its own.

    The environment is under your own folder and has the versions that its description names.

    Example:
        spmrl-bench systems install udpipe
    """
    from spmrl_bench.systems.description import install_system, load_system

    install_system(load_system(name), python)


@group.command()
def task(
    treebank: str = Argument(..., metavar="TREEBANK", help="As 'treebanks list' has it."),
    split: Literal["dev", "test"] = Option("dev", help="Which sentences."),
    to: Path = Option(Path(), metavar="DIR", help="Where to write the files."),
    tags: bool = Option(False, "--tags", help="Give the treebank's tags too, as XPOS."),
) -> None:
    """Write the words of a split for another parser.

    No gold structure is written. The words are those that our parsers read: one sentence a line in
    'TREEBANK.SPLIT.txt' (white space inside a word is _), one word a line in
    'TREEBANK.SPLIT.conllu', as it is. What the other parser makes of them is entered with
    'spmrl-bench systems enter'.

    Example:
        spmrl-bench systems task german-mini --split dev --to outside
    """
    from spmrl_bench.systems.enter import write_task
    from spmrl_bench.treebanks.treebank import open_treebank

    for path in write_task(open_treebank(treebank), split, to, tags=tags):
        echo(f"wrote {path}")


@group.command()
def enter(
    treebank: str | None = Option(None, help="The treebank that was parsed."),
    system: str | None = Option(None, help="Name of the parser, such as Stanza."),
    dev: list[Path] | None = Option(
        None, metavar="FILE", help="Its parses of dev: brackets or CoNLL-U; or both."
    ),
    test: list[Path] | None = Option(None, metavar="FILE", help="Its parses of test."),
    version: str = Option("", help="Of the parser or of its model."),
    url: str = Option("", help="Where it is found."),
    paper: str = Option("", help="Where it is described."),
    training_data: str = Option("", help="What it was trained on."),
    notes: str = Option("", help="What else a reader should know."),
    tags: bool = Option(False, "--tags", help="It read the treebank's tags (of 'task --tags')."),
    oath: bool = Option(
        False, "--oath", help="You swear that nothing was learnt from test, or chosen by it."
    ),
    faults: Literal["refuse", "missing", "repair"] = Option(
        "refuse",
        help="Answers that cannot be scored: 'refuse' the file; count them as 'missing'; 'repair' "
        "brackets not closed or with text around them, and count the rest as missing.",
    ),
    encoding: options.Encoding = "utf-8",
    results: options.ResultsFolder = Path("results"),
    save_parses: options.SaveParses = False,
    strict: options.StrictFiles = False,
    check: Path | None = Option(
        None, metavar="RECORD", help="Check a record that somebody sends, with its parses."
    ),
) -> None:
    """Score the parses of another parser, and keep a record.

    A file has an answer for each sentence, in their order: trees in brackets, one a line or laid
    out over lines (words escaped as usual, '-LRB-' for an opening bracket), or CoNLL-U. Words must
    be those of 'spmrl-bench systems task'; tags are not scored, and the treebank's take their
    place. Parses of dev and test, and of both layers, come together in one record of the system's
    version, which 'results table' and 'compare' take as they take runs.

    With '--check', and nothing else but '--results', a record is checked that somebody sends with
    the parses that '--save-parses' kept beside it: they are counted anew, and the tables are shown
    with its row among those of the results.

    Examples:
        spmrl-bench systems enter --check theirs/runs/0123456789abcdef.json
        spmrl-bench systems enter --test out.txt --treebank german-mini --system GPT --faults repair
    """
    from spmrl_bench.leaderboard.record import System, load_records
    from spmrl_bench.leaderboard.tables import results_document, results_markdown
    from spmrl_bench.leaderboard.writing import to_markdown
    from spmrl_bench.systems.enter import check_entry
    from spmrl_bench.systems.enter import enter as enter_files
    from spmrl_bench.treebanks.treebank import open_treebank

    if check is not None:
        if treebank or system or dev or test:
            raise SpmrlError("--check takes a record that is there, and nothing to enter")
        tables, wrong = check_entry(check, results)
        echo(to_markdown(results_document(tables, [])), nl=False)
        options.raise_all([SpmrlError(f"{check}: {text}") for text in wrong])
        return
    files = {name: paths for name, paths in (("dev", dev), ("test", test)) if paths}
    if not files:
        raise SpmrlError("nothing to enter: give a file of parses with --dev, --test or both")
    options.name_left_out(load_records(results / "runs")[1], strict)
    treebank, system = treebank or "", system or ""
    for what, text in (("treebank", treebank), ("system", system)):
        if not text.strip():
            raise SpmrlError(f"--{what}: expected the name of the {what}, found nothing")
    described = System(
        name=system, version=version, url=url, paper=paper, training_data=training_data,
        notes=notes, oath=oath, outputs={},
    )  # fmt: skip
    record, path = enter_files(
        files, open_treebank(treebank), described, results,
        policy=faults, tags=tags, encoding=encoding, save_parses=save_parses,
    )  # fmt: skip
    for name, output in record.system.outputs.items() if record.system else ():
        for kind, number in output.handled.items():
            echo(f"{name}: {kind}: {number:,} answers", err=True)
    echo(f"wrote {path}", err=True)
    echo(results_markdown([record], []), nl=False)
