"""Learning curves: what systems reach with so many sentences of a treebank, from their records.

Runs of a system that differ in the number of training sentences and in their seed only are the
points of one curve. How many sentences a whole training split has, its manifest says. Scores are
of test.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from functools import partial
from pathlib import Path

import pandas as pd

from spmrl_bench.analysis.drawing import BLUE, GREEN, GREY, ORANGE, Figure, write_all
from spmrl_bench.errors import SpmrlError
from spmrl_bench.leaderboard.board import Group, SeedMean, mean_text
from spmrl_bench.leaderboard.frame import digest
from spmrl_bench.leaderboard.writing import Document, Table
from spmrl_bench.scoring.metric import metric_named
from spmrl_bench.scoring.signature import variant_text
from spmrl_bench.treebanks.catalogue import load_manifest

#: The settings of our runs and of those of other systems that say how many sentences there were.
_SENTENCES = ("train.sentences", "system.sentences")
_NOTE = "In percent on test, by training sentences; of several seeds mean ± standard deviation."


def learning_curves(groups: Iterable[Group]) -> pd.DataFrame:
    """A row for each point: ``title`` (of the group and figure), ``system``, ``sentences``,
    ``seeds``, ``mean`` and ``sd``; of each title the curve with the best end first, by ascending
    sentences. A single point is no curve."""
    rows = []
    for group in groups:
        for metric in map(metric_named, group.metrics):
            number = f", table {group.number}" if group.several else ""
            title = f"{group.treebank}{number}{group.runs.read}: {metric.title(metric.headline)}"
            for name, points in _curves(group, metric.name).items():
                rows += [
                    (title, name, sentences, score.seeds, score.mean, score.sd)
                    for sentences, score in points.items()
                ]
    columns = ["title", "system", "sentences", "seeds", "mean", "sd"]
    return pd.DataFrame(rows, columns=columns).astype({"sd": float})


def _curves(group: Group, metric: str) -> dict[str, dict[int, SeedMean]]:
    whole: int | None = None
    with suppress(SpmrlError):  # of a treebank that is not known here
        declared = load_manifest(group.treebank).splits.train.sentences
        whole = max(declared) if isinstance(declared, tuple) else declared
    found: dict[tuple[str, ...], dict[int, SeedMean]] = {}  # by names, each more exact
    for entry in group.entries:
        run, score = entry.runs[0], entry.headline((metric, "test"))
        wanted = next(filter(None, map(run.settings.get, _SENTENCES)), whole)
        if entry.form in ("run", "mean") and score is not None and wanted is not None:
            every, given = (
                {key: value for key, value in settings.items() if key not in _SENTENCES}
                for settings in (run.settings, run.record.settings)
            )
            about = variant_text(entry.label, given), entry.record.size, run.precision
            told = ", ".join(filter(None, (*about, "shipped" * entry.shipped)))
            names = entry.label, about[0], told, f"{told}, {digest(every)}"
            found.setdefault(names, {})[wanted] = score
    curves = {names: points for names, points in found.items() if len(points) > 1}
    used = Counter(each for names in curves for each in enumerate(names))
    ends = {names: points[max(points)].mean for names, points in curves.items()}
    return {
        next(name for at, name in enumerate(names) if used[at, name] == 1): dict(
            sorted(curves[names].items())
        )
        for names in sorted(curves, key=lambda names: -ends[names])
    }


def curves_document(curves: pd.DataFrame) -> Document:
    tables = []
    for title, points in curves.groupby("title", sort=False):
        scores = zip(points["mean"], points["sd"], points["seeds"], strict=True)
        texts = [mean_text(SeedMean(m, None if pd.isna(sd) else sd, n)) for m, sd, n in scores]
        cells = points.assign(text=texts).pivot(index="system", columns="sentences", values="text")
        cells = cells.loc[points["system"].unique()].fillna("")
        heads = [f"{number:,}" for number in cells]
        rows = [[name, *row] for name, row in zip(cells.index, cells.to_numpy(), strict=True)]
        tables.append(Table(str(title), ["system", *heads], rows, frozenset(heads)))
    return Document("Learning curves", (_NOTE,), tuple(tables))


def write_curves(curves: pd.DataFrame, place: Path) -> str:
    """As :func:`~spmrl_bench.analysis.drawing.write_all`."""
    return write_all(place, curves_document(curves), curves, partial(draw_curves, curves))


def draw_curves(curves: pd.DataFrame) -> Figure:
    """A panel for each title. Each doubling of the sentences is as wide."""
    panels = [*curves.groupby("title", sort=False)]
    rows, columns = -(-len(panels) // 2), min(2, len(panels))
    figure = Figure(1.2 + 3.4 * columns, 3.0 * rows, "Learning curves", _NOTE)
    systems = list(dict.fromkeys(curves["system"]))
    every = figure.axes(rows, columns, squeeze=False).flat
    for (title, points), axes in zip(panels, every, strict=False):
        for name, line in points.groupby("system", sort=False):
            place = systems.index(name)
            axes.errorbar(
                line["sentences"],
                line["mean"],
                yerr=line["sd"].fillna(0.0) if line["sd"].notna().any() else None,
                color=(BLUE, ORANGE, GREEN, GREY)[place % 4],
                linestyle=("-", "--", ":")[place // 4 % 3],
                marker="osDv"[place % 4],
                markersize=4.5,
                elinewidth=0.8,
                capsize=2,
                label=name,
            )
        numbers = sorted(points["sentences"].unique())
        axes.set_xscale("log", base=2)
        axes.set_xticks(numbers, [f"{number:,}" for number in numbers])
        axes.minorticks_off()
        axes.set_title(title)
        axes.set_xlabel("training sentences")
        axes.set_ylabel("test (%)")
        axes.grid(axis="y")
        axes.legend(loc="lower right", frameon=False, fontsize=8)
    for axes in every:  # those that are left
        axes.set_axis_off()
    return figure
