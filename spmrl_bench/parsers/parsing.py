"""From a stream of sentences to a stream of parses, a window at a time.

Sentences of a window are parsed together, in batches of like lengths; the parses come out in the
order of the sentences. What parses a window, one parser or several, is the caller's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from spmrl_bench.errors import SentenceTooLongError, TokensError, TreeError
from spmrl_bench.parsers.lengths import beginning
from spmrl_bench.parsers.streams import WINDOW_SENTENCES, weight, windows
from spmrl_bench.trees.dependencies import DependencyTree
from spmrl_bench.trees.parse import Parse
from spmrl_bench.trees.tree import NO_TAG, Tree

#: Tags of the sentences of a window, if there are any.
Tags = Sequence[Sequence[str]] | None


class Found(NamedTuple):
    """What a parser found of one sentence; None for a layer that it does not give."""

    constituents: list[tuple[int, int, str]] | None = None
    """``(start, end, label)`` in pre-order."""
    heads: Sequence[int] | None = None
    """The head of each word, from 1; 0 for the root."""
    relations: Sequence[str] | None = None
    """The relation of each word to its head."""
    tags: list[str] | None = None
    """Tags that the parser predicts; None if it does not."""

    def parse(self, words: Sequence[str], given: Sequence[str] | None) -> Parse:
        """The parse of a sentence with the given tags, or else the predicted ones."""
        tags = given or self.tags or [NO_TAG] * len(words)
        constituents = self.constituents
        if self.heads is None or self.relations is None:
            return Parse.of(Tree.build(words, tags, constituents or []))
        tree = None if constituents is None else Tree.build(words, tags, constituents)
        return Parse.of(tree, DependencyTree.build(words, tags, self.heads, self.relations))


def parse_stream(
    sentences: Iterable[Sequence[str]],
    tags: Iterable[Sequence[str]] | None,
    parse_window: Callable[[Sequence[Sequence[str]], Tags], Iterable[Found]],
    length_problem: Callable[[Sequence[str]], str],
) -> Iterator[Parse]:
    """Parses of tokenised sentences, lazily and in input order.

    Args:
        sentences: words of each sentence; one without words gives a tree without words.
        tags: tags of each sentence, to be read by who parses and carried into the parses;
            without them the predicted ones, or :data:`NO_TAG`.
        parse_window: finds the annotation of each sentence of a window.
        length_problem: what is wrong with the length of a sentence, empty if nothing.

    Raises:
        SentenceTooLongError: a sentence is too long; the parses of all before it have been given.
        TokensError: a sentence, or a row of tags, is a text, whose letters would be the words.
        TreeError: ``tags`` ends before ``sentences``, or a row does not fit its words.
    """
    given = _given(sentences, tags, length_problem)
    for window in windows(given, lambda pair: weight(pair[0]), WINDOW_SENTENCES):
        rows = [row for _, row in window if row is not None]
        parsed = parse_window([words for words, _ in window], rows or None)
        for (words, row), found in zip(window, parsed, strict=True):
            yield found.parse(words, row)


def _check_list(row: object, what: str, number: int) -> None:
    if isinstance(row, (str, bytes)):
        raise TokensError(
            f"sentence {number}: expected a list of {what}, such as ['Der', 'Hund'], found the "
            f"text {row[:40]!r}: parse([words, ...]) takes sentences, and text.split() makes one "
            "of words with spaces between them"
        )


def _given(
    sentences: Iterable[Sequence[str]],
    tags: Iterable[Sequence[str]] | None,
    length_problem: Callable[[Sequence[str]], str],
) -> Iterator[tuple[Sequence[str], Sequence[str] | None]]:
    """Each sentence with its tags, None without any; raises as :func:`parse_stream`."""
    rows = None if tags is None else iter(tags)
    for number, words in enumerate(sentences, start=1):
        _check_list(words, "words", number)
        if problem := length_problem(words):
            raise SentenceTooLongError(f"sentence {number}: {problem}")
        if rows is None:
            yield words, None
            continue
        row = next(rows, None)
        _check_list(row, "tags", number)
        if row is None:
            raise TreeError(
                "there are fewer rows of tags than sentences; the first without tags begins: "
                f"{beginning(words)}"
            )
        if len(row) != len(words):
            raise TreeError(f"{len(words)} words but {len(row)} tags: {beginning(words)}")
        yield words, row
