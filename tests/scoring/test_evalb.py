"""Counts of single sentences, as the C programs give them, and laws that hold for any pair.

Each expected row is what EVALB or EVALB_SPMRL prints for the pair, but for the statuses of
EVALB_SPMRL on sentences of different length (see :mod:`spmrl_bench.scoring.evalb`).
"""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spmrl_bench.readers.brackets import parse_brackets
from spmrl_bench.scoring import (
    Column,
    MissingParse,
    Parameters,
    Policy,
    Punctuation,
    Status,
    count_brackets,
    load_prm,
    score_trees,
)
from spmrl_bench.trees import Tree
from tests.scoring.hostile import as_trees

COLLINS = load_prm("COLLINS")
SPMRL = load_prm("spmrl")
QUOTING = replace(COLLINS, quote_labels=frozenset(["``", "''", "POS"]))
UNLABELLED = replace(COLLINS, labeled=False)
SAME_WORDS = replace(COLLINS, eq_words=frozenset([("a", "z")]))

VALID, LENGTH, WORDS, NO_WORDS, MISSED = Status

SENTENCE = "(TOP (S (NP (DT the) (NN cat)) (VP (VB saw) (NP (NN it))) (. .)))"


def left_out(length: int, status: Status) -> tuple[int, ...]:
    return (length, status, 0, 0, 0, 0, 0, 0)


# length, status, matched, gold, test, crossing, words, matched tags
CASES = {
    "identical": (COLLINS, SENTENCE, SENTENCE, (5, VALID, 4, 4, 4, 0, 4, 4)),
    "identical, words kept": (SPMRL, SENTENCE, SENTENCE, (5, VALID, 4, 4, 4, 0, 5, 5)),
    "removed words may stand elsewhere": (
        COLLINS,
        "(S (NP (NN a) (, b) (NN c)) (VP (VB d)))",
        "(S (NP (NN a) (NN c)) (VP (, x) (VB d)))",
        (4, VALID, 3, 3, 3, 0, 3, 3),
    ),
    "attachment of punctuation does not count": (
        COLLINS,
        "(S (`` x) (NP (NN a) (, y) (NN c)) (VP (VB d)) (. z))",
        "(S (NP (`` x) (NN a) (, y) (NN c)) (VP (VB d) (. z)))",
        (6, VALID, 3, 3, 3, 0, 3, 3),
    ),
    "attachment of punctuation counts": (
        SPMRL,
        "(S (`` x) (NP (NN a) (, y) (NN c)) (VP (VB d)) (. z))",
        "(S (NP (`` x) (NN a) (, y) (NN c)) (VP (VB d) (. z)))",
        (6, VALID, 1, 3, 3, 0, 6, 6),
    ),
    "mistagged punctuation": (
        COLLINS,
        "(S (NP (NN a)) (. .))",
        "(S (NP (NN a)) (NN .))",
        left_out(2, LENGTH),
    ),
    "mistagged punctuation, words kept": (
        SPMRL,
        "(S (NP (NN a)) (. .))",
        "(S (NP (NN a)) (NN .))",
        (2, VALID, 2, 2, 2, 0, 2, 1),
    ),
    "other words": (COLLINS, "(S (NN a) (NN b))", "(S (NN a) (NN z))", left_out(2, WORDS)),
    "words that count as the same": (
        SAME_WORDS,
        "(S (NN a) (NN b))",
        "(S (NN z) (NN b))",
        (2, VALID, 1, 1, 1, 0, 2, 2),
    ),
    "a word less": (SPMRL, "(S (NN a) (NN b))", "(S (NN a))", left_out(2, LENGTH)),
    "one word against two": (SPMRL, "(S (NN a))", "(S (NN a) (NN b))", left_out(1, LENGTH)),
    "no parse": (COLLINS, SENTENCE, "(())", left_out(5, NO_WORDS)),
    "no gold tree": (COLLINS, "(())", SENTENCE, left_out(0, LENGTH)),
    "neither": (SPMRL, "", "(())", left_out(0, NO_WORDS)),
    "only punctuation": (COLLINS, "(X (. .))", "(X (. .))", left_out(1, NO_WORDS)),
    "only punctuation, words kept": (
        SPMRL,
        "(X (. .))",
        "(X (. .))",
        (1, VALID, 1, 1, 1, 0, 1, 1),
    ),
    "no constituent": (COLLINS, "(TOP (NN a))", "(TOP (NN a))", (1, VALID, 0, 0, 0, 0, 1, 1)),
    "bare word": (COLLINS, "(NN a)", "(TOP (NN a))", (1, VALID, 0, 0, 0, 0, 1, 1)),
    "functions and gaps": (
        COLLINS,
        "(S-ADV (NP-SBJ=2 (NN a)) (VP=1-X (VB b)))",
        "(S (NP (NN a)) (VP (VB b)))",
        (2, VALID, 3, 3, 3, 0, 2, 2),
    ),
    "features stay": (
        COLLINS,
        "(S (NP##n=p## (NN##n=p## a)))",
        "(S (NP (NN a)))",
        (1, VALID, 1, 2, 2, 0, 1, 0),
    ),
    "features are cut": (
        SPMRL,
        "(S (NP##n-p## (NN##n=p## a) (VB-X b)))",
        "(S (NP (NN a) (VB-Y b)))",
        (2, VALID, 2, 2, 2, 0, 2, 2),
    ),
    "tags keep their suffix": (
        COLLINS,
        "(S (NN-X a) (VB b))",
        "(S (NN a) (VB b))",
        (2, VALID, 1, 1, 1, 0, 2, 1),
    ),
    "a tag with a suffix is not removed": (
        COLLINS,
        "(S (NN a) (.-X .))",
        "(S (NN a) (.-X .))",
        (2, VALID, 1, 1, 1, 0, 2, 2),
    ),
    "trace": (
        COLLINS,
        "(S (NP (NN a)) (VP (VB b) (NP (-NONE- *))))",
        "(S (NP (NN a)) (VP (VB b)))",
        (2, VALID, 3, 3, 3, 0, 2, 2),
    ),
    "trace is a word": (
        SPMRL,
        "(S (NN a) (-NONE- b))",
        "(S (NN a) (NN b))",
        (1, VALID, 1, 1, 1, 0, 2, 1),
    ),
    "unlabelled root counts": (
        COLLINS,
        "( (S (NN a)))",
        "(TOP (S (NN a)))",
        (1, VALID, 1, 2, 1, 0, 1, 1),
    ),
    "unlabelled root does not count": (
        SPMRL,
        "( (S (NN a)))",
        "(VROOT (S (NN a)))",
        (1, VALID, 1, 1, 1, 0, 1, 1),
    ),
    "label that is empty once cut": (
        SPMRL,
        "(S (-X- (NN a)) (=Y (NN b)))",
        "(S (NN a) (NN b))",
        (2, VALID, 1, 1, 1, 0, 2, 2),
    ),
    "deleted label with a suffix": (
        SPMRL,
        "(ROOT-1 (S (NN a)))",
        "(S (NN a))",
        (1, VALID, 1, 1, 1, 0, 1, 1),
    ),
    "duplicates pair one to one": (
        COLLINS,
        "(S (NP (NP (NP (NN a)))) (VB b))",
        "(S (NP (NP (NN a))) (VB b))",
        (2, VALID, 3, 4, 3, 0, 2, 2),
    ),
    "duplicates against one": (
        SPMRL,
        "(S (NP (NN a) (VB b)))",
        "(S (NP (NP (NP (NN a) (VB b)))))",
        (2, VALID, 2, 2, 4, 0, 2, 2),
    ),
    "equal labels": (
        COLLINS,
        "(S (VB a) (PRT (ADVP (RP b))))",
        "(S (VB a) (ADVP (ADVP (RB b))))",
        (2, VALID, 3, 3, 3, 0, 2, 1),
    ),
    "equal labels nowhere else": (
        SPMRL,
        "(S (VB a) (PRT (RP b)))",
        "(S (VB a) (ADVP (RP b)))",
        (2, VALID, 1, 2, 2, 0, 2, 2),
    ),
    "equal tags": (
        COLLINS,
        "(S (PRT a) (VB b))",
        "(S (ADVP a) (VB b))",
        (2, VALID, 1, 1, 1, 0, 2, 2),
    ),
    "unlabelled": (
        UNLABELLED,
        "(TOP (S (X (NN a)) (Y (VB b))))",
        "(TOP (T (T (NN a)) (VP (VP (VB b)))))",
        (2, VALID, 3, 3, 4, 0, 2, 2),
    ),
    "crossing is counted on the test side": (
        COLLINS,
        "(S (A (NN a) (NN b)) (B (NN c) (NN d)))",
        "(S (NN a) (A (NN b) (NN c)) (NN d))",
        (4, VALID, 1, 3, 2, 1, 4, 4),
    ),
    "crossing is counted on the test side, swapped": (
        COLLINS,
        "(S (NN a) (A (NN b) (NN c)) (NN d))",
        "(S (A (NN a) (NN b)) (B (NN c) (NN d)))",
        (4, VALID, 1, 2, 3, 2, 4, 4),
    ),
    "crossing a deleted bracket is none": (
        COLLINS,
        "(S (TOP (NN a) (NN b)) (NN c))",
        "(S (NN a) (A (NN b) (NN c)))",
        (3, VALID, 1, 1, 2, 0, 3, 3),
    ),
    "crossing by duplicates": (
        COLLINS,
        "(S (A (NN a) (NN b)) (NN c))",
        "(S (NN a) (A (A (NN b) (NN c))))",
        (3, VALID, 1, 2, 3, 2, 3, 3),
    ),
    "quote removed on one side": (
        COLLINS,
        "(S (NP (NN a)) ('' ') (VP (VB b)))",
        "(S (NP (NN a) (POS ')) (VP (VB b)))",
        left_out(3, LENGTH),
    ),
    "quote put back in gold": (
        QUOTING,
        "(S (NP (NN a)) ('' ') (VP (VB b)))",
        "(S (NP (NN a) (POS ')) (VP (VB b)))",
        (3, VALID, 2, 3, 3, 0, 3, 2),
    ),
    "quote put back in test": (
        QUOTING,
        "(S (NP (NN a) (POS ')) (VP (VB b) ('' ')))",
        "(S (NP (NN a) ('' ')) (VP (VB b) ('' ')))",
        (4, VALID, 3, 3, 3, 0, 3, 2),
    ),
    "two quotes put back": (
        QUOTING,
        "(S (`` ') (NP (NN a)) ('' ') (VP (VB b)))",
        "(S (POS ') (NP (NN a)) (POS ') (VP (VB b)))",
        (4, VALID, 3, 3, 3, 0, 4, 2),
    ),
    "two single quotes are no quote": (
        QUOTING,
        "(S (NP (NN a)) ('' '') (VP (VB b)))",
        "(S (NP (NN a) (POS '')) (VP (VB b)))",
        left_out(3, LENGTH),
    ),
}


def wrong_cases() -> list[str]:
    """The pairs whose row is not the program's."""
    pairs = {name: as_trees([gold, test]) for name, (_, gold, test, _) in CASES.items()}
    return [n for n, (prm, *_, row) in CASES.items() if count_brackets(*pairs[n], prm) != row]


def test_rows_are_those_of_the_c_programs() -> None:
    assert wrong_cases() == []


def test_none_is_a_sentence_without_a_parse() -> None:
    tree = parse_brackets(SENTENCE)
    assert count_brackets(tree, None, COLLINS) == left_out(5, NO_WORDS)
    assert count_brackets(None, tree, COLLINS) == left_out(0, LENGTH)


MISSED_COUNT = Policy(missing_parse=MissingParse.COUNT)


@pytest.mark.parametrize(
    ("prm", "gold", "test", "row"),
    [
        (COLLINS, SENTENCE, "(())", (5, MISSED, 0, 4, 0, 0, 4, 0)),
        (SPMRL, SENTENCE, "", (5, MISSED, 0, 4, 0, 0, 5, 0)),
        (COLLINS, SENTENCE, "(X (. .))", (5, MISSED, 0, 4, 0, 0, 4, 0)),
        (COLLINS, "(S (. .))", "", (1, NO_WORDS, 0, 0, 0, 0, 0, 0)),
        (SPMRL, "", "", (0, NO_WORDS, 0, 0, 0, 0, 0, 0)),
        (SPMRL, SENTENCE, "(NN z)", (5, LENGTH, 0, 0, 0, 0, 0, 0)),
    ],
)
def test_a_missing_parse_can_count(
    prm: Parameters, gold: str, test: str, row: tuple[int, ...]
) -> None:
    one, other = as_trees([gold, test])
    assert count_brackets(one, other, prm, MISSED_COUNT) == row


def test_a_missing_parse_is_never_a_complete_match() -> None:
    tree = parse_brackets("(TOP (NN a))")
    counts = score_trees([tree, tree], [tree, None], SPMRL, MISSED_COUNT)
    assert counts.valid == 2
    assert counts.complete_match == 50.0
    assert counts.tagging_accuracy == 50.0


PUNCTUATED = "(S (`` x) (NP (NN a) (, y)) (VP (VB b)) (. z))"


@pytest.mark.parametrize(
    ("prm", "gold", "test", "row"),
    [
        (COLLINS, PUNCTUATED, PUNCTUATED, (5, VALID, 3, 3, 3, 0, 2, 2)),
        # A mistagged full stop, and a word tagged as punctuation.
        (COLLINS, PUNCTUATED, PUNCTUATED.replace("(. z)", "(NN z)"), (5, VALID, 3, 3, 3, 0, 2, 2)),
        (COLLINS, PUNCTUATED, PUNCTUATED.replace("(NN a)", "(, a)"), (5, VALID, 3, 3, 3, 0, 2, 1)),
        # An empty element of gold, and one of test.
        (COLLINS, f"(T {PUNCTUATED} (-NONE- *))", PUNCTUATED, (5, VALID, 3, 4, 3, 0, 2, 2)),
        (COLLINS, PUNCTUATED, f"(-NONE- *) {PUNCTUATED}", (5, VALID, 3, 3, 3, 0, 2, 2)),
        # Words that differ, and a test side without the punctuation.
        (COLLINS, PUNCTUATED, PUNCTUATED.replace("b", "c"), left_out(5, WORDS)),
        (COLLINS, PUNCTUATED, "(S (NP (NN a)) (VP (VB b)))", (5, VALID, 3, 3, 3, 0, 2, 2)),
        (COLLINS, PUNCTUATED, "(S (NP (NN a)) (VP (VB b)) (. z))", left_out(5, LENGTH)),
        (QUOTING, "(S (NN a) ('' '))", "(S (NN a) (POS '))", (2, VALID, 1, 1, 1, 0, 1, 1)),
        (COLLINS, "(S (. z))", "(S (. z))", left_out(1, NO_WORDS)),
        # A parameter set that removes no words has nothing to decide.
        (SPMRL, PUNCTUATED, PUNCTUATED.replace("(. z)", "(NN z)"), (5, VALID, 3, 3, 3, 0, 5, 4)),
    ],
)
def test_punctuation_by_the_positions_of_gold(
    prm: Parameters, gold: str, test: str, row: tuple[int, ...]
) -> None:
    one, other = as_trees([gold, test])
    assert count_brackets(one, other, prm, Policy(punctuation=Punctuation.BY_GOLD)) == row


def test_scoring_needs_neither_torch_nor_pandas() -> None:
    program = "import sys, spmrl_bench.scoring; print({'torch', 'pandas'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "set()\n"), done.stderr


LABELS = ["S", "NP", "NP-SBJ", "VP", "VP=1", "ADVP", "PRT", "TOP", "X##f##", "", "-NONE-"]
TAGS = ["NN", "VB", ".", ",", "-NONE-", "NN##f##", "ADVP", "PRT"]


@st.composite
def trees(draw: st.DrawFn, words: list[str], tags: list[str]) -> Tree:
    """Any tree over the words: unary chains, duplicates, flat and deep."""
    labels = st.sampled_from(LABELS)
    rows: list[tuple[int, int, str]] = []
    pending = [(0, len(words))]
    while pending:
        start, end = pending.pop()
        for label in draw(st.lists(labels, max_size=3)):
            rows.append((start, end, label))
        if end - start > 1:
            cuts = draw(st.lists(st.integers(start + 1, end - 1), max_size=3, unique=True))
            posts = [start, *sorted(cuts), end]
            if cuts:
                pending += reversed(list(pairwise(posts)))
    return Tree.build(words, tags, rows)


@st.composite
def pairs(draw: st.DrawFn) -> tuple[Tree, Tree]:
    """Two trees over the same words; one tag may differ."""
    n = draw(st.integers(1, 9))
    words = [f"w{i}" for i in range(n)]
    tags = draw(st.lists(st.sampled_from(TAGS), min_size=n, max_size=n))
    other = list(tags)
    if draw(st.booleans()):
        other[draw(st.integers(0, n - 1))] = draw(st.sampled_from(TAGS))
    return draw(trees(words, tags)), draw(trees(words, other))


deterministic = settings(deadline=None, derandomize=True)
parameters = st.sampled_from([COLLINS, SPMRL, QUOTING, UNLABELLED])


@deterministic
@given(pairs(), parameters)
def test_a_tree_scores_100_against_itself(pair: tuple[Tree, Tree], prm: Parameters) -> None:
    tree = pair[0]
    counts = score_trees([tree], [tree], prm)
    if counts.valid:
        assert counts.recall == counts.precision == counts.f1
        assert counts.f1 == (100.0 if counts.total(Column.GOLD) else None)
        assert (counts.complete_match, counts.average_crossing) == (100.0, 0.0)
        assert counts.tagging_accuracy == 100.0
    else:
        assert prm.delete_labels.issuperset(tree.tags)


@deterministic
@given(pairs(), parameters)
def test_swapping_sides_swaps_recall_and_precision(
    pair: tuple[Tree, Tree], prm: Parameters
) -> None:
    one, other = pair
    there, back = score_trees([one], [other], prm), score_trees([other], [one], prm)
    if there.valid and back.valid:
        assert (there.recall, there.precision) == (back.precision, back.recall)
        assert there.f1 == pytest.approx(back.f1)
        assert there.complete_match == back.complete_match
        assert there.no_crossing == back.no_crossing
    else:
        assert there.valid == back.valid == 0


@deterministic
@given(pairs(), parameters)
def test_counts_are_those_of_the_definition(pair: tuple[Tree, Tree], prm: Parameters) -> None:
    """Matching and crossing pair by pair, as the C programs do it, for trees over same tags."""
    gold, test = pair
    row = count_brackets(gold, replace_tags(test, gold), prm)
    if row[Column.STATUS] != VALID:
        return
    kept = [tag not in prm.delete_labels or prm is SPMRL for tag in gold.tags]
    cut = "-=#" if prm is SPMRL else "-="

    def brackets(tree: Tree) -> list[tuple[int, int, str]]:
        found = []
        for start, end, label in tree.constituents():
            for mark in cut:
                label = label.split(mark)[0]
            gone = label in prm.delete_labels or (prm is SPMRL and label == "")
            if any(kept[start:end]) and not gone:
                label = "ADVP" if prm is not SPMRL and label == "PRT" else label
                found.append((sum(kept[:start]), sum(kept[:end]), label if prm.labeled else ""))
        return found

    ours, theirs = brackets(gold), brackets(test)
    free = list(theirs)
    matched = 0
    for bracket in ours:
        if bracket in free:
            free.remove(bracket)
            matched += 1
    crossing = sum(any(a < i < b < j or i < a < j < b for a, b, _ in ours) for i, j, _ in theirs)
    assert row == (
        sum(tag != "-NONE-" for tag in gold.tags),
        VALID,
        matched,
        len(ours),
        len(theirs),
        crossing,
        sum(kept),
        sum(kept),
    )


def replace_tags(tree: Tree, other: Tree) -> Tree:
    return Tree.build(tree.words, other.tags, tree.constituents())
