r"""Trees as one line of brackets, and the escapes that keep every word readable.

Bracketed files have no quoting: ``(NN word)`` cannot hold a word with a parenthesis or a space.
Treebanks therefore replace some characters, each in its own way. In this program a word is always
the real word; only readers and writers know escapes, by the name of a policy:

``ptb``
    The Penn Treebank's: ``-LRB- -RRB- -LCB- -RCB- -LSB- -RSB-`` for round, curly and square
    brackets, ``\/`` for a slash and ``\*`` for an asterisk.
``brackets``
    ``-LRB-`` and ``-RRB-`` only; slashes, asterisks and other brackets stand for themselves.
``none``
    Nothing: a word is its text, and whoever wants to know what it stands for decodes it later. On
    writing, what would end a word is escaped all the same.

Real words can contain what looks like an escape, so the first two add, on writing, ``\-`` for
the hyphen of a word that spells ``-LRB-`` itself, ``\\`` for a backslash, ``\xHH`` for ASCII
white space and ``\0`` for the empty word. With these, reading gives back exactly what was
written, for every string. On reading, a backslash before anything else stands for itself.

Labels and tags are not words: the Penn tag ``-LRB-`` is called so. In them only ``\\``,
``\xHH`` and (for the empty tag) ``\0`` are escapes, which the STTS tag ``$(`` needs. On writing, a
backslash is doubled only where it would be read as one of these: ``S\NP`` of a categorial grammar
stays ``S\NP``, as EVALB compares it.

Only ASCII white space separates. A no-break or ideographic space is part of a word.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from spmrl_bench.errors import SpmrlError, TreeError, unknown_name

if TYPE_CHECKING:
    from spmrl_bench.trees.tree import Tree

#: The characters that separate tokens, as the inside of a regular expression's class.
ASCII_SPACE = r" \t\n\r\f\v"

_EMPTY = "\\0"


def _hex(character: str) -> str:
    return f"\\x{ord(character):02x}"


@dataclass(frozen=True, slots=True)
class Escapes:
    """One way to write words so that brackets and white space cannot break them.

    ``decode_word(encode_word(word)) == word`` for every string, but for the policy ``none``, and
    the encoded form is not empty and contains neither a round bracket nor ASCII white space.
    """

    _to_file: Mapping[str, str]
    _from_file: Mapping[str, str]
    _needs_escape: re.Pattern[str]
    _is_escape: re.Pattern[str]

    @classmethod
    def define(cls, brackets: Mapping[str, str], backslashed: str) -> Escapes:
        """Return a policy of bracket names (``{"(": "-LRB-"}``) and backslashed characters."""
        to_file = {**brackets, **{each: f"\\{each}" for each in "\\-" + backslashed}}
        from_file = {escape: character for character, escape in to_file.items()}
        names = "|".join(re.escape(escape[1:-1]) for escape in brackets.values())
        either = re.escape("".join(brackets))
        single = re.escape("\\" + backslashed)
        # A hyphen is escaped where a bracket's name follows, closed by a hyphen of the word
        # itself or by the first hyphen of the bracket that comes next.
        needs = rf"-(?=(?:{names})[-{either}])|[{either}{single}{ASCII_SPACE}]"
        known = rf"-(?:{names})-|\\(?:x[0-9a-f]{{2}}|0|[-{single}])"
        return cls(to_file, from_file, re.compile(needs), re.compile(known))

    def encode_word(self, word: str) -> str:
        """Return the word as it stands in a file."""
        escaped = self._needs_escape.sub(lambda m: self._to_file.get(m[0]) or _hex(m[0]), word)
        return escaped or _EMPTY

    def decode_word(self, text: str) -> str:
        """Return the word that a file's text stands for."""
        if "-" not in text and "\\" not in text:
            return text
        return self._is_escape.sub(
            lambda m: self._from_file.get(m[0]) or _decode_backslash(m), text
        )


_BOTH = {"(": "-LRB-", ")": "-RRB-"}
_ALL = _BOTH | {"{": "-LCB-", "}": "-RCB-", "[": "-LSB-", "]": "-RSB-"}

#: Every policy by its name. What ``none`` has to escape on writing is not read back.
ESCAPES: Mapping[str, Escapes] = {
    "ptb": Escapes.define(_ALL, "/*"),
    "brackets": Escapes.define(_BOTH, ""),
    "none": Escapes(_BOTH, {}, re.compile(rf"[(){ASCII_SPACE}]"), re.compile(r"(?!)")),
}


def escapes_named(name: str) -> Escapes:
    """Return the policy of a name; a SpmrlError if there is none."""
    if name not in ESCAPES:
        raise SpmrlError(unknown_name("escape policy", name, ESCAPES))
    return ESCAPES[name]


_LABEL_NEEDS_ESCAPE = re.compile(rf"[(){ASCII_SPACE}]|\\(?=x[0-9a-f]{{2}}|[0\\(){ASCII_SPACE}])")
_LABEL_ESCAPE = re.compile(r"\\(?:x[0-9a-f]{2}|0|\\)")


def encode_label(label: str) -> str:
    """Return a label or tag as it stands in a file; the unlabelled bracket stays empty."""
    return _LABEL_NEEDS_ESCAPE.sub(lambda m: "\\\\" if m[0] == "\\" else _hex(m[0]), label)


def decode_label(text: str) -> str:
    """Return the label or tag that a file's text stands for."""
    return _LABEL_ESCAPE.sub(_decode_backslash, text) if "\\" in text else text


def _decode_backslash(match: re.Match[str]) -> str:
    r"""``\\``, ``\0`` or ``\xHH``."""
    escape = match[0][1:]
    if escape == "0":
        return ""
    return chr(int(escape[1:], 16)) if escape[0] == "x" else escape


def write_brackets(tree: Tree, escapes: str = "ptb", *, spelt: Sequence[str] | None = None) -> str:
    """Return the tree on one line, without a line end.

    A tree without words, which a parser may return for a sentence that it gave up, is ``(())``.
    ``escapes`` names the policy by which words are escaped; ``spelt`` is how they stand in some
    other bracketed text, to be written as they stand there. Raise a TreeError if the tree has
    several words but no constituent over all of them, a SpmrlError if the policy is unknown.
    """
    policy = escapes_named(escapes)
    n = len(tree)
    if n == 0:
        return "(())"
    spans = tree.spans.tolist()
    if n > 1 and (not spans or spans[0] != [0, n]):
        raise TreeError(f"a tree of {n} words needs one constituent over all of them to be written")
    opened: list[list[str]] = [[] for _ in range(n)]  # in front of each word
    closed = [0] * (n + 1)  # how many end at each fencepost
    for (start, end), label in zip(spans, tree.labels, strict=True):
        opened[start].append(f"({encode_label(label)} ")
        closed[end] += 1
    words = map(policy.encode_word, tree.words) if spelt is None else spelt
    rows = zip(opened, tree.tags, words, closed[1:], strict=True)
    return " ".join(
        f"{''.join(before)}({encode_label(tag) or _EMPTY} {word}){')' * ends}"
        for before, tag, word, ends in rows
    )
