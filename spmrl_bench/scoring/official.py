"""Counts in the words of EVALB and EVALB_SPMRL, and checked against the C programs themselves.

Scripts of twenty years read what they print, and whoever doubts a score compares it with the
program's own. It follows from the counts, byte for byte, but for what EVALB_SPMRL does to sentences
that are an error or a missing parse to us. Like the programs, it leaves out what could not be
scored and says so in two numbers only; every other report of this package says it in words.

Both programs read beyond their arrays on long sentences, leave out sentences and exit with 0,
and EVALB_SPMRL writes a file ``status`` into the directory it is started from. So a program
runs in a private folder on copies of the files, and what it prints has to be what our own counts
look like in its form. Then they are its counts too, and whatever goes wrong in a program is a
difference.
"""

from __future__ import annotations

import hashlib
import os
import re
import signal
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from itertools import zip_longest
from pathlib import Path
from resource import RLIMIT_FSIZE, setrlimit

from spmrl_bench.errors import ScoreError
from spmrl_bench.readers.brackets import one_tree_per_line
from spmrl_bench.readers.text import read_text
from spmrl_bench.scoring.bracket_metric import require_all
from spmrl_bench.scoring.counts import BracketCounts, Column, Status, percent
from spmrl_bench.scoring.evalb import count_first_words, count_missed_as_program
from spmrl_bench.scoring.prm import (
    PUBLISHED,
    MissingParse,
    Parameters,
    Policy,
    Program,
    Punctuation,
)
from spmrl_bench.scoring.texts import FilePath, read_sides
from spmrl_bench.trees.tree import Tree

#: The line before and after the table of sentences.
RULE = "=" * 76
#: The lines before the first sentence.
HEAD = f"""\
  Sent.                        Matched  Bracket   Cross        Correct Tag
 ID  Len.  Stat. Recal  Prec.  Bracket gold test Bracket Words  Tags Accracy
{RULE}
"""

# What both programs print for a status; EVALB_SPMRL under -X for a missing parse.
_PRINTED = {
    Status.VALID: 0,
    Status.LENGTH_UNMATCH: 1,
    Status.WORDS_UNMATCH: 1,
    Status.NO_WORDS: 2,
    Status.MISSED: 3,
}

_TOO_MUCH = 1_000_000  # bytes beyond what should be printed


def as_evalb(
    read_sides: Callable[[], tuple[Sequence[Tree], Sequence[Tree]]],
    counts: BracketCounts,
    prm: Parameters,
    policy: Policy,
) -> str:
    """Return the standard output of the C program that the parameters are for.

    ``counts`` were counted with ``prm`` and ``policy``; to count missing parses is the option
    ``-X``. ``read_sides`` gives the trees that they are of, and is called only where the output
    follows from more than the counts. Raise a ScoreError if the program has no such option, would
    print its debugging too, or would have given up before the summary.
    """
    _check_options(prm, policy)
    all_valid = len(counts.sentences_with(Status.VALID)) == len(counts)
    more = prm.program is Program.EVALB_SPMRL and not all_valid
    gold, test = read_sides() if more else ([], [])
    lines = _lines(gold, test, counts, prm, policy)
    printed = BracketCounts.from_rows(row for _, row in lines)
    _check_errors(gold, counts, printed, prm)
    table = "".join(_sentence_line(*line) for line in lines)
    totals = f"{RULE}\n{_totals_line(printed)}=== Summary ===\n"
    cutoff = prm.cutoff_len
    summaries = _summary("All", printed) + _summary(f"len<={cutoff}", printed.up_to(cutoff))
    return HEAD + table + totals + summaries


def _lines(
    gold: Sequence[Tree],
    test: Sequence[Tree],
    counts: BracketCounts,
    prm: Parameters,
    policy: Policy,
) -> list[tuple[int, Sequence[int]]]:
    """The sentences of the lines that the program prints, and their counts. EVALB_SPMRL calls a
    sentence with different numbers of words scored, without brackets. If gold has at most one word,
    it then prints and counts it again, by the words that gold has. With ``-X``, a missing parse has
    the status 3 and an inflated number of gold brackets."""
    lines: list[tuple[int, Sequence[int]]] = []
    for number, row in enumerate(counts.rows.tolist(), start=1):
        length, status = row[Column.LENGTH], row[Column.STATUS]
        if status == Status.VALID or prm.program is Program.EVALB:
            lines.append((number, row))
            continue
        one, other = gold[number - 1], test[number - 1]
        if status == Status.LENGTH_UNMATCH:
            lines.append((number, (length, Status.VALID, 0, 0, 0, 0, 0, 0)))
            if len(one) <= 1:
                lines.append((number, count_first_words(one, other, prm)))
        elif status == Status.MISSED or (
            status == Status.NO_WORDS and policy.missing_parse is MissingParse.COUNT
        ):
            brackets = count_missed_as_program(one, prm)
            lines.append((number, (length, Status.MISSED, 0, brackets, 0, 0, len(one), 0)))
        else:
            lines.append((number, row))
    return lines


def _check_options(prm: Parameters, policy: Policy) -> None:
    if policy.punctuation is not Punctuation.BY_TAG:
        raise ScoreError(
            f"{prm.program} removes punctuation by tag, so that nothing scored with punctuation"
            f" {policy.punctuation} has a form of its own output; take another format"
        )
    if policy.missing_parse is MissingParse.COUNT and prm.program is Program.EVALB:
        raise ScoreError(
            "EVALB always leaves out a missing parse (-X is an option of EVALB_SPMRL), so that"
            " nothing scored otherwise has a form of its own output; take another format"
        )
    if prm.debug:
        raise ScoreError(
            f"{prm.name}: with DEBUG {prm.debug}, {prm.program} prints what it compares between"
            " the lines of its table; set DEBUG 0, or take another format"
        )


def _check_errors(
    gold: Sequence[Tree], counts: BracketCounts, printed: BracketCounts, prm: Parameters
) -> None:
    """Refuse where the program gives up: at the second error beyond MAX_ERROR."""
    errors = _errors(printed)
    if prm.program is Program.EVALB_SPMRL:
        unmatched = counts.sentences_with(Status.LENGTH_UNMATCH).tolist()
        errors += sum(len(gold[index]) > 1 for index in unmatched)
    most = prm.max_error + 1
    if errors > most:
        raise ScoreError(
            f"{prm.program} gives up after {most} sentence{'s' * (most > 1)} that it cannot compare"
            f" (MAX_ERROR {prm.max_error} in {prm.name}), without a summary, and here are"
            f" {errors}; take another format or a parameter set with a larger MAX_ERROR"
        )


def _errors(counts: BracketCounts) -> int:
    unmatched = Status.LENGTH_UNMATCH, Status.WORDS_UNMATCH
    return sum(len(counts.sentences_with(status)) for status in unmatched)


def _sentence_line(sentence: int, row: Sequence[int]) -> str:
    length, status, matched, gold, test, crossing, words, tags = row
    recall, precision, accuracy = map(_percent, (matched, matched, tags), (gold, test, words))
    return (
        f"{sentence:4}  {length:3}    {_PRINTED[Status(status)]}  {recall:6.2f} {precision:6.2f}"
        f"   {matched:3}    {gold:3}  {test:3}    {crossing:3}"
        f"   {words:4}  {tags:4}   {accuracy:6.2f}\n"
    )


def _totals_line(counts: BracketCounts) -> str:
    _, _, matched, gold, test, crossing, words, tags = map(counts.total, Column)
    brackets = ""
    if gold and test:
        brackets = (
            f"                {_percent(matched, gold):6.2f} {_percent(matched, test):6.2f}"
            f" {matched:6} {gold:5} {test:5}  {crossing:5}"
        )
    return f"{brackets}  {words:5} {tags:5}   {_percent(tags, words):6.2f}\n"


def _summary(title: str, counts: BracketCounts) -> str:
    recall, precision = counts.recall or 0.0, counts.precision or 0.0
    f1 = f"{counts.f1:6.2f}" if recall + precision else f"{'-nan':>6}"  # 0 / 0 in C
    matched, gold, test = map(counts.column, (Column.MATCHED, Column.GOLD, Column.TEST))
    complete = int(((matched == gold) & (gold == test) & counts.scored).sum())
    return f"""
-- {title} --
Number of sentence        = {len(counts):6}
Number of Error sentence  = {_errors(counts):6}
Number of Skip  sentence  = {len(counts.sentences_with(Status.NO_WORDS)):6}
Number of Valid sentence  = {counts.valid:6}
Bracketing Recall         = {recall:6.2f}
Bracketing Precision      = {precision:6.2f}
Bracketing FMeasure       = {f1}
Complete match            = {_percent(complete, counts.valid):6.2f}
Average crossing          = {counts.average_crossing or 0.0:6.2f}
No crossing               = {counts.no_crossing or 0.0:6.2f}
2 or less crossing        = {counts.two_or_less_crossing or 0.0:6.2f}
Tagging accuracy          = {counts.tagging_accuracy or 0.0:6.2f}
"""


def _percent(part: int, whole: int) -> float:
    """As the programs have it: nothing of nothing is 0."""
    return percent(part, whole) or 0.0


def check_against_program(
    binary: FilePath,
    gold_path: FilePath,
    test_path: FilePath,
    counts: BracketCounts,
    prm: Parameters,
    *,
    allow_skipped: bool = False,
    encoding: str = "utf-8",
    timeout: float = 600.0,
) -> str:
    """Check the counts of a file of parses against the EVALB or EVALB_SPMRL that ``binary`` is.

    ``counts`` are our own of these files, by the published policy and ``prm``, which name the
    program. It gets the trees one per line, in UTF-8, and is stopped after ``timeout`` seconds.
    ``allow_skipped`` accepts counts without the sentences that the program leaves out. The result
    names the program for signatures, with the beginning of its SHA-256: ``evalb(0a1b2c3d)``. Raise
    a ScoreError if sentences are left out, the program does not finish well or prints something
    else, there is nothing it could print, or its score is of more.
    """
    if not allow_skipped:
        try:
            require_all(counts)
        except ScoreError as error:
            raise ScoreError(f"{error}. Correct them, or allow it (--allow-skipped)") from None
    path = Path(binary).absolute()
    try:
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise ScoreError(f"{path}: cannot be read: {error.strerror}") from None
    sides = partial(read_sides, gold_path, test_path, encoding=encoding)
    expected = as_evalb(sides, counts, prm, PUBLISHED).encode()
    if expected.splitlines()[HEAD.count("\n") + len(counts)] != RULE.encode():
        raise ScoreError(
            f"{prm.program} counts a sentence twice if gold has one word and the parse more or"
            " none, so that its score is not one of these sentences; leave out --official"
        )
    gold, test = (_trees(name, len(counts), encoding) for name in (gold_path, test_path))
    try:
        printed = _run(path, gold, test, prm, timeout, len(expected) + _TOO_MUCH)
        _check_same(printed, expected, len(counts))
    except (ScoreError, OSError) as error:
        if isinstance(error, OSError):
            where = "cannot be run in a folder of its own (for temporary files, see TMPDIR)"
            error = ScoreError(f"{where}: {error.strerror or error}")
        raise ScoreError(
            f"{binary}: {error}. No score is reported: is it {prm.program} as published, and has"
            " it room for sentences of this size? Our own scorer has no limits (leave out"
            " --official)"
        ) from None
    return f"{prm.program.lower()}({digest[:8]})"


def _check_same(printed: bytes, expected: bytes, sentences: int) -> None:
    """Refuse an output that differs; the message names the first difference."""
    printed = printed.replace(b" nan", b"-nan")  # C libraries differ in the sign of 0 / 0
    pairs = zip_longest(printed.split(b"\n"), expected.split(b"\n"))
    for number, (theirs, ours) in enumerate(pairs, start=1):
        if theirs != ours:
            sentence = number - HEAD.count("\n")
            place = f" (sentence {sentence})" if 1 <= sentence <= sentences else ""
            raise ScoreError(
                f"it differs from our own scorer first in line {number} of its output{place},"
                f" which {_shown(theirs)} and should be {_shown(ours).removeprefix('is ')}"
            )


def _shown(line: bytes | None) -> str:
    return "is missing" if line is None else f"is {line[:80].decode('utf-8', 'replace')!r}"


def _run(
    binary: Path,
    gold: Sequence[bytes],
    test: Sequence[bytes],
    prm: Parameters,
    timeout: float,
    most: int,
) -> bytes:
    """What a program prints for sentences, one line each, in a folder of its own. It may crash,
    hang, or print more than ``most`` bytes, so its output goes into files that the system keeps
    from growing, and stopping it stops what it started as well."""
    with tempfile.TemporaryDirectory(prefix="spmrl-bench-") as name:
        folder = Path(name)
        (folder / "prm").write_text(_parameter_file(prm), encoding="utf-8")
        for side, lines in (("gold", gold), ("test", test)):
            (folder / side).write_bytes(b"".join(line + b"\n" for line in lines))
        output, errors = folder / "output", folder / "errors"
        with output.open("wb") as out, errors.open("wb") as err:
            try:
                process = subprocess.Popen(
                    [str(binary), "-p", "prm", "gold", "test"],
                    cwd=folder,
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=err,
                    env=os.environ | {"LC_ALL": "C"},  # points in numbers, English messages
                    start_new_session=True,
                    preexec_fn=partial(setrlimit, RLIMIT_FSIZE, (most + 1, most + 1)),
                )
            except OSError as error:
                raise ScoreError(f"cannot be run: {error.strerror}") from None
            try:
                process.wait(timeout)
            except subprocess.TimeoutExpired:
                raise ScoreError(f"did not finish within {timeout:g} seconds") from None
            finally:
                with suppress(ProcessLookupError):  # it and all that it started have ended
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        if max(path.stat().st_size for path in (output, errors)) > most:
            raise ScoreError(f"prints more than {most:,} bytes")
        said = errors.read_bytes().decode("utf-8", "replace").splitlines()
        if process.returncode:
            how = f"ended with exit status {process.returncode}"
            if process.returncode < 0:
                how = f"was ended by {signal.strsignal(-process.returncode)}"
            last = f"; the last line on standard error: {said[-1][:200]!r}" if said else ""
            raise ScoreError(f"{how}{last}")
        return output.read_bytes()


def _parameter_file(prm: Parameters) -> str:
    """Parameters in the syntax of both programs."""
    lines = [
        f"MAX_ERROR {prm.max_error}",
        f"CUTOFF_LEN {prm.cutoff_len}",
        f"LABELED {int(prm.labeled)}",
        *(f"DELETE_LABEL {label}" for label in prm.delete_labels),
        *(f"DELETE_LABEL_FOR_LENGTH {label}" for label in prm.delete_labels_for_length),
        *(f"QUOTE_LABEL {label}" for label in prm.quote_labels),
        *(f"EQ_LABEL {one} {other}" for one, other in prm.eq_labels),
        *(f"EQ_WORD {one} {other}" for one, other in prm.eq_words),
    ]
    return "".join(f"{line}\n" for line in lines)


def _trees(path: FilePath, sentences: int, encoding: str) -> list[bytes]:
    """The trees of a file as they stand in it, each on a line of its own."""
    text = read_text(path, encoding)
    if one_tree_per_line(text):
        return [line.encode() for line in text.split("\n")[:sentences]]
    lines = []
    start = depth = 0
    for bracket in re.finditer("[()]", text):
        depth += 1 if bracket[0] == "(" else -1
        if depth == 0:
            lines.append(text[start : bracket.end()].replace("\n", " ").encode())
            start = bracket.end()
    return lines
