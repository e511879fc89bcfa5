"""Commands that show what there is: results and recipes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spmrl_bench.cli.app import app
from spmrl_bench.cli.options import (
    ResultsFolder,
    StrictFiles,
    check_choice,
    name_left_out,
    print_rows,
    raise_all,
)
from spmrl_bench.errors import SpmrlError, unknown_name

if TYPE_CHECKING:
    from spmrl_bench.leaderboard.board import Group

_FORMS = {"md": "markdown", "csv": "csv"}


@app.command()
def table(
    results: ResultsFolder = Path("results"),
    form: Annotated[
        str, typer.Option("--format", help="What to print: `markdown` or `csv`.")
    ] = "markdown",
    treebank: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help="Print this treebank only; may be repeated.", show_default=False
        ),
    ] = None,
    strict: StrictFiles = False,
) -> None:
    """Print the tables of all result records, and write them to table.md and table.csv.

    Scores of different treebanks or tracks, or scores counted in different ways, never share
    a table. Of several records of one run the newest is shown. Those that come with the program, in
    the folder `shipped` of the results, stand beside yours with this word behind their names; no
    mean is taken of yours and theirs. Tracks with records of two
    languages or more also get the table that `multilingual` prints, as multilingual-TRACK.md,
    .csv and .tex. Files that cannot be read are named, counted and left out.

    Examples:

        spmrl-bench table

        spmrl-bench table --format csv > scores.csv

        spmrl-bench table --treebank german-mini
    """
    from spmrl_bench.leaderboard.board import load_results
    from spmrl_bench.leaderboard.formats import to_markdown, write_tables
    from spmrl_bench.leaderboard.multilingual import SUFFIXES, track_file, tracks_of, write_track
    from spmrl_bench.leaderboard.tables import results_csv, results_document

    check_choice("format", form, ("markdown", "csv"))
    found = load_results([results])
    name_left_out(found.errors, strict)
    if not found.stored:
        raise SpmrlError(
            f"no records {'that can be read ' if found.errors else ''}in {results / 'runs'}: "
            "'spmrl-bench eval LANG' writes them (after 'spmrl-bench train LANG')"
        )
    known = sorted({group.treebank for group in found.groups})
    for one in treebank or ():
        if one not in known:
            raise SpmrlError(f"among the records: {unknown_name('treebank', one, known)}")

    def text(groups: list[Group], form: str) -> str:
        if form == "csv":
            return results_csv(groups, found.published)
        return to_markdown(results_document(groups, found.published))

    texts = {name: text(found.groups, name) for name in _FORMS.values()}
    write_tables({results / f"table.{end}": texts[name] for end, name in _FORMS.items()})
    several = tracks_of(found.groups)
    for track in tracks_of(found.groups, languages=1):
        # Tables of one language that are there already do not stay behind the others.
        if track in several or track_file(results, track, SUFFIXES[0]).exists():
            write_track(found.groups, track, results, found.published)
            name = track_file(results, track, f"{{{','.join(SUFFIXES)}}}")
            typer.echo(f"wrote {name}", err=True)
    if treebank:
        texts[form] = text([one for one in found.groups if one.treebank in treebank], form)
    typer.echo(texts[form], nl=False)


@app.command()
def recipes() -> None:
    """List the languages that can be trained, with their treebanks in order of preference.

    Example:

        spmrl-bench recipes
    """
    from spmrl_bench.experiments.recipe import list_recipes, load_recipe
    from spmrl_bench.treebanks.catalogue import treebank_statuses

    statuses, broken = treebank_statuses()
    wrong: list[SpmrlError] = [*broken]
    present = {status.manifest.name for status in statuses if status.present}
    rows = []
    for name in list_recipes():
        try:
            recipe = load_recipe(name, light=True)
        except SpmrlError as error:
            wrong.append(error)
            continue
        banks = recipe.language.treebanks
        used = next((bank for bank in banks if bank in present), "none is present")
        rows.append((name, used, ", ".join(banks), ", ".join(recipe.variants)))
    print_rows(("language", "uses", "treebanks by preference", "variants"), rows)
    raise_all(wrong)
