"""The command that trains, scores and tabulates the languages of a track; and what table adds."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from typer.testing import Result

from spmrl_bench.errors import RecipeError, TreebankError
from spmrl_bench.experiments.plan import make_runs, plan_track
from spmrl_bench.leaderboard.record import read_records, write_record
from tests.builders import cli, make_record, make_treebank
from tests.conftest import shared_data
from tests.laboratory import Laboratory

ROOT = Path(__file__).resolve().parents[1]
SUFFIXES = ("md", "csv", "tex")


def train(*arguments: str) -> Result:
    return cli("multilingual", "--track", "mini", "--device", "cpu", *arguments)


@pytest.fixture
def world(laboratory: Laboratory, monkeypatch: pytest.MonkeyPatch) -> Laboratory:
    """Recipes of three languages: Elvish and Dwarvish are there, Orcish is not."""
    recipes = laboratory.recipe.parent
    monkeypatch.setattr("spmrl_bench.experiments.recipe.data_dirs", lambda _: [recipes])
    laboratory.write_treebank("dwarvish-mini", "mini")
    laboratory.write_manifest("orcish-mini", "mini")
    for language in ("dwarvish", "orcish"):
        manifest = laboratory.manifests / f"{language}-mini.toml"
        text = manifest.read_text(encoding="utf-8").replace("elvish", language)
        manifest.write_text(text, encoding="utf-8")
        recipe = laboratory.recipe.read_text(encoding="utf-8").replace("elvish", language)
        listed = recipe[recipe.index("treebanks") :].splitlines()[0]
        recipe = recipe.replace(listed, f'treebanks = ["{language}-mini"]')
        (recipes / f"{language}.toml").write_text(recipe, encoding="utf-8")
    return laboratory


def test_one_command_does_all_and_does_nothing_twice(world: Laboratory) -> None:
    result = train("--seeds", "2")
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[0] == "# Scores by language, mini track, generated sentences"
    table = [line for line in lines if line.startswith(("| dwarvish", "| elvish"))]
    assert [line.split("|")[2].strip() for line in table] == ["dwarvish-mini", "tiny-mini"]
    assert all(" ± " in line for line in table)
    assert lines[-2].startswith("Training time of 8 runs: ")
    assert lines[-1] == "Absent: orcish."
    assert "absent: orcish (orcish-mini: looked in " in result.stderr
    records = read_records(Path("results/runs"))
    assert len(records) == 8
    assert sum(record.test is not None for record in records) == 4
    texts = {name: Path(f"results/multilingual-mini.{name}").read_text() for name in SUFFIXES}
    assert texts["md"].rstrip() == "\n".join(lines[:-2]).rstrip()
    assert texts["tex"].startswith("%")

    weights = sorted(Path("runs").rglob("best/weights.safetensors"))
    assert len(weights) == 8
    before = [path.stat().st_mtime_ns for path in weights]
    again = train("--seeds", "2")
    assert again.stdout == result.stdout
    assert [path.stat().st_mtime_ns for path in weights] == before
    assert len(read_records(Path("results/runs"))) == 8


def test_languages_can_be_named(world: Laboratory) -> None:
    result = train("--languages", "elvish", "--variant", "charlstm", "--set", "train.max_epochs=2")
    assert result.exit_code == 0, result.output
    assert "Model size small, max_epochs=2: mini track, generated sentences" in result.stdout
    assert "dwarvish" not in result.stdout
    assert "Absent" not in result.stdout
    assert len(read_records(Path("results/runs"))) == 1


def test_a_run_that_fails_keeps_no_other_language_from_the_table(
    world: Laboratory, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A training sentence that is too long for the model ends the runs of one language.
    long = "(S (NP (DT the)) " + "(VP (VBZ sees))" * 40 + ")\n"
    path = world.treebanks / "dwarvish-mini" / "train.mrg"
    text = path.read_text(encoding="utf-8").splitlines(keepends=True)
    path.write_text("".join([*text[:-1], long]), encoding="utf-8")
    result = train()
    assert result.exit_code == 1
    assert "dwarvish-mini, split train, sentence 40" in result.stderr
    assert "| elvish " in result.stdout
    assert "| dwarvish " not in result.stdout
    assert Path("results/multilingual-mini.md").is_file()


def test_nothing_that_could_be_scored_is_an_error(world: Laboratory) -> None:
    result = train("--languages", "elvish", "--set", "train.learning_rate=1e30")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "tiny-mini" in result.stderr


def test_plan_has_every_variant_and_seed_of_the_recipes_that_are_present(world: Laboratory) -> None:
    runs, absent = plan_track("mini", seeds=(1, 2, 3))
    assert [run.treebank.name for run in runs] == ["dwarvish-mini"] * 6 + ["tiny-mini"] * 6
    assert [*absent] == ["orcish"]
    assert absent["orcish"].startswith("orcish-mini: looked in ")


@pytest.mark.parametrize(
    ("track", "languages", "kind", "message"),
    [
        ("minni", None, RecipeError, r"unknown track 'minni'\. Did you mean mini"),
        ("mini", ["elfish"], RecipeError, r"unknown language 'elfish'\. Did you mean elvish"),
        ("open", ["dwarvish"], RecipeError, r"dwarvish has no treebank of track open$"),
        ("mini", ["orcish"], TreebankError, r"orcish-mini"),
        (
            "spmrl",
            None,
            TreebankError,
            r"no treebank of track spmrl is present\n  elvish: tiny-lic",
        ),
    ],
)
def test_mistakes_are_found_before_training(
    world: Laboratory, track: str, languages: list[str] | None, kind: type, message: str
) -> None:
    with pytest.raises(kind, match=message):
        plan_track(track, languages=languages)


def test_what_no_variant_learns_from_is_no_treebank_of_a_track() -> None:
    with pytest.raises(RecipeError, match="recipe basque has no treebank of track open"):
        plan_track("open", languages=["basque"])


def test_variants_that_are_named_decide_which_treebanks_there_are() -> None:
    wanted = ["dependencies", "stack-attention"]
    runs, _ = plan_track("mini", languages=["german"], variants=wanted)
    assert [run.treebank.name for run in runs] == ["german-mini"] * 2
    root = shared_data("treebanks")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TREEBANKS", str(root))
        languages = ["basque", "french", "german"]
        with pytest.raises(RecipeError, match="german"):
            plan_track("open", languages=languages, variants=["dependencies"])
        runs, _ = plan_track("open", languages=languages[:2], variants=["dependencies"])
        banks = {run.treebank.name: run.note for run in runs}
        assert banks.keys() == {"basque-ud-bdt", "french-sequoia"}
        assert banks["french-sequoia"] == "using french-sequoia, track open"
        with pytest.raises(RecipeError, match="spanish has no treebank of track open that depend"):
            plan_track("open", languages=["spanish"], variants=["dependencies"])
        with pytest.raises(RecipeError, match="unknown variant 'dependency'"):
            plan_track("open", variants=["dependency"])
        (run,) = make_runs("german", variants=["dependencies"])
        assert run.note == (
            "using german-mini, track mini (german-spmrl not present; german-squoia without "
            "dependencies)"
        )
        with pytest.raises(RecipeError, match="treebank german-squoia has no dependencies"):
            make_runs("german", track="open", variants=["dependencies"])


def test_mistakes_give_one_message(world: Laboratory) -> None:
    result = train("--languages", "elfish")
    assert result.exit_code == 1
    assert result.stderr.startswith("spmrl-bench: unknown language 'elfish'")
    assert result.stdout == ""
    assert cli("multilingual").exit_code == 2


# ---- spmrl-bench table ----


def write(language: str, track: str = "mini") -> None:
    bank = make_treebank(f"{language}-{track}", track, language=language)
    write_record(make_record(treebank=bank, lang=language), Path("results/runs"))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path / "results"


def test_table_rebuilds_the_tables_of_tracks_with_two_languages(folder: Path) -> None:
    for language, track in (("german", "mini"), ("french", "mini"), ("german", "open")):
        write(language, track)
    result = cli("table")
    assert result.exit_code == 0, result.output
    written = sorted(path.name for path in folder.glob("multilingual-*"))
    assert written == sorted(f"multilingual-mini.{suffix}" for suffix in SUFFIXES)
    assert result.stderr == "wrote results/multilingual-mini.{md,csv,tex}\n"
    assert result.stdout == (folder / "table.md").read_text(encoding="utf-8")
    assert "| french " in (folder / "multilingual-mini.md").read_text(encoding="utf-8")


def test_table_rebuilds_a_table_of_one_language_that_is_there(folder: Path) -> None:
    write("german", "open")
    cli("table")
    assert list(folder.glob("multilingual-*")) == []
    stale = folder / "multilingual-open.md"
    stale.write_text("stale", encoding="utf-8")
    assert cli("table").exit_code == 0
    assert "| german " in stale.read_text(encoding="utf-8")


def test_table_that_cannot_be_written_is_named(folder: Path) -> None:
    write("german")
    write("french")
    (folder / "multilingual-mini.tex").mkdir()
    result = cli("table")
    assert result.exit_code == 1
    assert "results/multilingual-mini.tex: cannot write the table: " in result.stderr


def test_make_passes_options_through() -> None:
    options = ("track=mini", "seeds=2", "jobs=2", "languages=german,french")
    command = ["make", "--dry-run", "-C", str(ROOT), "VENV=unmade", *options, "multilingual"]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    (line,) = (line for line in output.splitlines() if "spmrl-bench multi" in line)
    assert line.split()[1:] == [
        *("multilingual", "--track", "mini", "--languages", "german,french"),
        *("--seeds", "2", "--jobs", "2"),
    ]
