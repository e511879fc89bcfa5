"""The command that repeats the analyses of the paper."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from spmrl_bench.cli.app import study as group
from spmrl_bench.cli.options import (
    Device,
    Jobs,
    On,
    ResultsFolder,
    RunsFolder,
    Settings,
    Size,
    StrictFiles,
    name_left_out,
    parse_settings,
    print_rows,
)


@group.command("run")
def study(
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="A study, or a study file. Without it: lists them."),
    ] = None,
    treebank: Annotated[
        str | None,
        typer.Option(help="Treebank. Default: the first of the language's that is present."),
    ] = None,
    lang: Annotated[
        str | None, typer.Option(help="Recipe. Default: that of the treebank's language.")
    ] = None,
    seeds: Annotated[
        int, typer.Option(min=1, help="Runs of each row, with the seeds 1, 2, ...")
    ] = 1,
    size: Size = None,
    settings: Settings = None,
    jobs: Jobs = None,
    on: On = None,
    device: Device = "auto",
    runs: RunsFolder = Path("runs"),
    results: ResultsFolder = Path("results"),
    strict: StrictFiles = False,
) -> None:
    """Repeat an analysis of the paper: train its systems, score them on dev, set them side by side.

    Trains what is missing, and goes on where it stopped when the same command is given again;
    rows that differ only in the limits of a trained parser's attention share their runs. The
    table goes to `studies/NAME-TREEBANK` in the results folder as CSV, Markdown and LaTeX, with
    a figure as PNG and SVG.

    Examples:

        spmrl-bench study

        spmrl-bench study test-time-windows --treebank english-wsj-sample --seeds 3 --jobs 2

        spmrl-bench study encoders --treebank german-mini --set train.max_epochs=5
    """
    from spmrl_bench.analysis.study import load_study, study_names

    if name is None:
        rows = [(one, load_study(one)) for one in study_names()]
        print_rows(
            ("study", "rows", "title", "source"),
            [(one, str(len(it.rows)), it.title, it.source) for one, it in rows],
        )
        return
    chosen = load_study(name)
    from spmrl_bench.analysis.study_plan import plan_study
    from spmrl_bench.analysis.study_run import readable_scores, run_study
    from spmrl_bench.analysis.study_table import Findings, study_document, write_study
    from spmrl_bench.leaderboard.formats import to_markdown
    from spmrl_bench.process.executors.backend import parse_backend

    where = parse_backend(on)
    work = plan_study(
        chosen,
        lang=lang,
        treebank=treebank,
        size=size,
        seeds=seeds,
        settings=parse_settings(settings),
    )
    folder = results / "studies"
    name_left_out(readable_scores(folder)[1], strict)  # before hours of training
    measured = run_study(work, runs_dir=runs, scores_dir=folder, device=device, jobs=jobs, on=where)
    findings = Findings(work, measured)
    problem = write_study(findings, folder / f"{chosen.name}-{work.treebank.name}")
    typer.echo(to_markdown(study_document(findings)), nl=False)
    if problem:
        typer.echo(f"spmrl-bench: no figure: {problem}", err=True)
