"""What may be shown of a treebank, and what is told of it.

A record says which treebank it is of, but its word does not decide what is shown: only a manifest
here does. Sentences, trees and words appear on no page unless the manifest of that name is of the
track ``open`` or ``mini``; numbers appear in any case.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from spmrl_bench.errors import SpmrlError
from spmrl_bench.scoring.metric import metric_named
from spmrl_bench.treebanks.catalogue import is_known, load_manifest
from spmrl_bench.treebanks.manifest import SPLITS, Manifest

_SHOWN = ("open", "mini")


@dataclass(frozen=True, slots=True)
class SplitSize:
    """Declared numbers of a split; None where the manifest has none."""

    split: str
    sentences: int | None
    tokens: int | None


@dataclass(frozen=True, slots=True)
class Facts:
    """What a manifest says of a treebank.

    Attributes:
        manifest: itself.
        rules: what decides the counts of each metric that is installed; of none where they are
            wrong.
    """

    manifest: Manifest
    rules: Mapping[str, Any]

    @property
    def sizes(self) -> list[SplitSize]:
        """Of each split."""
        found = []
        for name in SPLITS:
            split = self.manifest.splits[name]
            found.append(SplitSize(name, (split.sentences or (None,))[0], split.tokens))
        return found

    @property
    def has_tokens(self) -> bool:
        """Whether the tokens of any split are declared."""
        return any(size.tokens is not None for size in self.sizes)

    @property
    def obtain(self) -> str:
        """How to get it."""
        return self.manifest.obtain

    @property
    def command(self) -> str:
        """That downloads it; empty where none does."""
        if self.manifest.fetch:
            return f"spmrl-bench treebanks fetch {self.manifest.name}"
        return ""

    @property
    def shows_sentences(self) -> bool:
        """Whether its sentences may stand on a page."""
        return self.manifest.track in _SHOWN

    @property
    def told(self) -> Mapping[str, str]:
        """Facts by what they are."""
        manifest = self.manifest
        rules = "; ".join(
            f"{metric} ({', '.join(f'{key} {value}' for key, value in options.items())})"
            for metric, options in manifest.rules.items()
        )
        return {
            "Treebank": manifest.title,
            "Licence": manifest.licence,
            "Source": manifest.source,
            "To cite": manifest.citation,
            "Tags": manifest.tags,
            "Transforms": ", ".join(manifest.transforms) or "none",
            "Scored by": rules,
        }


def facts_of(treebank: str, track: str) -> Facts | None:
    """What the manifest of a name and track says; None where there is no such sound manifest."""
    try:
        if not is_known(treebank):
            return None
        manifest = load_manifest(treebank)
    except SpmrlError:
        return None
    return Facts(manifest, _rules(manifest)) if manifest.track == track else None


def _rules(manifest: Manifest) -> dict[str, Any]:
    found = {}
    for name, options in manifest.rules.items():
        try:
            found[name] = metric_named(name).rules(options)
        except SpmrlError:
            continue
    return found
