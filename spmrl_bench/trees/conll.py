"""Dependency trees as CoNLL text: ten columns, one line per word, a blank line after each sentence.

CoNLL-X and CoNLL-U share the columns that a dependency tree needs: word number, form, two
tags, head and relation. They call the tags CPOSTAG and POSTAG, and UPOS and XPOS; which one a
:class:`~spmrl_bench.trees.dependencies.DependencyTree` holds is chosen by a name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal

from conllu.models import Token, TokenList
from conllu.parser import DEFAULT_FIELDS

from spmrl_bench.errors import TreeError

#: ``upos`` is column 4 (UPOS, CPOSTAG), ``xpos`` is column 5 (XPOS, POSTAG).
TagColumn = Literal["upos", "xpos"]

#: Columns of a line by name, from 0.
COLUMNS = 10
ID, FORM, HEAD, RELATION = 0, 1, 6, 7
TAGS: dict[TagColumn, int] = {"upos": 3, "xpos": 4}

#: What stands in a column that says nothing.
UNSPECIFIED = "_"

#: A text that no column can hold: empty, with a space at an end, or with a separator in it.
UNWRITABLE = re.compile(r"\A(?:\Z| )| \Z|[\t\r\n]")


def conll_lines(
    words: Iterable[str],
    tags: Iterable[str],
    heads: Iterable[str],
    relations: Iterable[str],
    *,
    tag_column: TagColumn = "xpos",
) -> str:
    """The lines of one sentence and the blank line after it, valid as CoNLL-U and as CoNLL-X.

    Reading them gives back an equal tree. The tags are written to one column; lemma, features
    and all else that a tree does not hold are ``_``, and so are heads that are not known.

    Raises:
        TreeError: a word, tag or relation is empty, begins or ends with a space, or contains
            a tab or an end of line, for which the format has no escape.
    """
    rows = TokenList()
    for number, row in enumerate(zip(words, tags, heads, relations, strict=True), start=1):
        for text in row:
            check_writable(number, text)
        columns = [UNSPECIFIED] * COLUMNS
        columns[ID] = str(number)
        columns[FORM], columns[TAGS[tag_column]], columns[HEAD], columns[RELATION] = row
        rows.append(Token(zip(DEFAULT_FIELDS, columns, strict=True)))
    return rows.serialize()


def check_writable(number: int | str, text: str) -> None:
    """Make sure that a column of a word can hold a text.

    Raises:
        TreeError: it cannot.
    """
    if UNWRITABLE.search(text):
        raise TreeError(f"word {number}: CoNLL cannot hold {text!r}")
