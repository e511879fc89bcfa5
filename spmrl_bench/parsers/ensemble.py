"""Several parsers of one treebank as one: their scores are averaged and decoded once.

Unlike a vote over finished trees this gives a tree that the parsers agree on cell by cell, arc by
arc or action by action, and needs no rule for ties (as ``benepar_en_ensemble`` of Kitaev & Klein,
and the ensembles of Kitaev, Cao & Klein 2019).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn, Self

from spmrl_bench.errors import UnsupportedError
from spmrl_bench.nn.vocabulary import Vocabulary
from spmrl_bench.parsers.base import MAX_TOKENS, Description, EnsembleError, Parser, Words
from spmrl_bench.parsers.neural import NeuralParser
from spmrl_bench.parsers.session import NeuralSession
from spmrl_bench.trees.parse import Parse


class Ensemble(Parser):
    """Parses like one parser over an encoder, with the mean of the scores of several.

    The members are of one kind and may differ in everything but the set of their labels and
    relations; the order of the first one's settles ties. One that is given twice counts twice.
    """

    def __init__(self, parsers: Sequence[Parser]) -> None:
        """Average some parsers. Raise an EnsembleError if there are none, or they are of several
        kinds or one that cannot be combined, on several devices, have other labels or relations, or
        not all are projective."""
        kinds = sorted({parser.kind for parser in parsers})
        if len(kinds) != 1:
            found = ", ".join(kinds) or "no parser"
            raise EnsembleError(f"an ensemble needs parsers of one kind; found: {found}")
        self.parsers = [parser for parser in parsers if isinstance(parser, NeuralParser)]
        if len(self.parsers) < len(parsers):
            raise EnsembleError(f"parsers of kind {kinds[0]} cannot parse together as an ensemble")
        first = self.parsers[0]
        for number, parser in enumerate(self.parsers, 1):
            if parser.device != first.device:
                raise EnsembleError(
                    f"parser {number} is on {parser.device}, but parser 1 is on {first.device}: "
                    "move all to one device (parser.to(DEVICE), or load_parser(FOLDER, DEVICE))"
                )
            if misfit := _misfit(first.vocabulary, parser.vocabulary, number):
                raise EnsembleError(
                    f"{misfit}: the members of an ensemble must be trained on the same treebank, "
                    "with the same transforms"
                )

    @property
    def kind(self) -> str:  # type: ignore[override]  # which a class has elsewhere
        return self.parsers[0].kind

    @property
    def reads_tags(self) -> bool:
        return any(parser.reads_tags for parser in self.parsers)

    @property
    def predicts_tags(self) -> bool:
        # If another member reads tags, they have to be given all the same.
        return not self.reads_tags and any(parser.predicts_tags for parser in self.parsers)

    def problem(self, words: Words) -> str:
        problems = (parser.problem(words) for parser in self.parsers)
        return next(filter(None, problems), "")

    def session(self, max_tokens: int = MAX_TOKENS) -> NeuralSession:
        return NeuralSession(self.parsers, max_tokens)

    def session_for(self, scored: bool, best: int, max_tokens: int = MAX_TOKENS) -> NeuralSession:
        return NeuralSession(self.parsers, max_tokens, scored=scored, best=best)

    def flat(self, words: Words, tags: Words) -> Parse:
        return self.parsers[0].flat(words, tags)

    def _refuse(self, method: str, what: str = "") -> UnsupportedError:
        return UnsupportedError(
            f"an ensemble of {len(self.parsers)} parsers has no '{method}' of its own: choose one "
            "of them"
        )

    @classmethod
    def build(cls, config: Any, examples: Sequence[Parse]) -> Self:
        raise EnsembleError("an ensemble is made of trained parsers: Ensemble(parsers)")

    def save(self, folder: Path) -> NoReturn:
        raise EnsembleError("an ensemble has no folder of its own: save its parsers")

    @classmethod
    def load(cls, folder: Path, description: Description | None = None) -> Self:
        return cls.build(None, ())


def _misfit(first: Vocabulary, own: Vocabulary, number: int) -> str:
    """Return in what the inventories of the first parser and of another one differ, or ''."""
    others = _inventories(own)
    for what, names in _inventories(first).items():
        if odd := names ^ others[what]:
            name = min(odd)
            having, lacking = (1, number) if name in names else (number, 1)
            return f"parser {having} has the {what} {name}, which parser {lacking} lacks"
    if own.relations and own.projective != first.projective:
        projective, other = (1, number) if first.projective else (number, 1)
        return f"parser {projective} has learnt projective trees only, parser {other} has not"
    return ""


def _inventories(vocabulary: Vocabulary) -> dict[str, set[str]]:
    relations = vocabulary.relations.items()
    return {
        "label": {*map("+".join, vocabulary.labels)},
        "relation to the root": {name for name, (to_root, _) in relations if to_root},
        "relation between words": {name for name, (_, to_word) in relations if to_word},
    }
