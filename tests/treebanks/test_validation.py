"""Validation lists all that is wrong, and says so only of what is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from spmrl_bench.treebanks.catalogue import load_manifest
from spmrl_bench.treebanks.check import Validation, validate
from spmrl_bench.treebanks.manifest import MiniManifest
from tests.conftest import shared_data
from tests.treebanks.conftest import WriteManifest
from tests.treebanks.test_manifest import MINI

# Sentences and tokens as the READMEs of the shared data give them for the whole treebank.
STATED = {
    "chinese-sinica": (10_000, 91_634),
    "dutch-alpino": (1_200, 23_629),
    "dutch-alpino-sample": (3, 76),
    "english-gum": (2_427 + 1_575 + 1_464, 54_998 + 28_119 + 28_397),
    "english-wsj-sample": (3_914, 94_084),
    "french-sequoia": (3_099, 67_038),
    "french-ud-sequoia": (3_099, 70_545),
    "german-squoia": (2_824, 46_857),
    "hungarian-ud-szeged": (1_800, 42_032),
    "icelandic-icepahc": (6_329 - 2, 78_439),  # two trees have no word
    "indonesian-idn": (1_033, 27_115),  # three lines hold two trees; one 0 is a word
    "japanese-keyaki": (3_589, 64_220),
    "spanish-cess": (2_285, 55_360),
}


def check(name: str, root: Path) -> Validation:
    return validate(load_manifest(name), root)


def test_a_sound_treebank(manifests: WriteManifest, root: Path) -> None:
    manifests()
    result = check("tiny", root)
    assert result.sound
    assert {name: survey.sentences for name, survey in result.surveys.items()} == {
        "train": 3, "dev": 3, "test": 1
    }  # fmt: skip
    assert result.left_out["train"] == (0, 1)


def test_an_absent_one_and_a_generated_one(manifests: WriteManifest, tmp_path: Path) -> None:
    manifests()
    result = check("tiny", tmp_path / "nowhere")
    assert not result.present
    assert not result.sound
    manifests("young", **MINI)
    manifest = load_manifest("young")
    assert isinstance(manifest, MiniManifest)
    assert validate(manifest).sound


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
    no_tag = "found the word 'c' without a tag, expected '(TAG word)', '(' or ')'"
    assert [problem.replace(str(folder), "") for problem in result.problems] == [
        # The first tree is still open there.
        f"/a_1.mrg:2:10: sentence 1: {no_tag}; the tree begins at line 1",
        f"/a_1.mrg:2:10: sentence 2: {no_tag}",
        "train: expected 3 sentences, found 2",
        "train: expected 5 tokens, found 3",
        "dev: d_09.mrg is not the file that the manifest was written for (SHA-256)",
        "test: 1 trees have no single constituent over all words: add a root transform to the "
        "manifest",
    ]


def test_a_file_that_cannot_be_decoded(manifests: WriteManifest, root: Path) -> None:
    manifests()
    (root / "tiny_data" / "t.mrg").write_bytes(b"(S (N \xff))")
    result = check("tiny", root)
    (problem,) = result.problems
    assert "t.mrg:1: byte 0xff is not utf-8 text" in problem
    assert set(result.surveys) == {"train", "dev"}


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


@pytest.mark.parametrize("name", STATED)
def test_real_treebanks_have_the_sizes_that_their_descriptions_state(name: str) -> None:
    result = check(name, shared_data("treebanks"))
    assert result.sound, result.problems
    surveys = result.surveys.values()
    found = sum(survey.sentences for survey in surveys), sum(survey.tokens for survey in surveys)
    assert found == STATED[name]


def test_the_two_layers_of_the_wsj_sample_are_aligned() -> None:
    result = check("english-wsj-sample", shared_data("treebanks"))
    assert result.aligned == 94_084
