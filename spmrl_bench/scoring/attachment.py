"""Attachment scores of dependencies by rules that have names, as a metric.

A labelled attachment score depends on what counts as punctuation, on whether ``nsubj:pass`` is
the same relation as ``nsubj``, and on sentences that are really the same on both sides.
:class:`AttachmentRules` names the choices, and words that differ are an error: all of a corpus is
compared before anything is counted. The rules for punctuation, under which scores are published:

``none``
    No word is punctuation: every word is scored.
``ptb-ctb``
    By the gold tag: ``.``, ``,``, ``:``, ``` `` ``` and ``''`` of the Penn Treebank and ``PU``
    of the Chinese Treebank. This is the set behind the English and Chinese tables of Zhou & Zhao
    2019 (P19-1230) and Mrini et al. 2020; brackets, ``$`` and ``#`` are scored.
``unicode``
    By the form: every character has one of Unicode's general categories P*. That includes
    brackets and ``%`` but neither ``$`` nor the backquote, which Unicode counts as symbols.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import lru_cache
from itertools import chain, zip_longest
from operator import attrgetter, eq
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from spmrl_bench.errors import ScoreError, unknown_name
from spmrl_bench.readers.conll import UNSPECIFIED, DependencySentence, TagColumn, read_conll_file
from spmrl_bench.scoring.counts import AttachmentColumn, AttachmentCounts
from spmrl_bench.scoring.metric import Figure, Metric, Number, check_options, figure_lines
from spmrl_bench.scoring.significance import Ratio
from spmrl_bench.scoring.texts import FilePath
from spmrl_bench.trees.dependencies import DependencyTree, Roots
from spmrl_bench.trees.parse import Parse

#: ``whole`` compares relations as they are, ``universal`` without their subtypes (what follows
#: the first ``:``), ``none`` not at all, so that only heads are scored.
Relations = Literal["whole", "universal", "none"]

PTB_CTB_TAGS = frozenset({".", ",", ":", "``", "''", "PU"})


@lru_cache(maxsize=1 << 16)
def _all_punctuation(word: str) -> bool:
    return word != "" and all(unicodedata.category(char).startswith("P") for char in word)


#: Whether a word with its gold tag is punctuation.
PUNCTUATION_RULES: dict[str, Callable[[str, str], bool]] = {
    "none": lambda word, tag: False,
    "ptb-ctb": lambda word, tag: tag in PTB_CTB_TAGS,
    "unicode": lambda word, tag: _all_punctuation(word),
}

#: The rules by tag, and tags of other tag sets, in which they would find no punctuation: "_" is a
#: column without tags, "PUNCT" is of Universal Dependencies.
UNSUPPORTED_TAGS = {"ptb-ctb": frozenset({"_", "PUNCT"})}


@dataclass(frozen=True, slots=True)
class AttachmentRules:
    """What decides an attachment score, by name. Raise a ScoreError if a name is unknown."""

    punctuation: str = "none"  # a name of PUNCTUATION_RULES
    tags: TagColumn = "xpos"  # the column that tags are read from; matters to a rule by tag
    relations: Relations = "whole"  # how much of a relation is compared
    roots: Roots = "one"  # how many the sentences of both files may have

    def __post_init__(self) -> None:
        for kind, name, known in (
            ("punctuation rule", self.punctuation, PUNCTUATION_RULES),
            ("column of tags", self.tags, get_args(TagColumn)),
            ("way to compare relations", self.relations, get_args(Relations)),
            ("policy for roots", self.roots, get_args(Roots)),
        ):
            if name not in known:
                raise ScoreError(unknown_name(kind, name, known))


def score_dependencies(
    gold: Sequence[DependencyTree], test: Sequence[DependencyTree], rules: AttachmentRules
) -> AttachmentCounts:
    """Count a corpus; sentence ``k`` of one side is compared with ``k`` of the other. Raise a
    ScoreError if the sides have different numbers of sentences or different words, or a gold tag or
    relation that the rules need is missing."""
    if len(gold) != len(test):
        raise ScoreError(
            f"gold has {len(gold)} sentences, test has {len(test)}; they must be the same"
            " sentences in the same order"
        )
    for k, _, in_test, problem in _mismatches(gold, test, rules):
        raise ScoreError(f"{'test' if in_test else 'gold'} sentence {k + 1}: {problem}")
    return _count(gold, test, rules)


def score_dependency_files(
    gold_path: FilePath, test_path: FilePath, rules: AttachmentRules, *, encoding: str = "utf-8"
) -> AttachmentCounts:
    """Count a CoNLL-U or CoNLL-X file of parses against a file of gold trees.

    Both files are read to their ends first, so that there is no score of the part before a
    mistake. Tags are those of the gold file; the test file needs none. Raise a ReadError if a file
    cannot be read or is malformed, a ScoreError as :func:`score_dependencies`, or if one holds no
    sentence; with file, line and sentence.
    """
    gold, test = (
        list(read_conll_file(path, encoding=encoding, tag_column=rules.tags, roots=rules.roots))
        for path in (gold_path, test_path)
    )
    for path, sentences in ((gold_path, gold), (test_path, test)):
        if not sentences:
            raise ScoreError(f"{path}: holds no sentence")
    if len(gold) != len(test):
        raise ScoreError(
            f"{gold_path} has {len(gold)} sentences, {test_path} has {len(test)}; they must be the"
            f" same sentences in the same order, and {_parting(gold, test)}"
        )
    gold_trees, test_trees = ([sentence.tree for sentence in side] for side in (gold, test))
    for k, word, in_test, problem in _mismatches(gold_trees, test_trees, rules):
        path, sentence = (test_path, test[k]) if in_test else (gold_path, gold[k])
        where = f"; gold is {gold_path}:{gold[k].lines[0]}" if in_test else ""
        place = f"{path}:{sentence.lines[word]}: sentence {sentence.name}"
        raise ScoreError(f"{place}: {problem}{where}")
    return _count(gold_trees, test_trees, rules)


def _parting(gold: list[DependencySentence], test: list[DependencySentence]) -> str:
    """Where two files of different length cease to be the same."""
    for one, other in zip(gold, test, strict=False):
        if one.tree.words != other.tree.words:
            return (
                f"the first that differ are {one.name} at line {one.lines[0]} and {other.name} at"
                f" line {other.lines[0]}"
            )
    return f"the first {min(len(gold), len(test))} are"


def _mismatches(
    gold: Sequence[DependencyTree], test: Sequence[DependencyTree], rules: AttachmentRules
) -> Iterator[tuple[int, int, bool, str]]:
    """Pairs of sentences with different words, then gold words for which no rule decides: sentence
    and word, from 0, whether it is of the test side, and the problem."""
    for k, (one, other) in enumerate(zip(gold, test, strict=True)):
        if one.words != other.words:
            word, problem = first_other_word(one.words, other.words)
            # One that the test side lacks stands at its last word.
            yield k, min(word, len(other) - 1), True, problem
    unsupported = UNSUPPORTED_TAGS.get(rules.punctuation, frozenset())
    for k, tree in enumerate(gold):
        if rules.relations != "none" and UNSPECIFIED in tree.relations:
            word = tree.relations.index(UNSPECIFIED)
            problem = "has no relation ('_'); compare heads alone (--relations none)"
            yield k, word, False, f"word {word + 1} {problem}"
        if not unsupported.isdisjoint(tree.tags):
            word, tag = next((k, tag) for k, tag in enumerate(tree.tags) if tag in unsupported)
            problem = (
                f"word {word + 1} has the tag '{tag}', to which the punctuation rule"
                f" '{rules.punctuation}' does not apply; use the other column of tags (--tags) or"
                " another rule"
            )
            yield k, word, False, problem


def first_other_word(gold: Sequence[str], test: Sequence[str]) -> tuple[int, str]:
    """Return the first word that differs, from 0, and how, in words."""
    pairs = enumerate(zip_longest(test, gold))
    word, both = next((k, pair) for k, pair in pairs if pair[0] != pair[1])
    found, expected = ("missing" if one is None else f"'{one}'" for one in both)
    problem = f"word {word + 1} is {found}, in gold {expected}"
    if len(gold) != len(test):
        problem += f" ({len(test)} words, in gold {len(gold)})"
    return word, problem


def _count(
    gold: Sequence[DependencyTree], test: Sequence[DependencyTree], rules: AttachmentRules
) -> AttachmentCounts:
    """The counts of trees without mismatches; all arrays are over the words of the corpus."""
    n = sum(map(len, gold))
    sentence = np.repeat(np.arange(len(gold)), [len(tree) for tree in gold])
    head = _heads(gold) == _heads(test)
    label = np.fromiter(map(eq, _relations(gold, rules), _relations(test, rules)), bool, n)
    every = np.ones(n, dtype=bool)
    words = chain.from_iterable(tree.words for tree in gold)
    tags = chain.from_iterable(tree.tags for tree in gold)
    scored = ~np.fromiter(map(PUNCTUATION_RULES[rules.punctuation], words, tags), bool, n)
    columns = [
        np.bincount(sentence[part & right], minlength=len(gold))
        for part in (scored, every)
        for right in (every, head, label, head & label)
    ]
    return AttachmentCounts(np.array(columns, dtype=np.int64).T.copy())


def _heads(trees: Sequence[DependencyTree]) -> NDArray[np.int32]:
    return np.concatenate([np.empty(0, np.int32), *(tree.heads for tree in trees)])


def _relations(trees: Sequence[DependencyTree], rules: AttachmentRules) -> Iterator[str]:
    every = chain.from_iterable(tree.relations for tree in trees)
    if rules.relations == "whole":
        return every
    if rules.relations == "universal":
        return (relation.partition(":")[0] for relation in every)
    return ("" for _ in every)


class Attachment(Metric[AttachmentCounts, AttachmentRules]):
    """Unlabelled and labelled attachment, the accuracy of relations, complete matches."""

    name = "attachment"
    layers = ("dependencies",)
    counts = AttachmentCounts
    figures: Mapping[str, Figure] = {
        "sentences": Figure("sentences", attrgetter("sentences")),
        "words": Figure("words", attrgetter("words")),
        "uas": Figure("UAS", attrgetter("uas")),
        "las": Figure("LAS", attrgetter("las")),
        "label_accuracy": Figure("label accuracy", attrgetter("label_accuracy")),
        "unlabelled_match": Figure("complete match, heads", attrgetter("unlabelled_match")),
        "labelled_match": Figure("complete match, labelled", attrgetter("labelled_match")),
    }
    headline = "las"
    tabled = ("uas", "las", "label_accuracy", "labelled_match")

    def rules(self, options: Mapping[str, Any]) -> AttachmentRules:
        check_options(self.name, options, [field.name for field in fields(AttachmentRules)])
        return AttachmentRules(**options)

    def count(
        self, gold: Sequence[Parse], test: Sequence[Parse], rules: AttachmentRules
    ) -> AttachmentCounts:
        return score_dependencies(_trees(gold, "gold"), _trees(test, "test"), rules)

    def ratios(self, counts: AttachmentCounts) -> list[Ratio]:
        words = counts.column(AttachmentColumn.WORDS)
        return [
            Ratio("las", counts.column(AttachmentColumn.BOTH), words),
            Ratio("uas", counts.column(AttachmentColumn.HEADS), words),
            Ratio("label_accuracy", counts.column(AttachmentColumn.LABELS), words),
        ]

    def counting(self, rules: AttachmentRules) -> dict[str, str | None]:
        by_tag = rules.punctuation in UNSUPPORTED_TAGS
        return {
            "scorer": self.scorer,
            "match": "attachment",
            "punctuation": rules.punctuation + (f"({rules.tags})" if by_tag else ""),
            "relations": rules.relations,
            "roots": rules.roots,
        }

    def lengths(self, counts: AttachmentCounts) -> Sequence[int]:
        return counts.column(AttachmentColumn.ALL_WORDS).tolist()

    def report(self, counts: AttachmentCounts, rules: AttachmentRules) -> str:
        """Return a column of figures with punctuation and, under a rule for it, one without."""
        parts = self._parts(counts, rules)
        columns = {name.replace("_", " "): values for name, values in parts.items()}
        how = f"punctuation rule {rules.punctuation}, relations {rules.relations}"
        lines = [f"Attachment scores: {how}", "", *figure_lines(self.figures, columns, 24, 22)]
        if len(columns) > 1 and counts.words == counts.with_punctuation().words:
            lines += ["", f"The rule {rules.punctuation} found no punctuation."]
        return "\n".join(lines) + "\n"

    def report_dict(self, counts: AttachmentCounts, rules: AttachmentRules) -> dict[str, object]:
        """Return the report as JSON-able values.

        Keys: ``punctuation``, ``tags``, ``relations``, ``roots`` (the rules), ``sentences``,
        ``all_words`` and, under a rule for punctuation, ``without_punctuation`` (figures by
        name). Rules that do not compare relations give no labelled figures.
        """
        return {**asdict(rules), "sentences": len(counts), **self._parts(counts, rules)}

    def _parts(
        self, counts: AttachmentCounts, rules: AttachmentRules
    ) -> dict[str, dict[str, Number]]:
        parts = {"all_words": counts.with_punctuation()}
        if rules.punctuation != "none":
            parts = {"without_punctuation": counts} | parts
        labelled = ("las", "label_accuracy", "labelled_match")
        hidden = labelled if rules.relations == "none" else ()
        return {
            name: {key: value for key, value in self.values(part).items() if key not in hidden}
            for name, part in parts.items()
        }


def _trees(parses: Sequence[Parse], side: str) -> list[DependencyTree]:
    found = []
    for number, parse in enumerate(parses, start=1):
        if parse.dependencies is None:
            raise ScoreError(f"{side} sentence {number}: has no dependencies to score")
        found.append(parse.dependencies)
    return found


ATTACHMENT = Attachment()
