"""The pieces of work whose speed is reported, each as it occurs in a run.

What is measured, on which data, is said here once: ``spmrl-bench bench`` and the benchmarks of
the tests take their work from here and add nothing but a stopwatch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from spmrl_bench.chart import decode, decode_dependencies, decode_joint
from spmrl_bench.chart.packing import arc_offsets, cell_count
from spmrl_bench.parsers.arithmetic import (
    forward_products,
    is_counted,
    sizes,
    training_operations,
)
from spmrl_bench.parsers.config import ParserConfig
from spmrl_bench.parsers.kind_configs import TransitionParserConfig
from spmrl_bench.parsers.registry import kind_named
from spmrl_bench.readers.brackets import read_brackets_file
from spmrl_bench.scoring import Parameters, score_trees
from spmrl_bench.speed.machine import Machine, best_time, reading_speed
from spmrl_bench.training.config import TrainConfig
from spmrl_bench.trees.escapes import write_brackets
from spmrl_bench.trees.parse import Parse
from spmrl_bench.trees.tree import Tree

#: Sentence lengths at which charts are decoded.
CHART_LENGTHS = (10, 20, 40, 80, 160, 300)
#: Those at which spans and arcs are decoded together.
JOINT_LENGTHS = (20, 40, 80, 160)
#: The limit of work that has to read so many bytes, from a cache where one holds them all.
READING = "reading as much"
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
        cost: bytes or floating-point operations that it takes at least.
        limit: of the machine on what it costs: :data:`READING` as many bytes, or one of
            :meth:`Machine.limit`; empty if none is known.
    """

    name: str
    run: Callable[[], Any]
    amount: int
    unit: str
    cost: float = 0.0
    limit: str = ""


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


def measure(work: Work, machine: Machine, device: torch.device, seconds: float) -> Speed:
    """How fast a piece of work is, by its fastest run; see :func:`best_time`."""
    taken = best_time(work.run, device, seconds)
    share = None
    if work.limit == READING:
        share = work.cost / taken / reading_speed(device, int(work.cost), seconds / 4)
    elif work.limit:
        share = work.cost / taken / machine.limit(work.limit)
    return Speed(work.name, work.amount / taken, f"{work.unit}/s", share, work.limit)


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
    cells = charts * cell_count(n)
    scores = np.random.default_rng(1).standard_normal((cells, _LABELS - 1), dtype=np.float32)
    gold = np.zeros(cells, dtype=np.int32)
    gold[:: max(1, n // 2)] = 1
    return Work(
        f"decoding {n} words{', augmented' if augmented else ''}",
        lambda: decode(scores, lengths, gold if augmented else None),
        charts,
        "sentences",
        scores.nbytes,  # every score has to be read once
        READING,
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
    values = rng.standard_normal(charts * cell_count(n)) - 1
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

    def operations(self, batch: Sequence[Parse]) -> int:
        """Of a step over a batch, see :func:`training_operations`."""
        return training_operations(self.parser.config, _outputs(self.parser), *sizes(batch))


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
    work = Work(
        f"training, {config.precision}",
        lambda: trainee.step(indexed),
        sum(map(len, batch)),
        "tokens",
    )
    return _limited(work, config, lambda: trainee.operations(batch))


def parsing(
    kind: str, config: ParserConfig, examples: Sequence[Parse], device: torch.device
) -> Work:
    """Sentences in, parses out, with weights that were never trained."""
    parser = _untrained(kind, config, examples, device)
    words, tags = [parse.words for parse in examples], [parse.tags for parse in examples]
    beam = f", beam {config.beam}" if isinstance(config, TransitionParserConfig) else ""
    work = Work(
        f"parsing{beam}, {config.precision}",
        lambda: list(parser.parse(words, tags)),  # gold tags, for those that read them
        len(examples),
        "sentences",
    )
    return _limited(
        work, config, lambda: 2 * forward_products(config, _outputs(parser), *sizes(examples))
    )


def searches(config: ParserConfig) -> list[ParserConfig]:
    """The settings with each search that parsing is measured with: greedy, and with the beam."""
    if not isinstance(config, TransitionParserConfig):
        return [config]
    return [config.model_copy(update={"beam": beam}) for beam in sorted({1, config.beam})]


def _untrained(
    kind: str, config: ParserConfig, examples: Sequence[Parse], device: torch.device
) -> Any:
    """A parser with its first weights."""
    torch.manual_seed(1)
    return kind_named(kind).parser_class.build(config, examples).to(device)


def _outputs(parser: Any) -> int:
    """What :func:`forward_products` has to know of a parser beside its settings."""
    actions = isinstance(parser.config, TransitionParserConfig)
    return parser.system.actions if actions else len(parser.vocabulary.labels)


def _limited(work: Work, config: ParserConfig, operations: Callable[[], int]) -> Work:
    """Work with its limit, where its operations are counted."""
    if not is_counted(config):
        return work
    return replace(work, cost=operations(), limit=f"products in {config.precision}")
