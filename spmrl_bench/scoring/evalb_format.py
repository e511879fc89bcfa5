"""Counts in the words of the C programs: what EVALB and EVALB_SPMRL print, byte for byte.

Scripts of twenty years read this output, and whoever doubts a score compares it with the
program's own. It follows from the counts, but for what EVALB_SPMRL does to sentences that are
an error or a missing parse to us. Like the programs, it leaves out what could not be scored and
says so in two numbers only; every other report of this package says it in words.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from spmrl_bench.errors import ScoreError
from spmrl_bench.scoring.counts import BracketCounts, Column, Status
from spmrl_bench.scoring.evalb import count_first_words, count_missed_as_program
from spmrl_bench.scoring.prm import MissingParse, Parameters, Policy, Program, Punctuation
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


class _Line(NamedTuple):
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
    def of(cls, sentence: int, row: Sequence[int]) -> _Line:
        """The line that follows from the counts of a sentence."""
        length, status, *counted = row
        return cls(sentence, length, _PRINTED[Status(status)], *counted)


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
    _check_errors(gold, counts, lines, prm)
    short = [line for line in lines if line.length <= prm.cutoff_len]
    table = "".join(map(_sentence_line, lines))
    totals = f"{RULE}\n{_totals_line(_total(lines))}=== Summary ===\n"
    summaries = _summary("All", lines) + _summary(f"len<={prm.cutoff_len}", short)
    return HEAD + table + totals + summaries


def _lines(
    gold: Sequence[Tree],
    test: Sequence[Tree],
    counts: BracketCounts,
    prm: Parameters,
    policy: Policy,
) -> list[_Line]:
    """The lines that the program prints for the sentences, sometimes two for one.

    EVALB_SPMRL calls a sentence with different numbers of words scored, without brackets. If gold
    has at most one word, it then prints and counts it again, by the words that gold has. With
    ``-X``, a missing parse has the status 3 and an inflated number of gold brackets.
    """
    lines = []
    for number, row in enumerate(counts.rows.tolist(), start=1):
        length, status = row[Column.LENGTH], row[Column.STATUS]
        if status == Status.VALID or prm.program is Program.EVALB:
            lines.append(_Line.of(number, row))
            continue
        one, other = gold[number - 1], test[number - 1]
        if status == Status.LENGTH_UNMATCH:
            lines.append(_Line(number, length, _OK))
            if len(one) <= 1:
                lines.append(_Line.of(number, count_first_words(one, other, prm)))
        elif status == Status.MISSED or (
            status == Status.NO_WORDS and policy.missing_parse is MissingParse.COUNT
        ):
            brackets = count_missed_as_program(one, prm)
            lines.append(_Line(number, length, _MISSED, gold=brackets, words=len(one)))
        else:
            lines.append(_Line.of(number, row))
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
    gold: Sequence[Tree], counts: BracketCounts, lines: Sequence[_Line], prm: Parameters
) -> None:
    """Refuse where the program gives up: at the second error beyond MAX_ERROR."""
    errors = sum(line.status == _ERROR for line in lines)
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


def _scored(lines: Sequence[_Line]) -> list[_Line]:
    return [line for line in lines if line.status in (_OK, _MISSED)]


def _total(lines: Sequence[_Line]) -> _Line:
    """A line of the sums over all that are scored."""
    return _Line(*map(sum, zip(*_scored(lines), strict=True))) if _scored(lines) else _Line(0, 0, 0)


def _sentence_line(line: _Line) -> str:
    recall, precision = _percent(line.matched, line.gold), _percent(line.matched, line.test)
    accuracy = _percent(line.matched_tags, line.words)
    return (
        f"{line.sentence:4}  {line.length:3}    {line.status}  {recall:6.2f} {precision:6.2f}"
        f"   {line.matched:3}    {line.gold:3}  {line.test:3}    {line.crossing:3}"
        f"   {line.words:4}  {line.matched_tags:4}   {accuracy:6.2f}\n"
    )


def _totals_line(totals: _Line) -> str:
    brackets = ""
    if totals.gold and totals.test:
        brackets = (
            f"                {_percent(totals.matched, totals.gold):6.2f}"
            f" {_percent(totals.matched, totals.test):6.2f}"
            f" {totals.matched:6} {totals.gold:5} {totals.test:5}  {totals.crossing:5}"
        )
    accuracy = _percent(totals.matched_tags, totals.words)
    return f"{brackets}  {totals.words:5} {totals.matched_tags:5}   {accuracy:6.2f}\n"


def _summary(title: str, lines: Sequence[_Line]) -> str:
    totals, scored = _total(lines), _scored(lines)
    valid = len(scored)
    recall = _percent(totals.matched, totals.gold)
    precision = _percent(totals.matched, totals.test)
    f1 = f"{'-nan':>6}"  # 0 / 0 in C
    if recall + precision:
        f1 = f"{2 * precision * recall / (precision + recall):6.2f}"
    crossing = totals.crossing / valid if valid else 0.0
    complete = sum(line.matched == line.gold == line.test for line in scored)
    return f"""
-- {title} --
Number of sentence        = {len(lines):6}
Number of Error sentence  = {sum(line.status == _ERROR for line in lines):6}
Number of Skip  sentence  = {sum(line.status == _SKIP for line in lines):6}
Number of Valid sentence  = {valid:6}
Bracketing Recall         = {recall:6.2f}
Bracketing Precision      = {precision:6.2f}
Bracketing FMeasure       = {f1}
Complete match            = {_percent(complete, valid):6.2f}
Average crossing          = {crossing:6.2f}
No crossing               = {_percent(sum(line.crossing == 0 for line in scored), valid):6.2f}
2 or less crossing        = {_percent(sum(line.crossing <= 2 for line in scored), valid):6.2f}
Tagging accuracy          = {_percent(totals.matched_tags, totals.words):6.2f}
"""


def _percent(part: int, whole: int) -> float:
    """As the programs have it: nothing of nothing is 0."""
    return 100.0 * part / whole if whole else 0.0
