"""What a manifest may say of its splits, and sentences that two of them have."""

from __future__ import annotations

from pathlib import Path

import pytest

from spmrl_bench.errors import SpmrlError, TreebankError
from spmrl_bench.treebanks.catalogue import read_manifest
from spmrl_bench.treebanks.manifest import FileManifest
from spmrl_bench.treebanks.overlap import same_places
from spmrl_bench.treebanks.split_files import split_files
from spmrl_bench.treebanks.treebank import open_treebank
from spmrl_bench.treebanks.validation import validate
from tests.laboratory import make_trees

HEAD = """\
name = "divided"
title = "Divided"
language = "elvish"
track = "open"
format = "brackets"
escapes = "ptb"
path = "bank"
tags = "gold"
licence = "MIT"
citation = "none"
source = "none"
obtain = "Ask the elves."
prm = "spmrl"
transforms = ["strip-root"]
"""
TREES = make_trees(60, seed=3)


@pytest.fixture
def bank(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Six files of ten different trees each, in a directory of treebanks."""
    monkeypatch.setenv("TREEBANKS", str(tmp_path))
    monkeypatch.setenv("SPMRL_BENCH_HOME", str(tmp_path / "home"))
    folder = tmp_path / "bank"
    folder.mkdir()
    assert len({tree.words for tree in TREES}) == len(TREES)
    for number in range(6):
        lines = [f"( {tree})\n" for tree in TREES[10 * number : 10 * number + 10]]
        (folder / f"doc{number}.mrg").write_text("".join(lines))
    return folder


def manifest_of(bank: Path, *splits: str, more: str = "") -> FileManifest:
    path = bank.parent / "home" / "treebanks" / "divided.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    tables = zip(("train", "dev", "test"), splits, strict=True)
    path.write_text(HEAD + more + "".join(f"[splits.{name}]\n{text}\n" for name, text in tables))
    found = read_manifest(path)
    assert isinstance(found, FileManifest)
    return found


def names(manifest: FileManifest, bank: Path) -> list[list[str]]:
    splits = (manifest.splits.train, manifest.splits.dev, manifest.splits.test)
    return [[path.stem[3:] for path in split_files(manifest, bank, each).paths] for each in splits]


def test_a_list_of_documents_and_everything_else(bank: Path) -> None:
    (bank / "dev.ids").write_text("# two of them\ndoc1\n\ndoc4.mrg\n")
    (bank / "test.ids").write_text("doc[5-9]\n")
    everything = 'files = ["*.mrg"]\n'
    found = manifest_of(
        bank,
        f"{everything}rest = true",
        f'{everything}ids = "dev.ids"',
        f'{everything}ids = "test.ids"',
    )
    assert names(found, bank) == [["0", "2", "3"], ["1", "4"], ["5"]]
    result = validate(found)
    assert result.sound, result.problems
    assert [survey.sentences for survey in result.surveys.values()] == [30, 20, 10]
    assert list(open_treebank("divided").split("dev")) == [*TREES[10:20], *TREES[40:50]]
    (bank / "dev.ids").write_text("doc1\nnowhere\n")
    with pytest.raises(TreebankError, match=r"nowhere of dev\.ids"):
        open_treebank("divided")
    (bank / "dev.ids").unlink()
    with pytest.raises(TreebankError, match=r"dev\.ids"):
        open_treebank("divided")


def test_ranges_without_an_end_and_numbers_that_nobody_declared(bank: Path) -> None:
    every = 'files = ["*.mrg"]\n'
    found = manifest_of(
        bank, f'{every}range = "..40"', f'{every}range = "41..50"', f'{every}range = "51.."'
    )
    result = validate(found)
    assert result.sound, result.problems
    assert list(open_treebank("divided").split("test")) == TREES[50:]
    beyond = manifest_of(
        bank, f'{every}range = "..40"', f'{every}range = "41..50"', f'{every}range = "61.."'
    )
    assert any("begins beyond the last of 60" in each for each in validate(beyond).problems)
    with pytest.raises(SpmrlError, match="expected two numbers from 1 in rising order"):
        manifest_of(bank, f'{every}range = ".."', every, every)


def test_only_one_split_has_the_rest(bank: Path) -> None:
    rest = 'files = ["*.mrg"]\nrest = true'
    with pytest.raises(SpmrlError, match="rest is true in split train too"):
        manifest_of(bank, rest, 'files = ["doc1.mrg"]', rest)


EVERY = 'files = ["*.mrg"]\n'
OVERLAPS = {
    "the same file": (
        'files = ["doc0.mrg", "doc1.mrg", "doc2.mrg"]',
        'files = ["doc2.mrg"]',
        'files = ["doc3.mrg"]',
        "train and dev both have doc2.mrg",
    ),
    "ranges that overlap": (
        EVERY + 'range = "1..41"',
        EVERY + 'range = "41..50"',
        EVERY + 'range = "51.."',
        "train and dev both have sentences 41 to 41 of doc0.mrg and 5 other files",
    ),
    "a range without an end": (
        EVERY + 'range = "1..40"',
        EVERY + 'range = "41.."',
        EVERY + 'range = "51.."',
        "dev and test both have sentences 51 to the last",
    ),
    "all, and a range of it": (
        EVERY,
        'files = ["doc5.mrg"]\nrange = "1..5"',
        'files = ["doc5.mrg"]\nrange = "6..10"',
        "train has all of doc5.mrg, of which dev has a range",
    ),
}


@pytest.mark.parametrize("case", OVERLAPS)
def test_a_sentence_of_two_splits_is_a_mistake(case: str, bank: Path) -> None:
    *splits, problem = OVERLAPS[case]
    found = manifest_of(bank, *splits)
    assert problem in "\n".join(same_places(found, bank))
    assert any(problem in each for each in validate(found).problems)
    with pytest.raises(TreebankError, match="treebank divided: "):
        open_treebank("divided")
    allowed = manifest_of(bank, *splits, more='shared = "allowed"\n')
    assert validate(allowed).sound
    assert open_treebank("divided")


def test_a_dev_set_that_stands_in_train_is_a_mistake(bank: Path) -> None:
    (bank / "copy.mrg").write_text((bank / "doc2.mrg").read_text())
    files = [f'files = ["doc{n}.mrg"]' for n in (0, 1, 3, 4)]
    train = 'files = ["doc0.mrg", "doc1.mrg", "doc2.mrg"]'
    found = manifest_of(bank, train, 'files = ["copy.mrg"]', files[2])
    (problem,) = validate(found).problems
    assert "of the 10 sentences of dev are in train too, such as dev" in problem
