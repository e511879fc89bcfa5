"""From a stream of sentences to a stream of trees, a window at a time.

Sentences of a window are parsed together, in batches of like lengths; the trees come out in the
order of the sentences. What parses a window, one parser or several, is the caller's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from spmrl_bench.errors import SentenceTooLongError, TreeError
from spmrl_bench.parsers.streams import windows
from spmrl_bench.trees import Tree

# Tag given to words in a parse of bare tokens; the Penn Treebank's "unknown" tag.
NO_TAG = "XX"
# Sentences looked at together when parsing a stream, so that batches are of like length.
WINDOW = 1000

#: Tags of the sentences of a window, if there are any.
Tags = Sequence[Sequence[str]] | None


class Parsed(NamedTuple):
    """What was found for one sentence."""

    constituents: list[tuple[int, int, str]]
    """``(start, end, label)`` in pre-order."""
    tags: list[str] | None
    """Tags that the parser predicts; None if it does not."""


class Scored(NamedTuple):
    """Label scores of some sentences of a window."""

    places: list[int]
    """Which sentences of the window these are."""
    lengths: NDArray[np.int32]
    """Words of each."""
    blocks: Iterator[Tensor]
    """Label scores ``[some cells, labels - 1]`` in the packed order of cells."""
    tags: list[list[str] | None]
    """Tags that the parser predicts for each; None if it does not."""


def parse_stream(
    sentences: Iterable[Sequence[str]],
    tags: Iterable[Sequence[str]] | None,
    parse_window: Callable[[Sequence[Sequence[str]], Tags], Iterable[Parsed]],
    length_problem: Callable[[Sequence[str]], str],
) -> Iterator[Tree]:
    """Trees of tokenised sentences, lazily and in input order.

    Args:
        sentences: words of each sentence; one without words gives a tree without words.
        tags: tags of each sentence, to be read by who parses and carried into the trees;
            without them the predicted ones, or :data:`NO_TAG`.
        parse_window: finds the constituents of each sentence of a window.
        length_problem: what is wrong with the length of a sentence, empty if nothing.

    Raises:
        SentenceTooLongError: a sentence is too long; the trees of all before it have been given.
        TreeError: ``tags`` ends before ``sentences``, or a row does not fit its words.
    """
    tag_stream = iter(tags) if tags is not None else None
    done = 0
    for window in windows(sentences, len, WINDOW):
        # What comes before a sentence that is too long, or lacks tags, is answered before the
        # error.
        problems = (length_problem(words) for words in window)
        limit, problem = next(((k, text) for k, text in enumerate(problems) if text), (None, ""))
        ready = window[:limit]
        given, lacking = _tags_of(ready, tag_stream)
        ready = ready[: len(given)]
        parsed = parse_window(ready, given if tag_stream is not None else None)
        for words, row, (constituents, predicted) in zip(ready, given, parsed, strict=True):
            yield Tree.build(words, row or predicted or [NO_TAG] * len(words), constituents)
        if lacking:
            raise TreeError(lacking)
        done += len(ready)
        if problem:
            raise SentenceTooLongError(f"sentence {done + 1}: {problem}")


def _tags_of(
    window: Sequence[Sequence[str]], tags: Iterator[Sequence[str]] | None
) -> tuple[list[Sequence[str]], str]:
    """Tags of the sentences as far as there are any, and what is wrong; none without tags."""
    found: list[Sequence[str]] = []
    for words in window:
        row = next(tags, None) if tags is not None else []
        if row is None:
            return found, (
                "there are fewer rows of tags than sentences; the first without tags begins: "
                f"{' '.join(words[:8])}"
            )
        if tags is not None and len(row) != len(words):
            return found, f"{len(words)} words but {len(row)} tags: {' '.join(words[:8])}"
        found.append(row)
    return found, ""
