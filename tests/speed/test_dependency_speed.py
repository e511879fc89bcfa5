"""The report on speed of parsers of dependencies: the arithmetic of the decoder of actions."""

from __future__ import annotations

from typing import Any, TypeVar

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from spmrl_bench.errors import RecipeError
from spmrl_bench.nn import kernels
from spmrl_bench.nn.stack_attention import Stacks
from spmrl_bench.parsers.arithmetic import (
    _decoder_products,
    _encoder_products,
    _search_products,
    forward_products,
    training_operations,
)
from spmrl_bench.parsers.kind_configs import DependencyParserConfig, TransitionParserConfig
from spmrl_bench.parsers.neural_config import NeuralParserConfig
from spmrl_bench.parsers.transition_parser import TransitionParser
from spmrl_bench.speed import work
from spmrl_bench.speed.machine import Machine
from spmrl_bench.speed.report import epoch_report
from spmrl_bench.treebanks.treebank import open_treebank
from spmrl_bench.trees.dependencies import DependencyTree
from spmrl_bench.trees.parse import Parse
from tests.laboratory import MODEL, train_config

MACHINE = Machine("cpu", {"float32": 100.0, "bf16": 400.0}, 10.0)
CPU = torch.device("cpu")
ARCS: dict[str, Any] = {"d_arc": 16, "d_relation": 8, "biaffine_dropout": 0.0}
DECODER: dict[str, Any] = {
    "d_decoder": 12, "decoder_layers": 2, "d_action": 6, "d_attention": 8, "decoder_dropout": 0.0,
}  # fmt: skip
Config = TypeVar("Config", bound=NeuralParserConfig)


def settings(of: type[Config], **own: Any) -> Config:
    """Settings of a tiny parser of dependencies."""
    shared = {key: value for key, value in MODEL.items() if key in of.model_fields}
    return of.model_validate({"lexical": ["charlstm"], **shared, **own})


@pytest.mark.parametrize("layers", [1, 3])
def test_products_of_a_decoder_are_those_that_torch_counts(
    layers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernels, "usable", lambda *_: False)
    sentences, n, width = 3, 5, 4
    shape = {"attention_layers": layers, "beam": width}
    config = settings(TransitionParserConfig, **DECODER, **shape)
    heads, relations = [0, *range(1, n)], ["root", *["next"] * (n - 1)]
    blank = ["a"] * n
    tree = DependencyTree.build(blank, blank, heads, relations)
    examples = [Parse.of(dependencies=tree)] * sentences
    parser = TransitionParser.build(config, examples).eval()
    words = torch.randn(sentences, n, config.d_model)
    removed = torch.zeros(sentences, width, n, dtype=torch.bool)
    stacks = Stacks(removed.float(), removed)
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        sources = parser.decoder.attention.sources(words)
        state = parser.decoder.start(sentences, width)
        last = torch.zeros(sentences, width, dtype=torch.int64)
        for _ in range(2 * n):
            state = parser.decoder.step(last, state, sources, stacks).state
    known = parser.system.actions, [n] * sentences
    # torch leaves out products with a vector, those that make one energy of each sum.
    energies = sentences * width * 2 * n * n * layers * config.d_attention
    counted = _decoder_products(config, *known, width) - energies
    assert 2 * counted == counter.get_total_flops()
    below = _encoder_products(config, known[1], 0)
    expected = 6 * (below + _decoder_products(config, *known, 1))
    assert training_operations(config, *known, 0) == expected


def test_a_search_needs_the_products_of_the_cheaper_way() -> None:
    """Each word is multiplied once for each matrix that contexts are multiplied with."""
    narrow = settings(TransitionParserConfig, **DECODER, attention_layers=2, beam=1)
    wide = narrow.model_copy(update={"d_model": 400})
    known = 7, [5, 3]
    once = 8 * 400 * (8 + 2 * 4 * 12 + 8)  # all words: keys, two contexts, the second query
    steps = _search_products(wide, *known, 1) - once
    assert _search_products(wide, *known, 8) == once + 8 * steps
    for config in (wide, wide.model_copy(update={"beam": 8})):
        searched = _search_products(config, *known, config.beam)
        assert searched < _decoder_products(config, *known, config.beam)
        assert forward_products(config, *known, 0) == searched + _encoder_products(
            config, known[1], 0
        )


def test_what_nobody_counted_has_no_limit() -> None:
    bank = open_treebank("german-mini")
    examples = bank.examples("train", ["dependencies"])[:12]
    counted = settings(TransitionParserConfig, **DECODER, attention_layers=2, beam=8)
    of_arcs = settings(DependencyParserConfig, **ARCS)
    pieces = [
        work.training("transition", counted, train_config(), examples, CPU),
        *[work.parsing("transition", each, examples, CPU) for each in work.searches(counted)],
        work.training("biaffine", of_arcs, train_config(), examples, CPU),
    ]
    assert [(piece.name, piece.limit) for piece in pieces] == [
        ("training, float32", "products in float32"),
        ("parsing, beam 1, float32", "products in float32"),
        (f"parsing, beam {counted.beam}, float32", "products in float32"),
        ("training, float32", ""),
    ]
    assert pieces[1].cost < pieces[2].cost < counted.beam * pieces[1].cost
    assert all(work.measure(piece, MACHINE, CPU, 0.0).amount > 0 for piece in pieces)


def test_an_epoch_is_of_constituents() -> None:
    with pytest.raises(RecipeError, match=r"stack-attention is of kind transition; .*kind chart"):
        epoch_report("german-mini", "stack-attention", ["small"], CPU, 0.0)
