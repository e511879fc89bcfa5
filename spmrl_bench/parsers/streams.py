"""Sentences out of files and pipes of any size, and where each of them stands.

A pipe has lines, some of them empty, and expects line ``k`` of the output to answer line
``k`` of the input. Words are separated by ASCII white space only: a no-break space is part
of a word. Nothing is read further than the next sentences are needed.

Sentences are worked on in windows, within which batches of like lengths are made.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, BinaryIO, Literal, NamedTuple, TypeVar, get_args

from spmrl_bench.errors import ReadError, SpmrlError
from spmrl_bench.readers.conll import UNSPECIFIED, TagColumn
from spmrl_bench.readers.text import stream_lines

if TYPE_CHECKING:
    from spmrl_bench.parsers.given_trees import Layout
    from spmrl_bench.readers.conll import ConlluSentence

T = TypeVar("T")

#: What an input holds, and how an error says it.
Form = Literal["tokens", "brackets", "conllu"]
FORMS: tuple[Form, ...] = get_args(Form)
_EXPECTED = {
    "tokens": "one sentence per line",
    "brackets": "bracketed trees",
    "conllu": "sentences in CoNLL-U",
}

#: Stands for standard input among the names of files.
STANDARD_INPUT = "-"
_SHOWN = "<standard input>"
#: Bounds of a window: sentences, and words of all of them. About two windows for each process are
#: in memory.
WINDOW_SENTENCES = 1000
WINDOW_WORDS = 40_000
#: Characters of a sentence that count as a word, where it has longer words than text has.
_PER_WORD = 64
#: Sentences of a window of which one of several processes gets one at a time: 3 % more work in
#: batches that are less alike, but the processes come to their ends together.
SHARED_WINDOW_SENTENCES = 250

_WORD = re.compile(r"[^ \t\n\r\v\f]+")


class Given(NamedTuple):
    """A sentence as it was given."""

    words: Sequence[str]
    tags: Sequence[str] | None
    """One for each word; None where the input has no tags."""
    place: str
    """File and line, or file and number of the sentence."""
    source: ConlluSentence | None = None
    """What stands in the file, if its lines are to be written again."""
    spelt: Sequence[str] | None = None
    """How the words stand in a bracketed file."""


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
            problem = "is a folder; expected a file of sentences, or '--to' for a folder of them"
            raise ReadError(problem, path=name)
        if not os.access(name, os.R_OK):
            raise ReadError("cannot be read: Permission denied", path=name)


def read_given(
    names: Sequence[str],
    form: Form,
    standard_input: BinaryIO,
    tag_column: TagColumn = "xpos",
    transforms: Sequence[str] | None = None,
) -> Iterator[Given]:
    """The sentences of several files, one after the other, lazily.

    Args:
        names: paths, or ``-`` for standard input; none at all means standard input too.
        form: ``tokens``, a sentence on each line and an empty line for one without words;
            ``brackets``, trees of which words and tags are taken; or ``conllu``, likewise.
        standard_input: what ``-`` stands for.
        tag_column: where CoNLL-U has the tags; a sentence with ``_`` alone there has none.
        transforms: of trees, see :class:`spmrl_bench.parsers.given_trees.TreeReader`.

    Raises:
        ReadError: all files are empty; one cannot be read, is not UTF-8, or holds a malformed
            sentence. The sentences before the place have been yielded.
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
            for given in sentences_of(stream, shown, form, tag_column, transforms):
                empty = False
                yield given
    if empty:
        name = _SHOWN if names[0] == STANDARD_INPUT else names[0]
        others = f" (and {len(names) - 1} more)" if len(names) > 1 else ""
        raise ReadError(f"empty{others}; expected {_EXPECTED[form]}", path=name)


def weight(words: Sequence[str]) -> int:
    """How much of a window a sentence takes, in words of usual lengths."""
    return max(len(words), sum(map(len, words)) // _PER_WORD)


def windows(
    sentences: Iterable[T],
    words_of: Callable[[T], int],
    most: int = WINDOW_SENTENCES,
    most_words: int = WINDOW_WORDS,
) -> Iterator[list[T]]:
    """Consecutive lists of sentences, each within the bounds or of one sentence.

    Whatever goes wrong with the next sentence, those before it have been yielded.
    """
    window: list[T] = []
    words = 0
    try:
        for sentence in sentences:
            window.append(sentence)
            words += words_of(sentence)
            if len(window) >= most or words >= most_words:
                yield window
                window, words = [], 0
    except SpmrlError:
        if window:
            yield window
        raise
    if window:
        yield window


def sentences_of(
    stream: BinaryIO,
    name: str,
    form: Form,
    tag_column: TagColumn = "xpos",
    transforms: Sequence[str] | None = None,
    *,
    layout: Layout | None = None,
    line: int = 1,
    sentence: int = 1,
) -> Iterator[Given]:
    """The sentences of a stream, lazily.

    Args:
        stream: of a file, or of its rest from the beginning of a sentence.
        name: of the file, for places.
        form, tag_column, transforms: as for :func:`read_given`.
        layout: of trees, see :func:`spmrl_bench.parsers.given_trees.read_trees`.
        line, sentence: numbers of what the stream begins with.

    Raises:
        ReadError: as :func:`read_given`.
    """
    if form == "tokens":
        for number, text in stream_lines(stream, name, line):
            yield Given(_WORD.findall(text), None, f"{name}:{number}")
    elif form == "brackets":
        from spmrl_bench.parsers.given_trees import TreeReader, read_trees

        reader = TreeReader(transforms)
        trees = read_trees(stream, name, layout, line, sentence)
        for number, tree in enumerate(trees, start=sentence):
            words, tags, spelt = reader.read(tree)
            yield Given(words, tags, f"{name}: sentence {number}", spelt=spelt)
    else:
        from spmrl_bench.readers.conll import read_conllu_stream

        for found in read_conllu_stream(stream, path=name, line=line, sentence=sentence):
            tags = found.column(tag_column)
            given = tags if any(tag != UNSPECIFIED for tag in tags) else None
            place = f"{name}:{found.line}: sentence {found.name}"
            yield Given(found.column("form"), given, place, found)
