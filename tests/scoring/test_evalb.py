"""Counts of single sentences, as the C programs give them, and laws that hold for any pair.

Each row under the published policy is what EVALB or EVALB_SPMRL prints for the pair, but for the
statuses of EVALB_SPMRL on sentences of different length (see :mod:`spmrl_bench.scoring.evalb`).
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from hypothesis import given
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
)
from spmrl_bench.trees import Tree
from tests.builders import cli_process
from tests.reliability.tally import Tally
from tests.scoring.hostile import as_trees

COLLINS = load_prm("COLLINS")
SPMRL = load_prm("spmrl")
QUOTING = replace(COLLINS, quote_labels=frozenset(["``", "''", "POS"]))
UNLABELLED = replace(COLLINS, labeled=False)
SAME_WORDS = replace(COLLINS, eq_words=frozenset([("a", "z")]))

SETS = {"quoting": QUOTING, "unlabelled": UNLABELLED, "same words": SAME_WORDS}
POLICIES = {
    "": Policy(),
    "count": Policy(missing_parse=MissingParse.COUNT),
    "by-gold": Policy(punctuation=Punctuation.BY_GOLD),
}


class Case(NamedTuple):
    """A line of ``rows.tsv``: a pair of trees and the row that it is counted as."""

    name: str
    prm: Parameters
    policy: Policy
    gold: str
    test: str
    row: tuple[int, ...]


def read_cases() -> list[Case]:
    lines = Path(__file__).with_name("rows.tsv").read_text(encoding="utf-8").splitlines()
    cases = []
    for line in lines[1:]:
        name, prm, policy, gold, test, length, status, *counts = line.split("\t")
        row = (int(length), Status[status.upper()], *map(int, counts))
        cases.append(Case(name, SETS.get(prm) or load_prm(prm), POLICIES[policy], gold, test, row))
    return cases


CASES = read_cases()


def test_rows_are_those_of_the_c_programs(tally: Tally) -> None:
    tally("R2", "situations that users ask about").add(len(CASES))
    wrong = []
    for case in CASES:
        if count_brackets(*as_trees([case.gold, case.test]), case.prm, case.policy) != case.row:
            wrong.append(case.name)
    assert wrong == []


def test_none_is_a_sentence_without_a_parse() -> None:
    tree = parse_brackets("(TOP (S (NN a)))")
    for pair, status in (((tree, None), Status.NO_WORDS), ((None, tree), Status.LENGTH_UNMATCH)):
        row = count_brackets(*pair, COLLINS)
        assert row[1:] == (status, 0, 0, 0, 0, 0, 0)


def test_scoring_needs_neither_torch_nor_pandas() -> None:
    program = "import sys, spmrl_bench.scoring; print({'torch', 'pandas'} & set(sys.modules))"
    done = cli_process(code=program)
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
    """Two trees over the same words and tags."""
    n = draw(st.integers(1, 9))
    words = [f"w{i}" for i in range(n)]
    tags = draw(st.lists(st.sampled_from(TAGS), min_size=n, max_size=n))
    return draw(trees(words, tags)), draw(trees(words, tags))


@given(pairs(), st.sampled_from([COLLINS, SPMRL, QUOTING, UNLABELLED]))
def test_counts_are_those_of_the_definition(pair: tuple[Tree, Tree], prm: Parameters) -> None:
    """Matching and crossing pair by pair, as the C programs do it, for trees over same tags."""
    gold, test = pair
    row = count_brackets(gold, test, prm)
    if row[Column.STATUS] != Status.VALID:
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
        Status.VALID,
        matched,
        len(ours),
        len(theirs),
        crossing,
        sum(kept),
        sum(kept),
    )
