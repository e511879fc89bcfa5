"""TBF files of the CESS treebanks: leaves with a word and its lemma.

A leaf is ``(tag word lemma)``, which a reader of other brackets takes for two words. An empty
subject is a phrase over a mark, ``(sn.e-SUJ *0*)``. Parentheses of the text are written as
their tags between hyphens, ``-Fpa-`` and ``-Fpt-``. A bracket without a label wraps each tree
and starts at the beginning of a line; the other lines are indented.
"""

from __future__ import annotations

from collections.abc import Iterator
from os import PathLike

from spmrl_bench.readers.bracket_nodes import BracketReader
from spmrl_bench.readers.bracket_text import atoms, leaf_sizes, regions_at_margin, shown
from spmrl_bench.readers.text import OnError, fail, read_text
from spmrl_bench.trees.tree import Tree


def read_tbf(
    path: str | PathLike[str], *, encoding: str = "utf-8", on_error: OnError = fail
) -> Iterator[Tree]:
    """The trees of a file, in order, each under the bracket without a label that wraps it.

    Raises:
        ReadError: the file cannot be read or decoded; or from ``on_error``, which goes on at the
            next bracket at the beginning of a line: brackets do not match, or a leaf is not as
            above.
    """
    text = read_text(path, encoding)
    return _TbfReader(text, path, on_error).trees_of_regions(regions_at_margin(text))


def looks_like_tbf(text: str) -> bool:
    """Whether the beginning of a file is of this format: most leaves have three parts."""
    sizes = leaf_sizes(text)
    return 2 * sizes.count(3) > len(sizes)


_EMPTY = "*0*"
_WORDS = {"-Fpa-": "(", "-Fpt-": ")"}


class _TbfReader(BracketReader):
    def leaf(self, label: str, rest: str) -> str | None:
        parts = atoms(rest)
        if label and len(parts) == 2:
            word = parts[0]
            self.builder.word(label, _WORDS.get(word, word))
            return None
        if label and parts == (_EMPTY,):
            self.builder.empty(label, _EMPTY)
            return None
        found = shown(f"{label} {rest}")
        return f"found '({found})', expected '(tag word lemma)' or '(label {_EMPTY})'"
