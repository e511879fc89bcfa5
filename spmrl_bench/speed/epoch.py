"""An epoch of a corpus of the size and shape of the Penn Treebank, and the parsing of its dev set.

Published times are of that treebank, which is licensed. A corpus with its number of sentences
and tokens and its distribution of lengths takes about as long: sentences of a mini treebank are
strung together until they are long enough.
"""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from itertools import accumulate

import numpy as np
import torch

from spmrl_bench.chart.arrays import cell_offsets
from spmrl_bench.chart.spans import decode_spans
from spmrl_bench.parsers.base import ParserConfig
from spmrl_bench.speed.machine import best_time, wait
from spmrl_bench.speed.work import Speed, Trainee
from spmrl_bench.training.config import TrainConfig
from spmrl_bench.trees import Tree
from spmrl_bench.trees.parse import Parse

#: Sentences of the corpus and of its dev set: sections 02-21 and 22, in round numbers.
SENTENCES, DEV_SENTENCES = 40_000, 1_700
#: Words of an epoch.
WORDS = 950_000
# Lengths are gamma distributed with this mean and a deviation of 11, as those of the sections are.
_MEAN = WORDS / SENTENCES
_SHAPE = (_MEAN / 11) ** 2
_LONGEST = 140


def shaped_corpus(pieces: Sequence[Tree], sentences: int, seed: int) -> list[Tree]:
    """So many trees, strung together of pieces, as long as those of the Penn Treebank."""
    rng = random.Random(seed)
    by_length: dict[int, list[Tree]] = {}
    for tree in pieces:
        by_length.setdefault(len(tree), []).append(tree)
    shortest = min(by_length)
    # The trees of at most n words, for every n.
    fitting = list(
        accumulate((by_length.get(n, []) for n in range(max(by_length) + 1)), lambda a, b: a + b)
    )
    corpus = []
    for _ in range(sentences):
        left = min(_LONGEST, max(shortest, round(rng.gammavariate(_SHAPE, _MEAN / _SHAPE))))
        parts = []
        while left >= shortest:
            parts.append(rng.choice(fitting[min(left, len(fitting) - 1)]))
            left -= len(parts[-1])
        corpus.append(_joined(parts))
    return corpus


def _joined(trees: Sequence[Tree]) -> Tree:
    """One tree with the given ones side by side below its root."""
    if len(trees) == 1:
        return trees[0]
    words = [word for tree in trees for word in tree.words]
    tags = [tag for tree in trees for tag in tree.tags]
    rows, at = [(0, len(words), "S")], 0
    for tree in trees:
        rows += [(at + i, at + j, label) for i, j, label in tree.constituents()]
        at += len(tree)
    return Tree.build(words, tags, rows)


def epoch_speeds(
    config: ParserConfig,
    train: TrainConfig,
    pieces: Sequence[Tree],
    device: torch.device,
    seconds: float,
) -> list[Speed]:
    """Seconds of an epoch and of parsing the dev set, and the share of chart decoding.

    The corpus is made of ``pieces``. Three batches or more are timed, for so many ``seconds`` at
    least, and the time of the epoch follows from them.
    """
    corpus = list(map(Parse.of, shaped_corpus(pieces, SENTENCES, seed=1)))
    trainee = Trainee("chart", config, train, corpus, device)
    total, words, charts, steps = 0.0, 0, 0.0, 0
    while steps < 4 or total < seconds:
        batch = trainee.batch()
        indexed = list(trainee.parser.index(batch))
        wait(device)
        begun = time.perf_counter()
        trainee.step(indexed)
        wait(device)
        steps += 1
        if steps == 1:
            continue  # the first one does not count
        total += time.perf_counter() - begun
        words += sum(map(len, batch))
        charts += _chart_seconds([len(parse) for parse in batch])
    epoch = total * sum(map(len, corpus)) / words
    dev = [tree.words for tree in shaped_corpus(pieces, DEV_SENTENCES, seed=2)]
    parsing = best_time(lambda: list(trainee.parser.parse(dev)), device, 0.0)
    return [
        Speed(f"an epoch of {SENTENCES:,} sentences, {config.precision}", epoch, "s"),
        Speed("chart decoding in it", 100 * charts / total, "% of the time"),
        Speed(f"parsing {DEV_SENTENCES:,} sentences, {config.precision}", parsing, "s"),
    ]


def _chart_seconds(lengths: Sequence[int]) -> float:
    """Time of the chart algorithm for sentences of these lengths, from the labels' maxima."""
    words = np.array(lengths, dtype=np.int32)
    cells = int(cell_offsets(words)[-1])
    values = np.random.default_rng(1).standard_normal(cells)
    labels = np.ones(cells, dtype=np.int32)
    begun = time.perf_counter()
    decode_spans(values, labels, words)
    return time.perf_counter() - begun
