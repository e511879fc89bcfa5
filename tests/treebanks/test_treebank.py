"""Treebanks by name: what is there, what is read, what is refused."""

from __future__ import annotations

import logging
import re
from functools import partial
from pathlib import Path

import pytest

from spmrl_bench.errors import ReadError, TreebankError
from spmrl_bench.treebanks.catalogue import treebank_statuses
from spmrl_bench.treebanks.treebank import open_treebank
from spmrl_bench.trees import Tree
from spmrl_bench.trees.dependencies import DependencyTree
from spmrl_bench.trees.parse import Parse
from tests.conftest import shared_data
from tests.treebanks.conftest import WriteManifest
from tests.treebanks.test_manifest import MINI


def test_splits_are_read_transformed_and_counted(
    manifests: WriteManifest, root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    manifests()
    treebank = open_treebank("tiny", root)
    assert (treebank.name, treebank.track, treebank.language) == ("tiny", "open", "elvish")
    with caplog.at_level(logging.WARNING):
        train = treebank.split("train")
    assert [tree.words for tree in train] == [("a",), ("b", "c"), ("d", "e")]
    assert train[0] == Tree.build(["a"], ["N"], [(0, 1, "S")])
    assert [tree.words for tree in treebank.split("dev")] == [("f",), ("g",), ("h",)]
    assert treebank.split("test")[0].words == ("i", "(")
    assert [treebank.content(name).dropped for name in ("train", "dev", "test")] == [1, 0, 0]
    assert caplog.messages == ["tiny, split train: 1 sentence(s) without words left out"]


def test_root_from_the_environment_may_be_relative(
    manifests: WriteManifest, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifests()
    monkeypatch.chdir(root)
    monkeypatch.setenv("TREEBANKS", "../treebanks")
    treebank = open_treebank("tiny")
    monkeypatch.chdir("/")
    assert len(treebank.split("test")) == 1


def test_unknown_split(manifests: WriteManifest, root: Path) -> None:
    manifests()
    with pytest.raises(TreebankError, match=r"unknown split 'tests'\. Did you mean test\?"):
        open_treebank("tiny", root).split("tests")


def test_absent_folder_says_what_to_do(
    manifests: WriteManifest, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifests()
    manifests("gone", path='"gone_data"')
    manifests("foreign", path='"gone_data"', language='"orkish"')
    monkeypatch.delenv("TREEBANKS", raising=False)
    with pytest.raises(TreebankError) as caught:
        open_treebank("gone")
    assert str(caught.value).splitlines() == [
        "treebank gone is not present",
        "  looked in: nowhere: the environment variable TREEBANKS is not set",
        "  missing: gone_data/",
        "  expected layout: gone_data/a_*.mrg, gone_data/d_{08..10}.mrg, gone_data/t.mrg",
        "  how to get it: Ask the elves.",
        "  then set TREEBANKS to the directory that has gone_data/",
        "  present for elvish: none",
    ]
    monkeypatch.setenv("TREEBANKS", str(root))
    with pytest.raises(TreebankError) as caught:
        open_treebank("gone")
    assert f"looked in: {root}/gone_data\n" in str(caught.value)
    assert str(caught.value).endswith("present for elvish: tiny")
    with pytest.raises(TreebankError, match="present for orkish: none"):
        open_treebank("foreign")


def test_absent_files_are_named(manifests: WriteManifest, root: Path) -> None:
    rows = 'rows = { table = "t.tsv", column = "c", equals = "x" }'
    manifests(**{"splits.test": f'{{ files = ["t.mrg"], sentences = 1, {rows} }}'})
    for name in ("a_1.mrg", "a_2.mrg", "d_09.mrg"):
        (root / "tiny_data" / name).unlink()
    with pytest.raises(TreebankError, match=re.escape("missing: a_*.mrg, d_09.mrg, t.tsv")):
        open_treebank("tiny", root)
    ((status,), _) = treebank_statuses(root)
    assert not status.present
    assert status.missing == ("a_*.mrg", "d_09.mrg", "t.tsv")


def test_status(manifests: WriteManifest, root: Path) -> None:
    manifests()
    manifests("young", **MINI)
    (tiny, young), _ = treebank_statuses(root)
    assert (tiny.name, tiny.present, tiny.where) == ("tiny", True, str(root / "tiny_data"))
    assert tiny.sentences == {"train": 3, "dev": 3, "test": 1}
    assert (young.present, young.where) == (True, "generated, needs no files")


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ("sentences = 4", "expected 4 sentences, found 3 (1 without words left out). The files"),
        ("sentences = 3, tokens = 9", "expected 9 tokens, found 5 (1 with"),
        ("sentences = 4, tokens = 9", "expected 4 sentences, found 3; expected 9 tokens, found 5"),
    ],
)
def test_another_size_than_declared(
    manifests: WriteManifest, root: Path, sizes: str, message: str
) -> None:
    manifests(**{"splits.train": f'{{ files = ["a_*.mrg"], {sizes} }}'})
    with pytest.raises(TreebankError) as caught:
        open_treebank("tiny", root).split("train")
    assert f"tiny, split train in {root}/tiny_data: {message}" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("\n \n", r"t\.mrg: found no sentence in the file"),
        ("", r"t\.mrg: found no sentence in the file"),
        ("(S (N i)", r"t\.mrg:1:1: sentence 1: the tree that starts here is not closed"),
    ],
)
def test_bad_file(manifests: WriteManifest, root: Path, text: str, message: str) -> None:
    manifests()
    (root / "tiny_data" / "t.mrg").write_text(text)
    with pytest.raises(ReadError, match=message):
        open_treebank("tiny", root).split("test")


ROWS = '{{ files = ["a_2.mrg", "d_08.mrg", "t.mrg"], sentences = {}, rows = {} }}'


def by_rows(value: str, sentences: int) -> dict[str, str]:
    rows = f'{{ table = "ids.tsv", column = "split", equals = "{value}" }}'
    return {f"splits.{name}": ROWS.format(sentences, rows) for name in ("train", "dev", "test")}


def test_rows_of_a_table_choose_sentences(manifests: WriteManifest, root: Path) -> None:
    manifests(**by_rows("x", 2))
    (root / "tiny_data" / "ids.tsv").write_text('id\tsplit\n"1\tx\n2\ty\n3\tx\n')
    trees = open_treebank("tiny", root).split("dev")
    assert [tree.words for tree in trees] == [("d", "e"), ("i", "(")]


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("id\tset\n1\tx\n", r"ids\.tsv:1: found the columns id, set, expected 'split'"),
        ("", r"ids\.tsv:1: found the columns none, expected 'split'"),
        ("split\nx\nx\n", r"ids\.tsv: found 2 lines below the first, expected 3"),
    ],
)
def test_bad_table(manifests: WriteManifest, root: Path, table: str, message: str) -> None:
    manifests(**by_rows("x", 2))
    (root / "tiny_data" / "ids.tsv").write_text(table)
    with pytest.raises(ReadError, match=message):
        open_treebank("tiny", root).split("dev")


def test_text_transforms_come_before_reading(manifests: WriteManifest, root: Path) -> None:
    manifests(transforms='["strip-features", "strip-root"]')
    (root / "tiny_data" / "t.mrg").write_text("(TOP (S (N##lem=a b ( ## i)))")
    assert open_treebank("tiny", root).split("test")[0].tags == ("N",)


def test_graphs_that_are_no_trees_name_file_and_sentence(
    manifests: WriteManifest, root: Path
) -> None:
    manifests(
        format='"tiger-xml"',
        escapes=None,
        transforms="[]",
        **{"splits.test": '{ files = ["t.xml"], sentences = 1 }'},
    )
    (root / "tiny_data" / "t.xml").write_text(
        '<corpus><s id="s5"><graph><t id="1" word="a" pos="N"/><t id="2" word="b" pos="N"/>'
        '<nt id="3" cat="S"><edge idref="1"/></nt></graph></s></corpus>'
    )
    with pytest.raises(ReadError, match=r"t\.xml: sentence s5: token 2 \('b'\) is attached now"):
        open_treebank("tiny", root).split("test")


def test_fingerprint_follows_content_and_what_changes_trees(
    manifests: WriteManifest, root: Path
) -> None:
    manifests()
    first = open_treebank("tiny", root).fingerprint
    assert re.fullmatch("[0-9a-f]{64}", first)
    assert open_treebank("tiny", root).fingerprint == first
    manifests(title='"New"', prm='"COLLINS"', obtain='"Elsewhere."')
    (root / "tiny_data").rename(root / "moved")
    manifests("renamed", path='"moved"', shared='"allowed"')
    assert open_treebank("renamed", root).fingerprint == first
    changed = set()
    for key, value in {
        "escapes": '"brackets"',
        "transforms": '["strip-root", "drop-traces"]',
        "encoding": '"latin-1"',
        "splits.test": '{ files = ["a_2.mrg"], sentences = 1 }',
    }.items():
        manifests("renamed", path='"moved"', shared='"allowed"', **{key: value})
        changed.add(open_treebank("renamed", root).fingerprint)
    manifests("renamed", path='"moved"')
    with (root / "moved" / "d_09.mrg").open("a") as file:
        file.write("\n")
    changed.add(open_treebank("renamed", root).fingerprint)
    assert len(changed - {first}) == 5


def fake_generate(
    grammar: str, sizes: dict[str, int], seed: int, relation: str = "root"
) -> dict[str, list[Parse]]:
    def parse(word: str) -> Parse:
        tree = Tree.build([word], ["N"], [(0, 1, "TOP"), (0, 1, "S")])
        return Parse.of(tree, DependencyTree.build([word], ["N"], [0], [relation]))

    return {
        name: [parse(f"{grammar}{name}{seed}-{i}") for i in range(size)]
        for name, size in sizes.items()
    }


def test_mini_treebanks_are_generated(
    manifests: WriteManifest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TREEBANKS", raising=False)
    monkeypatch.setattr("spmrl_bench.treebanks.treebank.generate", fake_generate)
    manifests(**MINI)
    treebank = open_treebank("tiny")
    assert len(treebank.split("train")) == 5
    assert treebank.split("dev")[4] == Tree.build(["germandev1-4"], ["N"], [(0, 1, "S")])
    first = treebank.fingerprint
    assert open_treebank("tiny").fingerprint == first
    assert str(treebank.examples("dev", ["dependencies"])[4]) == "germandev1-4/root/0"
    assert treebank.layers == treebank.examples("dev")[0].layers
    other = partial(fake_generate, relation="dep")
    monkeypatch.setattr("spmrl_bench.treebanks.treebank.generate", other)
    monkeypatch.setenv("SPMRL_BENCH_CACHE", "0")
    changed = open_treebank("tiny")
    assert changed.fingerprint == first
    assert changed.fingerprint_of("dependencies") != treebank.fingerprint_of("dependencies")
    manifests(**{**MINI, "seed": "2"})
    assert open_treebank("tiny").fingerprint != first


REAL = [
    ("english-wsj-sample", "wsj_sample_en", {"train": (3396, 81793), "dev": (273, 6327),
                                             "test": (245, 5964)}, 26, 45),
    ("french-sequoia", "sequoia_fr", {"train": (2231, 48086), "dev": (412, 9488),
                                      "test": (456, 9464)}, 12, 29),
    ("german-squoia", "squoia_de", {"train": (1894, 30657), "dev": (422, 7209),
                                    "test": (508, 8991)}, 24, 53),
]  # fmt: skip


@pytest.mark.parametrize(("name", "folder", "sizes", "labels", "tags"), REAL)
def test_open_treebanks(
    name: str, folder: str, sizes: dict[str, tuple[int, int]], labels: int, tags: int
) -> None:
    treebank = open_treebank(name, shared_data(f"treebanks/{folder}").parent)
    trees = []
    for split, (sentences, tokens) in sizes.items():
        found = treebank.split(split)
        assert (len(found), sum(map(len, found))) == (sentences, tokens)
        assert treebank.content(split).left_out == {"without words": 0, "that break the format": 0}
        trees += found
    assert len({label for tree in trees for label in tree.labels}) == labels
    assert len({tag for tree in trees for tag in tree.tags}) == tags
    for tree in trees:
        assert tuple(tree.spans[0]) == (0, len(tree))
        assert Tree.build(tree.words, tree.tags, tree.constituents()) == tree
