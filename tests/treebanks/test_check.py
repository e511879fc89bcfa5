"""Validation lists all that is wrong, and says so only of what is wrong; figures are right."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given

from spmrl_bench.readers.brackets import parse_brackets
from spmrl_bench.treebanks.catalogue import load_manifest
from spmrl_bench.treebanks.check import (
    TreebankStatistics,
    Validation,
    find_overlaps,
    inventories,
    shared_note,
    statistics_table,
    validate,
)
from spmrl_bench.trees.dependencies import DependencyTree
from spmrl_bench.trees.parse import Parse
from spmrl_bench.trees.tree import Tree
from tests.conftest import shared_data
from tests.treebanks.conftest import WriteManifest
from tests.trees.graphs import graph
from tests.trees.strategies import dependency_trees

# Sentences and tokens as the READMEs of the shared data give them for the whole treebank.
LARGE = {
    "chinese-sinica": (10_000, 91_634),
    "dutch-alpino": (1_200, 23_629),
    "french-sequoia": (3_099, 67_038),
    "icelandic-icepahc": (6_329 - 2, 78_439),  # two trees have no word
    "spanish-cess": (2_285, 55_360),
}
#: Constituents with gaps, and arcs that cross others.
CROSSING = {"dutch-alpino": 2964, "french-ud-sequoia": 85, "hungarian-ud-szeged": 635}
STATED = {
    "dutch-alpino-sample": (3, 76),
    "english-gum": (2_427 + 1_575 + 1_464, 54_998 + 28_119 + 28_397),
    "english-wsj-sample": (3_914, 94_084),
    "french-ud-sequoia": (3_099, 70_545),
    "german-smultron": (86, 1_906 - 63),  # without mark-up
    "german-squoia": (2_824, 46_857),
    "hungarian-ud-szeged": (1_800, 42_032),
    "indonesian-idn": (1_033, 27_115),  # three lines hold two trees; one 0 is a word
    "japanese-keyaki": (3_589, 64_220),
    "swedish-smultron": (93, 1_731 - 63),
}


def check(name: str, root: Path) -> Validation:
    return validate(load_manifest(name), root)


def test_a_sound_treebank_and_an_absent_one(manifests: WriteManifest, root: Path) -> None:
    manifests()
    absent = check("tiny", root / "nowhere")
    assert (absent.present, absent.sound) == (False, False)
    result = check("tiny", root)
    assert result.sound
    assert {name: one.sentences for name, one in result.statistics.items()} == {
        "train": 3, "dev": 3, "test": 1
    }  # fmt: skip
    assert result.left_out["train"] == (0, 1)


def test_other_numbers_are_told_as_lines_of_a_manifest(
    manifests: WriteManifest, root: Path
) -> None:
    manifests(
        on_error='"skip"',
        **{"splits.train": '{ files = ["a_*.mrg"], sentences = 9, skipped = 2, dropped = 0 }'},
    )
    path = manifests("mine")
    assert check("tiny", root).deviating == {
        "train": "splits.train.sentences = 3\nsplits.train.tokens = 5\n"
        "splits.train.skipped = 0\nsplits.train.dropped = 1"
    }
    lines = check("tiny", root).deviating["train"]
    path.write_text(f'name = "mine"\nbase = "tiny"\n{lines}\n')
    assert check("mine", root).sound


def test_every_problem_of_every_split_is_listed(manifests: WriteManifest, root: Path) -> None:
    folder = root / "tiny_data"
    checksums = (
        manifests(
            transforms='["drop-traces"]',
            **{"splits.test": '{ files = ["t.mrg", "u.mrg"], sentences = 2 }'},
        ).parent
        / "checksums"
    )
    checksums.mkdir()
    (checksums / "tiny.sha256").write_text(f"{'0' * 64}  d_09.mrg\n")
    (folder / "a_1.mrg").write_text("(S (N a)\n(S (N b) c)\n(S (N d))\n")
    (folder / "t.mrg").write_text("(N a)\n")
    (folder / "u.mrg").write_text("(S (N b) (N c))\n")
    result = check("tiny", root)
    assert not result.sound
    *broken, train, train_tokens, dev, test = result.problems
    # The first tree is still open there.
    assert [problem.split(": ")[:2] for problem in broken] == [
        [f"{folder}/a_1.mrg:2:10", "sentence 1"],
        [f"{folder}/a_1.mrg:2:10", "sentence 2"],
    ]
    assert [train, train_tokens, dev, test] == [
        "train: expected 3 sentences, found 2",
        "train: expected 5 tokens, found 3",
        "dev: d_09.mrg is not the file that the manifest was written for (SHA-256)",
        "test: 1 trees have no single constituent over all words: add a root transform to the "
        "manifest",
    ]
    (folder / "t.mrg").write_bytes(b"(S (N \xff))")
    result = check("tiny", root)
    assert any("t.mrg:1: byte 0xff is not utf-8 text" in each for each in result.problems)
    assert set(result.statistics) == {"train", "dev"}


def test_a_name_of_two_sentences_is_a_problem(manifests: WriteManifest, root: Path) -> None:
    manifests(format='"conll"', escapes=None, transforms="[]", prm=None)
    for path in (root / "tiny_data").glob("*.mrg"):
        sentence = f"# sent_id = X\n1\t{path.stem}\t_\tN\tN\t_\t0\troot\t_\t_\n\n"
        path.write_text(sentence * (3 if path.stem == "a_1" else 1))
    name = f"first X in {root}/tiny_data/a_1.mrg"
    assert f"train: 1 identifier(s) name several sentences, {name}" in check("tiny", root).problems
    manifests(format='"psd"', escapes=None)
    for path in (root / "tiny_data").glob("*.mrg"):
        path.write_text("( (S (N b) (N c)) (ID X))\n" * (3 if path.stem == "a_1" else 1))
    assert f"train: 1 identifier(s) name several sentences, {name}" in check("tiny", root).problems


def test_leaves_that_are_none_are_a_problem(manifests: WriteManifest, root: Path) -> None:
    manifests()
    for path in (root / "tiny_data").glob("*.mrg"):
        path.write_text("(S (N {turkish=ev}) (N {x=gel}))\n")
    problem = "train: its leaves are read as (N {turkish=ev}), (N {x=gel}), with 1 tag(s)"
    assert any(one.startswith(problem) for one in check("tiny", root).problems)


LAYER = '{ format = "dp", train = ["a.dp"], dev = ["d.dp"], test = ["t.dp"] }'


def test_layers(manifests: WriteManifest, root: Path) -> None:
    folder = root / "tiny_data"
    manifests(dependencies=LAYER)
    (folder / "a.dp").write_text("a\tN\t0\n\nb\tN\t0\nc\tN\t1\n\nd\tN\t2\ne\tN\t0\n")
    (folder / "d.dp").write_text("f\tN\t0\n\ng\tN\t0\n\nh\tN\t0\n")
    (folder / "t.dp").write_text("i\tN\t0\n(\tN\t1\n")
    result = check("tiny", root)
    assert result.sound
    assert result.aligned == 5 + 3 + 2
    (folder / "d.dp").write_text("f\tN\t0\n\ng\tN\t0\n\nx\tN\t0\n")
    (folder / "t.dp").unlink()
    assert check("tiny", root).problems == [
        "tiny, split dev: the trees and the dependencies differ: "
        "word 1 of sentence 3 is 'h' and 'x'",
        f"test: the dependencies lack t.dp in {folder}",
    ]


@pytest.mark.parametrize(
    "name", [*STATED, *(pytest.param(name, marks=pytest.mark.campaign) for name in LARGE)]
)
def test_real_treebanks_have_the_sizes_that_their_descriptions_state(name: str) -> None:
    result = check(name, shared_data("treebanks"))
    assert result.sound, result.problems
    splits = result.statistics.values()
    found = sum(one.sentences for one in splits), sum(one.tokens for one in splits)
    assert found == (STATED | LARGE)[name]
    if name in CROSSING:
        assert sum(one.discontinuous for one in splits) == CROSSING[name]
    if name == "english-wsj-sample":
        assert result.aligned == found[1]


TREES = [
    parse_brackets("(S (NP (NP (D the) (N dog))) (VP (V saw) (NP (D the) (N cat))))"),
    parse_brackets("(NP (N dog))"),
    parse_brackets("(N cat)"),
]


def statistics_of(trees: list[Tree]) -> TreebankStatistics:
    found = TreebankStatistics()
    found.add_all(map(Parse.of, trees), "constituents")
    return found


def test_constituents() -> None:
    found = statistics_of(TREES)
    assert (found.sentences, found.tokens, found.one_word) == (3, 7, 2)
    assert found.forms == {"the": 2, "dog": 2, "cat": 2, "saw": 1}
    assert found.tags == {"D": 2, "N": 4, "V": 1}
    assert found.labels == {"S": 1, "NP": 4, "VP": 1}
    assert found.longest == (5, 1)
    assert found.deepest == 3
    assert found.chains == {"NP over NP": 1}
    assert found.several_roots == 1  # a bare word
    assert found.unseen(statistics_of(TREES[1:])) == 100 * 3 / 7


def test_gaps_of_a_graph() -> None:
    found = TreebankStatistics()
    found.add_raw(graph("a b c", {"VP": ["a", "c"], "S": ["b"]}, {"S": "", "VP": "S"}))
    found.add_raw(parse_brackets("(S (N a))"))
    assert (found.discontinuous, found.discontinuous_sentences) == (1, 1)


def descendants(heads: list[int], word: int) -> set[int]:
    """A word and all below it, found the slow way."""
    below = {word}
    while True:
        more = below | {w for w, head in enumerate(heads, start=1) if head in below}
        if more == below:
            return below
        below = more


@given(dependency_trees())
def test_crossing_arcs_and_height_of_dependencies(tree: DependencyTree) -> None:
    heads = tree.heads.tolist()
    below = [{0, *range(1, len(heads) + 1)}]
    below += [descendants(heads, word) for word in range(1, len(heads) + 1)]
    crossing = sum(
        not set(range(min(word, head) + 1, max(word, head))) <= below[head]
        for word, head in enumerate(heads, start=1)
    )
    found = TreebankStatistics()
    found.add_all([Parse.of(dependencies=tree)], "dependencies")
    assert (found.discontinuous, found.discontinuous_sentences) == (crossing, crossing > 0)
    assert found.deepest == max(
        sum(word in words for words in below[1:]) for word in below[0] - {0}
    )


def test_shared_sentences() -> None:
    longer = parse_brackets("(S (A a) (B b) (C c) (D d))")
    other = parse_brackets("(S (A a) (B b) (C c) (D e))")
    short = parse_brackets("(S (A a) (B b) (C c))")
    splits = {"train": [short, longer], "dev": [other, longer, longer], "test": [short, other]}
    files: Any = SimpleNamespace(manifest=SimpleNamespace(shared="allowed"))
    parses = {name: list(map(Parse.of, trees)) for name, trees in splits.items()}
    shared, _ = find_overlaps(files, parses)
    assert shared == [
        ("dev", 2, "train", 2), ("dev", 3, "train", 2), ("test", 2, "dev", 1)
    ]  # fmt: skip
    (note,) = shared_note(shared)
    assert "2 of dev in train, 1 of test in dev (the first: dev 2 is train 2)" in note
    assert shared_note([]) == []


def test_tables() -> None:
    splits = {"train": statistics_of(TREES), "dev": statistics_of(TREES[:1])}
    lines = [line.split() for line in statistics_table(splits).splitlines()]
    assert ["tokens", "7", "5"] in lines
    assert ["unseen", "tokens", "0.0", "%"] in lines
    assert ["longest", "sentence", "5", "(no.", "1)", "5", "(no.", "1)"] in lines
    assert inventories(splits) == [
        "labels (3): NP, S, VP", "tags (3): N, D, V", "chains (1): NP over NP"
    ]  # fmt: skip


def test_a_deep_tree_and_a_long_chain_take_no_stack() -> None:
    assert statistics_of([parse_brackets("(X " * 5000 + "(N a)" + ")" * 5000)]).deepest == 5000
    found = TreebankStatistics()
    found.add(DependencyTree.build(["w"] * 5000, ["t"] * 5000, range(5000), ["r"] * 5000))
    assert found.deepest == 5000
