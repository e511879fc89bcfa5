"""Commands about treebanks: what there is, whether it is sound, and how to add one."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spmrl_bench.cli.app import treebanks
from spmrl_bench.cli.options import check_choice, print_rows, raise_all
from spmrl_bench.errors import SpmrlError, TreebankError

if TYPE_CHECKING:
    from spmrl_bench.treebanks.check import TreebankStatistics, Validation
    from spmrl_bench.treebanks.manifest import SplitName
    from spmrl_bench.treebanks.new import NewTreebank

_VALIDATED = (
    "treebank", "split", "sentences", "tokens", "broken", "no words", "relations",
    "not projective", "arcs not projective", "state",
)  # fmt: skip
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
    rows = [
        (
            status.manifest.name,
            status.manifest.track,
            " / ".join(
                f"{counts[0]:,}" if (counts := status.manifest.splits[split].sentences) else "?"
                for split in SPLITS
            ),
            ", ".join(status.layers),
            "present" if status.present else "absent",
            status.where,
            some(status.missing or status.layer_missing, most=3),
        )
        for status in statuses
    ]
    headings = (
        "treebank", "track", "train / dev / test", "layers", "state", "looked in", "missing"
    )  # fmt: skip
    print_rows(headings, rows)
    raise_all(wrong)


@treebanks.command()
def fetch(
    names: Annotated[list[str], typer.Argument(metavar="NAME...", help="Treebanks to download.")],
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
        written = fetch_treebank(manifest, tell=lambda text: typer.echo(text, err=True))
        typer.echo(f"{name}: {len(written)} files fetched; licence: {manifest.licence}")


@treebanks.command()
def check(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[NAME]...", help="Treebanks, or 'all' that are present."),
    ] = None,
    figures: Annotated[
        bool, typer.Option("--figures", help="Print the figures of every split.")
    ] = False,
    every: Annotated[
        bool, typer.Option("--every-error", help=f"Print every error, not only {_SHOWN}.")
    ] = False,
) -> None:
    """Read treebanks completely and list what is wrong with them.

    Checked are the files and their checksums, every sentence, the numbers of sentences and
    tokens that the manifest declares, the root of every tree, sentences that two splits have, the
    sentences and words of a second layer, and whether the recipes that name the treebank have room
    for its sentences. Of dependencies the table says how many relations there are, and how many
    sentences and arcs are not projective. Where the numbers of sentences are not the declared ones,
    it prints a manifest of your own, based on the treebank's, that declares those that are there.
    The status is 1 if anything is wrong, or if a treebank that was named is absent.

    Examples:

        TREEBANKS=~/treebanks spmrl-bench treebanks check all

        TREEBANKS=~/treebanks spmrl-bench treebanks check german-spmrl --figures
    """
    from spmrl_bench.experiments.plan import recipe_problems
    from spmrl_bench.treebanks.catalogue import load_manifest, treebank_statuses
    from spmrl_bench.treebanks.check import inventories, shared_note, statistics_table, validate

    everything = not names or names == ["all"]
    wrong: list[TreebankError] = []
    if everything:
        statuses, wrong = treebank_statuses()
        names = [status.manifest.name for status in statuses if status.present]
    manifests = [load_manifest(name) for name in names or ()]
    results = []
    for manifest in manifests:
        result = validate(manifest)
        if result.present:
            longest = {split: one.longest for split, one in result.statistics.items()}
            result.problems += recipe_problems(manifest.name, longest)
        results.append(result)
        if result.present and figures:
            for statistics, layer in _layers(result):
                typer.echo(f"{result.name}{layer}\n\n{statistics_table(statistics)}\n")
                for line in inventories(statistics):
                    typer.echo(line)
                typer.echo()
            for line in shared_note(result.shared):
                typer.echo(f"{line}\n")
    rows = [row for result in results for row in _validation_rows(result)]
    print_rows(_VALIDATED, rows)
    failed = [result for result in results if not result.sound]
    for result in failed:
        problems = result.problems or [
            "not present: 'spmrl-bench treebanks list' says what is missing"
        ]
        typer.echo(f"\n{result.name}: {len(problems)} problem(s)", err=True)
        _print_errors(problems, every)
        if result.deviating:
            typer.echo(_own_manifest(result), err=True)
    if failed:
        names_ = ", ".join(result.name for result in failed)
        unsound = f"{len(failed)} of {len(results)} treebanks are not sound: {names_}"
        wrong.append(TreebankError(unsound))
    raise_all(wrong)


@treebanks.command()
def add(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The folder with its files.")],
    language: Annotated[
        str | None,
        typer.Option(help="English name of the language. Default: the name of the folder."),
    ] = None,
    name: Annotated[
        str | None, typer.Option(help="Name of the treebank. Default: language and folder.")
    ] = None,
    form: Annotated[
        str | None, typer.Option("--format", help="File format. Default: guessed.")
    ] = None,
    encoding: Annotated[
        str | None, typer.Option(help="Text encoding. Default: UTF-8, or as a file's mark says.")
    ] = None,
    train: Annotated[
        list[str] | None,
        typer.Option(
            help="Files for training: a name, a pattern with '*', a folder, or '@LIST', a file "
            "with a name on each line; may be repeated."
        ),
    ] = None,
    dev: Annotated[list[str] | None, typer.Option(help="Likewise for development.")] = None,
    test: Annotated[list[str] | None, typer.Option(help="Likewise for the test.")] = None,
    allow_shared: Annotated[
        bool, typer.Option("--allow-shared", help="Allow splits to have the same sentences.")
    ] = False,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Write the files without asking.")
    ] = False,
    on_error: Annotated[
        str,
        typer.Option(
            help="'fail': write nothing if a sentence breaks the format. 'skip': leave such "
            "sentences out; the manifest says how many there are."
        ),
    ] = "fail",
    into: Annotated[
        Path | None,
        typer.Option(
            help="Write 'treebanks/NAME.toml' and the recipe under this folder. Default: the "
            "checkout, or your own folder ($SPMRL_BENCH_HOME, else ~/.spmrl_bench)."
        ),
    ] = None,
    every: Annotated[
        bool, typer.Option("--every-error", help=f"Print every error, not only {_SHOWN}.")
    ] = False,
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

    check_choice("on-error", on_error, ("fail", "skip"))
    if folder.is_file():
        raise SpmrlError(
            f"{folder}: a file, expected a folder: name {folder.parent}, and where other files "
            "lie there too, say which are for what with --train, --dev and --test"
        )
    if not folder.is_dir():
        raise SpmrlError(f"{folder}: no such folder")
    if form is not None:
        from spmrl_bench.readers.formats import FORMATS

        check_choice("format", form, tuple(FORMATS.names()))
    named: dict[SplitName, list[str] | None] = {"train": train, "dev": dev, "test": test}
    found = inspect_folder(
        folder,
        language=language,
        name=name,
        format_name=form,
        encoding=encoding,
        given={split: files for split, files in named.items() if files},
        allow_shared=allow_shared,
    )
    _print_new(found, every)
    refused = ""
    if found.errors:
        typer.echo(f"\n{len(found.errors)} sentence(s) break the format:", err=True)
        _print_errors(found.errors, every)
        if on_error == "fail":
            refused = "--on-error skip leaves these sentences out"
    if found.overlaps:
        typer.echo("\nSplits have the same sentences:", err=True)
        _print_errors(found.overlaps, every)
        refused = refused or "--allow-shared takes them as they are"
    if refused:
        raise SpmrlError(f"nothing was written; {refused}")
    if not yes and not _wanted(found):
        typer.echo("nothing was written; the same command with --yes writes it")
        return
    top = into or place_for_new()
    recipe, text = new_recipe(found.language, found.name, found.longest, top)
    paths = write_new_treebank(found, top, {recipe: text})
    typer.echo()
    for path in paths:
        typer.echo(f"wrote {path}")
    known = top.absolute() in (home(), place_for_new())
    typer.echo(f"next: spmrl-bench train {recipe.stem if known else recipe}")


def _wanted(found: NewTreebank) -> bool:
    """Whether the user says so; nobody is asked where nobody is there."""
    typer.echo()
    return sys.stdin.isatty() and typer.confirm(f"Write the manifest of {found.name}?")


def _print_new(found: NewTreebank, every: bool) -> None:
    from spmrl_bench.treebanks.check import inventories, shared_note, statistics_table
    from spmrl_bench.treebanks.manifest import SPLITS

    source = found.source
    encoding = f", {source.options['encoding']}" if "encoding" in source.options else ""
    typer.echo(f"format: {source.form.name}, {source.form.title}{encoding}")
    for note in found.notes:
        typer.echo(note)
    typer.echo(f"splits: {found.division.how}")
    for name in SPLITS:
        first, last = found.ranges.get(name, (0, 0))
        part = f", sentences {first} to {last}" if last else ""
        cut = name in found.division.cut
        files = "the same files" if cut else _names(found.division.files[name], every)
        typer.echo(f"  {name}: {files}{part}")
    passed_over = sorted({*found.others, *found.division.unused})
    typer.echo(f"passed over: {_names(passed_over, every) or 'nothing'}\n")
    typer.echo(statistics_table(found.statistics))
    typer.echo()
    for line in inventories(found.statistics) + shared_note(found.shared):
        typer.echo(line)


def _names(paths: Sequence[str], every: bool) -> str:
    shown = paths if every else paths[:_SHOWN]
    more = len(paths) - len(shown)
    return ", ".join(shown) + (f" and {more} more (--every-error)" if more else "")


def _print_errors(errors: list[str], every: bool, err: bool = True) -> None:
    shown = errors if every else errors[:_SHOWN]
    for error in shown:
        typer.echo(f"  {error}", err=err)
    if len(errors) > len(shown):
        typer.echo(f"  ... and {len(errors) - len(shown)} more (--every-error)", err=err)


def _layers(result: Validation) -> list[tuple[dict[str, TreebankStatistics], str]]:
    """The figures of each layer, and what to write behind the name of the treebank."""
    if result.dependencies in ({}, result.statistics):
        return [(result.statistics, "")]
    return [(result.statistics, ", constituents"), (result.dependencies, ", dependencies")]


def _validation_rows(result: Validation) -> list[tuple[str, ...]]:
    nothing = [""] * (len(_VALIDATED) - 2)
    if not result.present:
        return [(result.name, *nothing, "absent")]
    state = "sound" if result.sound else f"{len(result.problems)} problem(s)"
    if result.aligned is not None and result.sound:
        state += f"; {result.aligned:,} tokens aligned with the dependencies"
    rows: list[tuple[str, ...]] = []
    for split, statistics in result.statistics.items():
        counts = [f"{statistics.sentences:,}", f"{statistics.tokens:,}"]
        counts += map(str, result.left_out.get(split, (0, 0)))
        counts += _dependency_figures(result.dependencies.get(split))
        rows.append((result.name, split, *counts, "" if rows else state))
    return rows or [(result.name, *nothing, state)]


def _dependency_figures(statistics: TreebankStatistics | None) -> tuple[str, str, str]:
    """The number of relations, and of sentences and arcs that are not projective."""
    from spmrl_bench.readers.conll import UNSPECIFIED

    if statistics is None:
        return "", "", ""
    return (
        str(len(statistics.labels.keys() - {UNSPECIFIED})),
        _share(statistics.discontinuous_sentences, statistics.sentences),
        _share(statistics.discontinuous, statistics.tokens),
    )


def _own_manifest(result: Validation) -> str:
    """What to write into a manifest for a release with other numbers."""
    lines = [f'name = "{result.name}-own"', f'base = "{result.name}"']
    for counts in result.deviating.values():
        lines += counts.splitlines()
    text = "\n".join(f"    {line}" for line in lines)
    return (
        "If this is another release that you want to use as it is, treebanks/"
        f"{result.name}-own.toml in your own folder ($SPMRL_BENCH_HOME) says so:\n{text}"
    )


def _share(count: int, whole: int) -> str:
    """A count and, if there is any, its share."""
    return f"{count:,} ({100 * count / whole:.1f} %)" if count else "0"
