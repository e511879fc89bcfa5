"""Where the sentences of a score and their parses come from, as its signature says it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from spmrl_bench.scoring.settings_text import settings_text
from spmrl_bench.scoring.signature import unless_default


@dataclass(frozen=True, slots=True)
class Provenance:
    """Keys of a signature that its metric does not know; None for what does not apply."""

    treebank: str | None = None  # name of the gold annotation
    fingerprint: str | None = None  # hex digest of its files and transforms; 8 digits are shown
    split: str | None = None  # train, dev or test
    counts: str | None = None  # accepted: other numbers of sentences than the manifest declares
    tags: str | None = None  # where the tags of the parser's input came from
    transforms: tuple[str, ...] = ()  # that the gold annotation went through, in order
    variant: str | None = None  # of the model
    settings: Mapping[str, Any] = field(default_factory=dict)  # that are not the recipe's own
    ensemble: int | None = None  # number of parsers that parsed together
    size: str | None = None  # of the model
    precision: str | None = None  # of matrix products; float32, the usual one, is not shown
    seed: int | str | None = None  # those of an ensemble as 1+2+3
    output: str | None = None  # answers of an outside system that could not be scored, and why

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
