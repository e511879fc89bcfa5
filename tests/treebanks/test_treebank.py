"""Treebanks by name: what is there, what is read, what is refused."""

from __future__ import annotations

import logging
import re
from pathlib import Path

import pytest

from spmrl_bench.errors import ReadError, TreebankError
from spmrl_bench.treebanks.cache import digest
from spmrl_bench.treebanks.catalogue import treebank_statuses
from spmrl_bench.treebanks.treebank import open_treebank
from spmrl_bench.trees import Tree
from tests.treebanks.conftest import WriteManifest


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
    assert [treebank.data(name).dropped for name in ("train", "dev", "test")] == [1, 0, 0]
    assert caplog.messages == ["tiny, split train: 1 sentence(s) without words left out"]
    with pytest.raises(TreebankError, match=r"unknown split 'tests'\. Did you mean test\?"):
        treebank.split("tests")


def test_root_from_the_environment_may_be_relative(
    manifests: WriteManifest, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifests()
    monkeypatch.chdir(root)
    monkeypatch.setenv("TREEBANKS", "../treebanks")
    treebank = open_treebank("tiny")
    monkeypatch.chdir("/")
    assert len(treebank.split("test")) == 1


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
    assert (status.manifest.name, status.where) == ("tiny", str(root / "tiny_data"))


def test_another_size_than_declared(manifests: WriteManifest, root: Path) -> None:
    for sizes, message in (
        ("sentences = 4", "expected 4 sentences, found 3 (1 without words left out). The files"),
        ("sentences = [4, 5]", "expected 4 or 5 sentences, found 3"),
        ("sentences = 4, tokens = 9", "expected 4 sentences, found 3; expected 9 tokens, found 5"),
    ):
        manifests(**{"splits.train": f'{{ files = ["a_*.mrg"], {sizes} }}'})
        with pytest.raises(TreebankError) as caught:
            open_treebank("tiny", root).split("train")
        assert f"tiny, split train in {root}/tiny_data: {message}" in str(caught.value)
    manifests(**{"splits.train": '{ files = ["a_*.mrg"], sentences = [4, 3] }'})
    assert len(open_treebank("tiny", root).split("train")) == 3


def test_bad_files(manifests: WriteManifest, root: Path) -> None:
    manifests()
    for text, message in (
        ("\n \n", r"t\.mrg: found no sentence in the file"),
        ("", r"t\.mrg: found no sentence in the file"),
        ("(S (N i)", r"t\.mrg:1:1: sentence 1: "),
    ):
        (root / "tiny_data" / "t.mrg").write_text(text)
        with pytest.raises(ReadError, match=message):
            open_treebank("tiny", root).split("test")


def test_rows_of_a_table_choose_sentences(manifests: WriteManifest, root: Path) -> None:
    rows = '{ table = "ids.tsv", column = "split", equals = "x" }'
    split = f'{{ files = ["a_2.mrg", "d_08.mrg", "t.mrg"], sentences = 2, rows = {rows} }}'
    manifests(**{f"splits.{name}": split for name in ("train", "dev", "test")})
    table = root / "tiny_data" / "ids.tsv"
    table.write_text('id\tsplit\n"1\tx\n2\ty\n3\tx\n')
    bank = open_treebank("tiny", root)
    assert [tree.words for tree in bank.split("dev")] == [("d", "e"), ("i", "(")]
    assert [(place.path.name, place.name) for place in bank.places("dev")] == [
        ("a_2.mrg", "1"), ("t.mrg", "1")
    ]  # fmt: skip
    for text, message in (
        ("id\tset\n1\tx\n", r"ids\.tsv:1: found the columns id, set, expected 'split'"),
        ("", r"ids\.tsv:1: found the columns none, expected 'split'"),
        ("split\nx\nx\n", r"ids\.tsv: found 2 lines below the first, expected 3"),
    ):
        table.write_text(text)
        with pytest.raises(ReadError, match=message):
            open_treebank("tiny", root).split("dev")


def test_the_first_folder_and_encoding_that_fit(manifests: WriteManifest, root: Path) -> None:
    manifests(path='"TINY | tiny_data"', encoding='"utf-8 | gb18030"')
    for text, encoding in (("(S (N 中) (N 文))", "gb18030"), ("(S (N 中) (N 国))", "utf-8")):
        (root / "tiny_data" / "t.mrg").write_bytes(text.encode(encoding))
        assert str(open_treebank("tiny", root).split("test")[0]) == text


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
    assert [place.name for place in bank.places("train")] == ["4"]
    with pytest.raises(TreebankError, match=r"range 5\.\.6 of r\.mrg ends beyond the last of 5"):
        bank.split("test")


def test_broken_sentences_are_left_out_counted_and_told(
    manifests: WriteManifest, root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (root / "tiny_data" / "t.mrg").write_text("(S (N a))\n(S (N x) b)\n(S (N c))\n")
    split = {"splits.test": '{ files = ["t.mrg"], sentences = 2, skipped = 1 }'}
    manifests(**split)
    with pytest.raises(ReadError, match=r"t\.mrg:2:10: sentence 2: "):
        open_treebank("tiny", root).split("test")
    manifests(on_error='"skip"', **split)
    for _ in range(2):  # read, and from the cache
        caplog.clear()
        bank = open_treebank("tiny", root)
        with caplog.at_level(logging.WARNING):
            assert [tree.words for tree in bank.split("test")] == [("a",), ("c",)]
        assert caplog.messages == ["tiny, split test: 1 sentence(s) that break the format left out"]
        assert "t.mrg:2:10: sentence 2: " in bank.data("test").skipped[0]
    manifests(on_error='"skip"', **{"splits.test": '{ files = ["t.mrg"], sentences = 2 }'})
    with pytest.raises(TreebankError, match="expected 0 broken sentences, found 1"):
        open_treebank("tiny", root).split("test")


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


def test_mini_treebanks_come_with_the_program(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever lies under the directory of treebanks, or none is named."""
    (root / "mini" / "german").mkdir(parents=True)
    for directory in (None, str(root)):
        if directory is None:
            monkeypatch.delenv("TREEBANKS", raising=False)
        else:
            monkeypatch.setenv("TREEBANKS", directory)
        bank = open_treebank("german-mini")
        assert [len(bank.examples(split)) for split in ("train", "dev", "test")] == [2000, 300, 300]
        assert bank.layers == bank.examples("dev")[0].layers == ("constituents", "dependencies")


def test_the_fingerprint_of_a_mini_treebank_is_that_of_its_sentences(
    manifests: WriteManifest, root: Path
) -> None:
    layer = '{ format = "dp", train = ["a.dp"], dev = ["a.dp"], test = ["a.dp"] }'
    split = '{ files = ["a_2.mrg"], sentences = 1 }'
    splits = {f"splits.{name}": split for name in ("train", "dev", "test")}
    found = []
    for heads in (("2", "0"), ("0", "1")):
        manifests(track='"mini"', dependencies=layer, shared='"allowed"', **splits)
        (root / "tiny_data/a.dp").write_text(f"d\tN\t{heads[0]}\ne\tN\t{heads[1]}\n")
        bank = open_treebank("tiny", root)
        found.append((bank.fingerprint, bank.fingerprint_of("dependencies")))
        sentences = dict.fromkeys(("train", "dev", "test"), digest(["(S (N d) (N e))"]))
        head = {"format": "mini", "transforms": ["drop-traces", "strip-root"], "version": 1}
        assert bank.fingerprint == digest(head | sentences)
    assert found[0][0] == found[1][0]
    assert found[0][1] != found[1][1]
