"""What EVALB and EVALB_SPMRL print, read back and checked against itself.

Neither program says when something went wrong: both exit with 0 after leaving out sentences,
after printing ``-nan`` and after reading beyond their arrays. But their output says everything
twice. A row has counts and their quotients, the summary follows from the rows, and each
sentence with an error has a line on standard error. Here all of it is read strictly and
computed again, so that an output which is cut, mixed up or contradicts itself is refused.
"""

from __future__ import annotations

import re

from spmrl_bench.errors import ScoreError
from spmrl_bench.scoring.counts import BracketCounts, Column, Status
from spmrl_bench.scoring.prm import Parameters, Program

_RULE = "=" * 76
_HEADER = (
    "  Sent.                        Matched  Bracket   Cross        Correct Tag",
    " ID  Len.  Stat. Recal  Prec.  Bracket gold test Bracket Words  Tags Accracy",
    _RULE,
)
_INTEGER, _FIGURE = r" *(\d{1,9})", r" *(\d{1,9}\.\d\d)"
# ID, length, status; recall, precision; matched, gold, test, crossing, words, tags; accuracy.
_ROW = re.compile(
    f"{_INTEGER} {_INTEGER} {_INTEGER} {_FIGURE} {_FIGURE}" + f" {_INTEGER}" * 6 + f" {_FIGURE}"
)
_TOTALS = re.compile(f"{_FIGURE} {_FIGURE}" + f" {_INTEGER}" * 6 + f" {_FIGURE}")
_SUMMARY = re.compile(r"(\S.{24}) = *(\S+)")
_MESSAGE = re.compile(r"(\d+) : (?:(Length)|Words) unmatch \(.*\)")
_NOT_A_NUMBER = frozenset(("nan", "-nan", "nan(ind)", "-nan(ind)"))  # as C libraries print it
_ROUNDED = 0.005 + 1e-9  # the greatest error of two decimals

_VALID, _ERROR, _SKIP = 0, 1, 2
_STATUS = {_VALID: Status.VALID, _ERROR: Status.WORDS_UNMATCH, _SKIP: Status.NO_WORDS}


def read_output(output: bytes, errors: bytes, sentences: int, prm: Parameters) -> BracketCounts:
    """The counts in an output, once everything in it agrees.

    Args:
        output: standard output of the program.
        errors: its standard error.
        sentences: number of sentences that it was given.
        prm: the parameters that it was given.

    Raises:
        ScoreError: anything is off; the message begins with the place.
    """
    lines = _Lines(output)
    for expected in _HEADER:
        lines.expect(expected)
    printed = [_read_row(lines, number) for number in range(1, sentences + 1)]
    lines.expect(_RULE, f"the end of the table after sentence {sentences}")
    unmatched = _read_messages(errors, sentences)
    rows = []
    for number, (length, status, *counted) in enumerate(printed, start=1):
        reason = unmatched.get(number)
        _check_status(number, status, reason, any(counted), prm.program)
        rows.append((length, _STATUS[status] if reason is None else reason, *counted))
    # EVALB_SPMRL counts a sentence of unmatched length as scored, so its summary does too.
    as_summarised = BracketCounts.from_rows(
        (length, _STATUS[status], *counted) for length, status, *counted in printed
    )
    if not as_summarised.total(Column.MATCHED):
        raise ScoreError(
            "no bracket matches, so the program's F is not a number; the internal scorer defines it"
        )
    _check_totals(lines, as_summarised)
    lines.expect("=== Summary ===")
    for title, part in (
        ("-- All --", as_summarised),
        (f"-- len<={prm.cutoff_len} --", as_summarised.up_to(prm.cutoff_len)),
    ):
        lines.expect("")
        lines.expect(title)
        _check_summary(lines, title, part)
    lines.expect_end()
    return BracketCounts.from_rows(rows)


class _Lines:
    """The lines of an output, one after the other, and how to complain about one."""

    def __init__(self, output: bytes) -> None:
        try:
            text = output.decode("ascii")
        except UnicodeDecodeError as error:
            line = output.count(b"\n", 0, error.start) + 1
            found = output[error.start : error.start + 1].hex()
            raise ScoreError(f"output line {line}: byte 0x{found} is no text") from None
        *self._lines, self._rest = text.split("\n")
        self._next = 0

    def take(self, what: str) -> str:
        if self._next == len(self._lines):
            found = f"it ends in {_short(self._rest)}" if self._rest else "it ends"
            raise ScoreError(f"output line {self._next + 1}: {found} where {what} should be")
        self._next += 1
        return self._lines[self._next - 1]

    def expect(self, line: str, what: str | None = None) -> None:
        expected = what or (_short(line) if line else "an empty line")
        found = self.take(expected)
        if found != line:
            raise self.wrong(expected, found)

    def expect_end(self) -> None:
        rest = [*self._lines[self._next :], self._rest]
        if any(rest):
            self._next += 1
            raise self.wrong("the end", next(filter(None, rest)))

    def wrong(self, expected: str, found: str) -> ScoreError:
        return self.error(f"expected {expected}, found {_short(found)}")

    def error(self, problem: str) -> ScoreError:
        """An error about the line that was taken last."""
        return ScoreError(f"output line {self._next}: {problem}")


def _short(text: str) -> str:
    """A line as a message quotes it."""
    return repr(text if len(text) <= 80 else f"{text[:77]}...")


def _read_row(lines: _Lines, number: int) -> tuple[int, ...]:
    """Length, printed status and the six counts of a sentence."""
    what = f"the row of sentence {number}"
    line = lines.take(what)
    match = _ROW.fullmatch(line)
    if match is None:
        raise lines.wrong(what, line)
    found, length, status = map(int, match.group(1, 2, 3))
    counts = matched, gold, test, crossing, words, tags = tuple(
        map(int, match.group(6, 7, 8, 9, 10, 11))
    )
    if found != number:
        hint = " again (EVALB_SPMRL counts some gold sentences of one word twice)"
        again = hint if found == number - 1 else ""
        raise lines.error(f"expected {what}, found that of sentence {found}{again}")
    if status not in _STATUS:
        raise lines.error(f"sentence {number} has the status {status}; known are 0, 1 and 2")
    if matched > min(gold, test) or crossing > test or tags > words:
        raise lines.error(f"the counts of sentence {number} are impossible: {line.strip()!r}")
    for name, figure, part, whole in (
        ("recall", match[4], matched, gold),
        ("precision", match[5], matched, test),
        ("tagging accuracy", match[12], tags, words),
    ):
        value = 100 * part / whole if whole else 0.0
        if not _same(figure, value):
            raise lines.error(
                f"sentence {number} has {name} {figure}, but its counts {part} of {whole} give"
                f" {value:.2f}"
            )
    return (length, status, *counts)


def _read_messages(errors: bytes, sentences: int) -> dict[int, Status]:
    """Sentence -> what was unmatched, from standard error, which may say nothing else."""
    unmatched: dict[int, Status] = {}
    for line in filter(None, errors.decode("utf-8", "replace").split("\n")):
        match = _MESSAGE.fullmatch(line)
        if match is None:
            raise ScoreError(f"standard error: {_short(line)}")
        sentence = int(match[1])
        if sentence in unmatched or not 1 <= sentence <= sentences:
            raise ScoreError(
                f"standard error: {_short(line)}: there is no such sentence, or it was named before"
            )
        unmatched[sentence] = Status.LENGTH_UNMATCH if match[2] else Status.WORDS_UNMATCH
    return unmatched


def _check_status(
    number: int, status: int, reason: Status | None, counted: bool, program: Program
) -> None:
    """A sentence has an error if and only if standard error says so, and then no counts."""
    place = f"output line {number + len(_HEADER)}: sentence {number}"
    spmrl_unmatch = program is Program.EVALB_SPMRL and reason is Status.LENGTH_UNMATCH
    if reason is None and status == _ERROR:
        raise ScoreError(f"{place} has an error (status 1) of which standard error says nothing")
    if reason is not None and status != (_VALID if spmrl_unmatch else _ERROR):
        raise ScoreError(
            f"{place} has the status {status}, but standard error says that it has {reason.reason}"
        )
    if counted and (reason is not None or status != _VALID):
        raise ScoreError(f"{place} was left out (status {status}), but has counts")


def _check_totals(lines: _Lines, counts: BracketCounts) -> None:
    """The line under the table."""
    what = "the totals of all sentences"
    line = lines.take(what)
    match = _TOTALS.fullmatch(line)
    if match is None:
        raise lines.wrong(what, line)
    expected = {
        "recall": counts.recall,
        "precision": counts.precision,
        **{str(column.name): counts.total(column) for column in Column if column > Column.STATUS},
        "tagging accuracy": counts.tagging_accuracy,
    }
    for (name, value), figure in zip(expected.items(), match.groups(), strict=True):
        if not _same(figure, value):
            name = name.lower().replace("_", " ")
            raise lines.error(
                f"the total of {name} is {figure}, but the rows give {_two_decimals(value)}"
            )


def _check_summary(lines: _Lines, title: str, counts: BracketCounts) -> None:
    """The twelve lines of a summary."""
    statuses = counts.column(Column.STATUS)
    errors = int((statuses == _STATUS[_ERROR]).sum())
    for name, value in (
        ("Number of sentence", len(counts)),
        ("Number of Error sentence", errors),
        ("Number of Skip  sentence", counts.skipped - errors),
        ("Number of Valid sentence", counts.valid),
        ("Bracketing Recall", counts.recall),
        ("Bracketing Precision", counts.precision),
        ("Bracketing FMeasure", counts.f1),
        ("Complete match", counts.complete_match),
        ("Average crossing", counts.average_crossing),
        ("No crossing", counts.no_crossing),
        ("2 or less crossing", counts.two_or_less_crossing),
        ("Tagging accuracy", counts.tagging_accuracy),
    ):
        what = f"'{name}' of the summary '{title}'"
        line = lines.take(what)
        match = _SUMMARY.fullmatch(line)
        if match is None or match[1].rstrip() != name:
            raise lines.wrong(what, line)
        if name == "Bracketing FMeasure" and not counts.total(Column.MATCHED):
            if match[2].lower() not in _NOT_A_NUMBER:
                raise lines.wrong(f"no number for {what}, because no bracket matches", line)
            continue
        form = _INTEGER if isinstance(value, int) else _FIGURE
        if re.fullmatch(form, match[2]) is None:
            raise lines.wrong(f"a number for {what}", line)
        if not _same(match[2], value):
            raise lines.error(f"{what} is {match[2]}, but the rows give {_two_decimals(value)}")


def _same(figure: str, value: float | None) -> bool:
    """Whether a printed figure is a value, which is 0 for 0 of 0, up to its rounding."""
    return abs(float(figure) - (value or 0.0)) <= (_ROUNDED if "." in figure else 0)


def _two_decimals(value: float | None) -> str:
    return str(value) if isinstance(value, int) else f"{value or 0.0:.2f}"
