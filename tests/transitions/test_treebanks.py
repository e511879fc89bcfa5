"""Trees of treebanks come back from their derivations, which are those of all versions."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from spmrl_bench.errors import TreeError
from spmrl_bench.transitions.system import TransitionSystem
from spmrl_bench.treebanks.manifest import SPLITS
from spmrl_bench.treebanks.treebank import open_treebank
from spmrl_bench.trees.dependencies import DependencyTree
from spmrl_bench.trees.projective import encode_projective, is_projective
from tests.conftest import shared_data

#: Of the actions of all sentences, as int32; another rule of derivation trains other parsers.
MINI = {
    "arabic": "48bca6646c8bd170",
    "basque": "047521f1782533fc",
    "chinese": "1ea11cf125754d65",
    "english": "5427fac41ba03104",
    "french": "7839beef55069a50",
    "german": "f8a0caf77d28063c",
    "hebrew": "b0203c47ddc7e88c",
    "hungarian": "9adbafb522011bff",
    "korean": "87cd7f3637a28e15",
    "polish": "6a6d354ff73ef208",
    "swedish": "8311ba5e83b69800",
}


def derived(trees: Sequence[DependencyTree]) -> tuple[int, int, str]:
    """How many trees are projective and how many are not, and the digest of all actions."""
    lifted = [encode_projective(tree, "projectivise") for tree in trees]
    names = sorted({relation for tree in trees for relation in tree.relations})
    numbers = {name: number for number, name in enumerate(names)}
    system = TransitionSystem(np.ones((len(names), 2), dtype=np.bool_))
    digest, straight = hashlib.sha256(), 0
    for tree, projective in zip(trees, lifted, strict=True):
        relations = [numbers[name] for name in projective.relations]
        derivation = system.derive(projective.heads.tolist(), relations)
        digest.update(derivation.actions.tobytes())
        _, heads, own = system.replay(derivation.actions.tolist())
        assert np.array_equal(heads, projective.heads)
        assert own.tolist() == relations
        straight += is_projective(tree.heads.tolist())
        if tree.heads.tolist() != projective.heads.tolist():
            with pytest.raises(TreeError, match="crosses"):
                system.derive(tree.heads.tolist(), relations)
    return straight, len(trees) - straight, digest.hexdigest()[:16]


@pytest.mark.parametrize("language", MINI)
def test_mini_treebanks(language: str) -> None:
    parses = open_treebank(f"{language}-mini").examples("dev")
    trees: list[Any] = [parse.dependencies for parse in parses]
    assert derived(trees) == (300, 0, MINI[language])


@pytest.mark.parametrize(
    ("treebank", "projective", "others"),
    [
        ("hungarian-ud-szeged", 1409, 391),
        pytest.param("basque-ud-bdt", 3182, 415, marks=pytest.mark.campaign),
        pytest.param("korean-ud-gsd", 1714, 225, marks=pytest.mark.campaign),
        pytest.param("french-ud-sequoia", 3022, 77, marks=pytest.mark.campaign),
        pytest.param("english-wsj-sample", 3914, 0, marks=pytest.mark.campaign),
    ],
)
def test_treebanks(treebank: str, projective: int, others: int) -> None:
    bank = open_treebank(treebank, shared_data("treebanks"))
    trees: list[Any] = [
        parse.dependencies for split in SPLITS for parse in bank.examples(split, ["dependencies"])
    ]
    assert derived(trees)[:2] == (projective, others)
