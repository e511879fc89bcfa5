"""Scoring a parser on a split: the one path of the dev score in training and the final score."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Protocol

from spmrl_bench.experiments.recipe import RunConfig
from spmrl_bench.leaderboard.record import SplitResult
from spmrl_bench.parsers.right_branching import RightBranching
from spmrl_bench.scoring import BracketCounts, load_prm, score_trees
from spmrl_bench.scoring.signature import sign
from spmrl_bench.treebanks.treebank import Treebank
from spmrl_bench.trees import Tree


class Parses(Protocol):
    """A parser of one run, or an ensemble of several."""

    @property
    def predicts_tags(self) -> bool:
        """Whether its trees have tags of its own if none are given."""

    def parse(
        self, sentences: Sequence[Sequence[str]], tags: Sequence[Sequence[str]] | None
    ) -> Iterable[Tree]:
        """A tree for each sentence, in the same order, with these tags."""


@dataclass(frozen=True)
class Evaluated:
    """Counts of a parser's trees against gold, and how fast it parsed.

    Attributes:
        tag_accuracy: words with the treebank's tag, in percent; None if the parser does not tag.
    """

    counts: BracketCounts
    tokens_per_second: float
    tag_accuracy: float | None = None


def evaluate_parser(parser: Parses, gold: Sequence[Tree], prm_name: str) -> Evaluated:
    """Parse the words of gold trees and count brackets, and right tags if the parser tags.

    The treebank's tags are copied into the parses, whether or not the parser reads them:
    parameter sets delete punctuation by tag, and tags that differ would hide sentences.
    """
    tags = [tree.tags for tree in gold]
    begun = time.perf_counter()
    given = None if parser.predicts_tags else tags
    parses = list(parser.parse([tree.words for tree in gold], given))
    seconds = time.perf_counter() - begun
    tokens, accuracy = sum(map(len, gold)), None
    if parser.predicts_tags:
        pairs = zip(chain.from_iterable(tree.tags for tree in parses), chain(*tags), strict=True)
        accuracy = 100 * sum(found == right for found, right in pairs) / tokens
        parses = [replace(tree, tags=row) for tree, row in zip(parses, tags, strict=True)]
    counts = score_trees(gold, parses, load_prm(prm_name))
    return Evaluated(counts, tokens / seconds, accuracy)


def dev_f1(parser: Parses, gold: Sequence[Tree], prm_name: str) -> float:
    """F1 in percent; 0 where no bracket counts on either side."""
    return evaluate_parser(parser, gold, prm_name).counts.f1 or 0.0


def baseline_counts(treebank: Treebank, split: str) -> BracketCounts:
    """Right-branching trees scored on a split."""
    baseline = RightBranching(treebank.split("train"))
    gold = treebank.split(split)
    parses = [baseline.parse(tree.words, tree.tags) for tree in gold]
    return score_trees(gold, parses, load_prm(treebank.prm))


def split_result(
    counts: BracketCounts,
    treebank: Treebank,
    split: str,
    config: RunConfig | None,
    tokens_per_second: float | None = None,
    *,
    tag_accuracy: float | None = None,
    members: int = 1,
) -> SplitResult:
    """Counts with their figures and signature, as a record keeps them.

    Args:
        config: of the run that parsed; None for the baseline, whose signature then names
            ``right-branching`` as its variant.
        members: of how many runs the parser is an ensemble; 1 for a parser of its own.
    """
    reads_tags = config is not None and "tag" in config.model.lexical
    signature = sign(
        counts,
        load_prm(treebank.prm),
        treebank=treebank.name,
        fingerprint=treebank.fingerprint,
        split=split,
        tags=treebank.manifest.tags if reads_tags else "none",
        transforms=treebank.manifest.transforms,
        variant=config.variant if config else "right-branching",
        settings=config.settings if config else None,
        ensemble=members if members > 1 else None,
        size=config.size if config else None,
        precision=config.model.precision if config else None,
        seed=config.seed if config else None,
    )
    return SplitResult.from_counts(
        counts,
        signature=signature.short(),
        signature_long=signature.long(),
        tokens_per_second=tokens_per_second,
        tag_accuracy=tag_accuracy,
    )
