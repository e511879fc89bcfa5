"""From an unknown folder to a manifest that holds for exactly its files."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from spmrl_bench.errors import SpmrlError, TreebankError
from spmrl_bench.experiments.recipe import load_recipe
from spmrl_bench.readers.brackets import parse_brackets
from spmrl_bench.readers.formats import FORMATS
from spmrl_bench.readers.text import read_text
from spmrl_bench.treebanks.catalogue import load_manifest
from spmrl_bench.treebanks.check import validate
from spmrl_bench.treebanks.guessing import (
    guess_files,
    guess_transforms,
)
from spmrl_bench.treebanks.manifest import Manifest
from spmrl_bench.treebanks.new import inspect_folder, write_new_treebank
from spmrl_bench.treebanks.treebank import open_treebank
from tests.conftest import shared_data
from tests.laboratory import make_trees


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's own folder, where what is written is found."""
    monkeypatch.setenv("SPMRL_BENCH_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Thirty trees in one file, another tree that repeats none, and things to pass over."""
    folder = tmp_path / "my_Trees"
    folder.mkdir()
    (folder / "all.mrg").write_text("".join(f"( {tree})\n" for tree in make_trees(30, seed=1)))
    (folder / "README").write_text("(S (N this) (V is) (N no) (N tree))\n")
    (folder / "notes.txt").write_text("Read me, too.\n")
    (folder / ".hidden.mrg").write_text("(S (N a))\n")
    return folder


def test_a_folder_becomes_a_treebank(folder: Path, home: Path) -> None:
    found = inspect_folder(folder, language="elvish")
    assert (found.name, found.language) == ("elvish-my-trees", "elvish")
    assert (found.files.form.name, found.files.encoding) == ("brackets", "utf-8")
    assert found.files.paths == ("all.mrg",)
    assert found.files.others == ("README", "notes.txt")
    assert [survey.sentences for survey in found.surveys.values()] == [24, 3, 3]
    _, recipe = write_new_treebank(found, home)
    assert recipe == "elvish"
    bank = open_treebank("elvish-my-trees")
    trees = [tree for split in ("train", "dev", "test") for tree in bank.split(split)]
    assert trees == make_trees(30, seed=1)
    assert validate(bank.manifest).sound
    assert load_recipe("elvish").language.treebanks == ["elvish-my-trees"]
    with pytest.raises(TreebankError, match=r"there is a treebank 'elvish-my-trees' already"):
        write_new_treebank(found, home)
    again = inspect_folder(folder, language="elvish", name="second")
    assert write_new_treebank(again, home)[1] == "second"
    assert load_recipe("elvish").language.treebanks == ["elvish-my-trees"], "not replaced"
    third = inspect_folder(folder, language="german", name="english")
    with pytest.raises(TreebankError, match="there is a recipe 'english' already"):
        write_new_treebank(third, home)


def test_broken_sentences_are_all_listed_and_declared(folder: Path, home: Path) -> None:
    path = folder / "all.mrg"
    lines = path.read_text().splitlines()
    lines[3], lines[28] = "(S (N a)", "(S (N b) c)"
    path.write_text("\n".join(lines))
    found = inspect_folder(folder, language="elvish")
    assert len(found.errors) == 2
    write_new_treebank(found, home)
    manifest = load_manifest("elvish-my-trees")
    assert isinstance(manifest, Manifest)
    assert manifest.on_error == "skip"
    splits = (manifest.splits.train, manifest.splits.dev, manifest.splits.test)
    assert [split.skipped for split in splits] == [1, 0, 1]
    assert [split.sentences for split in splits] == [(23,), (3,), (2,)]
    assert validate(manifest).sound


def test_a_file_that_repeats_another_is_passed_over(folder: Path) -> None:
    numbered = [f"( {tree})\n" for tree in make_trees(30, seed=1)]
    (folder / "again.mrg").write_text("\n".join(numbered))
    found = inspect_folder(folder)
    assert {split.files for split in found.proposal.splits.values()} == {("again.mrg",)}
    assert found.proposal.unused == ("all.mrg",)
    assert sum(survey.sentences for survey in found.surveys.values()) == 30


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("(S (N größe))\n", "utf-8"),
        ("(S (N größe) (N ça))\n", "cp1252"),
        ("(S (N 中文) (N 树库))\n", "gb18030"),
        ("(S (N plain))\n", "utf-8"),
    ],
)
def test_encodings(tmp_path: Path, text: str, encoding: str) -> None:
    (tmp_path / "t.mrg").write_bytes((text * 9).encode(encoding))
    assert guess_files(tmp_path).encoding == encoding


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32"])
def test_marks_at_the_beginning(tmp_path: Path, home: Path, encoding: str) -> None:
    folder = tmp_path / "marked"
    folder.mkdir()
    trees = make_trees(30, seed=1)
    text = "".join(f"( {tree})\n" for tree in trees).replace("NN ", "NN ö")
    (folder / "t.mrg").write_bytes(text.encode(encoding))
    found = inspect_folder(folder, language="elvish")
    assert found.files.encoding == encoding.removesuffix("-sig")
    write_new_treebank(found, home)
    (first, *_) = open_treebank(found.name).split("train")
    assert first.words[1].startswith("ö")


def test_mixed_encodings_are_refused(tmp_path: Path) -> None:
    lines = [f"(S (N größe{n}))\n" for n in range(30)]
    (tmp_path / "a.mrg").write_bytes("".join(lines).encode())
    (tmp_path / "b.mrg").write_bytes(b"(S (N a))\n" + lines[0].encode("latin-1"))
    with pytest.raises(TreebankError, match=r"a\.mrg:1 there is UTF-8, .* 29 .*in .*b\.mrg:2 "):
        guess_files(tmp_path)
    assert guess_files(tmp_path, encoding="latin-1").encoding == "latin-1"
    within = "".join(lines[:20]).encode() + "".join(lines[20:]).encode("latin-1")
    for name in ("a.mrg", "b.mrg"):
        (tmp_path / name).write_bytes(within)
    with pytest.raises(TreebankError, match=r"in .*a\.mrg:1 there is UTF-8, .*in .*a\.mrg:21 "):
        guess_files(tmp_path)
    line = "(S (N Straße) (V l".encode() + "äuft))\n".encode("latin-1")
    for name in ("a.mrg", "b.mrg"):
        (tmp_path / name).write_bytes(b"(S (N a))\n" + line)
    with pytest.raises(TreebankError, match=r"in .*a\.mrg:2 there is UTF-8, .*in .*a\.mrg:2 "):
        guess_files(tmp_path)


@pytest.mark.parametrize("name", ["utf8x", "klingon", "idna", "rot13", ""])
def test_encodings_that_there_are_not(tmp_path: Path, name: str) -> None:
    with pytest.raises(SpmrlError, match=f"unknown encoding '{name}'"):
        guess_files(tmp_path, encoding=name)
    with pytest.raises(SpmrlError, match=f"unknown encoding '{name}'"):
        read_text(tmp_path / "a.mrg", name)
    with pytest.raises(SpmrlError, match="Did you mean utf-8"):
        guess_files(tmp_path, encoding="utf-8x")


def test_no_treebank(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("Once upon a time\n")
    (tmp_path / "b.gz").write_bytes(b"\x1f\x8b\0\0")
    with pytest.raises(TreebankError, match="found no file of a known format among 2 files"):
        guess_files(tmp_path)
    with pytest.raises(TreebankError, match="found no file of the format conll among 2"):
        guess_files(tmp_path, format_name="conll")


def test_transforms_follow_from_the_trees() -> None:
    brackets = FORMATS.get("brackets")
    plain = parse_brackets("( (S (NP (N a)) (VP (V b))))")
    assert guess_transforms(brackets, [plain]) == ["strip-root"]
    rich = parse_brackets("( (S (NP-SBJ (-NONE- *)) (VP (V b))))")
    assert guess_transforms(brackets, [rich]) == ["drop-traces", "strip-functions", "strip-root"]


def test_long_sentences_get_positions(tmp_path: Path) -> None:
    words = " ".join(f"(N w{i})" for i in range(400))
    (tmp_path / "t.mrg").write_text(f"(S {words})\n" * 2 + "(S (N a) (N b))\n")
    assert "max_positions = 402" in inspect_folder(tmp_path, language="x").recipe


# Folder, format, encoding and number of sentences; the README is left out as a newcomer's is not
# there, and so are files that would tell the splits.
REAL = [
    ("alpino_nl", "alpino-xml", None, 1_200),
    ("cess_es", "tbf", "cp1252", 2_285),
    ("floresta_pt", "visl", "cp1252", 1_674),
    ("icepahc_is", "psd", "utf-8", 6_327),
    ("idn_id", "bracketed-words", "utf-8", 1_033),
    ("keyaki_ja", "psd", "utf-8", 3_589),
    ("sequoia_fr", "brackets", "utf-8", 3_099),
    ("sinica_zh", "sinica", "utf-8", 10_000),
    ("squoia_de", "tiger-xml", None, 2_824),
    ("ud_hungarian_szeged", "conll", "utf-8", 1_800),
    ("wsj_sample_dep_en", "dp", "utf-8", 3_914),
    ("wsj_sample_en", "brackets", "utf-8", 3_914),
]


@pytest.mark.parametrize(("name", "form", "encoding", "sentences"), REAL)
def test_real_folders(
    tmp_path: Path, name: str, form: str, encoding: str | None, sentences: int
) -> None:
    folder = tmp_path / "folder"
    ignored = shutil.ignore_patterns("README*", "LICENSE*")
    shutil.copytree(shared_data(f"treebanks/{name}"), folder, ignore=ignored)
    found = inspect_folder(folder, language="some")
    assert (found.files.form.name, found.files.encoding) == (form, encoding)
    assert sum(survey.sentences for survey in found.surveys.values()) == sentences
    assert all(survey.several_roots == 0 for survey in found.surveys.values())
