"""The command that builds the pages of all results."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from spmrl_bench.cli.app import app
from spmrl_bench.cli.options import StrictFiles, name_left_out
from spmrl_bench.errors import SpmrlError


@app.command()
def site(
    results: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="DIR",
            help="Folder of results, whose records and parses are shown; may be repeated.",
            show_default="results",
        ),
    ] = None,
    to: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Folder of the site.",
            show_default="site in the first folder of results",
        ),
    ] = None,
    strict: StrictFiles = False,
) -> None:
    """Build a folder of static pages from all result records.

    The pages open from the disk without a server, load nothing from elsewhere, and work without
    scripts. They have the scores of all treebanks, a page for each treebank, system and record,
    comparisons sentence by sentence, published figures apart from these, and all numbers as CSV
    and JSON. Sentences are shown of open and generated treebanks only. Built again, the same
    records give the same bytes; files that are no longer made are removed, and other files in the
    folder left alone. Records that cannot be read are named, counted and left out.

    Examples:

        spmrl-bench site

        spmrl-bench site --results results --results ~/other/results --to public
    """
    from spmrl_bench.leaderboard.board import load_results
    from spmrl_bench.site.building import site_pages
    from spmrl_bench.site.writing import write_site

    folders = results or [Path("results")]
    gathered = load_results(folders)
    name_left_out(gathered.errors, strict)
    if not gathered.stored:
        places = " or ".join(str(folder / "runs") for folder in folders)
        raise SpmrlError(
            f"no records {'that can be read ' if gathered.errors else ''}in {places}: "
            "'spmrl-bench eval LANG' writes them (after 'spmrl-bench train LANG')"
        )
    folder = to or folders[0] / "site"
    written = write_site(folder, site_pages(gathered))
    for name in written.kept:
        typer.echo(f"left alone, as it was changed since it was built: {folder / name}", err=True)
    removed = f", {written.removed:,} of an earlier build removed" if written.removed else ""
    typer.echo(
        f"{written.files:,} files, {written.size / 2**20:.1f} MiB{removed}. "
        f"Open {folder / 'index.html'}"
    )
