"""The report on speed: the arithmetic it divides by, and that every piece of work runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import get_args

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from spmrl_bench.nn import kernels
from spmrl_bench.nn.choices import Cell, Matrices, PositionInput
from spmrl_bench.parsers.arithmetic import forward_products, sizes, training_operations
from spmrl_bench.parsers.batches import Pool
from spmrl_bench.parsers.building import build_encoder
from spmrl_bench.parsers.chart_parser import ChartParser
from spmrl_bench.scoring import load_prm
from spmrl_bench.speed import work
from spmrl_bench.speed.machine import Machine, best_time, measure_machine
from spmrl_bench.speed.report import to_json
from spmrl_bench.trees.parse import Parse
from tests.builders import config as tiny_config
from tests.laboratory import make_trees, train_config
from tests.nn.plain import all_scores

MACHINE = Machine("cpu", {"float32": 100.0, "bf16": 400.0}, 10.0)
CPU = torch.device("cpu")


@pytest.mark.parametrize("position", get_args(PositionInput))
@pytest.mark.parametrize("matrices", get_args(Matrices))
def test_products_are_those_that_torch_counts(
    position: str, matrices: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a batch of sentences of one length, so that attention pads nothing."""
    monkeypatch.setattr(kernels, "usable", lambda *_: False)
    tree = make_trees(1, seed=3)[0]
    trees = [tree] * 5
    config = tiny_config(
        lexical=("word",),
        layers=2,
        d_model=32,
        d_kv=8,
        heads=2,
        d_ff=24,
        position=position,
        matrices=matrices,
    )
    examples = [Parse.of(tree) for tree in trees]
    parser = ChartParser.build(config, examples).eval()
    indexer = parser.indexer()
    pool = Pool(list(parser.index(examples)), indexer)
    ((_, batch),) = pool.batches(1000, CPU)
    forms = parser.form_vectors(indexer, pool.forms)
    # The fused attention of the CPU is not counted.
    plain = sdpa_kernel(SDPBackend.MATH)
    with plain, FlopCounterMode(display=False) as counter, torch.no_grad():
        projected = parser.projected_posts(parser.encode(batch, forms), batch)
        all_scores(parser.scorer, projected, *parser.span_rows(batch.lengths))
    labels = len(parser.vocabulary.labels)
    lengths, _ = sizes(examples)
    assert 2 * forward_products(config, labels, lengths, 0) == counter.get_total_flops()


@pytest.mark.parametrize("encoder", get_args(Cell))
def test_a_token_meets_every_weight_of_a_recurrent_encoder_once(encoder: Cell) -> None:
    config = tiny_config(encoder=encoder)
    one, none = (
        forward_products(config.model_copy(update={"layers": layers}), 5, [3], 7)
        for layers in (2, 0)
    )
    matrices = [weight for weight in build_encoder(config).parameters() if weight.dim() == 2]
    assert one - none == (3 + 2) * sum(weight.numel() for weight in matrices)


def test_characters_are_those_that_the_parser_spells() -> None:
    examples = [Parse.of(tree) for tree in make_trees(20, seed=4)]
    parser = ChartParser.build(tiny_config(), examples)
    indexer = parser.indexer()
    pool = Pool([indexer.sentence(parse.words) for parse in examples], indexer)
    _, spelt = indexer.spellings(pool.forms, CPU)
    assert sizes(examples) == ([len(parse) for parse in examples], int(spelt.sum()))


def test_characters_and_the_backward_pass() -> None:
    config = tiny_config(d_model=16)
    per_character = forward_products(config, 5, [3], 1) - forward_products(config, 5, [3], 0)
    assert per_character == 2 * 4 * 4 * (8 + 4)  # two directions, four gates, state of 4
    forward = forward_products(config, 5, [3], 7)
    scored_once = 6 * config.d_label_hidden * 4  # six spans, four labels
    assert training_operations(config, 5, [3], 7) == 2 * (3 * forward - 2 * scored_once)


def test_the_machine_is_measured() -> None:
    machine = measure_machine(CPU, 0.0)
    assert machine.device == "cpu"
    assert all(speed > 0 for speed in machine.gflops.values())
    assert machine.gigabytes > 0


def test_the_best_of_three_runs_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([0.0, 5.0, 10.0, 12.0, 20.0, 23.0])
    monkeypatch.setattr("time.perf_counter", lambda: next(clock))
    calls: list[int] = []
    assert best_time(lambda: calls.append(1), CPU, 1.0) == 2.0
    assert len(calls) == 4  # the first does not count


def test_every_piece_of_work(tmp_path: Path) -> None:
    trees = make_trees(12, seed=1)
    examples = list(map(Parse.of, trees))
    pieces = [
        work.reading(trees, tmp_path / "trees.mrg"),
        work.scoring(trees, work.baseline_parses(trees), load_prm("spmrl")),
        work.decoding(3, augmented=False),
        work.decoding(3, augmented=True),
        work.training("chart", tiny_config(), train_config(), examples, CPU),
        work.parsing("chart", tiny_config(precision="bf16"), examples, CPU),
    ]
    speeds = [work.measure(piece, MACHINE, CPU, 0.0) for piece in pieces]
    assert [(speed.work, speed.unit, speed.limit) for speed in speeds] == [
        ("reading brackets", "trees/s", ""),
        ("scoring", "sentences/s", ""),
        ("decoding 3 words", "sentences/s", "reading as much"),
        ("decoding 3 words, augmented", "sentences/s", "reading as much"),
        ("training, float32", "tokens/s", "products in float32"),
        ("parsing, bf16", "sentences/s", "products in bf16"),
    ]
    assert all(speed.amount > 0 for speed in speeds)
    content = json.loads(to_json(MACHINE, [speeds[0].of("small size")], 2))
    assert content["figures"][0]["work"] == "reading brackets, small size"
    assert content["limits"]["gflops"] == MACHINE.gflops


def test_the_share_of_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work, "best_time", lambda *_: 0.5)
    sizes: list[int] = []
    monkeypatch.setattr(work, "reading_speed", lambda _, size, __: sizes.append(size) or 1e10)
    read = work.Work("x", lambda: None, 6, "y", 2.5e9, work.READING)
    multiplied = work.Work("x", lambda: None, 6, "y", 2e10, "products in bf16")
    assert work.measure(read, MACHINE, CPU, 0.0) == work.Speed("x", 12.0, "y/s", 0.5, work.READING)
    assert sizes == [2_500_000_000]
    assert work.measure(multiplied, MACHINE, CPU, 0.0).share == 0.1
