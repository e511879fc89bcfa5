"""All that a site is made of: the records of one or several folders, and published figures.

Records are taken as ``table`` takes them: those that cannot be read are named and left out, those
that come with the program stand beside the user's. A record that lies in several folders is one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from spmrl_bench.leaderboard.published import PublishedFigure, load_published
from spmrl_bench.leaderboard.record import RECORDS, SHIPPED, Record


@dataclass(frozen=True, slots=True)
class Stored:
    """A record and where it is kept.

    Attributes:
        path: of its file, whose name is the hash of its bytes.
        results: the folder of results that it is in; parses may lie there too.
        shipped: whether it comes with the program.
    """

    record: Record
    path: Path
    results: Path
    shipped: bool

    @property
    def name(self) -> str:
        """The hash that it is known by."""
        return self.path.stem


@dataclass(frozen=True, slots=True)
class Gathered:
    """What there is.

    Attributes:
        stored: the records, in the order in which a frame of them numbers them.
        published: figures of others.
        mistakes: a message for each file or line that cannot be read.
    """

    stored: Sequence[Stored]
    published: Sequence[PublishedFigure]
    mistakes: Sequence[str]

    def records(self, *, shipped: bool) -> list[Record]:
        """Those that come with the program, or the user's."""
        return [one.record for one in self.stored if one.shipped == shipped]


def gather(folders: Iterable[Path]) -> Gathered:
    """Read the records of folders of results, and all published figures.

    Raises:
        RecordError: a folder cannot be read.
    """
    found: dict[str, Stored] = {}
    mistakes: list[str] = []
    for folder in folders:
        for shipped, place in ((False, folder / "runs"), (True, folder / SHIPPED / "runs")):
            records, wrong = RECORDS.readable_files(place)
            mistakes += wrong
            for path, record in records.items():
                known = found.get(path.name)
                if known is None or known.shipped > shipped:  # what is the user's too is theirs
                    found[path.name] = Stored(record, path, folder, shipped)
    published, wrong = load_published()
    # As a frame orders them: by age, the user's before shipped ones of the same moment.
    ordered = sorted(found.values(), key=lambda one: (one.record.finished, one.shipped, one.name))
    return Gathered(ordered, published, [*dict.fromkeys(mistakes), *wrong])
