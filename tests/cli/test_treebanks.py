"""The commands about treebanks: what they print, what they write, when they fail."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.testing import Result

from spmrl_bench.experiments.plan import make_runs
from spmrl_bench.experiments.recipe import load_recipe
from spmrl_bench.readers.conll import conll_lines
from tests.builders import cli
from tests.laboratory import SIZES, TRAIN, Laboratory, make_trees


def run(*arguments: str) -> Result:
    return cli(*arguments)


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a treebank, and a home of the user's own."""
    monkeypatch.setenv("SPMRL_BENCH_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("TREEBANKS", str(tmp_path))
    folder = tmp_path / "bank"
    folder.mkdir()
    for seed, (split, size) in enumerate(SIZES.items()):
        lines = [f"( {tree})\n" for tree in make_trees(size, seed)]
        (folder / f"{split}.mrg").write_text("".join(lines))
    monkeypatch.chdir(tmp_path)
    return folder


def test_a_sound_treebank(laboratory: Laboratory) -> None:
    result = run("validate", "tiny-open", "--figures")
    assert result.exit_code == 0, result.output
    assert ["tiny-open", "train", "40"] in [line.split()[:3] for line in result.stdout.splitlines()]
    assert "labels (4): " in result.stdout
    assert "sound" in result.stdout


CROSSING = """\
name = "crossing"
title = "Two sentences with arcs that cross, and one without"
language = "elvish"
track = "open"
format = "conll"
path = "crossing"
tags = "gold"
licence = "MIT"
citation = "none"
source = "none"
obtain = "Ask the elves."
"""


def test_arcs_that_are_not_projective(laboratory: Laboratory) -> None:
    (laboratory.treebanks / "crossing").mkdir()
    manifest = CROSSING
    for split, heads in {"train": [3, 0, 2, 1], "dev": [2, 3, 0, 1], "test": [2, 0, 2]}.items():
        n = len(heads)
        lines = conll_lines("abcd"[:n], "T" * n, map(str, heads), "r" * n)
        (laboratory.treebanks / "crossing" / f"{split}.conll").write_text(lines)
        manifest += f'[splits.{split}]\nfiles = ["{split}.conll"]\nsentences = 1\n'
    (laboratory.manifests / "crossing.toml").write_text(manifest)
    result = run("validate", "crossing", "tiny-mini")
    assert result.exit_code == 0, result.output
    rows = [" ".join(line.split()) for line in result.stdout.splitlines()]
    assert "crossing train 1 4 0 0 1 1 (100.0 %) 2 (50.0 %) sound" in rows
    assert "crossing dev 1 4 0 0 1 1 (100.0 %) 1 (25.0 %)" in rows
    assert "crossing test 1 3 0 0 1 0 0" in rows


def test_all_means_those_that_are_present(laboratory: Laboratory) -> None:
    result = run("validate", "all")
    assert result.exit_code == 0
    assert "tiny-mini" in result.stdout
    assert "tiny-licensed" not in result.stdout
    assert run("validate").stdout == result.stdout


def test_a_broken_manifest_hides_no_other_treebank(laboratory: Laboratory) -> None:
    path = laboratory.manifests / "tiny-mini.toml"
    path.write_text(path.read_text().replace('prm = "spmrl"', 'prm = "smprl"'))
    for command in ("treebanks", "validate"):
        result = run(command)
        assert result.exit_code == 1
        assert "tiny-mini.toml: prm: unknown parameter set 'smprl'" in result.stderr
        assert "tiny-open" in result.stdout
    result = run("train", str(laboratory.recipe), "--treebank", "tiny-licensed")
    assert result.exit_code == 1
    assert "treebank tiny-licensed is not present" in result.stderr
    assert "present for elvish: tiny-open\n" in result.stderr


def test_a_broken_recipe_hides_no_other(own: Path) -> None:
    (own.parent / "home" / "recipes").mkdir(parents=True)
    path = own.parent / "home" / "recipes" / "elvish.toml"
    path.write_text('language = "elvish"\ntreebank = "x"\n')
    result = run("recipes")
    assert result.exit_code == 1
    assert "elvish.toml: treebank: unknown key. Did you mean treebanks" in result.stderr
    assert "german-spmrl" in result.stdout


def test_a_treebank_that_is_named_must_be_there(laboratory: Laboratory) -> None:
    result = run("validate", "tiny-licensed")
    assert result.exit_code == 1
    assert "tiny-licensed: 1 problem(s)\n  not present: " in result.stderr
    assert result.stderr.endswith("1 of 1 treebanks are not sound: tiny-licensed\n")


def test_problems_are_listed(laboratory: Laboratory) -> None:
    path = laboratory.treebanks / "tiny-open" / "dev.mrg"
    path.write_text("(S (N a)\n" * 30)
    result = run("validate", "tiny-open")
    assert result.exit_code == 1
    assert "tiny-open: 31 problem(s)" in result.stderr
    assert "dev.mrg:1:1: sentence 1: the tree that starts here" in result.stderr
    assert "... and 11 more (--every-error)" in result.stderr
    assert "dev: expected 8 sentences, found 0" in run("validate", "--every-error").stderr


def test_unknown_name(laboratory: Laboratory) -> None:
    result = run("validate", "tiny-opem")
    assert result.exit_code == 1
    assert "unknown treebank 'tiny-opem'. Did you mean tiny-open " in result.stderr


def test_a_new_treebank_trains_at_once(own: Path) -> None:
    home = own.parent / "home"
    (own / "notes.txt").write_text("no trees")
    arguments = ["new-treebank", str(own), "--language", "elvish", "--into", str(home)]
    shown = run(*arguments)
    assert shown.exit_code == 0, shown.output
    assert "nothing was written; the same command with --yes writes it" in shown.stdout
    assert not home.exists()
    result = run(*arguments, "--yes")
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[0].startswith("format: brackets, ")
    assert lines[0].endswith(", utf-8")
    assert lines[1:6] == [
        "splits: by the names of the files",
        "  train: train.mrg",
        "  dev: dev.mrg",
        "  test: test.mrg",
        "passed over: notes.txt",
    ]
    assert lines[-1] == "next: spmrl-bench train elvish"
    assert sorted(line.rsplit("/", 1)[1] for line in lines if line.startswith("wrote")) == [
        "elvish-bank.sha256", "elvish-bank.toml", "elvish.toml"
    ]  # fmt: skip
    manifest = (home / "treebanks" / "elvish-bank.toml").read_text()
    assert 'path = "bank"' in manifest
    settings = {"max_epochs": 1, "evaluations_per_epoch": 1, "batch_size": TRAIN["batch_size"]}
    changes = [f"--set=train.{key}={value}" for key, value in settings.items()]
    changes += ["--set=model.d_model=32", "--set=model.layers=1", "--set=model.heads=1"]
    trained = run("train", "elvish", "--variant", "charlstm", *changes)
    assert trained.exit_code == 0, trained.output
    scored = run("eval", "elvish", "--variant", "charlstm", *changes)
    assert scored.exit_code == 0, scored.output
    assert "elvish-bank" in scored.stdout
    assert run("validate", "elvish-bank").exit_code == 0


def test_recipes_without_room_are_found_before_any_training(own: Path) -> None:
    home = own.parent / "home"
    run("new-treebank", str(own), "--language", "elvish", "--into", str(home), "--yes")
    recipe = home / "recipes" / "elvish.toml"
    recipe.write_text(recipe.read_text() + "[model]\nmax_positions = 12\n")
    result = run("validate", "elvish-bank")
    assert result.exit_code == 1
    assert "recipe elvish, variant" in result.stderr
    assert "sentence 1 of train has 14 words, for which model.max_positions must be 16" in (
        result.stderr
    )


def test_another_release_has_a_manifest_of_its_own(own: Path) -> None:
    home = own.parent / "home"
    run("new-treebank", str(own), "--language", "elvish", "--into", str(home), "--yes")
    path = home / "treebanks" / "elvish-bank.toml"
    path.write_text(re.sub("sentences = 8\ntokens = 67", "sentences = 9", path.read_text()))
    (home / "treebanks" / "checksums" / "elvish-bank.sha256").unlink()
    wrong = run("validate", "elvish-bank")
    assert wrong.exit_code == 1
    assert "dev: expected 9 sentences, found 8" in wrong.stderr
    lines = wrong.stderr.partition("says so:\n")[2].splitlines()
    text = "\n".join(line.strip() for line in lines if " = " in line)
    assert "splits.dev.sentences = 8" in text
    (home / "treebanks" / "elvish-bank-own.toml").write_text(text)
    sound = run("validate", "elvish-bank-own")
    assert sound.exit_code == 0, sound.output


def test_dependencies_alone_get_a_recipe_with_room(own: Path, tmp_path: Path) -> None:
    folder = tmp_path / "arcs"
    folder.mkdir()
    for split in ("train", "dev", "test"):
        n = 400 if split == "train" else 4
        words = [f"{split}{k}" for k in range(n)]
        lines = conll_lines(words, "T" * n, map(str, range(n)), "r" * n)
        (folder / f"{split}.conll").write_text(lines)
    home = own.parent / "home"
    result = run("new-treebank", str(folder), "--language", "elvish", "--into", str(home), "--yes")
    assert result.exit_code == 0, result.output
    assert result.stdout.endswith("next: spmrl-bench train elvish\n")
    runs = make_runs("elvish")
    assert {run.treebank.layers for run in runs} == {("dependencies",)}
    assert "biaffine" in {run.config.kind for run in runs}
    assert "max_positions = 402\n" in (home / "recipes" / "elvish.toml").read_text()


def test_a_recipe_is_called_as_the_language_or_the_treebank(own: Path) -> None:
    home = own.parent / "home"
    arguments = ["new-treebank", str(own), "--language", "elvish", "--into", str(home), "--yes"]
    first = run(*arguments)
    assert first.stdout.endswith("next: spmrl-bench train elvish\n")
    second = run(*arguments, "--name", "second")
    assert second.stdout.endswith("next: spmrl-bench train second\n")
    assert load_recipe("elvish").language.treebanks == ["elvish-bank"], "not replaced"
    third = run(*arguments, "--language", "german", "--name", "english")
    assert third.exit_code == 1
    assert "there is a recipe 'english' already" in third.stderr
    assert not (home / "treebanks" / "english.toml").exists()


def test_what_the_manifest_says_of_tags_and_scores(own: Path) -> None:
    folder = own.parent / "pred"
    folder.mkdir()
    for seed, split in enumerate(("train", "dev", "test")):
        trees = [str(tree).replace("(NN ", "(NN##case=x|num=y## ") for tree in make_trees(20, seed)]
        (folder / f"{split}.ptb").write_text("".join(f"( {tree})\n" for tree in trees))
    home = own.parent / "home"
    shown = run("new-treebank", str(folder), "--language", "english", "--into", str(home), "--yes")
    assert shown.exit_code == 0, shown.output
    manifest = (home / "treebanks" / "english-pred.toml").read_text()
    assert 'tags = "predicted"' in manifest
    assert '"strip-features"' in manifest
    assert 'prm = "COLLINS"' in manifest
    assert "##" not in shown.stdout


def test_several_files_without_names_of_splits(own: Path) -> None:
    for number, split in enumerate(SIZES):
        (own / f"{split}.mrg").rename(own / f"{number}.mrg")
    arguments = ["new-treebank", str(own), "--language", "elvish"]
    refused = run(*arguments)
    assert refused.exit_code == 1
    assert "not known: 0.mrg, 1.mrg, 2.mrg" in refused.stderr
    (own / "ids").write_text("1\n")
    shown = run(*arguments, "--train", "*", "--dev", "@ids", "--test", "2.mrg")
    assert shown.exit_code == 0, shown.output
    assert shown.stdout.splitlines()[1:5] == [
        "splits: as you said", "  train: 0.mrg", "  dev: 1.mrg", "  test: 2.mrg"
    ]  # fmt: skip
    cut = run(*arguments, "--train", "*")
    assert "  dev: the same files, sentences " in cut.stdout


def test_a_broken_sentence_or_a_shared_one_stops_it_unless_told_otherwise(own: Path) -> None:
    path = own / "train.mrg"
    path.write_text("(S (N a)\n" + path.read_text())
    home = own.parent / "home"
    arguments = ["new-treebank", str(own), "--language", "elvish", "--into", str(home), "--yes"]
    result = run(*arguments)
    assert result.exit_code == 1
    assert "train.mrg:1:1: sentence 1: " in result.stderr
    assert "nothing was written; --on-error skip leaves these sentences out" in result.stderr
    (own / "dev.mrg").write_text((own / "test.mrg").read_text())
    arguments += ["--on-error", "skip"]
    shared = run(*arguments)
    assert shared.exit_code == 1
    assert "nothing was written; --allow-shared takes them as they are" in shared.stderr
    assert not home.exists()
    assert run(*arguments, "--allow-shared").exit_code == 0
    manifest = (home / "treebanks" / "elvish-bank.toml").read_text()
    for line in ('on_error = "skip"', "skipped = 1", 'shared = "allowed"'):
        assert line in manifest


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere"], "nowhere: no such folder"),
        ([".", "--format", "conl"], "unknown format 'conl'. Did you mean conll?"),
        ([".", "--on-error", "ignore"], "unknown on-error 'ignore'"),
        (["empty"], "found no file of a known format among 0 files"),
    ],
)
def test_mistakes(own: Path, arguments: list[str], message: str) -> None:
    (own.parent / "empty").mkdir()
    result = run("new-treebank", *arguments)
    assert result.exit_code == 1
    assert message in result.stderr


def test_fetch_without_an_address(laboratory: Laboratory) -> None:
    result = run("treebanks", "fetch", "tiny-open")
    assert result.exit_code == 1
    assert "tiny-open has no stable address. Ask the elves." in result.stderr
