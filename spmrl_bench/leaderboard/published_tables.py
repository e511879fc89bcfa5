"""Published figures of a track's languages in the layout of the paper they are from.

A figure compares with a score of the same treebank only. Where a track has scores of the very
treebank, they stand below the published ones, with the differences to the reproduced paper;
where it has another treebank of the language, the published figures get tables of their own,
which say so and contain no score of this program.

A family of treebanks of many languages, such as those of the SPMRL shared tasks, has a column
for each language (Kitaev & Klein 2018, Table 7); a family of one has recall, precision and F1
(their Table 6).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from spmrl_bench.leaderboard.estimates import Estimate, average
from spmrl_bench.leaderboard.formats import Table
from spmrl_bench.leaderboard.multilingual import METRICS, Row, System, TrackScores
from spmrl_bench.leaderboard.published import Figure, PriorFigure

AVERAGE = "average"
_FAMILIES = {"spmrl": "the SPMRL treebanks", "ptb": "the Penn Treebank"}
_OTHER_TREEBANK = (
    "These figures are of another treebank than the scores above, so they do not compare with "
    "them and no difference is computed."
)
_DELTA = "Δ: ours minus the published score of the same treebank, in points."
_SPLITS = ("dev", "test")

Cells = Mapping[str, Estimate | None]
"""A value for each column."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A score of this program minus the published one of the same treebank."""

    row: Row
    variant: str
    split: str
    metric: str
    own: Estimate
    published: Figure

    @property
    def points(self) -> float:
        """The difference of the (mean) score, in points."""
        return self.own.mean - self.published.value


def differences(system: System, figures: Sequence[Figure]) -> list[Difference]:
    """All differences to published figures of the treebanks of a system.

    On dev each variant is compared with the same one; on test the variant that was selected
    here with the one that was selected there.
    """
    found = []
    for row in system.rows:
        for figure in figures:
            if figure.treebank != row.treebank:
                continue
            if figure.split == "test":
                variant, scores = row.selected, row.test.get(figure.metric, {})
            else:
                variant = figure.variant
                scores = row.dev.get(variant, {}) if figure.metric == "f1" else {}
            own = Estimate.of(scores)
            if own is not None:
                found.append(Difference(row, variant, figure.split, figure.metric, own, figure))
    return found


def published_tables(
    scores: TrackScores, figures: Sequence[Figure], prior: Sequence[PriorFigure]
) -> list[Table]:
    """The tables of published figures for the languages of a track, comparable ones first."""
    families: dict[str, dict[str, str]] = {}
    for figure in figures:
        families.setdefault(figure.treebank.rpartition("-")[2], {})[figure.language] = (
            figure.treebank
        )
    rows = [row for system in scores.systems for row in system.rows]
    languages, treebanks = {row.language for row in rows}, {row.treebank for row in rows}
    comparable: list[Table] = []
    other: list[Table] = []
    for family, banks in families.items():
        mine = {language: bank for language, bank in banks.items() if language in languages}
        same = {language: bank for language, bank in mine.items() if bank in treebanks}
        rest = {language: bank for language, bank in mine.items() if bank not in treebanks}
        name = _FAMILIES.get(family, f"treebanks of {family}")
        layout = _long_tables if len(banks) == 1 else _wide_tables
        if same:
            comparable += layout(f"Beside published scores on {name}", same, scores, figures, prior)
        if rest:
            title = f"Published, on {name}: not comparable"
            other += layout(title, rest, None, figures, prior)
    return comparable + other


# ---- A column for each language ----


def _wide_tables(
    title: str,
    banks: Mapping[str, str],
    scores: TrackScores | None,
    figures: Sequence[Figure],
    prior: Sequence[PriorFigure],
) -> list[Table]:
    """One table for dev and one for test; ``scores`` are None where nothing compares."""
    tables = []
    for split in _SPLITS:
        earlier, sources = _prior_rows(split, banks, prior)
        reference, more = _reference_rows(split, banks, figures)
        own, apart = _own_rows(split, banks, scores, figures) if scores else ([], [])
        rows = [*earlier, *reference, *own, *apart]
        if not rows:
            continue
        breaks = {len(earlier), len(earlier) + len(reference), len(rows) - len(apart)}
        columns = [*banks, AVERAGE] if len(banks) > 1 else list(banks)
        frame = pd.DataFrame(
            [
                [label, *(_shown(cells.get(name), signed=label in dict(apart)) for name in columns)]
                for label, cells in rows
            ],
            columns=["system", *columns],
        )
        tables.append(
            Table(
                title=f"{title} ({split} F1)",
                frame=frame,
                numeric=frozenset(columns),
                breaks=frozenset(breaks - {0, len(rows)}),
                notes=(_DELTA,) if scores else (_OTHER_TREEBANK,),
                items=_sources([*sources, *more]),
            )
        )
    return tables


Rows = list[tuple[str, Cells]]
Source = tuple[str, str, str]
"""Where figures were read, the system they are of, and what to say of it."""


def _prior_rows(
    split: str, banks: Mapping[str, str], prior: Sequence[PriorFigure]
) -> tuple[Rows, list[Source]]:
    found = [figure for figure in prior if _belongs(figure, split, banks)]
    sources = [(one.source, one.system, _about(one, (one.setting,))) for one in found]
    return _rows([(one.system, one) for one in found], banks), sources


def _about(figure: PriorFigure, settings: Sequence[str]) -> str:
    """What to say of a system beside its name: its paper, where the source is another."""
    paper = "" if figure.source.startswith(figure.paper) else figure.paper
    return "; ".join(filter(None, (*settings, paper)))


def _sources(found: Sequence[Source]) -> tuple[str, ...]:
    """A line for each source, with the systems whose figures are from there."""
    systems: dict[str, dict[str, None]] = {}
    for source, system, about in found:
        named = f"{system} [{about}]" if about else system
        systems.setdefault(source, {})[named] = None
    return tuple(f"{source}: {'; '.join(named)}" for source, named in systems.items())


def _reference_rows(
    split: str, banks: Mapping[str, str], figures: Sequence[Figure]
) -> tuple[Rows, list[Source]]:
    found = [figure for figure in figures if _belongs(figure, split, banks)]
    named = [(_reference_name(one.system, one.variant, split), one) for one in found]
    return _rows(named, banks), [(one.source, one.system, "") for one in found]


def _belongs(figure: Figure | PriorFigure, split: str, banks: Mapping[str, str]) -> bool:
    """Whether it is an F1 on this split of one of these treebanks."""
    wanted = figure.split == split and figure.metric == "f1"
    return wanted and banks.get(figure.language) == figure.treebank


def _rows(named: Sequence[tuple[str, Figure | PriorFigure]], banks: Mapping[str, str]) -> Rows:
    """A row for each name, with its figures by language and their average."""
    values: dict[str, dict[str, float]] = {}
    for name, figure in named:
        values.setdefault(name, {})[figure.language] = figure.value
    return [(name, _with_average(found, banks)) for name, found in values.items()]


def _reference_name(system: str, variant: str, split: str) -> str:
    """On test there is one variant for each language, which dev selected."""
    return f"{system}, {variant}" if split == "dev" else f"{system}, selected on dev"


def _with_average(values: Mapping[str, float], banks: Mapping[str, str]) -> Cells:
    cells: dict[str, Estimate | None] = {
        language: Estimate(value, None, 1) for language, value in values.items()
    }
    columns = [(name, {0: values[name]} if name in values else {}) for name in banks]
    return cells | {AVERAGE: average(columns)}


def _own_rows(
    split: str, banks: Mapping[str, str], scores: TrackScores, figures: Sequence[Figure]
) -> tuple[Rows, Rows]:
    """Rows of this program, and of its differences to the reference."""
    own: Rows = []
    apart: Rows = []
    for system in scores.systems:
        name_of = f", {system.name}" if len(scores.systems) > 1 else ""
        rows = {row.language: row for row in system.rows if banks.get(row.language) == row.treebank}
        alike = len({row.convention for row in rows.values()}) == 1
        found = [
            one for one in differences(system, figures) if rows.get(one.row.language) is one.row
        ]
        for variant in system.variants if split == "dev" else ("selected on dev",):
            columns = {
                name: (row.dev.get(variant, {}) if split == "dev" else row.test.get("f1", {}))
                for name, row in rows.items()
            }
            if not any(columns.values()):
                continue
            cells: dict[str, Estimate | None] = {
                name: Estimate.of(column) for name, column in columns.items()
            }
            if alike:
                cells[AVERAGE] = average([(name, columns.get(name, {})) for name in banks])
            own.append((f"ours{name_of}, {variant}", cells))
            points = {
                one.row.language: one.points
                for one in found
                if one.metric == "f1"
                and one.split == split
                and (split == "test" or one.variant == variant)
            }
            if points:
                label = f"Δ {found[0].published.system}{name_of}, {variant}"
                apart.append((label, _with_average(points, banks)))
    return own, apart


# ---- Recall, precision and F1 of one language ----


def _long_tables(
    title: str,
    banks: Mapping[str, str],
    scores: TrackScores | None,
    figures: Sequence[Figure],
    prior: Sequence[PriorFigure],
) -> list[Table]:
    """One table of the family's one language."""
    ((language, treebank),) = banks.items()
    groups: dict[tuple[str, str], dict[tuple[str, str], float]] = {}
    sources: list[Source] = []
    for figure in prior:
        if figure.treebank == treebank:
            values = groups.setdefault((figure.system, figure.setting), {})
            values[figure.split, figure.metric] = figure.value
            sources.append((figure.source, figure.system, _about(figure, ())))
    lines = [[*key, *_long_cells(values)] for key, values in groups.items()]
    settings = [setting for _, setting in groups]
    breaks = {n for n in range(1, len(settings)) if settings[n] != settings[n - 1]}
    breaks.add(len(lines))
    reference: dict[tuple[str, str], dict[tuple[str, str], float]] = {}
    for known in figures:
        if known.treebank == treebank:
            values = reference.setdefault((known.system, known.variant), {})
            values[known.split, known.metric] = known.value
            sources.append((known.source, known.system, ""))
    lines += [[*key, *_long_cells(values)] for key, values in reference.items()]
    for system in scores.systems if scores else ():
        for row in (row for row in system.rows if row.treebank == treebank):
            breaks.add(len(lines))
            lines += _own_lines(system, row, figures)
    columns = ["system", "setting", "dev F1", *(f"test {title_of(metric)}" for metric in METRICS)]
    return [
        Table(
            title=f"{title} ({language})",
            frame=pd.DataFrame(lines, columns=columns),
            numeric=frozenset(columns[2:]),
            breaks=frozenset(breaks - {0, len(lines)}),
            notes=(_DELTA,) if scores else (_OTHER_TREEBANK,),
            items=_sources(sources),
        )
    ]


def _own_lines(system: System, row: Row, figures: Sequence[Figure]) -> list[list[str]]:
    lines = []
    for variant in system.variants:
        if variant in row.records:
            test = row.test if variant == row.selected else {}
            cells = [Estimate.of(row.dev.get(variant, {}))]
            cells += [Estimate.of(test.get(metric, {})) for metric in METRICS]
            name = f"ours, {system.name}"
            lines.append([name, variant, *(_shown(cell) for cell in cells)])
    for variant in system.variants:
        found = [one for one in differences(system, figures) if one.row is row]
        points = {(one.split, one.metric): one.points for one in found if one.variant == variant}
        if points:
            label = f"Δ {found[0].published.system}"
            lines.append([label, variant, *_long_cells(points, True)])
    return lines


def _long_cells(values: Mapping[tuple[str, str], float], signed: bool = False) -> list[str]:
    keys = [("dev", "f1"), *(("test", metric) for metric in METRICS)]
    found = (values.get(key) for key in keys)
    return ["" if value is None else _number(value, signed) for value in found]


def title_of(metric: str) -> str:
    return "F1" if metric == "f1" else metric


def _shown(estimate: Estimate | None, signed: bool = False) -> str:
    return "" if estimate is None else shown(estimate, signed)


def shown(estimate: Estimate, signed: bool = False, mark: str = "") -> str:
    """An estimate as tables print it: two decimals, and the standard deviation if there is one."""
    mean = _number(estimate.mean, signed) + mark
    return mean if estimate.sd is None else f"{mean} ± {estimate.sd:.2f}"


def _number(value: float, signed: bool) -> str:
    return f"{value:+.2f}" if signed else f"{value:.2f}"
