"""The corpus of the size and shape of the Penn Treebank."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from spmrl_bench.speed import epoch
from tests.builders import config as tiny_config
from tests.laboratory import make_trees, train_config

PIECES = make_trees(200, seed=3)


def test_lengths_are_those_of_the_penn_treebank() -> None:
    corpus = epoch.shaped_corpus(PIECES, 4000, seed=1)
    lengths = np.array([len(tree) for tree in corpus])
    shortest = min(map(len, PIECES))
    # A sentence may end as much short of its length as the shortest piece is long.
    assert 0 <= epoch.WORDS / epoch.SENTENCES - lengths.mean() < shortest + 0.5
    assert abs(lengths.std() - 11) < 1
    assert lengths.max() <= 140


def test_trees_are_made_of_whole_pieces() -> None:
    known = {(tuple(tree.words), tuple(tree.constituents())) for tree in PIECES}
    for tree in epoch.shaped_corpus(PIECES, 50, seed=1):
        left, at = tree.words, 0
        rows = set(tree.constituents())
        while at < len(tree):
            fitting = [
                words
                for words, parts in known
                if tuple(left[at : at + len(words)]) == words
                and {(at + i, at + j, label) for i, j, label in parts} <= rows
            ]
            assert fitting
            at += len(max(fitting, key=len))


def test_the_corpus_is_a_function_of_its_seed() -> None:
    first, again, other = (epoch.shaped_corpus(PIECES, 20, seed=seed) for seed in (1, 1, 2))
    assert first == again != other


def test_speeds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(epoch, "SENTENCES", 30)
    monkeypatch.setattr(epoch, "DEV_SENTENCES", 5)
    cpu = torch.device("cpu")
    train = train_config(batch_size=10)
    settings = tiny_config(max_positions=200)
    speeds = epoch.epoch_speeds(settings, train, PIECES, cpu, 0.0)
    assert [speed.unit for speed in speeds] == ["s", "% of the time", "s"]
    assert all(speed.amount > 0 for speed in speeds)
    assert speeds[1].amount < 100
