"""The dev scores of studies, kept so that nothing is parsed twice.

A score follows from the weights, the annotation, the rules of the scorer and the limits of the
attention. Together they are its key, so that scores of several studies, budgets and seeds can lie
in one folder and none is taken for another. Each is a document of a store of its own, to which
several studies may add at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from pydantic import ValidationError

from spmrl_bench.errors import RecordError
from spmrl_bench.leaderboard.record import (
    MetricResult,
    Part,
    SplitResult,
    StoredModel,
    file_bytes,
    files_of,
    load_documents,
    problems,
    signature_parts,
    write_document,
)
from spmrl_bench.nn.encoders.attention import AttentionMask
from spmrl_bench.scoring.signature import Signature
from spmrl_bench.storage.json import parse_json

SCHEMA_VERSION = 3  # as the version of records that first said of a split what is said here


class ScoreKey(Part):
    """What a score follows from."""

    weights: str
    """SHA-256 of the parser's weights."""
    fingerprint: str
    """Of the treebank."""
    split: str
    rules: str
    """How it was counted: that part of the signature."""
    limits: tuple[tuple[int, AttentionMask], ...]
    """In the order of the layers; layers without any are left out."""
    parsing: tuple[tuple[str, int | float], ...] = ()
    """Settings of the parser that are not those of its run, by name."""


class StudyScore(StoredModel):
    """The score of a parser whose attention is limited."""

    what: ClassVar[str] = "score of a study"
    version: ClassVar[int] = SCHEMA_VERSION

    schema_version: int = SCHEMA_VERSION
    key: ScoreKey
    result: SplitResult


def readable_scores(folder: Path) -> tuple[dict[ScoreKey, SplitResult], list[str]]:
    """The scores in the documents under ``scores`` and in the files of version 1 beside it.

    Version 1 had the bracket scores of one study on one treebank in one file, without counts.
    Those files are read as they are and not written any more.

    Returns:
        The scores, and a message for each file that holds none.

    Raises:
        RecordError: a folder cannot be read.
    """
    found: list[StudyScore] = []
    mistakes: list[str] = []
    for path in files_of(folder, ".json"):
        try:
            found += _version_1(path)
        except RecordError as error:
            mistakes.append(str(error))
    documents, wrong = load_documents(StudyScore, folder / "scores")
    scores = [*found, *documents.values()]
    return {score.key: score.result for score in scores}, mistakes + wrong


def write_score(key: ScoreKey, result: SplitResult, folder: Path) -> None:
    """Add a score to those of a folder; a RecordError where it cannot be written."""
    write_document(StudyScore(key=key, result=result), folder / "scores")


def _version_1(path: Path) -> list[StudyScore]:
    data = file_bytes(path, "the scores of a study")
    try:
        content = parse_json(data)
        if content["version"] != 1:
            raise ValueError(f"version {content['version']} is not one of such a file")
        return [_upgraded(score) for score in content["scores"]]
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
        found = problems(error) if isinstance(error, ValidationError) else repr(error)
        raise RecordError(
            f"{path}: not the scores of a study: {found}. Move it elsewhere to parse anew"
        ) from None


def _upgraded(old: Mapping[str, Any]) -> StudyScore:
    key, signature = old["key"], old["signature"]
    figures = ("sentences", "skipped", "recall", "precision", "f1", "complete_match")
    limits = tuple(
        (limit["layer"], AttentionMask(**{name: limit[name] for name in limit if name != "layer"}))
        for limit in key["limits"]
    )
    brackets = MetricResult(
        counts={},
        figures={name: old[name] for name in figures},
        signature=Signature(tuple(signature_parts(signature).items())).short(),
        signature_long=signature,
    )
    return StudyScore(
        key=ScoreKey(
            weights=key["weights"],
            fingerprint=key["fingerprint"],
            split=key["split"],
            rules=signature.partition("|treebank:")[0],
            limits=limits,
        ),
        result=SplitResult(
            sentences=old["sentences"],
            metrics={"brackets": brackets},
            tokens_per_second=old["tokens_per_second"],
        ),
    )
