"""The signature of a score: what was done to get it, in one line.

Two F1 scores of "German" can differ by ten points because of the parameter file, the tags or
the sentences that were left out. A score is printed with its signature, as sacreBLEU does,
and scores are comparable where their signatures say so. It is computed from the counts, the
parameters and the data that were used, never from what somebody asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from spmrl_bench import __version__
from spmrl_bench.errors import ScoreError
from spmrl_bench.scoring.counts import Counts
from spmrl_bench.scoring.prm import Parameters
from spmrl_bench.settings_text import settings_text

if TYPE_CHECKING:
    from spmrl_bench.scoring.metric import Metric

#: Keys in the order of a signature, with their short forms.
KEYS = {
    "scorer": "sc",
    "match": "m",
    "prm": "p",
    "punctuation": "punct",
    "missing": "miss",
    "relations": "rel",
    "roots": "root",
    "treebank": "tb",
    "split": "s",
    "sentences": "n",
    "skipped": "skip",
    "counts": "cnt",
    "tags": "t",
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
    """Keys and values of a signature, in the order of :data:`KEYS`.

    Attributes:
        items: ``(key, value)`` pairs; a key that does not apply is absent.
    """

    items: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, values: Mapping[str, str | None]) -> Signature:
        """A signature of values by key; None stands for a key that does not apply.

        Raises:
            ScoreError: a value contains a character that separates the parts of a signature.
        """
        # A metric's own keys that are not listed stand behind those that say how it counts.
        order = [*_COUNTING, *(key for key in values if key not in KEYS), *KEYS]
        ordered = {key: values.get(key) for key in order}
        items = [(key, value) for key, value in ordered.items() if value is not None]
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


def prm_signature(prm: Parameters) -> str:
    """Name and first 8 digits of the hash of a parameter set."""
    return f"{prm.name}({prm.sha256[:8]})"


@dataclass(frozen=True, slots=True)
class Source:
    """Where the sentences of a score and their parses come from; None for what does not apply.

    Attributes:
        treebank: name of the gold annotation.
        fingerprint: hex digest of the treebank's files and transforms; 8 digits are shown.
        split: ``train``, ``dev`` or ``test``.
        counts: ``accepted`` where the treebank has other numbers of sentences than its manifest
            declares.
        tags: where the tags of the parser's input came from.
        transforms: names of the transforms that the gold annotation went through, in order.
        variant: name of the model variant.
        settings: of the run that are not the recipe's own, ``section.key`` and value.
        ensemble: number of parsers that parsed together; absent for a single one.
        size: name of the model size.
        precision: of the parser's matrix products; float32, the usual one, is not shown.
        seed: seed of the run; those of an ensemble as ``1+2+3``.
        output: how many answers of an outside system could not be scored as they stood, and why.
    """

    treebank: str | None = None
    fingerprint: str | None = None
    split: str | None = None
    counts: str | None = None
    tags: str | None = None
    transforms: tuple[str, ...] = ()
    variant: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    ensemble: int | None = None
    size: str | None = None
    precision: str | None = None
    seed: int | str | None = None
    output: str | None = None

    def values(self) -> dict[str, str | None]:
        """The values of a signature by key."""
        name = self.treebank
        if name is not None and self.fingerprint is not None:
            name = f"{name}({self.fingerprint[:8]})"
        return {
            "treebank": name,
            "split": self.split,
            "counts": self.counts,
            "tags": self.tags,
            "transforms": "+".join(self.transforms) or None,
            "variant": self.variant,
            "settings": settings_text(self.settings) or None,
            "ensemble": None if self.ensemble is None else str(self.ensemble),
            "size": self.size,
            "precision": None if self.precision is None else unusual(self.precision, "float32"),
            "seed": None if self.seed is None else str(self.seed),
            "output": self.output,
        }


def sign(
    metric: Metric[Any, Any], counts: Counts, rules: Any, source: Source | None = None, **also: str
) -> Signature:
    """The signature of the score that counts give.

    Args:
        metric: what was counted.
        counts: gives the sentences, and how many were left out.
        rules: that it was counted by.
        source: of the sentences and their parses, as far as known.
        also: further values by key, in place of the metric's own: the ``scorer`` where another
            program than this one counted.

    Raises:
        ScoreError: a value contains a character that separates the parts of a signature.
    """
    return Signature.of(
        {
            "sentences": str(len(counts)),
            **metric.signature(counts, rules),
            **(source or Source()).values(),
            "version": __version__,
            **also,
        }
    )


def unusual(value: str, usual: str) -> str | None:
    """A value that is not the usual one, which a signature does not show."""
    return None if value == usual else str(value)
