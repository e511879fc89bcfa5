"""Commands that show results: tables and pages of all records."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from typer import Option

from spmrl_bench.cli.app import results as group
from spmrl_bench.cli.options import ResultsFolder, StrictFiles, name_left_out
from spmrl_bench.errors import SpmrlError, unknown_name
from spmrl_bench.process.console import echo

if TYPE_CHECKING:
    from spmrl_bench.leaderboard.board import Group, Results


@group.command()
def table(
    results: ResultsFolder = Path("results"),
    form: Literal["markdown", "csv"] = Option("markdown", "--format", help="What to print."),
    treebank: list[str] | None = Option(
        None, metavar="NAME", help="Print this treebank only; may be repeated."
    ),
    track: str | None = Option(
        None, help="Print the table over its languages, and who is ahead: we or external parsers."
    ),
    strict: StrictFiles = False,
) -> None:
    """Print and write the tables of all result records.

    They are written to table.md and table.csv in the folder of the results. Scores of different
    treebanks or tracks, or scores counted in different ways, never share a table. Of several
    records of one run the newest is shown. Records that come with the program are marked as
    shipped. A track with records of two languages or more also gets multilingual-TRACK.md, .csv and
    .tex; systems that were trained on different numbers of sentences (--set train.sentences=125)
    get learning-curves as .md, .csv, .tex, .png and .svg. Files that cannot be read are named and
    left out.

    Examples:
        spmrl-bench results table
        spmrl-bench results table --track open
    """
    from spmrl_bench.analysis.learning_curve import learning_curves, write_curves
    from spmrl_bench.leaderboard.multilingual import track_document, tracks_of, write_track
    from spmrl_bench.leaderboard.tables import results_csv, results_document
    from spmrl_bench.leaderboard.writing import to_markdown, write_file

    found = loaded([results], strict)
    for what, names in (("treebank", treebank or []), ("track", [track] if track else [])):
        known = sorted({getattr(group, what) for group in found.groups})
        for name in names:
            if name not in known:
                raise SpmrlError(f"among the records: {unknown_name(what, name, known)}")

    def markdown(groups: list[Group]) -> str:
        return to_markdown(results_document(groups, found.published))

    text = markdown(found.groups)  # its significance tests take seconds
    write_file(results / "table.md", text.encode())
    write_file(results / "table.csv", results_csv(found.groups, found.published).encode())
    for one in tracks_of(found.groups, results):
        write_track(found.groups, one, results, found.published)
        echo(f"wrote {results / f'multilingual-{one}'}.{{md,csv,tex}}", err=True)
    if len(curves := learning_curves(found.groups)):
        problem = write_curves(curves, place := results / "learning-curves")
        drawn = f"; no figure: {problem}" if problem else " and .{png,svg}"
        echo(f"wrote {place}.{{md,csv,tex}}{drawn}", err=True)
    if track is not None:
        document = track_document(found.groups, track, found.published)
        if document.tables:
            echo(to_markdown(document))
        echo(verdicts(found.groups, track), nl=False)
    else:
        if treebank or form == "csv":
            asked = [group for group in found.groups if not treebank or group.treebank in treebank]
            text = results_csv(asked, found.published) if form == "csv" else markdown(asked)
        echo(text, nl=False)


@group.command()
def site(
    results: list[Path] | None = Option(
        None, metavar="DIR", help="Folder of results; may be repeated. Default: results."
    ),
    to: Path | None = Option(
        None,
        metavar="DIR",
        help="Folder of the site, replaced as a whole. Default: site in the first of the results.",
    ),
    extra: Path | None = Option(
        None, metavar="DIR", help="Other files of the site, such as a logo, copied into it."
    ),
    strict: StrictFiles = False,
) -> None:
    """Build static pages of all results.

    Treebanks, systems, runs, comparisons and published figures have pages of their own. The pages
    open from the disk, load nothing from elsewhere and need no scripts. Sentences are shown of
    treebanks whose manifest says that they may be. The same records give the same bytes.

    Example:
        spmrl-bench results site --results results --results ~/other/results --to public
    """
    from spmrl_bench.site.pages import build_site

    folders = results or [Path("results")]
    folder = to or folders[0] / "site"
    number = build_site(loaded(folders, strict), folder, extra)
    echo(f"{number:,} files. Open {folder / 'index.html'}")


def loaded(folders: list[Path], strict: bool) -> Results:
    """Read all results, and say which files are left out; SpmrlError if there is no record."""
    from spmrl_bench.leaderboard.board import load_results

    found = load_results(folders)
    name_left_out(found.errors, strict)
    if not found.stored:
        places = " or ".join(str(folder / "runs") for folder in folders)
        raise SpmrlError(
            f"no records {'that can be read ' if found.errors else ''}in {places}: "
            "'spmrl-bench eval LANG' writes them (after 'spmrl-bench train LANG')"
        )
    return found


def verdicts(groups: list[Group], track: str, minutes: float | None = None) -> str:
    """Which side is ahead on the treebanks of a track, as Markdown."""
    from spmrl_bench.leaderboard.tables import ours_and_others, ours_and_others_table
    from spmrl_bench.leaderboard.writing import Document, to_markdown

    asked = [group for group in groups if group.track == track]
    return to_markdown(Document("", (), (ours_and_others_table(*ours_and_others(asked, minutes)),)))
