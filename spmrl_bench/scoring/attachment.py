"""Attachment scores of dependency trees, by rules that have names.

A labelled attachment score depends on what counts as punctuation, on whether ``nsubj:pass`` is
the same relation as ``nsubj``, and on sentences that are really the same on both sides.
:class:`AttachmentRules` names the choices, and words that differ are an error.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from operator import eq
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from spmrl_bench.errors import ScoreError, unknown_name
from spmrl_bench.readers.conll import UNSPECIFIED, TagColumn
from spmrl_bench.scoring.attachment_counts import AttachmentCounts
from spmrl_bench.scoring.punctuation import PUNCTUATION_RULES
from spmrl_bench.trees.dependencies import DependencyTree, Roots

#: ``whole`` compares relations as they are, ``universal`` without their subtypes (what follows
#: the first ``:``), ``none`` not at all, so that only heads are scored.
Relations = Literal["whole", "universal", "none"]


@dataclass(frozen=True, slots=True)
class AttachmentRules:
    """What decides an attachment score, by name.

    Attributes:
        punctuation: a name of :data:`~spmrl_bench.scoring.punctuation.PUNCTUATION_RULES`.
        tags: the column that tags are read from; matters to a rule by tag.
        relations: how much of a relation is compared.
        roots: how many roots the sentences of both files may have.

    Raises:
        ScoreError: a name is unknown.
    """

    punctuation: str = "none"
    tags: TagColumn = "xpos"
    relations: Relations = "whole"
    roots: Roots = "one"

    def __post_init__(self) -> None:
        for kind, name, known in (
            ("punctuation rule", self.punctuation, PUNCTUATION_RULES),
            ("column of tags", self.tags, get_args(TagColumn)),
            ("way to compare relations", self.relations, get_args(Relations)),
            ("policy for roots", self.roots, get_args(Roots)),
        ):
            if name not in known:
                raise ScoreError(unknown_name(kind, name, known))


class Fault(NamedTuple):
    """Why two trees cannot be compared; sentence and word count from 0."""

    sentence: int
    word: int
    in_test: bool
    problem: str


def score_dependencies(
    gold: Sequence[DependencyTree], test: Sequence[DependencyTree], rules: AttachmentRules
) -> AttachmentCounts:
    """Counts of a corpus; sentence ``k`` of one side is compared with ``k`` of the other.

    Raises:
        ScoreError: the sides have different numbers of sentences or different words, or a
            gold tag or relation that the rules need is missing.
    """
    if len(gold) != len(test):
        raise ScoreError(
            f"gold has {len(gold)} sentences, test has {len(test)}; they must be the same"
            " sentences in the same order"
        )
    for fault in chain(word_faults(gold, test), rule_faults(gold, rules)):
        side = "test" if fault.in_test else "gold"
        raise ScoreError(f"{side} sentence {fault.sentence + 1}: {fault.problem}")
    return _count(gold, test, rules)


def word_faults(gold: Sequence[DependencyTree], test: Sequence[DependencyTree]) -> Iterator[Fault]:
    """The first difference of each pair of sentences with different words."""
    for sentence, (one, other) in enumerate(zip(gold, test, strict=False)):
        if one.words == other.words:
            continue
        pairs = enumerate(zip(one.words, other.words, strict=False))
        shorter = min(len(one), len(other))
        word = next((k for k, (left, right) in pairs if left != right), shorter)
        found, expected = (
            f"'{tree.words[word]}'" if word < len(tree) else "missing" for tree in (other, one)
        )
        problem = f"word {word + 1} is {found}, in gold {expected}"
        if len(one) != len(other):
            problem += f" ({len(other)} words, in gold {len(one)})"
        yield Fault(sentence, min(word, len(other) - 1), True, problem)


def rule_faults(gold: Sequence[DependencyTree], rules: AttachmentRules) -> Iterator[Fault]:
    """The gold words for which the rules cannot decide."""
    foreign_tags = PUNCTUATION_RULES[rules.punctuation].foreign_tags
    for sentence, tree in enumerate(gold):
        if rules.relations != "none" and UNSPECIFIED in tree.relations:
            word = tree.relations.index(UNSPECIFIED)
            yield Fault(
                sentence,
                word,
                False,
                f"word {word + 1} has no relation ('_'); compare heads alone (--relations none)",
            )
        foreign = foreign_tags.intersection(tree.tags)
        if foreign:
            word, tag = next((k, tag) for k, tag in enumerate(tree.tags) if tag in foreign)
            yield Fault(
                sentence,
                word,
                False,
                f"word {word + 1} has the tag '{tag}', to which the punctuation rule"
                f" '{rules.punctuation}' does not apply; use the other column of tags (--tags) or"
                " another rule",
            )


def _count(
    gold: Sequence[DependencyTree], test: Sequence[DependencyTree], rules: AttachmentRules
) -> AttachmentCounts:
    """The counts of trees without faults; all arrays are over the words of the corpus."""
    n = sum(map(len, gold))
    sentence = np.repeat(np.arange(len(gold)), [len(tree) for tree in gold])
    head = _heads(gold) == _heads(test)
    label = np.fromiter(map(eq, _relations(gold, rules), _relations(test, rules)), bool, n)
    punctuation = PUNCTUATION_RULES[rules.punctuation].holds
    every = np.ones(n, dtype=bool)
    words = chain.from_iterable(tree.words for tree in gold)
    tags = chain.from_iterable(tree.tags for tree in gold)
    scored = ~np.fromiter(map(punctuation, words, tags), bool, n)
    columns = [
        np.bincount(sentence[part & right], minlength=len(gold))
        for part in (scored, every)
        for right in (every, head, label, head & label)
    ]
    rows = np.array(columns, dtype=np.int64).T.copy()
    rows.flags.writeable = False
    return AttachmentCounts(rows)


def _heads(trees: Sequence[DependencyTree]) -> NDArray[np.int32]:
    return np.concatenate([np.empty(0, np.int32), *(tree.heads for tree in trees)])


def _relations(trees: Sequence[DependencyTree], rules: AttachmentRules) -> Iterator[str]:
    every = chain.from_iterable(tree.relations for tree in trees)
    if rules.relations == "whole":
        return every
    if rules.relations == "universal":
        return (relation.partition(":")[0] for relation in every)
    return ("" for _ in every)
