"""CorpusSearch files (``.psd``): Penn-Helsinki style treebanks such as IcePaHC and Keyaki.

A bracket without a label wraps a tree and ``(ID name)``; ``(CODE ...)`` holds comments and
marks of the edition, anywhere. Empty elements stand directly in a node: ``(NP-SBJ *pro*)``,
``(C 0)``. Some releases join each word and its lemma by a hyphen. A tree starts with a bracket
at the beginning of a line, and no other line may, because only that tells where to go on after
a tree with a lost bracket.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from os import PathLike

from spmrl_bench.readers.bracket_nodes import BracketReader
from spmrl_bench.readers.bracket_text import atoms, regions_at_margin, shown
from spmrl_bench.readers.building import is_empty_element
from spmrl_bench.readers.text import OnError, fail, read_text
from spmrl_bench.trees.brackets import escapes_named
from spmrl_bench.trees.tree import Tree


def read_psd(
    path: str | PathLike[str],
    *,
    encoding: str = "utf-8",
    lemmas: bool = False,
    on_error: OnError = fail,
) -> Iterator[Tree]:
    """The trees of a file, in order, each under the bracket without a label that wraps it.

    Metadata are left out, and a wrapper that holds nothing else is no sentence. ``-LRB-``,
    ``-RRB-`` and ``<dash/>`` in words are undone; marks such as ``$`` stay.

    Args:
        lemmas: whether leaves are ``(TAG word-lemma)``. The last hyphen separates them; ``---`` is
            a dash with its lemma, ``-`` a dash without.
        on_error: goes on at the next bracket at the beginning of a line.

    Raises:
        ReadError: the file cannot be read or decoded; or from ``on_error``: brackets do not
            match, a node has no or several words, a word has no lemma, a tree lacks an ID in
            a file with IDs or has two.
    """
    text = read_text(path, encoding)
    reader = _PsdReader(text, path, on_error)
    reader.lemmas = lemmas
    reader.needs_id = _ID.search(text) is not None
    return reader.trees_of_regions(regions_at_margin(text))


_ID = re.compile(r"\(\s*ID\s[^()]*\)\s*\)")


def looks_like_psd(text: str) -> bool:
    """Whether the beginning of a file is of this format, told by its ID nodes."""
    return text.lstrip("\ufeff \t\r\n").startswith("(") and _ID.search(text) is not None


@lru_cache(maxsize=1 << 16)
def _word(text: str) -> str:
    return escapes_named("brackets").decode_word(text).replace("<dash/>", "-")


@lru_cache(maxsize=1 << 16)
def _without_lemma(text: str) -> str | None:
    """The word of ``word-lemma``; None if one of them is absent."""
    if not text.strip("-"):  # a dash, which may be its own lemma
        half, odd = divmod(len(text), 2)
        return text[:half] if half and odd else text
    word, _, lemma = text.rpartition("-")
    return _word(word) if word and lemma else None


class _PsdReader(BracketReader):
    lemmas = False
    needs_id = False

    def leaf(self, label: str, rest: str) -> str | None:
        if label == "CODE":
            self.builder.skip()
            return None
        parts = atoms(rest)
        if label == "ID":
            return self._id(parts)
        if not label or not parts:
            return f"found '({shown(label)})' without a word in it"
        text = parts[0]
        if len(parts) > 1:
            return f"found '{shown(rest)}' in a node, expected one word or an empty element"
        if is_empty_element(text, label):
            self.builder.empty(label, text)
            return None
        word = _without_lemma(text) if self.lemmas else _word(text)
        if word is None:
            return f"found the word '{shown(text)}', expected 'word-lemma'"
        self.builder.word(label, word)
        return None

    def inner(self, label: str) -> str | None:
        if label in ("CODE", "ID"):
            return f"found brackets in '({label}', which is no part of a tree"
        return None

    def _id(self, parts: tuple[str, ...]) -> str | None:
        if self.name is not None:
            return f"found a second ID, '{shown(' '.join(parts))}'; is a tree not closed?"
        if not parts:
            return "found '(ID)' without a name"
        self.name = " ".join(parts)
        self.builder.skip()
        return None

    def whole(self) -> str | None:
        if self.needs_id and self.name is None:
            return "found a tree without '(ID name)', which others of the file have"
        return None
