"""The baseline of dependencies, against hand-made answers and a count of its own."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spmrl_bench.parsers.attach_neighbour import AttachNeighbour
from spmrl_bench.parsers.config import ParserConfig
from spmrl_bench.trees.dependencies import DependencyTree
from spmrl_bench.trees.parse import Parse
from tests.trees.dependency_strategies import head_lists

#: A word with its tag, its head and its relation.
Row = tuple[str, str, int, str]

LEFT = [("a", "N", 0, "root"), ("b", "N", 1, "obj"), ("c", "V", 2, "dep"), (".", "P", 1, "punct")]
RIGHT = [("a", "N", 2, "subj"), ("b", "V", 3, "aux"), ("c", "V", 0, "top"), (".", "P", 3, "punct")]


def tree_of(rows: Sequence[Row]) -> DependencyTree:
    words, tags, heads, relations = zip(*rows, strict=True)
    return DependencyTree.build(words, tags, heads, relations)


def baseline_of(*sentences: Sequence[Row]) -> AttachNeighbour:
    return AttachNeighbour.build(
        ParserConfig(), [Parse.of(None, tree_of(rows)) for rows in sentences]
    )


def answer(
    baseline: AttachNeighbour, words: Sequence[str], tags: Sequence[str] | None = None
) -> tuple[list[int], list[str]]:
    (parse,) = baseline.parse([list(words)], None if tags is None else [list(tags)])
    return parse.dependencies.heads.tolist(), list(parse.dependencies.relations)


@pytest.mark.parametrize(
    ("words", "left", "right"),
    [
        ("pqr", [0, 1, 2], [2, 3, 0]),
        ("pqr.!", [0, 1, 2, 1, 1], [2, 3, 0, 3, 3]),  # punctuation at the end
        ("p,q.", [0, 1, 2, 1], [2, 3, 0, 3]),  # inside it is a word like others
        (".!?", [0, 1, 2], [2, 3, 0]),  # nothing but punctuation
        ("p", [0], [0]),
        ("!", [0], [0]),
        ("p.", [0, 1], [0, 1]),
    ],
)
def test_heads_on_both_sides(words: str, left: list[int], right: list[int]) -> None:
    assert answer(baseline_of(LEFT), words)[0] == left
    assert answer(baseline_of(RIGHT), words)[0] == right


@st.composite
def sentences(draw: st.DrawFn) -> list[Row]:
    n = draw(st.integers(1, 6))
    heads = draw(head_lists(n))
    columns = [
        draw(st.lists(st.sampled_from(texts), min_size=n, max_size=n))
        for texts in (["a", "7", ".", "«", "x."], "NVP", ["subj", "obj", "dep"])
    ]
    return [
        (word, tag, head, relation if head else "root")
        for word, tag, relation, head in zip(*columns, heads, strict=True)
    ]


def usual(relations: list[str]) -> str:
    """The most frequent one; of several the one that comes first."""
    ranked = sorted(relations, key=lambda one: (-relations.count(one), relations.index(one)))
    return ranked[0] if ranked else "root"


def counted_once_more(training: list[list[Row]], rows: list[Row]) -> list[tuple[int, str]]:
    """Heads and relations by the description of the baseline."""
    bound = [(k, row) for rows in training for k, row in enumerate(rows, 1) if row[2] != 0]
    to_left = len([1 for k, row in bound if k - row[2] == 1])
    to_right = len([1 for k, row in bound if row[2] - k == 1])
    n = len(rows)
    is_mark = [all(unicodedata.category(c)[0] not in "LN" for c in row[0]) for row in rows]
    body = n
    while body > 1 and all(is_mark[body - 1 :]):
        body -= 1
    if all(is_mark):
        body = n
    root = 1 if to_left > to_right else body
    found = []
    for k, (_, tag, _, _) in enumerate(rows, 1):
        own = [row[3] for _, row in bound if row[1] == tag]
        relation = usual(own or [row[3] for _, row in bound])
        if k == root:
            found.append((0, "root"))
        elif k > body:
            found.append((root, relation))
        else:
            found.append((k - 1 if to_left > to_right else k + 1, relation))
    return found


@given(st.lists(sentences(), max_size=5), sentences())
def test_against_an_independent_count(training: list[list[Row]], rows: list[Row]) -> None:
    heads, relations = answer(
        baseline_of(*training), [row[0] for row in rows], [row[1] for row in rows]
    )
    assert list(zip(heads, relations, strict=True)) == counted_once_more(training, rows)
    # The answer is a tree: from every word one comes to the root.
    for word in range(1, len(rows) + 1):
        passed = [word]
        while (head := heads[passed[-1] - 1]) != 0:
            assert head not in passed
            passed.append(head)
    assert heads.count(0) == 1
