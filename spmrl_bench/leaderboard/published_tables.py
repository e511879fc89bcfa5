"""Published figures of a track's languages in the layout of the paper they are from.

A figure compares with a score of the same treebank only. Where a track has scores of the very
treebank, they stand below the published ones, with the differences to the reproduced paper
where the settings are the paper's too; where it has another treebank of the language, the
published figures get tables of their own, which say so and contain no score of this program.

A family of treebanks of many languages, such as those of the SPMRL shared tasks, has a column
for each language (Kitaev & Klein 2018, Table 7); a family of one has a column for each figure
(their Table 6).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from spmrl_bench.leaderboard.beside import beside_track, published_differences
from spmrl_bench.leaderboard.board import (
    Column,
    Key,
    Scores,
    SeedMean,
    average,
    brief_columns,
    mean_text,
)
from spmrl_bench.leaderboard.formats import Table
from spmrl_bench.leaderboard.multilingual import Setup, TrackScores
from spmrl_bench.leaderboard.published import PublishedFigure

AVERAGE = "average"
_SELECTED = "selected on dev"
_FAMILIES = {
    "spmrl": "the SPMRL treebanks",
    "ptb": "the Penn Treebank",
    "ctb": "the Chinese Treebank",
}
_OTHER_TREEBANK = (
    "These figures are of another treebank than the scores above, so they do not compare with "
    "them and no difference is computed."
)
Place = tuple[str, Key]
"""A language and a figure of its treebank."""
_DELTA = "Δ: ours minus the published score of the same treebank and settings, in points."


def published_tables(scores: TrackScores, published: Sequence[PublishedFigure]) -> list[Table]:
    """The tables of published figures for the languages of a track, comparable ones first.

    There are those of each family of treebanks that a variant of a recipe was measured on, by the
    metrics that the scores have.
    """
    metrics = {
        metric
        for setup in scores.setups
        for row in setup.rows
        for figures in row.figures.values()
        for _, metric, _ in figures
    }
    families: dict[tuple[str, str], set[str]] = {}
    for figure in published:
        if figure.variant and figure.metric in metrics:
            families.setdefault((figure.family, figure.metric), set()).add(figure.language)
    beside = beside_track(published, scores)
    tables: list[Table] = []
    for same, setups in ((True, scores.setups), (False, ())):
        for (family, metric), languages in families.items():
            name = _FAMILIES.get(family, f"treebanks of {family}")
            title = (
                f"Beside published scores on {name}"
                if same
                else f"Published, on {name}: not comparable"
            )
            figures = [
                one
                for one, compares in beside
                if compares == same and (one.family, one.metric) == (family, metric)
            ]
            columns = brief_columns([metric])
            if len(languages) == 1:
                tables += _Layout(figures, columns, by_language=False).tables(title, setups)
                continue
            for column in columns:
                if column.is_headline:
                    tables += _Layout(figures, [column], by_language=True).tables(title, setups)
    return tables


class _Line(NamedTuple):
    """A row: what it shares with those that no line divides it from, its labels, its scores."""

    section: tuple[object, ...]
    system: str
    setting: str
    scores: dict[Place, Scores]
    averaged: bool = True


@dataclass(frozen=True, slots=True)
class _Layout:
    """A column for each language, all of one figure; or one for each figure of one language."""

    published: Sequence[PublishedFigure]  # of a family of treebanks
    columns: Sequence[Column]
    by_language: bool

    @property
    def banks(self) -> dict[str, str]:
        """Treebank of each language that has figures of the reference."""
        metric = self.columns[0].metric
        figures = (one for one in self.published if one.variant and one.metric == metric)
        return {one.language: one.treebank for one in figures}

    @property
    def places(self) -> dict[Place, str]:
        """What stands in the columns of figures, with their headings."""
        return {
            (language, column.key): language if self.by_language else column.title
            for language in self.banks
            for column in self.columns
        }

    @property
    def of_selected(self) -> bool:
        """Whether it has the one variant of each language that dev selected."""
        return self.by_language and self.columns[0].split == "test"

    def tables(self, title: str, setups: Sequence[Setup]) -> list[Table]:
        """The table of these treebanks, if it has a row; without setups nothing of it is ours."""
        found = [
            figure
            for figure in self.published
            if self.banks.get(figure.language) == figure.treebank
            and (figure.language, figure.key) in self.places
        ]
        lines = self._published(found)
        for setup in setups:
            name = f", {setup.name}" if len(setups) > 1 or not self.by_language else ""
            lines += self._own(setup, name, found)
        if not lines:
            return []
        columns = list(self.places.values())
        columns += [AVERAGE] if self.by_language and len(self.banks) > 1 else []
        first = ["system"] if self.by_language else ["system", "setting"]
        what = self.columns[0].title if self.by_language else ", ".join(self.banks)
        cells = []
        for line in lines:
            scores = [line.scores.get(place, {}) for place in self.places]
            estimates = [SeedMean.of(found.values()) for found in scores]
            if AVERAGE in columns:
                by_language = list(zip(self.banks, scores, strict=True))
                estimates.append(average(by_language) if line.averaged else None)
            labels = [line.system, line.setting]
            if self.by_language:
                labels = [", ".join(filter(None, labels))]
            signed = line.system.startswith("Δ")
            cells.append([*labels, *(mean_text(one, signed) for one in estimates)])
        return [
            Table(
                title=f"{title} ({what})",
                headings=[*first, *columns],
                rows=cells,
                numeric=frozenset(columns),
                breaks=frozenset(
                    n for n, (one, last) in enumerate(pairwise(lines), 1) if one[0] != last[0]
                ),
                notes=(_DELTA if setups else _OTHER_TREEBANK, self._sources(found)),
            )
        ]

    def _published(self, figures: Iterable[PublishedFigure]) -> list[_Line]:
        """The rows of other systems, between lines where the setting changes; the reference."""
        lines: dict[tuple[bool, str, str], _Line] = {}
        for figure in figures:
            ours = bool(figure.variant)
            setting = figure.variant or ("" if self.by_language else figure.setting)
            if ours and self.of_selected:
                setting = _SELECTED
            section = (ours, "" if ours else setting)
            new = _Line(section, figure.system, setting, {})
            line = lines.setdefault((ours, figure.system, setting), new)
            line.scores[figure.language, figure.key] = {0: figure.value}
        return list(lines.values())

    def _own(self, setup: Setup, name: str, figures: Sequence[PublishedFigure]) -> list[_Line]:
        """The rows of this program, then those of its differences to the reference."""
        rows = {
            row.language: row for row in setup.rows if self.banks.get(row.language) == row.treebank
        }
        alike = len({row.convention for row in rows.values()}) == 1
        apart = published_differences(setup, figures)
        own: list[_Line] = []
        differences: list[_Line] = []
        for variant in [_SELECTED] if self.of_selected else setup.variants:
            scores: dict[Place, Scores] = {
                (language, key): found
                for language, key in self.places
                if language in rows
                and (found := rows[language].scores(key, "" if self.of_selected else variant))
            }
            points: dict[Place, Scores] = {
                (one.published.language, one.published.key): {0: one.points}
                for one in apart
                if self.of_selected or one.variant == variant
            }
            if scores:
                own.append(_Line(("ours", name), f"ours{name}", variant, scores, alike))
            if points:
                system = apart[0].published.system
                label = f"Δ {system}{name if self.by_language else ''}"
                differences.append(_Line(("Δ", name), label, variant, points))
        return own + differences

    def _sources(self, figures: Iterable[PublishedFigure]) -> list[str]:
        """A line for each source, with the systems whose figures are from there."""
        systems: dict[str, dict[str, None]] = {}
        for figure in figures:
            # The paper is said where the source is another, the setting where no column has it.
            about = [figure.setting] if self.by_language else []
            about += [] if figure.source.startswith(figure.paper) else [figure.paper]
            listed = "; ".join(filter(None, about))
            named = f"{figure.system} [{listed}]" if listed else figure.system
            systems.setdefault(figure.source, {})[named] = None
        return [f"{source}: {'; '.join(named)}" for source, named in systems.items()]
