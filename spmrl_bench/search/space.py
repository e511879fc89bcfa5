"""What is searched: settings with several values, in the notation of the command line.

``KEY=VALUE`` is a setting that all trials have. ``KEY=LOW:HIGH`` is any number between two ends,
``KEY=log:LOW:HIGH`` one whose logarithm is, ``KEY=int:LOW:HIGH`` a whole number, and ``KEY=A|B|C``
one of some values. Numbers that are no whole ones have four significant digits, so that a command
can repeat them exactly.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from spmrl_bench.errors import RecipeError

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution

_DIGITS = 4
#: Where between its ends a range is looked at too: a place that is no round number.
_BETWEEN = 0.382

Value = str | int | float
"""A value of a trial: a number of a range, or the text of a choice."""


@dataclass(frozen=True)
class Range:
    """The numbers between two ends, both included.

    Attributes:
        low, high: the ends, ``low < high``; whole numbers if ``whole``.
        log: whether the logarithm is spread evenly, not the number.
        whole: whether only whole numbers are meant.
    """

    low: float
    high: float
    log: bool = False
    whole: bool = False

    @property
    def text(self) -> str:
        """In the notation, the same for all ways to write it."""
        kind = "int:" if self.whole else "log:" if self.log else ""
        return f"{kind}{self.low}:{self.high}"

    @property
    def probes(self) -> tuple[Value, ...]:
        """The ends, and one between them."""
        return self.low, self.value(self.low + _BETWEEN * (self.high - self.low)), self.high

    @property
    def distribution(self) -> BaseDistribution:
        """As Optuna has it."""
        from optuna.distributions import FloatDistribution, IntDistribution

        if self.whole:
            return IntDistribution(int(self.low), int(self.high))
        return FloatDistribution(self.low, self.high, log=self.log)

    def value(self, drawn: Value) -> Value:
        """A number that was drawn, as trials have it."""
        if self.whole:
            return int(drawn)
        rounded = float(f"{float(drawn):.{_DIGITS}g}")
        return min(self.high, max(self.low, rounded))


@dataclass(frozen=True)
class Choice:
    """Some values, each as the command line would give it."""

    values: tuple[str, ...]

    @property
    def text(self) -> str:
        """In the notation."""
        return "|".join(self.values)

    @property
    def probes(self) -> tuple[Value, ...]:
        """All values."""
        return self.values

    @property
    def distribution(self) -> BaseDistribution:
        """As Optuna has it."""
        from optuna.distributions import CategoricalDistribution

        return CategoricalDistribution(self.values)

    def value(self, drawn: Value) -> Value:
        """The same."""
        return drawn


Parameter = Range | Choice


class Settings(NamedTuple):
    """Settings of the command line: what all trials have, and what is searched, by key."""

    fixed: Mapping[str, str]
    space: Mapping[str, Parameter]


def read_settings(given: Mapping[str, str]) -> Settings:
    """Settings whose values may be in the notation of a space.

    Args:
        given: ``section.key`` and its value.

    Raises:
        RecipeError: a range or a list of values that is none, or nothing is searched.
    """
    fixed: dict[str, str] = {}
    space: dict[str, Parameter] = {}
    for key, text in sorted(given.items()):
        parameter = _parameter(key, text)
        if parameter is None:
            fixed[key] = text
        else:
            space[key] = parameter
    if not space:
        raise RecipeError(
            "nothing to search: give one setting at least several values, such as "
            "--set train.learning_rate=log:1e-4:5e-3, --set model.layers=int:2:8 or "
            "--set 'train.batch_size=8|16|32'"
        )
    return Settings(fixed, space)


def _parameter(key: str, text: str) -> Parameter | None:
    """What a value says is searched; None for a value that all trials have."""
    if "|" in text:
        return _choice(key, text)
    parts = [part.strip() for part in text.split(":")]
    marked = parts[0] in ("log", "int")
    if not marked and (len(parts) == 1 or _number(parts[0]) is None):
        return None  # a value that may have colons, such as the name of a file
    kind, ends = (parts[0], parts[1:]) if marked else ("", parts)
    numbers = [number for end in ends if (number := _number(end)) is not None]
    if len(ends) != 2 or len(numbers) != 2:
        raise RecipeError(
            f"--set {key}={text}: expected {kind and f'{kind}:'}LOW:HIGH with two finite numbers"
        )
    low, high = numbers
    if low >= high:
        raise RecipeError(f"--set {key}={text}: {ends[0]} is not less than {ends[1]}")
    if kind == "int":
        if not (low.is_integer() and high.is_integer()):
            raise RecipeError(f"--set {key}={text}: int:LOW:HIGH has whole numbers")
        return Range(int(low), int(high), whole=True)
    if kind == "log" and low <= 0:
        raise RecipeError(f"--set {key}={text}: log:LOW:HIGH has numbers above 0")
    return Range(low, high, log=kind == "log")


def _choice(key: str, text: str) -> Choice:
    values = tuple(value.strip() for value in text.split("|"))
    if not all(values):
        raise RecipeError(f"--set {key}={text}: a value beside | is empty; expected A|B|C")
    if len(set(values)) < len(values):
        raise RecipeError(f"--set {key}={text}: a value is there twice; expected A|B|C")
    return Choice(values)


def _number(text: str) -> float | None:
    """A finite number; None for anything else."""
    try:
        found = float(text)
    except ValueError:
        return None
    return found if math.isfinite(found) else None
