"""Templates: how a bracket dialect writes a node, a leaf and an entry, shown by an example.

A template is a piece of a treebank with placeholders in it, ``(TAG WORD LEMMA)`` or
``LABEL(CHILD|CHILD)``; all else in it stands for itself, and ``...`` for anything. Reading one
is linear in the length of the text, because no placeholder is there twice.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from spmrl_bench.errors import SpmrlError

_BRACKETS = {"(": ")", "[": "]", "{": "}", "<": ">"}
_PLACEHOLDER = re.compile(r"((?<![A-Za-z])(?:TAG|WORD|LEMMA)(?![A-Za-z])(?:\.\.\.)?|\.\.\.)")


@dataclass(frozen=True, slots=True)
class Node:
    """How a constituent is written.

    Attributes:
        opening, closing: its brackets.
        label_first: whether its label stands before the opening bracket.
        separator: what stands between its children besides white space, or "".
    """

    opening: str
    closing: str
    label_first: bool
    separator: str

    @classmethod
    def parse(cls, template: str) -> Node:
        """The node of a template such as ``(LABEL CHILD CHILD)`` or ``LABEL(CHILD|CHILD)``.

        Raises:
            SpmrlError: the template is not of this kind.
        """
        found = _NODE.fullmatch(template.strip())
        if found is not None:
            before, opening, inside, separator, closing = found.groups()
            separator = separator.strip()
            if (before is None) != (inside is None) and _BRACKETS[opening] == closing:
                return cls(opening, closing, before is not None, separator)
        raise SpmrlError(
            f"found '{template}', expected a label and two children in brackets, such as "
            "'(LABEL CHILD CHILD)', '[LABEL CHILD CHILD]' or 'LABEL(CHILD|CHILD)'"
        )


_NODE = re.compile(
    r"(LABEL)?\s*([(\[{<])\s*(LABEL\s)?\s*CHILD(\s*[^\w\s()\[\]{}<>]?\s*)CHILD\s*(.)"
)


class Found(NamedTuple):
    """The parts of a leaf; None for one that its template lacks."""

    tag: str | None
    word: str | None


@dataclass(frozen=True, slots=True)
class Leaf:
    """How a word is written.

    Attributes:
        text: the template.
        kind: ``"flat"`` is a bracket with text only, ``"nested"`` one whose parts have brackets of
            their own, ``"bare"`` text among the children of a node.
        joined: whether word and lemma are joined in one piece of text.
        others: whether a nested leaf may have parts that the template does not name.
    """

    text: str
    kind: Literal["flat", "nested", "bare"]
    joined: bool
    others: bool
    _patterns: tuple[re.Pattern[str], ...]

    @classmethod
    def parse(cls, template: str, node: Node) -> Leaf:
        """The leaf of a template, in nodes of a kind.

        Raises:
            SpmrlError: the template has no word, something twice, or brackets that do not match.
        """
        text = " ".join(template.split())
        for name in ("TAG", "WORD", "LEMMA"):
            number = sum(part.startswith(name) for part in _PLACEHOLDER.findall(text))
            if number > 1 or (number == 0 and name == "WORD"):
                times = "no" if number == 0 else "several"
                raise SpmrlError(
                    f"found {times} {name} in '{template}', expected one, as {_EXAMPLES}"
                )
        if node.label_first and text.startswith(node.opening):
            raise SpmrlError(
                f"found '{template}', but labels of nodes stand before their brackets; expected a "
                "leaf such as 'TAG:WORD' or 'TAG(WORD)'"
            )
        opening, closing = re.escape(node.opening), re.escape(node.closing)
        joined = re.search(r"WORD[^\sA-Z]+LEMMA|LEMMA[^\sA-Z]+WORD", text) is not None
        if re.search(f"[{opening}{closing}]", text) is None:
            if " " in text:
                raise SpmrlError(f"found a space in '{template}', expected it in brackets or none")
            return cls(text, "bare", joined, False, (_pattern(text),))
        flat = re.fullmatch(rf"{opening}([^{opening}{closing}]*){closing}", text)
        if flat is not None and not node.label_first:
            return cls(text, "flat", joined, False, (_pattern(flat[1].strip()),))
        begin = rf"TAG ?{opening}" if node.label_first else rf"{opening} ?TAG "
        nested = re.fullmatch(rf"{begin}(.*){'' if node.label_first else closing}", text)
        inner = rf"{opening}([^{opening}{closing}]*){closing}"
        if nested is not None:
            within = nested[1] if not node.label_first else f"{node.opening}{nested[1]}"
            rest = re.sub(inner, "", within).strip()
            parts = tuple(_pattern(part.strip()) for part in re.findall(inner, within))
            if rest in ("", "...") and parts:
                return cls(text, "nested", joined, rest == "...", parts)
        raise SpmrlError(f"cannot make sense of '{template}', expected a leaf such as {_EXAMPLES}")

    def match(self, text: str) -> Found | None:
        """What a text (one part of a nested leaf) with single spaces says, or None."""
        for pattern in self._patterns:
            found = pattern.fullmatch(text)
            if found is not None:
                there = pattern.groupindex
                word = found["word"] if "word" in there else None
                if word is None and "alone" in there:
                    alone = found["alone"]
                    half, odd = divmod(len(alone), 2)
                    word = alone[:half] if half and odd else alone
                return Found(found["tag"] if "tag" in there else None, word)
        return None


_EXAMPLES = (
    "'(TAG WORD)', '(TAG WORD-LEMMA)', '(TAG WORD LEMMA)', '(TAG (word WORD) ...)', '(TAG WORD...)'"
    " for words with spaces, or 'WORD/TAG'"
)


def _pattern(text: str) -> re.Pattern[str]:
    """What matches the pieces of a text, of which each has placeholders and what is between.

    Where pieces are joined, a tag does not hold what follows or precedes it, ``TAG:WORD`` has the
    first colon between them, ``WORD/TAG`` the last slash; with ``TAG...:WORD`` it is the last
    colon. So a word is cut from its lemma at the last place where both have something; a piece of
    nothing but hyphens is a dash, with its lemma if there are dashes on both sides of a hyphen.
    """
    pieces = []
    for number, item in enumerate(text.split(" ")):
        space = " " if number else ""
        if item == "...":
            pieces.append(f"(?:{space}.*)?")
            continue
        parts = _PLACEHOLDER.split(item)
        between = "".join(parts[::2])
        apart = re.escape("".join(sorted({c for c in between if not c.isalnum()})))
        tag_is_long = "TAG..." in parts
        made = ""
        for part in parts:
            if part == "...":
                made += "[^ ]*"
            elif _PLACEHOLDER.fullmatch(part):
                name = part.removesuffix("...").lower()
                if name == "word":
                    blank = "" if part.endswith("...") else " "
                    excluded = blank + (apart if tag_is_long else "")
                    made += f"(?P<word>[^{excluded}]+)" if excluded else "(?P<word>.+)"
                elif name == "tag":
                    made += (
                        f"(?P<tag>[^ ]*[^ {apart}])" if tag_is_long else f"(?P<tag>[^ {apart}]+)"
                    )
                else:
                    made += f"[^ {apart}]+"
            else:
                made += re.escape(part)
        if re.fullmatch("WORD[^A-Za-z]+LEMMA", item):
            made = f"(?:(?P<alone>(?:{re.escape(between)})+)(?= |$)|{made})"
        pieces.append(space + made)
    return re.compile("".join(pieces), re.DOTALL)


@dataclass(frozen=True, slots=True)
class Entry:
    """How the line of a tree is written.

    Attributes:
        text: the template.
    """

    text: str
    _before: re.Pattern[str]
    _after: str
    _open_end: bool

    @classmethod
    def parse(cls, template: str) -> Entry:
        """The entry of a template such as ``NAME<tab>TREE`` or ``#NAME TREE#...``.

        Raises:
            SpmrlError: the template does not have one TREE, or placeholders that cannot be told.
        """
        before, tree, after = template.partition("TREE")
        open_end = after.endswith("...")
        after = after.removesuffix("...")
        unclear = "..." in after or "NAME" in after or "TREE" in after or before.count("NAME") > 1
        if not tree or unclear:
            raise SpmrlError(
                f"found '{template}', expected one TREE, perhaps a NAME before it and text around "
                "it, such as 'NAME TREE' or '#NAME TREE#...'"
            )
        made = r"[ \t]*"
        for part in re.split(r"(NAME|\.\.\.|[ \t]+)", before.lstrip()):
            if part == "NAME":
                made += r"(?P<name>[^\s()]+)"
            elif part == "...":
                made += r"[^ \t]*"
            elif part.isspace():
                made += r"\t[ \t]*" if "\t" in part else r"[ \t]+"
            else:
                made += re.escape(part)
        return cls(template, re.compile(made), after.strip(), open_end)

    def match(
        self, text: str, start: int, end: int, closing: str
    ) -> tuple[str | None, int, int] | None:
        """Name of the entry between two offsets, and where its tree can be; None if it is none.

        Where anything may follow the tree, it ends with its last closing bracket.
        """
        before = self._before.match(text, start, end)
        if before is None:
            return None
        first = before.end()
        last = start + len(text[start:end].rstrip())
        if self._open_end:
            last = text.rfind(self._after or closing, first, end)
            if last < 0:
                return None
            last += 0 if self._after else len(closing)
        elif self._after:
            if not text.endswith(self._after, first, last):
                return None
            last -= len(self._after)
        return before.groupdict().get("name"), first, last


def examples(templates: Sequence[Leaf]) -> str:
    """Templates for a message."""
    return " or ".join(f"'{leaf.text}'" for leaf in templates)
