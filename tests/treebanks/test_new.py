"""From an unknown folder to a manifest that holds for exactly its files."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from spmrl_bench.errors import TreebankError
from spmrl_bench.readers.conll import conll_lines
from spmrl_bench.treebanks.catalogue import load_manifest
from spmrl_bench.treebanks.check import validate
from spmrl_bench.treebanks.new import inspect_folder, write_new_treebank
from spmrl_bench.treebanks.treebank import open_treebank
from tests.conftest import shared_data
from tests.laboratory import make_trees

TREES = make_trees(30, seed=1)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's own folder, where what is written is found."""
    monkeypatch.setenv("SPMRL_BENCH_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Thirty trees in one file, and things to pass over."""
    folder = tmp_path / "my_Trees"
    folder.mkdir()
    (folder / "all.mrg").write_text("".join(f"( {tree})\n" for tree in TREES))
    (folder / "README").write_text("(S (N this) (V is) (N no) (N tree))\n")
    (folder / "notes.txt").write_text("Read me, too.\n")
    (folder / ".hidden.mrg").write_text("(S (N a))\n")
    return folder


def test_a_folder_becomes_a_treebank(folder: Path, home: Path) -> None:
    found = inspect_folder(folder, language="elvish")
    assert (found.name, found.language) == ("elvish-my-trees", "elvish")
    assert (found.source.form.name, found.source.paths) == ("brackets", ("all.mrg",))
    assert (found.source.options["encoding"], found.beside) == ("utf-8", None)
    assert found.others == ("README", "notes.txt")
    assert [one.sentences for one in found.statistics.values()] == [24, 3, 3]
    assert found.longest == max(map(len, TREES))
    beside = {home / "recipes" / "mine.toml": "x = 1\n"}
    assert {*beside} < {*write_new_treebank(found, home, beside)}
    bank = open_treebank("elvish-my-trees")
    trees = [tree for split in ("train", "dev", "test") for tree in bank.split(split)]
    assert trees == TREES
    assert validate(bank.manifest).sound
    with pytest.raises(TreebankError, match=r"there is a treebank 'elvish-my-trees' already"):
        write_new_treebank(found, home)
    again = inspect_folder(folder, language="elvish", name="second")
    with pytest.raises(TreebankError, match=r"mine\.toml: there already"):
        write_new_treebank(again, home, beside)
    assert not (home / "treebanks" / "second.toml").exists()


def test_a_name_that_is_taken_or_none_is_said_first(folder: Path) -> None:
    (folder / "all.mrg").write_text("nothing that can be read")
    with pytest.raises(TreebankError, match="there is a treebank 'german-squoia' already"):
        inspect_folder(folder, name="german-squoia")
    with pytest.raises(TreebankError, match="--name 'a b/2': expected a name"):
        inspect_folder(folder, name="a b/2")


def test_broken_sentences_are_all_listed_and_declared(folder: Path, home: Path) -> None:
    path = folder / "all.mrg"
    lines = path.read_text().splitlines()
    lines[3], lines[28] = "(S (N a)", "(S (N b) c)"
    path.write_text("\n".join(lines))
    found = inspect_folder(folder, language="elvish")
    assert len(found.errors) == 2
    write_new_treebank(found, home)
    manifest = load_manifest("elvish-my-trees")
    assert manifest.on_error == "skip"
    splits = (manifest.splits.train, manifest.splits.dev, manifest.splits.test)
    assert [split.skipped for split in splits] == [1, 0, 1]
    assert [split.sentences for split in splits] == [(23,), (3,), (2,)]
    assert validate(manifest).sound


def test_marks_at_the_beginning(folder: Path, home: Path) -> None:
    text = (folder / "all.mrg").read_text().replace("NN ", "NN ö")
    (folder / "all.mrg").write_bytes(text.encode("utf-16"))
    write_new_treebank(inspect_folder(folder), home)
    (first, *_) = open_treebank("my-trees").split("train")
    assert first.words[1].startswith("ö")


def test_what_is_missing_is_cut_from_the_end_of_train(folder: Path, home: Path) -> None:
    lines = (folder / "all.mrg").read_text().splitlines(keepends=True)
    (folder / "all.mrg").unlink()
    (folder / "x.train").write_text("".join(lines[:20]))
    (folder / "x.gold").write_text("".join(lines[20:]))
    write_new_treebank(inspect_folder(folder), home)
    bank = open_treebank("my-trees")
    assert [list(bank.split(name)) for name in ("train", "dev", "test")] == [
        TREES[:18], TREES[18:20], TREES[20:]
    ]  # fmt: skip
    (folder / "x.train").write_text(lines[0])
    with pytest.raises(TreebankError, match="found 1 sentences for train, too few to cut dev"):
        inspect_folder(folder, name="few")


@pytest.mark.parametrize("inner", ["wsj[old]", "a?b", "plain"])
def test_whatever_files_are_called_they_are_read(inner: str, tmp_path: Path, home: Path) -> None:
    folder = tmp_path / "bank"
    for split, trees in {"train": TREES[:20], "dev": TREES[20:25], "test": TREES[25:]}.items():
        (folder / inner / split).mkdir(parents=True)
        for number, tree in enumerate(trees):
            (folder / inner / split / f"{number:03}.mrg").write_text(f"( {tree})\n")
    found = inspect_folder(folder, language="elvish")
    assert [one.sentences for one in found.statistics.values()] == [20, 5, 5]
    write_new_treebank(found, home)
    assert validate(load_manifest("elvish-bank")).sound


def test_a_name_that_means_other_files_is_refused(folder: Path) -> None:
    (folder / "all.mrg").rename(folder / "a*.mrg")
    (folder / "ab.mrg").write_text("(S (N other))\n")
    with pytest.raises(TreebankError, match=r"a\*\.mrg: '\*', '\{' and '\|' mean other files"):
        inspect_folder(folder, given={"train": ["a*.mrg"]})


def test_a_split_without_a_sentence_is_refused(folder: Path) -> None:
    for split in ("train", "dev", "test"):
        shutil.copy(folder / "all.mrg", folder / f"{split}.mrg")
    (folder / "test.mrg").write_text("( (S (-NONE- *) (-NONE- *)))\n")
    with pytest.raises(TreebankError, match="no sentence is left for test"):
        inspect_folder(folder)


def test_dependencies_beside_the_trees_are_a_layer(tmp_path: Path, home: Path) -> None:
    folder = tmp_path / "both"
    for layer in ("ptb", "dep"):
        (folder / layer).mkdir(parents=True)
    for split, trees in {"train": TREES[:20], "dev": TREES[20:25], "test": TREES[25:]}.items():
        (folder / "ptb" / f"{split}.mrg").write_text("".join(f"( {tree})\n" for tree in trees))
        (folder / "dep" / f"{split}.conll").write_text(
            "".join(
                conll_lines(tree.words, tree.tags, map(str, range(len(tree))), ["x"] * len(tree))
                for tree in trees
            )
        )
    found = inspect_folder(folder, language="elvish")
    assert found.source.form.name == "brackets"
    write_new_treebank(found, home)
    bank = open_treebank("elvish-both")
    assert bank.layers == ("constituents", "dependencies")
    result = validate(bank.manifest)
    assert result.sound, result.problems
    assert result.aligned == sum(map(len, TREES))
    words = (folder / "dep" / "dev.conll").read_text()
    (folder / "dep" / "dev.conll").write_text(words.replace("1\t", "1\tother-", 1))
    other = inspect_folder(folder, language="elvish", name="other")
    assert "[dependencies]" not in other.manifest
    assert "not taken as a layer" in other.notes[0]
    (folder / "dep" / "dev.conll").unlink()
    assert inspect_folder(folder, name="third", format_name="brackets").beside is None


# Folder, what has to be said, format, and sentences of train, dev and test; documentation, which
# tells the splits of people, is left out.
EVERY = {"train": ["*"]}
REAL = [
    ("alpino_nl", {}, "alpino-xml", "960 120 120"),
    ("cess_es", {"encoding": "cp1252", "given": EVERY}, "tbf", "1829 228 228"),
    ("floresta_pt", {"encoding": "cp1252", "given": EVERY}, "visl", "1345 164 165"),
    ("icepahc_is", {"given": EVERY}, "psd", "5064 632 631"),
    ("idn_id", {"given": {"train": ["Indonesian_Treebank"]}}, "bracketed-words", "827 103 103"),
    ("keyaki_ja", {"given": EVERY}, "psd", "2873 358 358"),
    ("sequoia_fr", {}, "brackets", "2481 309 309"),
    ("sinica_zh", {}, "sinica", "8000 1000 1000"),
    ("squoia_de", {"given": EVERY}, "tiger-xml", "2260 282 282"),
    ("ud_basque_bdt", {"given": {"train": ["eu_bdt-ud-dev"]}}, "conll", "1619 179 1799"),
    ("ud_hungarian_szeged", {}, "conll", "910 441 449"),
    ("wsj_sample_dep_en", {"given": EVERY}, "dp", "3132 391 391"),
    (
        "wsj_sample_en",
        {"given": EVERY | {"dev": ["wsj_*9"], "test": ["wsj_*0"]}},
        "brackets",
        "3140 423 351",
    ),
]


QUICK = ("idn_id", "ud_hungarian_szeged", "wsj_sample_en")


@pytest.mark.parametrize(
    ("name", "options", "form", "sizes"),
    [
        pytest.param(*real, marks=[pytest.mark.campaign] * (real[0] not in QUICK), id=real[0])
        for real in REAL
    ],
)
def test_real_folders(
    tmp_path: Path, name: str, options: dict[str, object], form: str, sizes: str
) -> None:
    folder = tmp_path / "folder"
    ignored = shutil.ignore_patterns("README*", "LICENSE*")
    shutil.copytree(shared_data(f"treebanks/{name}"), folder, ignore=ignored)
    found = inspect_folder(folder, language="some", **options)  # type: ignore[arg-type]
    assert found.source.form.name == form
    assert " ".join(str(one.sentences) for one in found.statistics.values()) == sizes
    assert all(one.several_roots == 0 for one in found.statistics.values())
