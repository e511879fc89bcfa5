"""Numbers of sentences that a release has in place of those that its manifest declares.

A manifest declares how many sentences each split has, so that a wrong release or a half-copied
folder is noticed. Who knows that his release is another one accepts its numbers once
(``spmrl-bench validate NAME --accept-counts``): they are kept in the user's own folder and hold
from then on in place of the declared ones. Scores say so in their signatures.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, NonNegativeInt

from spmrl_bench.errors import TreebankError
from spmrl_bench.files import write_text
from spmrl_bench.json_files import read_json
from spmrl_bench.storage.paths import home
from spmrl_bench.storage.toml import validated
from spmrl_bench.treebanks.sources import SPLITS, Split


class AcceptedCounts(BaseModel):
    """What a split of a release has."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    sentences: NonNegativeInt
    tokens: NonNegativeInt
    skipped: NonNegativeInt
    dropped: NonNegativeInt


class _Accepted(BaseModel):
    """The file of a treebank."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    train: AcceptedCounts
    dev: AcceptedCounts
    test: AcceptedCounts


def accepted_counts(name: str) -> dict[str, AcceptedCounts]:
    """The numbers that were accepted for a treebank, by split; empty if none were.

    Raises:
        TreebankError: the file that has them is broken.
    """
    path = _path(name)
    if not path.exists():
        return {}
    found = validated(_Accepted, read_json(path, TreebankError), path, TreebankError)
    return {split: getattr(found, split) for split in SPLITS}


def accept_counts(name: str, counts: Mapping[str, AcceptedCounts]) -> Path:
    """Accept these numbers, of all three splits, from now on; returns the file that has them.

    Raises:
        TreebankError: it cannot be written.
    """
    path = _path(name)
    content: dict[str, Any] = {split: counts[split].model_dump() for split in SPLITS}
    try:
        write_text(path, json.dumps(content, indent=1) + "\n")
    except OSError as error:
        raise TreebankError(f"{path}: cannot write: {error.strerror or error}") from error
    return path


def expected(split: Split, accepted: AcceptedCounts | None) -> Split:
    """A split with the numbers that are expected of it."""
    if accepted is None:
        return split
    counts: dict[str, Any] = accepted.model_dump()
    return split.model_copy(update=counts | {"sentences": (accepted.sentences,)})


def _path(name: str) -> Path:
    return home() / "accepted" / f"{name}.json"
