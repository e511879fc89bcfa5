"""A search of settings: what was varied, all its trials, and the file that keeps them.

A record carries the searches that its settings come from; who draws settings is not known here.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, PositiveInt, ValidationError, field_validator

from spmrl_bench.errors import CheckpointError
from spmrl_bench.leaderboard.documents import Part, problems
from spmrl_bench.storage.files import read_regular
from spmrl_bench.storage.json import parse_json

_FOLDERS = re.compile(r"(?<![^\s=:,'\"(])/(?:[^\s/]+/)+")
TrialState = Literal["complete", "pruned", "failed", "running"]


class SearchTrial(Part):
    """One trial: settings that were tried, and what came of them."""

    number: PositiveInt = Field(description="In the order in which they were begun, from 1.")
    settings: dict[str, Any] = Field(description="Of what was searched: `section.key` and value.")
    state: TrialState = Field(
        description="`complete`; `pruned`: ended early as others were better; `failed`: training "
        "diverged or was refused; `running`: begun, and not ended when this was written."
    )
    dev: float | None = Field(None, description="Best score on dev, of what selects.")
    minutes: float = Field(0.0, ge=0, description="Of training and scoring dev, in all.")
    problem: str = Field("", description="Why it failed; of files only the names.")

    @field_validator("problem")
    @classmethod
    def _without_folders(cls, problem: str) -> str:
        """Records are published, and the folders of a machine are nobody else's business."""
        return _FOLDERS.sub("", problem)


class Search(Part):
    """A search: what was varied, how it was gone about, and all trials."""

    space: dict[str, str] = Field(description="What was searched, in the notation of `search`.")
    sampler: str = Field(description="What drew settings: tpe or random.")
    pruner: str = Field(description="What ended trials early: median, hyperband or none.")
    seed: int = Field(ge=0, description="Of the sampler and of all trials.")
    treebank: str = Field("", description="Of the trials; earlier versions did not write it.")
    select: str = Field(description="The figure of dev, or sum of figures, that trials have.")
    trials: list[SearchTrial] = Field(description="All that were begun.")
    found: PositiveInt | None = Field(
        None, description="The trial that had the settings of the record, if one of these."
    )

    @property
    def best(self) -> SearchTrial | None:
        """The trial with the best score of those that came to their end; of equals the first."""
        ended = [trial for trial in self.trials if trial.state == "complete"]
        return max(ended, key=lambda trial: trial.dev or 0.0, default=None)

    def count(self, state: TrialState) -> int:
        return sum(trial.state == state for trial in self.trials)

    @property
    def minutes(self) -> float:
        return sum(trial.minutes for trial in self.trials)


#: How the names of the folders of searches begin, and the file in them.
SEARCHES, SEARCH = "search-", "search.json"


class SearchDocument(Part):
    """All that is known of a search: the file in its folder."""

    schema_version: int = Field(default=1, ge=1, le=1)
    search: Search
    base: dict[str, Any]
    """The resolved settings that all trials have in common."""
    recipes: dict[int, dict[str, Any]]
    """By number of a trial: its resolved settings, but of trials that the recipe refused."""
    versions: dict[str, str]
    """Of Python, this program and the libraries, when the file was written."""

    @field_validator("base")
    @classmethod
    def _by_dotted_key(cls, base: dict[str, Any]) -> dict[str, Any]:
        """Settings of a parser of a search that was begun when they were flat."""
        from spmrl_bench.parsers.legacy import leaves, nested

        model = base.get("model")
        if not isinstance(model, dict) or "lexical" not in model:
            return base
        return {**base, "model": leaves(nested(model))}


def read_search(folder: Path) -> SearchDocument | None:
    """The document of a search, None where none was begun; a CheckpointError where it is broken."""
    path = folder / SEARCH
    try:
        return SearchDocument.model_validate(parse_json(read_regular(path)))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        problem = problems(error) if isinstance(error, ValidationError) else error
    raise CheckpointError(
        f"{path}: not the document of a search: {problem}. Restore it, or move the folder away to "
        "search anew"
    )


def minutes_text(minutes: float) -> str:
    return f"{minutes:.0f} min" if minutes >= 10 else f"{minutes:.1f} min"


def searched_text(searches: Sequence[Search]) -> str:
    if not searches:
        return ""
    trials = sum(len(search.trials) for search in searches)
    what = "a search" if len(searches) == 1 else f"{len(searches)} searches"
    minutes = minutes_text(sum(search.minutes for search in searches))
    chosen = any(search.best and search.best.number == search.found for search in searches)
    how = "found" if chosen else "tried, not as the best,"
    places = ", ".join(sorted({search.treebank for search in searches} - {""}))
    where = f" on {places}" if places else ""
    return f"{how} by {what} of {trials} trial{'' if trials == 1 else 's'}{where}, {minutes}"
