"""The figures of a survey, on sentences small enough to count by hand."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given

from spmrl_bench.readers.brackets import parse_brackets
from spmrl_bench.treebanks.check import (
    TreebankStatistics,
    inventories,
    shared_note,
    shared_sentences,
    statistics_table,
)
from spmrl_bench.trees.dependencies import DependencyTree
from spmrl_bench.trees.graph import NO_PARENT, Graph
from spmrl_bench.trees.parse import Parse
from spmrl_bench.trees.tree import Tree
from tests.trees.dependency_strategies import dependency_trees

TREES = [
    parse_brackets("(S (NP (NP (D the) (N dog))) (VP (V saw) (NP (D the) (N cat))))"),
    parse_brackets("(NP (N dog))"),
    parse_brackets("(N cat)"),
]


def survey_of(trees: list[Tree]) -> TreebankStatistics:
    survey = TreebankStatistics()
    survey.add_all(map(Parse.of, trees), "constituents")
    return survey


def test_constituents() -> None:
    survey = survey_of(TREES)
    assert (survey.sentences, survey.tokens, survey.one_word) == (3, 7, 2)
    assert survey.forms == {"the": 2, "dog": 2, "cat": 2, "saw": 1}
    assert survey.tags == {"D": 2, "N": 4, "V": 1}
    assert survey.labels == {"S": 1, "NP": 4, "VP": 1}
    assert survey.longest == (5, 1)
    assert survey.deepest == 3
    assert survey.chains == {("NP", "NP"): 1}
    assert survey.several_roots == 1  # a bare word
    assert survey.unseen(survey_of(TREES[1:])) == 100 * 3 / 7


def test_gaps_of_a_graph() -> None:
    graph = Graph(
        name="1",
        words=("a", "b", "c"),
        tags=("T", "T", "T"),
        token_parents=(1, 0, 1),
        token_edges=("", "", ""),
        labels=("S", "VP"),
        parents=(NO_PARENT, 0),
        edges=("", ""),
    )
    survey = TreebankStatistics()
    survey.add_raw(graph)
    survey.add_raw(parse_brackets("(S (N a))"))
    assert (survey.discontinuous, survey.discontinuous_sentences) == (1, 1)


def dominated(heads: list[int], word: int) -> set[int]:
    """A word and all below it, found the slow way."""
    below = {word}
    while True:
        more = below | {w for w, head in enumerate(heads, start=1) if head in below}
        if more == below:
            return below
        below = more


@given(dependency_trees())
def test_gaps_and_height_of_dependencies(tree: DependencyTree) -> None:
    heads = tree.heads.tolist()
    yields = [dominated(heads, word) for word in range(1, len(heads) + 1)]
    gaps = sum(max(words) - min(words) + 1 != len(words) for words in yields)
    survey = TreebankStatistics()
    survey.add_all([Parse.of(dependencies=tree)], "dependencies")
    assert (survey.discontinuous, survey.discontinuous_sentences) == (gaps, gaps > 0)
    arcs = [sum(word in words for words in yields) for word in range(1, len(heads) + 1)]
    assert survey.deepest == max(arcs)


def test_shared_sentences() -> None:
    longer = parse_brackets("(S (A a) (B b) (C c) (D d))")
    other = parse_brackets("(S (A a) (B b) (C c) (D e))")
    short = parse_brackets("(S (A a) (B b) (C c))")
    splits = {"train": [short, longer], "dev": [other, longer, longer], "test": [short, other]}
    shared = shared_sentences({name: list(map(Parse.of, trees)) for name, trees in splits.items()})
    assert shared == [
        ("dev", 2, "train", 2), ("dev", 3, "train", 2), ("test", 2, "dev", 1)
    ]  # fmt: skip
    (note,) = shared_note(shared)
    assert "2 of dev in train, 1 of test in dev (the first: dev 2 is train 2)" in note
    assert shared_note([]) == []


def test_tables() -> None:
    surveys = {"train": survey_of(TREES), "dev": survey_of(TREES[:1])}
    lines = [line.split() for line in statistics_table(surveys).splitlines()]
    assert ["tokens", "7", "5"] in lines
    assert ["unseen", "tokens", "0.0", "%"] in lines
    assert ["longest", "sentence", "5", "(no.", "1)", "5", "(no.", "1)"] in lines
    assert inventories(surveys) == [
        "labels (3): NP, S, VP", "tags (3): N, D, V", "chains (1): NP over NP"
    ]  # fmt: skip


def test_a_deep_tree_and_a_long_chain_take_no_stack(tmp_path: Path) -> None:
    deep = parse_brackets("(X " * 5000 + "(N a)" + ")" * 5000)
    survey = survey_of([deep])
    assert survey.deepest == 5000
    chain = DependencyTree.build(["w"] * 5000, ["t"] * 5000, list(range(5000)), ["r"] * 5000)
    survey = TreebankStatistics()
    survey.add(chain)
    assert survey.deepest == 5000
