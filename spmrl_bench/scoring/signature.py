"""The signature of a score: what was done to get it, in one line.

Two F1 scores of "German" can differ by ten points because of the parameter file, the tags or
the sentences that were left out. A score is printed with its signature, as sacreBLEU does,
and scores are comparable where their signatures say so. It is computed from the counts, the
rules and the data that were used, never from what somebody asked for. Where the parses come from
is not known here, but the keys of that stand in the order of all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from spmrl_bench import __version__
from spmrl_bench.errors import ScoreError
from spmrl_bench.scoring.counts import Counts

if TYPE_CHECKING:
    from spmrl_bench.scoring.metric import Metric

#: Keys in the order of a signature, with their short forms.
KEYS = {
    "scorer": "sc",
    "match": "m",
    "prm": "p",
    "punctuation": "punct",
    "missing": "miss",
    "outer": "outer",
    "escapes": "esc",
    "relations": "rel",
    "roots": "root",
    "treebank": "tb",
    "split": "s",
    "sentences": "n",
    "skipped": "skip",
    "counts": "cnt",
    "tags": "t",
    "learns": "learn",
    "encoder": "enc",
    "transforms": "tr",
    "variant": "var",
    "settings": "set",
    "ensemble": "ens",
    "size": "sz",
    "precision": "prec",
    "seed": "seed",
    "output": "out",
    "version": "v",
}
_COUNTING = tuple(KEYS)[: tuple(KEYS).index("treebank")]
_RESERVED = "|:\n"


@dataclass(frozen=True, slots=True)
class Signature:
    """Keys and values of a signature, in the order of :data:`KEYS`."""

    items: tuple[tuple[str, str], ...]  # a key that does not apply is absent

    @classmethod
    def of(cls, values: Mapping[str, str | None]) -> Signature:
        """Return the signature of values by key; None stands for a key that does not apply. Raise a
        ScoreError if a value contains a character that separates the parts of a signature."""
        # A metric's own keys that are not listed stand behind those that say how it counts.
        order = dict.fromkeys([*_COUNTING, *(key for key in values if key not in KEYS), *KEYS])
        items = [(key, value) for key in order if (value := values.get(key)) is not None]
        for key, value in items:
            if any(mark in value for mark in _RESERVED):
                raise ScoreError(
                    f"signature: the {key} {value!r} must not contain '|', ':' or line ends"
                )
        return cls(tuple(items))

    def long(self) -> str:
        """``key:value|key:value|...`` with whole keys."""
        return "|".join(f"{key}:{value}" for key, value in self.items)

    def short(self) -> str:
        """The same with short keys."""
        return "|".join(f"{KEYS.get(key, key)}:{value}" for key, value in self.items)

    def as_dict(self) -> dict[str, str]:
        """The pairs as a dict, for records."""
        return dict(self.items)

    def __str__(self) -> str:
        return self.long()


def sign(metric: Metric[Any, Any], counts: Counts, rules: Any, /, **also: str | None) -> Signature:
    """Return the signature of the score that counts give.

    ``rules`` are those that the metric counted by. ``also`` are further values by key: those of the
    sentences and their parses as far as known and, in place of the metric's own, the ``scorer``
    where another program counted. Raise a ScoreError if a value contains a character that separates
    the parts of a signature.
    """
    own = {"sentences": str(len(counts)), "skipped": str(counts.skipped), "version": __version__}
    return Signature.of(own | metric.counting(rules) | also)
