"""What a study found: scores over the seeds, differences, and where the paper saw another order.

The figures of a paper are of another treebank, mostly, and of one run. What can be compared
are differences between rows, and the order of the rows; an order counts as another one only
where the difference is larger than its deviation over the seeds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

from spmrl_bench.analysis.run_study import Measured, estimate
from spmrl_bench.analysis.trials import StudyPlan
from spmrl_bench.leaderboard.board import Difference, SeedMean, Sums, mean_text
from spmrl_bench.leaderboard.environment import find_hardware

#: Largest p by which a difference of one seed is told from chance.
CHANCE = 0.05


@dataclass(frozen=True)
class Findings:
    """The rows of a study with what is said above and below them.

    Attributes:
        work: the study on its treebank.
        rows: those that could be trained, in the order of the study, with their scores.
    """

    work: StudyPlan
    rows: Sequence[Measured]

    @property
    def title(self) -> str:
        """Of tables and pictures."""
        return f"{self.work.study.title}: {self.work.treebank.name}"

    @property
    def several(self) -> bool:
        """Whether there are several seeds."""
        return len(self.rows[0].scores) > 1

    @cached_property
    def differences(self) -> dict[str, SeedMean]:
        """From the reference row, in points, by the name of each other row."""
        (reference,) = (one for one in self.rows if one.name == self.work.study.reference)
        return {one.name: difference(one, reference) for one in self.rows if one is not reference}

    @cached_property
    def chances(self) -> dict[str, float]:
        """How likely it is that other sentences would turn each difference round.

        The p of the randomisation test over sentences, the counts of all seeds summed up, by the
        name of the row; without those that cannot be tested, such as a sum of two figures.
        """
        (reference,) = (one for one in self.rows if one.name == self.work.study.reference)
        found = {}
        for one in self.rows:
            tested = None if one is reference else _tested(reference, one)
            if tested is not None:
                found[one.name] = tested.p
        return found

    @cached_property
    def _signatures(self) -> list[dict[str, str]]:
        return [parts for one in self.rows for parts in one.signatures]

    @property
    def signature(self) -> str:
        """What the signatures of all scores agree in."""
        first, *rest = self._signatures
        common = (key for key in first if all(parts.get(key) == first[key] for parts in rest))
        return "|".join(f"{key}:{first[key]}" for key in common)

    @property
    def caption(self) -> str:
        """What was measured, with which budget, in sentences."""
        study, bank, rows = self.work.study, self.work.treebank, self.rows
        several = f"mean and standard deviation over {len(rows[0].scores)} seeds"
        seeds = several if self.several else "one seed"
        budget = [f"size {rows[0].config.size}"]
        if layers := {one.layers for one in rows if one.layers is not None}:
            budget.append(_range(layers, "layer"))
        most = _range({one.config.train.max_epochs for one in rows})
        ended = [state for one in rows for state in one.ended]
        epochs = _range({state.epoch for state in ended}, "epoch")
        budget.append(f"trained for {epochs} of at most {most}")
        budget.append(f"ended by {' or '.join(sorted({str(one.stopped_by) for one in ended}))}")
        if self.work.settings:
            budget.append(f"with {', '.join(self.work.settings)}")
        sentences = [
            f"{study.measure[:1].upper()}{study.measure[1:]} in percent on {bank.name} "
            f"({rows[0].results[0].sentences:,} sentences), {seeds}.",
            f"Budget: {', '.join(budget)}.",
        ]
        if study.minutes:
            machine = find_hardware()
            sentences.append(
                "Minutes are of training and dev scoring, with the best score until then, on "
                f"{machine.processor} with {machine.cpu_count} cores."
            )
        if any(parts.get("tags", "none") != "none" for parts in self._signatures):
            sentences.append(f"Tags: {bank.manifest.tags}.")
        if any(one.row.published is not None for one in rows):
            sentences.append(f"Published: {study.source}; {study.measured}.")
        return " ".join(sentences)

    @property
    def notes(self) -> list[str]:
        """On figures from elsewhere, on rows left out, and on the order of the rows."""
        left_out = self.work.left_out
        notes = [
            f"'{row.name}': {row.published:.2f} from {row.source}."
            for row in self.work.study.rows
            if row.source is not None and row.published is not None and row.name not in left_out
        ]
        if skipped := max(int(parts.get("skipped", 0)) for parts in self._signatures):
            notes.append(f"LEFT OUT of scores: up to {skipped:,} sentences of each.")
        notes += [f"Left out: '{name}' {why}." for name, why in left_out.items()]
        beyond = f"with p at most {CHANCE} by sentences; other seeds are not known"
        if self.several:
            beyond = "by more than one standard deviation of their difference"
        pairs, reversals = reversed_pairs(self.rows)
        verb, end = "have" if len(reversals) > 1 else "has", ":" if reversals else "."
        if pairs:
            notes.append(
                f"{len(reversals) or 'None'} of {pairs} pairs of rows {verb} another order than "
                f"published, {beyond}{end}"
            )
        return notes

    @property
    def reversals(self) -> list[str]:
        """The pairs of rows that the last note is about, each in a sentence."""
        return [
            f"'{better}' is better than '{worse}' here, by {mean_text(ours)}"
            for better, worse, ours in reversed_pairs(self.rows)[1]
        ]


def difference(one: Measured, other: Measured) -> SeedMean:
    """What ``one`` has more than ``other``, seed by seed.

    Runs of one seed see the same sentences in the same order, so their difference varies less
    than either of them.
    """
    theirs = other.scores
    return estimate({seed: score - theirs[seed] for seed, score in one.scores.items()})


def _tested(reference: Measured, other: Measured) -> Difference | None:
    """Both rows compared sentence by sentence; None where their counts are not known."""
    if len(reference.metric.terms) > 1:
        return None
    ((name, figure),) = reference.metric.terms
    sides = reference.results, other.results
    if not all(result.metrics[name].counts for side in sides for result in side):
        return None  # kept before counts were
    one, two = (Sums.of([result.counts(name) for result in side], name, figure) for side in sides)
    return None if one is None or two is None else one.compare(two)


def reversed_pairs(measured: Sequence[Measured]) -> tuple[int, list[tuple[str, str, SeedMean]]]:
    """Where the order is not that of the published figures.

    Returns:
        How many pairs of rows have an order in the publication; and of each pair that is
        reversed here by more than its deviation: the row that is better here, the one that is
        better there, and the difference here. With one seed there is no deviation to exceed: a
        pair is named where the difference is none of chance by sentences.
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
        if ours.sd is None:
            tested = _tested(worse, better) if ours.mean > 0 else None
            sure = tested is not None and tested.p <= CHANCE
        else:
            sure = ours.mean > ours.sd
        if sure:
            found.append((better.name, worse.name, ours))
    return pairs, found


def _range(numbers: set[int], what: str = "") -> str:
    """``1 epoch``, or ``5 to 12 epochs``."""
    values = sorted(numbers)
    number = str(values[0]) if len(values) == 1 else f"{values[0]} to {values[-1]}"
    return f"{number} {what}{'' if values == [1] else 's'}" if what else number
