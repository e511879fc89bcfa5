"""Files with one word per line and a blank line after each sentence, as dependency treebanks.

The formats of dependency treebanks differ in their columns and share all else: where a
sentence ends, which mistakes concern it alone, and what makes its heads a tree.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any

from spmrl_bench.errors import ReadError
from spmrl_bench.readers.text import OnError
from spmrl_bench.trees.dependencies import DependencyTree, Roots, head_fault
from spmrl_bench.trees.tree import readonly_int32

#: Number of a line, from 1, and its text without the line's end.
Line = tuple[int, str]

_FLAW = re.compile(r"(?:\A|\t)(?=[\t ]|\Z)| (?=\t|\Z)|\r")
_HEAD = re.compile(r"0|[1-9][0-9]{0,8}")  # nine digits: what heads in int32 can hold


@dataclass(frozen=True, slots=True, eq=False)
class DependencySentence:
    """A sentence and its place in the file.

    Attributes:
        tree: words, tags, heads and relations.
        name: its identifier in the file, or its number there, from 1.
        lines: the line of each word, from 1.
    """

    tree: DependencyTree
    name: str
    lines: tuple[int, ...]


def read_blocks(
    source: str, parse: Callable[[int, list[Line]], DependencySentence], on_error: OnError
) -> Iterator[DependencySentence]:
    """What ``parse`` makes of each run of lines that are not blank, and of its number from 1.

    The error of a run goes to ``on_error``, and reading goes on with the next.
    """
    for number, block in enumerate(blocks(source), start=1):
        try:
            sentence = parse(number, block)
        except ReadError as error:
            on_error(error)
        else:
            yield sentence


def blocks(source: str) -> Iterator[list[Line]]:
    """The runs of lines that are not blank."""
    block: list[Line] = []
    for number, line in enumerate(source.split("\n"), start=1):
        line = line.removesuffix("\r")
        if line:
            block.append((number, line))
        elif block:
            yield block
            block = []
    if block:
        yield block


def split_columns(text: str, count: int, **place: Any) -> list[str]:
    """The columns of a line; ``place`` is where it stands.

    Raises:
        ReadError: there are more or fewer, or one has spaces at its ends.
    """
    columns = text.split("\t")
    if len(columns) != count:
        found = f"{len(columns)} column{'s' if len(columns) > 1 else ''}"
        raise ReadError(f"found {found}, expected {count} separated by tabs", **place)
    if (flaw := _FLAW.search(text)) is not None:
        number = text.count("\t", 0, flaw.end())
        raise ReadError(
            f"column {number + 1} is {columns[number]!r}, expected '_' or a text without "
            "spaces at its ends and without carriage returns",
            **place,
        )
    return columns


def dependency_sentence(
    words: Sequence[str],
    tags: Sequence[str],
    heads: Sequence[str],
    relations: Sequence[str],
    *,
    lines: Sequence[int],
    roots: Roots,
    name: str,
    path: str | PathLike[str],
) -> DependencySentence:
    """The sentence of a file's columns, heads still being text.

    Raises:
        ReadError: a head is no number, or the heads form no tree.
    """
    numbers = []
    for head, line in zip(heads, lines, strict=True):
        if _HEAD.fullmatch(head) is None:
            problem = f"head '{head}', expected a number from 0"
            raise ReadError(problem, path=path, line=line, sentence=name)
        numbers.append(int(head))
    fault = head_fault(numbers, roots)
    if fault is not None:
        raise ReadError(fault.problem, path=path, line=lines[fault.word - 1], sentence=name)
    tree = DependencyTree(tuple(words), tuple(tags), readonly_int32(numbers), tuple(relations))
    return DependencySentence(tree, name, tuple(lines))
