"""Scoring two files: layouts, failed parses, and one clear error for each mistake."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from spmrl_bench.errors import ReadError, ScoreError, SpmrlError
from spmrl_bench.scoring import Column, Status, load_prm, score_files

SPMRL = load_prm("spmrl")

Writer = Callable[[str, str], Path]

ONE = "(TOP (S (NP (NN a)) (VP (VB b))))"
TWO = "(TOP (S (NP (NN c)) (VP (VB d) (NP (NN e)))))"
INDENTED = """
( (S
    (NP (NN a))
    (VP (VB b))))


( (S (NP (NN c))
    (VP (VB d)
      (NP (NN e)))))
"""


@pytest.fixture
def write(tmp_path: Path) -> Writer:
    def writer(name: str, text: str) -> Path:
        path = tmp_path / name
        path.write_bytes(text.encode())
        return path

    return writer


def test_indented_gold_against_one_line_per_tree(write) -> None:
    counts = score_files(write("g", INDENTED), write("t", f"{ONE}\n{TWO}"), SPMRL)
    assert (len(counts), counts.skipped, counts.f1) == (2, 0, 100.0)


@pytest.mark.parametrize("blank", ["", "(())", "()", "  "])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_blank_line_is_a_failed_parse(write: Writer, blank: str, end: str) -> None:
    gold, test = (end.join((*lines, "")) for lines in ((ONE, ONE, TWO), (ONE, blank, TWO)))
    counts = score_files(write("g", gold), write("t", test), SPMRL)
    statuses = [Status.VALID, Status.NO_WORDS, Status.VALID]
    assert counts.column(Column.STATUS).tolist() == statuses
    assert counts.skipped == 1


def test_nothing_parsed_is_no_error(write: Writer) -> None:
    counts = score_files(write("g", f"{ONE}\n"), write("t", "(())\n"), SPMRL)
    assert (len(counts), counts.skipped, counts.f1) == (1, 1, None)


def test_words_are_compared_as_they_stand(write) -> None:
    gold, test = write("g", r"(S (CD 1\/2))"), write("t", "(S (CD 1/2))")
    assert score_files(gold, test, SPMRL).skipped == 1
    assert score_files(gold, test, SPMRL, escapes="ptb").skipped == 0


@pytest.mark.parametrize(
    ("gold", "test", "error", "message"),
    [
        (f"{ONE}\n{TWO}\n", f"{ONE}\n", ScoreError, "g has 2 sentences, .*t has 1;"),
        (f"{ONE}\n", f"{ONE}\n\n", ScoreError, "g has 1 sentences, .*t has 2;"),
        ("", f"{ONE}\n", ScoreError, "g: holds no tree"),
        (f"{ONE}\n", "", ScoreError, "t: holds no tree"),
        (f"{ONE}\n{TWO}\n", f"{ONE}\n{TWO[:-1]}\n", ReadError, "t:2:1: .*is not closed before"),
        (f"{ONE}\n{TWO})\n", f"{ONE}\n{TWO}\n", ReadError, r"g:2:\d+: .*no bracket is open"),
        (f"{ONE}\n", "(S a b)\n", ReadError, "t:1:.* word"),
        (f"{ONE}\n\n", f"{ONE} {TWO}\n", ScoreError, "g has 2 sentences, .*t has 1;"),
    ],
)
def test_each_mistake_has_one_clear_error(
    write: Writer, gold: str, test: str, error: type[SpmrlError], message: str
) -> None:
    with pytest.raises(error, match=message):
        score_files(write("g", gold), write("t", test), SPMRL)


def test_an_absent_file_is_named(write: Writer, tmp_path: Path) -> None:
    with pytest.raises(ReadError, match="nowhere: cannot be read"):
        score_files(write("g", ONE), tmp_path / "nowhere", SPMRL)
