"""What a study found, as tables and a picture: scores, differences, orders that the paper reverses.

The figures of a paper are of another treebank, mostly, and of one run. What can be compared
are differences between rows, and the order of the rows; an order counts as another one only
where the difference is larger than its deviation over the seeds.
"""

from __future__ import annotations

import json
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import permutations
from pathlib import Path
from typing import Any

import pandas as pd

from spmrl_bench.analysis.drawing import BLUE, GREY, ORANGE, Figure, write_all
from spmrl_bench.analysis.study import StudyRow
from spmrl_bench.analysis.study_run import StudyPlan, StudyResult, encoder_of
from spmrl_bench.leaderboard.board import LEVEL, SeedMean, Sums, mean_text
from spmrl_bench.leaderboard.record import signature_parts
from spmrl_bench.leaderboard.writing import Document, Table
from spmrl_bench.scoring.metric import SelectionMetric

_P = (
    "p: how likely chance alone makes so large a difference on other sentences, these trainings "
    "given (randomisation test over sentences, the counts of all seeds summed up)."
)

# How far a bar and a published figure stand from the middle of a line, so that both are seen.
LOWER, UPPER = 0.11, 0.27
_FAR = 8  # points below the best score from which on a score would flatten the rest of a curve
_PUBLISHED: dict[str, Any] = {
    "marker": "D", "markersize": 5.5, "markerfacecolor": "white", "markeredgecolor": ORANGE,
    "markeredgewidth": 1.5, "linestyle": "none",
}  # fmt: skip


@dataclass(frozen=True)
class Findings:
    """The rows of a study that could be trained, with what is said above and below them."""

    work: StudyPlan
    rows: Sequence[StudyResult]

    @property
    def title(self) -> str:
        return f"{self.work.study.title}: {self.work.treebank.name}"

    @property
    def several(self) -> bool:
        return len(self.rows[0].scores) > 1

    @cached_property
    def _reference(self) -> StudyResult:
        (found,) = (one for one in self.rows if one.name == self.work.study.reference)
        return found

    @cached_property
    def differences(self) -> dict[str, SeedMean]:
        """From the reference row, in points, by the name of each other row."""
        others = (one for one in self.rows if one is not self._reference)
        return {one.name: difference(one, self._reference) for one in others}

    @cached_property
    def chances(self) -> dict[str, float]:
        """p of each difference by sentences, by row, without what has no test (sums of figures)."""
        found = {one.name: _p(self._reference, one) for one in self.rows}
        own = self._reference.name
        return {name: p for name, p in found.items() if p is not None and name != own}

    @cached_property
    def published_order(self) -> tuple[int, list[str]]:
        """How many pairs of rows have an order in the publication, and a sentence for each that is
        reversed here: by more than the deviation of the difference over the seeds or, with one
        seed, by a difference that is none of chance by sentences."""
        figures = {one.name: one.row.published or 0.0 for one in self.rows if one.row.published}
        known = [one for one in self.rows if one.name in figures]
        pairs = [(a, b) for a, b in permutations(known, 2) if figures[a.name] > figures[b.name]]
        found = []
        for worse, better in pairs:
            ours = difference(better, worse)
            sure = ours.mean > (ours.sd or 0.0)
            if sure and ours.sd is None:
                p = _p(worse, better)
                sure = p is not None and p <= LEVEL
            if sure:
                found.append(
                    f"'{better.name}' is better than '{worse.name}' here, by {mean_text(ours)}"
                )
        return len(pairs), found

    @cached_property
    def signatures(self) -> list[dict[str, str]]:
        """The signature of each score, by key."""
        return [
            signature_parts(result.metrics[name].signature_long)
            for one in self.rows
            for result in one.results
            for name in one.metric.metrics
        ]

    @property
    def caption(self) -> str:
        """What was measured, with which budget, in sentences."""
        study, bank, rows = self.work.study, self.work.treebank, self.rows
        number = len(rows[0].scores)
        seeds = f"mean and standard deviation over {number} seeds" if number > 1 else "one seed"
        ended = [state for one in rows for state in one.ended]
        budget = [f"size {rows[0].configs[0].size}"]
        if layers := set(filter(None, map(_layers, rows))):
            budget.append(_range(layers, "layer"))
        epochs = _range({state.epoch for state in ended}, "epoch")
        most = _range({one.configs[0].train.max_epochs for one in rows})
        budget += [
            f"trained for {epochs} of at most {most}",
            f"ended by {' or '.join(sorted({str(one.stopped_by) for one in ended}))}",
        ]
        if self.work.settings:
            budget.append(f"with {', '.join(self.work.settings)}")
        sentences = [
            f"{study.measure[:1].upper()}{study.measure[1:]} in percent on {bank.name} "
            f"({rows[0].results[0].sentences:,} sentences), {seeds}.",
            f"Budget: {', '.join(budget)}.",
        ]
        if any(parts.get("tags", "none") != "none" for parts in self.signatures):
            sentences.append(f"Tags: {bank.manifest.tags}.")
        if any(one.row.published is not None for one in rows):
            sentences.append(f"Published: {study.source}; {study.measured}.")
        return " ".join(sentences)

    @property
    def notes(self) -> list[str | list[str]]:
        """On figures from elsewhere, on rows left out, and on the order of the rows."""
        left_out = self.work.left_out
        notes: list[str | list[str]] = [
            f"'{row.name}': {row.published:.2f} from {row.source}."
            for row in self.work.study.rows
            if row.source is not None and row.published is not None and row.name not in left_out
        ]
        if skipped := max(int(parts.get("skipped", 0)) for parts in self.signatures):
            notes.append(f"LEFT OUT of scores: up to {skipped:,} sentences of each.")
        notes += [f"Left out: '{name}' {why}." for name, why in left_out.items()]
        beyond = f"with p at most {LEVEL} by sentences; other seeds are not known"
        if self.several:
            beyond = "by more than one standard deviation of their difference"
        pairs, reversals = self.published_order
        if pairs:
            number = f"Of {pairs} pairs of rows {len(reversals) or 'none'}"
            end = ":" if reversals else "."
            notes.append(f"{number} in another order than published, {beyond}{end}")
        return [*notes, reversals] if reversals else notes


def difference(one: StudyResult, other: StudyResult) -> SeedMean:
    """What ``one`` has more than ``other``, seed by seed: runs of one seed see the same sentences
    in the same order, so their difference varies less than either of them."""
    theirs = other.scores
    return SeedMean.of([score - theirs[seed] for seed, score in one.scores.items()])


def _p(reference: StudyResult, other: StudyResult) -> float | None:
    """Of both rows compared sentence by sentence; None where their counts are not known."""
    if len(reference.metric.terms) > 1:
        return None
    ((name, figure),) = reference.metric.terms
    sides = reference.results, other.results
    if not all(result.metrics[name].counts for side in sides for result in side):
        return None  # kept before counts were
    one, two = (Sums.of([result.counts(name) for result in side], name, figure) for side in sides)
    tested = None if one is None or two is None else one.compare(two)
    return None if tested is None else tested.p


def _layers(one: StudyResult) -> int | None:
    """How many layers the encoder of its parsers has; None without an encoder."""
    return getattr(encoder_of(one.configs[0].model)[1], "layers", None)


def _range(numbers: set[int], what: str = "") -> str:
    """``1 epoch``, or ``5 to 12 epochs``."""
    number = " to ".join(map(str, sorted({min(numbers), max(numbers)})))
    return f"{number} {what}{'' if number == '1' else 's'}" if what else number


def write_study(findings: Findings, place: Path) -> str:
    """As :func:`~spmrl_bench.analysis.drawing.write_all`."""
    numbers = to_frame(findings)
    return write_all(place, study_document(findings), numbers, partial(draw_study, findings))


def _figure_name(metric: SelectionMetric) -> str:
    return "dev_" + "+".join(name for _, name in metric.terms)


def to_frame(findings: Findings) -> pd.DataFrame:
    """One row for each system, with unrounded numbers; empty cells are missing. Scores in percent,
    differences in points. ``settings`` are what the run changed of its recipe and ``limits`` what
    was taken from the attention of the trained parser, both as JSON; ``parsing`` are its settings
    of parsing that the study gives, likewise."""
    found = {one.name: one for one in findings.rows}
    rows = findings.work.study.rows
    return pd.DataFrame([_numbers(findings, row, found.get(row.name)) for row in rows])


def _numbers(findings: Findings, row: StudyRow, found: StudyResult | None) -> dict[str, object]:
    study = findings.work.study
    figure = _figure_name(study.metric)
    cells: dict[str, object] = {"system": row.name}

    def add(name: str, estimate: SeedMean | None) -> None:
        cells.update({name: estimate and estimate.mean, f"{name}_sd": estimate and estimate.sd})

    if found is not None:
        cells |= {
            "variant": found.configs[0].variant,
            "settings": json.dumps(found.configs[0].overrides),
            "limits": json.dumps(row.limit.model_dump(mode="json", exclude_defaults=True)),
            "parsing": json.dumps(row.parsing),
            "layers": _layers(found),
            "seeds": found.score.seeds,
        }
        add(figure, found.score)
        cells |= {f"{figure}_seed{seed}": score for seed, score in found.scores.items()}
        for metric in study.beside:
            scores = found.scores_by(metric).values()
            add(_figure_name(metric), SeedMean.of(scores) if scores else None)
    add("difference", findings.differences.get(row.name))
    return cells | {
        "p": findings.chances.get(row.name),
        f"published_{figure}": row.published,
        "published_difference": study.published_difference(row),
        "note": findings.work.left_out.get(row.name, ""),
    }


def study_document(findings: Findings) -> Document:
    """The table with its caption and notes."""
    study, rows = findings.work.study, findings.rows
    numbers = to_frame(findings)
    numbers = numbers[numbers["note"] == ""].astype(object).where(lambda cell: cell.notna(), None)
    figure = _figure_name(study.metric)
    first, *others = findings.signatures
    common = (key for key in first if all(parts.get(key) == first[key] for parts in others))
    signature = "|".join(f"{key}:{first[key]}" for key in common)
    columns = {"system": list(numbers["system"])}

    def add(heading: str, name: str, form: str = "{:.2f}") -> None:
        """A column, with standard deviations where there are any; none if all cells are empty."""
        sds = numbers.get(f"{name}_sd", [None] * len(numbers))
        pairs = list(zip(numbers[name], sds, strict=True))
        if any(mean is not None for mean, _ in pairs):
            columns[heading] = [
                "" if mean is None else form.format(mean) + ("" if sd is None else f" ± {sd:.2f}")
                for mean, sd in pairs
            ]

    add(study.measure, figure)
    if findings.several:
        columns["each seed"] = [" ".join(map("{:.2f}".format, one.scores.values())) for one in rows]
    for metric in study.beside:
        add(f"dev {metric.title}", _figure_name(metric))
    add("difference", "difference", "{:+.2f}")
    add("p", "p", "{:.4f}")
    add("published", f"published_{figure}")
    add("published difference", "published_difference", "{:+.2f}")
    deviations = ", with their standard deviation over the seeds" if findings.several else ""
    table = Table(
        title=findings.title,
        headings=list(columns),
        rows=list(zip(*columns.values(), strict=True)),
        numeric=frozenset(columns) - {"system"},
        notes=(
            findings.caption,
            f"Differences are to '{study.reference}', in points{deviations}.",
            *([_P] if findings.chances else ()),
            f"Common to all signatures: `{signature}`",
            *findings.notes,
        ),
    )
    return Document(f"Study {study.name}", tables=(table,))


def _figure(findings: Findings, height: float, *marks: str) -> Figure:
    seeds = "Small points: seeds; thin lines: one standard deviation."
    caption = (findings.caption, *marks, seeds if findings.several else "")
    return Figure(7.6, height, findings.title, " ".join(filter(None, caption)))


def _systems(findings: Findings) -> Figure:
    study, rows = findings.work.study, findings.rows
    theirs = [study.published_difference(one.row) for one in rows]
    marks = "Bars: differences here; diamonds: published ones." if any(theirs) else ""
    figure = _figure(findings, 0.75 + 0.34 * len(rows), marks)
    left, right = figure.axes(1, 2, sharey=True)
    for place, one in enumerate(rows):
        score, found = one.score, findings.differences.get(one.name)
        if score.sd is not None:
            seeds = list(one.scores.values())
            left.plot(seeds, [place] * len(seeds), "o", color=GREY, markersize=3, alpha=0.7)
        thin: dict[str, Any] = {"elinewidth": 1.0, "capsize": 2.5}
        left.errorbar(score.mean, place, xerr=score.sd, fmt="o", color=BLUE, markersize=6.5, **thin)
        if found is not None:
            error = {"ecolor": "black", **thin}
            low = place + LOWER
            bar = {"height": 0.46, "color": BLUE, "alpha": 0.8}
            right.barh(low, found.mean, xerr=found.sd, error_kw=error, **bar)
        if (other := theirs[place]) is not None:
            right.plot(other, place - UPPER, **_PUBLISHED)
    left.set_yticks(range(len(rows)), [_name(one.name, study.reference) for one in rows])
    left.set_ylim(len(rows) - 0.5, -0.5)
    left.set_xlabel(f"{study.measure} (%)")
    right.axvline(0, color="black", linewidth=0.8)
    right.set_xlabel("difference to the reference (points)")
    right.tick_params(axis="y", length=0)
    left.grid(axis="both")
    right.grid(axis="x")
    for axes in (left, right):
        axes.locator_params(axis="x", nbins=5)
    return figure


def _name(name: str, reference: str) -> str:
    """The name of a row; the reference is marked, and a long one takes two lines."""
    shown = textwrap.fill(name, len(name) // 2 + 6) if len(name) > 34 else name
    return f"{shown}\n(reference)" if name == reference else shown


def _parsing(findings: Findings) -> Figure:
    """Curves over the values of a setting of parsing, one picture for each figure."""
    study, rows = findings.work.study, findings.rows
    beside = [one for one in study.beside if all(row.scores_by(one) for row in rows)]
    (setting,) = rows[0].row.parsing
    metrics = beside or [study.metric]
    figure = _figure(findings, 2.9, f"Scores {_FAR} points below the best are not shown.")
    for axes, metric in zip(figure.axes(1, len(metrics), squeeze=False).flat, metrics, strict=True):
        points = [SeedMean.of(one.scores_by(metric).values()) for one in rows]
        means, spread = [one.mean for one in points], [one.sd or 0.0 for one in points]
        thin: dict[str, Any] = {"elinewidth": 0.8, "capsize": 2, "markersize": 4.5}
        bars = spread if any(spread) else None
        axes.errorbar(range(len(rows)), means, yerr=bars, color=BLUE, marker="o", **thin)
        highest = axes.dataLim.y1
        if axes.dataLim.y0 <= highest - _FAR:
            axes.set_ylim(highest - _FAR, highest + 0.05 * _FAR)
        axes.grid(axis="y")
        values = [f"{one.row.parsing[setting]:g}" for one in rows]
        axes.set_xticks(range(len(rows)), values, fontsize=6.5)
        axes.set_xlabel(setting)
        axes.set_title(f"dev {metric.title} (%)", fontsize=9)
    return figure


def draw_study(findings: Findings) -> Figure:
    """The picture that the study asks for: its scores, and its differences beside published ones.
    Scores of a paper are of another treebank, so only differences share an axis with them. Scores
    are drawn as points, since their axis does not begin at zero; differences as bars from zero."""
    draw = {"systems": _systems, "parsing": _parsing}
    return draw[findings.work.study.figure](findings)
