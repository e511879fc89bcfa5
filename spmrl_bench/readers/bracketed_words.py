"""Brackets in which every word has its own: ``(NN (pesta olahraga))``.

So a word may hold spaces, and looks like a node without children. Empty elements are written
like words and may stand beside nodes, ``(SBAR (0) (S ...))``. Each line holds a sentence, now
and then several trees, with its name and a tab before them in some files. Parentheses of the
text are ``&brl;`` and ``&brr;``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from os import PathLike

from spmrl_bench.readers.bracket_nodes import BracketReader
from spmrl_bench.readers.bracket_text import atoms, leaf_sizes, lines, shown
from spmrl_bench.readers.building import EMPTY, is_empty_element
from spmrl_bench.readers.text import OnError, fail, read_text
from spmrl_bench.trees.tree import Tree


def read_bracketed_words(
    path: str | PathLike[str], *, encoding: str = "utf-8", on_error: OnError = fail
) -> Iterator[Tree]:
    """The trees of a file, in order; several trees on a line are several trees.

    White space within a word becomes one space. ``(0)`` is an empty element except in a numeral
    (CD, NUM).

    Raises:
        ReadError: the file cannot be read or decoded; or from ``on_error``, which goes on at the
            next line: brackets do not match within a line, a word has no tag or stands beside
            others.
    """
    text = read_text(path, encoding)
    return _WordsReader(text, path, on_error).trees_of_regions(lines(text))


_NAME = re.compile(r"[ \t]*(?:([^()\s]+)\t[ \t]*)?")


def looks_like_bracketed_words(text: str) -> bool:
    """Whether the beginning of a file is of this format: most innermost brackets hold a word."""
    text = text.lstrip("\ufeff \t\r\n")
    name = _NAME.match(text)
    sizes = leaf_sizes(text[name.end() :] if name else text)
    return 2 * sizes.count(1) > len(sizes)


@lru_cache(maxsize=1 << 16)
def _word(label: str, rest: str) -> str:
    text = " ".join(atoms(f"{label} {rest}"))
    return text.replace("&brl;", "(").replace("&brr;", ")")


class _WordsReader(BracketReader):
    limit = "the end of the line"
    one_name = True

    def begin(self, start: int, end: int) -> int:
        name = _NAME.match(self._text, start, end)
        self.name = name[1] if name else None
        return name.end() if name and name[1] else start

    def leaf(self, label: str, rest: str) -> str | None:
        word = _word(label, rest)
        if not word:
            return "found an empty bracket '()'"
        parent = self.builder.label
        if parent and is_empty_element(word, parent):
            self.builder.word(EMPTY, word)
            return None
        if not parent and not self.builder.in_tag:
            return f"found the word '{shown(word)}' without a tag, expected '(TAG ({shown(word)}))'"
        if not self.builder.turn_to_tag(word):
            return f"found the word '{shown(word)}' beside others, expected '(TAG (word))'"
        return None
