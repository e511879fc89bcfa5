"""The command that parses text."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Literal

from typer import Argument, Option

from spmrl_bench.cli.app import app
from spmrl_bench.cli.options import Device, Model, say_line
from spmrl_bench.errors import SpmrlError


@app.command()
def parse(
    model: Model,
    files: list[str] | None = Argument(
        None, metavar="[FILE]...", help="What to parse. '-', the default, is standard input."
    ),
    to: Path | None = Option(
        None, metavar="FOLDER", help="Parse a folder, with all that is in it, into this one."
    ),
    form: Literal["tokens", "brackets", "conllu", "json"] | None = Option(
        None, "--input", help="Default: 'tokens'; in a folder, what the names of files say."
    ),
    output: Literal["brackets", "conllu", "json"] | None = Option(
        None, help="Default: 'brackets'; 'conllu' if the parser finds dependencies only."
    ),
    tags: Literal["xpos", "upos"] = Option("xpos", help="Column of the tags in CoNLL-U."),
    on_long: Literal["error", "skip", "flat"] = Option(
        "error",
        help="A sentence with more words than the parser has positions: stop; leave it without "
        "parse ('(())', or '_' for its heads); or write one bracket over all words.",
    ),
    scores: bool = Option(
        False,
        "--scores",
        help="Say in JSON, or in column MISC, how likely each part of a parse is.",
    ),
    best: int = Option(
        1, "--best", metavar="K", min=1, max=100, help="Write the best K parses of each in JSON."
    ),
    workers: int = Option(1, min=1, max=1000, help="Processes that parse, which share the cores."),
    on: str | None = Option(
        None, "--on", metavar="WHERE", help="Where the workers of '--to' are, as of 'train'."
    ),
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

    With '--scores' come probabilities: of each constituent, head, relation and predicted tag, and
    of the whole parse. A trained parser has a temperature at which they agree with how often it is
    right on dev ('spmrl-bench model calibrate').

    '--input json' parses lines of '--output json' again, around what their key "given" says: parts
    that a person has set, such as {"constituents": [[0, 3, "NP"]], "arcs": [[2, 5, null]]}.

    With '--to' a folder of files is parsed, whose names say what they hold ('.txt', '.mrg',
    '.conllu', also with '.gz' behind it); each gets a file of the same name. What is
    done is kept: the same command again, after whatever has happened, does the rest.

    Examples:
        echo "Der Hund schläft ." | spmrl-bench parse --model runs/NAME
        spmrl-bench parse --model runs/NAME --input brackets gold.mrg > parses.mrg
        spmrl-bench parse --model OWNER/NAME@COMMIT --input conllu --output json text.conllu
        spmrl-bench parse --model runs/NAME --workers 4 --to parses texts
    """
    from spmrl_bench.parsers.session import WINDOW_SENTENCES
    from spmrl_bench.parsing import bulk
    from spmrl_bench.parsing.models import located, trained_on
    from spmrl_bench.parsing.streams import check_readable, read_input, watched

    names, options = files or [], bulk.ParseOptions(on_long, output, tags, scored=scores, best=best)
    if to is not None:
        from spmrl_bench.parsing.folders import parse_folder
        from spmrl_bench.process.executors.backend import parse_backend

        if len(names) != 1 or not Path(names[0]).is_dir():
            given = " ".join(names) or "nothing"
            raise SpmrlError(f"--to {to}: expected one folder of files to parse, found {given}")
        where, folder = parse_backend(on), located(model)  # once for all workers
        try:
            done = parse_folder(
                folder, Path(names[0]), to, options,
                form=form, workers=workers, device=device, on=where,
            )  # fmt: skip
        except KeyboardInterrupt as interrupt:
            kept = "what is done is kept: give the same command again to go on"
            interrupt.args = (f"interrupted; {kept}",)
            raise
        say_line(done)
        return
    if on is not None:
        raise SpmrlError("--on is for folders, which are parsed with '--to FOLDER'")
    check_readable(names)
    folder = located(model)  # once for all processes
    trained = trained_on(folder)
    options = replace(options, escapes=trained.escapes)
    sentences = read_input(names, form or "tokens", sys.stdin.buffer, tags, trained.transforms)
    if form in (None, "tokens"):
        sentences = watched(sentences, lambda text: say_line(f"spmrl-bench: {text}"))
    counts = bulk.Counts()
    window = WINDOW_SENTENCES if workers == 1 else bulk.SHARED_WINDOW_SENTENCES
    try:
        with bulk.open_workers(folder, device, options, workers) as parse_windows:
            for texts in bulk.parse_input(sentences, parse_windows, counts, window=window):
                sys.stdout.buffer.write("".join(texts).encode())
                sys.stdout.buffer.flush()
    except KeyboardInterrupt as interrupt:
        done = f"the first {counts.sentences:,} sentences have been parsed"
        interrupt.args = (f"interrupted; {done}",)
        raise
    finally:
        if counts.long:
            say_line(
                f"spmrl-bench: {counts.long:,} of {counts.sentences:,} sentences not parsed "
                f"because of their length, {'no' if on_long == 'skip' else 'flat'} parses written "
                f"instead. The first is {counts.first_long}"
            )
