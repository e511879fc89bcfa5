"""Sentences and batches as a parser learns them, for tests of what it does with them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from spmrl_bench.nn.inputs import Codes, Tokens
from spmrl_bench.nn.ragged import Ragged
from spmrl_bench.parsers.batches import Batch, Indexer, Sentence
from spmrl_bench.parsers.chart import ChartParser
from spmrl_bench.trees import Tree
from spmrl_bench.trees.parse import Parse
from tests.builders import TREES, learn, tiny

WORDS = sorted({word for tree in TREES for word in tree.words})

#: Settings of inputs that stand side by side, 42 wide.
SIDE_BY_SIDE: dict[str, Any] = {
    "lexical": ("tag", "charlstm", "word", "charconcat"), "join": "concatenated",
    "d_word": 7, "d_tag": 3, "d_form": 16,
}  # fmt: skip


def steady_indexer(parser: ChartParser) -> Indexer:
    """An indexer that never turns a training word into UNK."""
    indexer = parser.indexer()
    indexer.unk_probability[:] = 0
    return indexer


def gold_of(parser: ChartParser, indexer: Indexer, tree: Tree) -> Sentence:
    """A training tree as the parser learns it."""
    return replace(indexer.sentence(tree.words, tree.tags), gold=parser.gold(Parse.of(tree)))


def accumulate(
    parser: ChartParser,
    sentences: Sequence[Sentence],
    indexer: Indexer,
    random: np.random.Generator,
    max_tokens: int,
) -> float:
    """Add the gradients of a batch of sentences that another indexer may have made."""
    parser.training_indexer = indexer
    return parser.gradients(sentences, random, max_tokens)


def loss_of(parser: ChartParser, trees: Sequence[Tree] = TREES, max_tokens: int = 10_000) -> float:
    """The mean loss of trees whose words never turn into UNK, whose gradients are added."""
    indexer = steady_indexer(parser)
    gold = [gold_of(parser, indexer, tree) for tree in trees]
    return accumulate(parser, gold, indexer, np.random.default_rng(0), max_tokens)


def calls_of_forms(module: Any, patch: pytest.MonkeyPatch) -> list[Codes]:
    """The forms that an input will be given, call by call."""
    calls: list[Codes] = []
    forms = module.forms
    patch.setattr(module, "forms", lambda codes: calls.append(codes) or forms(codes))
    return calls


def lively(**changes: Any) -> ChartParser:
    """An untrained parser whose trees differ between sentences and seeds."""
    parser = tiny(**changes)
    with torch.no_grad():
        parser.scorer.second.weight.mul_(4)
        parser.scorer.second.bias.sub_(0.5)
    return parser.eval()


def check_learnt_and_loaded(parser: ChartParser, folder: Path) -> None:
    """A few steps bring the loss down and reach all weights; saved, the parser parses alike."""
    losses = learn(parser, [Parse.of(tree) for tree in TREES], 8)
    assert min(losses[-3:]) < 0.9 * losses[0]
    assert not [name for name, weight in parser.named_parameters() if weight.grad is None]
    given = [tree.words for tree in TREES], [tree.tags for tree in TREES]
    parser.eval().save(folder)
    again = ChartParser.load(folder)
    assert again.config == parser.config
    expected = list(parser.parse(*given[: 1 + parser.reads_tags]))
    assert list(again.parse(*given[: 1 + parser.reads_tags])) == expected
    assert len(set(map(repr, expected))) > 5


def sentences_of(lengths: Sequence[int], seed: int = 0) -> list[list[str]]:
    """Sentences of these lengths, some words of which are unknown."""
    rng = np.random.default_rng(seed)
    known = [*WORDS, "zebra", "Xyz", "a" * 40]
    return [[known[k] for k in rng.integers(0, len(known), length)] for length in lengths]


def random_sentences(count: int, longest: int = 12, seed: int = 0) -> list[list[str]]:
    """Sentences of all lengths."""
    rng = np.random.default_rng(seed)
    return sentences_of([1, *rng.integers(1, longest + 1, count - 1).tolist()], seed)


def trees_of(parses: Iterable[Parse]) -> list[Tree | None]:
    """The trees of parses."""
    return [parse.tree for parse in parses]


def batch_of(parser: ChartParser, indexer: Indexer, sentences: Sequence[Sentence]) -> Batch:
    """A batch in which every token has a form vector of its own."""
    words, tags, forms = np.concatenate([(s.words, s.tags, s.forms) for s in sentences], axis=1)
    lengths = np.array([len(sentence) for sentence in sentences], dtype=np.int32)
    tokens = Tokens(
        Ragged.of(lengths.astype(np.int64) + 2, parser.device),
        torch.from_numpy(words),
        torch.from_numpy(tags),
        torch.arange(len(forms)),
        parser.form_vectors(indexer, forms),
        indexer.of_tokens(forms, parser.device),
    )
    return Batch(tokens, lengths)
