"""Tags from files of their own."""

from __future__ import annotations

from pathlib import Path

import pytest

from spmrl_bench.errors import ReadError, TreebankError
from spmrl_bench.treebanks.treebank import open_treebank
from tests.treebanks.conftest import WriteManifest

TAGGED = {
    "tags": '"predicted"',
    "splits.train": '{ files = ["a_*.mrg"], sentences = 3, tag_files = ["train*.tags"] }',
}


def write_tags(root: Path, **files: str) -> None:
    for name, text in files.items():
        (root / "tiny_data" / f"{name}.tags").write_text(text, encoding="utf-8")


def test_tags_of_files_replace_those_of_the_trees(manifests: WriteManifest, root: Path) -> None:
    manifests(**TAGGED)
    plain = manifests("plain")
    assert plain.exists()
    write_tags(root, train1="X\nY Z\n", train2="V  W")
    tagged, other = open_treebank("tiny", root), open_treebank("plain", root)
    assert [tree.tags for tree in tagged.split("train")] == [("X",), ("Y", "Z"), ("V", "W")]
    for one, two in zip(tagged.split("train"), other.split("train"), strict=True):
        assert (one.words, list(one.constituents())) == (two.words, list(two.constituents()))
    assert [tree.tags for tree in tagged.split("dev")] == [("N",)] * 3
    assert tagged.fingerprint != other.fingerprint


def test_other_tags_are_another_treebank(manifests: WriteManifest, root: Path) -> None:
    manifests(**TAGGED)
    write_tags(root, train1="X\nY Z\nV W")
    before = open_treebank("tiny", root).fingerprint
    write_tags(root, train1="X\nY Z\nV X")
    again = open_treebank("tiny", root)
    assert again.fingerprint != before
    assert again.split("train")[2].tags == ("V", "X")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("X\nY\nV W", r"train1\.tags:2.*found 1 tags, expected 2: .* begins: b c"),
        ("X\nY Z\nV W U\n", r"train1\.tags:3.*found 3 tags, expected 2"),
        ("X\nY Z\n", r"train1\.tags:2.*found 2 lines of tags in 1 file\(s\), expected 3"),
        ("", r"found 0 lines of tags in 1 file\(s\), expected 3"),
    ],
)
def test_tags_must_fit(manifests: WriteManifest, root: Path, text: str, message: str) -> None:
    manifests(**TAGGED)
    write_tags(root, train1=text)
    with pytest.raises(ReadError, match=message):
        open_treebank("tiny", root).split("train")


def test_absent_files_of_tags_are_named(manifests: WriteManifest, root: Path) -> None:
    manifests(**TAGGED)
    with pytest.raises(TreebankError, match=r"train\*\.tags"):
        open_treebank("tiny", root)
