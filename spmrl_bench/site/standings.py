"""The results of each treebank as pages show them: who is best, who is not worse, and where.

The best entry by a figure is marked, and with it each one of which the test does not show that it
is worse (approximate randomisation over sentences, not corrected for the number of entries). An
entry that leaves out other sentences than the best cannot be tested, and has no mark.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from spmrl_bench.errors import SpmrlError
from spmrl_bench.leaderboard.board import LEVEL, Entry, Group, Results, Sums, View, track_title
from spmrl_bench.scoring.bracket_metric import SENTENCE_LENGTHS, length_names
from spmrl_bench.scoring.significance import Ratio
from spmrl_bench.storage.paths import path_fault
from spmrl_bench.treebanks.catalogue import load_manifest
from spmrl_bench.treebanks.manifest import Manifest

_LONGEST, _DIGITS = 60, 8  # of the names of files, and of the hash in them


@dataclass(frozen=True)
class Ranking:
    """The entries that have a figure, best first, and p of each against the first."""

    ordered: Sequence[Entry]
    p: Mapping[Entry, float]

    def rival(self, entry: Entry) -> Entry | None:
        """Whom an entry is set beside: the best, or of the best the next, a parser if possible."""
        first, *others = self.ordered
        second = min(others, key=lambda one: bool(one.baseline), default=None)
        return second if entry is first else first

    def mark(self, entry: Entry) -> str:
        """What the best and those that are not significantly worse share; else empty."""
        shares = entry is self.ordered[0] or self.p.get(entry, 0.0) >= LEVEL
        return "a" if shares and self.p else ""


def ranking(group: Group, view: View) -> Ranking:
    """The order of the entries of a group by a figure that some of them have."""
    scores = {entry: found.mean for entry in group.entries if (found := entry.headline(view))}
    ordered = sorted(scores, key=lambda entry: -scores[entry])
    compared = {entry: entry.compare(ordered[0], view) for entry in ordered[1:]}
    p = {entry: found.p for entry, found in compared.items() if found}
    return Ranking(ordered, p)


def by_length(sums: Sums) -> dict[str, tuple[int, float | None]]:
    """Number and score of the sentences of each class of lengths that there are, shortest first.
    The score is the ratio of their sums, so that the classes of F1 add up to F1."""
    found = {}
    if sums.lengths is not None:
        classes = np.searchsorted(SENTENCE_LENGTHS, np.asarray(sums.lengths))
        for number, name in enumerate(length_names()):
            chosen = sums.scored & (classes == number)
            if chosen.any():
                above, below = sums.ratio.numerator[chosen], sums.ratio.denominator[chosen]
                found[name] = int(chosen.sum()), Ratio(name, above, below).value
    return found


class Place(NamedTuple):
    """An entry, where it stands, and the address of its page beside the best."""

    bank: TreebankResults
    group: Group
    entry: Entry
    address: str


@dataclass(frozen=True, eq=False)
class TreebankResults:
    """A treebank with its groups of entries that compare, of which there is mostly one."""

    track: str
    name: str
    slug: str
    groups: Sequence[Group]
    manifest: Manifest | None  # None where there is none of this name and track here

    @property
    def title(self) -> str:
        return f"{self.name} ({track_title(self.track)})"

    @property
    def address(self) -> str:
        return f"treebanks/{self.slug}.html"

    @property
    def language(self) -> str:
        return self.groups[0].language

    @property
    def shows_sentences(self) -> bool:
        """Whether its sentences may stand on a page; only a manifest can say so, no record."""
        return self.manifest is not None and self.manifest.redistributable

    @cached_property
    def rankings(self) -> Mapping[tuple[Group, View], Ranking]:
        views = [(group, view) for group in self.groups for view in group.views]
        return {each: ranking(*each) for each in views}

    @cached_property
    def places(self) -> Sequence[Place]:
        pairs = [(group, entry) for group in self.groups for entry in group.entries]
        return [
            Place(self, *pair, f"compare/{self.slug}/{name}.html")
            for pair, name in zip(pairs, slugs(entry.text for _, entry in pairs), strict=True)
        ]


def treebanks_of(results: Results) -> list[TreebankResults]:
    """Treebanks with results: open ones first, those with generated sentences last."""
    groups: dict[tuple[str, str], list[Group]] = {}
    for group in results.groups:
        groups.setdefault((group.track, group.treebank), []).append(group)
    order = {"open": 0, "mini": 2}
    keys = sorted(groups, key=lambda key: (order.get(key[0], 1), key))
    return [
        TreebankResults(*key, slug, groups[key], _manifest(*key))
        for key, slug in zip(keys, slugs(name for _, name in keys), strict=True)
    ]


def _manifest(track: str, name: str) -> Manifest | None:
    with suppress(SpmrlError):
        if (manifest := load_manifest(name)).track == track:
            return manifest
    return None


def slugs(texts: Iterable[str]) -> list[str]:
    """Names of files for texts of whatever origin, one of its own for each."""
    seen: Counter[str] = Counter()
    found = []
    for text in texts:
        seen[text] += 1
        found.append(slug(text) + (f"~{seen[text]}" if seen[text] > 1 else ""))
    return found


def slug(text: str) -> str:
    """A name that every file system takes; a hash stands for what it cannot have of the text."""
    plain = text.replace(" ", "_")
    if re.fullmatch(r"[a-z0-9][a-z0-9.=_-]{0,58}[a-z0-9]", plain) and "_" not in text:
        return f"{plain}-" if path_fault(plain) else plain
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGITS]
    kept = re.sub(r"[^A-Za-z0-9.=]+", "-", text)[:_LONGEST].strip(".-")
    return f"{kept or 'unnamed'}-{digest}"


def address_of(entry: Entry) -> str:
    """Of the page of what is called so on every treebank."""
    return f"systems/{slug(entry.text)}.html"
