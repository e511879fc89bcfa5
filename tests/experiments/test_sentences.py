"""Training on a part of the training sentences."""

from __future__ import annotations

import json

import pytest

from spmrl_bench.errors import TrainingError
from spmrl_bench.experiments.one_run import _chosen
from spmrl_bench.leaderboard.tables import results_markdown
from tests.experiments.running import evaluate, plan, train
from tests.laboratory import SIZES, Laboratory


def test_more_sentences_are_the_same_and_others(laboratory: Laboratory) -> None:
    drawn = {}
    for seed in (1, 2):
        for number in (5, 20):
            work = plan(laboratory, seeds=[seed], settings={"train.sentences": str(number)})
            drawn[seed, number] = _chosen(40, work.configs[0])
    assert [len(found) for found in drawn.values()] == [5, 20, 5, 20]
    for seed in (1, 2):
        assert set(drawn[seed, 5]) < set(drawn[seed, 20])
        assert drawn[seed, 20] == sorted(drawn[seed, 20])
    assert drawn[1, 5] != drawn[2, 5]
    assert _chosen(40, plan(laboratory).configs[0]) == list(range(40))
    with pytest.raises(TrainingError, match=r"train\.sentences = 20, but tiny-open has 10"):
        _chosen(10, work.configs[0])


def test_a_run_learns_from_no_others(laboratory: Laboratory) -> None:
    """Its words are those of the sentences that were drawn, and a row says how many there were."""
    settings = {"train.sentences": "6"}
    (folder, *_) = train(laboratory, variants=["charlstm"], settings=settings)
    (config,) = plan(laboratory, variants=["charlstm"], settings=settings).configs
    bank = plan(laboratory).treebank
    sentences = [each.words for each in bank.examples("train", ("constituents",))]
    drawn = {word for number in _chosen(SIZES["train"], config) for word in sentences[number]}
    description = json.loads((folder / "best" / "parser.json").read_text())
    assert {word for word, _ in description["vocabulary"]["words"]} == drawn
    records = evaluate(laboratory, variants=["charlstm"], settings=settings)
    assert "charlstm (sentences=6)" in results_markdown(records, [])
