"""The command that parses text."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, cast

import typer

from spmrl_bench.cli.app import app
from spmrl_bench.cli.options import Device, Model, check_choice, say_line
from spmrl_bench.errors import SpmrlError

if TYPE_CHECKING:
    from spmrl_bench.parsing.answers import Output
    from spmrl_bench.parsing.bulk import Counts, OnLong, ParseOptions
    from spmrl_bench.parsing.streams import Form


@app.command()
def parse(
    model: Model,
    files: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[FILE]...",
            help="What to parse, in this order; '-' is standard input. Default: standard input.",
            show_default=False,
        ),
    ] = None,
    to: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Parse a folder: the one that is given, with all that is in it, into this one.",
            show_default=False,
        ),
    ] = None,
    form: Annotated[
        str | None,
        typer.Option(
            "--input",
            help="What is read: 'tokens', 'brackets' (trees) or 'conllu'. Default: 'tokens'; in a "
            "folder, what the name of each file says.",
            show_default=False,
        ),
    ] = None,
    output: Annotated[
        str | None,
        typer.Option(
            help="What is written: 'brackets', 'conllu' or 'json'. Default: 'brackets'; 'conllu' "
            "if the parser finds dependencies only."
        ),
    ] = None,
    tags: Annotated[
        Literal["xpos", "upos"], typer.Option(help="Column of the tags in CoNLL-U.")
    ] = "xpos",
    on_long: Annotated[
        Literal["error", "skip", "flat"],
        typer.Option(
            help="A sentence with more words than the parser has positions: stop with an 'error'; "
            "'skip' it ('(())' in brackets, '_' for its heads in CoNLL-U); or write a 'flat' "
            "parse, as one bracket over all words. Those not parsed are counted on standard error."
        ),
    ] = "error",
    workers: Annotated[
        int,
        typer.Option(
            min=1, help="Processes that parse, each with its share of the processor's cores."
        ),
    ] = 1,
    on: Annotated[
        str | None,
        typer.Option(
            "--on",
            metavar="WHERE",
            help="Where the workers of '--to' are, as of 'train'; the default is this machine.",
            show_default=False,
        ),
    ] = None,
    device: Device = "auto",
) -> None:
    """Parse files or standard input to standard output, in order.

    With '--input tokens' every line is a sentence, its words separated by white space; an
    empty line gives an empty line. Such words have no tags: trees show what the parser predicts,
    or else 'XX'. With '--input brackets' or 'conllu' the words and tags of
    trees are read, and the trees themselves are parsed anew; the words of brackets come out as they
    went in, and what the parser's treebank changes in its trees (traces, functions of tags) is
    changed here too. Text is UTF-8, of any size.

    Trees and JSON objects are written one a line. From CoNLL-U to CoNLL-U, heads and relations
    are replaced and all else comes out as it went in.

    With '--to' a folder of files is parsed, whose names say what they hold ('.txt', '.mrg',
    '.conllu', also with '.gz' behind it); each gets a file of the same name. What is
    done is kept: the same command again, after whatever has happened, does the rest.

    Examples:

        echo "Der Hund schläft ." | spmrl-bench parse --model runs/NAME

        spmrl-bench parse --model runs/NAME --input brackets gold.mrg > parses.mrg

        spmrl-bench parse --model runs/NAME --workers 4 --on-long flat part1 part2 > trees

        spmrl-bench parse --model runs/NAME --input conllu --output json text.conllu

        spmrl-bench parse --model OWNER/NAME@COMMIT text.txt

        spmrl-bench parse --model runs/NAME --workers 4 --to parses texts
    """
    from spmrl_bench.nn.device import prepare_process
    from spmrl_bench.parsers.session import WINDOW_SENTENCES
    from spmrl_bench.parsing.answers import OUTPUTS
    from spmrl_bench.parsing.bulk import (
        SHARED_WINDOW_SENTENCES,
        Counts,
        ParseOptions,
        open_workers,
        parse_input,
    )
    from spmrl_bench.parsing.packages import located
    from spmrl_bench.parsing.streams import FORMS, check_readable, read_input

    if form is not None:
        check_choice("input", form, FORMS)
    if output is not None:
        check_choice("output", output, OUTPUTS)
    names = files or []
    options = ParseOptions(on_long, cast("Output | None", output), tags)
    if to is not None:
        _parse_folder(to, names, model, options, cast("Form | None", form), workers, device, on)
        return
    if on is not None:
        raise SpmrlError("--on is for folders, which are parsed with '--to FOLDER'")
    check_readable(names)
    folder = located(model)  # once for all processes
    form = form or "tokens"
    transforms = None
    if form == "brackets":
        from spmrl_bench.parsing.models import trained_transforms

        transforms = trained_transforms(folder)
    sentences = read_input(names, cast("Form", form), sys.stdin.buffer, tags, transforms)
    if form == "tokens":
        from spmrl_bench.parsing.streams import watched

        sentences = watched(sentences, lambda text: typer.echo(f"spmrl-bench: {text}", err=True))
    counts = Counts()
    window = SHARED_WINDOW_SENTENCES
    if workers == 1:
        window = WINDOW_SENTENCES
        prepare_process(device)
    try:
        with open_workers(folder, device, options, workers) as parse_windows:
            for texts in parse_input(sentences, parse_windows, counts, window=window):
                _write("".join(texts))
    except KeyboardInterrupt as interrupt:
        done = f"the first {counts.sentences:,} sentences have been parsed"
        interrupt.args = (f"interrupted; {done}",)
        raise
    finally:
        if counts.long:
            typer.echo(f"spmrl-bench: {_long_sentences(counts, on_long)}", err=True)


def _parse_folder(
    to: Path,
    names: list[str],
    model: Path,
    options: ParseOptions,
    form: Form | None,
    workers: int,
    device: str,
    on: str | None,
) -> None:
    from spmrl_bench.parsing.folders import parse_folder
    from spmrl_bench.parsing.packages import located
    from spmrl_bench.process.executors.backend import parse_backend

    if len(names) != 1 or not Path(names[0]).is_dir():
        given = " ".join(names) or "nothing"
        raise SpmrlError(f"--to {to}: expected one folder of files to parse, found {given}")
    try:
        done = parse_folder(
            located(model),  # once for all workers
            Path(names[0]),
            to,
            options,
            form=form,
            workers=workers,
            device=device,
            on=parse_backend(on),
            log=say_line,
        )
    except KeyboardInterrupt as interrupt:
        kept = "what is done is kept: give the same command again to go on"
        interrupt.args = (f"interrupted; {kept}",)
        raise
    say_line(done)


def _write(text: str) -> None:
    """Write lines so that whoever reads them has them at once, and with the ends that they have.

    Raises:
        BrokenPipeError: nobody reads any more.
        SpmrlError: they cannot be written, as on a full disk.
    """
    sys.stdout.buffer.write(text.encode())
    sys.stdout.buffer.flush()


def _long_sentences(counts: Counts, on_long: OnLong) -> str:
    """How many sentences were too long, and which was the first."""
    count = f"{counts.long:,} of {counts.sentences:,} sentences not parsed because of their length"
    instead = "no parses" if on_long == "skip" else "flat parses"
    return f"{count}, {instead} written instead. The first is {counts.first_long}"
