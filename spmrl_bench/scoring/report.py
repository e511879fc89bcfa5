"""What a score says of itself: every figure, and above all what is missing from it.

A program that leaves out the sentences it cannot compare and prints the F1 of the rest
rewards a parser for failing. Here both forms of a report, text and JSON, say how many
sentences were left out, why, and which.
"""

from __future__ import annotations

from operator import attrgetter

from spmrl_bench.errors import ScoreError
from spmrl_bench.scoring.counts import BracketCounts, Status
from spmrl_bench.scoring.metric import Figure, Number, figure_lines
from spmrl_bench.scoring.prm import Parameters

#: Every figure of brackets by name, in the order of a report.
FIGURES = {
    "sentences": Figure("sentences", len),
    "scored": Figure("scored", attrgetter("valid")),
    "skipped": Figure("left out", attrgetter("skipped")),
    "recall": Figure("recall", attrgetter("recall")),
    "precision": Figure("precision", attrgetter("precision")),
    "f1": Figure("F1", attrgetter("f1")),
    "complete_match": Figure("complete match", attrgetter("complete_match")),
    "average_crossing": Figure("average crossing", attrgetter("average_crossing")),
    "no_crossing": Figure("no crossing", attrgetter("no_crossing")),
    "two_or_less_crossing": Figure("2 or less crossing", attrgetter("two_or_less_crossing")),
    "tagging_accuracy": Figure("tagging accuracy", attrgetter("tagging_accuracy")),
}
_SHOWN = 10

#: Share of the sentences that a score may leave out without anybody having allowed it.
MOST_LEFT_OUT = 0.05


def figures(counts: BracketCounts) -> dict[str, Number]:
    """The value of every figure by name."""
    return {name: figure.of(counts) for name, figure in FIGURES.items()}


def left_out(counts: BracketCounts) -> dict[str, list[int]]:
    """Reason -> the sentences (from 1) that no figure includes; only reasons that occur."""
    found = {}
    for status in Status:
        sentences = counts.sentences_with(status)
        if not status.scored and len(sentences):
            found[status.name.lower()] = (sentences + 1).tolist()
    return found


def as_dict(counts: BracketCounts, prm: Parameters) -> dict[str, object]:
    """The report as JSON-able values.

    Keys: ``prm``, ``program``, ``all`` and ``up_to_cutoff`` (:func:`figures`),
    ``cutoff_len`` (words), ``left_out`` (:func:`left_out`), ``missed`` (the sentences, from 1,
    without a parse whose gold brackets count as missed).
    """
    return {
        "prm": prm.name,
        "program": prm.program.value,
        "all": figures(counts),
        "cutoff_len": prm.cutoff_len,
        "up_to_cutoff": figures(counts.up_to(prm.cutoff_len)),
        "left_out": left_out(counts),
        "missed": (counts.sentences_with(Status.MISSED) + 1).tolist(),
    }


def as_text(counts: BracketCounts, prm: Parameters) -> str:
    """The report for people: two columns of figures, then every sentence left out."""
    cutoff = prm.cutoff_len
    columns = {"all": figures(counts), f"length <= {cutoff}": figures(counts.up_to(cutoff))}
    heading = f"Bracket scores: {prm.name}, conventions of {prm.program}"
    lines = [heading, "", *figure_lines(FIGURES, columns, 20, 14)]
    warning = left_out_text(counts)
    return "\n".join(lines) + "\n" + (f"\n{warning}" if warning else "")


def left_out_text(counts: BracketCounts) -> str:
    """Lines that say what no figure includes and what counts as missed; empty if nothing does."""
    lines = []
    if counts.skipped:
        lines.append(f"LEFT OUT of every figure: {counts.skipped} of {len(counts)} sentences")
        for name, sentences in left_out(counts).items():
            lines.append(f"  {Status[name.upper()].reason}: {_listed(sentences)}")
    missed = (counts.sentences_with(Status.MISSED) + 1).tolist()
    if missed:
        lines.append(f"Without a parse, all gold brackets missed: {_listed(missed)}")
    return "".join(f"{line}\n" for line in lines)


def require_all(counts: BracketCounts) -> None:
    """See to it that a score is of every sentence.

    Raises:
        ScoreError: sentences were left out; the message names the first ones and why.
    """
    if not counts.skipped:
        return
    reasons = sorted(
        (sentence, Status[name.upper()].reason)
        for name, sentences in left_out(counts).items()
        for sentence in sentences
    )
    named = "; ".join(f"sentence {number}: {reason}" for number, reason in reasons[:_SHOWN])
    more = "; ..." if len(reasons) > _SHOWN else ""
    raise ScoreError(f"{len(reasons)} of {len(counts)} sentences cannot be scored: {named}{more}")


def require_most(counts: BracketCounts) -> None:
    """See to it that a score is of nearly every sentence.

    Raises:
        ScoreError: more than :data:`MOST_LEFT_OUT` of them were left out.
    """
    if counts.skipped > MOST_LEFT_OUT * len(counts):
        raise ScoreError(
            f"{counts.skipped} of {len(counts)} sentences are in no figure, more than a twentieth, "
            "so this is no score of the parses; --allow-skipped accepts it"
        )


def _listed(sentences: list[int]) -> str:
    which = ", ".join(map(str, sentences[:_SHOWN]))
    more = ", ..." if len(sentences) > _SHOWN else ""
    return f"{len(sentences)} (sentence {which}{more})"
