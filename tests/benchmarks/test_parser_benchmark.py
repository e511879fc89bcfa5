"""How fast parsers train and parse: by size, precision and number of threads.

Run with ``make bench``; elsewhere each of these runs once, with a tiny parser on few sentences.
The sentences are as long as those of the Wall Street Journal treebank.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch

from spmrl_bench.experiments.recipe import RunConfig, load_recipe
from spmrl_bench.nn.precision import Precision
from spmrl_bench.parsers.chart_parser import ChartParser
from spmrl_bench.parsers.processor import prepare_cpu
from spmrl_bench.parsers.vocabulary import Vocabulary
from spmrl_bench.speed.epoch import shaped_corpus
from spmrl_bench.treebanks.treebank import open_treebank
from spmrl_bench.trees import Tree

TINY = {"model.d_model": "32", "model.layers": "1", "model.d_ff": "32", "train.batch_size": "4"}
sizes = pytest.mark.parametrize("size", ["small", "published"])
precisions = pytest.mark.parametrize("precision", ["float32", "bf16"])
teams = pytest.mark.parametrize("threads", [1, 2], ids=["one thread", "two threads"])


@pytest.fixture(scope="module")
def corpus(request: pytest.FixtureRequest) -> list[Tree]:
    pieces = open_treebank("english-mini").split("dev")
    return shaped_corpus(pieces, 500 if measuring(request) else 8, seed=1)


@pytest.fixture
def threads_of_torch(threads: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    yield
    torch.set_num_threads(before)


def measuring(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("benchmark_enable"))


def settings(request: pytest.FixtureRequest, size: str, precision: Precision) -> RunConfig:
    if measuring(request):
        prepare_cpu()
    changes = {"model.precision": precision, **({} if measuring(request) else TINY)}
    return load_recipe("english").resolve(
        treebank="x",
        track="mini",
        fingerprint="x",
        variant="charlstm",
        size=size,
        settings=changes,
    )


@sizes
@precisions
@teams
@pytest.mark.usefixtures("threads_of_torch")
def test_a_training_step(
    request: pytest.FixtureRequest,
    benchmark: Any,
    corpus: list[Tree],
    size: str,
    precision: Precision,
    threads: int,
) -> None:
    config = settings(request, size, precision)
    torch.manual_seed(1)
    parser = ChartParser(config.model, Vocabulary.of(map(Parse.of, corpus)))
    indexer = parser.indexer()
    batch = [gold_of(parser, indexer, tree) for tree in corpus[: config.train.batch_size]]
    optimiser = torch.optim.Adam(parser.parameters(), lr=1e-5, fused=True)
    before = parser.encoder.layers[0].expand.content.weight.clone()

    def step() -> float:
        optimiser.zero_grad()
        random = np.random.default_rng(1)
        loss = accumulate(parser, batch, indexer, random, config.train.sub_batch_tokens)
        optimiser.step()
        return loss

    loss = benchmark.pedantic(step, rounds=5, warmup_rounds=1)
    assert loss > 0
    assert not torch.equal(parser.encoder.layers[0].expand.content.weight, before)
    note(benchmark, "tokens_per_second", sum(map(len, batch)))


@sizes
@precisions
@teams
@pytest.mark.usefixtures("threads_of_torch")
def test_parsing(
    request: pytest.FixtureRequest,
    benchmark: Any,
    corpus: list[Tree],
    size: str,
    precision: Precision,
    threads: int,
) -> None:
    config = settings(request, size, precision)
    torch.manual_seed(1)
    parser = ChartParser(config.model, Vocabulary.of(map(Parse.of, corpus)))
    words = [tree.words for tree in corpus]
    found = benchmark.pedantic(lambda: list(parser.parse(words)), rounds=5, warmup_rounds=1)
    assert [tree.words for tree in found] == words
    note(benchmark, "sentences_per_second", len(words))


def note(benchmark: Any, name: str, amount: int) -> None:
    if benchmark.stats:
        benchmark.extra_info[name] = round(amount / benchmark.stats["median"])
