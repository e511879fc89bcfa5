"""Several parsers of one treebank as one: their scores are averaged and decoded once.

Unlike a vote over finished trees this gives a tree that the parsers agree on cell by cell, and
needs no rule for ties. The parsers of Kitaev & Klein were released so (``benepar_en_ensemble``,
two parsers with ELMo), and Kitaev, Cao & Klein 2019 report ensembles made the same way.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Self

import torch
from torch import Tensor

from spmrl_bench.parsers.base import MAX_TOKENS, EnsembleError, Parser, Words
from spmrl_bench.parsers.chart_parser import ChartParser
from spmrl_bench.parsers.neural import Encoded, JointSession
from spmrl_bench.parsers.parsing import Found
from spmrl_bench.parsers.vocabulary import Label, Vocabulary
from spmrl_bench.trees.parse import Parse


class Ensemble(Parser):
    """Parses like one chart parser, with the mean of the label scores of several.

    Joint parsers give the mean of their scores of arcs and relations as well. The members may
    differ in everything but the set of their labels, and their relations: seed, size, encoder,
    lexical inputs, and the order of the labels. Their scores are added block by block, so that
    no chart of label scores is ever held as a whole.

    Attributes:
        parsers: the members; one that is given twice counts twice.
        vocabulary: that of the first, whose order of labels settles ties.
    """

    def __init__(self, parsers: Sequence[ChartParser]) -> None:
        """Average these parsers, the first of which is number 1 in errors.

        Raises:
            EnsembleError: there are none, their labels are not the same, or they are on several
                devices.
        """
        if not parsers:
            raise EnsembleError("an ensemble needs at least one parser, but none is given")
        self.parsers = tuple(parsers)
        self.kind = parsers[0].kind  # type: ignore[misc]  # of a class elsewhere
        self.vocabulary: Vocabulary = self.parsers[0].vocabulary
        self._columns = [
            self._columns_of(parser, number) for number, parser in enumerate(self.parsers, 1)
        ]

    @property
    def device(self) -> torch.device:
        """Where the members are."""
        return self.parsers[0].device

    @property
    def reads_tags(self) -> bool:
        return any(parser.reads_tags for parser in self.parsers)

    @property
    def predicts_tags(self) -> bool:
        # If another member reads tags, they have to be given all the same.
        return not self.reads_tags and any(parser.predicts_tags for parser in self.parsers)

    def _columns_of(self, parser: ChartParser, number: int) -> Tensor | None:
        """Where the labels of the first member are among this one's; None where they are alike.

        The empty label has no column, so the label with index 1 is in column 0.
        """
        own, first = parser.vocabulary, self.vocabulary
        if parser.device != self.device:
            raise EnsembleError(
                f"parser {number} is on {parser.device}, but parser 1 is on {self.device}: move "
                "all to one device (parser.to(DEVICE), or load_parser(FOLDER, DEVICE))"
            )
        for label in first.labels:
            if label not in own.label_ids:
                raise _different(label, 1, number)
        for label in own.labels:
            if label not in first.label_ids:
                raise _different(label, number, 1)
        if own.relations != first.relations:
            raise EnsembleError(
                f"the relations of parsers 1 and {number} differ: the members of an ensemble must "
                "be trained on the same treebank, with the same transforms"
            )
        if own.labels == first.labels:
            return None
        columns = [own.label_ids[label] - 1 for label in first.labels[1:]]
        return torch.tensor(columns, device=self.device)

    def length_problem(self, words: Sequence[str]) -> str:
        problems = (parser.length_problem(words) for parser in self.parsers)
        return next(filter(None, problems), "")

    def session(self, max_tokens: int = MAX_TOKENS) -> JointSession:
        return JointSession(self.parsers, self.found, self.length_problem, max_tokens)

    def flat(self, words: Words, tags: Words) -> Parse:
        return self.parsers[0].flat(words, tags)

    @classmethod
    def build(cls, config: Any, examples: Sequence[Parse]) -> Self:
        raise EnsembleError("an ensemble is made of trained parsers: combine(parsers)")

    def save(self, folder: Path) -> None:
        raise EnsembleError("an ensemble has no folder of its own: save its parsers")

    @classmethod
    def load(cls, folder: Path) -> Self:
        raise EnsembleError("an ensemble is made of trained parsers: combine(parsers)")

    def found(self, group: Sequence[Encoded]) -> Iterator[Found]:
        """What is read off the same sentences as each member has encoded them."""
        return self.parsers[0].found_by(self._mean(group), group, self.parsers)

    def _mean(self, group: Sequence[Encoded]) -> Iterator[Tensor]:
        """Mean label scores of one group, block by block, in the first member's order of labels."""
        scores = map(ChartParser.label_scores, self.parsers, group)
        for blocks in zip(*scores, strict=True):
            total = torch.zeros_like(blocks[0], dtype=torch.float32)
            for block, columns in zip(blocks, self._columns, strict=True):
                total += block if columns is None else block.index_select(1, columns)
            yield total.div_(len(blocks))


def _different(label: Label, having: int, lacking: int) -> EnsembleError:
    """The error of a label that one member has and another lacks."""
    name = "+".join(label)
    return EnsembleError(
        f"parser {having} has the label {name}, which parser {lacking} lacks: the members of an "
        "ensemble must be trained on the same treebank, with the same transforms"
    )
