"""Tables of finished cells with notes, written as Markdown, LaTeX and CSV."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from spmrl_bench.errors import RecordError
from spmrl_bench.storage.files import write_bytes

if TYPE_CHECKING:
    import jinja2
    from pandas import DataFrame

_FORMULA = re.compile(r"[=@\t\r]|[+-](?![\d.]|$)")

Note = str | Sequence[str]  # a paragraph, or a list's items; between backquotes stands code


@dataclass(frozen=True, slots=True)
class Table:
    title: str  # heading, and the caption in LaTeX
    headings: Sequence[str]  # of the columns; the first says what a row is
    rows: Sequence[Sequence[str]]  # cells
    numeric: frozenset[str] = frozenset()  # names of the columns that are set flush right
    breaks: frozenset[int] = frozenset()  # rows before which a line is drawn
    # Cells (row, column) in bold, but in Markdown, as asterisks are in the way in a terminal.
    strong: frozenset[tuple[int, int]] = frozenset()
    notes: tuple[Note, ...] = ()  # below the table


@dataclass(frozen=True, slots=True)
class Document:
    title: str  # may be empty
    intro: tuple[str, ...] = ()  # paragraphs before the first table
    tables: tuple[Table, ...] = ()


def write_file(path: Path, data: bytes) -> None:
    """Write a table or a picture; a RecordError where it cannot be written."""
    try:
        write_bytes(path, data)
    except OSError as error:
        raise RecordError(f"{path}: cannot be written: {error.strerror or error}") from None


def to_markdown(document: Document) -> str:
    from tabulate import tabulate

    lines = [f"# {document.title}", ""] if document.title else []
    for paragraph in document.intro:
        lines += [paragraph, ""]
    for table in document.tables:
        lines += [f"## {table.title}", ""]
        if table.rows:
            rows = [
                [cell.replace("|", r"\|").replace("\n", " ") for cell in cells]
                for cells in (table.headings, *table.rows)
            ]
            align = ["right" if name in table.numeric else "left" for name in table.headings]
            options = {"tablefmt": "pipe", "disable_numparse": True, "colalign": align}
            lines += [tabulate(rows[1:], rows[0], **options), ""]
        for note in table.notes:
            lines += [note] if isinstance(note, str) else [f"- {item}" for item in note]
            lines.append("")
    return "\n".join(lines)


def to_csv(document: Document) -> str:
    """The cells of all tables as CSV; the first column has the title of the table."""
    import pandas as pd

    frames = [pd.DataFrame(columns=["table"])]
    for table in document.tables:
        rows = [(table.title, *cells) for cells in table.rows]
        frames.append(pd.DataFrame(rows, columns=["table", *table.headings]))
    return csv_text(pd.concat(frames))


def csv_text(frame: DataFrame) -> str:
    """A frame as CSV, in which no name is a formula of a spreadsheet."""

    def cell(value: object) -> object:
        return f"'{value}" if isinstance(value, str) and _FORMULA.match(value) else value

    return frame.map(cell).to_csv(index=False, lineterminator="\n")


_LATEX = str.maketrans({
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "&": r"\&", "%": r"\%", "$": r"\$",
    "#": r"\#", "_": r"\_", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", "\n": " ", "±": r"$\pm$",
    "Δ": r"$\Delta$", "\N{MINUS SIGN}": "$-$", "\N{MULTIPLICATION SIGN}": r"$\times$",
})  # fmt: skip


def to_latex(document: Document) -> str:
    r"""The document as ``table*`` environments for ``\input``, in UTF-8; they need booktabs."""
    lines = [*_comments(document.title, *document.intro), r"% Needs \usepackage{booktabs}."]
    for table in document.tables:
        several = ([note] if isinstance(note, str) else note for note in table.notes)
        notes = [*chain.from_iterable(several)]
        if not table.rows:
            lines += _comments("", table.title, *notes)
            continue
        kinds = "".join("r" if name in table.numeric else "l" for name in table.headings)
        # With the smaller size, ten columns fit the width of a page.
        size = r"\scriptsize" if len(table.headings) > 7 else r"\footnotesize"
        lines += [
            "",
            r"\begin{table*}",
            rf"\centering{size}\setlength{{\tabcolsep}}{{2pt}}",
            rf"\caption{{{table.title.translate(_LATEX)}}}",
            rf"\begin{{tabular}}{{{kinds}}}",
            r"\toprule",
            _latex_row(table.headings, ()),
        ]
        for number, cells in enumerate(table.rows):
            lines += [r"\midrule"] if number == 0 or number in table.breaks else []
            lines.append(_latex_row(cells, [n for row, n in table.strong if row == number]))
        lines += [r"\bottomrule", r"\end{tabular}", ""]
        lines += [r"\smallskip", r"\parbox{\textwidth}{\raggedright\scriptsize"] if notes else []
        lines += [rf"{_latex_note(line)}\par" for line in notes]
        lines += ["}"] if notes else []
        lines.append(r"\end{table*}")
    return "\n".join([*lines, ""])


def _comments(*texts: str) -> list[str]:
    return [f"% {' '.join(text.split())}" for text in texts]


def _latex_row(cells: Sequence[str], strong: Sequence[int]) -> str:
    texts = [re.sub(r"^-(?=\d)", "$-$", cell.translate(_LATEX)) for cell in cells]
    bold = [rf"\textbf{{{text}}}" if n in strong and text else text for n, text in enumerate(texts)]
    line = " & ".join(bold)
    # At the beginning of a row, LaTeX takes these for an argument of the row end before it.
    return ("{}" if line.startswith(("[", "*")) else "") + line + r" \\"


def _latex_note(note: str) -> str:
    parts = [part.translate(_LATEX) for part in re.split(r"`([^`]*)`", note)]
    # A signature has no spaces to break a line at, so allow a break after its separators.
    broken = (re.sub(r"(\\textbar\{\}|\+)", r"\1\\allowbreak{}", part) for part in parts[1::2])
    parts[1::2] = [rf"\texttt{{{part}}}" for part in broken]
    return "".join(parts)


def templates(folder: Path, *, escape: bool = True) -> jinja2.Environment:
    """The templates of a folder, in which nothing may be missing and, for HTML, all is escaped."""
    import jinja2

    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(folder),
        autoescape=escape,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
