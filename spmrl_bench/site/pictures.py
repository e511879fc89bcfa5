"""Scores as pictures: places of points and lines, which a template writes as SVG in the page.

Being part of the page, a picture takes its colours from it, by day and by night, and its words are
words to whoever searches, copies or listens. Series differ by the shape of their marks too, since
colours alone are lost in print and on many eyes. The axis of scores does not begin at zero, so
scores are points, joined by lines where what lies between them means something.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

WIDTH, HEIGHT = 640, 300
LEFT, RIGHT, TOP, BOTTOM = 52, 16, 14, 52

#: More series than this cannot be told apart.
MOST_SERIES = 5

_STEPS = (1, 2, 2.5, 5, 10)
_TICKS = 6


class Series(NamedTuple):
    """Scores of one system: ``(place on the x axis from 0 to 1, score)``."""

    name: str
    points: Sequence[tuple[float, float]]


class Mark(NamedTuple):
    """A point in pixels, and what it says."""

    x: float
    y: float
    text: str


class Line(NamedTuple):
    """A series in pixels."""

    name: str
    path: str
    marks: Sequence[Mark]


@dataclass(frozen=True)
class Picture:
    """A picture of series over an axis of places with names.

    Attributes:
        name: of its own on the page.
        title: what it shows.
        x_title, y_title: of the axes.
        ticks: of the x axis: place from 0 to 1 and name.
        series: at most :data:`MOST_SERIES`.
        joined: whether the points of a series are joined.
        notes: below it.
        downloads: addresses of files with its numbers, by their format.
    """

    name: str
    title: str
    x_title: str
    y_title: str
    ticks: Sequence[tuple[float, str]]
    series: Sequence[Series]
    joined: bool = True
    notes: Sequence[str] = ()
    downloads: Sequence[tuple[str, str]] = ()

    width, height = WIDTH, HEIGHT
    left, right, top, bottom = LEFT, WIDTH - RIGHT, TOP, HEIGHT - BOTTOM

    @property
    def told(self) -> str:
        """All of it in words."""
        names = dict(self.ticks)
        parts = [
            f"{one.name}: "
            + ", ".join(f"{names.get(x, f'{x:g}')} {score:.1f}" for x, score in one.points)
            for one in self.series
        ]
        return f"{self.y_title} over {self.x_title}. {'; '.join(parts)}."

    @property
    def x_ticks(self) -> list[tuple[float, str]]:
        """Places in pixels, with their names."""
        return [(round(self._x(place), 1), name) for place, name in self.ticks]

    @property
    def y_ticks(self) -> list[tuple[float, str]]:
        """Places in pixels, with the scores."""
        return [(round(self._y(score), 1), f"{score:g}") for score in self._scale]

    @property
    def lines(self) -> list[Line]:
        """The series in pixels."""
        names = dict(self.ticks)
        found = []
        for one in self.series:
            marks = [
                Mark(
                    round(self._x(x), 1),
                    round(self._y(score), 1),
                    f"{one.name}, {names.get(x, '')}: {score:.2f}",
                )
                for x, score in one.points
            ]
            path = "M" + "L".join(f"{mark.x} {mark.y}" for mark in marks) if self.joined else ""
            found.append(Line(one.name, path, marks))
        return found

    def _x(self, place: float) -> float:
        margin = 22
        return self.left + margin + place * (self.right - self.left - 2 * margin)

    def _y(self, score: float) -> float:
        low, high = self._scale[0], self._scale[-1]
        return self.bottom - (score - low) / (high - low) * (self.bottom - self.top)

    @property
    def _scale(self) -> list[float]:
        return scale([score for one in self.series for _, score in one.points])


def scale(scores: Sequence[float]) -> list[float]:
    """Round numbers in equal steps around scores between 0 and 100."""
    low, high = min(scores), max(scores)
    span = max(high - low, 1.0)
    size = 10.0 ** math.floor(math.log10(span / _TICKS))
    step = next(size * one for one in _STEPS if size * one * _TICKS >= span)
    first = math.floor(low / step)
    last = max(math.ceil(high / step), first + 1)
    return [round(step * k, 6) for k in range(first, last + 1)]


def places(names: Sequence[str]) -> list[tuple[float, str]]:
    """Ticks for names in equal distances."""
    last = max(1, len(names) - 1)
    return [(k / last, name) for k, name in enumerate(names)]


def logarithmic(values: Sequence[int]) -> list[tuple[float, str]]:
    """Ticks for increasing numbers, at distances of their logarithms."""
    low, high = math.log(values[0]), math.log(values[-1])
    width = (high - low) or 1.0
    return [(round((math.log(value) - low) / width, 6), f"{value:,}") for value in values]
