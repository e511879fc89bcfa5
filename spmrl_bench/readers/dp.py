"""Dependencies of the Penn Treebank in three columns: word, tag, head.

NLTK's sample of the Penn Treebank has a dependency layer in this form. Words carry the
treebank's escapes (``-LRB-``, ``1\\/2``) as its trees do, so that both layers have the same
words once these are undone. The format has no relations; every word gets the one that says
nothing. Blank lines end sentences, and the last needs none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from os import PathLike

from spmrl_bench.readers.sentences import (
    DependencySentence,
    Line,
    blocks,
    dependency_sentence,
    read_blocks,
    split_columns,
)
from spmrl_bench.readers.text import OnError, fail, read_text
from spmrl_bench.trees.conll import UNSPECIFIED
from spmrl_bench.trees.escapes import ESCAPES

_ROW = re.compile(r"[^\t ][^\t]*\t[^\t ]+\t[0-9]{1,9}")


def read_dp(
    path: str | PathLike[str], *, encoding: str = "utf-8", on_error: OnError = fail
) -> Iterator[DependencySentence]:
    """The sentences of a file, each a tree with one root.

    Raises:
        ReadError: the file cannot be read or decoded; or from ``on_error``, a line has not
            three columns, or the heads of a sentence form no tree.
    """

    def sentence(number: int, block: list[Line]) -> DependencySentence:
        rows = [
            split_columns(text, 3, path=path, line=line, sentence=number) for line, text in block
        ]
        words, tags, heads = zip(*rows, strict=True)
        return dependency_sentence(
            list(map(ESCAPES["ptb"].decode_word, words)),
            tags,
            heads,
            [UNSPECIFIED] * len(words),
            lines=[line for line, _ in block],
            roots="one",
            name=str(number),
            path=path,
        )

    return read_blocks(read_text(path, encoding), sentence, on_error)


def looks_like_dp(text: str) -> bool:
    """Whether a text, perhaps cut at its end, begins with a sentence of this format."""
    block = next(blocks(text.removeprefix("\ufeff")), [])
    rows = [line for _, line in islice(block, 1000)]
    if len(rows) > 1 and not text.endswith("\n"):
        rows.pop()  # perhaps cut
    return bool(rows) and all(_ROW.fullmatch(row) for row in rows)
