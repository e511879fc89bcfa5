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

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import pandas as pd

from spmrl_bench.leaderboard.estimates import Estimate, Scores, average, estimate_text
from spmrl_bench.leaderboard.formats import Table
from spmrl_bench.leaderboard.frame import Key, brief_terms, headline_terms, title_of
from spmrl_bench.leaderboard.published import PublishedFigure
from spmrl_bench.leaderboard.track import Setup, TrackScores, TreebankScores

AVERAGE = "average"
_SELECTED = "selected on dev"
_FAMILIES = {"spmrl": "the SPMRL treebanks", "ptb": "the Penn Treebank"}
_OTHER_TREEBANK = (
    "These figures are of another treebank than the scores above, so they do not compare with "
    "them and no difference is computed."
)
_DELTA = "Δ: ours minus the published score of the same treebank and settings, in points."


class PublishedDifference(NamedTuple):
    """A (mean) score of this program minus the published one of the same treebank and settings."""

    variant: str
    published: PublishedFigure
    points: float


def published_differences(
    setup: Setup, published: Iterable[PublishedFigure]
) -> list[PublishedDifference]:
    """All differences to published figures of the treebanks and settings of a setup.

    On dev each variant is compared with the same one; on test the variant that was selected
    here with the one that was selected there.
    """
    figures = [figure for figure in published if figure.variant]
    found = []
    for row in setup.rows:
        for figure in (one for one in figures if one.treebank == row.treebank):
            variant = row.selected if figure.split == "test" else figure.variant
            own = Estimate.of(_scores(setup, row, variant, figure.key).values())
            if own is not None and figure.is_of(row.settings[variant]):
                found.append(PublishedDifference(variant, figure, own.mean - figure.value))
    return found


def _scores(setup: Setup, row: TreebankScores, variant: str, key: Key) -> Scores:
    """A figure of a variant by seed; of dev there is what selects, of test the selected variant."""
    split, *term = key
    if split == "dev":
        return row.dev.get(variant, {}) if setup.criterion.terms == (tuple(term),) else {}
    return row.test.get((term[0], term[1]), {}) if variant == row.selected else {}


def published_tables(scores: TrackScores, published: Sequence[PublishedFigure]) -> list[Table]:
    """The tables of published figures for the languages of a track, comparable ones first.

    There are those of each family of treebanks that a variant of a recipe was measured on.
    """
    families: dict[tuple[str, str], dict[str, str]] = {}
    for figure in published:
        if figure.variant:
            key = figure.treebank.rpartition("-")[2], figure.metric
            families.setdefault(key, {})[figure.language] = figure.treebank
    rows = [row for setup in scores.setups for row in setup.rows]
    languages, treebanks = {row.language for row in rows}, {row.treebank for row in rows}
    comparable: list[Table] = []
    other: list[Table] = []
    for (family, metric), banks in families.items():
        mine = {language: bank for language, bank in banks.items() if language in languages}
        same = {language: bank for language, bank in mine.items() if bank in treebanks}
        rest = {language: bank for language, bank in mine.items() if bank not in treebanks}
        name = _FAMILIES.get(family, f"treebanks of {family}")
        for split in ("dev", "test") if len(banks) > 1 else ("",):
            layout = _Layout(metric, split)
            title = f"Beside published scores on {name}"
            comparable += layout.tables(title, same, scores.setups, published)
            title = f"Published, on {name}: not comparable"
            other += layout.tables(title, rest, (), published)
    return comparable + other


class _Line(NamedTuple):
    """A row: what it shares with those that no line divides it from, labels, and scores."""

    section: tuple[object, ...]
    labels: tuple[str, ...]
    scores: dict[str, Scores]
    averaged: bool = True


@dataclass(frozen=True, slots=True)
class _Layout:
    """A column for each language, of one split, or without a split one for each figure."""

    metric: str
    split: str

    @property
    def keys(self) -> list[Key]:
        """The figures that it shows."""
        (headline,) = headline_terms([self.metric])
        if self.split:
            return [(self.split, *headline)]
        return [("dev", *headline), *(("test", *term) for term in brief_terms(self.metric))]

    def column(self, language: str, key: Key) -> str:
        """The heading of the column of a figure."""
        return language if self.split and language else f"{key[0]} {title_of(key[1:])}"

    def labels(self, name: str, what: str) -> tuple[str, ...]:
        """The first cells of a row."""
        return (", ".join(filter(None, (name, what))),) if self.split else (name, what)

    def tables(
        self,
        title: str,
        banks: Mapping[str, str],
        setups: Sequence[Setup],
        published: Sequence[PublishedFigure],
    ) -> list[Table]:
        """The table of these treebanks, if it has a row; without setups nothing of it is ours."""
        found = [
            figure
            # Those of variants, which are the reference, stand below the others.
            for figure in sorted(published, key=lambda figure: bool(figure.variant))
            if banks.get(figure.language) == figure.treebank and figure.key in self.keys
        ]
        lines = self._published(found)
        for setup in setups:
            name = f", {setup.name}" if len(setups) > 1 or not self.split else ""
            lines += self._own(setup, name, banks, found)
        if not lines:
            return []
        columns = list(dict.fromkeys(self.column(bank, key) for bank in banks for key in self.keys))
        columns += [AVERAGE] if self.split and len(banks) > 1 else []
        first = ["system"] if self.split else ["system", "setting"]
        what = self.column("", self.keys[0]) if self.split else ", ".join(banks)
        cells = []
        for line in lines:
            estimates = {name: Estimate.of(found.values()) for name, found in line.scores.items()}
            if line.averaged:
                estimates[AVERAGE] = average([(bank, line.scores.get(bank, {})) for bank in banks])
            signed = line.labels[0][0] == "Δ"
            cells.append(
                [*line.labels, *(estimate_text(estimates.get(name), signed) for name in columns)]
            )
        return [
            Table(
                title=f"{title} ({what})",
                frame=pd.DataFrame(cells, columns=[*first, *columns]),
                numeric=frozenset(columns),
                breaks=frozenset(
                    n for n, (one, last) in enumerate(pairwise(lines), 1) if one[0] != last[0]
                ),
                notes=(_DELTA if setups else _OTHER_TREEBANK, self._sources(found)),
            )
        ]

    def _published(self, figures: Iterable[PublishedFigure]) -> list[_Line]:
        """The rows of other systems, between lines where the setting changes; the reference."""
        lines: dict[tuple[bool, tuple[str, ...]], _Line] = {}
        for figure in figures:
            ours = bool(figure.variant)
            what = figure.variant or ("" if self.split else figure.setting)
            if ours and self.split == "test":
                what = _SELECTED  # one variant for each language, which dev selected
            labels = self.labels(figure.system, what)
            section = (ours,) if ours else (ours, *labels[1:])
            line = lines.setdefault((ours, labels), _Line(section, labels, {}))
            line.scores[self.column(figure.language, figure.key)] = {0: figure.value}
        return list(lines.values())

    def _own(
        self, setup: Setup, name: str, banks: Mapping[str, str], figures: Sequence[PublishedFigure]
    ) -> list[_Line]:
        """The rows of this program, then those of its differences to the reference."""
        rows = [row for row in setup.rows if banks.get(row.language) == row.treebank]
        alike = len({row.convention for row in rows}) == 1
        apart = published_differences(setup, figures)
        own: list[_Line] = []
        differences: list[_Line] = []
        for variant in [_SELECTED] if self.split == "test" else setup.variants:
            scores: dict[str, Scores] = {}
            for row in rows:
                chosen = row.selected if variant == _SELECTED else variant
                for key in self.keys:
                    if found := _scores(setup, row, chosen, key):
                        scores[self.column(row.language, key)] = found
            points: dict[str, Scores] = {
                self.column(one.published.language, one.published.key): {0: one.points}
                for one in apart
                if variant in (_SELECTED, one.variant)
            }
            if scores:
                labels = self.labels(f"ours{name}", variant)
                own.append(_Line(("ours", name), labels, scores, alike))
            if points:
                labels = self.labels(
                    f"Δ {apart[0].published.system}{name if self.split else ''}", variant
                )
                differences.append(_Line(("Δ", name), labels, points))
        return own + differences

    def _sources(self, figures: Iterable[PublishedFigure]) -> list[str]:
        """A line for each source, with the systems whose figures are from there."""
        systems: dict[str, dict[str, None]] = {}
        for figure in figures:
            # The paper is said where the source is another, the setting where no column has it.
            about = [figure.setting] if self.split else []
            about += [] if figure.source.startswith(figure.paper) else [figure.paper]
            listed = "; ".join(filter(None, about))
            named = f"{figure.system} [{listed}]" if listed else figure.system
            systems.setdefault(figure.source, {})[named] = None
        return [f"{source}: {'; '.join(named)}" for source, named in systems.items()]
