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
            help="Folder of the site, which is replaced as a whole.",
            show_default="site in the first folder of results",
        ),
    ] = None,
    extra: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Other files of the site, such as a logo, which are copied into it."
        ),
    ] = None,
    strict: StrictFiles = False,
) -> None:
    """Build a folder of static pages from all result records; needs Matplotlib.

    The pages open from the disk without a server, load nothing from elsewhere, and work without
    scripts: the board of open treebanks with its picture, a page for each treebank, system and
    record, each system beside the best sentence by sentence, published figures apart from these,
    and all numbers as CSV. Sentences are shown of open and generated treebanks only. The same
    records give the same bytes. Records that cannot be read are named, counted and left out.

    Examples:

        spmrl-bench site

        spmrl-bench site --results results --results ~/other/results --to public
    """
    from spmrl_bench.leaderboard.board import load_results
    from spmrl_bench.site.build import build_site

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
    number = build_site(gathered, folder, extra)
    typer.echo(f"{number:,} files. Open {folder / 'index.html'}")
