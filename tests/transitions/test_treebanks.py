"""Trees of treebanks: projective ones come back from the oracle's actions, others are refused."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from spmrl_bench.transitions import (
    SYSTEMS,
    NonProjectiveError,
    TransitionSystem,
    oracle_actions,
    replay,
)
from spmrl_bench.treebanks.manifest import SPLITS
from spmrl_bench.treebanks.treebank import open_treebank
from spmrl_bench.trees.dependencies import DependencyTree
from spmrl_bench.trees.projective import encode_projective, is_projective
from tests.conftest import shared_data

MINI = (
    "arabic",
    "basque",
    "chinese",
    "english",
    "french",
    "german",
    "hebrew",
    "hungarian",
    "korean",
    "polish",
    "swedish",
)


def there_and_back(trees: Sequence[DependencyTree]) -> tuple[int, int]:
    """Check trees in both systems; how many of them are projective and how many are not."""
    names = sorted({relation for tree in trees for relation in tree.relations})
    numbers = {name: number for number, name in enumerate(names)}
    permitted = np.zeros((len(names), 2), dtype=np.bool_)
    for tree in trees:
        for head, relation in zip(tree.heads.tolist(), tree.relations, strict=True):
            permitted[numbers[relation], min(head, 1)] = True
    straight = [is_projective(tree.heads.tolist()) for tree in trees]
    kept = [tree for tree, is_straight in zip(trees, straight, strict=True) if is_straight]
    lifted = [encode_projective(tree, "projectivise") for tree in trees]
    for name in SYSTEMS:
        comes_back(TransitionSystem(name, len(names), permitted=permitted), kept, numbers)
        # A relation of a word that is lifted to the root may be new there.
        anything = TransitionSystem(name, len(names))
        comes_back(anything, lifted, numbers)
        for tree, is_straight in zip(trees, straight, strict=True):
            if not is_straight:
                with pytest.raises(NonProjectiveError):
                    oracle_actions(anything, tree.heads, [0] * len(tree), [len(tree)])
    return sum(straight), len(trees) - sum(straight)


def comes_back(
    system: TransitionSystem, trees: Sequence[DependencyTree], numbers: dict[str, int]
) -> None:
    """All of these trees come back from their actions."""
    lengths = list(map(len, trees))
    heads = np.concatenate([tree.heads for tree in trees])
    relations = np.array([numbers[name] for tree in trees for name in tree.relations])
    actions = oracle_actions(system, heads, relations, lengths)
    assert np.count_nonzero(actions >= 0, axis=1).tolist() == [2 * n for n in lengths]
    made = replay(system, actions, lengths)
    assert np.array_equal(made.heads, heads)
    assert np.array_equal(made.relations, relations)


@pytest.mark.parametrize("language", MINI)
def test_mini_treebanks(language: str) -> None:
    bank = open_treebank(f"{language}-mini")
    parses = [*bank.examples("train")[:300], *bank.examples("dev")[:100]]
    trees: list[Any] = [parse.dependencies for parse in parses]
    assert there_and_back(trees) == (400, 0)


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
    assert there_and_back(trees) == (projective, others)
