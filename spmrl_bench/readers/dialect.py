"""What a bracket dialect is, as data: the options of the format ``brackets``.

Treebanks in brackets differ in what stands around a tree, how a leaf is written, how words
avoid brackets, and what is no word at all. Each of these is an option; one that is not given
is as in the Penn Treebank. A :class:`Dialect` has them checked and ready for a reader.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from spmrl_bench.errors import SpmrlError, unknown_name
from spmrl_bench.readers.building import is_empty_element
from spmrl_bench.readers.templates import Entry, Leaf, Node
from spmrl_bench.trees.escapes import ESCAPES, escapes_named

#: The options and their defaults, which mean plain brackets.
DEFAULTS: Mapping[str, Any] = {
    "node": "(LABEL CHILD CHILD)",
    "leaf": ["(TAG WORD)"],
    "entry": [],
    "comment": [],
    "wrappers": [],
    "drop": [],
    "id": "",
    "empty_tags": [],
    "empty_words": [],
    "replace": {},
}
#: What undoes the escapes of words: a policy of :mod:`spmrl_bench.trees.escapes`, or
#: the rule that a character after a backslash stands for itself.
ESCAPE_NAMES = (*ESCAPES, "backslash")

_BACKSLASHED = re.compile(r"\\(.)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Dialect:
    """One way to write trees in brackets.

    Attributes:
        node, leaves, entries: by their templates; without entries, trees stand in any layout.
        comment: how lines begin that are comments.
        wrappers: labels of brackets that hold trees and are no part of them.
        drop: labels of nodes that are left out with all below them.
        id: the label of the node, left out too, that names a tree; "" if there is none.
        empty_tags: tags of empty elements.
        is_empty: whether the text of a word, with its tag, is that of an empty element.
        decode: the word that a text stands for.
        backslashed: whether a character after a backslash means nothing to a reader.
        known: what a reader keeps of the leaves of one file for the next.
    """

    node: Node
    leaves: tuple[Leaf, ...]
    entries: tuple[Entry, ...]
    comment: tuple[str, ...]
    wrappers: frozenset[str]
    drop: frozenset[str]
    id: str
    empty_tags: frozenset[str]
    is_empty: Callable[[str, str], bool]
    decode: Callable[[str], str]
    backslashed: bool
    known: dict[Any, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, escapes: str, **options: Any) -> Dialect:
        """The dialect of some options, as :data:`DEFAULTS` has them.

        Raises:
            SpmrlError: an option has a mistake, or two of them contradict each other.
        """
        return _dialect(escapes, json.dumps(options, sort_keys=True))

    @classmethod
    def _of(cls, escapes: str, options: Mapping[str, Any]) -> Dialect:
        given = {**DEFAULTS, **options}
        node = Node.parse(given["node"])
        leaves = tuple(Leaf.parse(text, node) for text in given["leaf"])
        if not leaves:
            raise SpmrlError("found no template, expected one or several")
        return cls(
            node=node,
            leaves=leaves,
            entries=tuple(map(Entry.parse, given["entry"])),
            comment=tuple(given["comment"]),
            wrappers=frozenset(given["wrappers"]),
            drop=frozenset(given["drop"]) | ({given["id"]} if given["id"] else set()),
            id=given["id"],
            empty_tags=frozenset(given["empty_tags"]),
            is_empty=_empty_words(given["empty_words"]),
            decode=_decoder(escapes, given["replace"]),
            backslashed=escapes == "backslash",
        )


@lru_cache(maxsize=16)
def _dialect(escapes: str, options: str) -> Dialect:
    return Dialect._of(escapes, json.loads(options))


def check_option(name: str, value: Any, others: Mapping[str, Any]) -> None:
    """Raise a SpmrlError where an option is wrong, by itself or with the ones before it."""
    if name == "escapes":
        _decoder(value, {})
    elif name == "entry":
        for text in value:
            Entry.parse(text)
    elif name == "node":
        Node.parse(value)
    elif name == "leaf":
        Dialect.of("none", leaf=value, node=others.get("node") or DEFAULTS["node"])


def is_plain(escapes: str, options: Mapping[str, Any]) -> bool:
    """Whether the options describe brackets as in the Penn Treebank."""
    return escapes in ESCAPES and all(options[name] == DEFAULTS[name] for name in options)


def _decoder(escapes: str, replace: Mapping[str, str]) -> Callable[[str], str]:
    if escapes not in ESCAPE_NAMES:
        raise SpmrlError(unknown_name("escape policy", escapes, ESCAPE_NAMES))
    replacements = tuple(replace.items())

    undo: Callable[[str], str] = str
    if escapes == "backslash":
        undo = _without_backslashes
    elif escapes != "none":
        undo = escapes_named(escapes).decode_word

    def decode(text: str) -> str:
        text = undo(text)
        for found, word in replacements:
            text = text.replace(found, word)
        return text

    return decode if replacements else undo


def _without_backslashes(text: str) -> str:
    return _BACKSLASHED.sub(r"\1", text) if "\\" in text else text


def _empty_words(patterns: list[str]) -> Callable[[str, str], bool]:
    """What tells empty elements; the pattern ``penn`` is the rule of Penn-style treebanks."""
    own = [pattern for pattern in patterns if pattern != "penn"]
    exact = frozenset(pattern for pattern in own if "..." not in pattern)
    others = tuple(pattern.split("...") for pattern in own if "..." in pattern)
    penn = "penn" in patterns

    def is_empty(text: str, tag: str) -> bool:
        return (
            text in exact
            or (penn and is_empty_element(text, tag))
            or any(_fits(text, pieces) for pieces in others)
        )

    return is_empty


def _fits(text: str, pieces: list[str]) -> bool:
    """Whether a text is these pieces in their order, with anything between them."""
    first, *middle, last = pieces
    if len(text) < len(first) + len(last) or not (text.startswith(first) and text.endswith(last)):
        return False
    place, end = len(first), len(text) - len(last)
    for piece in middle:
        place = text.find(piece, place, end)
        if place < 0:
            return False
        place += len(piece)
    return True
