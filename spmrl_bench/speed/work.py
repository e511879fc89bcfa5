"""The pieces of work whose speed is reported, each as it occurs in a run."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch

from spmrl_bench.chart import decode
from spmrl_bench.chart.packing import cell_count, cell_offsets
from spmrl_bench.parsers.batches import Indexer, Pool, Sentence
from spmrl_bench.parsers.chart_parser import ChartParser
from spmrl_bench.parsers.config import ChartParserConfig
from spmrl_bench.parsers.right_branching import RightBranching
from spmrl_bench.parsers.vocabulary import Vocabulary
from spmrl_bench.readers.brackets import read_brackets_file
from spmrl_bench.scoring import load_prm, score_trees
from spmrl_bench.speed.arithmetic import forward_products, training_operations
from spmrl_bench.speed.limits import Limits, best_time
from spmrl_bench.training.config import TrainConfig
from spmrl_bench.trees.brackets import write_brackets
from spmrl_bench.trees.tree import Tree

#: Sentence lengths at which charts are decoded.
CHART_LENGTHS = (10, 20, 40, 80, 160, 300)
_LABELS = 112  # of the Penn Treebank, unary chains collapsed
_CHARTS = 32  # in a batch


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the report.

    Attributes:
        work: what was done.
        amount: the result, in its unit.
        unit: such as ``tokens/s``.
        share: of the machine's limit, from 0 to 1; None where no limit is known.
        limit: which limit that is.
    """

    work: str
    amount: float
    unit: str
    share: float | None = None
    limit: str = ""

    def of(self, what: str) -> Figure:
        """The same figure, said to be of something."""
        return replace(self, work=f"{self.work}, {what}")


def reading_and_scoring(trees: Sequence[Tree], seconds: float) -> Iterator[Figure]:
    """Reading one-line brackets, and scoring parses that are in memory."""
    cpu = torch.device("cpu")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "trees.mrg")
        path.write_text("".join(f"{write_brackets(tree)}\n" for tree in trees), encoding="utf-8")
        taken = best_time(lambda: list(read_brackets_file(path)), cpu, seconds)
    yield Figure("reading brackets", len(trees) / taken, "trees/s")
    prm = load_prm("spmrl")
    baseline = RightBranching(trees)
    parses = [baseline.parse(tree.words, tree.tags) for tree in trees]
    taken = best_time(lambda: score_trees(trees, parses, prm), cpu, seconds)
    yield Figure("scoring", len(trees) / taken, "sentences/s")


def decoding(limits: Limits, seconds: float) -> Iterator[Figure]:
    """Charts of random scores, with and without the loss augmentation."""
    random = np.random.default_rng(1)
    for n in CHART_LENGTHS:
        charts = _CHARTS if n <= 80 else _CHARTS // 4
        lengths = np.full(charts, n, dtype=np.int32)
        cells = int(cell_offsets(lengths)[-1])
        scores = random.standard_normal((cells, _LABELS - 1), dtype=np.float32)
        gold = np.zeros(cells, dtype=np.int32)
        gold[:: max(1, n // 2)] = 1
        # Every score has to be read once.
        most = limits.gigabytes * 1e9 / (4 * (_LABELS - 1) * cell_count(n))
        for name, target in (("", None), (", augmented", gold)):
            taken = best_time(
                lambda scores=scores, lengths=lengths, target=target: decode(  # type: ignore[misc]
                    scores, lengths, target
                ),
                torch.device("cpu"),
                seconds,
            )
            rate = charts / taken
            yield Figure(f"decoding {n} words{name}", rate, "sentences/s", rate / most, "memory")


def training(
    config: ChartParserConfig,
    train: TrainConfig,
    trees: Sequence[Tree],
    limits: Limits,
    device: torch.device,
    seconds: float,
) -> Figure:
    """Optimiser steps over batches drawn from the trees, evaluation left out."""
    parser, sentences, indexer = _parser(config, trees, device)
    optimiser = torch.optim.Adam(parser.parameters(), lr=1e-4, fused=True)
    order = np.random.default_rng(1).permutation(len(sentences))
    batch = [sentences[k] for k in order[: train.batch_size]]
    parser.train()

    def step() -> None:
        optimiser.zero_grad()
        parser.accumulate_gradients(
            batch, indexer, np.random.default_rng(1), train.sub_batch_tokens
        )
        optimiser.step()

    taken = best_time(step, device, seconds)
    operations = training_operations(
        config, len(parser.vocabulary.labels), *batch_sizes(batch, indexer)
    )
    most = limits.gflops[config.precision] * 1e9
    return Figure(
        f"training, {config.precision}",
        sum(map(len, batch)) / taken,
        "tokens/s",
        operations / taken / most,
        f"products in {config.precision}",
    )


def parsing(
    config: ChartParserConfig,
    trees: Sequence[Tree],
    limits: Limits,
    device: torch.device,
    seconds: float,
) -> Figure:
    """Sentences in, trees out, with weights that were never trained."""
    parser, sentences, indexer = _parser(config, trees, device)
    words = [tree.words for tree in trees]
    taken = best_time(lambda: list(parser.parse(words)), device, seconds)
    products = forward_products(
        config, len(parser.vocabulary.labels), *batch_sizes(sentences, indexer)
    )
    most = limits.gflops[config.precision] * 1e9
    return Figure(
        f"parsing, {config.precision}",
        len(trees) / taken,
        "sentences/s",
        2 * products / taken / most,
        f"products in {config.precision}",
    )


def _parser(
    config: ChartParserConfig, trees: Sequence[Tree], device: torch.device
) -> tuple[ChartParser, list[Sentence], Indexer]:
    torch.manual_seed(1)
    parser = ChartParser(config, Vocabulary.of(trees)).to(device)
    indexer = parser.indexer()
    return parser, [indexer.gold(tree) for tree in trees], indexer


def batch_sizes(sentences: Sequence[Sentence], indexer: Indexer) -> tuple[list[int], int]:
    """Words of each sentence, and characters of all distinct forms, their marks included."""
    _, characters = indexer.spellings(Pool(sentences, indexer).forms, torch.device("cpu"))
    return [len(sentence) for sentence in sentences], int(characters.sum())
