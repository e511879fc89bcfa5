"""Hostile files of every kind do no harm to whoever gives them to the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.reliability.attack import HARM, attack
from tests.reliability.tally import Tally

KINDS = (
    "models", "archives", "manifests and recipes", "records", "treebank files", "TOML", "locks",
    "a working directory of modules",
)  # fmt: skip


@pytest.mark.campaign
@pytest.mark.parametrize("kind", KINDS)
def test_an_attack_does_no_harm(kind: str, tmp_path: Path, tally: Tally) -> None:
    held = tally("R17", f"attacks by the command line: {kind}")
    counts = attack(tmp_path / "attack", [kind])[kind]
    held.add(counts["tried"])
    assert not any(counts[name] for name in HARM), counts
