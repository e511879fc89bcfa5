"""Labelled bracket counts of one sentence, exactly as EVALB and EVALB_SPMRL count.

The C programs define the published scores, down to habits that no paper mentions: what is cut
off a label before or after it is looked up, that a bracket which lost all its words is gone,
that duplicates pair one to one, that crossing is counted on the test side. This module counts
so without the programs' limits of size. It knows neither files nor corpora, and it is the
measure for the compiled kernels.

It departs from the programs in one place, on purpose. EVALB_SPMRL counts a sentence whose sides
have different numbers of words as scored and completely matched, with no brackets; and if gold
has at most one word, a second time with the brackets it has (:func:`count_first_words`). Here
such a sentence is an error, as under EVALB. Recall, precision and F1 are the same but for the
sentences counted twice.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import accumulate, compress, takewhile

from spmrl_bench.scoring.counts import Status
from spmrl_bench.scoring.prm import (
    PUBLISHED,
    MissingParse,
    Parameters,
    Policy,
    Program,
    Punctuation,
)
from spmrl_bench.trees.tree import Tree

Row = tuple[int, int, int, int, int, int, int, int]
Bracket = tuple[int, int, str]

#: The tree of a sentence without a parse.
NO_PARSE = Tree.build([], [], [])

#: The only words that EVALB takes for quotation marks, given a tag in QUOTE_LABEL.
_QUOTES = frozenset("'\"/")


def count_brackets(
    gold: Tree | None, test: Tree | None, prm: Parameters, policy: Policy = PUBLISHED
) -> Row:
    """Return the counts of one sentence, in the order of :class:`~spmrl_bench.scoring.Column`.

    A sentence that cannot be compared has a status that says why, and zeros.
    """
    rules = label_rules(prm)
    return _compare(*_sides(gold, test, prm, policy), rules, rules.length(gold or NO_PARSE))


def compared_brackets(
    gold: Tree | None, test: Tree | None, prm: Parameters, policy: Policy = PUBLISHED
) -> tuple[list[Bracket], list[Bracket]]:
    """Return the gold and test brackets that :func:`count_brackets` compares.

    Each is ``(start, end, label)`` over the words that are compared, with what stands for the
    label's class. A sentence that is left out has none.
    """
    status, one, other = _sides(gold, test, prm, policy)
    rules = label_rules(prm)
    return (one.brackets(rules), other.brackets(rules)) if status.scored else ([], [])


def first_difference(gold: Tree, test: Tree, prm: Parameters, policy: Policy = PUBLISHED) -> str:
    """Say where the words that are compared begin to differ; empty if they do not."""
    _, one, other = _sides(gold, test, prm, policy)
    rules = label_rules(prm)
    pairs = map(rules.same_word, one.words, other.words)
    same = sum(1 for _ in takewhile(bool, pairs))
    if same == len(one.words) == len(other.words):
        return ""
    left, right = (
        f"'{side.words[same]}'" if same < len(side.words) else "none" for side in (one, other)
    )
    counts = ""
    if len(one.words) != len(other.words):
        counts = f"{len(one.words)} words to compare in gold, {len(other.words)} in the parse; "
    return f"{counts}word {same + 1} is {left} in gold, {right} in the parse"


def _sides(
    gold: Tree | None, test: Tree | None, prm: Parameters, policy: Policy
) -> tuple[Status, _Side, _Side]:
    """Whether both trees can be compared, and how they are."""
    gold, test = gold or NO_PARSE, test or NO_PARSE
    rules = label_rules(prm)
    kept, test_kept = ([tag not in rules.removed_tags for tag in t.tags] for t in (gold, test))
    by_gold = policy.punctuation is Punctuation.BY_GOLD
    one = _Side.read(gold, kept)
    other = _Side.read(test, _kept_by_gold(gold, test, rules) if by_gold else test_kept)
    if not other.words:
        counted = one.words and policy.missing_parse is MissingParse.COUNT
        return Status.MISSED if counted else Status.NO_WORDS, one, other
    if len(one.words) != len(other.words) and prm.quote_labels and not by_gold:
        _put_back_quotes(one, other, gold, test, prm)
    if len(one.words) != len(other.words):
        return Status.LENGTH_UNMATCH, one, other
    return Status.VALID if _same_words(one, other, rules) else Status.WORDS_UNMATCH, one, other


def count_first_words(gold: Tree, test: Tree, prm: Parameters) -> Row:
    """Count as EVALB_SPMRL does if gold has at most one word and the test tree more.

    Having printed that the lengths differ it goes on: only the words that gold has are
    compared, but all brackets.
    """
    rules = label_rules(prm)
    one, other = (_Side.read(tree, [True] * len(tree)) for tree in (gold, test))
    status = Status.VALID if _same_words(one, other, rules) else Status.WORDS_UNMATCH
    return _compare(status, one, other, rules, rules.length(gold))


def count_missed_as_program(gold: Tree, prm: Parameters) -> int:
    """Count the gold brackets of a sentence without a parse as ``-X`` of EVALB_SPMRL does.

    Each counts once, and once more for every deleted label that it is not (so an ``NP`` counts
    6 times under ``spmrl``).
    """
    rules = label_rules(prm)
    every = 1 + len(prm.delete_labels)
    return sum(every - rules.deletions(label) for label in gold.labels)


def _compare(status: Status, one: _Side, other: _Side, rules: LabelRules, length: int) -> Row:
    """The counts of two sides, of which gold's words decide how many are compared."""
    if not status.scored:
        return (length, int(status), 0, 0, 0, 0, 0, 0)
    gold_brackets, test_brackets = one.brackets(rules), other.brackets(rules)
    words = len(one.words)
    if one.tags == other.tags:
        matched_tags = words
    else:
        one_tags, other_tags = (map(rules.tag, side.tags) for side in (one, other))
        matched_tags = sum(map(str.__eq__, one_tags, other_tags))
    return (
        length,
        int(status),
        (Counter(gold_brackets) & Counter(test_brackets)).total(),
        len(gold_brackets),
        len(test_brackets),
        _crossing(gold_brackets, test_brackets),
        words,
        matched_tags,
    )


def _same_words(one: _Side, other: _Side, rules: LabelRules) -> bool:
    return one.words == other.words or all(map(rules.same_word, one.words, other.words))


def _kept_by_gold(gold: Tree, test: Tree, rules: LabelRules) -> list[bool]:
    """Which words of a test tree are kept if gold's tags decide. Empty elements are removed from
    each side by its own tags; what remains is paired by position. Sides of different length then
    cannot be paired, and all is kept."""
    empty = rules.removed_tags & rules.not_in_length
    gold_tags = [tag for tag in gold.tags if tag not in empty]
    present = [tag not in empty for tag in test.tags]
    if len(gold_tags) != sum(present):
        return present
    decisions = iter(gold_tags)
    return [here and next(decisions) not in rules.removed_tags for here in present]


def _crossing(gold: list[Bracket], test: list[Bracket]) -> int:
    """Number of test brackets that overlap a gold bracket without nesting."""
    spans = {(start, end) for start, end, _ in gold}
    return sum(
        any(a < start < b < end or start < a < end < b for a, b in spans)
        for start, end, _ in test
        if (start, end) not in spans  # gold nests
    )


class LabelRules:
    """A parameter file as look-ups, which work out each label once."""

    def __init__(self, prm: Parameters) -> None:
        spmrl = prm.program is Program.EVALB_SPMRL
        cut_label = re.compile("[-=#]" if spmrl else "[-=]")

        def cut(label: str) -> str:
            return cut_label.split(label, maxsplit=1)[0]

        # The first label of a class stands for it: load_prm gives every pair of a class, in order.
        representative = {other: one for one, other in sorted(prm.eq_labels, reverse=True)}
        deleted = [cut(label) if spmrl else label for label in prm.delete_labels]
        deleted_classes = Counter(representative.get(label, label) for label in deleted)

        def class_of(label: str) -> str:
            label = cut(label)
            return representative.get(label, label)

        def label_class(label: str) -> str | None:
            label = class_of(label)
            if label in deleted_classes:
                return None
            return label if prm.labeled else ""

        def tag_class(tag: str) -> str:
            tag = cut(tag) if spmrl else tag
            return representative.get(tag, tag)

        def same_word(one: str, other: str) -> bool:
            return one == other or (min(one, other), max(one, other)) in prm.eq_words

        # Tags whose words are removed, and tags whose words do not count for the length.
        self.removed_tags: frozenset[str] = frozenset() if spmrl else prm.delete_labels
        self.not_in_length = prm.delete_labels_for_length
        self.label = cache(label_class)  # what it is compared as; None where it does not count
        self.tag = cache(tag_class)
        # How many of the deleted labels the label of a constituent is.
        self.deletions = lambda label: deleted_classes[class_of(label)]
        self.same_word = same_word

    def length(self, tree: Tree) -> int:
        """Return the number of words that count for the length."""
        return len(tree) - sum(map(self.not_in_length.__contains__, tree.tags))


#: The look-ups of a parameter file.
label_rules = lru_cache(maxsize=32)(LabelRules)


@dataclass(slots=True)
class _Side:
    """The kept words of one tree, its fenceposts renumbered. All constituents are still there, in
    pre-order, with those that lost all their words."""

    words: Sequence[str]
    tags: Sequence[str]
    starts: list[int]
    ends: list[int]
    labels: Sequence[str]

    @classmethod
    def read(cls, tree: Tree, kept: Sequence[bool]) -> _Side:
        starts, ends = tree.spans.T.tolist()
        if all(kept):
            return cls(tree.words, tree.tags, starts, ends, tree.labels)
        fencepost = [0, *accumulate(kept)]
        return cls(
            tuple(compress(tree.words, kept)),
            tuple(compress(tree.tags, kept)),
            [fencepost[start] for start in starts],
            [fencepost[end] for end in ends],
            tree.labels,
        )

    def brackets(self, rules: LabelRules) -> list[Bracket]:
        """The constituents that count, with the labels they are compared by."""
        labels = map(rules.label, self.labels)
        return [
            (start, end, label)
            for start, end, label in zip(self.starts, self.ends, labels, strict=True)
            if label is not None and start < end
        ]


@dataclass(slots=True)
class _Quote:
    """A quotation mark, possibly removed."""

    word: str
    tag: str
    index: int  # among the words that were kept, where it is or would be
    moves: list[tuple[bool, bool]]  # whether each constituent starts, and ends, behind it


def _quotes(tree: Tree, prm: Parameters) -> list[_Quote]:
    found = []
    index = 0
    for position, (word, tag) in enumerate(zip(tree.words, tree.tags, strict=True)):
        if word in _QUOTES and tag in prm.quote_labels:
            found.append(_Quote(word, tag, index, (tree.spans > position).tolist()))
        index += tag not in prm.delete_labels
    return found


def _put_back_quotes(one: _Side, other: _Side, gold: Tree, test: Tree, prm: Parameters) -> None:
    """Undo the removal of quotation marks that only one side tagged as punctuation. This
    follows the order of EVALB's ``fix_quote``, in which a mark that is put back moves itself and
    all later marks of its side by one."""
    removed = prm.delete_labels
    gold_quotes, test_quotes = _quotes(gold, prm), _quotes(test, prm)
    for number, mark in enumerate(test_quotes):
        index = mark.index
        for place, twin in enumerate(gold_quotes):
            if twin.index != index or (twin.tag in removed) == (mark.tag in removed):
                continue
            if twin.tag in removed:
                side, quote, later = one, twin, gold_quotes[place:]
            else:
                side, quote, later = other, mark, test_quotes[number:]
            at = quote.index  # a mark may have moved since
            side.words = (*side.words[:at], quote.word, *side.words[at:])
            side.tags = (*side.tags[:at], quote.tag, *side.tags[at:])
            for row, (start_moves, end_moves) in enumerate(quote.moves):
                side.starts[row] += start_moves
                side.ends[row] += end_moves
            for moved in later:
                moved.index += 1
