r"""Sentences out of files and pipes of any size, and where each of them stands.

A pipe has lines, some of them empty, and expects line ``k`` of the output to answer line ``k`` of
the input. Words are separated by ASCII white space only: a no-break space is part of a word.
Nothing is read further than the next sentences are needed. A row of CoNLL-U, a tree or a word that
a full stop sticks to can be parsed as words too, so a warning says what the text looks like.

Who parses a file of trees anew compares the two files, line by line and word by word. So a word
comes out as it went in, with whatever escapes its file has (``\/``, ``-LRB-``, ``[``), while the
parser reads the word that they stand for; and where every line closes the brackets that it opens,
a line without a tree is a sentence without words, as it is to the scorer. The transforms of the
treebank that the parser was trained on take away what it has never seen, such as traces.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from itertools import repeat
from pathlib import Path
from typing import Any, BinaryIO, Literal, NamedTuple

from spmrl_bench.errors import ReadError, TreeError
from spmrl_bench.parsing.json_lines import given_of, parse_lines
from spmrl_bench.readers.brackets import one_tree_per_line, read_bracket_stream, read_brackets
from spmrl_bench.readers.conll import UNSPECIFIED, ConlluSentence, TagColumn, read_conllu_stream
from spmrl_bench.readers.formats import guess_format
from spmrl_bench.readers.text import fields, stream_lines
from spmrl_bench.trees.escapes import escapes_named
from spmrl_bench.trees.given import Given
from spmrl_bench.trees.transforms import ROOTS, strip_features, transform_named
from spmrl_bench.trees.tree import Tree

#: What is done where nobody knows what a parser was trained on: traces are words nowhere.
USUAL = ("drop-traces",)

#: Bytes at the beginning of a stream that show its layout.
BLOCK = 1 << 20

_SHOWN = 1 << 16  # bytes that show the format
_COUNTED = ROOTS - {"TOP"}  # every parameter set leaves that one out
_BLANK = Tree.build([], [], [])
_DECODE = escapes_named("ptb").decode_word


def read_trees(stream: BinaryIO, path: str) -> Iterator[Tree]:
    """Yield the trees of a UTF-8 stream, their words as they stand there. What a stream has at
    first, a megabyte at most, shows its layout; as soon as a line leaves a bracket open, blank
    lines mean nothing. A stream of blank lines has no trees. Raise a ReadError as
    :func:`~spmrl_bench.readers.brackets.read_bracket_stream`."""
    try:  # a pipe has no more than was written so far
        begin = getattr(stream, "read1", stream.read)(BLOCK)
    except OSError as error:
        raise ReadError(f"cannot be read on: {error.strerror}", path=path) from None
    found = guess_format(begin[:_SHOWN].decode(errors="replace"))
    if found is not None and found.name != "brackets":
        raise ReadError(
            f"looks like {found.name} ({found.title}), whose brackets hold more than words; "
            "expected plain brackets. 'treebanks add' makes a treebank of such files, 'systems "
            "task' writes the words of a treebank's split",
            path=path,
        )
    rest: Any = _Rejoined(io.BytesIO(begin), stream)
    line = sentence = 1
    blank = 0  # lines at the beginning, which count as soon as there is a tree
    whole = begin.rpartition(b"\n")[0] or begin
    if one_tree_per_line(whole.decode(errors="replace")):
        lines = stream_lines(rest, path)
        for line, text in lines:
            if not text.strip("() \t\r\n\v\f"):
                if sentence == 1:
                    blank += 1
                else:
                    sentence += 1
                    yield _BLANK
                continue
            if not one_tree_per_line(text):
                if text.endswith("\r"):  # so do all lines, which have been taken from the stream
                    text += "".join(more for _, more in lines)
                rest = _Rejoined(io.BytesIO(text.encode()), rest)
                break
            yield from repeat(_BLANK, blank)
            sentence, blank = sentence + blank, 0
            for tree in read_brackets(
                text, path=path, escapes="none", line=line, sentence=sentence
            ):
                sentence += 1
                yield tree
        else:
            return
    yield from read_bracket_stream(rest, path=path, escapes="none", line=line, sentence=sentence)


class _Rejoined(NamedTuple):
    """The lines of bytes that were taken from a stream, and of what is left in it."""

    begin: io.BytesIO
    rest: Any

    def readline(self, most: int) -> bytes:
        line = self.begin.readline(most)
        return line if line.endswith(b"\n") else line + self.rest.readline(most - len(line))


class Spelling(NamedTuple):
    """How a tree was written in its file."""

    words: Sequence[str]
    root: str | None  # the label of a bracket around it that says nothing, but may be counted


class TreeReader:
    """Takes from trees what a parser reads of them, which was trained on a treebank with these
    transforms, or None if they are not known."""

    def __init__(self, transforms: Sequence[str] | None) -> None:
        found = [transform_named(name) for name in (USUAL if transforms is None else transforms)]
        of_trees = [each for each in found if each.stage == "tree"]
        self._steps = [each.apply for each in of_trees]
        self._structural = [each.apply for each in of_trees if not each.word]
        self._features = any(each.apply is strip_features for each in found)

    def read(self, tree: Tree) -> tuple[Sequence[str], Sequence[str], Spelling]:
        """Return words and tags of a tree as in its file, and how it was written there."""
        tags = tuple(map(strip_features, tree.tags)) if self._features else tree.tags
        # The places of the words instead of the words themselves say which are left.
        numbers = tuple(map(str, range(len(tree))))
        places = _through(self._structural, replace(tree, words=numbers, tags=tags))
        words = tuple(map(_DECODE, tree.words))
        left = _through(self._steps, replace(tree, words=words, tags=tags))
        if left is None or places is None:
            return (), (), Spelling((), None)
        root = tree.labels[0] if tree.labels and tree.labels[0] in _COUNTED else None
        return left.words, left.tags, Spelling([tree.words[int(k)] for k in places.words], root)


def _through(steps: Sequence[object], tree: Tree | None) -> Tree | None:
    """The tree after all transforms; None if no word is left."""
    for step in steps:
        tree = step(tree) if tree else None  # type: ignore[operator]
    return tree or None


# Sentences of any input -----------------------------------------------------------------------

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
    ``transforms`` are those of :class:`~spmrl_bench.parsing.streams.TreeReader`. Raise a
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
