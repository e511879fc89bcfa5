"""A kind of parser of a package of somebody else: flat trees, and chains of heads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
import torch
from torch import nn

from spmrl_bench.parsers.base import MAX_TOKENS, Description, ParserConfig, Prediction, Words
from spmrl_bench.parsers.kinds import Kind
from spmrl_bench.parsers.neural import TrainedParser
from spmrl_bench.parsers.saved import load_saved, save_parser
from spmrl_bench.parsers.session import with_tags
from spmrl_bench.trees.parse import Parse


class FlatParser(TrainedParser):
    """Flat trees, chains of heads, and a few weights that approach one."""

    kind = "flat"

    class Config(ParserConfig):
        """Its settings."""

        head: Literal["left", "right"] = "left"
        """The neighbour that every word hangs from."""
        width: int
        """Weights."""

    def __init__(self, config: Config, label: str) -> None:
        super().__init__()
        self.config, self.label = config, label
        self.weight = nn.Parameter(torch.zeros(config.width))

    @classmethod
    def build(cls, config: Any, examples: Sequence[Parse]) -> Self:
        assert all(len(example.layers) == 2 for example in examples)
        return cls(config, examples[0].tree.labels[0])

    def index(self, examples: Iterable[Parse]) -> Iterator[Words]:
        return (example.words for example in examples)

    def gradients(
        self, batch: Sequence[Words], random: np.random.Generator, max_tokens: int
    ) -> float:
        loss = ((self.weight - 1) ** 2).sum()
        loss.backward()
        return loss.item()

    def session(self, max_tokens: int = MAX_TOKENS) -> Self:
        return self

    def parse(self, sentences: Any, tags: Any = None, *, max_tokens: int = MAX_TOKENS) -> Any:
        return (self.predict(own).parse(own, row) for own, row in with_tags(sentences, tags))

    def flat(self, words: Words, tags: Words) -> Parse:
        return self.predict(words).parse(words, tags)

    def predict(self, words: Words) -> Prediction:
        n = len(words)
        heads = range(n) if self.config.head == "left" else [*range(2, n + 1), 0]
        return Prediction([(0, n, self.label)], heads, ["dep"] * n) if n else Prediction()

    def save(self, folder: Path) -> None:
        save_parser(self, self.config, {"labels": [self.label]}, folder)

    @classmethod
    def load(cls, folder: Path, description: Description | None = None) -> Self:
        return load_saved(folder, description, cls.Config, lambda c, v: cls(c, v["labels"][0]))

    def is_like(self, other: Self) -> bool:
        return self.config == other.config and self.label == other.label


KIND = Kind(
    f"{__name__}:FlatParser",
    layers=("constituents", "dependencies"),
    metrics=("words", "brackets", "attachment"),
)
