"""What a study found: scores over the seeds, differences, and where the paper saw another order.

The figures of a paper are of another treebank, mostly, and of one run. What can be compared
are differences between rows, and the order of the rows; an order counts as another one only
where the difference is larger than its deviation over the seeds.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import permutations
from pathlib import Path

import pandas as pd

from spmrl_bench.analysis.drawing import load_matplotlib, write_file
from spmrl_bench.analysis.study import StudyRow
from spmrl_bench.analysis.study_figure import draw_study
from spmrl_bench.analysis.study_plan import StudyPlan, encoder_of
from spmrl_bench.analysis.study_run import StudyResult, estimate
from spmrl_bench.errors import SpmrlError
from spmrl_bench.leaderboard.board import LEVEL, SeedMean, Sums, mean_text
from spmrl_bench.leaderboard.record import signature_parts
from spmrl_bench.leaderboard.writing import Document, Table, to_latex, to_markdown
from spmrl_bench.scoring.metric import SelectionMetric

_P = (
    "p: how likely chance alone makes so large a difference on other sentences, these trainings "
    "given (randomisation test over sentences, the counts of all seeds summed up)."
)


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
        """Whether there are several seeds."""
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
        """p of each difference by sentences, by the name of the row; without those that cannot be
        tested, such as a sum of two figures."""
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
        if study.minutes:
            sentences.append(
                "Minutes are of training and dev scoring, with the best score until then."
            )
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
    return estimate({seed: score - theirs[seed] for seed, score in one.scores.items()})


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
    """Write ``place.csv``, ``.md``, ``.tex``, ``.png`` and ``.svg``; return why there is no figure,
    or ''. The tables do not wait for a library that only the figure needs."""
    document = study_document(findings)
    texts = {
        "csv": to_frame(findings).to_csv(index=False, lineterminator="\n"),
        "md": to_markdown(document),
        "tex": to_latex(document),
    }
    for ending, text in texts.items():
        write_file(place.with_name(f"{place.name}.{ending}"), text.encode())
    try:
        load_matplotlib()
    except SpmrlError as problem:
        return str(problem)
    figure = draw_study(findings)
    for ending in ("png", "svg"):
        figure.save(place.with_name(f"{place.name}.{ending}"))
    return ""


def _figure_name(metric: SelectionMetric) -> str:
    return "dev_" + "+".join(name for _, name in metric.terms)


def to_frame(findings: Findings) -> pd.DataFrame:
    """One row for each system, with unrounded numbers; empty cells are missing.

    Scores in percent, differences in points. ``settings`` are what the run changed of its recipe
    and ``limits`` what was taken from the attention of the trained parser, both as JSON;
    ``parsing`` are its settings of parsing that the study gives, likewise.
    """
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
        for minutes in study.minutes:
            add(f"{figure}_after_{minutes:g}_minutes", found.score_within(minutes))
        for metric in study.beside:
            add(_figure_name(metric), SeedMean.of(found.scores_by(metric).values()))
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
    for minutes in study.minutes:
        add(f"after {minutes:g} min", f"{figure}_after_{minutes:g}_minutes")
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
