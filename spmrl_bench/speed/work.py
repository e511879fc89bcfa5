"""The pieces of work whose speed is reported, each as it occurs in a run.

What is measured, on which data, is said here once: ``make bench`` and the benchmarks of
the tests take their work from here and add nothing but a stopwatch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from spmrl_bench.chart.arrays import arc_offsets
from spmrl_bench.chart.dependencies import decode_dependencies
from spmrl_bench.chart.joint import decode_joint
from spmrl_bench.chart.spans import best_labels, decode_spans
from spmrl_bench.parsers.base import ParserConfig
from spmrl_bench.parsers.registry import kind_named
from spmrl_bench.readers.brackets import read_brackets_file
from spmrl_bench.scoring import Parameters, score_trees
from spmrl_bench.speed.machine import best_time, reading_speed
from spmrl_bench.training.config import TrainConfig
from spmrl_bench.trees.escapes import write_brackets
from spmrl_bench.trees.parse import Parse
from spmrl_bench.trees.tree import Tree

#: Sentence lengths at which charts are decoded.
CHART_LENGTHS = (10, 20, 40, 80, 160, 300)
#: Those at which spans and arcs are decoded together.
JOINT_LENGTHS = (20, 40, 80, 160)
_LABELS = 112  # of the Penn Treebank, unary chains collapsed
_CHARTS = 32  # in a batch


@dataclass(frozen=True, slots=True)
class Work:
    """Something that can be done again and again.

    Attributes:
        name: what it is.
        run: does it once, and gives its result.
        amount: what is done by that, in units.
        unit: such as ``tokens``.
        reads: bytes that it has to read, from a cache where one holds them all; 0 if that says
            nothing of its speed.
    """

    name: str
    run: Callable[[], Any]
    amount: int
    unit: str
    reads: int = 0


@dataclass(frozen=True, slots=True)
class Speed:
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

    def of(self, what: str) -> Speed:
        """The same speed, said to be of something."""
        return replace(self, work=f"{self.work}, {what}")


def measure(work: Work, device: torch.device, seconds: float) -> Speed:
    """How fast a piece of work is, by its fastest run; see :func:`best_time`."""
    taken = best_time(work.run, device, seconds)
    speed = Speed(work.name, work.amount / taken, f"{work.unit}/s")
    if not work.reads:
        return speed
    share = work.reads / taken / reading_speed(device, work.reads, seconds / 4)
    return replace(speed, share=share, limit="reading as much")


def reading(trees: Sequence[Tree], path: Path) -> Work:
    """Reading one-line brackets, from a file that is written first."""
    path.write_text("".join(f"{write_brackets(tree)}\n" for tree in trees), encoding="utf-8")
    return Work("reading brackets", lambda: list(read_brackets_file(path)), len(trees), "trees")


def baseline_parses(trees: Sequence[Tree]) -> list[Tree]:
    """Parses of the sentences that are neither good nor hopeless."""
    baseline = kind_named("right-branching").parser_class.build(None, list(map(Parse.of, trees)))
    parses = baseline.parse([tree.words for tree in trees], [tree.tags for tree in trees])
    return [parse.tree for parse in parses]


def scoring(gold: Sequence[Tree], test: Sequence[Tree], prm: Parameters) -> Work:
    """Scoring parses that are in memory."""
    return Work("scoring", lambda: score_trees(gold, test, prm), len(gold), "sentences")


def decoding(n: int, augmented: bool, charts: int | None = None) -> Work:
    """Charts of random scores for sentences of ``n`` words, so that no branch can be foretold.

    ``augmented``: with the loss augmentation; ``charts``: by default as many as a batch has.
    """
    charts = charts or (_CHARTS if n <= 80 else _CHARTS // 4)
    lengths = np.full(charts, n, dtype=np.int32)
    cells = charts * n * (n + 1) // 2
    scores = np.random.default_rng(1).standard_normal((cells, _LABELS - 1), dtype=np.float32)
    gold = np.zeros(cells, dtype=np.int32) if augmented else None
    if gold is not None:
        gold[:: max(1, n // 2)] = 1
    return Work(
        f"decoding {n} words{', augmented' if augmented else ''}",
        lambda: decode_spans(*best_labels(scores, gold), lengths, gold),
        charts,
        "sentences",
        scores.nbytes,  # every score has to be read once
    )


def decoding_dependencies(n: int, projective: bool, sentences: int | None = None) -> Work:
    """Random arc scores of sentences of ``n`` words.

    ``projective``: which trees are searched; ``sentences``: by default as many as a batch has.
    """
    sentences = sentences or (_CHARTS if n <= 80 else _CHARTS // 4)
    lengths = np.full(sentences, n, dtype=np.int32)
    arcs = np.random.default_rng(1).standard_normal(arc_offsets(lengths)[-1])
    return Work(
        f"decoding {'projective ' if projective else ''}dependencies of {n} words",
        lambda: decode_dependencies(arcs, lengths, projective=projective),
        sentences,
        "sentences",
    )


def joint_decoding(n: int, charts: int | None = None) -> Work:
    """Charts of random spans and arcs for sentences of ``n`` words; arguments as in decoding."""
    charts = charts or _CHARTS
    lengths = np.full(charts, n, dtype=np.int32)
    rng = np.random.default_rng(1)
    values = rng.standard_normal(charts * n * (n + 1) // 2) - 1
    arcs = rng.standard_normal(int(arc_offsets(lengths)[-1]))
    return Work(
        f"joint decoding, {n} words",
        lambda: decode_joint(values, arcs, lengths),
        charts,
        "sentences",
    )


class Trainee:
    """A parser that was never trained, and steps that would train it."""

    def __init__(
        self,
        kind: str,
        config: ParserConfig,
        train: TrainConfig,
        examples: Sequence[Parse],
        device: torch.device,
    ) -> None:
        self.parser = _untrained(kind, config, examples, device)
        self._examples = examples
        self._train = train
        self._optimiser = torch.optim.Adam(self.parser.parameters(), lr=1e-4, fused=True)
        self._random = np.random.default_rng(1)

    def batch(self) -> list[Parse]:
        """Some sentences, drawn at random, as many as an optimiser step takes."""
        number = min(self._train.batch_size, len(self._examples))
        chosen = self._random.choice(len(self._examples), number, replace=False)
        return [self._examples[k] for k in chosen]

    def step(self, indexed: Sequence[Any]) -> float:
        """One optimiser step; gives the loss."""
        self.parser.train()
        self._optimiser.zero_grad()
        tokens = self._train.sub_batch_tokens
        loss: float = self.parser.gradients(indexed, np.random.default_rng(1), tokens)
        self._optimiser.step()
        return loss


def training(
    kind: str,
    config: ParserConfig,
    train: TrainConfig,
    examples: Sequence[Parse],
    device: torch.device,
) -> Work:
    """Optimiser steps over a batch drawn from the examples, evaluation left out."""
    trainee = Trainee(kind, config, train, examples, device)
    batch = trainee.batch()
    indexed = list(trainee.parser.index(batch))
    return Work(
        f"training, {config.precision}",
        lambda: trainee.step(indexed),
        sum(map(len, batch)),
        "tokens",
    )


def parsing(
    kind: str, config: ParserConfig, examples: Sequence[Parse], device: torch.device
) -> Work:
    """Sentences in, parses out, with weights that were never trained."""
    parser = _untrained(kind, config, examples, device)
    words, tags = [parse.words for parse in examples], [parse.tags for parse in examples]
    beam = getattr(config, "beam", 0)
    search = f", beam {beam}" if beam else ""
    return Work(
        f"parsing{search}, {config.precision}",
        lambda: list(parser.parse(words, tags)),  # gold tags, for those that read them
        len(examples),
        "sentences",
    )


def searches(config: ParserConfig) -> list[ParserConfig]:
    """The settings with each search that parsing is measured with: greedy, and with the beam."""
    if (beam := getattr(config, "beam", None)) is None:
        return [config]
    return [config.model_copy(update={"beam": size}) for size in sorted({1, beam})]


def _untrained(
    kind: str, config: ParserConfig, examples: Sequence[Parse], device: torch.device
) -> Any:
    """A parser with its first weights."""
    torch.manual_seed(1)
    return kind_named(kind).parser_class.build(config, examples).to(device)
