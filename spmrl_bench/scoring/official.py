"""Counts that are checked against the C programs EVALB and EVALB_SPMRL themselves.

Both programs read beyond their arrays on long sentences, leave out sentences and exit with 0,
and EVALB_SPMRL writes a file ``status`` into the directory it is started from. So a program
runs in a private folder on copies of the files, and what it prints has to be, byte for byte, what
our own counts look like in its form (:mod:`.evalb_format`). Then they are its counts too, and
whatever goes wrong in a program is a difference.
"""

from __future__ import annotations

import hashlib
import os
import re
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from itertools import zip_longest
from pathlib import Path
from resource import RLIMIT_FSIZE, setrlimit

from spmrl_bench.errors import ScoreError
from spmrl_bench.readers.brackets import one_tree_per_line
from spmrl_bench.readers.text import read_text
from spmrl_bench.scoring.bracket_metric import require_all
from spmrl_bench.scoring.counts import BracketCounts
from spmrl_bench.scoring.evalb_format import HEAD, RULE, as_evalb
from spmrl_bench.scoring.prm import PUBLISHED, Parameters
from spmrl_bench.scoring.texts import FilePath, read_sides

_TOO_MUCH = 1_000_000  # bytes beyond what should be printed


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
    names the program for signatures, with the beginning of its SHA-256: ``evalb(0a1b2c3d)``.

    Raises:
        ReadError: a file cannot be read, or a tree is malformed (with line and column).
        ScoreError: sentences are left out; the program does not finish well, or prints
            something else; there is nothing it could print, or its score is of more.
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
    gold, test = (_lines(name, len(counts), encoding) for name in (gold_path, test_path))
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
    """What a program prints for sentences, one line each, in a folder of its own.

    It may crash, hang, or print more than ``most`` bytes, so its output goes into files that the
    system keeps from growing, and stopping it stops what it started as well.
    """
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


def _lines(path: FilePath, sentences: int, encoding: str) -> list[bytes]:
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
