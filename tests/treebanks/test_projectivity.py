"""How much of a treebank is projective, and what comes back of the rest."""

from __future__ import annotations

import pytest
from spmrl_bench.treebanks.projectivity import Projectivity, projectivity

from spmrl_bench.treebanks.check import TreebankStatistics
from spmrl_bench.treebanks.treebank import open_treebank
from spmrl_bench.trees.dependencies import DependencyTree
from spmrl_bench.trees.pseudo_projective import ENCODINGS
from tests.conftest import shared_data

SPLITS = ("train", "dev", "test")


def tree_of(heads: list[int], relations: str) -> DependencyTree:
    n = len(heads)
    return DependencyTree.build(["w"] * n, ["T"] * n, heads, list(relations))


#: A projective tree, and three whose encoded heads are 2 0 2 2; 2 0 2 2 2; 2 3 0 3. In the third
#: the arc of 5 is lifted because that of 4 rises past it. Relations that differ bring all back.
TREES = [
    tree_of([2, 0, 2], "aba"),
    tree_of([3, 0, 2, 1], "abcd"),
    tree_of([3, 0, 2, 1, 3], "aaaaa"),
    tree_of([2, 3, 0, 1], "aaaa"),
]


def test_counted_by_hand() -> None:
    found = projectivity(TREES)
    assert (found.sentences, found.arcs) == (4, 16)
    assert (found.crossing_sentences, found.crossing_arcs, found.lifted_arcs) == (3, 5, 6)
    assert found.recovered == {"projectivise": 0, "head": 4, "path": 5, "head+path": 5}
    assert found.relations == {
        "projectivise": set("abcd"),
        "head": {"a", "b", "c", "a↑c", "d↑a", "a↑a"},
        "path": {"a", "b", "c↓", "d↑", "a↑↓", "a↓", "a↑"},
        "head+path": {"a", "b", "c↓", "d↑a", "a↑c↓", "a↓", "a↑a", "a↑a↓"},
    }
    assert found.recovery("projectivise") == 100 * 10 / 16
    assert found.recovery("head+path") == 100 * 15 / 16


def test_parts_together() -> None:
    found = Projectivity()
    for tree in TREES:
        found.add_figures(projectivity([tree]))
    assert found == projectivity(TREES)
    assert Projectivity().recovery("head") == 0


def test_a_survey_of_dependencies_has_them() -> None:
    survey = TreebankStatistics()
    for tree in TREES:
        survey.add(tree)
    assert survey.projectivity == projectivity(TREES)
    assert survey.discontinuous_sentences == survey.projectivity.crossing_sentences


#: Arcs, those that cross others, those lifted; lifted arcs back, relations (projectivise first).
REAL = {
    "basque-ud-bdt": (48_469, 556, 559, (0, 523, 528, 555), (33, 140, 82, 171)),
    "french-ud-sequoia": (70_545, 85, 85, (0, 81, 85, 85), (54, 90, 85, 107)),
    "hungarian-ud-szeged": (42_032, 635, 635, (0, 523, 630, 633), (51, 133, 101, 156)),
    "korean-ud-gsd": (23_635, 311, 311, (0, 263, 310, 310), (31, 75, 61, 86)),
}


@pytest.mark.parametrize("name", REAL)
def test_real_treebanks(name: str) -> None:
    bank = open_treebank(name, shared_data("treebanks"))
    trees = [
        parse.dependencies for split in SPLITS for parse in bank.examples(split, ["dependencies"])
    ]
    found = projectivity(tree for tree in trees if tree is not None)
    recovered = tuple(found.recovered[encoding] for encoding in ENCODINGS)
    relations = tuple(len(found.relations[encoding]) for encoding in ENCODINGS)
    counts = (found.arcs, found.crossing_arcs, found.lifted_arcs)
    assert (*counts, recovered, relations) == REAL[name]
    assert all(
        found.recovery(encoding.name) > 99 for encoding in ENCODINGS.values() if encoding.marks
    )


def test_mini_treebanks_are_projective() -> None:
    survey = TreebankStatistics()
    survey.add_all(open_treebank("chinese-mini").examples("dev"), "dependencies")
    assert survey.projectivity.arcs > 0
    assert not survey.projectivity.crossing_arcs
    assert survey.projectivity.recovery("projectivise") == 100
