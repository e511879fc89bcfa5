"""Training on a part of the training sentences."""

from __future__ import annotations

import json

import pytest

from spmrl_bench.errors import TrainingError
from spmrl_bench.experiments.train import chosen_sentences
from spmrl_bench.leaderboard.tables import results_markdown
from tests.experiments.running import evaluate, plan, train
from tests.laboratory import SIZES, Laboratory


def test_more_sentences_are_the_same_and_others(laboratory: Laboratory) -> None:
    drawn = {}
    for seed in (1, 2):
        for number in (5, 20):
            run, *_ = plan(laboratory, seeds=[seed], settings={"train.sentences": str(number)})
            drawn[seed, number] = chosen_sentences(run, 40)
    assert [len(found) for found in drawn.values()] == [5, 20, 5, 20]
    for seed in (1, 2):
        assert set(drawn[seed, 5]) < set(drawn[seed, 20])
        assert drawn[seed, 20] == sorted(drawn[seed, 20])
    assert drawn[1, 5] != drawn[2, 5]
    assert chosen_sentences(plan(laboratory)[0], 40) == list(range(40))
    with pytest.raises(TrainingError, match=r"train\.sentences = 20, but tiny-open has 10"):
        chosen_sentences(run, 10)


def test_a_run_learns_from_no_others(laboratory: Laboratory) -> None:
    """Its words are those of the sentences that were drawn, and a row says how many there were."""
    settings = {"train.sentences": "6"}
    (folder, *_) = train(laboratory, variants=["charlstm"], settings=settings)
    (run,) = plan(laboratory, variants=["charlstm"], settings=settings)
    sentences = [each.words for each in run.treebank.examples("train", ("constituents",))]
    numbers = chosen_sentences(run, SIZES["train"])
    drawn = {word for number in numbers for word in sentences[number]}
    description = json.loads((folder / "best" / "parser.json").read_text())
    assert {word for word, _ in description["vocabulary"]["words"]} == drawn
    records = evaluate(laboratory, variants=["charlstm"], settings=settings)
    assert "charlstm (sentences=6)" in results_markdown(records, [])
