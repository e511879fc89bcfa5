"""Sentences out of files and pipes of any size, and where each of them stands.

A pipe has lines, some of them empty, and expects line ``k`` of the output to answer line
``k`` of the input. Words are separated by ASCII white space only: a no-break space is part
of a word. Nothing is read further than the next sentences are needed.
"""

from __future__ import annotations

import codecs
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from typing import BinaryIO, Literal, NamedTuple

from spmrl_bench.errors import ReadError

Form = Literal["tokens", "brackets"]

#: Stands for standard input among the names of files.
STANDARD_INPUT = "-"
_SHOWN = "<standard input>"
#: Bounds of a window: sentences, and words of all of them. Batches of like lengths are made
#: within a window, and about two windows for each process are in memory.
WINDOW_SENTENCES = 1000
WINDOW_WORDS = 40_000
#: Sentences of a window of which one of several processes gets one at a time: 3 % more work in
#: batches that are less alike, but the processes come to their ends together.
SHARED_WINDOW_SENTENCES = 250


class Given(NamedTuple):
    """A sentence as it was given."""

    words: Sequence[str]
    tags: Sequence[str] | None
    """One for each word; None where the input has no tags."""
    place: str
    """File and line, or file and number of the sentence."""


def check_readable(names: Iterable[str]) -> None:
    """Find what is missing before anything is loaded; named pipes are left untouched.

    Raises:
        ReadError: a file is absent, a folder, or not to be read by this user.
    """
    for name in names:
        if name == STANDARD_INPUT:
            continue
        try:
            folder = stat.S_ISDIR(os.stat(name).st_mode)
        except OSError as error:
            raise ReadError(f"cannot be read: {error.strerror}", path=name) from None
        if folder:
            raise ReadError("is a folder; expected a file of sentences", path=name)
        if not os.access(name, os.R_OK):
            raise ReadError("cannot be read: Permission denied", path=name)


def read_given(names: Sequence[str], form: Form, standard_input: BinaryIO) -> Iterator[Given]:
    """The sentences of several files, one after the other, lazily.

    Args:
        names: paths, or ``-`` for standard input; none at all means standard input too.
        form: ``tokens``, a sentence on each line and an empty line for one without words, or
            ``brackets``, trees of which words and tags are taken.
        standard_input: what ``-`` stands for.

    Raises:
        ReadError: all files are empty; one cannot be read, is not UTF-8, or holds a malformed
            tree. The sentences before the place have been yielded.
    """
    empty = True
    names = names or (STANDARD_INPUT,)
    for name in names:
        with ExitStack() as opened:
            if name == STANDARD_INPUT:
                stream, shown = standard_input, _SHOWN
            else:
                try:
                    stream, shown = opened.enter_context(open(name, "rb")), name
                except OSError as error:
                    raise ReadError(f"cannot be read: {error.strerror}", path=name) from None
            for given in (_lines if form == "tokens" else _trees)(stream, shown):
                empty = False
                yield given
    if empty:
        name = _SHOWN if names[0] == STANDARD_INPUT else names[0]
        others = f" (and {len(names) - 1} more)" if len(names) > 1 else ""
        what = "one sentence per line" if form == "tokens" else "bracketed trees"
        raise ReadError(f"empty{others}; expected {what}", path=name)


def windows(
    sentences: Iterable[Given],
    most: int = WINDOW_SENTENCES,
    most_words: int = WINDOW_WORDS,
) -> Iterator[list[Given]]:
    """Consecutive lists of sentences, each within the bounds or of one sentence.

    Whatever goes wrong with the next sentence, those before it have been yielded.
    """
    window: list[Given] = []
    words = 0
    try:
        for given in sentences:
            window.append(given)
            words += len(given.words)
            if len(window) >= most or words >= most_words:
                yield window
                window, words = [], 0
    except ReadError:
        if window:
            yield window
        raise
    if window:
        yield window


def _lines(stream: BinaryIO, name: str) -> Iterator[Given]:
    number = 0
    try:
        for number, line in enumerate(stream, start=1):
            if number == 1:
                line = line.removeprefix(codecs.BOM_UTF8)
            try:
                words = [word.decode() for word in line.split()]
            except UnicodeDecodeError as error:
                problem = f"not UTF-8 text: {error.reason}"
                raise ReadError(problem, path=name, line=number) from None
            yield Given(words, None, f"{name}:{number}")
    except OSError as error:
        problem = f"cannot be read on: {error.strerror}"
        raise ReadError(problem, path=name, line=number + 1) from None


def _trees(stream: BinaryIO, name: str) -> Iterator[Given]:
    from spmrl_bench.readers.bracket_stream import read_bracket_stream

    for number, tree in enumerate(read_bracket_stream(stream, path=name), start=1):
        yield Given(tree.words, tree.tags, f"{name}: sentence {number}")
