"""Where the sentences of a score and their parses come from, as its signature says it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from spmrl_bench.scoring.settings_text import settings_text
from spmrl_bench.scoring.signature import unless_default


@dataclass(frozen=True, slots=True)
class Provenance:
    """Keys of a signature that its metric does not know; None for what does not apply.

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
        """Return the values by key, as :func:`~spmrl_bench.scoring.signature.sign` takes them."""
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
            "precision": unless_default(self.precision or "float32", "float32"),
            "seed": None if self.seed is None else str(self.seed),
            "output": self.output,
        }
