"""Counts in the words of the C programs: what EVALB and EVALB_SPMRL print, byte for byte.

Scripts of twenty years read this output, and whoever doubts a score compares it with the
program's own. It follows from the counts, but for what EVALB_SPMRL does to sentences that are
an error or a missing parse to us (:func:`printed_rows`). Like the programs, it leaves out what
could not be scored and says so in two numbers only; every other report of this package says it
in words.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from spmrl_bench.errors import ScoreError
from spmrl_bench.scoring.brackets import count_first_words, count_missed_as_program
from spmrl_bench.scoring.counts import BracketCounts, Column, Status
from spmrl_bench.scoring.policy import MissingParse, Policy, Punctuation
from spmrl_bench.scoring.prm import Parameters, Program
from spmrl_bench.trees.tree import Tree

#: The line before and after the table of sentences.
RULE = "=" * 76
#: The lines before the first sentence.
HEAD = f"""\
  Sent.                        Matched  Bracket   Cross        Correct Tag
 ID  Len.  Stat. Recal  Prec.  Bracket gold test Bracket Words  Tags Accracy
{RULE}
"""

# What both programs print for a status, and EVALB_SPMRL under -X for a missing parse.
_OK, _ERROR, _SKIP, _MISSED = range(4)
_PRINTED = {
    Status.VALID: _OK,
    Status.LENGTH_UNMATCH: _ERROR,
    Status.WORDS_UNMATCH: _ERROR,
    Status.NO_WORDS: _SKIP,
    Status.MISSED: _MISSED,
}


class PrintedRow(NamedTuple):
    """One line of the table of sentences."""

    sentence: int
    length: int
    status: int
    matched: int = 0
    gold: int = 0
    test: int = 0
    crossing: int = 0
    words: int = 0
    matched_tags: int = 0

    @classmethod
    def of(cls, sentence: int, row: Sequence[int]) -> PrintedRow:
        """The line that follows from the counts of a sentence."""
        length, status, *counted = row
        return cls(sentence, length, _PRINTED[Status(status)], *counted)


def as_evalb(
    read_sides: Callable[[], tuple[Sequence[Tree], Sequence[Tree]]],
    counts: BracketCounts,
    prm: Parameters,
    policy: Policy,
) -> str:
    """The standard output of the C program that the parameters are for.

    Args:
        read_sides: gives the gold trees that ``counts`` are of and their parses; called only
            where the output follows from more than the counts.
        counts: what :func:`~spmrl_bench.scoring.score_trees` counted.
        prm: the parameters it was counted with.
        policy: that it was counted with; to count missing parses is the option ``-X``.

    Raises:
        ScoreError: the program has no such option, would print its debugging too, or would
            have given up before the summary.
    """
    _check_options(prm, policy)
    all_valid = len(counts.sentences_with(Status.VALID)) == len(counts)
    more = prm.program is Program.EVALB_SPMRL and not all_valid
    gold, test = read_sides() if more else ([], [])
    rows = printed_rows(gold, test, counts, prm, policy)
    _check_errors(gold, counts, rows, prm)
    short = [row for row in rows if row.length <= prm.cutoff_len]
    return "".join(
        (
            HEAD,
            *map(_sentence_line, rows),
            f"{RULE}\n",
            _totals_line(_Totals(rows)),
            "=== Summary ===\n",
            _summary("All", _Totals(rows)),
            _summary(f"len<={prm.cutoff_len}", _Totals(short)),
        )
    )


def printed_rows(
    gold: Sequence[Tree],
    test: Sequence[Tree],
    counts: BracketCounts,
    prm: Parameters,
    policy: Policy,
) -> list[PrintedRow]:
    """The lines that the program prints for the sentences, sometimes two for one.

    EVALB prints one line a sentence, which follows from its counts. EVALB_SPMRL calls a
    sentence with different numbers of words scored, without brackets. If gold has at most one
    word, it then prints and counts it again, by the words that gold has. With ``-X``, a missing
    parse has the status 3 and an inflated number of gold brackets.
    """
    if prm.program is Program.EVALB:
        return [PrintedRow.of(number, row) for number, row in enumerate(counts.rows.tolist(), 1)]
    found = []
    for number, row in enumerate(counts.rows.tolist(), start=1):
        length, status = row[Column.LENGTH], row[Column.STATUS]
        if status == Status.VALID:
            found.append(PrintedRow.of(number, row))
            continue
        one, other = gold[number - 1], test[number - 1]
        if status == Status.LENGTH_UNMATCH:
            found.append(PrintedRow(number, length, _OK))
            if len(one) <= 1:
                found.append(PrintedRow.of(number, count_first_words(one, other, prm)))
        elif status == Status.MISSED or (
            status == Status.NO_WORDS and policy.missing_parse is MissingParse.COUNT
        ):
            brackets = count_missed_as_program(one, prm)
            found.append(PrintedRow(number, length, _MISSED, gold=brackets, words=len(one)))
        else:
            found.append(PrintedRow.of(number, row))
    return found


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
    gold: Sequence[Tree], counts: BracketCounts, rows: Sequence[PrintedRow], prm: Parameters
) -> None:
    """Refuse where the program gives up: at the second error beyond MAX_ERROR."""
    errors = sum(row.status == _ERROR for row in rows)
    if prm.program is Program.EVALB_SPMRL:
        unmatched = counts.sentences_with(Status.LENGTH_UNMATCH).tolist()
        errors += sum(len(gold[index]) > 1 for index in unmatched)
    if errors > prm.max_error + 1:
        raise ScoreError(
            f"{prm.program} gives up after {_sentences(prm.max_error + 1)} that it cannot compare"
            f" (MAX_ERROR {prm.max_error} in {prm.name}), without a summary, and here are"
            f" {errors}; take another format or a parameter set with a larger MAX_ERROR"
        )


def _sentences(number: int) -> str:
    return f"{number} sentence{'' if number == 1 else 's'}"


class _Totals:
    """Sums over lines, as a summary has them: brackets and words of the scored ones only."""

    def __init__(self, rows: Sequence[PrintedRow]) -> None:
        scored = [row for row in rows if row.status not in (_ERROR, _SKIP)]
        self.sentences = len(rows)
        self.errors = sum(row.status == _ERROR for row in rows)
        self.skipped = sum(row.status == _SKIP for row in rows)
        self.valid = len(scored)
        self.matched = sum(row.matched for row in scored)
        self.gold = sum(row.gold for row in scored)
        self.test = sum(row.test for row in scored)
        self.crossing = sum(row.crossing for row in scored)
        self.words = sum(row.words for row in scored)
        self.matched_tags = sum(row.matched_tags for row in scored)
        self.complete = sum(row.matched == row.gold == row.test for row in scored)
        self.no_crossing = sum(row.crossing == 0 for row in scored)
        self.two_or_less = sum(row.crossing <= 2 for row in scored)


def _sentence_line(row: PrintedRow) -> str:
    recall, precision = _percent(row.matched, row.gold), _percent(row.matched, row.test)
    return (
        f"{row.sentence:4}  {row.length:3}    {row.status}  {recall:6.2f} {precision:6.2f}"
        f"   {row.matched:3}    {row.gold:3}  {row.test:3}    {row.crossing:3}"
        f"   {row.words:4}  {row.matched_tags:4}   {_percent(row.matched_tags, row.words):6.2f}\n"
    )


def _totals_line(totals: _Totals) -> str:
    brackets = ""
    if totals.gold and totals.test:
        brackets = (
            f"                {_percent(totals.matched, totals.gold):6.2f}"
            f" {_percent(totals.matched, totals.test):6.2f}"
            f" {totals.matched:6} {totals.gold:5} {totals.test:5}  {totals.crossing:5}"
        )
    accuracy = _percent(totals.matched_tags, totals.words)
    return f"{brackets}  {totals.words:5} {totals.matched_tags:5}   {accuracy:6.2f}\n"


def _summary(title: str, totals: _Totals) -> str:
    recall = _percent(totals.matched, totals.gold)
    precision = _percent(totals.matched, totals.test)
    if recall + precision:
        f1 = f"{2 * precision * recall / (precision + recall):6.2f}"
    else:
        f1 = f"{'-nan':>6}"  # 0 / 0 in C
    crossing = totals.crossing / totals.valid if totals.valid else 0.0
    return f"""
-- {title} --
Number of sentence        = {totals.sentences:6}
Number of Error sentence  = {totals.errors:6}
Number of Skip  sentence  = {totals.skipped:6}
Number of Valid sentence  = {totals.valid:6}
Bracketing Recall         = {recall:6.2f}
Bracketing Precision      = {precision:6.2f}
Bracketing FMeasure       = {f1}
Complete match            = {_percent(totals.complete, totals.valid):6.2f}
Average crossing          = {crossing:6.2f}
No crossing               = {_percent(totals.no_crossing, totals.valid):6.2f}
2 or less crossing        = {_percent(totals.two_or_less, totals.valid):6.2f}
Tagging accuracy          = {_percent(totals.matched_tags, totals.words):6.2f}
"""


def _percent(part: int, whole: int) -> float:
    """As the programs have it: nothing of nothing is 0."""
    return 100.0 * part / whole if whole else 0.0
