"""A few trees and parsers small enough for tests."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file, save_file

from spmrl_bench.nn.inputs import Tokens
from spmrl_bench.nn.ragged import Ragged
from spmrl_bench.parsers.batches import Batch, Indexer, Sentence
from spmrl_bench.parsers.chart_parser import ChartParser
from spmrl_bench.parsers.kind_configs import ChartParserConfig
from spmrl_bench.parsers.vocabulary import Vocabulary
from spmrl_bench.readers.brackets import parse_brackets
from spmrl_bench.trees import Tree
from spmrl_bench.trees.parse import Parse

TREES = [
    parse_brackets(text)
    for text in (
        "(S (NP (D the) (N dog)) (VP (V barks)))",
        "(S (NP (D the) (N cat)) (VP (V sees) (NP (D a) (N dog))))",
        "(S (NP (D a) (A big) (N cat)) (VP (V sleeps)) (P .))",
        "(S (VP (V sleep)))",
        "(NP (N dogs))",
        "(NP (NP (D the) (N dog)) (PP (I in) (NP (D the) (N house))))",
        "(S (NP (N dogs)) (VP (V see) (NP (NP (N cats)) (PP (I in) (NP (N houses))))) (P .))",
        "(S (NP (D the) (N house)) (VP (V is) (AP (A big))))",
        "(S (S (NP (N cats)) (VP (V sleep))) (C and) (S (NP (N dogs)) (VP (V bark))))",
        "(S (NP (N cats)) (VP (V bark)))",
    )
]
LEXICAL = {"charlstm": ("charlstm",), "word-charlstm": ("word", "charlstm")}


def config(**changes: Any) -> ChartParserConfig:
    """Settings of a very small model without dropout."""
    return ChartParserConfig.model_validate(
        {
            "lexical": ("word", "charlstm"),
            "d_model": 32,
            "layers": 2,
            "heads": 2,
            "d_kv": 8,
            "d_ff": 32,
            "d_label_hidden": 16,
            "d_char": 8,
            "max_positions": 20,
            "attention_dropout": 0.0,
            "residual_dropout": 0.0,
            "relu_dropout": 0.0,
            "word_dropout": 0.0,
            "form_dropout": 0.0,
            "char_dropout": 0.0,
            "tag_dropout": 0.0,
            **changes,
        }
    )


def parser_of(trees: Sequence[Tree] = TREES, *, seed: int = 0, **changes: Any) -> ChartParser:
    """An untrained parser with the vocabulary of ``trees``."""
    torch.manual_seed(seed)
    parser = ChartParser(config(**changes), Vocabulary.of(map(Parse.of, trees)))
    with torch.no_grad():
        # As initialised, attention is almost uniform; tests need it to matter.
        for layer in parser.encoder.layers:
            for name, weight in layer.named_parameters():
                if name.startswith("attention.") and weight.dim() == 2:
                    weight.normal_(std=0.5)
    return parser


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


def trees_of(parses: Iterable[Parse]) -> list[Tree | None]:
    """The trees of parses."""
    return [parse.tree for parse in parses]


def batch_of(
    parser: ChartParser, indexer: Indexer, sentences: Sequence[Sentence]
) -> tuple[Batch, list[int]]:
    """A batch in which every token has a form row of its own, and the forms of these rows."""
    columns = ("words", "tags", "forms")
    words, tags, forms = (
        np.concatenate([getattr(sentence, name) for sentence in sentences]) for name in columns
    )
    lengths = np.array([len(sentence) for sentence in sentences], dtype=np.int32)
    tokens = Tokens(
        Ragged.of(lengths.astype(np.int64) + 2, parser.device),
        torch.from_numpy(words),
        torch.from_numpy(tags),
        torch.arange(len(forms)),
        indexer.codes(forms, parser.device),
    )
    return Batch(tokens, lengths), forms.tolist()


def forget_digest(folder: Path) -> None:
    """Make a saved parser one of an earlier release, whose weights do not know its description."""
    path = folder / "weights.safetensors"
    save_file({name: tensor.clone() for name, tensor in load_file(path).items()}, path)
