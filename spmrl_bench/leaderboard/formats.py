"""Tables with notes, written as Markdown, LaTeX and HTML.

The same table is read in a terminal, in a paper and in a browser, and must say the same in all
three: the numbers, which of them are averages, what a mark means, where a figure is from. A
:class:`Document` holds tables of finished cells together with their notes, and each function
here writes all of it in one language; what a number means or how it is rounded is decided
before. Unrounded numbers for other programs are a matter of CSV, for which a frame of numbers
is the better start.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import pandas as pd


@dataclass(frozen=True, slots=True)
class Table:
    """A table of finished cells.

    Attributes:
        title: heading, and the caption in HTML and LaTeX.
        frame: text in every cell; the first column says what a row is. May be empty.
        numeric: names of the columns that are set flush right.
        breaks: numbers of the rows before which a line is drawn, such as before averages.
        strong: ``(row, column)`` positions of the cells that are set in bold; in Markdown they
            are plain, because in a terminal the asterisks are in the way.
        notes: sentences below the table; text between backquotes is set as code.
        items: a list below the notes, such as signatures.
    """

    title: str
    frame: pd.DataFrame
    numeric: frozenset[str] = frozenset()
    breaks: frozenset[int] = frozenset()
    strong: frozenset[tuple[int, int]] = frozenset()
    notes: tuple[str, ...] = ()
    items: tuple[str, ...] = ()

    def rows(self) -> list[list[str]]:
        """The cells, row by row."""
        return [[str(cell) for cell in row] for row in self.frame.to_numpy().tolist()]

    def headings(self) -> list[str]:
        """Names of the columns."""
        return [str(name) for name in self.frame.columns]


@dataclass(frozen=True, slots=True)
class Document:
    """Tables under one title.

    Attributes:
        title: of the whole.
        intro: paragraphs before the first table.
        tables: in order.
    """

    title: str
    intro: tuple[str, ...] = ()
    tables: tuple[Table, ...] = field(default_factory=tuple)


# ---- Markdown ----


def to_markdown(document: Document) -> str:
    """The document as Markdown with pipe tables, which terminals show well enough."""
    lines = [f"# {document.title}", ""]
    for paragraph in document.intro:
        lines += [paragraph, ""]
    for table in document.tables:
        lines += [f"## {table.title}", ""]
        if len(table.frame):
            lines += [_pipe_table(table), ""]
        for note in table.notes:
            lines += [note, ""]
        if table.items:
            lines += [*(f"- {item}" for item in table.items), ""]
    return "\n".join(lines)


def _pipe_table(table: Table) -> str:
    from tabulate import tabulate

    rows = [[_piped(cell) for cell in cells] for cells in table.rows()]
    align = ["right" if name in table.numeric else "left" for name in table.headings()]
    headings = [_piped(name) for name in table.headings()]
    return tabulate(rows, headings, tablefmt="pipe", disable_numparse=True, colalign=align)


def _piped(text: str) -> str:
    return text.replace("|", r"\|").replace("\n", " ")


def _signed(cell: str, minus: str) -> str:
    """A cell that is a negative number with a minus instead of the hyphen."""
    return re.sub(r"^-(?=\d)", lambda _: minus, cell)


# ---- LaTeX ----

_LATEX = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': "''",  # \textquotedbl would need another font encoding
    "±": r"$\pm$",
    "\N{MINUS SIGN}": "$-$",
    "\N{MULTIPLICATION SIGN}": r"$\times$",
    "Δ": r"$\Delta$",
    "\N{EN DASH}": "--",
    "—": "---",
    "…": r"\ldots{}",
    "\u00a0": "~",
    "ß": r"{\ss}",
    "ł": r"{\l}",
    "Ł": r"{\L}",
    "ø": r"{\o}",
    "Ø": r"{\O}",
    "æ": r"{\ae}",
    "\N{LATIN SMALL LETTER DOTLESS I}": r"{\i}",
    "“": "``",
    "”": "''",
    "\N{LEFT SINGLE QUOTATION MARK}": "`",
    "\N{RIGHT SINGLE QUOTATION MARK}": "'",
}
# Size and space between columns, with which ten columns fit the width of a page.
_USUAL, _NARROW = (
    r"\footnotesize\setlength{\tabcolsep}{4pt}",
    r"\scriptsize\setlength{\tabcolsep}{1.5pt}",
)
_MANY = 7
# Combining marks after a letter, as Unicode decomposes accented letters.
_ACCENTS = {
    "\u0300": "`",
    "\u0301": "'",
    "\u0302": "^",
    "\u0303": "~",
    "\u0308": '"',
    "\u0304": "=",
    "\u0307": ".",
    "\u030a": "r",
    "\u030c": "v",
    "\u0306": "u",
    "\u030b": "H",
    "\u0327": "c",
}


def to_latex(document: Document) -> str:
    r"""The document as ``table`` environments for ``\input``.

    Needs the package booktabs and nothing else; everything is written in ASCII, so it does not
    depend on an input encoding. An accent that plain LaTeX lacks is left out, and a character
    for which it has no command becomes ``?``.
    """
    lines = [
        f"% {_ascii(document.title)}",
        r"% Needs \usepackage{booktabs}.",
    ]
    lines += [f"% {_ascii(paragraph)}" for paragraph in document.intro]
    for table in document.tables:
        lines += ["", *_latex_table(table)]
    return "\n".join(lines) + "\n"


def _latex_table(table: Table) -> list[str]:
    if not len(table.frame):
        return [f"% {_ascii(text)}" for text in (table.title, *table.notes, *table.items)]
    headings = table.headings()
    columns = "".join("r" if name in table.numeric else "l" for name in headings)
    lines = [
        r"\begin{table*}",
        rf"\centering{_NARROW if len(headings) > _MANY else _USUAL}",
        rf"\caption{{{latex_text(table.title)}}}",
        rf"\begin{{tabular}}{{{columns}}}",
        r"\toprule",
        _latex_row(_latex_heading(name, name in table.numeric) for name in headings),
        r"\midrule",
    ]
    for row, cells in enumerate(table.rows()):
        if row in table.breaks and row:
            lines.append(r"\midrule")
        written = [
            _latex_cell(cell, (row, column) in table.strong) for column, cell in enumerate(cells)
        ]
        lines.append(_latex_row(written))
    lines += [r"\bottomrule", r"\end{tabular}"]
    if table.notes or table.items:
        lines += ["", r"\smallskip"]
        lines += [r"\parbox{\textwidth}{\raggedright\scriptsize"]
        lines += [rf"{_latex_note(note)}\par" for note in (*table.notes, *table.items)]
        lines += ["}"]
    return [*lines, r"\end{table*}"]


def _latex_row(cells: Iterable[str]) -> str:
    line = " & ".join(cells)
    # At the beginning of a row, LaTeX takes these for an argument of the row end before it.
    return ("{}" if line.startswith(("[", "*")) else "") + line + r" \\"


def _latex_cell(cell: str, strong: bool) -> str:
    """Text of a cell; a deviation is set small, so that a page has room for ten columns."""
    number, sign, deviation = cell.partition(" ± ")
    text = _signed(latex_text(number), "$-$")
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


# ---- HTML ----

_STYLE = """
:root { color-scheme: light dark; --ink: #1c2430; --soft: #5a6676; --paper: #fdfdfb;
  --line: #d5dae1; --band: #f1f4f7; --accent: #1f5f8b; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e8ee; --soft: #9fabba;
  --paper: #15191f; --line: #343c47; --band: #1d232b; --accent: #7fbce6; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 2.5rem 1.25rem 4rem; max-width: 80rem; color: var(--ink);
  background: var(--paper); font: 16px/1.55 system-ui, -apple-system, "Segoe UI", sans-serif; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: 0 0 1rem; }
section { margin-top: 2.75rem; }
p, li { max-width: 70ch; }
.intro { color: var(--soft); }
.wide { overflow-x: auto; }
.wide:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
table { border-collapse: collapse; font-size: .92rem; font-variant-numeric: tabular-nums;
  border-bottom: 2px solid var(--ink); }
caption { text-align: left; white-space: nowrap; font-size: 1.2rem; font-weight: 650;
  padding-bottom: .6rem; }
th, td { padding: .35rem .7rem; text-align: left; white-space: nowrap; }
thead th { white-space: normal; vertical-align: bottom; border-top: 2px solid var(--ink);
  border-bottom: 1px solid var(--ink); font-weight: 600; }
tbody th { font-weight: 500; }
tbody tr:nth-child(even) { background: var(--band); }
tbody + tbody { border-top: 1px solid var(--ink); }
.number { text-align: right; }
strong { color: var(--accent); }
.notes { font-size: .88rem; color: var(--soft); }
.notes code { font-size: .95em; overflow-wrap: anywhere; }
@media print { body { max-width: none; padding: 0; } .wide { overflow: visible; } }
"""


def to_html(document: Document) -> str:
    """The document as one page that needs no other file and runs no script.

    Colours follow the reader's choice of light or dark. Every table has a caption and scopes of
    its header cells, and can be scrolled with the keyboard where it is wider than the window.
    """
    lines = [
        "<!DOCTYPE html>",
        '<html lang="en">',
        "<head>",
        '<meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{html.escape(document.title)}</title>",
        f"<style>{_STYLE}</style>",
        "</head>",
        "<body>",
        "<main>",
        f"<h1>{html.escape(document.title)}</h1>",
        *(f'<p class="intro">{_html_note(text)}</p>' for text in document.intro),
    ]
    for number, table in enumerate(document.tables, start=1):
        lines += _html_table(table, f"table-{number}")
    return "\n".join([*lines, "</main>", "</body>", "</html>"]) + "\n"


def _html_table(table: Table, name: str) -> list[str]:
    lines = ["<section>"]
    if len(table.frame):
        kinds = [' class="number"' if one in table.numeric else "" for one in table.headings()]
        lines += [
            f'<div class="wide" role="region" tabindex="0" aria-labelledby="{name}">',
            "<table>",
            f'<caption id="{name}">{html.escape(table.title)}</caption>',
            "<thead>",
            "<tr>",
            *(
                f'<th scope="col"{kind}>{html.escape(heading)}</th>'
                for heading, kind in zip(table.headings(), kinds, strict=True)
            ),
            "</tr>",
            "</thead>",
            *_html_body(table, kinds),
            "</table>",
            "</div>",
        ]
    else:
        lines.append(f"<h2>{html.escape(table.title)}</h2>")
    if table.notes or table.items:
        lines.append('<div class="notes">')
        lines += [f"<p>{_html_note(note)}</p>" for note in table.notes]
        lines += _html_list(table.items)
        lines.append("</div>")
    return [*lines, "</section>"]


def _html_body(table: Table, kinds: Sequence[str]) -> list[str]:
    lines = ["<tbody>"]
    for row, cells in enumerate(table.rows()):
        if row in table.breaks and row:
            lines += ["</tbody>", "<tbody>"]
        lines.append("<tr>")
        for column, (cell, kind) in enumerate(zip(cells, kinds, strict=True)):
            text = _signed(html.escape(cell), "&minus;")
            if (row, column) in table.strong and cell:
                text = f"<strong>{text}</strong>"
            tag, scope = ("th", ' scope="row"') if column == 0 else ("td", "")
            lines.append(f"<{tag}{scope}{kind}>{text}</{tag}>")
        lines.append("</tr>")
    return [*lines, "</tbody>"]


def _html_list(items: Iterable[str]) -> list[str]:
    entries = [f"<li>{_html_note(item)}</li>" for item in items]
    return ["<ul>", *entries, "</ul>"] if entries else []


def _html_note(note: str) -> str:
    return re.sub(r"`([^`]*)`", r"<code>\1</code>", html.escape(note, quote=False))
