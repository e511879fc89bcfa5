"""The commands that train and score: a language, a whole track, external parsers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from spmrl_bench.experiments.recipe import recipe_of
from tests.builders import cli, records_in, refused, works
from tests.laboratory import Laboratory
from tests.systems.conftest import DESCRIPTION, DRIVER

RECORDS = Path("results/runs")
TRACK = ("--track", "mini", "--device", "cpu")


@pytest.fixture
def world(laboratory: Laboratory, monkeypatch: pytest.MonkeyPatch) -> Laboratory:
    """Recipes of three languages: Elvish and Dwarvish are there, Orcish is not."""
    recipes = laboratory.recipe.parent
    monkeypatch.setattr("spmrl_bench.experiments.recipe.data_dirs", lambda _: [recipes])
    laboratory.write_treebank("dwarvish-mini", "mini", "dwarvish")
    laboratory.write_manifest("orcish-mini", "mini", "orcish")
    for language in ("dwarvish", "orcish"):
        laboratory.write_recipe([f"{language}-mini"], language)
    return laboratory


def test_seeds_and_jobs_reach_training(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Any] = []
    monkeypatch.setattr(
        "spmrl_bench.experiments.train.train_all",
        lambda runs, **rest: calls.append((runs, rest["jobs"])),
    )
    for options, seeds in {"": [1], "--seed 0": [0], "--seeds 3": [1, 2, 3]}.items():
        works("train", "german", "--track", "mini", *options.split(), "--jobs", "4")
        runs, jobs = calls.pop()
        assert jobs == 4
        assert [run.config.seed for run in runs if run.variant == "charlstm"] == seeds


def test_a_treebank_is_trained_by_a_recipe_that_names_it_or_by_the_base(
    world: Laboratory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spmrl_bench.experiments.train.train_all", lambda *_, **__: None)
    world.write_treebank("unnamed-mini", "mini")
    for name, recipe in {"dwarvish-mini": "dwarvish", "unnamed-mini": "unnamed-mini"}.items():
        assert recipe_of(name) == recipe
        works("train", "--treebank", name)
    assert "unknown language 'dwarvish-mini'" in refused("train", "dwarvish-mini")


def test_a_track_is_trained_and_scored_once(world: Laboratory) -> None:
    trained = works("train", *TRACK, "--seeds", "2")
    assert "absent: orcish (orcish-mini: looked in " in trained.stderr
    result = works("eval", *TRACK, "--seeds", "2")
    lines = result.stdout.splitlines()
    assert lines[0] == "# Scores by language, mini track, generated sentences"
    table = [line for line in lines if line.startswith(("| dwarvish", "| elvish"))]
    assert all(" ± " in line for line in table)
    assert lines[-1] == "Absent: orcish."
    records = records_in(RECORDS)
    assert len(records) == 8
    assert sum(record.test is not None for record in records) == 4
    assert Path("results/multilingual-mini.md").read_text().splitlines()[0] == lines[0]

    weights = sorted(Path("runs").rglob("best/weights.safetensors"))
    before = [path.stat().st_mtime_ns for path in weights]
    works("train", *TRACK, "--seeds", "2")
    assert works("eval", *TRACK, "--seeds", "2").stdout == result.stdout
    assert [path.stat().st_mtime_ns for path in weights] == before
    assert len(records_in(RECORDS)) == 8


def test_a_run_that_fails_keeps_no_other_language_from_the_table(world: Laboratory) -> None:
    world.lengthen("dwarvish-mini")  # which ends its runs
    options = (*TRACK, "--variant", "charlstm")
    trained = cli("train", *options)
    assert trained.exit_code == 1
    assert "dwarvish-mini, split train, sentence 40" in trained.stderr
    result = cli("eval", *options)
    assert result.exit_code == 1
    assert "| elvish " in result.stdout
    assert "| dwarvish " not in result.stdout
    assert Path("results/multilingual-mini.md").is_file()


def test_external_parsers_stand_beside_ours(
    world: Laboratory, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("flat.py").write_text(DRIVER, encoding="utf-8")
    Path("flat.toml").write_text(DESCRIPTION, encoding="utf-8")
    monkeypatch.setattr("spmrl_bench.systems.description.data_dirs", lambda _: [Path.cwd()])
    board = ("--track", "mini", "--minutes", "5")
    alone = ("elvish", *board, "--system", "flat.toml")
    works("train", *alone)
    assert "Flat" in works("eval", *alone).stdout
    (theirs,) = (record for record in records_in(RECORDS) if record.system)
    assert (theirs.system.name, theirs.recipe["system"]["minutes"]) == ("Flat", 5)
    every = (*board, "--variant", "charlstm", "--system", "all")
    Path("spoilt.toml").write_text("x = [", encoding="utf-8")  # it is named, and hides no other
    assert "/spoilt.toml: not valid TOML" in works("train", "elvish", *every).stderr
    Path("spoilt.toml").unlink()
    printed = works("eval", "elvish", *every).stdout
    assert "| charlstm " in printed
    assert "| Flat" in printed
    works("train", *every, "--languages", "elvish")  # the same runs
    printed = works("eval", *every, "--languages", "elvish").stdout
    (row,) = (line for line in printed.splitlines() if line.startswith("| tiny-mini "))
    cells = [cell.strip() for cell in row.split("|")]
    assert cells[3].startswith("charlstm")
    assert cells[5].startswith("Flat")
    assert 0 < float(cells[-3]) <= 1  # p
    assert len(records_in(RECORDS)) == 2
