"""Which published figures stand beside the scores of this program, for every table.

Beside a variant of a language stand the figures of the same variant, with the treebank they are
of; beside a track all figures of its languages. They compare with scores of the very treebank
only, and a difference is taken only where the settings are those of the published model too.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from spmrl_bench.leaderboard.multilingual import Setup, TrackScores
from spmrl_bench.leaderboard.published import PublishedFigure
from spmrl_bench.scoring.metric import metric_named


class PublishedDifference(NamedTuple):
    """A (mean) score of this program minus the published one of the same treebank and settings."""

    variant: str
    published: PublishedFigure
    points: float


def beside_variant(
    published: Iterable[PublishedFigure], language: str, variant: str
) -> list[list[PublishedFigure]]:
    """The headline figures of a language and variant; of a system, treebank and setting each."""
    found: dict[tuple[str, str, str], list[PublishedFigure]] = {}
    for figure in published:
        headline = metric_named(figure.metric).headline
        if (figure.language, figure.variant, figure.figure) == (language, variant, headline):
            key = figure.system, figure.treebank, figure.setting
            found.setdefault(key, []).append(figure)
    return list(found.values())


def beside_track(
    published: Iterable[PublishedFigure], scores: TrackScores
) -> list[tuple[PublishedFigure, bool]]:
    """The figures of a track's languages, and whether there are scores of their treebank.

    Those of variants, which are the reference, stand behind those of other systems.
    """
    rows = [row for setup in scores.setups for row in setup.rows]
    languages, treebanks = {row.language for row in rows}, {row.treebank for row in rows}
    return [
        (figure, figure.treebank in treebanks)
        for figure in sorted(published, key=lambda figure: bool(figure.variant))
        if figure.language in languages
    ]


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
            own = row.estimate(figure.key, variant)
            if own is not None and figure.is_of(row.settings[variant]):
                found.append(PublishedDifference(variant, figure, own.mean - figure.value))
    return found
