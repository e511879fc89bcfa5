"""Tables with notes, written as Markdown and LaTeX.

The same table is read in a terminal and in a paper, and must say the same in both: the numbers,
which of them are averages, what a mark means, where a figure is from. A :class:`Document` holds
tables of finished cells together with their notes, and each function here writes all of it in one
language; what a number means or how it is rounded is decided before. Unrounded numbers for other
programs are a matter of CSV, for which a frame of numbers is the better start; pages are a matter
of :mod:`~spmrl_bench.site`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import jinja2

from spmrl_bench.errors import SpmrlError
from spmrl_bench.storage.files import write_text

Note = str | Sequence[str]
"""A paragraph, or the items of a list; text between backquotes is set as code."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table of finished cells."""

    title: str  # heading, and the caption in LaTeX
    headings: Sequence[str]  # of the columns; the first says what a row is
    rows: Sequence[Sequence[str]]  # cells
    numeric: frozenset[str] = frozenset()  # names of the columns that are set flush right
    breaks: frozenset[int] = frozenset()  # rows before which a line is drawn
    # Cells (row, column) in bold, but in Markdown, as asterisks are in the way in a terminal.
    strong: frozenset[tuple[int, int]] = frozenset()
    notes: tuple[Note, ...] = ()  # below the table

    def sections(self) -> list[list[tuple[int, Sequence[str]]]]:
        """The rows with their numbers, between the lines that are drawn."""
        found: list[list[tuple[int, Sequence[str]]]] = []
        for number, cells in enumerate(self.rows):
            if number == 0 or number in self.breaks:
                found.append([])
            found[-1].append((number, cells))
        return found

    def lines(self) -> list[str]:
        """The notes, with the items of lists one by one."""
        return [line for note in self.notes for line in ([note] if isinstance(note, str) else note)]


@dataclass(frozen=True, slots=True)
class Document:
    """Tables under one title."""

    title: str  # may be empty
    intro: tuple[str, ...] = ()  # paragraphs before the first table
    tables: tuple[Table, ...] = ()


def write_tables(texts: Mapping[Path, str]) -> None:
    """Write each text to its file.

    Raises:
        SpmrlError: a file cannot be written.
    """
    for path, text in texts.items():
        try:
            write_text(path, text)
        except OSError as error:
            reason = error.strerror or error
            raise SpmrlError(f"{path}: cannot write the table: {reason}") from error


# ---- Markdown ----


def to_markdown(document: Document) -> str:
    """The document as Markdown with pipe tables, which terminals show well enough."""
    lines = [f"# {document.title}", ""] if document.title else []
    for paragraph in document.intro:
        lines += [paragraph, ""]
    for table in document.tables:
        lines += [f"## {table.title}", ""]
        if table.rows:
            lines += [_pipe_table(table), ""]
        for note in table.notes:
            lines += [note] if isinstance(note, str) else [f"- {item}" for item in note]
            lines.append("")
    return "\n".join(lines)


def _pipe_table(table: Table) -> str:
    from tabulate import tabulate

    rows = [[_piped(cell) for cell in cells] for cells in table.rows]
    align = ["right" if name in table.numeric else "left" for name in table.headings]
    headings = [_piped(name) for name in table.headings]
    return tabulate(rows, headings, tablefmt="pipe", disable_numparse=True, colalign=align)


def _piped(text: str) -> str:
    return text.replace("|", r"\|").replace("\n", " ")


# ---- LaTeX, whose form is a file beside this one ----


def to_latex(document: Document) -> str:
    r"""The document as ``table`` environments for ``\input``.

    Needs the package booktabs and nothing else; everything is written in ASCII, so it does not
    depend on an input encoding. An accent that plain LaTeX lacks is left out, and a character
    for which it has no command becomes ``?``.
    """
    filters = {
        "text": latex_text,
        "comment": _ascii,
        "note": _latex_note,
        "head": lambda table: _latex_row(
            [_latex_heading(name, name in table.numeric) for name in table.headings]
        ),
        "row": lambda cells, row, table: _latex_row(
            [_latex_cell(cell, (row, n) in table.strong) for n, cell in enumerate(cells)]
        ),
    }
    forms = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        undefined=jinja2.StrictUndefined,
        block_start_string="((%",
        block_end_string="%))",
        variable_start_string="<<",
        variable_end_string=">>",
        comment_start_string="((#",
        comment_end_string="#))",
    )
    forms.filters |= filters
    return forms.get_template("tables.tex.jinja").render(
        title=document.title, intro=document.intro, tables=document.tables
    )


# \textquotedbl would need another font encoding.
_LATEX = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "&": r"\&", "%": r"\%", "$": r"\$",
    "#": r"\#", "_": r"\_", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", '"': "''", "±": r"$\pm$",
    "\N{MINUS SIGN}": "$-$", "\N{MULTIPLICATION SIGN}": r"$\times$", "Δ": r"$\Delta$",
    "\N{EN DASH}": "--", "—": "---", "…": r"\ldots{}", "\u00a0": "~", "ß": r"{\ss}",
    "ł": r"{\l}", "Ł": r"{\L}", "ø": r"{\o}", "Ø": r"{\O}", "æ": r"{\ae}",
    "\N{LATIN SMALL LETTER DOTLESS I}": r"{\i}", "“": "``", "”": "''",
    "\N{LEFT SINGLE QUOTATION MARK}": "`", "\N{RIGHT SINGLE QUOTATION MARK}": "'",
}  # fmt: skip
# Combining marks after a letter, as Unicode decomposes accented letters.
_ACCENTS = {
    "\u0300": "`", "\u0301": "'", "\u0302": "^", "\u0303": "~", "\u0308": '"', "\u0304": "=",
    "\u0307": ".", "\u030a": "r", "\u030c": "v", "\u0306": "u", "\u030b": "H", "\u0327": "c",
}  # fmt: skip


def _latex_row(cells: Sequence[str]) -> str:
    line = " & ".join(cells)
    # At the beginning of a row, LaTeX takes these for an argument of the row end before it.
    return ("{}" if line.startswith(("[", "*")) else "") + line + r" \\"


def _latex_cell(cell: str, strong: bool) -> str:
    """Text of a cell; a deviation is set small, so that a page has room for ten columns."""
    number, sign, deviation = cell.partition(" ± ")
    text = re.sub(r"^-(?=\d)", "$-$", latex_text(number))
    if strong and number:
        text = rf"\textbf{{{text}}}"
    return text + (rf"{{\tiny$\pm${latex_text(deviation)}}}" if sign else "")


def _latex_heading(name: str, numeric: bool) -> str:
    """A heading, its last word below the others, so that narrow columns stay narrow."""
    first, _, last = name.rpartition(" ")
    if not first:
        return latex_text(name)
    inner = rf"{latex_text(first)} \\ {latex_text(last)}"
    return rf"\begin{{tabular}}[b]{{@{{}}{'r' if numeric else 'l'}@{{}}}}{inner}\end{{tabular}}"


def _latex_note(note: str) -> str:
    parts = re.split(r"`([^`]*)`", note)
    return "".join(
        # A signature has no spaces to break a line at, so allow a break after its separators.
        r"\texttt{" + re.sub(r"(\\textbar\{\}|\+)", r"\1\\allowbreak{}", latex_text(part)) + "}"
        if number % 2
        else latex_text(part)
        for number, part in enumerate(parts)
    )


def latex_text(text: str) -> str:
    """Text in ASCII with LaTeX's special characters and accents as commands."""
    written: list[str] = []
    for character in unicodedata.normalize("NFC", text):
        if character in _LATEX:
            written.append(_LATEX[character])
            continue
        base, *marks = list(unicodedata.normalize("NFD", character))
        known = [_ACCENTS[mark] for mark in marks if mark in _ACCENTS]
        if marks and base.isascii():
            letter = {"i": r"\i", "j": r"\j"}.get(base, base) if known else base
            for accent in known:
                letter = rf"\{accent}{{{letter}}}"
            written.append(letter)
        elif character.isascii():
            written.append(character if character.isprintable() else " ")
        else:
            written.append("?")
    return "".join(written)


def _ascii(text: str) -> str:
    """Text for a comment, on one line."""
    plain = unicodedata.normalize("NFKD", text.replace("±", "+-").replace("`", ""))
    return " ".join(plain.encode("ascii", "ignore").decode().split())
