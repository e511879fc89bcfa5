"""The report on speed of parsers of dependencies."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from spmrl_bench.errors import RecipeError
from spmrl_bench.speed import work
from spmrl_bench.speed.report import epoch_report
from spmrl_bench.treebanks.treebank import open_treebank
from tests.builders import config
from tests.laboratory import MODEL, train_config

CPU = torch.device("cpu")
ARCS: dict[str, Any] = {"d_arc": 16, "d_relation": 8, "biaffine_dropout": 0.0}
DECODER: dict[str, Any] = {
    "d_decoder": 12, "decoder_layers": 2, "d_action": 6, "d_attention": 8, "decoder_dropout": 0.0,
}  # fmt: skip


def settings(kind: str, **own: Any) -> Any:
    """Settings of a tiny parser of dependencies."""
    shared = {key: value for key, value in MODEL.items() if key != "d_label_hidden"}
    return config(kind, **{"lexical": ["charlstm"], **shared, **own})


def test_training_and_both_searches_are_measured() -> None:
    bank = open_treebank("german-mini")
    examples = bank.examples("train", ["dependencies"])[:12]
    counted = settings("transition", **DECODER, attention_layers=2, beam=8)
    of_arcs = settings("biaffine", **ARCS)
    pieces = [
        work.training("transition", counted, train_config(), examples, CPU),
        *[work.parsing("transition", each, examples, CPU) for each in work.searches(counted)],
        work.training("biaffine", of_arcs, train_config(), examples, CPU),
    ]
    assert [piece.name for piece in pieces] == [
        "training, float32",
        "parsing, beam 1, float32",
        f"parsing, beam {counted.beam}, float32",
        "training, float32",
    ]
    assert all(work.measure(piece, CPU, 0.0).amount > 0 for piece in pieces)


def test_an_epoch_is_of_constituents() -> None:
    with pytest.raises(RecipeError, match=r"stack-attention is of kind transition; .*kind chart"):
        epoch_report("german-mini", "stack-attention", ["small"], CPU, 0.0)
