"""Several parsers of one treebank as one: their scores are averaged and decoded once.

Unlike a vote over finished trees this gives a tree that the parsers agree on cell by cell or arc by
arc, and needs no rule for ties. The parsers of Kitaev & Klein were released so
(``benepar_en_ensemble``, two parsers with ELMo), and Kitaev, Cao & Klein 2019 report ensembles made
the same way.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Self

import torch

from spmrl_bench.parsers.base import MAX_TOKENS, EnsembleError, Parser, Words
from spmrl_bench.parsers.neural import Encoded, JointSession, NeuralParser
from spmrl_bench.parsers.parsing import Found
from spmrl_bench.parsers.vocabulary import Vocabulary
from spmrl_bench.trees.parse import Parse


class Ensemble(Parser):
    """Parses like one parser over an encoder, with the mean of the scores of several.

    The members are of one kind and may differ in everything but the set of their labels and
    relations: seed, size, encoder, lexical inputs, and the order of labels and relations.

    Attributes:
        parsers: the members; one that is given twice counts twice.
        vocabulary: that of the first, whose order of labels and relations settles ties.
    """

    def __init__(self, parsers: Sequence[NeuralParser]) -> None:
        """Average these parsers, the first of which is number 1 in errors.

        Raises:
            EnsembleError: there are none, their labels or relations are not the same, some find
                projective trees only, or they are on several devices.
        """
        if not parsers:
            raise EnsembleError("an ensemble needs at least one parser, but none is given")
        self.parsers = tuple(parsers)
        self.kind = parsers[0].kind  # type: ignore[misc]  # of a class elsewhere
        self.vocabulary: Vocabulary = self.parsers[0].vocabulary
        for number, parser in enumerate(self.parsers, 1):
            self._check(parser, number)

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

    def _check(self, parser: NeuralParser, number: int) -> None:
        """Make sure that a member fits the first."""
        own, first = parser.vocabulary, self.vocabulary
        if parser.device != self.device:
            raise EnsembleError(
                f"parser {number} is on {parser.device}, but parser 1 is on {self.device}: move "
                "all to one device (parser.to(DEVICE), or load_parser(FOLDER, DEVICE))"
            )
        labels, relations = ["+".join(label) for label in first.labels], [*first.relations]
        own_labels = ["+".join(label) for label in own.labels]
        _check_same("label", labels, own_labels, number)
        _check_same("relation", relations, [*own.relations], number)
        for relation, places in own.relations.items():
            if places != first.relations[relation]:
                raise EnsembleError(
                    f"parsers 1 and {number} have seen the relation {relation} in other places "
                    f"(at roots or at other words): {_ONE_TREEBANK}"
                )
        if own.relations and own.projective != first.projective:
            projective, other = (1, number) if first.projective else (number, 1)
            raise EnsembleError(
                f"parser {projective} has learnt projective trees only, parser {other} has not: "
                f"{_ONE_TREEBANK}"
            )

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

    def found(self, group: Sequence[Encoded]) -> Iterable[Found]:
        """What is read off the same sentences as each member has encoded them."""
        return self.parsers[0].found_by(group, self.parsers)


_ONE_TREEBANK = (
    "the members of an ensemble must be trained on the same treebank, with the same transforms"
)


def _check_same(what: str, first: Sequence[str], own: Sequence[str], number: int) -> None:
    """Make sure that a member has what the first has, and nothing else."""
    pairs = ((first, own, 1, number), (own, first, number, 1))
    for names, others, having, lacking in pairs:
        for name in names:
            if name not in others:
                raise EnsembleError(
                    f"parser {having} has the {what} {name}, which parser {lacking} lacks: "
                    f"{_ONE_TREEBANK}"
                )
