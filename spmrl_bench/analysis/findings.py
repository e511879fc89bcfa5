"""What a study found: scores over the seeds, differences, and where the paper saw another order.

The figures of a paper are of another treebank, mostly, and of one run. What can be compared
are differences between rows, and the order of the rows; an order counts as another one only
where the difference is larger than its deviation over the seeds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import cast

from spmrl_bench.analysis.run_study import Measured
from spmrl_bench.analysis.trials import StudyPlan
from spmrl_bench.leaderboard.estimates import Estimate, Scores


@dataclass(frozen=True)
class Findings:
    """The rows of a study with what is said above and below them.

    Attributes:
        work: the study on its treebank.
        rows: those that could be trained, in the order of the study, with their scores.
        differences: from the reference row, in points, by the name of each other row.
        caption: what was measured, with which budget.
        notes: on figures from elsewhere, on rows left out, and on the order of the rows.
        reversals: the pairs of rows that the last note is about, each in a sentence.
    """

    work: StudyPlan
    rows: tuple[Measured, ...]
    differences: Mapping[str, Estimate]
    caption: str
    notes: tuple[str, ...]
    reversals: tuple[str, ...]

    @property
    def title(self) -> str:
        """Of tables and pictures."""
        return f"{self.work.study.title}: {self.work.treebank.name}"

    @property
    def several(self) -> bool:
        """Whether there are several seeds."""
        return len(self.rows[0].scores) > 1

    @property
    def signature(self) -> str:
        """What the signatures of all scores agree in."""
        first, *rest = [parts for one in self.rows for parts in one.signatures]
        common = (key for key in first if all(parts.get(key) == first[key] for parts in rest))
        return "|".join(f"{key}:{first[key]}" for key in common)


def findings_of(work: StudyPlan, measured: Sequence[Measured]) -> Findings:
    """What follows from the scores of the rows of a study."""
    (reference,) = (one for one in measured if one.name == work.study.reference)
    differences = {one.name: difference(one, reference) for one in measured if one is not reference}
    order, reversals = _order(measured)
    notes = (*_notes(work, measured), *order)
    return Findings(
        work, tuple(measured), differences, _caption(work, measured), notes, tuple(reversals)
    )


def difference(one: Measured, other: Measured) -> Estimate:
    """What ``one`` has more than ``other``, seed by seed.

    Runs of one seed see the same sentences in the same order, so their difference varies less
    than either of them.
    """
    theirs = other.scores
    return over_seeds({seed: score - theirs[seed] for seed, score in one.scores.items()})


def reversed_pairs(measured: Sequence[Measured]) -> tuple[int, list[tuple[str, str, Estimate]]]:
    """Where the order is not that of the published figures.

    Returns:
        How many pairs of rows have an order in the publication; and of each pair that is
        reversed here by more than its deviation: the row that is better here, the one that is
        better there, and the difference here. With one seed there is no deviation to exceed.
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
        if ours.mean > (ours.sd or 0.0):
            found.append((better.name, worse.name, ours))
    return pairs, found


def with_deviation(estimate: Estimate, sign: str = "") -> str:
    """Mean and standard deviation for people; of one seed the mean alone."""
    spread = "" if estimate.sd is None else f" ± {estimate.sd:.2f}"
    return f"{estimate.mean:{sign}.2f}{spread}"


def over_seeds(scores: Scores) -> Estimate:
    """The estimate of a row, which has one seed at least."""
    return cast(Estimate, Estimate.of(scores))


def _caption(work: StudyPlan, measured: Sequence[Measured]) -> str:
    """What the table shows, with which budget, in sentences."""
    study, bank = work.study, work.treebank
    seeds = len(measured[0].scores)
    over = f"mean and standard deviation over {seeds} seeds" if seeds > 1 else "one seed"
    epochs = {epoch for one in measured for epoch in one.epochs}
    most = {one.config.train.max_epochs for one in measured}
    layers = {one.layers for one in measured if one.layers is not None}
    rules = sorted({rule for one in measured for rule in one.stopped_by})
    sentences = [
        f"{study.measure[:1].upper()}{study.measure[1:]} in percent on {bank.name} "
        f"({measured[0].results[0].sentences:,} sentences), {over}.",
        f"Budget: size {measured[0].config.size}, "
        + (f"{_range(layers, 'layer')}, " if layers else "")
        + f"trained for {_range(epochs, 'epoch')} of at most {_range(most)}, ended by "
        + " or ".join(rules)
        + (f", with {', '.join(work.settings)}." if work.settings else "."),
    ]
    if any(parts.get("tags", "none") != "none" for one in measured for parts in one.signatures):
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
    skipped = max(int(parts.get("skipped", 0)) for one in measured for parts in one.signatures)
    if skipped:
        notes.append(f"LEFT OUT of scores: up to {skipped:,} sentences of each.")
    return notes + [f"Left out: '{name}' {why}." for name, why in work.left_out.items()]


def _order(measured: Sequence[Measured]) -> tuple[list[str], list[str]]:
    """How the order of the rows stands to the published one, and the pairs it differs in."""
    pairs, reversals = reversed_pairs(measured)
    if not pairs:
        return [], []
    if len(measured[0].results) > 1:
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
        f"'{better}' is better than '{worse}' here, by {with_deviation(ours)}"
        for better, worse, ours in reversals
    ]


def _range(numbers: set[int], what: str = "") -> str:
    """``1 epoch``, or ``5 to 12 epochs``."""
    values = sorted(numbers)
    number = str(values[0]) if len(values) == 1 else f"{values[0]} to {values[-1]}"
    return f"{number} {what}{'' if values == [1] else 's'}" if what else number
