"""A parser with weights, as the training loop, checkpoints and ensembles know it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol, Self

import numpy as np
import torch
from torch import nn

from spmrl_bench.parsers.base import Parser
from spmrl_bench.trees.parse import Parse


class Indexed(Protocol):
    """A gold parse in the numbers of a parser."""

    def __len__(self) -> int:
        """Number of words."""


class TrainedParser(nn.Module, Parser):
    """A kind of parser that is trained by gradients."""

    @property
    @abstractmethod
    def device(self) -> torch.device:
        """Where the weights are."""

    def pretrained_parameters(self) -> list[nn.Parameter]:
        """Weights that were trained elsewhere and are trained on here."""
        return []

    @abstractmethod
    def index(self, examples: Iterable[Parse]) -> Iterator[Indexed]:
        """Gold parses as :meth:`gradients` takes them, one by one.

        Raises:
            SentenceTooLongError: the parser has no room for a sentence.
            TreeError: a parse cannot be learnt.
        """

    @abstractmethod
    def gradients(
        self, batch: Sequence[Any], random: np.random.Generator, max_tokens: int
    ) -> float:
        """Add the gradient of the mean loss of a batch to the parameters' gradients.

        Args:
            batch: of :meth:`index`, one optimiser step's worth.
            random: source of all random choices besides torch's own.
            max_tokens: bound on what is worked on at once, see
                :func:`~spmrl_bench.parsers.batches.sub_batches`.

        Returns:
            The mean loss per sentence.
        """

    @abstractmethod
    def is_like(self, other: Self) -> bool:
        """Whether another parser of the kind has the same settings and vocabulary."""
