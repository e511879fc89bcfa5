"""Evalb parameter files and policies: which brackets, tags and words a bracket score counts.

The C programs ignore what they do not understand in a parameter file; here every line must make
sense. EVALB and EVALB_SPMRL count differently under the same keys (:class:`Program`), so a file
declares its program in a line that both skip as a comment::

    #PROGRAM EVALB_SPMRL

A file without such a line is EVALB's, unless the caller names the program.

What a parameter file cannot say, such as what becomes of a sentence without a parse, is up to a
:class:`Policy`. The published scores leave such sentences out in silence.
"""

from __future__ import annotations

import hashlib
import os
import re
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import combinations
from pathlib import Path

from spmrl_bench.errors import ScoreError, unknown_name
from spmrl_bench.storage.paths import data_dir

_DECLARATION = "#PROGRAM"
_NUMBERS = {"DEBUG": 0, "MAX_ERROR": 10, "CUTOFF_LEN": 40, "LABELED": 1}
_LABELS = ("DELETE_LABEL", "DELETE_LABEL_FOR_LENGTH", "QUOTE_LABEL")
_PAIRS = ("EQ_LABEL", "EQ_WORD")


class Program(StrEnum):
    """The C program whose conventions a score follows.

    ``EVALB`` removes words whose tag is a deleted label, compares tags as they stand, and cuts
    the label of a constituent at its first ``-`` or ``=``. ``EVALB_SPMRL`` removes no words and
    cuts at ``#`` too (morphological features), in tags and in the deleted labels as well; so
    its ``DELETE_LABEL -NONE-`` stands for every label that is empty once cut.
    """

    EVALB = "EVALB"
    EVALB_SPMRL = "EVALB_SPMRL"


class MissingParse(StrEnum):
    """What a test tree without words stands for.

    ``SKIP`` leaves the sentence out of every figure, as both C programs do. ``COUNT`` scores it
    as a tree without brackets: all gold brackets are missed and all tags wrong. That is the
    option ``-X`` of EVALB_SPMRL as it was meant (:func:`.evalb.count_missed_as_program`).
    """

    SKIP = "skip"
    COUNT = "count"


class Punctuation(StrEnum):
    """Whose tags decide which words are removed, where the parameter file removes any.

    ``BY_TAG``: each side by its own tags, as EVALB does; a full stop with another tag makes
    the sides differ in length, and the sentence is lost. ``BY_GOLD``: the positions of gold's
    punctuation are removed on both sides, whatever the parser tagged there (empty elements
    still go by tag, since a parser has none). No quotation mark needs to be put back then.
    """

    BY_TAG = "by-tag"
    BY_GOLD = "by-gold"


@dataclass(frozen=True, slots=True)
class Policy:
    """Both choices; the defaults are those of the published scores."""

    missing_parse: MissingParse = MissingParse.SKIP
    punctuation: Punctuation = Punctuation.BY_TAG


PUBLISHED = Policy()


@dataclass(frozen=True, slots=True)
class Parameters:
    """One parameter file."""

    name: str  # of the file without .prm
    program: Program  # whose conventions the other values are read under
    max_error: int  # errors after which the C program gives up; no score of ours depends on it
    cutoff_len: int  # largest length in words of the second summary
    labeled: bool  # False to compare spans only
    delete_labels: frozenset[str]  # of constituents that do not count
    delete_labels_for_length: frozenset[str]  # tags that do not count for the length
    quote_labels: frozenset[str]  # tags of quotation marks that may be deleted on one side only
    eq_labels: frozenset[tuple[str, str]]  # pairs that are the same label
    eq_words: frozenset[tuple[str, str]]  # pairs that are the same word
    debug: int = 0  # debug level of the C program; without effect here
    notes: tuple[str, ...] = field(default=(), compare=False)  # to be told to the user

    @property
    def sha256(self) -> str:
        """Hex digest of everything that can change a score, so of neither the name nor the comments
        nor the order of the lines."""
        labels = self.delete_labels, self.delete_labels_for_length, self.quote_labels
        pairs = self.eq_labels, self.eq_words
        content: list[object] = [self.program.value, self.cutoff_len, self.labeled]
        content += [*map(sorted, labels), *map(sorted, pairs)]
        return hashlib.sha256(repr(content).encode()).hexdigest()


def load_prm(
    name_or_path: str | os.PathLike[str], program: Program | str | None = None
) -> Parameters:
    """Return the parameters of a file of this package (``"COLLINS"``) or of any file (a path).

    Text without a folder part and without ``.prm`` is a name. ``program``, in any case, is for a
    file that does not declare its own and is not EVALB's. Raise a ScoreError if the name or file
    does not exist, a line is unknown, incomplete or contradicts another, or the program is unknown
    or declared otherwise.
    """
    path = Path(name_or_path)
    if path.suffix != ".prm" and path.name == os.fspath(name_or_path):
        folder = data_dir("evalb")
        path = folder / f"{path.name}.prm"
        if not path.is_file():
            known = (file.stem for file in folder.glob("*.prm"))
            raise ScoreError(unknown_name("parameter set", os.fspath(name_or_path), known))
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ScoreError(f"{path}: a parameter file must be UTF-8: {error}") from None
    except OSError as error:
        raise ScoreError(f"{path}: cannot read the parameter file: {error.strerror}") from None
    return _parse(text, path, None if program is None else _program(str(program), "argument"))


def _program(text: str, place: str) -> Program:
    try:
        return Program(text.upper())
    except ValueError:
        raise ScoreError(f"{place}: {unknown_name('program', text, Program)}") from None


def _parse(text: str, path: Path, asked: Program | None) -> Parameters:
    numbers: dict[str, int] = {}
    lists: dict[str, list[tuple[str, ...]]] = {key: [] for key in (*_LABELS, *_PAIRS)}
    first_line: dict[str, int] = {}
    declared: Program | None = None
    notes: list[str] = []
    for number, line in enumerate(text.split("\n"), start=1):
        place = f"{path}:{number}"
        key, *values = line.split() or [""]
        if key == _DECLARATION:
            found = _program(" ".join(values), place)
            if declared not in (None, found):
                raise ScoreError(f"{place}: declares {found}, but an earlier line {declared}")
            declared = found
            continue
        if not key or line.startswith("#"):
            continue
        if key in _NUMBERS:
            if key in numbers:
                raise ScoreError(f"{place}: {key} was set in line {first_line[key]} already")
            first_line[key] = number
            numbers[key] = _number(key, values, place)
        elif key in lists:
            wanted = 2 if key in _PAIRS else 1
            if len(values) != wanted:
                need = "two values" if wanted == 2 else "one value"
                raise ScoreError(f"{place}: {key} takes {need}, found {len(values)}: {line!r}")
            lists[key].append(tuple(values))
        else:
            raise ScoreError(f"{place}: {unknown_name('key', key, (*_NUMBERS, *lists))}")
        if line[0].isspace():
            notes.append(
                f"{place}: counts, although the C programs ignore a line that begins with a space"
            )
    if asked is not None and declared not in (None, asked):
        raise ScoreError(f"{path}: declares {declared}, but {asked} was asked for")
    program = asked or declared or Program.EVALB
    if asked is None and declared is None:
        notes.append(
            f"{path}: taken for a file of {program}, since it does not say otherwise (a line"
            f" '{_DECLARATION} {Program.EVALB_SPMRL}', or the program named with the file:"
            " --program)"
        )
    deleted, length, quotes = (frozenset(row[0] for row in lists[key]) for key in _LABELS)
    eq_labels, eq_words = (
        frozenset((min(pair), max(pair)) for pair in lists[key]) for key in _PAIRS
    )
    if quotes and program is Program.EVALB_SPMRL:
        raise ScoreError(
            f"{path}: QUOTE_LABEL puts back words that were removed by their tag, and"
            f" {program} removes none; take the lines out or declare {Program.EVALB}"
        )
    _check_equivalence(eq_labels, path)
    settings = _NUMBERS | numbers
    return Parameters(
        name=path.stem,
        program=program,
        max_error=settings["MAX_ERROR"],
        cutoff_len=settings["CUTOFF_LEN"],
        labeled=bool(settings["LABELED"]),
        delete_labels=deleted,
        delete_labels_for_length=length,
        quote_labels=quotes,
        eq_labels=eq_labels,
        eq_words=eq_words,
        debug=settings["DEBUG"],
        notes=tuple(notes),
    )


def _number(key: str, values: list[str], place: str) -> int:
    if len(values) != 1 or not re.fullmatch("[0-9]{1,9}", values[0]):
        found = " ".join(values)[:80]
        raise ScoreError(f"{place}: {key} takes one number, found '{found}' (at most nine digits)")
    value = int(values[0])
    if key == "LABELED" and value > 1:
        raise ScoreError(f"{place}: LABELED must be 0 or 1, found {value}")
    return value


def _check_equivalence(pairs: frozenset[tuple[str, str]], path: Path) -> None:
    """Refuse A = B and B = C without A = C. The C programs then match brackets in an
    order-dependent way: which of two brackets is left over depends on which comes first."""
    for label in sorted({label for pair in pairs for label in pair}):
        partners = {one for pair in pairs if label in pair for one in pair} - {label}
        for one, other in combinations(sorted(partners), 2):
            if (one, other) not in pairs:
                raise ScoreError(
                    f"{path}: EQ_LABEL makes {label} equal to {one} and to {other}, but these"
                    f" two not equal to each other; add 'EQ_LABEL {one} {other}' or take one out"
                )
