"""How much was searched before the settings of a run were chosen.

The best of many trials on dev is better on dev for their number alone, and who reads a score should
know what was spent on its settings. So the record of a run whose settings a search has tried keeps
all trials of it, with their scores, and of every other search for the same variant on the treebank.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal

from pydantic import Field, NonNegativeFloat, NonNegativeInt, PositiveInt

from spmrl_bench.leaderboard.store import Part

TrialState = Literal["complete", "pruned", "failed", "running"]


class SearchTrial(Part):
    """One trial: settings that were tried, and what came of them."""

    number: PositiveInt = Field(description="In the order in which they were begun, from 1.")
    settings: dict[str, Any] = Field(
        description="The values of what was searched: `section.key` and value."
    )
    state: TrialState = Field(
        description="`complete`; `pruned`: ended early as others were better; `failed`: training "
        "diverged or was refused; `running`: begun, and not ended when this was written."
    )
    dev: float | None = Field(default=None, description="Best score on dev, of what selects.")
    minutes: NonNegativeFloat = Field(
        default=0.0, description="Of training and scoring dev, over all sittings."
    )
    problem: str = Field(default="", description="Why it failed.")


class Search(Part):
    """A search: what was varied, how it was gone about, and all trials."""

    space: dict[str, str] = Field(description="What was searched, in the notation of `search`.")
    sampler: str = Field(description="What drew settings: tpe or random.")
    pruner: str = Field(description="What ended trials early: median, hyperband or none.")
    seed: NonNegativeInt = Field(description="Of the sampler and of all trials.")
    select: str = Field(description="The figure of dev, or sum of figures, that trials have.")
    trials: list[SearchTrial] = Field(description="All that were begun.")
    found: PositiveInt | None = Field(
        default=None,
        description="The trial that had the settings of the record; None where it was one of "
        "another search for the same variant.",
    )

    @property
    def best(self) -> SearchTrial | None:
        """The trial with the best score of those that came to their end; of equals the first."""
        ended = [trial for trial in self.trials if trial.state == "complete"]
        return max(ended, key=lambda trial: trial.dev or 0.0, default=None)

    @property
    def minutes(self) -> float:
        """What all trials took together."""
        return sum(trial.minutes for trial in self.trials)

    def count(self, state: TrialState) -> int:
        """How many trials are in a state."""
        return sum(trial.state == state for trial in self.trials)


def minutes_text(minutes: float) -> str:
    """As tables print it."""
    return f"{minutes:.0f} min" if minutes >= 10 else f"{minutes:.1f} min"


def searched_text(searches: Sequence[Search]) -> str:
    """How the settings of a run were found and what was spent on it; empty without a search."""
    if not searches:
        return ""
    trials = sum(len(search.trials) for search in searches)
    what = "a search" if len(searches) == 1 else f"{len(searches)} searches"
    spent = f"{trials} trial{'' if trials == 1 else 's'}, {minutes_text(_minutes(searches))}"
    chosen = any(
        search.found is not None and search.best is not None and search.best.number == search.found
        for search in searches
    )
    return f"{'found' if chosen else 'tried, not as the best,'} by {what} of {spent}"


def _minutes(searches: Iterable[Search]) -> float:
    return sum(search.minutes for search in searches)
