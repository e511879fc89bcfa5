"""The blocks of code in the documents, and the commands in them.

A block is fenced, or indented by four spaces behind an empty line. In front of one that is not to
be run stands a comment that says why: ``<!-- not run: it trains for minutes -->``.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(
    path.relative_to(ROOT).as_posix()
    for path in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md"))
)

_MARKER = re.compile(r"<!-- not run: (.+) -->")
_ASSIGNMENT = re.compile(r"[A-Z_]+=")
#: Programs whose lines make an indented block one of commands.
PROGRAMS = ("spmrl-bench", "make", "python", "pip", "jupyter", "mkdocs", "export", "echo")


@dataclass(frozen=True)
class Block:
    """A block of code: where it begins, its language, and why it is not run, if it is not."""

    page: str
    line: int
    language: str
    text: str
    reason: str | None

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


@dataclass(frozen=True)
class Command:
    """One command of a block, as a shell would start it."""

    place: str  # page and line
    program: str  # without its folder
    arguments: tuple[str, ...]  # without what leads its output elsewhere
    stdin: str | None = None  # what ``echo`` in front of it writes
    output: str | None = None  # the file that its output goes to, if not the terminal

    def __str__(self) -> str:
        return f"{self.place} {self.program} {' '.join(self.arguments)}"


def blocks_of(page: str, text: str) -> Iterator[Block]:
    """The blocks of a page."""
    lines = text.splitlines()
    number = 0
    reason: str | None = None
    while number < len(lines):
        line = lines[number]
        if line.startswith("```"):
            end = next(k for k in range(number + 1, len(lines)) if lines[k].startswith("```"))
            yield Block(page, number + 1, line[3:].strip(), _text(lines, number + 1, end), reason)
            number, reason = end + 1, None
        elif line.startswith("    ") and (number == 0 or not lines[number - 1].strip()):
            end = number
            while end < len(lines) and (lines[end].startswith("    ") or not lines[end].strip()):
                end += 1
            block = _text([each[4:] for each in lines], number, end)
            language = "sh" if any(_is_command(each) for each in block.splitlines()) else ""
            yield Block(page, number + 1, language, block, reason)
            number, reason = end, None
        else:
            if found := _MARKER.fullmatch(line.strip()):
                reason = found[1]
            elif line.strip():
                reason = None
            number += 1


def _text(lines: list[str], start: int, end: int) -> str:
    return "\n".join(lines[start:end]).rstrip() + "\n"


def _is_command(line: str) -> bool:
    words = [
        word for word in line.removeprefix("$ ").split(maxsplit=3) if not _ASSIGNMENT.match(word)
    ]
    return bool(words) and words[0].rpartition("/")[2] in PROGRAMS


def commands_of(block: Block) -> Iterator[Command]:
    """The commands of a block, in their order; those behind ``$`` where there are any such.

    Raises:
        ValueError: a line has a command that cannot be told apart.
    """
    joined = block.text.replace("\\\n", " ")
    prompted = [line[2:] for line in joined.splitlines() if line.startswith("$ ")]
    for line in prompted or joined.splitlines():
        lexer = shlex.shlex(line, posix=True, punctuation_chars="|><&;")
        lexer.commenters, lexer.whitespace_split = "#", True
        stdin = None
        for words, output in _pipeline(list(lexer)):
            while words and _ASSIGNMENT.match(words[0]):
                words = words[1:]
            if not words:
                continue
            program = words[0].rpartition("/")[2]
            if program not in PROGRAMS:
                raise ValueError(f"{block}: no command that is known: {line}")
            if program == "echo":
                stdin = " ".join(words[1:]) + "\n"
            elif program != "export":
                yield Command(str(block), program, tuple(words[1:]), stdin, output)


def _pipeline(words: list[str]) -> Iterator[tuple[list[str], str | None]]:
    """The commands between bars, each with the file that its output goes to."""
    found: list[str] = []
    output: str | None = None
    following = iter(words)
    for word in following:
        if word in ("|", "&&", ";"):
            yield found, output
            found, output = [], None
        elif word == ">":
            output = next(following)
        else:
            found.append(word)
    yield found, output


def documents() -> list[Block]:
    """All blocks of all pages."""
    return [
        block
        for page in PAGES
        for block in blocks_of(page, (ROOT / page).read_text(encoding="utf-8"))
    ]
