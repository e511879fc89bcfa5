"""What a manifest can say beyond files and sizes: editions, checksums, layers, ranges, errors."""

from __future__ import annotations

import hashlib
import logging
from pathlib import Path

import pytest

from spmrl_bench.errors import ReadError, TreebankError
from spmrl_bench.treebanks.catalogue import load_manifest, manifest_names
from spmrl_bench.treebanks.treebank import open_treebank
from tests.treebanks.conftest import WriteManifest

EDITIONS = {
    "editions.gold": '{ tags = "gold", title = "Gold" }',
    "editions.small": '{ splits = { train = { files = ["a_2.mrg"], sentences = 1, tokens = 2 } } }',
}
TAGGED = '{ files = ["{tags}.mrg"], sentences = 1 }'


def test_an_edition_replaces_keys_and_is_a_treebank_of_its_own(
    manifests: WriteManifest, root: Path
) -> None:
    manifests(tags='"predicted"', **EDITIONS)
    assert manifest_names() == ["tiny", "tiny-gold", "tiny-small"]
    gold = load_manifest("tiny-gold")
    assert (gold.name, gold.title, gold.tags) == ("tiny-gold", "Gold", "gold")
    assert load_manifest("tiny").tags == "predicted"
    small = open_treebank("tiny-small", root)
    assert [tree.words for tree in small.split("train")] == [("d", "e")]
    assert small.split("dev") == open_treebank("tiny", root).split("dev")
    assert small.fingerprint != open_treebank("tiny", root).fingerprint


def test_gold_and_predicted_files(manifests: WriteManifest, root: Path) -> None:
    manifests(**{"splits.test": TAGGED, "tags": '"predicted"'}, **EDITIONS)
    (root / "tiny_data" / "gold.mrg").write_text("(S (G a))")
    (root / "tiny_data" / "pred.mrg").write_text("(S (P a))")
    assert open_treebank("tiny", root).split("test")[0].tags == ("P",)
    assert open_treebank("tiny-gold", root).split("test")[0].tags == ("G",)


def test_mistakes_of_an_edition_name_it(manifests: WriteManifest) -> None:
    path = manifests(**{"editions.odd": '{ track = "odd" }'})
    with pytest.raises(TreebankError) as caught:
        load_manifest("tiny-odd")
    assert str(caught.value).startswith(f"{path}, edition odd: track: input should be 'spmrl'")
    with pytest.raises(TreebankError, match=r"unknown treebank 'tiny-old'\. Did you mean tiny-odd"):
        load_manifest("tiny-old")
    manifests(editions="3")
    with pytest.raises(TreebankError, match=r"editions: must be tables, \[editions.NAME\]"):
        load_manifest("tiny")


def test_checksums_are_verified(manifests: WriteManifest, root: Path) -> None:
    folder = manifests().parent / "checksums"
    folder.mkdir()
    lines = [
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n"
        for path in sorted((root / "tiny_data").iterdir())
    ]
    (folder / "tiny.sha256").write_text("".join(lines))
    assert len(open_treebank("tiny", root).split("train")) == 3
    (root / "tiny_data" / "a_2.mrg").write_text("( (S (N d) (N x)))\n")
    with pytest.raises(TreebankError, match=r"SHA-256 differs\): a_2\.mrg in .*tiny_data\. Get"):
        open_treebank("tiny", root).split("train")
    assert len(open_treebank("tiny", root).split("dev")) == 3
    (folder / "tiny.sha256").write_text(lines[0] + "abc  x\n")
    with pytest.raises(TreebankError, match=r"tiny\.sha256:2: found 'abc  x', expected 64 hex"):
        open_treebank("tiny", root)


def test_the_first_folder_and_encoding_that_fit(manifests: WriteManifest, root: Path) -> None:
    manifests(path='"TINY | tiny_data"', encoding='"utf-8 | gb18030"')
    (root / "tiny_data" / "t.mrg").write_bytes("(S (N 中) (N 文))".encode("gb18030"))
    assert open_treebank("tiny", root).split("test")[0].words == ("中", "文")
    (root / "tiny_data" / "t.mrg").write_bytes("(S (N 中) (N 国))".encode())
    assert open_treebank("tiny", root).split("test")[0].words == ("中", "国")


def test_range_counts_before_anything_is_left_out(manifests: WriteManifest, root: Path) -> None:
    text = "(S (N a))\n(S (-NONE- *))\n(S (N b)\n(S (N c))\n(S (N d))\n"
    (root / "tiny_data" / "r.mrg").write_text(text)
    manifests(
        on_error='"skip"',
        shared='"allowed"',
        **{
            "splits.train": '{ files = ["r.mrg"], range = "2..4", sentences = 1, skipped = 1, '
            "dropped = 1 }",
            "splits.dev": '{ files = ["r.mrg"], range = "5..5", sentences = 1 }',
            "splits.test": '{ files = ["r.mrg"], range = "5..6", sentences = 1 }',
        },
    )
    bank = open_treebank("tiny", root)
    assert [tree.words for tree in bank.split("train")] == [("c",)]
    assert [tree.words for tree in bank.split("dev")] == [("d",)]
    with pytest.raises(TreebankError, match=r"range 5\.\.6 of r\.mrg ends beyond the last of 5"):
        bank.split("test")


def test_broken_sentences_are_left_out_counted_and_told(
    manifests: WriteManifest, root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (root / "tiny_data" / "t.mrg").write_text("(S (N a))\n(S (N x) b)\n(S (N c))\n")
    split = {"splits.test": '{ files = ["t.mrg"], sentences = 2, skipped = 1 }'}
    manifests(**split)
    with pytest.raises(ReadError, match=r"t\.mrg:2:10: sentence 2: found 'b' beside brackets"):
        open_treebank("tiny", root).split("test")
    manifests(on_error='"skip"', **split)
    for _ in range(2):  # read, and from the cache
        caplog.clear()
        bank = open_treebank("tiny", root)
        with caplog.at_level(logging.WARNING):
            assert [tree.words for tree in bank.split("test")] == [("a",), ("c",)]
        assert caplog.messages == ["tiny, split test: 1 sentence(s) that break the format left out"]
        assert "t.mrg:2:10: sentence 2: found the word 'b'" in bank.content("test").skipped[0]
    manifests(on_error='"skip"', **{"splits.test": '{ files = ["t.mrg"], sentences = 2 }'})
    with pytest.raises(TreebankError, match="expected 0 broken sentences, found 1"):
        open_treebank("tiny", root).split("test")


def test_one_of_several_published_sizes(manifests: WriteManifest, root: Path) -> None:
    manifests(**{"splits.train": '{ files = ["a_*.mrg"], sentences = [4, 3] }'})
    assert len(open_treebank("tiny", root).split("train")) == 3
    manifests(**{"splits.train": '{ files = ["a_*.mrg"], sentences = [4, 5] }'})
    with pytest.raises(TreebankError, match="expected 4 or 5 sentences, found 3"):
        open_treebank("tiny", root).split("train")
