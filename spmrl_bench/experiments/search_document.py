"""The file of a search, ``search.json``: what is searched, and what became of each trial so far.

Scoring a run looks here whether its settings were among those that were tried.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError, field_validator

from spmrl_bench.errors import CheckpointError
from spmrl_bench.experiments.run_folder import MINUTES
from spmrl_bench.leaderboard.frame import resolved_settings
from spmrl_bench.leaderboard.record import Part, Search, problems
from spmrl_bench.parsers.legacy import leaves, nested
from spmrl_bench.storage.files import read_regular
from spmrl_bench.storage.json import parse_json

#: How the names of folders of searches begin, beside those of the runs of a treebank.
PREFIX = "search-"
NAME = "search.json"


class SearchDocument(Part):
    """All that is known of a search; written whenever a trial begins or ends."""

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
        model = base.get("model")
        if not isinstance(model, dict) or "lexical" not in model:
            return base
        return {**base, "model": leaves(nested(model))}


def read_search(folder: Path) -> SearchDocument | None:
    """Return the document of a search; None where none was begun; a CheckpointError says that it
    cannot be read."""
    path = folder / NAME
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


def searches_behind(folder: Path, recipe: Mapping[str, Any]) -> list[Search]:
    """Return the searches that the settings of a run come from.

    Where a trial had these settings, whatever its seed and its time, these are all searches for the
    variant on this treebank, since the later ones go on from what the earlier ones have shown.

    Args:
        folder: of the runs of its treebank, where those of searches are too.
        recipe: its resolved settings.

    Raises:
        CheckpointError: the document of a search cannot be read.
    """

    def comparable(settings: Mapping[str, Any]) -> dict[str, Any]:
        found = resolved_settings(settings).items()
        return {key: value for key, value in found if key != MINUTES and value is not None}

    own, names = comparable(recipe), ("treebank", "variant", "size", "kind")
    found = []
    for place in sorted(folder.glob(f"{PREFIX}*")):
        document = read_search(place)
        if document and all(document.base.get(name) == recipe.get(name) for name in names):
            tried = (n for n, one in sorted(document.recipes.items()) if comparable(one) == own)
            found.append(document.search.model_copy(update={"found": next(tried, None)}))
    return found if any(search.found is not None for search in found) else []
