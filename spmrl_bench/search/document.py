"""A search as one file, ``search.json`` in its folder: what is searched and all trials so far.

It is written anew whenever a trial begins or ends. What resumes a search looks here whether it is
the same one, and scoring a run looks here whether its settings were among those that were tried.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Self

from pydantic import Field, ValidationError, field_validator

from spmrl_bench.errors import CheckpointError, remedy
from spmrl_bench.experiments.run_folder import MINUTES, OtherSettingsError, differences
from spmrl_bench.leaderboard.identity import resolved_settings
from spmrl_bench.leaderboard.record import Search
from spmrl_bench.leaderboard.store import Part, problems
from spmrl_bench.parsers.legacy import leaves, nested
from spmrl_bench.storage.bounded_files import read_regular
from spmrl_bench.storage.files import write_text
from spmrl_bench.storage.json_files import parsed_json

NAME = "search.json"
#: How the names of folders of searches begin, beside those of the runs of a treebank.
PREFIX = "search-"

_VERSION = 1


class SearchDocument(Part):
    """All that is known of a search."""

    schema_version: int = Field(default=_VERSION, ge=_VERSION, le=_VERSION)
    search: Search
    base: dict[str, Any]
    """The resolved settings that all trials have in common."""
    recipes: dict[int, dict[str, Any]]
    """By number of a trial: its resolved settings, but of trials that the recipe refused."""
    versions: dict[str, str]
    """Of Python, this program and the libraries, when the file was written."""

    @field_validator("base")
    @classmethod
    def _with_leaves(cls, base: dict[str, Any]) -> dict[str, Any]:
        """Settings of a parser by dotted key, whenever the search was begun."""
        model = base.get("model")
        if not isinstance(model, dict) or "lexical" not in model:
            return base
        return {**base, "model": leaves(nested(model))}

    @property
    def definition(self) -> dict[str, Any]:
        """What makes it this search and no other."""
        names = ("space", "sampler", "pruner", "seed")
        return {**{name: getattr(self.search, name) for name in names}, "base": self.base}

    def check_same(self, other: Self, folder: Path) -> None:
        """Check that a search that is to go on in a folder is the one that was begun there.

        Raises:
            OtherSettingsError: it is not.
        """
        if self.definition != other.definition:
            differing = differences(self.definition, other.definition)
            raise OtherSettingsError(
                f"{folder}: holds another search: {'; '.join(differing)}. Choose another --runs "
                "folder, move that one away, or give the earlier settings"
            )


def write_search(folder: Path, document: SearchDocument) -> None:
    """Replace the document of a search.

    Raises:
        CheckpointError: it cannot be written.
    """
    try:
        write_text(folder / NAME, document.model_dump_json(indent=1) + "\n")
    except OSError as error:
        raise CheckpointError(
            f"{folder / NAME}: cannot be written: {error.strerror}. {remedy(error)}, then give the "
            "same command again to continue"
        ) from None


def read_search(folder: Path) -> SearchDocument | None:
    """The document of a search; None where none was begun.

    Raises:
        CheckpointError: it cannot be read.
    """
    path = folder / NAME
    try:
        return SearchDocument.model_validate(parsed_json(read_regular(path)))
    except FileNotFoundError:
        return None
    except ValidationError as error:
        problem = problems(error)
    except (OSError, ValueError) as error:
        problem = str(error)
    raise CheckpointError(
        f"{path}: not the document of a search: {problem}. The same search command, given again, "
        "writes it anew from the journal beside it once this file is moved away"
    )


def searches_behind(folder: Path, recipe: Mapping[str, Any]) -> list[Search]:
    """The searches that the settings of a run come from.

    Args:
        folder: of the runs of its treebank, where those of searches are too.
        recipe: its resolved settings.

    Returns:
        Where a trial had these settings, whatever its seed and its time: all searches for the
        variant on this treebank, since the later ones go on from what the earlier ones have shown.

    Raises:
        CheckpointError: the document of a search cannot be read.
    """
    names = ("treebank", "variant", "size", "kind")
    listed = [
        document
        for document in _documents(folder)
        if all(document.base.get(name) == recipe.get(name) for name in names)
    ]
    own = _comparable(recipe)
    found = [
        document.search.model_copy(update={"found": _number(document, own)}) for document in listed
    ]
    return found if any(search.found is not None for search in found) else []


def _documents(folder: Path) -> Iterator[SearchDocument]:
    for place in sorted(folder.glob(f"{PREFIX}*")):
        if (document := read_search(place)) is not None:
            yield document


def _number(document: SearchDocument, own: Mapping[str, Any]) -> int | None:
    """The first trial that had some settings."""
    numbers = (n for n, recipe in sorted(document.recipes.items()) if _comparable(recipe) == own)
    return next(numbers, None)


def _comparable(recipe: Mapping[str, Any]) -> dict[str, Any]:
    """What a search chooses, which a longer or another training does not make another choice."""
    found = resolved_settings(recipe).items()
    return {key: value for key, value in found if key != MINUTES and value is not None}
