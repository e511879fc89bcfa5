"""Sentences out of files and pipes of any size, and where each of them stands.

A pipe has lines, some of them empty, and expects line ``k`` of the output to answer line ``k`` of
the input. Words are separated by ASCII white space only: a no-break space is part of a word.
Nothing is read further than the next sentences are needed. A row of CoNLL-U, a tree or a word that
a full stop sticks to can be parsed as words too, so a warning says what the text looks like.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import BinaryIO, Literal, NamedTuple

from spmrl_bench.errors import ReadError, TreeError
from spmrl_bench.parsing.given_trees import Spelling, TreeReader, read_trees
from spmrl_bench.parsing.json_lines import given_of, parse_lines
from spmrl_bench.readers.conll import UNSPECIFIED, ConlluSentence, TagColumn, read_conllu_stream
from spmrl_bench.readers.text import fields, stream_lines
from spmrl_bench.trees.given import Given

#: What an input holds.
Form = Literal["tokens", "brackets", "conllu", "json"]
_EXPECTED = {
    "tokens": "one sentence per line",
    "brackets": "bracketed trees",
    "conllu": "sentences in CoNLL-U",
    "json": "lines as '--output json' writes them",
}

#: Sentences of a text that are looked at, from the beginning.
LOOKED_AT = 100
_ROW = re.compile(r"[1-9][0-9]*(-[0-9]+|\.[0-9]+)?")
_CELLS = 8  # CoNLL has 8 columns at least
_SHARE = 0.8  # of lines that are rows or trees
_STUCK = re.compile(r"\w[.!?]+")


class InputSentence(NamedTuple):
    """A sentence as it was given."""

    words: Sequence[str]
    tags: Sequence[str] | None  # None where the input has no tags
    place: str  # file and line, or file and number of the sentence
    source: ConlluSentence | None = None  # whose lines are written again
    spelt: Spelling | None = None  # how it stands in a bracketed file
    given: Given | None = None  # what its parse is to hold


def check_readable(names: Iterable[str]) -> None:
    """Raise a ReadError if a file is absent, a folder, or not to be read by this user; named pipes
    are left untouched."""
    for name in names:
        try:
            if name != "-" and not Path(name).is_fifo():
                open(name, "rb").close()
        except IsADirectoryError:
            problem = "is a folder; expected a file of sentences, or '--to' for a folder of them"
            raise ReadError(problem, path=name) from None
        except OSError as error:
            raise ReadError(f"cannot be read: {error.strerror}", path=name) from None


def read_input(
    names: Sequence[str],
    form: Form,
    standard_input: BinaryIO,
    tag_column: TagColumn = "xpos",
    transforms: Sequence[str] | None = None,
) -> Iterator[InputSentence]:
    """Yield the sentences of several files, one after the other, as :func:`sentences_of`; raise a
    ReadError if all are empty. ``-`` stands for standard input, and so do no names at all."""
    empty = True
    shown = ["<standard input>" if name == "-" else name for name in names or ("-",)]
    for name, place in zip(names or ("-",), shown, strict=True):
        with nullcontext(standard_input) if name == "-" else open(name, "rb") as stream:
            for sentence in sentences_of(stream, place, form, tag_column, transforms):
                empty = False
                yield sentence
    if empty:
        others = f" (and {len(shown) - 1} more)" if len(shown) > 1 else ""
        raise ReadError(f"empty{others}; expected {_EXPECTED[form]}", path=shown[0])


def sentences_of(
    stream: BinaryIO,
    name: str,
    form: Form,
    tag_column: TagColumn = "xpos",
    transforms: Sequence[str] | None = None,
) -> Iterator[InputSentence]:
    """Yield the sentences of a stream.

    Of ``tokens`` each line is one, and an empty line one without words; of ``brackets`` and
    ``conllu`` words and tags are taken. A sentence with ``_`` alone in the column has no tags. Of
    ``json`` words are taken, and what the parse is to hold.
    ``transforms`` are those of :class:`~spmrl_bench.parsing.given_trees.TreeReader`. Raise a
    ReadError if the stream cannot be read, is not UTF-8, or holds a malformed sentence; those
    before it have been yielded.
    """
    if form == "tokens":
        for number, text in stream_lines(stream, name):
            yield InputSentence(fields(text), None, f"{name}:{number}")
    elif form == "brackets":
        reader = TreeReader(transforms)
        for number, tree in enumerate(read_trees(stream, name), start=1):
            words, tags, spelt = reader.read(tree)
            yield InputSentence(words, tags, f"{name}: sentence {number}", spelt=spelt)
    elif form == "json":
        for number, line in parse_lines(stream, name):
            try:
                given = given_of(line)
            except TreeError as error:
                raise ReadError(f"given: {error}", path=name, line=number) from None
            yield InputSentence(line["words"], None, f"{name}:{number}", given=given)
    else:
        for found in read_conllu_stream(stream, path=name):
            tags = found.column(tag_column)
            known = tags if any(tag != UNSPECIFIED for tag in tags) else None
            place = f"{name}:{found.line}: sentence {found.name}"
            yield InputSentence(found.column("form"), known, place, found)


def watched(
    sentences: Iterable[InputSentence], warn: Callable[[str], None]
) -> Iterator[InputSentence]:
    """Yield the same sentences, and tell ``warn`` what is wrong with their text, if anything, after
    :data:`LOOKED_AT` sentences with words or the last."""
    rest, first = iter(sentences), list[Sequence[str]]()
    for sentence in rest:
        yield sentence
        if sentence.words:
            first.append(sentence.words)
        if len(first) == LOOKED_AT:
            break
    if problem := text_problem(first):
        warn(problem)
    yield from rest


def text_problem(sentences: Sequence[Sequence[str]]) -> str:
    """Return what is wrong with sentences that were read as words; empty if nothing seems to be."""
    if not sentences:
        return ""
    rows = [words for words in sentences if not words[0].startswith("#")]
    cells = sum(len(words) >= _CELLS and bool(_ROW.fullmatch(words[0])) for words in rows)
    if rows and cells >= _SHARE * len(rows):
        return "the input looks like CoNLL-U, but its lines are parsed as words: --input conllu"
    trees = sum(words[0].startswith("(") and words[-1].endswith("))") for words in sentences)
    if trees >= _SHARE * len(sentences):
        return "the input looks like trees, but its brackets are parsed as words: --input brackets"
    stuck = [words[-1] for words in sentences if _STUCK.search(words[-1][-4:])]
    if len(stuck) > len(sentences) / 2:
        return (
            f"most sentences end in a word such as '{stuck[0][-40:]}': the parser was trained on "
            "words and punctuation apart, with a space between them"
        )
    return ""
