"""The report on speed: the arithmetic it divides by, and that every piece of work runs."""

from __future__ import annotations

import json
from typing import get_args

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from spmrl_bench.nn import kernels
from spmrl_bench.nn.choices import Matrices, PositionInput
from spmrl_bench.parsers.batches import Pool
from spmrl_bench.parsers.chart_parser import ChartParser
from spmrl_bench.parsers.vocabulary import Vocabulary
from spmrl_bench.speed import work
from spmrl_bench.speed.arithmetic import forward_products, training_operations
from spmrl_bench.speed.limits import Limits, best_time, measure_limits
from spmrl_bench.speed.report import to_json
from tests.laboratory import make_trees, model_config, train_config
from tests.nn.plain import all_scores

LIMITS = Limits("cpu", {"float32": 100.0, "bf16": 400.0}, 10.0)
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
    config = model_config(
        lexical=("word",),
        layers=2,
        d_model=32,
        d_kv=8,
        heads=2,
        d_ff=24,
        position=position,
        matrices=matrices,
    )
    parser = ChartParser(config, Vocabulary.of(trees)).eval()
    indexer = parser.indexer()
    sentences = [indexer.gold(tree) for tree in trees]
    pool = Pool(sentences, indexer)
    ((_, batch),) = pool.batches(1000, CPU)
    forms = parser.form_vectors(indexer, pool.forms)
    # The fused attention of the CPU is not counted.
    plain = sdpa_kernel(SDPBackend.MATH)
    with plain, FlopCounterMode(display=False) as counter, torch.no_grad():
        projected = parser.projected_posts(parser.encode(batch, forms), batch)
        all_scores(parser.scorer, projected, *parser.span_rows(batch.lengths))
    labels = len(parser.vocabulary.labels)
    lengths = [len(tree)] * 5
    assert 2 * forward_products(config, labels, lengths, 0) == counter.get_total_flops()


def test_characters_and_the_backward_pass() -> None:
    config = model_config(d_model=16, d_char=8)
    per_character = forward_products(config, 5, [3], 1) - forward_products(config, 5, [3], 0)
    assert per_character == 2 * 4 * 4 * (8 + 4)  # two directions, four gates, state of 4
    forward = forward_products(config, 5, [3], 7)
    scored_once = 6 * config.d_label_hidden * 4  # six spans, four labels
    assert training_operations(config, 5, [3], 7) == 2 * (3 * forward - 2 * scored_once)


def test_the_machine_is_measured() -> None:
    limits = measure_limits(CPU, 0.0)
    assert limits.device == "cpu"
    assert all(speed > 0 for speed in limits.gflops.values())
    assert limits.gigabytes > 0


def test_the_best_of_three_runs_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([0.0, 5.0, 10.0, 12.0, 20.0, 23.0])
    monkeypatch.setattr("time.perf_counter", lambda: next(clock))
    calls: list[int] = []
    assert best_time(lambda: calls.append(1), CPU, 1.0) == 2.0
    assert len(calls) == 4  # the first does not count


def test_every_piece_of_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work, "CHART_LENGTHS", (3,))
    trees = make_trees(12, seed=1)
    figures = [
        *work.reading_and_scoring(trees, 0.0),
        *work.decoding(LIMITS, 0.0),
        work.training(model_config(), train_config(), trees, LIMITS, CPU, 0.0),
        work.parsing(model_config(precision="bf16"), trees, LIMITS, CPU, 0.0).of("small size"),
    ]
    assert [figure.work for figure in figures] == [
        "reading brackets",
        "scoring",
        "decoding 3 words",
        "decoding 3 words, augmented",
        "training, float32",
        "parsing, bf16, small size",
    ]
    assert all(figure.amount > 0 for figure in figures)
    assert [figure.limit for figure in figures[2:]] == [
        "memory", "memory", "products in float32", "products in bf16"
    ]  # fmt: skip
    content = json.loads(to_json(LIMITS, figures, 2))
    assert content["figures"][0]["unit"] == "trees/s"
    assert content["limits"]["gflops"] == LIMITS.gflops
