"""VISL-style brackets of Floresta: a line with number, name and text, then the tree.

``#1 CP1-1 Um revivalismo`` is an entry's first line, whose text may hold any brackets. In the
tree a label is ``FUNCTION+form``, a mark is a bracket with nothing else in it, ``(,)``, and
parentheses of the text are ``({)`` and ``(})``. Some entries lack closing brackets; since a line
that starts with ``#`` always begins an entry, such a mistake ends with its entry.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from os import PathLike

from spmrl_bench.errors import ReadError
from spmrl_bench.readers.bracket_nodes import BracketReader
from spmrl_bench.readers.bracket_text import atoms, shown
from spmrl_bench.readers.text import OnError, fail, read_text
from spmrl_bench.trees.tree import Tree


def read_visl(
    path: str | PathLike[str], *, encoding: str = "utf-8", on_error: OnError = fail
) -> Iterator[Tree]:
    """The trees of a file, in order.

    The tag of a mark is the mark as it is written, ``{`` for an opening parenthesis. What comes
    before the first entry is a comment if its lines start with ``#``.

    Raises:
        ReadError: the file cannot be read or decoded; or from ``on_error``, which goes on at the
            next entry: a first line without number or name, brackets that do not match, no tree
            or several in an entry, a node without a word or with several.
    """
    return _VislReader(read_text(path, encoding), path, on_error).trees_of_entries()


_HEADER = re.compile(r"^#([^\n]*)\n?", re.MULTILINE)
_NAMED = re.compile(r"\d+[ \t]+(\S+)")
_ENTRY_AND_TREE = re.compile(r"^#\d+[ \t]+\S[^\n]*\n\s*\([^()\s]*(?:\+[^()\s]*|[^()\w\s]\))", re.M)


def looks_like_visl(text: str) -> bool:
    """Whether the beginning of a file is of this format, told by its first entry and root label."""
    text = text.removeprefix("\ufeff")
    entry = _ENTRY_AND_TREE.search(text)
    if entry is None:
        return False
    before = text[: entry.start()].splitlines()
    return all(line.startswith("#") or not line.strip() for line in before)


_MARKS = {"{": "(", "}": ")"}
_LABEL = re.compile(r"\w|.\+.")


@lru_cache(maxsize=1 << 12)
def _is_mark(text: str) -> bool:
    """Whether this is a punctuation mark and no label: it has no letter, digit or form."""
    return text != "" and _LABEL.search(text) is None


class _VislReader(BracketReader):
    limit = "the next entry"
    one_name = True

    def trees_of_entries(self) -> Iterator[Tree]:
        """The trees of all entries."""
        headers = list(_HEADER.finditer(self._text))
        named = (k for k, header in enumerate(headers) if _NAMED.match(header[1]))
        first = next(named, len(headers))
        ends = [*(header.start() for header in headers), len(self._text)]
        try:
            self._nothing_before(headers[:first], ends[first])
        except ReadError as error:
            self.leave_out(error)
        for header, end in zip(headers[first:], ends[first + 1 :], strict=True):
            try:
                yield self._tree_of_entry(header, end)
            except ReadError as error:
                self.leave_out(error)

    def _nothing_before(self, comments: list[re.Match[str]], end: int) -> None:
        """Check that there are comments only."""
        start = 0
        for place, after in [*(comment.span() for comment in comments), (end, end)]:
            for _ in self.trees(start, place):
                self.fail(start, "found a tree before the first entry, expected '#1 name text'")
            start = after

    def _tree_of_entry(self, header: re.Match[str], end: int) -> Tree:
        match = _NAMED.match(header[1])
        self.name = match[1] if match else None
        if match is None:
            self.fail(
                header.start(),
                f"found '#{shown(header[1])}', expected '#number name text' to begin an entry",
            )
        trees = list(self.trees(header.end(), end))
        if len(trees) != 1:
            self.fail(header.start(), f"found {len(trees)} trees in the entry, expected one")
        return trees[0]

    def leaf(self, label: str, rest: str) -> str | None:
        parts = atoms(rest)
        if len(parts) == 1 and label:
            self.builder.word(label, parts[0])
            return None
        if not parts and _is_mark(label):
            self.builder.word(label, _MARKS.get(label, label))
            return None
        if not parts:
            return f"found '({shown(label)})' without a word in it, expected a mark or a word"
        return f"found '{shown(rest)}' in '({shown(label)}', expected one word"
