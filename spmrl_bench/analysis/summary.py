"""What a study found: means over the seeds, differences, and where the paper saw another order.

The figures of a paper are of another treebank, mostly, and of one run. What can be compared
are differences between rows, and the order of the rows; an order counts as another one only
where the difference is larger than its spread over the seeds.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

from spmrl_bench.analysis.definition import Row
from spmrl_bench.analysis.run_study import Measured
from spmrl_bench.analysis.trials import StudyPlan


@dataclass(frozen=True)
class Difference:
    """What one row has more than another, in points.

    Attributes:
        points: difference of the means.
        spread: its standard deviation over the seeds; None for a single seed.
    """

    points: float
    spread: float | None


@dataclass(frozen=True)
class Line:
    """A row of the table of a study; in percent and points.

    Attributes:
        row: as the study defines it.
        measured: its scores; None where it was left out.
        mean: of dev F1 over the seeds.
        spread: standard deviation over the seeds; None for a single one.
        difference: from the reference row; None for that row itself.
        published_difference: likewise, of the published figures.
        note: why it was left out; else empty.
    """

    row: Row
    measured: Measured | None
    mean: float | None
    spread: float | None
    difference: Difference | None
    published_difference: float | None
    note: str


@dataclass(frozen=True)
class Summary:
    """A study's table with what is said above and below it.

    Attributes:
        work: the study on its treebank.
        lines: in the order of the study.
        caption: what was measured, with which budget.
        notes: on figures from elsewhere, on rows left out, and on the order of the rows.
        reversals: the pairs of rows that the last note is about, each in a sentence.
    """

    work: StudyPlan
    lines: tuple[Line, ...]
    caption: str
    notes: tuple[str, ...]
    reversals: tuple[str, ...]


def summarise(work: StudyPlan, measured: Sequence[Measured]) -> Summary:
    """The table of a study from the scores of its rows."""
    study = work.study
    by_name = {one.row.name: one for one in measured}
    reference = by_name[study.reference]
    published = next(row.published for row in study.rows if row.name == study.reference)
    lines = []
    for row in study.rows:
        found = by_name.get(row.name)
        is_reference = row.name == study.reference
        theirs = None
        if row.published is not None and published is not None and not is_reference:
            theirs = row.published - published
        lines.append(
            Line(
                row=row,
                measured=found,
                mean=statistics.fmean(found.f1) if found else None,
                spread=_deviation(found.f1) if found else None,
                difference=None if is_reference or not found else difference(found, reference),
                published_difference=theirs,
                note=work.left_out.get(row.name, ""),
            )
        )
    order, reversals = _order(measured)
    return Summary(
        work,
        tuple(lines),
        _caption(work, measured),
        (*_notes(work, measured), *order),
        tuple(reversals),
    )


def difference(one: Measured, other: Measured) -> Difference:
    """What ``one`` has more than ``other``, seed by seed.

    Runs of one seed see the same sentences in the same order, so their difference varies less
    than either of them.
    """
    pairs = [mine - theirs for mine, theirs in zip(one.f1, other.f1, strict=True)]
    return Difference(statistics.fmean(pairs), _deviation(pairs))


def reversed_pairs(measured: Sequence[Measured]) -> tuple[int, list[tuple[str, str, Difference]]]:
    """Where the order is not that of the published figures.

    Returns:
        How many pairs of rows have an order in the publication; and of each pair that is
        reversed here by more than its spread: the row that is better here, the one that is
        better there, and the difference here. With one seed there is no spread to exceed.
    """
    pairs, found = 0, []
    for one, other in combinations(measured, 2):
        if one.row.published is None or other.row.published is None:
            continue
        theirs = one.row.published - other.row.published
        if theirs == 0:
            continue
        pairs += 1
        better, worse = (other, one) if theirs > 0 else (one, other)
        ours = difference(better, worse)
        if ours.points > (ours.spread or 0.0):
            found.append((better.row.name, worse.row.name, ours))
    return pairs, found


def _deviation(values: Sequence[float]) -> float | None:
    """Standard deviation of a sample; None of a single value."""
    return statistics.stdev(values) if len(values) > 1 else None


def _caption(work: StudyPlan, measured: Sequence[Measured]) -> str:
    """What the table shows, with which budget, in sentences."""
    study, bank = work.study, work.treebank
    config = measured[0].config
    seeds = len(measured[0].scores)
    over = f"mean and standard deviation over {seeds} seeds" if seeds > 1 else "one seed"
    scored = measured[0].scores[0]
    epochs = sorted({epoch for one in measured for epoch in one.epochs})
    most = sorted({one.config.train.max_epochs for one in measured})
    layers = sorted({one.config.model.layers for one in measured})
    rules = sorted({rule for one in measured for rule in one.stopped_by})
    sentences = [
        f"{study.metric[:1].upper()}{study.metric[1:]} in percent on {bank.name} "
        f"({scored.sentences:,} sentences), {over}.",
        f"Budget: size {config.size}, {_range(layers, 'layer')}, trained for "
        f"{_range(epochs, 'epoch')} of at most {_range(most)}, ended by {' or '.join(rules)}"
        + (f", with {', '.join(work.settings)}." if work.settings else "."),
    ]
    if any("tag" in one.config.model.lexical for one in measured):
        sentences.append(f"Tags: {bank.manifest.tags}.")
    if any(one.row.published is not None for one in measured):
        sentences.append(f"Published: {study.source}; {study.measured}.")
    return " ".join(sentences)


def _notes(work: StudyPlan, measured: Sequence[Measured]) -> list[str]:
    notes = [
        f"'{row.name}': {row.published:.2f} from {row.source}."
        for row in work.study.rows
        if row.source is not None and row.published is not None and row.name not in work.left_out
    ]
    skipped = sorted({score.skipped for one in measured for score in one.scores} - {0})
    if skipped:
        notes.append(f"LEFT OUT of scores: up to {skipped[-1]:,} sentences of each.")
    notes += [f"Left out: '{name}' {why}." for name, why in work.left_out.items()]
    return notes


def _order(measured: Sequence[Measured]) -> tuple[list[str], list[str]]:
    """How the order of the rows stands to the published one, and the pairs it differs in."""
    pairs, reversals = reversed_pairs(measured)
    if not pairs:
        return [], []
    several = len(measured[0].scores) > 1
    if several:
        beyond = "by more than one standard deviation of their difference"
    else:
        beyond = "as far as one seed can show, which does not tell chance apart"
    if not reversals:
        return [f"None of {pairs} pairs of rows has another order than published, {beyond}."], []
    verb = "has" if len(reversals) == 1 else "have"
    note = (
        f"{len(reversals)} of {pairs} pairs of rows {verb} another order than published, {beyond}:"
    )
    return [note], [
        f"'{better}' is better than '{worse}' here, by "
        f"{ours.points:.2f}{'' if ours.spread is None else f' ± {ours.spread:.2f}'}"
        for better, worse, ours in reversals
    ]


def _range(values: Sequence[int], what: str = "") -> str:
    """``1 epoch``, or ``5 to 12 epochs``, of ascending numbers."""
    number = str(values[0]) if len(values) == 1 else f"{values[0]} to {values[-1]}"
    return f"{number} {what}{'' if list(values) == [1] else 's'}" if what else number
