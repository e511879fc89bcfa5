"""Scores by the C programs EVALB and EVALB_SPMRL themselves, reported only when they are sound.

The published scores come from these two programs, and somebody may want theirs to as well.
But both read beyond their arrays on long sentences, leave out sentences and exit with 0, and
EVALB_SPMRL writes a file ``status`` into the directory it is started from. So a program runs
in a private folder on copies of the files, on input that it has room for, and its output is
checked to the last line (:mod:`.evalb_output`) before it becomes counts: the same rows as our
own, which every report can show and which can be compared sentence by sentence.
"""

from __future__ import annotations

import hashlib
import re
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from spmrl_bench.errors import ScoreError
from spmrl_bench.readers.text import read_text
from spmrl_bench.scoring.counts import BracketCounts, Column, Status
from spmrl_bench.scoring.evalb_output import read_output
from spmrl_bench.scoring.files import FilePath, one_tree_per_line, read_sides
from spmrl_bench.scoring.limits import check_room, check_room_for_parameters
from spmrl_bench.scoring.prm import Parameters, Program
from spmrl_bench.scoring.process import Finished, run_program
from spmrl_bench.scoring.report import require_all

TIMEOUT = 600.0  # seconds; the programs score thousands of sentences in a second
_BYTES, _BYTES_PER_SENTENCE = 1_000_000, 500  # of output; a row has about 80


@dataclass(frozen=True, slots=True)
class OfficialScore:
    """Counts by a C program.

    Attributes:
        counts: one row a sentence, as the program printed it. A sentence whose lengths differ
            has that status, although EVALB_SPMRL itself counts it as scored with no brackets.
        program: which of the two programs it is, as its behaviour shows.
        sha256: hex digest of the executable file.
    """

    counts: BracketCounts
    program: Program
    sha256: str

    @property
    def scorer(self) -> str:
        """The program as signatures name it, e.g. ``evalb(0a1b2c3d)``."""
        return f"{self.program.lower()}({self.sha256[:8]})"


def score_with_program(
    binary: FilePath,
    gold_path: FilePath,
    test_path: FilePath,
    prm: Parameters,
    *,
    allow_skipped: bool = False,
    encoding: str = "utf-8",
    timeout: float = TIMEOUT,
) -> OfficialScore:
    """Counts of a file of parses by the EVALB or EVALB_SPMRL that ``binary`` is.

    Args:
        binary: the executable file.
        gold_path: gold trees, in any layout; the program gets them one per line.
        test_path: parses of the same sentences.
        prm: parameters for this program.
        allow_skipped: accept counts without the sentences that the program leaves out.
        encoding: of both files; the program gets UTF-8.
        timeout: seconds after which the program is stopped.

    Raises:
        ReadError: a file cannot be read, or a tree is malformed (with line and column).
        ScoreError: the files do not fit; the program is not the one that the parameters are
            for, has no room for a sentence, does not finish well, prints something that
            contradicts itself, or leaves out a sentence.
    """
    path = Path(binary).absolute()
    sha256 = _hash(path)
    sentences = len(read_sides(gold_path, test_path, encoding=encoding)[0])
    gold, test = (_lines(name, sentences, encoding) for name in (gold_path, test_path))
    program = identify(path)
    if program is not prm.program:
        raise ScoreError(
            f"{binary} is {program}, but the parameter set {prm.name} is for {prm.program}, which"
            " counts in another way; name a binary or a parameter set that fits"
        )
    check_room_for_parameters(prm)
    check_room(str(gold_path), gold, prm)
    check_room(str(test_path), test, prm)
    counts = _run(path, gold, test, prm, timeout)
    if not allow_skipped:
        try:
            require_all(counts)
        except ScoreError as error:
            raise ScoreError(
                f"{binary}: {error}. Correct them, or allow it (--allow-skipped)"
            ) from None
    return OfficialScore(counts, program, sha256)


def first_difference(official: OfficialScore, own: BracketCounts) -> str | None:
    """The first sentence and column in which two counts differ, with both values; None if equal.

    Raises:
        ScoreError: the counts are of different numbers of sentences.
    """
    theirs = official.counts
    if len(theirs) != len(own):
        raise ScoreError(f"{len(theirs)} sentences cannot be compared with {len(own)}")
    places = np.argwhere(theirs.rows != own.rows)
    if not len(places):
        return None
    sentence, column = map(int, places[0])
    name = Column(column).name.lower().replace("_", " ")
    values = [int(rows[sentence, column]) for rows in (theirs.rows, own.rows)]
    shown = [Status(v).reason for v in values] if column == Column.STATUS else map(str, values)
    one, other = shown
    return f"sentence {sentence + 1}, {name}: {official.scorer} {one}, own scorer {other}"


def check_agreement(official: OfficialScore, own: BracketCounts) -> None:
    """See to it that both scorers count the same in every sentence and column.

    Raises:
        ScoreError: they do not; the message names the first difference, with both values.
    """
    difference = first_difference(official, own)
    if difference is not None:
        raise ScoreError(f"the scorers differ, so that no score is reported; first in {difference}")


def identify(binary: Path) -> Program:
    """Which of the two programs a binary is, by what it counts.

    Given a sentence of two words, one of them with a deleted tag, EVALB compares one word and
    EVALB_SPMRL two.

    Raises:
        ScoreError: it is neither.
    """
    try:
        counts = _run(binary, [_PROBE], [_PROBE], _PROBE_PRM, timeout=_PROBE_TIMEOUT)
    except ScoreError as error:
        raise ScoreError(f"{error} (on a test sentence, before any of yours)") from None
    return Program.EVALB if counts.total(Column.WORDS) == 1 else Program.EVALB_SPMRL


_PROBE = b"(TOP (S (NN word) (. .)))"
_PROBE_TIMEOUT = 10.0
_PROBE_PRM = Parameters(
    name="probe",
    program=Program.EVALB,
    max_error=0,
    cutoff_len=40,
    labeled=True,
    delete_labels=frozenset({"TOP", "."}),
    delete_labels_for_length=frozenset(),
    quote_labels=frozenset(),
    eq_labels=frozenset(),
    eq_words=frozenset(),
)


def _run(
    binary: Path, gold: Sequence[bytes], test: Sequence[bytes], prm: Parameters, timeout: float
) -> BracketCounts:
    """Counts of sentences, one line each, by a program in a folder of its own."""
    with tempfile.TemporaryDirectory(prefix="spmrl-bench-") as name:
        folder = Path(name)
        (folder / "prm").write_text(_parameter_file(prm), encoding="utf-8")
        for side, lines in (("gold", gold), ("test", test)):
            (folder / side).write_bytes(b"".join(line + b"\n" for line in lines))
        try:
            finished = run_program(
                [str(binary), "-p", "prm", "gold", "test"],
                folder,
                timeout=timeout,
                limit=_BYTES + _BYTES_PER_SENTENCE * len(gold),
            )
            _check_end(finished, prm)
            return read_output(finished.output, finished.errors, len(gold), prm)
        except ScoreError as error:
            raise ScoreError(f"{binary}: {error}") from None


def _check_end(finished: Finished, prm: Parameters) -> None:
    said = finished.errors.decode("utf-8", "replace").splitlines()
    last = f"; the last line on standard error: {said[-1][:200]!r}" if said else ""
    if finished.signal is not None:
        raise ScoreError(f"was ended by {finished.signal}{last}")
    if finished.status != 0:
        gave_up = len(said) > prm.max_error
        reason = f" (the parameters say MAX_ERROR {prm.max_error})" if gave_up else ""
        raise ScoreError(f"ended with exit status {finished.status}{reason}{last}")


def _hash(binary: Path) -> str:
    try:
        data = binary.read_bytes()
    except OSError as error:
        raise ScoreError(f"{binary}: cannot be read: {error.strerror}") from None
    return hashlib.sha256(data).hexdigest()


def _parameter_file(prm: Parameters) -> str:
    """Parameters in the syntax of both programs, without the debug output that no score needs."""
    lines = [
        "DEBUG 0",
        f"MAX_ERROR {prm.max_error}",
        f"CUTOFF_LEN {prm.cutoff_len}",
        f"LABELED {int(prm.labeled)}",
    ]
    for key, labels in (
        ("DELETE_LABEL", prm.delete_labels),
        ("DELETE_LABEL_FOR_LENGTH", prm.delete_labels_for_length),
        ("QUOTE_LABEL", prm.quote_labels),
    ):
        lines += [f"{key} {label}" for label in sorted(labels)]
    for key, pairs in (("EQ_LABEL", prm.eq_labels), ("EQ_WORD", prm.eq_words)):
        lines += [f"{key} {one} {other}" for one, other in sorted(pairs)]
    return "".join(f"{line}\n" for line in lines)


def _lines(path: FilePath, sentences: int, encoding: str) -> list[bytes]:
    """The trees of a file as they stand in it, each on one line."""
    text = read_text(path, encoding)
    lines = text.split("\n")[:sentences] if one_tree_per_line(text) else _joined(text)
    return [line.encode() for line in lines]


def _joined(text: str) -> list[str]:
    """Every tree of a text on a line of its own."""
    lines = []
    start = depth = 0
    for bracket in re.finditer("[()]", text):
        depth += 1 if bracket[0] == "(" else -1
        if depth == 0:
            lines.append(" ".join(text[start : bracket.end()].split("\n")))
            start = bracket.end()
    return lines
