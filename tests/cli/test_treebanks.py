"""The commands about treebanks: what they print, what they write, when they fail."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from spmrl_bench.experiments.plan import make_runs
from spmrl_bench.experiments.recipe import load_recipe
from spmrl_bench.readers.conll import conll_lines
from tests.builders import cli, refused, works
from tests.laboratory import SIZES, TRAIN, Laboratory, make_trees

CHECK, ADD = ("treebanks", "check"), ("treebanks", "add")
HOME = Path("home")
OWN = (*ADD, "bank", "--language", "elvish")
WRITTEN = (*OWN, "--into", HOME, "--yes")


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a treebank, and a home of the user's own."""
    monkeypatch.setenv("SPMRL_BENCH_HOME", str(tmp_path / HOME))
    monkeypatch.setenv("TREEBANKS", str(tmp_path))
    folder = tmp_path / "bank"
    folder.mkdir()
    for seed, (split, size) in enumerate(SIZES.items()):
        lines = [f"( {tree})\n" for tree in make_trees(size, seed)]
        (folder / f"{split}.mrg").write_text("".join(lines))
    monkeypatch.chdir(tmp_path)
    return folder


def fails(*arguments: object) -> str:
    """What a command says that prints results and mistakes."""
    result = cli(*arguments)
    assert result.exit_code == 1
    assert isinstance(result.exception, SystemExit)
    return result.stderr


def test_treebanks_and_languages_are_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TREEBANKS", str(tmp_path))
    found = {line.split()[0]: line for line in works("treebanks", "list").stdout.splitlines()}
    assert " present " in found["german-mini"]
    for shown in (" absent ", str(tmp_path), "40,472 / 5,000 / 5,000"):
        assert shown in found["german-spmrl"]
    lines = works("recipes", "list").stdout.splitlines()
    (german,) = (line for line in lines if line.startswith("german"))
    assert "german-squoia, german-mini" in german
    assert "charlstm, word-charlstm" in german


def test_a_treebank_without_an_address_is_not_fetched(laboratory: Laboratory) -> None:
    said = refused("treebanks", "fetch", "tiny-open")
    assert "tiny-open has no stable address. Ask the elves." in said


def test_sound_treebanks(laboratory: Laboratory) -> None:
    printed = works(*CHECK, "tiny-open", "--figures").stdout
    assert ["tiny-open", "train", "40"] in [line.split()[:3] for line in printed.splitlines()]
    assert "labels (4): " in printed
    printed = works(*CHECK, "all").stdout
    assert "tiny-mini" in printed
    assert "tiny-licensed" not in printed  # absent
    assert works(*CHECK).stdout == printed


def test_a_broken_manifest_hides_no_other(laboratory: Laboratory) -> None:
    path = laboratory.manifests / "tiny-mini.toml"
    path.write_text(path.read_text().replace('prm = "spmrl"', 'prm = "smprl"'))
    for command in (("treebanks", "list"), CHECK):
        result = cli(*command)
        assert result.exit_code == 1
        assert "tiny-mini.toml: prm: unknown parameter set 'smprl'" in result.stderr
        assert "tiny-open" in result.stdout
    said = fails("train", laboratory.recipe, "--treebank", "tiny-licensed")
    assert "treebank tiny-licensed is not present" in said
    assert "present for elvish: tiny-open (--treebank NAME)\n" in said


def test_problems_are_listed(laboratory: Laboratory) -> None:
    path = laboratory.treebanks / "tiny-open" / "dev.mrg"
    path.write_text("(S (N a)\n" * 30)
    said = fails(*CHECK, "tiny-open")
    assert "tiny-open: 31 problem(s)" in said
    assert "dev.mrg:1:1: sentence 1: the tree that starts here" in said
    assert "... and 11 more (--every-error)" in said
    absent = fails(*CHECK, "tiny-licensed")  # a treebank that is named must be there
    assert "tiny-licensed: 1 problem(s)\n  not present: " in absent
    assert absent.endswith("1 of 1 treebanks are not sound: tiny-licensed\n")
    assert "unknown treebank 'tiny-opem'. Did you mean tiny-open " in fails(*CHECK, "tiny-opem")


def test_recipes_without_room_and_another_release(own: Path) -> None:
    works(*WRITTEN)
    recipe = HOME / "recipes" / "elvish.toml"
    text = recipe.read_text()
    recipe.write_text(text + "[model]\nmax_positions = 12\n")
    said = fails(*CHECK, "elvish-bank")
    assert "recipe elvish, variant" in said
    assert "sentence 1 of train has 14 words, for which model.max_positions must be 16" in said
    recipe.write_text(text)
    path = HOME / "treebanks" / "elvish-bank.toml"
    path.write_text(re.sub("sentences = 8\ntokens = 67", "sentences = 9", path.read_text()))
    (HOME / "treebanks" / "checksums" / "elvish-bank.sha256").unlink()
    said = fails(*CHECK, "elvish-bank")
    assert "dev: expected 9 sentences, found 8" in said
    lines = said.partition("says so:\n")[2].splitlines()
    text = "\n".join(line.strip() for line in lines if " = " in line)
    (HOME / "treebanks" / "elvish-bank-own.toml").write_text(text)
    works(*CHECK, "elvish-bank-own")


def test_a_new_treebank_trains_at_once(own: Path) -> None:
    (own / "notes.txt").write_text("no trees")
    shown = works(*OWN, "--into", HOME).stdout
    assert "nothing was written; the same command with --yes writes it" in shown
    assert not HOME.exists()
    lines = works(*WRITTEN).stdout.splitlines()
    assert lines[0].startswith("format: brackets, ")
    assert lines[0].endswith(", utf-8")
    assert lines[1:3] == ["splits: by the names of the files", "  train: train.mrg"]
    assert lines[5] == "passed over: notes.txt"
    assert lines[-1] == "next: spmrl-bench train elvish"
    assert sum(line.startswith("wrote ") for line in lines) == 3
    settings = {"max_epochs": 1, "evaluations_per_epoch": 1, "batch_size": TRAIN["batch_size"]}
    changes = [f"--set=train.{key}={value}" for key, value in settings.items()]
    changes += ["--set=model.d_model=32", "--set=model.layers=1", "--set=model.heads=1"]
    works("train", "elvish", "--variant", "charlstm", *changes)
    assert "elvish-bank" in works("eval", "elvish", "--variant", "charlstm", *changes).stdout
    works(*CHECK, "elvish-bank")


def test_dependencies_alone_get_a_recipe_with_room(own: Path) -> None:
    for split in SIZES:
        n = 400 if split == "train" else 4
        words = [f"{split}{k}" for k in range(n)]
        heads = [3, 0, 2, 1] if split == "dev" else range(n)  # those of dev cross
        lines = conll_lines(words, "T" * n, map(str, heads), "r" * n)
        (own / f"{split}.conll").write_text(lines)
        (own / f"{split}.mrg").unlink()
    assert works(*WRITTEN).stdout.endswith("next: spmrl-bench train elvish\n")
    runs = make_runs("elvish")
    assert {run.treebank.layers for run in runs} == {("dependencies",)}
    assert "biaffine" in {run.config.kind for run in runs}
    assert "max_positions = 402\n" in (HOME / "recipes" / "elvish.toml").read_text()
    rows = [" ".join(row.split()) for row in works(*CHECK, "elvish-bank").stdout.splitlines()]
    assert "elvish-bank train 1 400 0 0 1 0 0 sound" in rows
    assert "elvish-bank dev 1 4 0 0 1 1 (100.0 %) 2 (50.0 %)" in rows


def test_a_recipe_is_called_as_the_language_or_the_treebank(own: Path) -> None:
    assert works(*WRITTEN).stdout.endswith("next: spmrl-bench train elvish\n")
    second = works(*WRITTEN, "--name", "second").stdout
    assert second.endswith("next: spmrl-bench train second\n")
    assert load_recipe("elvish").language.treebanks == ["elvish-bank"], "not replaced"
    said = fails(*WRITTEN, "--language", "german", "--name", "english")
    assert "there is a recipe 'english' already" in said
    assert not (HOME / "treebanks" / "english.toml").exists()


def test_what_the_manifest_says_of_tags_and_scores(own: Path) -> None:
    for path in own.iterdir():
        path.write_text(path.read_text().replace("(NN ", "(NN##case=x|num=y## "))
    own.rename("pred")
    shown = works(*ADD, "pred", "--language", "english", "--into", HOME, "--yes").stdout
    assert "##" not in shown
    manifest = (HOME / "treebanks" / "english-pred.toml").read_text()
    for said in ('tags = "predicted"', '"strip-features"', 'prm = "COLLINS"'):
        assert said in manifest


def test_a_broken_sentence_or_a_shared_one_stops_it_unless_told_otherwise(own: Path) -> None:
    path = own / "train.mrg"
    path.write_text("(S (N a)\n" + path.read_text())
    said = fails(*WRITTEN)
    assert "train.mrg:1:1: sentence 1: " in said
    assert "nothing was written; --on-error skip leaves these sentences out" in said
    (own / "dev.mrg").write_text((own / "test.mrg").read_text())
    shared = fails(*WRITTEN, "--on-error", "skip")
    assert "nothing was written; --allow-shared takes them as they are" in shared
    assert not HOME.exists()
    works(*WRITTEN, "--on-error", "skip", "--allow-shared")
    manifest = (HOME / "treebanks" / "elvish-bank.toml").read_text()
    for line in ('on_error = "skip"', "skipped = 1", 'shared = "allowed"'):
        assert line in manifest


def test_what_add_refuses(own: Path) -> None:
    for arguments, message in {
        ("nowhere",): "nowhere: no such folder",
        ("bank/dev.mrg",): "bank/dev.mrg: a file, expected a folder: name bank",
        (".", "--format", "conl"): "unknown format 'conl'. Did you mean conll?",
    }.items():
        assert message in fails(*ADD, *arguments)
