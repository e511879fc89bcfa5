"""Commands that train many runs for one answer: studies of papers, searches for settings."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from typer import Argument, Option

from spmrl_bench.cli import options
from spmrl_bench.cli.app import study as group
from spmrl_bench.errors import SpmrlError
from spmrl_bench.process.console import echo


@group.command("run")
def study(
    name: str | None = Argument(
        None, metavar="NAME", help="A study, or a file. Without: lists them."
    ),
    treebank: options.TreebankName = None,
    lang: str | None = Option(None, help="Recipe. Default: that of the treebank's language."),
    seeds: int = Option(1, min=1, max=1000, help="Runs of each row, with the seeds 1, 2, ..."),
    size: options.Size = None,
    settings: options.Settings = None,
    jobs: options.Jobs = None,
    on: options.On = None,
    device: options.Device = "auto",
    runs: options.RunsFolder = Path("runs"),
    results: options.ResultsFolder = Path("results"),
    strict: options.StrictFiles = False,
) -> None:
    """Repeat an experiment of a paper, and print its table.

    Its systems are trained, scored on dev and set side by side; the same command goes on where it
    stopped. Rows that differ only in the limits of a trained parser's attention share their runs.
    The table goes to 'studies/NAME-TREEBANK' of the results as CSV, Markdown and LaTeX, with a
    figure as PNG and SVG.

    Examples:
        spmrl-bench study run
        spmrl-bench study run encoders --treebank german-mini --set train.max_epochs=5
    """
    from spmrl_bench.analysis.study import load_study, study_names

    if name is None:
        rows = [(one, load_study(one)) for one in study_names()]
        options.print_rows(
            ("study", "rows", "title", "source"),
            [(one, str(len(it.rows)), it.title, it.source) for one, it in rows],
        )
        return
    chosen = load_study(name)
    from spmrl_bench.analysis.study_run import plan_study, readable_scores, run_study
    from spmrl_bench.analysis.study_table import Findings, study_document, write_study
    from spmrl_bench.leaderboard.writing import to_markdown
    from spmrl_bench.process.executors.backend import parse_backend

    where, given = parse_backend(on), options.parse_settings(settings)
    work = plan_study(chosen, lang=lang, treebank=treebank, size=size, seeds=seeds, settings=given)
    folder = results / "studies"
    options.name_left_out(readable_scores(folder)[1], strict)  # before hours of training
    measured = run_study(work, runs_dir=runs, scores_dir=folder, device=device, jobs=jobs, on=where)
    findings = Findings(work, measured)
    problem = write_study(findings, folder / f"{chosen.name}-{work.treebank.name}")
    echo(to_markdown(study_document(findings)), nl=False)
    if problem:
        echo(f"spmrl-bench: no figure: {problem}", err=True)


@group.command()
def search(
    lang: options.Lang = None,
    treebank: options.TreebankName = None,
    track: options.Track = None,
    variant: str | None = Option(None, help="Of the recipe; needed where there are several."),
    system: str | None = Option(
        None, help="A parser of somebody else ('spmrl-bench systems list') in place of a variant."
    ),
    size: options.Size = None,
    settings: list[str] | None = Option(
        None,
        "--set",
        metavar="KEY=VALUE",
        help="A value of all trials, or what is searched: 'KEY=LOW:HIGH', 'KEY=log:LOW:HIGH', "
        "'KEY=int:LOW:HIGH', 'KEY=A|B|C'; may be repeated.",
    ),
    trials: int = Option(20, min=1, help="Trials in all, earlier ones included."),
    minutes: options.Minutes = None,
    pruner: Literal["median", "none"] = Option("median", help="What ends trials that fall behind."),
    sampler: Literal["tpe", "random"] = Option("tpe", help="'tpe' learns from earlier trials."),
    seed: options.Seed = None,
    jobs: int = Option(1, min=1, help="Trials at once. Only one at a time can be repeated."),
    on: options.On = None,
    device: options.Device = "auto",
    runs: options.RunsFolder = Path("runs"),
) -> None:
    """Search for the settings of a variant with the best dev score.

    Each trial is a run of the recipe with other settings; the test split stays closed. The same
    command goes on where it was interrupted, and with more '--trials' adds to them; other '--set'
    and '--minutes' are another search. At the end stand all trials and the command that trains the
    best. It needs the extra 'search'.

    A system of others is trained and parses dev in each trial, and none is ended early.

    Examples:
        spmrl-bench study search german --variant charlstm --set train.learning_rate=log:1e-4:5e-3
        spmrl-bench study search german --variant charlstm --set 'train.batch_size=8|16' --trials 2
        spmrl-bench study search german --system pcfg --set 'vertical=0|1' --trials 2
    """
    from spmrl_bench.experiments.search import plan_search, run_search, trials_report
    from spmrl_bench.process.executors.backend import parse_backend

    where, lang = parse_backend(on), options.required_lang(lang)
    chosen: dict[str, Any] = {"variants": [variant] if variant else None, "pruner": pruner}
    if system is not None:
        from spmrl_bench.systems.description import load_system
        from spmrl_bench.systems.run import SystemSearch, system_runs

        if variant:
            raise SpmrlError("--variant and --system: give one of the two")
        chosen = {"system": load_system(system), "minutes": minutes, "pruner": "none"}
        chosen |= {"make": system_runs, "of": SystemSearch}
    given = options.parse_settings(settings, minutes if system is None else None)
    work = plan_search(
        lang, settings=given, treebank=treebank, track=track, size=size,
        seed=1 if seed is None else seed, sampler=sampler, **chosen,
    )  # fmt: skip
    found = run_search(work, runs_dir=runs, trials=trials, jobs=jobs, on=where, device=device)
    echo(trials_report(found))
    if (best := found.best) is None:
        raise SpmrlError(f"none of {len(found.trials)} trials came to its end")
    echo(f"\nBest: trial {best.number}. To train it:\n\n    {work.command(lang, best, runs)}")
