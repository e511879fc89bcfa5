"""Which pages there are and where: treebanks, their entries, runs, and systems over all treebanks.

Every page asks here for the address of another, so that none leads to a page that is not made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from spmrl_bench.leaderboard.board import Entry, Group, Results, View, track_title
from spmrl_bench.leaderboard.frame import StoredRecord
from spmrl_bench.leaderboard.published import PublishedFigure
from spmrl_bench.leaderboard.record import Record
from spmrl_bench.site.addresses import slugs
from spmrl_bench.site.licences import Facts, facts_of
from spmrl_bench.site.standings import Standing, standing

#: What is the same system on every treebank; see :func:`system_key`.
SystemKey = tuple[str, str, str, str]


def system_key(entry: Entry) -> SystemKey:
    """What is the same on every treebank: kind, name, size and origin."""
    kind = "run" if entry.kind == "mean" else entry.kind
    members = f" of {entry.number}" if kind == "ensemble" else ""
    return f"{kind}{members}", entry.name, entry.size, entry.origin


def has_seed(record: Record) -> bool:
    """Whether a seed decided what was learnt, as of one parser that was trained here."""
    return record.cost is not None and not record.ensemble


def runs_text(entry: Entry) -> str:
    """How many runs an entry stands for, and which seed a single one has."""
    if entry.form in ("mean", "ensemble"):
        return f"{entry.form} of {entry.number}"
    return f"seed {entry.record.seed}" if not entry.baseline and has_seed(entry.record) else ""


@dataclass(frozen=True, eq=False)
class Bank:
    """A treebank with its tables.

    Attributes:
        slug: that its addresses are made of.
        groups: its tables; more than one where not all scores compare.
        facts: what its manifest says; None where there is none here.
    """

    track: str
    name: str
    language: str
    slug: str
    groups: Sequence[Group]
    facts: Facts | None

    @property
    def title(self) -> str:
        """Name and track, which says of mini treebanks that their sentences are generated."""
        return f"{self.name} ({track_title(self.track)})"

    @property
    def address(self) -> str:
        """Of its page."""
        return f"treebanks/{self.slug}.html"

    @property
    def comparing(self) -> str:
        """Address of the page that compares any two of its entries."""
        return f"compare/{self.slug}.html"

    def data(self, name: str, group: Group | None = None) -> str:
        """Address of a file with numbers, without its ending."""
        table = f"-table-{group.number}" if group is not None and group.several else ""
        return f"data/{self.slug}/{name}{table}"

    @property
    def shows_sentences(self) -> bool:
        """Whether its sentences may stand on a page; not without a manifest that says so."""
        return self.facts is not None and self.facts.shows_sentences

    @property
    def runs(self) -> int:
        """How many records its entries are of."""
        stored = {
            one.name for group in self.groups for entry in group.entries for one in entry.stored
        }
        return len(stored)


class Atlas:
    """All pages of a site.

    Attributes:
        gathered: what it is made from.
        banks: the treebanks, by track and name.
        systems: on which treebanks each system, variant or baseline has an entry.
    """

    def __init__(self, gathered: Results) -> None:
        self.gathered = gathered
        self.banks = _banks(gathered.groups)
        self._slugs = {
            entry: slug for group in gathered.groups for entry, slug in _slugs(group).items()
        }
        self.systems: dict[SystemKey, list[tuple[Bank, Group, Entry]]] = {}
        for bank in self.banks:
            for group in bank.groups:
                for entry in group.entries:
                    self.systems.setdefault(system_key(entry), []).append((bank, group, entry))
        texts = {key: found[0][2].text for key, found in self.systems.items()}
        self._system_slugs = slugs(texts)
        self._standings: dict[tuple[int, View], Standing | None] = {}
        self._entry_of_run = {
            one.name: (bank, group, entry)
            for bank in self.banks
            for group in bank.groups
            for entry in group.entries
            if entry.kind != "baseline"
            for one in entry.stored
        }
        self._older = {one.name for one in gathered.stored} - self._entry_of_run.keys()

    def entry(self, bank: Bank, group: Group, entry: Entry) -> str:
        """Address of the page of an entry."""
        return f"entries/{bank.slug}/{self._slugs[entry]}.html"

    def slug(self, entry: Entry) -> str:
        """What addresses of an entry are made of."""
        return self._slugs[entry]

    def run(self, stored: StoredRecord) -> str:
        """Address of the page of a record."""
        return f"runs/{stored.name}.html"

    def system(self, key: SystemKey) -> str:
        """Address of the page of a system."""
        return f"systems/{self._system_slugs[key]}.html"

    def published(self, treebank: str) -> str:
        """Address of the published figures of a treebank; empty where there are none."""
        slug = self._published_slugs.get(treebank)
        return "" if slug is None else f"published/{slug}.html"

    def published_of_language(self, language: str) -> list[str]:
        """Treebanks of a language that have published figures."""
        return list(dict.fromkeys(one.treebank for one in self.figures if one.language == language))

    def place_of(self, stored: StoredRecord) -> tuple[Bank, Group, Entry] | None:
        """The entry that a record is part of; None of older records of a run."""
        return self._entry_of_run.get(stored.name)

    @property
    def shown(self) -> list[StoredRecord]:
        """The records that have a page: the newest of each run."""
        return [one for one in self.gathered.stored if one.name in self._entry_of_run]

    @property
    def figures(self) -> Sequence[PublishedFigure]:
        """Published figures."""
        return self.gathered.published

    @property
    def older(self) -> int:
        """How many records are not shown, as there are newer ones of their runs."""
        return len(self._older)

    @cached_property
    def _published_slugs(self) -> Mapping[str, str]:
        return slugs({one.treebank: one.treebank for one in self.figures})

    def standing(self, group: Group, view: View) -> Standing | None:
        """The order of the entries of a table by a figure, made once."""
        place = id(group), view
        if place not in self._standings:
            self._standings[place] = standing(group, view)
        return self._standings[place]


def _slugs(group: Group) -> dict[Entry, str]:
    """Those that are called the same end with what stands for their runs."""
    mark = f" table {group.number}" if group.several else ""
    texts = [entry.text for entry in group.entries]
    return slugs(
        {
            entry: f"{text if texts.count(text) == 1 else f'{text} {entry.stored[0].name}'}{mark}"
            for entry, text in zip(group.entries, texts, strict=True)
        }
    )


def _banks(groups: Sequence[Group]) -> list[Bank]:
    by_bank: dict[tuple[str, str], list[Group]] = {}
    for group in groups:
        by_bank.setdefault((group.track, group.treebank), []).append(group)
    names = [name for _, name in by_bank]
    names_of = slugs(
        {
            (track, name): name if names.count(name) == 1 else f"{name} {track}"
            for track, name in by_bank
        }
    )
    return [
        Bank(track, name, found[0].language, names_of[track, name], found, facts_of(name, track))
        for (track, name), found in by_bank.items()
    ]
