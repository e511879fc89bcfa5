"""What both ways of looking for errors list, and the three forms in which it is written.

A list is for reading at a terminal, a page for going through it with others, and a table for
programs: which of them a file becomes follows from the ending of its name.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from spmrl_bench.errors import RecordError, SpmrlError, remedy
from spmrl_bench.storage.files import write_text
from spmrl_bench.treebanks.reading import SentencePlace

#: Endings of file names, and what they stand for.
ENDINGS = {".txt": "text", ".html": "page", ".csv": "table"}


@dataclass(frozen=True, slots=True)
class Heading:
    """What a list is of: a line, paragraphs of how it was made, and whose sentences it has.

    If that is known, ``origins`` says where each sentence of the split stands.
    """

    title: str
    notes: tuple[str, ...]
    treebank: str
    split: str
    origins: Sequence[SentencePlace] | None = None

    def sentence(self, number: int) -> str:
        where = self.place(number)
        name = f"{self.treebank} {self.split}, sentence {number}"
        return f"{name} ({where})" if where else name

    def place(self, number: int) -> str:
        """Where a sentence, numbered from 1, stands: file, and number or name there, or ''."""
        if self.origins is None:
            return ""
        origin = self.origins[number - 1]
        return f"{origin.path.name}, sentence {origin.name}"


def check_ending(path: Path) -> str:
    """What a file of this name is to hold, one of the values of ENDINGS.

    Raises:
        SpmrlError: its name ends otherwise.
    """
    if (form := ENDINGS.get(path.suffix.lower())) is None:
        raise SpmrlError(
            f"{path}: what is written follows from the ending of the name: .txt is a list for "
            "reading, .html a page and .csv a table"
        )
    return form


def write_list(path: Path, forms: Mapping[str, Callable[[], str]]) -> None:
    """Write one of the forms, by the ending of the file's name; RecordError where it cannot be."""
    text = forms[check_ending(path)]()
    try:
        write_text(path, text)
    except OSError as error:
        raise RecordError(
            f"{path}: cannot be written: {error.strerror}. {remedy(error)}, or name another file"
        ) from None


def csv_text(headings: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table as comma-separated values, with numbers that are short and say all that is known."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(headings)
    for row in rows:
        writer.writerow([f"{cell:.6g}" if isinstance(cell, float) else cell for cell in row])
    return buffer.getvalue()
