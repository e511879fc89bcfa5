"""The figures of a treebank's splits as a table for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

from spmrl_bench.treebanks.survey import SHORT, Survey

_SHOWN = 12


def survey_table(surveys: Mapping[str, Survey]) -> str:
    """One column for each split, one row for each figure; unseen forms are not in the first."""
    from tabulate import tabulate

    train = next(iter(surveys.values()))
    figures: list[tuple[str, Callable[[Survey], object]]] = [
        ("sentences", lambda s: f"{s.sentences:,}"),
        ("tokens", lambda s: f"{s.tokens:,}"),
        ("word forms", lambda s: f"{len(s.forms):,}"),
        ("unseen tokens", lambda s: "" if s is train else f"{s.unseen(train):.1f} %"),
        ("tags", lambda s: len(s.tags)),
        ("labels", lambda s: len(s.labels)),
        ("longest sentence", lambda s: f"{s.longest[0]} (no. {s.longest[1]})"),
        ("deepest", lambda s: s.deepest),
        ("sentences of one word", lambda s: s.one_word),
        ("unary chains", lambda s: sum(s.chains.values())),
        ("discontinuous", lambda s: f"{s.discontinuous} in {s.discontinuous_sentences}"),
    ]
    rows = [[name, *(figure(survey) for survey in surveys.values())] for name, figure in figures]
    return tabulate(
        rows, headers=["", *surveys], tablefmt="simple", disable_numparse=True,
        colalign=["left", *["right"] * len(surveys)],
    )  # fmt: skip


def inventories(surveys: Mapping[str, Survey]) -> list[str]:
    """The most frequent labels, tags and unary chains of all splits, a line for each kind."""
    together: dict[str, Counter[str]] = {kind: Counter() for kind in ("labels", "tags", "chains")}
    for survey in surveys.values():
        together["labels"].update(survey.labels)
        together["tags"].update(survey.tags)
        together["chains"].update({" over ".join(c): n for c, n in survey.chains.items()})
    return [
        f"{kind} ({len(counts)}): {_most_frequent(counts)}"
        for kind, counts in together.items()
        if counts
    ]


def shared_note(shared: list[tuple[str, int, str, int]]) -> list[str]:
    """What to say about sentences that stand in two splits."""
    if not shared:
        return []
    pairs = Counter((later, earlier) for later, _, earlier, _ in shared)
    counts = ", ".join(f"{n} of {later} in {earlier}" for (later, earlier), n in pairs.items())
    split, number, other, there = shared[0]
    return [
        f"sentences of more than {SHORT} words in two splits: {counts} "
        f"(the first: {split} {number} is {other} {there})"
    ]


def _most_frequent(counts: Counter[str]) -> str:
    shown = ", ".join(name or "(none)" for name, _ in counts.most_common(_SHOWN))
    return shown + (", ..." if len(counts) > _SHOWN else "")
