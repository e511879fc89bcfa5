"""What a score says of itself: every figure, and above all what is missing from it.

A program that leaves out the sentences it cannot compare and prints the F1 of the rest
rewards a parser for failing. Here both forms of a report, text and JSON, say how many
sentences were left out, why, and which.
"""

from __future__ import annotations

from spmrl_bench.scoring.counts import BracketCounts, Status
from spmrl_bench.scoring.prm import Parameters

Figure = int | float | None

_ROWS = {
    "sentences": "sentences",
    "scored": "scored",
    "skipped": "left out",
    "recall": "recall",
    "precision": "precision",
    "f1": "F1",
    "complete_match": "complete match",
    "average_crossing": "average crossing",
    "no_crossing": "no crossing",
    "two_or_less_crossing": "2 or less crossing",
    "tagging_accuracy": "tagging accuracy",
}
_SHOWN_SENTENCES = 10


def figures(counts: BracketCounts) -> dict[str, Figure]:
    """Every corpus figure by name: counts, percentages (0 to 100), None for 0 of 0."""
    return {
        "sentences": len(counts),
        "scored": counts.valid,
        "skipped": counts.skipped,
        "recall": counts.recall,
        "precision": counts.precision,
        "f1": counts.f1,
        "complete_match": counts.complete_match,
        "average_crossing": counts.average_crossing,
        "no_crossing": counts.no_crossing,
        "two_or_less_crossing": counts.two_or_less_crossing,
        "tagging_accuracy": counts.tagging_accuracy,
    }


def left_out(counts: BracketCounts) -> dict[str, list[int]]:
    """Reason -> the sentences (from 1) that no figure includes; only reasons that occur."""
    found = {}
    for status in Status:
        sentences = counts.sentences_with(status)
        if status is not Status.VALID and len(sentences):
            found[status.name.lower()] = (sentences + 1).tolist()
    return found


def as_dict(counts: BracketCounts, prm: Parameters) -> dict[str, object]:
    """The report as JSON-able values.

    Keys: ``prm``, ``program``, ``all`` and ``up_to_cutoff`` (:func:`figures`),
    ``cutoff_len`` (words), ``left_out`` (:func:`left_out`).
    """
    return {
        "prm": prm.name,
        "program": prm.program.value,
        "all": figures(counts),
        "cutoff_len": prm.cutoff_len,
        "up_to_cutoff": figures(counts.up_to(prm.cutoff_len)),
        "left_out": left_out(counts),
    }


def as_text(counts: BracketCounts, prm: Parameters) -> str:
    """The report for people: two columns of figures, then every sentence left out."""
    columns = (figures(counts), figures(counts.up_to(prm.cutoff_len)))
    heads = ("all", f"length <= {prm.cutoff_len}")
    lines = [
        f"Bracket scores: {prm.name}, conventions of {prm.program}",
        "",
        f"{'':20}" + "".join(f"{head:>14}" for head in heads),
    ]
    for key, title in _ROWS.items():
        lines.append(f"{title:20}" + "".join(f"{_shown(column[key]):>14}" for column in columns))
    if counts.skipped:
        lines += ["", f"LEFT OUT of every figure: {counts.skipped} of {len(counts)} sentences"]
        for name, sentences in left_out(counts).items():
            which = ", ".join(map(str, sentences[:_SHOWN_SENTENCES]))
            more = ", ..." if len(sentences) > _SHOWN_SENTENCES else ""
            reason = Status[name.upper()].reason
            lines.append(f"  {reason}: {len(sentences)} (sentence {which}{more})")
    return "\n".join(lines) + "\n"


def _shown(figure: Figure) -> str:
    if figure is None:
        return "n/a"
    return str(figure) if isinstance(figure, int) else f"{figure:.2f}"
