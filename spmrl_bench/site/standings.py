"""Which entries of a treebank share the first place.

The entry with the best score is marked, and with it each one of which the test does not show that
it is worse: they share a mark. The test is approximate randomisation over the counts of each
sentence, as ``compare`` makes it (:mod:`spmrl_bench.scoring.significance`), and its p is not
corrected for the number of entries. An entry whose counts cannot be set beside those of the best,
as it leaves out other sentences, has no mark and says why.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from spmrl_bench.leaderboard.board import LEVEL, Entry, Group, View

MARK = "a"


@dataclass(frozen=True)
class Standing:
    """The order of the entries by one figure.

    Attributes:
        ordered: the entries that have it, best first.
        p: of each entry against the first, as far as it was tested.
    """

    ordered: tuple[Entry, ...]
    p: Mapping[Entry, float]

    @property
    def best(self) -> Entry:
        """The entry with the best score; of equals the first of the table."""
        return self.ordered[0]

    @property
    def rival(self) -> Entry | None:
        """Whom the best is set beside: the one behind it."""
        return self.ordered[1] if len(self.ordered) > 1 else None

    def shares_first(self, entry: Entry) -> bool:
        """Whether it is the best, or not significantly worse."""
        return entry is self.best or self.p.get(entry, 0.0) >= LEVEL

    def mark(self, entry: Entry) -> str:
        """What stands behind its score."""
        return MARK if self.shares_first(entry) and self.p else ""


def standing(group: Group, view: View) -> Standing | None:
    """The order of the entries of a table; None where none has the figure."""
    scores = {entry: found.mean for entry in group.entries if (found := entry.headline(view))}
    if not scores:
        return None
    ordered = sorted(scores, key=lambda entry: -scores[entry])
    compared = {entry: entry.compare(ordered[0], view) for entry in ordered[1:]}
    return Standing(tuple(ordered), {one: found.p for one, found in compared.items() if found})
