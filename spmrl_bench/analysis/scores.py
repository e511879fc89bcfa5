"""The dev scores of a study, kept so that nothing is parsed twice.

A score follows from the weights, the trees, the parameters of the scorer and the limits of the
attention. Together they are its key, so that scores of several budgets, seeds and versions of a
study can lie in one file and none is taken for another.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from spmrl_bench.errors import RecordError
from spmrl_bench.files import write_text
from spmrl_bench.nn.limits import Limit

VERSION = 1

Percent = Annotated[float, Field(ge=0, le=100)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class LayerLimit(_Part):
    """The limits of one layer's attention."""

    layer: Annotated[int, Field(ge=0)]
    content: bool
    position: bool
    window: int | None
    relaxed: bool


class ScoreKey(_Part):
    """What a score follows from."""

    weights: str
    """SHA-256 of the parser's weights."""
    fingerprint: str
    """Of the treebank."""
    split: str
    prm: str
    """Parameter set of the scorer, with a digest of its content."""
    limits: tuple[LayerLimit, ...]
    """In the order of the layers; layers without any are left out."""


class Score(_Part):
    """Bracket scores of a parser whose attention is limited; None for nothing of nothing."""

    key: ScoreKey
    recall: Percent | None
    precision: Percent | None
    f1: Percent | None
    complete_match: Percent | None
    sentences: int
    skipped: int
    tokens_per_second: float
    signature: str
    """Of the score of the parser; the limits are in the key."""


class _File(_Part):
    version: int
    scores: tuple[Score, ...]


def limits_key(limits: Mapping[int, Limit]) -> tuple[LayerLimit, ...]:
    """Limits by layer as part of a key."""
    return tuple(
        LayerLimit(
            layer=layer,
            content=limit.content,
            position=limit.position,
            window=limit.window,
            relaxed=limit.relaxed,
        )
        for layer, limit in sorted(limits.items())
    )


class ScoreFile:
    """The scores in one JSON file; each is written as soon as it is added."""

    def __init__(self, path: Path) -> None:
        """Read the file, where there is one.

        Raises:
            RecordError: it cannot be read, or is not such a file.
        """
        self.path = path
        self._scores: dict[ScoreKey, Score] = {}
        try:
            text = path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return
        except (OSError, UnicodeDecodeError) as error:
            raise RecordError(f"{path}: cannot be read: {error}") from None
        try:
            content = _File.model_validate_json(text)
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(map(str, first["loc"])) or "the file"
            raise RecordError(
                f"{path}: not the scores of a study: {place}: {first['msg']}. Delete the file to "
                "parse anew"
            ) from None
        if content.version != VERSION:
            raise RecordError(
                f"{path}: version {content.version}; this program reads version {VERSION}. "
                "Delete the file to parse anew"
            )
        self._scores = {score.key: score for score in content.scores}

    def find(self, key: ScoreKey) -> Score | None:
        """The score of a key, if it is known."""
        return self._scores.get(key)

    def add(self, score: Score) -> None:
        """Keep a score, in the file too.

        Raises:
            RecordError: the file cannot be written.
        """
        self._scores[score.key] = score
        content = _File(version=VERSION, scores=tuple(self._scores.values()))
        try:
            write_text(self.path, content.model_dump_json(indent=1) + "\n")
        except OSError as error:
            raise RecordError(f"{self.path}: cannot be written: {error.strerror}") from None
