"""Learning curves: what systems reach with so many sentences of a treebank, from their records.

Runs of a system that differ in the number of training sentences and in their seed only are the
points of one curve. How many sentences a whole training split has, its manifest says. Scores are
of test.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple

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
_COLUMNS = ("treebank", "figure", "system", "sentences", "seeds", "mean", "sd")
_NOTE = "In percent on test, by the number of training sentences"


class Panel(NamedTuple):
    """The curves of a treebank by one metric."""

    group: Group
    figure: str
    curves: Mapping[str, Mapping[int, SeedMean]]  # of each system, by ascending sentences

    @property
    def sentences(self) -> list[int]:
        return sorted({number for points in self.curves.values() for number in points})


def learning_curves(groups: Iterable[Group]) -> list[Panel]:
    """The curves of two points or more, those with the best end first."""
    return [
        Panel(group, metric.title(metric.headline), curves)
        for group in groups
        for metric in map(metric_named, group.metrics)
        if (curves := _curves(group, metric.name))
    ]


def _curves(group: Group, metric: str) -> dict[str, dict[int, SeedMean]]:
    whole: int | None = None
    with suppress(SpmrlError):  # of a treebank that is not known here
        declared = load_manifest(group.treebank).splits.train.sentences
        whole = max(declared) if isinstance(declared, tuple) else declared
    found: dict[tuple[str, ...], dict[int, SeedMean]] = {}
    names: dict[tuple[str, ...], tuple[str, str]] = {}
    for entry in group.entries:
        run, score = entry.runs[0], entry.headline((metric, "test"))
        wanted = next(filter(None, map(run.settings.get, _SENTENCES)), whole)
        if entry.form in ("run", "mean") and score is not None and wanted is not None:
            every, given = (
                {key: value for key, value in settings.items() if key not in _SENTENCES}
                for settings in (run.settings, run.record.settings)
            )
            key = (entry.label, entry.record.size, run.precision, digest(every))
            names[key] = entry.label, variant_text(entry.label, given)
            found.setdefault(key, {})[wanted] = score
    curves = {key: dict(sorted(points.items())) for key, points in found.items() if len(points) > 1}
    labels = Counter(names[key][0] for key in curves)  # several are told apart by their settings
    ordered = sorted(curves, key=lambda key: -[*curves[key].values()][-1].mean)
    return {names[key][labels[names[key][0]] > 1]: curves[key] for key in ordered}


def curves_document(panels: Iterable[Panel]) -> Document:
    tables = []
    for panel in panels:
        heads = [f"{number:,}" for number in panel.sentences]
        rows = [
            [name, *(mean_text(points.get(number)) for number in panel.sentences)]
            for name, points in panel.curves.items()
        ]
        title = f"{panel.group.title}: {panel.figure}"
        tables.append(Table(title, ["system", *heads], rows, frozenset(heads)))
    note = f"{_NOTE}; ±: standard deviation over the seeds."
    return Document("Learning curves", (note,), tuple(tables))


def write_curves(panels: Sequence[Panel], place: Path) -> str:
    """As :func:`~spmrl_bench.analysis.drawing.write_all`."""
    rows = [
        (panel.group.treebank, panel.figure, name, number, score.seeds, score.mean, score.sd)
        for panel in panels
        for name, points in panel.curves.items()
        for number, score in points.items()
    ]
    numbers = pd.DataFrame(rows, columns=[*_COLUMNS])
    return write_all(place, curves_document(panels), numbers, partial(draw_curves, panels))


def draw_curves(panels: Sequence[Panel]) -> Figure:
    """A panel for each treebank and metric. Each doubling of the sentences is as wide."""
    rows, columns = -(-len(panels) // 2), min(2, len(panels))
    note = f"{_NOTE}; thin lines: one standard deviation over the seeds."
    figure = Figure(1.2 + 3.4 * columns, 3.0 * rows, "Learning curves", note)
    systems = list(dict.fromkeys(name for panel in panels for name in panel.curves))
    every = figure.axes(rows, columns, squeeze=False).flat
    for panel, axes in zip(panels, every, strict=False):
        for name, points in panel.curves.items():
            place = systems.index(name)
            axes.errorbar(
                [*points],
                [score.mean for score in points.values()],
                yerr=[score.sd or 0.0 for score in points.values()],
                color=(BLUE, ORANGE, GREEN, GREY)[place % 4],
                linestyle=("-", "--", ":")[place // 4 % 3],
                marker="osDv"[place % 4],
                markersize=4.5,
                elinewidth=0.8,
                capsize=2,
                label=name,
            )
        axes.set_xscale("log", base=2)
        axes.set_xticks(panel.sentences, [f"{number:,}" for number in panel.sentences])
        axes.minorticks_off()
        axes.set_title(f"{panel.group.treebank}{panel.group.read}")
        axes.set_xlabel("training sentences")
        axes.set_ylabel(f"test {panel.figure} (%)")
        axes.grid(axis="y")
        axes.legend(loc="lower right", frameon=False, fontsize=8)
    for axes in every:  # those that are left
        axes.set_axis_off()
    return figure
