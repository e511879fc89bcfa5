"""Trees in any bracket dialect that options describe.

Plain brackets go to the reader of their own, which is many times faster. Of all others a
:class:`~spmrl_bench.readers.dialect.Dialect` says how a leaf is written and what is no part of a
tree; this reader follows it. A mistake costs its own tree: reading goes on at the next entry, or
at the next bracket that begins a line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from os import PathLike
from typing import Any

from spmrl_bench.errors import ReadError
from spmrl_bench.readers.bracket_nodes import BracketReader, pieces_of
from spmrl_bench.readers.bracket_text import atoms, lines, regions_at_margin, shown
from spmrl_bench.readers.brackets import read_brackets
from spmrl_bench.readers.building import EMPTY
from spmrl_bench.readers.dialect import Dialect, is_plain
from spmrl_bench.readers.label_first import LabelFirstReader
from spmrl_bench.readers.margin import trees_begin_at_margin
from spmrl_bench.readers.templates import examples
from spmrl_bench.readers.text import OnError, fail, read_text
from spmrl_bench.trees.tree import Tree


def read_described(
    path: str | PathLike[str],
    *,
    encoding: str = "utf-8",
    escapes: str = "ptb",
    prepare: Callable[[str], str] = str,
    on_error: OnError = fail,
    **options: Any,
) -> Iterator[Tree]:
    """The trees of a file in a dialect, in order.

    Args:
        path, encoding: of the file.
        escapes: what undoes the escapes of its words, one of
            :data:`~spmrl_bench.readers.dialect.ESCAPE_NAMES`.
        prepare: changes its text before it is split into pieces.
        on_error: what to do with a malformed tree.
        options: those of :data:`~spmrl_bench.readers.dialect.DEFAULTS`.

    Raises:
        ReadError: the file cannot be read or decoded; or from ``on_error``: brackets do not
            match, a line is no entry, a leaf is not as described.
        SpmrlError: an option has a mistake.
    """
    text = prepare(read_text(path, encoding))
    return read_described_text(text, path=path, escapes=escapes, on_error=on_error, **options)


def read_described_text(
    text: str,
    *,
    path: str | PathLike[str],
    escapes: str = "ptb",
    on_error: OnError = fail,
    **options: Any,
) -> Iterator[Tree]:
    """The trees of a text; as :func:`read_described`, with the file's name for messages."""
    if is_plain(escapes, options):
        return read_brackets(text, path=path, escapes=escapes, on_error=on_error)
    dialect = Dialect.of(escapes, **options)
    for beginning in dialect.comment:
        comment = re.compile(rf"^[ \t]*{re.escape(beginning)}[^\n]*", re.MULTILINE)
        text = comment.sub(lambda found: " " * len(found[0]), text)  # places stay
    if dialect.node.label_first:
        return LabelFirstReader(text, path, on_error, dialect).all_trees()
    return _DescribedReader(text, path, on_error, dialect).all_trees()


_BACKSLASHED = re.compile(r"\\\S?")
_MOST_KNOWN = 1 << 18  # leaves


class _DescribedReader(BracketReader):
    def __init__(
        self, text: str, path: str | PathLike[str], on_error: OnError, dialect: Dialect
    ) -> None:
        super().__init__(text, path, on_error)
        node = dialect.node
        self.pieces = pieces_of(node.opening, node.closing, backslashed=dialect.backslashed)
        self.wrappers = dialect.wrappers
        self.dropped = dialect.drop
        self._dialect = dialect
        self._by_kind = {
            kind: [leaf for leaf in dialect.leaves if leaf.kind == kind]
            for kind in ("flat", "nested", "bare")
        }
        self._others = any(leaf.others for leaf in self._by_kind["nested"])
        self._known: dict[tuple[str, str], tuple[str, str, str]] = dialect.known
        self._decoded: dict[str, str] = {}
        if len(self._known) > _MOST_KNOWN:
            self._known.clear()
        self._needs_name = False
        if dialect.entries:
            self.limit = "the end of the line"
            self.one_name = True
        elif dialect.id:
            opening, name = re.escape(node.opening), re.escape(dialect.id)
            self._needs_name = re.search(rf"{opening}\s*{name}\s", text) is not None

    def all_trees(self) -> Iterator[Tree]:
        """The trees of the text."""
        if self._dialect.entries:
            filled = ((a, b) for a, b in lines(self._text) if not self._text[a:b].isspace())
            yield from self.trees_of_regions((a, b) for a, b in filled if a < b)
            return
        brackets = self._text
        if self._dialect.backslashed:
            brackets = _BACKSLASHED.sub(lambda found: "  "[: len(found[0])], brackets)
        opening, closing = self._dialect.node.opening, self._dialect.node.closing
        if trees_begin_at_margin(brackets, opening, closing):
            yield from self.trees_of_regions(regions_at_margin(brackets, opening))
            return
        try:
            yield from self.trees(0, len(self._text))
        except ReadError as error:
            self.leave_out(error)
            rest = brackets.find(f"\n{opening}", self._start) + 1
            if rest:
                yield from self.trees_of_regions(regions_at_margin(brackets, opening, rest))

    def within(self, start: int, end: int) -> tuple[int, int]:
        for entry in self._dialect.entries:
            found = entry.match(self._text, start, end, self._dialect.node.closing)
            if found is not None:
                self.name, first, last = found
                return first, last
        if self._dialect.entries:
            expected = " or ".join(f"'{entry.text}'" for entry in self._dialect.entries)
            self.fail(start, f"found '{shown(self._text[start:end])}', expected {expected}")
        return start, end

    def leaf(self, label: str, rest: str) -> str | None:
        known = self._known.get((label, rest))
        if known is None:
            if label in self.dropped:
                return self.left_out(label, rest)
            known = self._known[label, rest] = self._meaning(label, rest)
        kind, first, second = known
        if kind == "word":
            self.builder.word(first, second)
        elif kind == "empty":
            self.builder.empty(first, second)
        elif kind == "part":
            return self._part(first, second)
        elif kind == "bare":
            self.builder.open(label)
            problem = self.beside(rest)
            self.builder.close()
            return problem
        elif kind == "wrong":
            return first
        return None

    def _meaning(self, label: str, rest: str) -> tuple[str, str, str]:
        """What a bracket without brackets in it is, and up to two texts."""
        dialect = self._dialect
        parts = atoms(rest)
        content = " ".join((label, *parts) if label else parts)
        for leaf in self._by_kind["nested"]:
            found = leaf.match(content)
            if found is not None:
                return ("part", found.word, content) if found.word else ("other", "", "")
        if label and len(parts) == 1 and dialect.is_empty(parts[0], label):
            return "empty", label, parts[0]
        for leaf in self._by_kind["flat"]:
            found = leaf.match(content)
            if found is not None:
                tag, word = found.tag or "_", found.word or ""
                if tag in dialect.empty_tags or (not leaf.joined and dialect.is_empty(word, tag)):
                    return "word", EMPTY, word
                return "word", tag, dialect.decode(word)
        if self._by_kind["bare"] and label and parts:
            return "bare", "", ""
        if self._others and content:
            return "other", "", ""
        opening, closing = dialect.node.opening, dialect.node.closing
        content = shown(content)
        expected = examples(dialect.leaves)
        return "wrong", f"found '{opening}{content}{closing}', expected {expected}", ""

    def _part(self, text: str, content: str) -> str | None:
        """Add the word of a leaf whose parts have brackets; the innermost open node is its tag."""
        builder, dialect = self.builder, self._dialect
        label = builder.label
        if label and dialect.is_empty(text, label):
            builder.word(EMPTY, text)
            return None
        if not label and not builder.in_tag:
            return self._misplaced(content, "without a tag")
        tag = EMPTY if label in dialect.empty_tags else None
        decoded = self._decoded.get(text)
        if decoded is None:
            decoded = self._decoded[text] = dialect.decode(text)
        if not builder.turn_to_tag(decoded, tag):
            return self._misplaced(content, "beside others")
        return None

    def _misplaced(self, content: str, where: str) -> str:
        expected = examples(self._by_kind["nested"])
        return f"found the word '{shown(content)}' {where}, expected {expected}"

    def beside(self, text: str) -> str | None:
        bare = self._by_kind["bare"]
        if not bare:
            return super().beside(text)
        for atom in atoms(text):
            for leaf in bare:
                found = leaf.match(atom)
                if found is None:
                    continue
                tag, word = found.tag or "_", found.word or ""
                if tag in self._dialect.empty_tags or self._dialect.is_empty(word, tag):
                    self.builder.word(EMPTY, word)
                else:
                    self.builder.word(tag, self._dialect.decode(word))
                break
            else:
                return f"found '{shown(atom)}', expected {examples(self._dialect.leaves)}"
        return None

    def left_out(self, label: str, text: str) -> str | None:
        self.builder.skip()
        if label != self._dialect.id:
            return None
        name = " ".join(atoms(text))
        if self.name is not None:
            return f"found a second {label}, '{shown(name)}'; is a tree not closed?"
        if not name:
            return f"found '({label})' without a name"
        self.name = name
        return None

    def whole(self) -> str | None:
        if self._needs_name and self.name is None:
            name = self._dialect.id
            return f"found a tree without '({name} name)', which others of the file have"
        return None
