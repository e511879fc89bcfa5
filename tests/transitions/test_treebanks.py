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
    "arabic": "13dc4fae64ab1248",
    "basque": "56a20c93b877ed61",
    "chinese": "cc5921c1d0d053e2",
    "english": "cb954a16f9d55f23",
    "french": "06663beae8786d85",
    "german": "663dd967abedd61c",
    "hebrew": "93992cee6a666782",
    "hungarian": "777481d2eb9b35bd",
    "korean": "c79de1010892c967",
    "polish": "dcd085395043e61b",
    "swedish": "17bae26f89f08179",
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
    bank = open_treebank(f"{language}-mini")
    parses = [*bank.examples("train")[:300], *bank.examples("dev")[:100]]
    trees: list[Any] = [parse.dependencies for parse in parses]
    assert derived(trees) == (400, 0, MINI[language])


@pytest.mark.parametrize(
    ("treebank", "projective", "others"),
    [
        ("basque-ud-bdt", 3182, 415),
        ("hungarian-ud-szeged", 1409, 391),
        ("korean-ud-gsd", 1714, 225),
        ("french-ud-sequoia", 3022, 77),
        ("english-wsj-sample", 3914, 0),
    ],
)
def test_treebanks(treebank: str, projective: int, others: int) -> None:
    bank = open_treebank(treebank, shared_data("treebanks"))
    trees: list[Any] = [
        parse.dependencies for split in SPLITS for parse in bank.examples(split, ["dependencies"])
    ]
    assert derived(trees)[:2] == (projective, others)
