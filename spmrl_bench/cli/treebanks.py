"""Commands about treebanks: what there is, whether it is sound, and how to add one."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import typer
from typer import Argument, Option

from spmrl_bench.cli.app import treebanks
from spmrl_bench.cli.options import Device, loaded_parser, print_rows, raise_all, say_line
from spmrl_bench.errors import SpmrlError, TreebankError
from spmrl_bench.process.console import echo

if TYPE_CHECKING:
    from spmrl_bench.analysis.suspects import Item
    from spmrl_bench.analysis.variation import Annotation, Context
    from spmrl_bench.treebanks.manifest import SplitName
    from spmrl_bench.treebanks.treebank import Treebank

_SHOWN = 20  # errors printed unless all are asked for


@treebanks.command("list")
def listing() -> None:
    """List treebanks: which are present, and where they belong.

    Treebanks other than the mini ones are read from the directory that the environment
    variable TREEBANKS names.

    Example:
        TREEBANKS=~/treebanks spmrl-bench treebanks list
    """
    from spmrl_bench.treebanks.catalogue import treebank_statuses
    from spmrl_bench.treebanks.manifest import SPLITS
    from spmrl_bench.treebanks.patterns import some

    statuses, wrong = treebank_statuses()
    rows = []
    for status in statuses:
        manifest, state = status.manifest, "present" if status.present else "absent"
        counts = [manifest.splits[split].sentences for split in SPLITS]
        sizes = " / ".join(f"{count[0]:,}" if count else "?" for count in counts)
        missing = some(status.missing or status.layer_missing, most=3)
        about = manifest.name, manifest.track, sizes, ", ".join(status.layers)
        own, content = manifest.origin
        origin = f"{own} {content[:12]}" if own else f"shipped {content[:12]}"
        rows.append((*about, state, status.where, missing, origin))
    headings = "treebank", "track", "train / dev / test", "layers", "state", "looked in", "missing"
    print_rows((*headings, "manifest"), rows)
    raise_all(wrong)


@treebanks.command()
def fetch(
    names: list[str] = Argument(..., metavar="NAME...", help="Treebanks to download."),
) -> None:
    """Download open treebanks.

    They go into the directory that the environment variable TREEBANKS names. Every file is checked
    against the SHA-256 that the program records; files that are there already stay as they are.

    Example:
        TREEBANKS=~/treebanks spmrl-bench treebanks fetch english-wsj-sample
    """
    from spmrl_bench.treebanks.catalogue import load_manifest
    from spmrl_bench.treebanks.download import fetch_treebank

    for name in names:
        manifest = load_manifest(name)
        written = fetch_treebank(manifest, tell=say_line)
        echo(f"{name}: {len(written)} files fetched; licence: {manifest.licence}")


@treebanks.command()
def check(
    names: list[str] | None = Argument(None, metavar="[NAME]...", help="Default: all present."),
    figures: bool = Option(False, "--figures", help="Print the figures of every split."),
    every: bool = Option(False, "--every-error", help=f"Print every error, not only {_SHOWN}."),
) -> None:
    """Read treebanks completely and list what is wrong with them.

    Checked are the files and their checksums, every sentence, the numbers of sentences and
    tokens that the manifest declares, the root of every tree, sentences that two splits have, the
    sentences and words of a second layer, and whether the recipes that name the treebank have room
    for its sentences. Where the numbers of sentences are not the declared ones, it prints a
    manifest of your own, based on the treebank's, that declares those that are there. The status
    is 1 if anything is wrong, or if a treebank that was named is absent.

    Examples:
        TREEBANKS=~/treebanks spmrl-bench treebanks check all
        TREEBANKS=~/treebanks spmrl-bench treebanks check german-spmrl --figures
    """
    from spmrl_bench.experiments.plan import recipe_problems
    from spmrl_bench.treebanks.catalogue import load_manifest, treebank_statuses
    from spmrl_bench.treebanks.check import VALIDATED, validate

    wrong: list[TreebankError] = []
    if not names or names == ["all"]:
        statuses, wrong = treebank_statuses()
        names = [status.manifest.name for status in statuses if status.present]
    results = []
    for manifest in [load_manifest(name) for name in names]:
        results.append(result := validate(manifest))
        if result.present:
            longest = {split: one.longest for split, one in result.statistics.items()}
            result.problems += recipe_problems(manifest.name, longest)
            if figures:
                echo(result.figures())
        else:
            result.problems.append("not present: 'spmrl-bench treebanks list' says what is missing")
    print_rows(VALIDATED, [row for result in results for row in result.rows()])
    failed = [result for result in results if result.problems]
    for result in failed:
        _print_errors(f"{result.name}: {len(result.problems)} problem(s)", result.problems, every)
        if result.deviating:
            say_line(result.own_manifest())
    if failed:
        unsound = ", ".join(result.name for result in failed)
        counts = f"{len(failed)} of {len(results)} treebanks are not sound"
        wrong.append(TreebankError(f"{counts}: {unsound}"))
    raise_all(wrong)


def _print_errors(about: str, errors: list[str], every: bool) -> None:
    shown = errors if every else errors[:_SHOWN]
    say_line("\n  ".join([f"\n{about}", *shown]))
    if len(errors) > len(shown):
        say_line(f"  ... and {len(errors) - len(shown)} more (--every-error)")


@treebanks.command()
def add(
    folder: Path = Argument(..., metavar="DIR", help="The folder with its files."),
    language: str | None = Option(None, help="Its English name. Default: the folder's name."),
    name: str | None = Option(None, help="Of the treebank. Default: language and folder."),
    form: str | None = Option(None, "--format", help="File format. Default: guessed."),
    encoding: str | None = Option(None, help="Default: UTF-8, or as a file's mark says."),
    train: list[str] | None = Option(
        None, help="Files: a name, a pattern with '*', a folder, '@LIST'; may be repeated."
    ),
    dev: list[str] | None = Option(None, help="Likewise for development."),
    test: list[str] | None = Option(None, help="Likewise for the test."),
    allow_shared: bool = Option(
        False, "--allow-shared", help="Allow splits to have the same sentences."
    ),
    yes: bool = Option(False, "--yes", "-y", help="Write the files without asking."),
    redistributable: bool = Option(
        False, "--redistributable", help="Its licence lets anybody show its sentences, as pages do."
    ),
    on_error: Literal["fail", "skip"] = Option(
        "fail", help="Write nothing if a sentence breaks the format, or leave such sentences out."
    ),
    into: Path | None = Option(
        None,
        help="Folder of 'treebanks/NAME.toml' and the recipe. Default: $SPMRL_BENCH_HOME if "
        "set, else the checkout or ~/.spmrl_bench.",
    ),
    every: bool = Option(False, "--every-error", help=f"Print every error, not only {_SHOWN}."),
) -> None:
    """Make a manifest and a recipe for a folder of treebank files.

    Format, splits and transforms are guessed and everything is read; what was found is shown,
    with the files of each split and those that none has, before anything is written ('--yes'
    writes without asking). Names that say something (train, dev, test, gold) decide about the
    splits; those that are missing are cut from the end of the training data, and so are all of
    a single file. Several files whose names say nothing are refused until you say what is for
    what. Look over the manifest afterwards: licence, citation and transforms are yours to
    complete.

    Examples:
        spmrl-bench treebanks add ~/treebanks/my_treebank --language icelandic
        spmrl-bench treebanks add corpus --train 'a*' --dev b1.mrg --test @test.ids --yes
    """
    from spmrl_bench.experiments.recipe import new_recipe
    from spmrl_bench.storage.paths import home
    from spmrl_bench.treebanks.new import inspect_folder, place_for_new, write_new_treebank

    if folder.is_file():
        raise SpmrlError(
            f"{folder}: a file, expected a folder: name {folder.parent}, and where other files "
            "lie there too, say which are for what with --train, --dev and --test"
        )
    if not folder.is_dir():
        raise SpmrlError(f"{folder}: no such folder")
    named: dict[SplitName, list[str] | None] = {"train": train, "dev": dev, "test": test}
    given = {split: files for split, files in named.items() if files}
    found = inspect_folder(
        folder, language=language, name=name, format_name=form, encoding=encoding, given=given,
        allow_shared=allow_shared,
    )  # fmt: skip
    echo(found.report())
    refused = ""
    if found.errors:
        broken = f"{len(found.errors)} sentence(s) break the format:"
        _print_errors(broken, found.errors, every)
        if on_error == "fail":
            refused = "--on-error skip leaves these sentences out"
    if found.overlaps:
        _print_errors("Splits have the same sentences:", found.overlaps, every)
        refused = refused or "--allow-shared takes them as they are"
    if refused:
        raise SpmrlError(f"nothing was written; {refused}")
    echo()
    question = f"Write the manifest of {found.name}?"  # asked only where somebody is there
    if not (yes or (sys.stdin.isatty() and typer.confirm(question))):
        echo("nothing was written; the same command with --yes writes it")
        return
    public = "Does its licence let anybody show its sentences?"
    if redistributable or (not yes and typer.confirm(public, default=False)):
        found.manifest = f"redistributable = true\n{found.manifest}"
    top = into or place_for_new()
    recipe, text = new_recipe(found.language, found.name, found.longest, top)
    for path in write_new_treebank(found, top, {recipe: text}):
        echo(f"wrote {path}")
    known = top.absolute() in (home(), place_for_new())
    where = "" if known else f"SPMRL_BENCH_HOME={top.absolute()} "
    echo(f"next: {where}spmrl-bench train {recipe.stem}")


@treebanks.command()
def suspects(
    treebank: str = Argument(..., metavar="NAME", help="A treebank."),
    model: Path | None = Option(
        None, metavar="RUN", help="A run of 'train'. Default: the treebank tells by itself."
    ),
    split: Literal["train", "dev", "test"] | None = Option(
        None, help="Default: 'dev' with a model, else 'train'."
    ),
    of: Literal["constituents", "dependencies", "tags"] | None = Option(
        None, help="Only these. Default: all that the model finds, or the treebank's first layer."
    ),
    context: Literal["words", "tags", "only-tags"] = Option(
        "words", help="What is the same: all 'words', around them only 'tags', or 'only-tags'."
    ),
    worst: int = Option(50, min=1, help="Sentences that are listed."),
    output: Path | None = Option(None, help="File to write instead: .txt, .html or .csv."),
    device: Device = "auto",
) -> None:
    """List the sentences whose annotation is most likely wrong.

    With a model: of each constituent, or each head and relation, on which gold and parser differ
    count the odds of the parser's against gold's. The largest odds of a sentence count, less the
    more else differs. A parser has learnt the errors that it was trained on.

    Without: words that are annotated otherwise than the same words elsewhere are ambiguous or
    wrong; the more words around them are the same, and the fewer places are annotated as this
    one, the likelier it is wrong here (Dickinson & Meurers 2003; Boyd, Dickinson & Meurers 2008
    for dependencies). In a small treebank few words occur twice in the same context: try
    --context tags.

    Examples:
        spmrl-bench treebanks suspects french-sequoia --context tags --output list.html
        spmrl-bench treebanks suspects german-mini --model runs/german-mini/small-charlstm-seed1
    """
    from spmrl_bench.analysis.suspects import SuspectList, check_ending
    from spmrl_bench.leaderboard.writing import write_file
    from spmrl_bench.treebanks.treebank import open_treebank

    if output is not None:
        check_ending(output)
    bank = open_treebank(treebank)
    split = split or ("dev" if model else "train")
    if split != "test":
        bank = bank.without_test()
    if model is None:
        title, note, found = _by_variation(bank, split, of, context)
    else:
        title, note, found = _by_parser(bank, split, of, model, device)
    listed = SuspectList(title, note, bank.name, split, bank.places(split), found[:worst])
    if output is None:
        echo(listed.text(), nl=False)
        return
    write_file(output, check_ending(output)(listed).encode())
    for line in (title, *note, f"spmrl-bench: {output} written, {len(listed.items):,} sentences"):
        say_line(line)


def _by_parser(
    bank: Treebank, split: str, of: str | None, run: Path, device: str
) -> tuple[str, list[str], list[Item]]:
    from spmrl_bench.analysis.suspects import disagreement_item, disagreements
    from spmrl_bench.experiments.evaluation import check_lengths
    from spmrl_bench.parsers.kinds import kind_named

    parser = loaded_parser(run, device)
    layers = kind_named(parser.kind).layers
    if of is not None and of not in layers:
        raise SpmrlError(f"--of {of}: the parser finds {' and '.join(layers)} only")
    examples = bank.examples(split, layers)
    check_lengths(parser, bank, split, examples)
    found = disagreements(parser, examples, of)
    if split == "train":
        say_line("spmrl-bench: a parser has learnt the errors that it was trained on")
    notes = [
        f"Parser: {run}. It differs from gold on {len(found):,} of {len(examples):,} sentences.",
        "Sentences are in the order of the odds of what the parser finds against gold.",
    ]
    title = f"Where {bank.name}, {split}, and a parser disagree"
    return title, notes, [disagreement_item(one) for one in found]


def _by_variation(
    bank: Treebank, split: str, of: Annotation | None, context: Context
) -> tuple[str, list[str], list[Item]]:
    from spmrl_bench.analysis.suspects import variation_item
    from spmrl_bench.analysis.variation import variation

    annotation = of or bank.layers[0]
    if annotation == "tags" and context == "only-tags":
        raise SpmrlError("--of tags --context only-tags: equal tags are equal; compare words")
    if annotation not in ("tags", *bank.layers):
        raise SpmrlError(f"--of {of}: the treebank has {' and '.join(bank.layers)} only")
    layers = [layer for layer in bank.layers if layer == annotation] or bank.layers[:1]
    sentences = bank.examples(split, layers)
    found = variation(sentences, annotation, context)
    note = (
        f"{sum(map(len, found)):,} places in {len(found):,} of {len(sentences):,} sentences are "
        "annotated otherwise than the same words or tags elsewhere."
    )
    words = [each.words for each in sentences]
    title = f"Variation in the {annotation} of {bank.name}, {split}"
    return title, [note], [variation_item(own, words) for own in found]
