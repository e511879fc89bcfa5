"""The signature of a score: what was done to get it, in one line.

Two F1 scores of "German" can differ by ten points because of the parameter file, the tags or
the sentences that were left out. A score is printed with its signature, as sacreBLEU does,
and scores are comparable where their signatures say so. It is computed from the counts, the
parameters and the data that were used, never from what somebody asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from spmrl_bench import __version__
from spmrl_bench.errors import ScoreError
from spmrl_bench.scoring.attachment import AttachmentRules
from spmrl_bench.scoring.attachment_counts import AttachmentCounts
from spmrl_bench.scoring.counts import BracketCounts
from spmrl_bench.scoring.policy import PUBLISHED, Policy
from spmrl_bench.scoring.prm import Parameters
from spmrl_bench.scoring.punctuation import PUNCTUATION_RULES
from spmrl_bench.settings_text import settings_text

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
    "tags": "t",
    "transforms": "tr",
    "variant": "var",
    "settings": "set",
    "ensemble": "ens",
    "size": "sz",
    "precision": "prec",
    "seed": "seed",
    "version": "v",
}
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
        items = [(key, value) for key in KEYS if (value := values.get(key)) is not None]
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
        return "|".join(f"{KEYS[key]}:{value}" for key, value in self.items)

    def as_dict(self) -> dict[str, str]:
        """The pairs as a dict, for records."""
        return dict(self.items)

    def __str__(self) -> str:
        return self.long()


def prm_signature(prm: Parameters) -> str:
    """Name and first 8 digits of the hash of a parameter set."""
    return f"{prm.name}({prm.sha256[:8]})"


def sign(
    counts: BracketCounts,
    prm: Parameters,
    policy: Policy = PUBLISHED,
    *,
    scorer: str = "own",
    treebank: str | None = None,
    fingerprint: str | None = None,
    split: str | None = None,
    tags: str | None = None,
    transforms: Iterable[str] = (),
    variant: str | None = None,
    settings: Mapping[str, Any] | None = None,
    ensemble: int | None = None,
    size: str | None = None,
    precision: str | None = None,
    seed: int | None = None,
) -> Signature:
    """The signature of the score that ``counts`` give under ``prm``.

    Args:
        counts: what was counted; gives the sentences and how many were left out.
        prm: the parameters it was counted with; name and first 8 digits of the hash.
        policy: that it was counted with; only what differs from the published one is shown.
        scorer: who counted: ``own``, or the name that
            :func:`~spmrl_bench.scoring.official.confirm` gives a C program.
        treebank: name of the gold trees.
        fingerprint: hex digest of the treebank's files and transforms; 8 digits are shown.
        split: ``train``, ``dev`` or ``test``.
        tags: where the tags of the parser's input came from.
        transforms: names of the transforms that the gold trees went through, in order.
        variant: name of the model variant.
        settings: of the run that are not the recipe's own, ``section.key`` and value.
        ensemble: number of parsers that parsed together; absent for a single one.
        size: name of the model size.
        precision: of the parser's matrix products; float32, the usual one, is not shown.
        seed: seed of the run.

    Raises:
        ScoreError: a value contains a character that separates the parts of a signature.
    """
    name = treebank
    if treebank is not None and fingerprint is not None:
        name = f"{treebank}({fingerprint[:8]})"
    return Signature.of(
        {
            "scorer": scorer,
            "match": "labelled" if prm.labeled else "unlabelled",
            "prm": prm_signature(prm),
            "punctuation": _unusual(policy.punctuation, PUBLISHED.punctuation),
            "missing": _unusual(policy.missing_parse, PUBLISHED.missing_parse),
            "treebank": name,
            "split": split,
            "sentences": str(len(counts)),
            "skipped": str(counts.skipped),
            "tags": tags,
            "transforms": "+".join(transforms) or None,
            "variant": variant,
            "settings": settings_text(settings or {}) or None,
            "ensemble": None if ensemble is None else str(ensemble),
            "size": size,
            "precision": None if precision is None else _unusual(precision, "float32"),
            "seed": None if seed is None else str(seed),
            "version": __version__,
        }
    )


def _unusual(value: str, usual: str) -> str | None:
    return None if value == usual else str(value)


def sign_attachment(counts: AttachmentCounts, rules: AttachmentRules) -> Signature:
    """The signature of the attachment scores that ``counts`` give under ``rules``."""
    by_tag = PUNCTUATION_RULES[rules.punctuation].foreign_tags
    return Signature.of(
        {
            "scorer": "own",
            "match": "attachment",
            "punctuation": rules.punctuation + (f"({rules.tags})" if by_tag else ""),
            "relations": rules.relations,
            "roots": rules.roots,
            "sentences": str(len(counts)),
            "version": __version__,
        }
    )
