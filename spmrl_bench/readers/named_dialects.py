"""Bracket dialects of treebanks that many use, each by its description and how to tell it.

Any of them could stand in a manifest as options of the format ``brackets``. Here they have a name,
which is what their treebanks are known by, and a function that recognises their files.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from os import PathLike
from typing import Any

from spmrl_bench.readers.bracket_text import leaf_sizes
from spmrl_bench.readers.described import read_described
from spmrl_bench.trees.tree import Tree


def read_psd(path: str | PathLike[str], *, lemmas: bool = False, **options: Any) -> Iterator[Tree]:
    """CorpusSearch files (``.psd``): Penn-Helsinki style treebanks such as IcePaHC and Keyaki.

    A bracket without a label wraps a tree and ``(ID name)``, which all trees of a file have or
    none; ``(CODE ...)`` holds comments and marks of the edition, anywhere. Empty elements stand
    directly in a node: ``(NP-SBJ *pro*)``, ``(C 0)``. Marks such as ``$`` stay.

    Args:
        path: of the file.
        lemmas: whether leaves are ``(TAG word-lemma)``. The last hyphen separates them; ``---`` is
            a dash with its lemma, ``-`` a dash without.
        options: ``encoding`` and ``on_error``, as :func:`read_described` has them; so below.
    """
    return read_described(
        path,
        leaf=["(TAG WORD-LEMMA)" if lemmas else "(TAG WORD)"],
        drop=["CODE"],
        id="ID",
        empty_words=["penn"],
        escapes="brackets",
        replace={"<dash/>": "-"},
        **options,
    )


#: TBF files of the CESS treebanks. Parentheses of the text are written as their tags.
read_tbf = partial(
    read_described,
    leaf=["(TAG WORD LEMMA)"],
    empty_words=["*0*"],
    escapes="none",
    replace={"-Fpa-": "(", "-Fpt-": ")"},
)

#: Every word in brackets of its own, ``(NN (pesta olahraga))``; a sentence, or several trees of
#: one, on each line, with its name and a tab before it in some files.
read_bracketed_words = partial(
    read_described,
    leaf=["(TAG (WORD...))"],
    entry=["NAME\tTREE", "TREE"],
    empty_words=["penn"],
    escapes="none",
    replace={"&brl;": "(", "&brr;": ")"},
)

#: Sinica Treebank lines, ``#1:1.[7] NP(property:A:大|Head:Nab:門)#、(PAUSECATEGORY)``. Labels and
#: tags keep their roles. Numbers repeat within a file, so errors name the line.
read_sinica = partial(
    read_described,
    node="LABEL(CHILD|CHILD)",
    leaf=["TAG...:WORD..."],
    entry=["#... TREE#..."],
    escapes="none",
)

#: Their formats.
NAMED_DIALECTS = ("psd", "tbf", "bracketed-words", "sinica")

_ID = re.compile(r"\(\s*ID\s[^()]*\)\s*\)")
_SINICA = re.compile(r"#\d+:[\d.]*\.\[\d+\][ \t]+")
_NAME = re.compile(r"[ \t]*(?:([^()\s]+)\t[ \t]*)?")
_BLANK = "\ufeff \t\r\n"


def looks_like_psd(text: str) -> bool:
    """Whether the beginning of a file is of this format, told by its ID nodes."""
    return text.lstrip(_BLANK).startswith("(") and _ID.search(text) is not None


def looks_like_tbf(text: str) -> bool:
    """Whether the beginning of a file is of this format: most leaves have three parts."""
    sizes = leaf_sizes(text)
    return 2 * sizes.count(3) > len(sizes)


def looks_like_bracketed_words(text: str) -> bool:
    """Whether the beginning of a file is of this format: most innermost brackets hold a word."""
    text = text.lstrip(_BLANK)
    name = _NAME.match(text)
    sizes = leaf_sizes(text[name.end() :] if name else text)
    return 2 * sizes.count(1) > len(sizes)


def looks_like_sinica(text: str) -> bool:
    """Whether the beginning of a file is of this format, told by the numbers of its first line."""
    return _SINICA.match(text.lstrip(_BLANK)) is not None
