"""The shipped files read in the plainest way, and what makes heads a tree."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from tools.minigen.__main__ import SHIPPED, SIZES
from tools.minigen.tests.languages import Word

#: Label, first word and the word behind the last one, both counted from 0.
Span = tuple[str, int, int]


def splits_of(language: str) -> Iterator[tuple[str, list[str], list[list[str]]]]:
    """Of each split its name, the trees as text, and the dependencies as rows of columns."""
    for split in SIZES:
        trees = (SHIPPED / language / f"{split}.mrg").read_text(encoding="utf-8")
        blocks = (SHIPPED / language / f"{split}.conll").read_text(encoding="utf-8").split("\n\n")
        yield split, trees.splitlines(), [block.split("\n") for block in blocks if block]


def words_of(rows: Sequence[str]) -> list[Word]:
    """The words of a sentence in CoNLL."""
    columns = [row.split("\t") for row in rows]
    return [Word(row[1], row[4], row[7], int(row[6]) - 1) for row in columns]


def spans_of(tree: str) -> list[Span]:
    """The constituents of a tree in brackets, without its tags."""
    spans: list[Span] = []
    opened: list[tuple[str, int]] = []
    words = 0
    for piece in re.finditer(r"\((\S+) (?:([^\s()]+)\))?|\)", tree):
        label, word = piece.groups()
        if word is not None:
            words += 1
        elif label is not None:
            opened.append((label, words))
        else:
            spans.append((*opened.pop(), words))
    return spans


def is_projective(heads: Sequence[int]) -> bool:
    """Whether all words between a word and its head are below that head; heads from 1, 0 = root."""
    return all(
        head in way_up(heads, between)
        for word, head in enumerate(heads, start=1)
        for between in range(min(word, head) + 1, max(word, head))
    )


def way_up(heads: Sequence[int], word: int) -> list[int]:
    """A word, its head, the head of that, and so on; ends with 0 unless there is a cycle."""
    found = [word]
    while found[-1] and len(found) <= len(heads) + 1:
        found.append(heads[found[-1] - 1])
    return found


def heads_outside(heads: Sequence[int], start: int, end: int) -> int:
    """How many words of a span have a head that is not in it."""
    return sum(not start < heads[place] <= end for place in range(start, end))
