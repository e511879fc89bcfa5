"""The baselines, against hand-made answers and a count of its own."""

from __future__ import annotations

import unicodedata
from collections import Counter, defaultdict
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spmrl_bench.parsers.base import ParserConfig
from spmrl_bench.parsers.baselines import (
    AttachNeighbour,
    RandomProjective,
    RandomShortest,
    RightBranching,
)
from spmrl_bench.readers.brackets import parse_brackets
from spmrl_bench.trees import Parse, Tree
from spmrl_bench.trees.dependencies import DependencyTree
from tests.chart.dependency_oracles import projective_trees
from tests.trees.strategies import head_lists


def branching(*brackets: str) -> RightBranching:
    return RightBranching.build(ParserConfig(), [Parse.of(parse_brackets(b)) for b in brackets])


def tree_by(baseline: RightBranching, words: Sequence[str]) -> Tree:
    (parse,) = baseline.parse([list(words)], [[str(k) for k in range(len(words))]])
    assert parse.tree is not None
    return parse.tree


TRAINING = (
    "(S (NP (N a)) (VP (V b) (NP (N c))))",
    "(TOP (S (NP (N a)) (X (Y (V b) (N c)))))",
    "(TOP (S (NP (N a)) (V b)))",
)


def test_labels_that_are_counted() -> None:
    for brackets, whole, body, inner in [
        (TRAINING, ["TOP", "S"], [], ["NP"]),  # the most frequent chains
        (["(S (t a) (X (t b) (X (t c) (t d))))"], ["S"], [], ["X"]),  # a suffix is not the whole
        # A sentence of one word counts as whole.
        ([*["(NP (N a))"] * 3, "(S (VP (V a)) (X b))"], ["NP"], [], ["VP"]),
        # Of those that are as frequent the first seen.
        (["(B (Y (t a)) (t b))", "(A (X (t a)) (t b))"], ["B"], [], ["Y"]),
        (["(TOP (S (NP (N a)) (V b)) (. .))"], ["TOP"], ["S"], ["NP"]),
        ([], [], [], []),
    ]:
        assert branching(*brackets).counted == {"whole": whole, "body": body, "inner": inner}


def test_every_suffix_of_the_body_is_a_constituent() -> None:
    german = ("(TOP (S (NP (N a)) (V b)) (. .))",)
    english = ("(S (NP (N a)) (VP (V b)) (. .))",) * 2 + ("(S (VP (V b) (NP (N c))) (. .))",)
    for training, words, expected in (
        (TRAINING, "pqrs", "(TOP (S (0 p) (NP (1 q) (NP (2 r) (3 s)))))"),
        (TRAINING, "p", "(TOP (S (0 p)))"),
        (TRAINING, "pq", "(TOP (S (0 p) (1 q)))"),
        (("(S (t a) (t b))",), "pqr", "(S (0 p) (1 q) (2 r))"),  # no label inside
        (german, 'pqr!"', '(TOP (S (0 p) (NP (1 q) (2 r))) (3 !) (4 "))'),
        (german, "pq", "(TOP (0 p) (1 q))"),
        (english, "pqr.", "(S (0 p) (NP (1 q) (2 r)) (3 .))"),  # the body is mostly none
    ):
        assert tree_by(branching(*training), words) == parse_brackets(expected), words
    assert not list(tree_by(branching(), "pqr").constituents())


#: A word with its tag, its head and its relation.
Row = tuple[str, str, int, str]


def attaching(*sentences: Sequence[Row]) -> AttachNeighbour:
    trees = []
    for rows in sentences:
        words, tags, heads, relations = zip(*rows, strict=True)
        trees.append(Parse.of(None, DependencyTree.build(words, tags, heads, relations)))
    return AttachNeighbour.build(ParserConfig(), trees)


def answer(
    baseline: AttachNeighbour, words: Sequence[str], tags: Sequence[str] | None = None
) -> tuple[list[int], list[str]]:
    (parse,) = baseline.parse([list(words)], None if tags is None else [list(tags)])
    return parse.dependencies.heads.tolist(), list(parse.dependencies.relations)


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
    is_mark = [all(unicodedata.category(c)[0] not in "LN" for c in row[0]) for row in rows]
    body = len(rows)
    while body > 1 and all(is_mark[body - 1 :]):
        body -= 1
    if all(is_mark):
        body = len(rows)
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
    words, tags = [row[0] for row in rows], [row[1] for row in rows]
    heads, relations = answer(attaching(*training), words, tags)
    assert list(zip(heads, relations, strict=True)) == counted_once_more(training, rows)
    # The answer is a tree: from every word one comes to the root.
    for word in range(1, len(rows) + 1):
        passed = [word]
        while (head := heads[passed[-1] - 1]) != 0:
            assert head not in passed
            passed.append(head)
    assert heads.count(0) == 1


COUNTED = {"side": "left", "root": "root", "any": "dep", "by_tag": {}}


def body(n: int, number: int) -> list[str]:
    return [str(number)] + ["w"] * (n - 1)


def shape(heads: Sequence[int], word: int = 0) -> str:
    """A tree without the order of its words."""
    below = (shape(heads, one) for one, head in enumerate(heads, 1) if head == word)
    return f"({''.join(sorted(below))})"


def length(heads: Sequence[int]) -> int:
    return sum(abs(head - word) for word, head in enumerate(heads, 1) if head)


@pytest.mark.parametrize(("n", "trees"), [(1, 1), (2, 2), (3, 7), (4, 30)])
def test_every_projective_tree_is_as_likely(n: int, trees: int) -> None:
    every = projective_trees(n)
    assert len(every) == trees
    draws = 200 * trees
    baseline = RandomProjective(COUNTED)
    found = Counter(tuple(baseline.body_heads(body(n, k))) for k in range(draws))
    assert set(found) == set(every)
    # Of chi squared with so many degrees of freedom, seven standard deviations above the mean.
    squares = sum((number - 200) ** 2 / 200 for number in found.values())
    assert squares < trees + 7 * (2 * trees) ** 0.5


def test_the_shortest_arcs_of_all_projective_orders() -> None:
    for n in range(1, 7):
        least: dict[str, int] = defaultdict(lambda: 99)
        for heads in projective_trees(n):
            least[shape(heads)] = min(least[shape(heads)], length(heads))
        for number in range(60):
            drawn = RandomProjective(COUNTED).body_heads(body(n, number))
            arranged = RandomShortest(COUNTED).body_heads(body(n, number))
            assert shape(arranged) == shape(drawn)
            assert length(arranged) == least[shape(drawn)]


def test_a_random_tree_leaves_final_punctuation_to_its_root() -> None:
    words = ["a", "b", "c", "d", ".", '"']
    heads, relations = answer(RandomProjective(COUNTED), words)
    root = heads.index(0) + 1
    assert heads[4:] == [root, root]
    assert relations == ["root" if word == root else "dep" for word in range(1, 7)]
    assert answer(RandomProjective(COUNTED), words) == (heads, relations)
    assert len(answer(RandomShortest(COUNTED), ["w"] * 2000)[0]) == 2000
