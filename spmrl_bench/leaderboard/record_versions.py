"""Records of earlier layouts, as they would be written today.

Records are never changed, so their files stay as they are for ever; what is different in them is
put right whenever they are read. Version 2 had bracket scores only, at the place of the split,
one baseline and one fingerprint; version 3 had runs alone, version 4 no searches. (Version 1 was
never released.)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_FIGURES = ("sentences", "skipped", "recall", "precision", "f1", "complete_match")


def upgraded(content: Any) -> Any:
    """The content of a record of any version in the layout of the newest.

    What is no record of an older version is returned as it is.
    """
    if isinstance(content, Mapping) and content.get("schema_version") == 2:
        content = _from_2(content)
    if isinstance(content, Mapping) and content.get("schema_version") in (3, 4):
        content = {**content, "schema_version": 5}
    return content


def _from_2(old: Mapping[str, Any]) -> dict[str, Any]:
    new = {**old, "schema_version": 3}
    for split in ("dev", "test"):
        if isinstance(old.get(split), Mapping):
            new[split] = _split(old[split])
    baseline = new.pop("baseline", None)
    if isinstance(baseline, Mapping):
        new["baselines"] = {"right-branching": _split(baseline)}
    bank = old.get("treebank")
    if isinstance(bank, Mapping) and "fingerprint" in bank:
        rest = {key: value for key, value in bank.items() if key != "fingerprint"}
        new["treebank"] = {**rest, "fingerprints": {"constituents": bank["fingerprint"]}}
    return new


def _split(old: Mapping[str, Any]) -> dict[str, Any]:
    """Scores of a split, whose figures stood beside its counts."""
    whole = ("sentences", "tokens_per_second", "tag_accuracy")
    own = {key: value for key, value in old.items() if key not in (*_FIGURES, *whole)}
    figures = {key: old[key] for key in _FIGURES if key in old}
    kept = {key: old[key] for key in whole if key in old}
    return {**kept, "metrics": {"brackets": {**own, "figures": figures}}}
