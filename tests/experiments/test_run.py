"""Runs: which treebank is used, how it is trained on, and where a run lies."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from spmrl_bench.errors import (
    CheckpointError,
    ReadError,
    RecipeError,
    SentenceTooLongError,
    TrainingError,
    TreebankError,
)
from spmrl_bench.experiments.train import chosen_sentences
from spmrl_bench.leaderboard.tables import results_markdown
from spmrl_bench.parsing.models import load_parser
from tests.builders import cli
from tests.experiments.running import FIRST, RUNS, evaluate, plan, train
from tests.laboratory import MODEL, QUICK, TRAIN, Laboratory


def everything(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_the_first_present_treebank_is_used_unless_one_is_named(laboratory: Laboratory) -> None:
    runs = plan(laboratory)
    assert {run.treebank.name for run in runs} == {"tiny-open"}
    assert {run.note for run in runs} == {"using tiny-open, track open (tiny-licensed not present)"}
    assert [run.variant for run in runs] == ["charlstm", "word-charlstm"]
    assert all(run.config.fingerprint == run.treebank.fingerprint for run in runs)
    assert plan(laboratory, track="mini")[0].note == "using tiny-mini, track mini"
    assert plan(laboratory, treebank="tiny-mini")[0].note == "using tiny-mini, as asked"
    assert len(plan(laboratory, variants=["charlstm", "charlstm"])) == 1
    assert [run.config.seed for run in plan(laboratory, seeds=[3, 0, 3])] == [3, 0] * 2
    laboratory.write_treebank("tiny-licensed", "spmrl")
    assert plan(laboratory)[0].note == "using tiny-licensed, track spmrl"


def test_absent_treebanks_are_named_with_their_places(
    laboratory: Laboratory, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(TreebankError, match=r"(?s)tiny-licensed is not.*: Ask the elves\."):
        plan(laboratory, track="spmrl")
    monkeypatch.delenv("TREEBANKS")
    with pytest.raises(TreebankError) as caught:
        plan(laboratory)
    first, *places, _ = str(caught.value).splitlines()
    assert first == "no treebank of recipe elvish is present"
    names = ("tiny-licensed", "tiny-open", "tiny-mini")
    for name, line in zip(names, places, strict=True):
        assert line.startswith(f"  {name}: looked in")
        assert "TREEBANKS is not set" in line


def test_unknown_names_and_no_seed(laboratory: Laboratory) -> None:
    with pytest.raises(RecipeError, match="no seeds"):
        plan(laboratory, seeds=[])
    with pytest.raises(RecipeError, match=r"unknown track 'opne'. Did you mean open\?"):
        plan(laboratory, track="opne")
    laboratory.write_recipe(["tiny-opne"])
    with pytest.raises(RecipeError, match=r"elvish.toml: treebanks: unknown treebank 'tiny-opne'"):
        plan(laboratory)


def test_every_variant_has_a_folder_that_says_how_it_was_trained(laboratory: Laboratory) -> None:
    folders = train(laboratory, seeds=[3])
    assert folders == [
        RUNS / "tiny-open" / f"small-{variant}-seed3" for variant in ("charlstm", "word-charlstm")
    ]
    for folder, run in zip(folders, plan(laboratory, seeds=[3]), strict=True):
        noted = json.loads((folder / "run.json").read_text(encoding="utf-8"))
        assert noted == run.config.model_dump(mode="json")
        (tree,) = load_parser(folder).parse([["the", "dog", "sees"]])
        assert tree.words == ("the", "dog", "sees")


def test_a_finished_run_is_left_alone_and_a_fresh_one_trained_anew(
    trained: Laboratory, capsys: pytest.CaptureFixture[str]
) -> None:
    (FIRST / "mine.txt").write_text("mine", encoding="utf-8")
    before = everything(FIRST)
    capsys.readouterr()
    train(trained, variants=["charlstm"])
    assert everything(FIRST) == before
    assert "tiny-open charlstm seed 1: already trained, best dev F1 " in capsys.readouterr().err

    train(trained, variants=["charlstm"], fresh=True)
    after = everything(FIRST)
    assert before.keys() - after.keys() == {FIRST / "mine.txt"}
    weights = FIRST / "best" / "weights.safetensors"
    assert after[weights] == before[weights]
    assert after[FIRST / "events.jsonl"] != before[FIRST / "events.jsonl"]


def test_other_settings_in_the_folder_are_listed(trained: Laboratory) -> None:
    before = everything(FIRST)
    trained.write_base(
        size__small__model=MODEL | {"d_ff": 8}, size__small__train=TRAIN | QUICK | {"max_epochs": 3}
    )
    for work in (train, evaluate):
        with pytest.raises(CheckpointError) as caught:
            work(trained, variants=["charlstm"])
        assert str(caught.value) == (
            f"{FIRST}: holds a run with other settings: model.d_ff is 16 there, 8 now; "
            "train.max_epochs is 1 there, 3 now. "
            "Start anew with --fresh, choose another --runs folder, or give the earlier settings"
        )
    assert everything(FIRST) == before
    train(trained, variants=["charlstm"], fresh=True)
    path = trained.treebanks / "tiny-open" / "dev.mrg"
    path.write_text(path.read_text().replace("dog", "cat"), encoding="utf-8")
    with pytest.raises(CheckpointError, match="other settings: fingerprint is"):
        train(trained, variants=["charlstm"])


def test_a_run_of_before_is_the_same_run(trained: Laboratory) -> None:
    """Its settings and its schedule lack what came in since."""
    for name, section, keys in (
        ("run.json", "train", ("optimiser", "gradient_norm", "decay_batches")),
        ("run.json", "model", ("join", "initialisation")),
        ("run.json", None, ("settings",)),
        ("last/progress.json", None, ("decay_step",)),
    ):
        noted = json.loads((FIRST / name).read_text(encoding="utf-8"))
        for key in keys:
            del (noted[section] if section else noted)[key]
        noted.pop("content", None)
        (FIRST / name).write_text(json.dumps(noted), encoding="utf-8")
    before = everything(FIRST)
    # How often it is saved makes no other run.
    often = {"train.checkpoint_minutes": "1"}
    assert train(trained, variants=["charlstm"], settings=often) == [FIRST]
    assert everything(FIRST) == before
    trained.write_recipe(["tiny-open"], train={"optimiser": "sgd"})
    with pytest.raises(CheckpointError, match=r"train\.optimiser is adam there, sgd now"):
        train(trained, variants=["charlstm"])


@pytest.mark.parametrize("split", ["train", "dev"])
def test_sentences_that_are_too_long_or_no_trees_are_found_before_training(
    laboratory: Laboratory, split: str
) -> None:
    path = laboratory.treebanks / "tiny-open" / f"{split}.mrg"
    lines = path.read_text(encoding="utf-8").splitlines()
    lines[-1] = f"(S (NP {'(DT the) ' * 40}(NN dog)) (VBZ sees))"
    too_long = r"of 42 words.*table allows 30.*max_positions"
    for text, error, message in (
        ("\n".join(lines), SentenceTooLongError, too_long),
        ("(S (NP (DT the", ReadError, rf"{split}\.mrg:1"),
    ):
        path.write_text(f"{text}\n", encoding="utf-8")
        with pytest.raises(error, match=message):
            train(laboratory, variants=["charlstm"])
        assert {path.name for path in everything(RUNS)} == {"failed.json", "log.txt"}


def test_settings_name_the_folder_the_signature_and_the_record(laboratory: Laboratory) -> None:
    settings = {"train.max_epochs": "2", "model.d_ff": "8", "model.heads": str(MODEL["heads"])}
    options: dict[str, Any] = {"variants": ["charlstm"], "settings": settings}
    (folder,) = train(laboratory, **options)
    assert folder == RUNS / "tiny-open" / "small-charlstm-d_ff=8,max_epochs=2-seed1"
    (record,) = evaluate(laboratory, **options)
    assert record.settings == {"model.d_ff": 8, "train.max_epochs": 2}
    assert (
        "|variant:charlstm|settings:d_ff=8,max_epochs=2|size:small|"
        in record.dev.metrics["brackets"].signature_long
    )
    # The same command with the same settings in other words finds the run and its record.
    settings = {"model.d_ff": "+8", "train.max_epochs": "2"}
    assert train(laboratory, variants=["charlstm"], settings=settings) == [folder]
    assert evaluate(laboratory, variants=["charlstm"], settings=settings) == [record]
    assert len(list(folder.parent.iterdir())) == 1


# More time --------------------------------------------------------------------------------


def test_the_same_command_with_more_minutes_goes_on(laboratory: Laboratory) -> None:
    def run(command: str, *options: str) -> Result:
        return cli(command, str(laboratory.recipe), "--variant", "charlstm", *options)

    def state() -> tuple[Path, dict[str, object]]:
        (path,) = Path("runs").rglob("last/progress.json")
        return path.parents[1], json.loads(path.read_text())

    few, more = ("--minutes", "0.00001"), ("--minutes", "5")
    assert run("train", *few).exit_code == 0
    folder, progress = state()
    assert progress["stopped_by"] == "max_minutes"
    assert "minutes" not in folder.name
    assert run("train", *few).exit_code == 0
    assert state()[1]["steps"] == progress["steps"], "it was finished"
    scored, other = run("eval", *few), run("eval")
    assert (scored.exit_code, other.exit_code) == (0, 1)
    assert "charlstm (max_minutes=1e-05)" in scored.stdout
    assert "train.max_minutes" in other.stderr, "what was cut off is not scored as if it were whole"
    assert run("train", *more).exit_code == 0
    assert state()[0] == folder
    assert state()[1]["stopped_by"] == "max_epochs"
    assert run("eval", *more).exit_code == 0
    assert run("eval").exit_code == 0, "a limit that was not reached has decided nothing"
    assert run("eval", *few).exit_code == 1


def test_a_run_learns_from_no_sentences_but_those_that_were_drawn(laboratory: Laboratory) -> None:
    """More are the same and others; a row says how many there were."""
    drawn = {}
    for seed, number in ((1, 5), (1, 20), (2, 5)):
        run, *_ = plan(laboratory, seeds=[seed], settings={"train.sentences": str(number)})
        drawn[seed, number] = chosen_sentences(run, 40)
        assert drawn[seed, number] == sorted(drawn[seed, number])
        assert len(drawn[seed, number]) == number
    assert set(drawn[1, 5]) < set(drawn[1, 20])
    assert drawn[1, 5] != drawn[2, 5]
    assert chosen_sentences(plan(laboratory)[0], 40) == list(range(40))
    with pytest.raises(TrainingError, match=r"train\.sentences = 5, but tiny-open has 4"):
        chosen_sentences(run, 4)

    options: dict[str, Any] = {"variants": ["charlstm"], "settings": {"train.sentences": "5"}}
    (folder,) = train(laboratory, **options)
    sentences = run.treebank.examples("train", ("constituents",))
    words = {word for number in drawn[1, 5] for word in sentences[number].words}
    description = json.loads((folder / "best" / "parser.json").read_text())
    assert {word for word, _ in description["vocabulary"]["words"]} == words
    assert "charlstm (sentences=5)" in results_markdown(evaluate(laboratory, **options), [])
